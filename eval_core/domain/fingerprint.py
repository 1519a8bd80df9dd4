"""The fingerprint: what must be equal for two results to be comparable, and which field is not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from eval_core.base.files import digest

INSTRUMENT_VERSION = "6"
"""The version of what is measured without a model: fact matching, census, structure and the offline answerer and judge.

Raise it when measured values change, and only then. It is a number and not a digest of the source, so that a reworded
docstring or a moved function leaves every stored baseline comparable; tests/domain/test_instrument.py fails when
values change under the same number."""
ABSENT = "absent"
Key = TypeVar("Key")


class Difference(NamedTuple):
    """One field that is not the same on both sides."""

    field: str
    base: str
    candidate: str


class Fingerprint(BaseModel):
    """Everything that shapes the numbers except the compressor under test, which is what is compared."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: int
    fixtures: dict[str, str]
    """Fixture name -> digest of its content."""
    probes: dict[str, str]
    """Fixture name -> digest of its probe bank."""
    private: dict[str, str] = {}
    """Fixture name -> digest of its sealed bank, where its key was at hand."""
    rubric: str
    answer_template: str
    compressor_model: dict[str, str]
    answer_model: dict[str, str]
    judge_model: dict[str, str]
    """Each: the model's name and its sampling parameters."""
    focus_topic: str | None = None
    tokenizer: str
    instrument: str = ""
    """`INSTRUMENT_VERSION` of the program that measured."""

    @property
    def models(self) -> dict[str, str]:
        """Role to model name, for people."""
        found = {"compressor": self.compressor_model, "answer": self.answer_model, "judge": self.judge_model}
        return {role: identity["model"] for role, identity in found.items()}

    @property
    def digest(self) -> str:
        """Return the sha256 over all fields."""
        return digest(self.model_dump(mode="json", exclude=None if self.private else {"private"}))


def _short(value: object) -> str:
    """Cut a digest to what people can compare by eye."""
    text = ABSENT if value is None else str(value)
    is_digest = len(text) >= 40 and all(char in "0123456789abcdef" for char in text)
    return text[:12] if is_digest else text


def _flat(print_: Fingerprint) -> dict[str, str]:
    """Return one entry per comparable field, files and model parameters each under their own name."""
    flat: dict[str, str] = {}
    for name, value in print_.model_dump(mode="json").items():
        if not isinstance(value, dict):
            flat[name] = ABSENT if value is None else str(value)
            continue
        for key, item in sorted(value.items()):
            suffix = {"fixtures": f"fixtures/{key}.json", "probes": f"probes/{key}.probes.json"}
            suffix["private"] = f"private probes of {key}"
            flat[suffix.get(name, f"{name}.{key}")] = str(item)
    return flat


def differences(base: Fingerprint, candidate: Fingerprint) -> list[Difference]:
    """Return the fields that differ, by file and by model parameter, including those that one side lacks."""
    ours, theirs = _flat(candidate), _flat(base)
    return [
        Difference(field, _short(theirs.get(field)), _short(ours.get(field)))
        for field in dict.fromkeys([*theirs, *ours])
        if theirs.get(field) != ours.get(field)
    ]


def nearest(
    candidate: Fingerprint, baselines: Iterable[tuple[Key, Fingerprint]]
) -> tuple[Key, list[Difference]] | None:
    """Return the baseline with the fewest differing fields and those fields; the first of equals."""
    ranked = [(key, differences(base, candidate)) for key, base in baselines]
    return min(ranked, key=lambda item: len(item[1])) if ranked else None


def narrowed(fingerprint: Fingerprint, names: Collection[str]) -> Fingerprint:
    """Return the part of a fingerprint that concerns some of its fixtures, or all of it if it lacks one."""
    if not set(names) < set(fingerprint.fixtures):
        return fingerprint
    return fingerprint.model_copy(
        update={
            "fixtures": {name: fingerprint.fixtures[name] for name in sorted(names)},
            "probes": {name: fingerprint.probes[name] for name in sorted(names)},
            "private": {name: value for name, value in fingerprint.private.items() if name in names},
        }
    )
