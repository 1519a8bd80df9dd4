"""Where both sides come from and what they cost, field by field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eval_core.measurement import Measurement
from eval_core.run.record import UseRecord

__all__ = ["Field", "UseRow", "provenance", "use_rows"]


@dataclass(frozen=True)
class Field:
    """One field on both sides."""

    name: str
    base: str
    candidate: str
    differs: bool
    must_match: bool
    """Part of the fingerprint: where it differs, nothing can be compared."""


@dataclass(frozen=True)
class UseRow:
    """Calls, tokens and money of one role on one side."""

    role: str
    side: str
    calls: str
    input: str
    cached: str
    output: str
    cost: str


def _words(value: Any) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _flat(prefix: str, value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        if not value:
            return {}
        return {key: text for name, inner in value.items() for key, text in _flat(f"{prefix} · {name}", inner).items()}
    return {prefix: _words(value)}


def _described(measurement: Measurement | None, path: str | None) -> dict[str, str]:
    if measurement is None:
        return {}
    source = measurement.provenance.model_dump(mode="json")
    fields = {"label": measurement.label, "file": _words(path)} if path else {"label": measurement.label}
    for name, value in source.items():
        fields[name.replace("_", " ")] = _words(value)
    fields["offline"] = _words(measurement.offline)
    fields["graded runs planned"] = str(measurement.planned_runs)
    fields["compressions planned"] = str(measurement.planned_compress_runs)
    fields["stopped early"] = _words(measurement.stopped)
    for role, model in measurement.models.items():
        fields[f"model · {role}"] = model
    for name, value in measurement.extra.items():
        fields.update(_flat(f"extra · {name}", value))
    return fields


def _fingerprint(measurement: Measurement | None) -> dict[str, str]:
    if measurement is None:
        return {}
    fields = {"fingerprint": measurement.fingerprint.digest}
    for name, value in measurement.fingerprint.model_dump(mode="json").items():
        fields.update(_flat(name.replace("_", " "), value))
    return fields


def provenance(candidate: Measurement, base: Measurement | None, base_path: str | None) -> list[Field]:
    """Return every field of both sides: first what is compared, then what must be equal for it."""
    fields = []
    for must_match, theirs, ours in (
        (False, _described(base, base_path), _described(candidate, None)),
        (True, _fingerprint(base), _fingerprint(candidate)),
    ):
        for name in dict.fromkeys([*ours, *theirs]):
            left, right = theirs.get(name, "–"), ours.get(name, "–")
            fields.append(Field(name, left, right, base is not None and left != right, must_match))
    return fields


def _use_row(role: str, side: str, use: UseRecord) -> UseRow:
    cost = "price unknown" if use.cost_usd is None else f"${use.cost_usd:.4f}"
    return UseRow(
        role, side, f"{use.calls:,}", f"{use.input_tokens:,}", f"{use.cached_tokens:,}", f"{use.output_tokens:,}", cost
    )


def use_rows(candidate: Measurement, base: Measurement | None) -> list[UseRow]:
    """Return what each role used, base first."""
    sides = [("base", base.use)] if base else []
    sides.append(("candidate", candidate.use))
    roles = dict.fromkeys(role for _, use in sides for role in use)
    return [_use_row(role, side, use[role]) for role in roles for side, use in sides if role in use]
