"""Culprits: the dimensions, probes and structure checks that a verdict names, and the rows of its table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from eval_core.comparing.arms import Arm
from eval_core.comparing.findings import Culprit, Direction, Family, Row, RowVerdict, TestSummary, UnitRow
from eval_core.comparing.permutation import Hypothesis, PermutationResult, UnitDelta, quantile

__all__ = [
    "MAJORITY",
    "MOST_EXTRA",
    "StructureChange",
    "TestedFamily",
    "changes",
    "culprits_of",
    "row_of",
    "settle",
    "structure_culprits",
]

# Structure checks against the baseline's: a broken one is a regression by itself, outside the alpha budget.

MAJORITY = 0.5
"""Broken needs more than this share of failing runs."""


@dataclass(frozen=True)
class StructureChange:
    """One check of one fixture that no longer behaves as in the baseline."""

    fixture: str
    check: str
    kind: Literal["broken", "mended", "shaky"]
    base_passed: int
    base_runs: int
    candidate_passed: int
    candidate_runs: int

    @property
    def label(self) -> str:
        """How people read it."""
        return f"{self.fixture} / {self.check}"


def _classify(base: list[bool], candidate: list[bool]) -> Literal["broken", "mended", "shaky"] | None:
    failed, failed_before = candidate.count(False) / len(candidate), base.count(False) / len(base)
    if not failed_before and failed > MAJORITY:
        return "broken"
    if not failed and failed_before > MAJORITY:
        return "mended"
    return "shaky" if failed and not failed_before else None


def changes(base: Arm, candidate: Arm) -> tuple[StructureChange, ...]:
    """Return every check that changed, in the baseline's order of fixtures and checks."""
    found = []
    for name, arm in base.fixtures.items():
        other = candidate.fixtures.get(name)
        if other is None:
            continue
        for check in dict.fromkeys(key for run in arm.structure for key in run):
            before = [run[check] for run in arm.structure if check in run]
            now = [run[check] for run in other.structure if check in run]
            kind = _classify(before, now) if now else None
            if kind is not None:
                found.append(
                    StructureChange(name, check, kind, before.count(True), len(before), now.count(True), len(now))
                )
    return tuple(found)


# From a test's result to what a reader is shown: rows, named culprits, and what would settle an open question.

MOST_EXTRA = 30
"""Nobody runs more than this many further compressions of a fixture for one pull request."""


@dataclass(frozen=True)
class TestedFamily:
    """One test with the margins by which it is read."""

    family: Family
    result: PermutationResult
    margin: float
    culprit_alpha: float

    @property
    def significant(self) -> bool:
        """Whether the test as a whole says that something changed."""
        return self.result.p <= self.result.alpha

    @property
    def guilty(self) -> tuple[list[Hypothesis], list[UnitDelta]]:
        """Return what is named: all that is certain by itself, or else the one thing that weighed most."""
        if not self.significant:
            return [], []
        hypotheses = [item for item in self.result.hypotheses if item.p <= self.culprit_alpha]
        units = [item for item in self.result.units if item.p <= self.culprit_alpha]
        if hypotheses or units:
            return hypotheses, units
        # The combined p can be significant on a single unit whose own doubled p lies just above the limit.
        first = min(self.result.hypotheses, key=lambda item: item.p, default=None)
        unit = min(self.result.units, key=lambda item: item.p, default=None)
        if unit is None or (first is not None and first.p <= unit.p):
            return ([first] if first is not None else []), []
        return [], [unit]

    @property
    def units(self) -> list[UnitRow]:
        """Return every unit as a row."""
        return [
            UnitRow(
                fixture=item.unit.fixture,
                kind=item.unit.kind,
                name=item.unit.name,
                base=item.base,
                candidate=item.candidate,
                delta=item.delta,
                p=item.p,
            )
            for item in self.result.units
        ]

    @property
    def summary(self) -> TestSummary:
        """Return the test's own numbers."""
        result = self.result
        return TestSummary(
            family=self.family,
            alpha=result.alpha,
            p=result.p,
            p_global=result.p_global,
            p_local=result.p_local,
            significant=self.significant,
            crit=result.crit,
            arrangements=result.arrangements,
            enumerated=result.enumerated,
            attainable_p=result.attainable_p,
            can_reach=result.can_reach,
            margin=self.margin,
            runs=result.runs,
        )


