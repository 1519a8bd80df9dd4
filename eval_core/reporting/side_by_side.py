"""Several results side by side: a table, the size picture, and which facts each of them keeps.

Nothing is decided here: a verdict needs one base and one candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from eval_core.base.errors import UserError
from eval_core.base.numbers import percent, score
from eval_core.domain.fingerprint import differences
from eval_core.domain.grade import Grade
from eval_core.domain.measurement import Measurement
from eval_core.statistics.fates import fates

COLUMNS = ("", "target", "tokens kept", "expected facts", "all facts", "score", "checks failed", "cost")


@dataclass(frozen=True)
class FactKept:
    """One fact and the share of runs in which each result keeps it; None where it was not measured."""

    fixture: str
    name: str
    source: str
    """The probe that asks for it, or the kind of a census fact."""
    asked: bool
    """Whether a probe asks for it."""
    kept: tuple[float | None, ...]

    @property
    def spread(self) -> float:
        """How much the results differ."""
        known = [share for share in self.kept if share is not None]
        return max(known) - min(known) if known else 0.0


@dataclass(frozen=True)
class SideBySide:
    """What is shown of several results."""

    measurements: tuple[Measurement, ...]
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """One for each result, in the order of COLUMNS."""
    facts: tuple[FactKept, ...]
    """Facts that not all results keep alike, those with the greatest difference first."""
    same: int
    """Facts that all keep, or lose, alike."""
    notes: tuple[str, ...]


def _row(name: str, measurement: Measurement, fixtures: Sequence[str]) -> tuple[str, ...]:
    part = measurement.model_copy(update={"fixtures": {name: measurement.fixtures[name] for name in fixtures}})
    every = [run for runs in part.fixtures.values() for run in runs if run.ok]
    records = [record for run in every for record in run.probes.values()]
    asked = [fact.kept for record in records for fact in record.facts if fact.evidence]
    scores = [record.result.overall for record in records if isinstance(record.result, Grade)]
    broken = {check for run in every for check, passed in run.structure.items() if not passed}
    usd = measurement.spent.cost_usd
    return (
        name,
        measurement.provenance.target,
        "-" if part.tokens_kept is None else f"{part.tokens_kept:,.0f}",
        percent(fmean(asked)) if asked else "-",
        "-" if part.facts_kept is None else percent(part.facts_kept),
        score(fmean(scores)) if scores else "-",
        ", ".join(sorted(check.replace("_", " ") for check in broken)) or "none",
        "price unknown" if usd is None else f"${usd:.2f}",
    )


def side_by_side(measurements: Sequence[Measurement]) -> SideBySide:
    """Put results beside each other, over the fixtures that all of them have."""
    fixtures = [name for name in measurements[0].fixtures if all(name in other.fixtures for other in measurements)]
    if not fixtures:
        raise UserError(
            "these results have no fixture in common: "
            + "; ".join(f"{item.label} has {', '.join(item.fixtures)}" for item in measurements)
        )
    labels = [item.label for item in measurements]
    names = tuple(
        label if labels.count(label) == 1 else f"{label} ({number})" for number, label in enumerate(labels, 1)
    )
    facts = []
    for fixture in fixtures:
        sides = [fates(item, fixture) for item in measurements]
        known = {key: fate for found in reversed(sides) for key, fate in found.items()}
        for key, fate in known.items():
            shares = tuple(found[key].kept_share if key in found else None for found in sides)
            source = ", ".join(fate.asked_by) or fate.kind
            facts.append(FactKept(fixture, fate.name, source, bool(fate.asked_by), shares))
    apart = sorted((fact for fact in facts if fact.spread > 0), key=lambda fact: (-fact.spread, not fact.asked))
    notes = []
    left_out = {name for item in measurements for name in item.fixtures} - set(fixtures)
    if left_out:
        notes.append(f"left out, because not all results have them: {', '.join(sorted(left_out))}")
    for name, item in zip(names[1:], measurements[1:], strict=True):
        if fields := differences(measurements[0].fingerprint, item.fingerprint):
            notes.append(
                f"{name} and {names[0]} were measured with different settings "
                f"({', '.join(sorted({field.field for field in fields}))}): ignore small differences between them"
            )
    rows = tuple(_row(name, item, fixtures) for name, item in zip(names, measurements, strict=True))
    return SideBySide(tuple(measurements), names, rows, tuple(apart), len(facts) - len(apart), tuple(notes))
