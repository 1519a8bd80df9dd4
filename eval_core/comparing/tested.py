"""Tested: every test of a comparison, each with its part of alpha, and what the strands are compared from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eval_core.domain.extra import Look
from eval_core.statistics import looks as looking
from eval_core.statistics import medians as median_rule
from eval_core.statistics.arms import Arm
from eval_core.statistics.clear_losses import ClearTest, clear_changes, kept_blocks
from eval_core.statistics.hypotheses import (
    AUTHORED,
    FACT_HYPOTHESES,
    OVERALL,
    SCORE_HYPOTHESES,
    SIZE,
    Block,
    fact_blocks,
    score_blocks,
    size_blocks,
)
from eval_core.statistics.permutation import LIMIT, Hypothesis, Shift, permute
from eval_core.statistics.stability import spread_changes
from eval_core.strands.culprits import TestedFamily, culprits_of, row_of
from eval_core.strands.evidence import Evidence, Recorded
from eval_core.strands.facts import facts_strand
from eval_core.strands.findings import (
    Direction,
    FactChange,
    FalseValue,
    Row,
    RowVerdict,
    SpreadFinding,
    StrandState,
)
from eval_core.strands.size import GROWTH, SizeChange
from eval_core.strands.structure import changes, structure_culprits


@dataclass(frozen=True)
class Options:
    """The constants of the rule; the defaults are the shipped rule."""

    alpha_scores: float = 0.025
    alpha_facts: float = 0.008
    alpha_losses: float = 0.01
    """For single facts that are clearly lost; one fixture with 3 runs against 10 reaches 2 of 286 arrangements."""
    alpha_size: float = 0.007
    culprit_alpha: float = 0.05
    """Adjusted p up to which a dimension or probe of a significant test is named."""
    margin_scores: float = 0.35
    margin_facts: float = 0.07
    """Equivalence margins: the same share of the scale, 7 %, for points out of 5 and for shares of facts."""
    coverage_floor: float = 0.95
    arrangements: int = LIMIT
    seed: int = 0

    @property
    def alpha_compressions(self) -> float:
        """What everything may spend that needs no grade."""
        return self.alpha_facts + self.alpha_losses + self.alpha_size


@dataclass(frozen=True)
class Sides:
    """What stays the same whichever verdict it comes to."""

    base: Arm
    candidate: Arm
    options: Options
    earlier: tuple[Look, ...] = ()
    """What was measured of this candidate at earlier looks."""
    shift: Shift | None = None
    alpha_rounds: float = 0.0
    """What the tests of rounds and of tasks may spend; scores spend that much less."""
    alpha_obeys: float = 0.0
    """The same of choices and actions, which share the looks of the scores."""
    notes: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def measured(self) -> Look:
        """What has been measured of the candidate now."""
        fixtures = self.candidate.fixtures.values()
        return Look(
            max((len(item.scores) for item in fixtures), default=0),
            max((len(item.structure) for item in fixtures), default=0),
        )

    @property
    def shares(self) -> tuple[float, float]:
        """The parts of alpha that graded runs, and that compressions, may spend at this look."""
        now = self.measured
        return (
            looking.share(now.graded, (look.graded for look in self.earlier)),
            looking.share(now.compressed, (look.compressed for look in self.earlier)),
        )

    def alpha(self, graded: float, compressed: float) -> float:
        """Return what these shares of alpha are, all tests together."""
        spent = (self.options.alpha_scores + self.alpha_obeys) * graded + self.options.alpha_compressions * compressed
        return round(spent + self.alpha_rounds, 12)

    @property
    def spent(self) -> float:
        """What all looks up to this one have spent."""
        now = self.measured
        return self.alpha(looking.spent(now.graded), looking.spent(now.compressed))

    @property
    def common(self) -> dict[str, Any]:
        """What every verdict on it holds, whatever it comes to; asked for last, when all notes are taken."""
        return {
            "base_label": self.base.label,
            "candidate_label": self.candidate.label,
            "notes": tuple(self.notes),
            "remarks": tuple(self.remarks),
            "look": 1 + len({look.graded for look in self.earlier if look.graded < self.measured.graded}),
            "planned_looks": len(looking.RUNS_AT_LOOK),
            "alpha": self.alpha(*self.shares),
            "alpha_spent": self.spent,
        }


def _test(
    case: Sides, muted: set[str], *, deterministic: bool, judged: bool
) -> tuple[list[TestedFamily], list[SpreadFinding]]:
    """Run the tests that are not muted, each with its part of alpha for this look, and look at the spread.

    `deterministic` says that the facts are those of deterministic runs, which have no spread; without a judge, scores
    follow from the facts and have none of their own.
    """
    options, (share_scores, share_facts) = case.options, case.shares
    alpha_scores, alpha_facts = options.alpha_scores * share_scores, options.alpha_facts * share_facts
    scores = score_blocks(case.base, case.candidate) if not muted else []
    facts = fact_blocks(case.base, case.candidate) if muted <= {"scores"} else []
    seed, limit = options.seed, options.arrangements
    graded = permute(
        scores, SCORE_HYPOTHESES, alpha=alpha_scores, seed=seed, limit=limit, shift=case.shift, lead=OVERALL
    )
    kept = permute(facts, FACT_HYPOTHESES, alpha=alpha_facts, seed=seed, limit=limit)
    found = [TestedFamily("facts", kept, options.margin_facts, options.culprit_alpha)] if kept is not None else []
    if graded is not None:
        found.insert(0, TestedFamily("scores", graded, options.margin_scores, options.culprit_alpha, _by_facts(found)))
    spread = [
        SpreadFinding(
            name=item.name,
            base_sd=item.base_sd,
            candidate_sd=item.candidate_sd,
            p=item.p,
            verdict="less_stable" if item.less_stable else "more_stable",
        )
        for item in spread_changes(scores if judged else [], [] if deterministic else facts, seed=seed, limit=limit)
    ]
    return found, spread


def _clear(case: Sides) -> ClearTest | None:
    """Look for single facts that were lost."""
    options = case.options
    blocks = kept_blocks(case.base, case.candidate)
    return clear_changes(
        blocks, alpha=options.alpha_losses * case.shares[1], seed=options.seed, limit=options.arrangements
    )


def _with_size(case: Sides, recorded: Recorded) -> Recorded:
    """Return the records with the size tested, unless it was counted: so little luck cannot make another size."""
    options, blocks = case.options, size_blocks(case.base, case.candidate)
    if recorded.exact and all(map(_narrow, blocks)):
        return recorded
    alpha = options.alpha_size * case.shares[1]
    found = permute(blocks, (SIZE,), alpha=alpha, seed=options.seed, limit=options.arrangements)
    return recorded if found is None else replace(recorded, size=replace(recorded.size, p=found.p, alpha=alpha))


def _narrow(block: Block) -> bool:
    """Tell whether the sizes of each side differ by less than what is another size."""
    arms = block.means[: block.candidate_runs], block.means[block.candidate_runs :]
    return all(float(np.ptp(arm)) < math.log1p(GROWTH) for arm in arms)


def _by_facts(found: Sequence[TestedFamily]) -> Direction | None:
    """Return the way in which the authored facts moved for certain."""
    ways = {culprit.direction for item in found for culprit in culprits_of(item) if culprit.name == AUTHORED}
    return ways.pop() if ways else None


def _counted(
    evidence: TestedFamily, item: Hypothesis, state: StrandState, medians: tuple[dict[str, float], dict[str, float]]
) -> Row:
    """Return a row that was counted on deterministic runs: two numbers, and nothing estimated."""
    moved = state in (StrandState.WORSE, StrandState.BETTER, StrandState.BOTH) and abs(item.delta) > 1e-9
    return row_of(evidence, item, medians).model_copy(
        update={
            **dict.fromkeys(("ci_low", "ci_high", "ci90_low", "ci90_high", "p", "mde", "mde_two_more")),
            "verdict": RowVerdict("worse" if item.delta < 0 else "better")
            if moved
            else RowVerdict.NO_DETECTABLE_CHANGE,
        }
    )


def _rows(
    evidence: Sequence[TestedFamily], medians: tuple[dict[str, float], dict[str, float]], recorded: Recorded | None
) -> list[Row]:
    rows = []
    for item in evidence:
        exact = recorded is not None and recorded.exact and item.family == "facts"
        advisory = recorded is not None and not recorded.judged and item.family == "scores"
        state = facts_strand(recorded, None, (), ()).state if exact else StrandState.SAME
        for hypothesis in item.result.hypotheses:
            if exact:
                rows.append(_counted(item, hypothesis, state, medians))
            elif advisory and hypothesis.name == OVERALL:
                row = _counted(item, hypothesis, StrandState.SAME, medians)
                rows.append(row.model_copy(update={"verdict": RowVerdict.ADVISORY}))
            elif not advisory:
                rows.append(row_of(item, hypothesis, medians))
    return rows


@dataclass(frozen=True)
class Tested:
    """Everything that was tested, and what every strand is compared from."""

    evidence: Evidence
    muted: frozenset[str]
    spread: Sequence[SpreadFinding]

    @property
    def deciding(self) -> list[TestedFamily]:
        return list(self.evidence.tested.values())

    @property
    def size(self) -> SizeChange | None:
        recorded = self.evidence.recorded
        return recorded.size if recorded is not None and self.muted <= {"scores"} else None

    @property
    def counted(self) -> bool:
        """Whether nothing was left to chance."""
        return self.evidence.exact and not self.evidence.tested

    @property
    def facts(self) -> tuple[FactChange, ...]:
        recorded = self.evidence.recorded
        return recorded.facts if recorded is not None and self.muted <= {"scores"} else ()

    @property
    def false_values(self) -> tuple[FalseValue, ...]:
        recorded = self.evidence.recorded
        return recorded.false_values if recorded is not None and self.muted <= {"scores"} else ()

    @property
    def losing_fixtures(self) -> list[str]:
        """Fixtures with losses, the most first."""
        where = [item.fixture for item in self.evidence.culprits if item.fixture and item.direction == "worse"]
        where += [item.fixture for item in self.facts if item.clear and item.change < 0]
        return [name for name, _ in Counter(where).most_common()]


def gather(case: Sides, recorded: Recorded | None, muted: set[str]) -> Tested:
    """Run every test that is not muted, and lay out what the strands are compared from."""
    exact, judged = recorded is not None and recorded.exact, recorded is None or recorded.judged
    families, spread = _test(case, muted, deterministic=exact, judged=judged)
    tested = {item.family: item for item in families if (judged if item.family == "scores" else not exact)}
    structure = changes(case.base, case.candidate)
    if recorded is not None:
        recorded = _with_size(case, recorded)
    evidence = Evidence(
        case.base,
        case.candidate,
        recorded,
        structure=structure,
        tested=tested,
        culprits=[culprit for item in tested.values() for culprit in culprits_of(item)] + structure_culprits(structure),
        rows=_rows(families, (median_rule.medians(case.base), median_rule.medians(case.candidate)), recorded),
        clear=None if exact or not muted <= {"scores"} else _clear(case),
        graded_share=case.shares[0],
    )
    return Tested(evidence, frozenset(muted), spread)