def _direction(delta: float) -> Direction:
    return "worse" if delta < 0 else "better"


def culprits_of(evidence: TestedFamily) -> list[Culprit]:
    """Return everything this test names; empty unless the test as a whole is significant."""
    hypotheses, units = evidence.guilty
    found = [
        Culprit(
            kind="dimension" if evidence.family == "scores" else "retention",
            direction=_direction(item.delta),
            name=item.name,
            base=item.base,
            candidate=item.candidate,
            delta=item.delta,
            ci_low=item.ci_low,
            ci_high=item.ci_high,
            p=item.p,
        )
        for item in hypotheses
    ]
    return found + [
        Culprit(
            kind=item.unit.kind,
            direction=_direction(item.delta),
            name=item.unit.name,
            fixture=item.unit.fixture,
            base=item.base,
            candidate=item.candidate,
            delta=item.delta,
            p=item.p,
        )
        for item in units
    ]


def structure_culprits(structure: Iterable[StructureChange]) -> list[Culprit]:
    """Return the checks that broke or mended; a shaky one is nobody's fault yet."""
    return [
        Culprit(
            kind="structure",
            direction="worse" if item.kind == "broken" else "better",
            name=item.check,
            fixture=item.fixture,
            base=item.base_passed / item.base_runs,
            candidate=item.candidate_passed / item.candidate_runs,
            delta=item.candidate_passed / item.candidate_runs - item.base_passed / item.base_runs,
        )
        for item in structure
        if item.kind != "shaky"
    ]


def row_of(evidence: TestedFamily, item: Hypothesis, medians: tuple[dict[str, float], dict[str, float]]) -> Row:
    """Return one line of the table; it can only say worse or better where the verdict does too."""
    equivalent = -evidence.margin <= item.ci90_low and item.ci90_high <= evidence.margin
    if item in evidence.guilty[0]:
        verdict = RowVerdict(_direction(item.delta))
    else:
        verdict = RowVerdict.NO_DETECTABLE_CHANGE if equivalent else RowVerdict.INCONCLUSIVE
    before, after = medians
    return Row(
        name=item.name,
        family=evidence.family,
        base=item.base,
        candidate=item.candidate,
        delta=item.delta,
        ci_low=item.ci_low,
        ci_high=item.ci_high,
        ci90_low=item.ci90_low,
        ci90_high=item.ci90_high,
        p=item.p,
        mde=item.mde,
        mde_two_more=item.mde_two_more,
        verdict=verdict,
        median_base=before.get(item.name),
        median_candidate=after.get(item.name),
    )


def _settles(evidence: TestedFamily, item: Hypothesis, extra: int) -> bool:
    """Tell whether a row would be decided, either way, if its difference stayed and only its error shrank."""
    runs = evidence.result.runs.values()
    now = sum(1 / n + 1 / m for n, m in runs)
    se = item.se * math.sqrt(sum(1 / (n + extra) + 1 / m for n, m in runs) / now)
    half = quantile(0.95, item.df + extra * len(runs)) * se
    return abs(item.delta) + half <= evidence.margin or abs(item.delta) > evidence.result.crit * se


def settle(evidence: Sequence[TestedFamily], rows: Sequence[Row]) -> int | None:
    """Return how many more runs of each fixture would settle every open row; None where no sensible number would."""
    open_names = {row.name for row in rows if row.verdict is RowVerdict.INCONCLUSIVE}
    open_rows = [(item, row) for item in evidence for row in item.result.hypotheses if row.name in open_names]
    for extra in range(1, MOST_EXTRA + 1):
        if open_rows and all(_settles(item, row, extra) for item, row in open_rows):
            return extra
    return None
