"""Private probes: banks sealed into one file of the tree, which only the evaluate step can open.

What stands in the clear is what a result shows anyway: fixtures, ids, types, and a digest that changes with the
content. Questions and facts are inside.
"""

from __future__ import annotations

import datetime
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from eval_core.base.config import PrivateProbesConfig
from eval_core.base.errors import UserError
from eval_core.base.files import digest, parse, pretty, read_json
from eval_core.base.sealing import Damaged, SealingKey
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.probe import PrivateProbe, ProbeBank, ProbeType


class _Sealed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SealedHeader(_Sealed):
    """What may be known of one sealed bank."""

    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="Changes with the content; salted.")]
    probes: Annotated[dict[str, ProbeType], Field(min_length=1, description="Id to type.")]


class SealedBanks(_Sealed):
    """The file that `compression-eval probe seal` writes."""

    format: Literal["compression-eval-sealed-probes/1"] = "compression-eval-sealed-probes/1"
    banks: Annotated[dict[str, SealedHeader], Field(min_length=1, description="Fixture to what is known of its bank.")]
    sealed: Annotated[str, Field(description="Questions and facts, encrypted.")]


@dataclass(frozen=True)
class PrivateBank:
    """The private probes of one fixture that this run asks; none where only the header could be read."""

    digest: str
    types: Mapping[str, str]
    """Every probe that the sealed bank holds, asked or not."""
    probes: tuple[PrivateProbe, ...] = ()


def read_sealed(path: Path) -> SealedBanks:
    """Read a sealed file, without opening it."""
    return parse(SealedBanks, read_json(path), str(path))


def _header(bank: ProbeBank, salt: object, content: object) -> SealedHeader:
    return SealedHeader(digest=digest([salt, content]), probes={probe.id: probe.type for probe in bank.probes})


def seal_banks(banks: Sequence[ProbeBank], key: SealingKey) -> SealedBanks:
    """Seal banks, one for each fixture."""
    # Facts are guessable: without a salt, a digest would confirm a guess.
    salt = secrets.token_hex(16)
    content = {bank.fixture: bank.model_dump(mode="json", by_alias=True, exclude_none=True) for bank in banks}
    ordered = sorted(banks, key=lambda bank: bank.fixture)
    headers = {bank.fixture: _header(bank, salt, content[bank.fixture]) for bank in ordered}
    return SealedBanks(banks=headers, sealed=key.seal(pretty({"salt": salt, "banks": content})))


def open_banks(sealed: SealedBanks, key: SealingKey, where: str) -> dict[str, ProbeBank]:
    """Open a sealed file, and check that what stands in the clear is true."""
    try:
        body: Any = parse_json(key.open(sealed.sealed).encode("utf-8", "surrogatepass"))
        salt, content = body["salt"], body["banks"]
        # Named as in the clear, which is all that a message may repeat.
        banks = {
            name: parse(ProbeBank, content[name], f"{where}: sealed bank of {name}", quote=False)
            for name in sorted(sealed.banks.keys() & content.keys())
        }
        headers = {name: _header(bank, salt, content[name]) for name, bank in banks.items()}
    except Damaged:
        raise UserError(
            f"{where}: cannot be opened with this key; it was sealed with another one, or the file was changed"
        ) from None
    except (BadJson, KeyError, TypeError, AttributeError):
        raise UserError(f"{where}: holds no probe banks; seal them again with `compression-eval probe seal`") from None
    if headers != sealed.banks or content.keys() != headers.keys():
        raise UserError(f"{where}: its clear part was edited; seal the banks again with `compression-eval probe seal`")
    return banks


def period_of(config: PrivateProbesConfig, day: datetime.date) -> str:
    """Name the draw of a day: the same until the next rotation, or until the seed changes."""
    number = day.toordinal() // config.rotate_days if config.rotate_days else 0
    return f"{config.seed}/{number}"


def sealed_headers(config: PrivateProbesConfig, root: Path) -> dict[str, PrivateBank]:
    """Return what stands in the clear, for whoever checks a result and has no key."""
    sealed = read_sealed(root / config.file)
    return {name: PrivateBank(header.digest, dict(header.probes)) for name, header in sealed.banks.items()}


def private_banks(
    config: PrivateProbesConfig, root: Path, key: SealingKey | None, *, day: datetime.date, every: bool
) -> dict[str, PrivateBank]:
    """Return the private banks by fixture; without a key only what stands in the clear."""
    path = root / config.file
    sealed = read_sealed(path)
    opened = open_banks(sealed, key, str(path)) if key is not None else {}
    found = {}
    for name, header in sealed.banks.items():
        asked: tuple[PrivateProbe, ...] = ()
        if key is not None:
            known = {probe.id: PrivateProbe.of(probe) for probe in opened[name].probes}
            share = 1.0 if every else config.share
            chosen = key.draw(known, share, f"{period_of(config, day)}/{name}")
            asked = tuple(known[item] for item in chosen)
        found[name] = PrivateBank(header.digest, dict(header.probes), asked)
    return found
