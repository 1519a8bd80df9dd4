"""Culprits: the dimensions, probes and structure checks that a verdict names, and the rows of its table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval_core.statistics.arms import Array
from eval_core.statistics.looks import next_look, share
from eval_core.statistics.permutation import Hypothesis, PermutationResult, UnitDelta, quantile
from eval_core.strands.findings import Advice, Culprit, Direction, Family, Row, RowVerdict, TestSummary, UnitRow

# Structure checks against the baseline's: a broken one is a regression by itself, outside the alpha budget.


# From a test's result to what a reader is shown: rows, named culprits, and which further runs are advised.

_DRAWS = 400
_TOGETHER = 0.6
"""The part of the luck that all rows of a comparison share."""
_FAIR = 0.2


@dataclass(frozen=True)
class TestedFamily:
    """One test with the margins by which it is read."""

    family: Family
    result: PermutationResult
    margin: float
    culprit_alpha: float

    by_facts: Direction | None = None
    """For scores: the way in which the facts moved for certain. What follows from them is certain too."""

    @property
    def significant(self) -> bool:
        """Whether the test as a whole says that something changed."""
        return self.result.p <= self.result.alpha and self._lead is not None

    @property
    def _lead(self) -> Hypothesis | UnitDelta | None:
        """Return what weighed most, if it moved the same way as what is shown of it.

        Scores that fell with the facts, but by less than they should have, have not become better.
        """
        items: list[Hypothesis | UnitDelta] = [*self.result.hypotheses, *self.result.units]
        least = min((item.p for item in items), default=1.0)
        fair = [item for item in items if item.tested * item.delta > 0]
        lead = min(fair, key=lambda item: item.p, default=None)
        return lead if lead is not None and lead.p <= max(least, self.culprit_alpha) else None

    @property
    def named_changes(self) -> tuple[list[Hypothesis], list[UnitDelta]]:
        """Return the changes that a verdict names: all that are certain on their own, and the strongest one."""
        lead = self._lead if self.significant else None

        def named(item: Hypothesis | UnitDelta) -> bool:
            if lead is None or item.tested * item.delta <= 0:
                return False
            # What moved against the rest has the test's own level to pass: it turns a verdict into a mixed one.
            level = self.culprit_alpha if _direction(item.delta) == _direction(lead.delta) else self.result.alpha
            return item is lead or item.p <= level

        def follows(item: Hypothesis) -> bool:
            certain = item.ci_low > 0 or item.ci_high < 0
            ways = {_direction(item.delta), _direction(item.explained), self.by_facts}
            return self.by_facts is not None and certain and len(ways) == 1

        return [item for item in self.result.hypotheses if named(item) or follows(item)], [
            item for item in self.result.units if named(item)
        ]

    @property
    def units(self) -> list[UnitRow]:
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
    hypotheses, units = evidence.named_changes
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


def row_of(evidence: TestedFamily, item: Hypothesis, medians: tuple[dict[str, float], dict[str, float]]) -> Row:
    """Return one line of the table; it can only say worse or better where the verdict does too."""
    equivalent = -evidence.margin <= item.ci90_low and item.ci90_high <= evidence.margin
    if item in evidence.named_changes[0]:
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
        explained=item.explained if evidence.family == "scores" else None,
    )


def chance_to_decide(evidence: Sequence[TestedFamily], graded: int, extra: int) -> float:
    """Return how likely this many more runs of each fixture settle it: some row changed for certain, or none is open.

    What is known of the true change is its estimate with its error. The estimate after more runs is then spread around
    that of today by the part of the error that the new runs take away. Rows move together, but not quite. A later look
    has a smaller part of alpha than the first, so it takes more to be significant.
    """
    less = share(graded + extra, (graded,)) / share(graded) if graded else 1.0
    random = np.random.default_rng(0)
    shared = random.standard_normal(_DRAWS)
    changed, closed = np.zeros(_DRAWS, dtype=bool), np.ones(_DRAWS, dtype=bool)
    for item in evidence:
        for row in item.result.hypotheses:
            own = random.standard_normal(_DRAWS)
            luck = math.sqrt(_TOGETHER) * shared + math.sqrt(1 - _TOGETHER) * own
            significant, equivalent = _row_after(item, row, extra, luck, less)
            changed |= significant
            closed &= equivalent
    return float((changed | closed).mean())


def _row_after(
    evidence: TestedFamily, item: Hypothesis, extra: int, luck: Array, less: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each draw whether the row would be significant, and whether it would be shown to be no change."""
    if extra > len(item.se_after) or not item.df or not math.isfinite(item.se):
        never = np.zeros(len(luck), dtype=bool)
        return never, never
    later = item.se_after[extra - 1] if evidence.family == "scores" else item.se
    estimate = np.abs(item.delta + luck * math.sqrt(max(0.0, item.se**2 - later**2)))
    df = item.df + extra * len(evidence.result.runs)
    half = quantile(0.95, df) * later
    alpha = evidence.result.alpha
    stricter = quantile(1 - alpha * less / 2, df) / quantile(1 - alpha / 2, item.df)
    return estimate > item.crit * stricter * later, estimate + half <= evidence.margin


def advised_look(evidence: Sequence[TestedFamily], graded: int) -> Advice | None:
    """Return what the next planned look adds, and how likely that settles it; None after the last look.

    A chance is told only where it is fair: a low one is more often wrong than of use.
    """
    runs = next_look(graded)
    if runs is None or not evidence:
        return None
    reachable = all(item.result.can_reach for item in evidence)
    chance = chance_to_decide(evidence, graded, runs - graded) if reachable else 0.0
    return Advice(runs=runs - graded, chance=chance if chance >= _FAIR else None)
