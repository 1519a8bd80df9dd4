"""Sizes of a run: which generated sessions are played beside the suite, each made once and known by its digest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from eval_core.base.config import SuiteName
from eval_core.base.errors import UserError
from eval_core.base.files import digest, json_value, parse, pretty, write_atomic
from eval_core.base.gzip_files import PACKED_SUFFIX, pack, packed_name, unpack
from eval_core.domain.case import Case
from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import ProbeBank
from eval_core.domain.session_ledger import SessionLedger
from eval_core.suite.generate import SESSION_TREE, SessionPlan, generate, read_tree

_DIGESTS = {
    "rounds-1": "46d990e921face3bc2a3aee50d23e4b3cb1864ba8edfa5ed79d613c74f80d876",
    "rounds-2": "4f77b0d052802160f519ee97aa2e7ab15b87477d09bbfba45fd6e3dfce6967f8",
    "rounds-3": "59dbfaa0796a2f7ddd9e4e74ac5616251b593c24c3654c5c5577ce8fa546a6ed",
    "rounds-4": "e7282b6a9f9b7017d3a37c9a38c7ad21a46ee5aea9ea325d2c9619e35ba2e24e",
    "long-1": "fdd735b729b0554974b546661153b9aa08e70b8ddf3909bfa6206e4e45ae4181",
    "long-2": "0fa7c32ff7a89f9735a705ebc68f87e9f4530d5a4e11065ce1f112d50d72e8cb",
    "long-3": "707c3613089e595274ce8a1df6d8a21c344458027823fae3adc9824edac8ae23",
    "long-4": "c3c374e44c255aa8f124f42a1f84fb94dc2fe1e441b2da0852385da3910541e5",
    "million-1": "e16fb7d6fc7f863be431014f95ec48b7e225327c12fe1c1fa3bd152023b70679",
}  # fmt: skip


def _sessions(name: str, many: int, tokens: int, window: int) -> tuple[SessionPlan, ...]:
    return tuple(SessionPlan(f"{name}-{seed}", seed, tokens=tokens, window=window) for seed in range(1, many + 1))


_ROUNDS, _LONG = _sessions("rounds", 4, 90_000, 16_000), _sessions("long", 4, 300_000, 64_000)
SIZES: dict[SuiteName, tuple[SessionPlan, ...]] = {
    "quick": (),
    "rounds": _ROUNDS,
    "long": _LONG,
    "full": (*_ROUNDS, *_LONG),
    "adversarial": (),
}
_WHEN_DUE: dict[SuiteName, SessionPlan | None] = {
    "quick": None,
    "adversarial": None,
    "rounds": _ROUNDS[0],
    "long": _LONG[0],
    "full": _sessions("million", 1, 1_000_000, 200_000)[0],
}


def when_due(suite: SuiteName, *, offline: bool) -> SessionPlan | None:
    """Return the session that is compressed when the compressor says so; with a model, only what a size adds for it."""
    plan = _WHEN_DUE[suite]
    return plan if plan is not None and (offline or plan not in SIZES[suite]) else None


def check_digest(case: Case, expected: str | None, kept: Path | None = None) -> None:
    """Refuse a session that is another than the one that results are known of."""
    found = case.fixture.digest
    if expected is None or found == expected:
        return
    where, remove = ("", "") if kept is None else (f"{kept}: ", "; remove the file")
    raise UserError(
        f"{where}the generated session {case.fixture.name} has the digest {found[:16]}, and {expected[:16]} was "
        f"expected: the generator, its tree or the file has changed, so results are not comparable{remove}"
    )


def made_once(plan: SessionPlan, folder: Path, tree: Path = SESSION_TREE, expected: str | None = None) -> Case:
    """Return a generated session from the folder where it is kept, or make it and keep it there."""
    files = read_tree(tree)
    key = digest({"plan": asdict(plan), "tree": digest(files)})[:16]
    kept = sorted(folder.glob(f"{plan.name}-{key}.*{PACKED_SUFFIX}")) if folder.is_dir() else []
    case = _read(kept[0]) if kept else generate(plan, files)
    check_digest(case, expected, kept[0] if kept else None)
    if not kept:
        text = pretty(_body(case)).encode()
        write_atomic(folder / packed_name(f"{plan.name}-{key}", text), pack(text))
    return case


def _body(case: Case) -> dict[str, object]:
    parts = {"fixture": case.fixture, "probes": case.bank, "ledger": case.ledger}
    return {
        name: part.model_dump(mode="json", by_alias=True, exclude_none=True) for name, part in parts.items() if part
    }


def _read(path: Path) -> Case:
    try:
        value = json_value(unpack(path).decode("utf-8", "replace"), path)
    except UserError as exc:
        raise UserError(f"{str(exc).partition(';')[0]}; remove the file, and it is made anew") from None
    if not isinstance(value, dict) or set(value) != {"fixture", "probes", "ledger"}:
        raise UserError(f"{path}: not a generated session; remove the file, and it is made anew")
    return Case(
        parse(Fixture, value["fixture"], str(path)),
        parse(ProbeBank, value["probes"], str(path)),
        ledger=parse(SessionLedger, value["ledger"], str(path)),
    )


def generated_cases(plans: Iterable[SessionPlan], folder: Path) -> list[Case]:
    """Return the sessions of a size; each must come out as it did when it was written down here."""
    return [made_once(plan, folder, expected=_DIGESTS[plan.name]) for plan in plans]
