"""The verdict: from two arms to one decision, in a fixed order, with every number that led to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from eval_core.base.numbers import p_value, percent, score, signed
from eval_core.comparing import headline
from eval_core.comparing import looks as looking
from eval_core.comparing import medians as seed_rule
from eval_core.comparing.arms import Arm, FixtureArm, validate
from eval_core.comparing.culprits import (
    StructureChange,
    TestedFamily,
    changes,
    culprits_of,
    row_of,
    settle,
    structure_culprits,
)
from eval_core.comparing.drift import Drift
from eval_core.comparing.findings import (
    Advice,
    Coverage,
    Culprit,
    Kind,
    MedianFinding,
    Reason,
    Row,
    RowVerdict,
    SpreadFinding,
    StructureFinding,
    TestSummary,
    UnitRow,
    Verdict,
)
from eval_core.comparing.hypotheses import (
    AUTHORED,
    FACT_HYPOTHESES,
    OVERALL,
    SCORE_HYPOTHESES,
    fact_blocks,
    score_blocks,
)
from eval_core.comparing.looks import Look
from eval_core.comparing.permutation import LIMIT, MOST_EXTRA, Design, Shift, permute
from eval_core.comparing.spread import spread_changes
from eval_core.domain.fingerprint import Difference

__all__ = [
    "FailOn",
    "Kind",
    "Options",
    "Verdict",
    "coverage_of",
    "decide",
    "exit_code",
    "gaps",
]

# What was planned and is not there: an outage must never look like a regression.

Side = Literal["baseline", "candidate"]


def _sides(base: Arm, candidate: Arm) -> tuple[tuple[Side, Arm], tuple[Side, Arm]]:
    return ("baseline", base), ("candidate", candidate)


def coverage_of(base: Arm, candidate: Arm) -> list[Coverage]:
    """Return the measured part of the planned grid, per side and family."""
    found = []
    for side, arm in _sides(base, candidate):
        fixtures = arm.fixtures.values()
        found += [
            Coverage(
                side=side,
                family="scores",
                observed=sum(item.score_cells for item in fixtures),
                planned=sum(item.planned_scores for item in fixtures),
            ),
            Coverage(
                side=side,
                family="facts",
                observed=sum(item.fact_cells for item in fixtures),
                planned=sum(item.planned_facts for item in fixtures),
            ),
        ]
    return found


def _missing_fixtures(side: Side, arm: Arm, other: Arm) -> list[Reason]:
    def reason(text: str) -> Reason:
        return Reason(code="missing", text=text)

    def empty(fixture: FixtureArm) -> list[str]:
        scores = ["scores"] if fixture.planned_scores and not fixture.score_cells else []
        return scores + (["compressions"] if fixture.planned_facts and not fixture.fact_cells else [])

    found = [reason(f"the {side} has no fixture {name}") for name in other.fixtures if name not in arm.fixtures]
    for name, fixture in arm.fixtures.items():
        found += [reason(f"the {side} has no {what} of {name}") for what in empty(fixture)]
    return found


def gaps(base: Arm, candidate: Arm, coverage: Sequence[Coverage], floor: float) -> list[Reason]:
    """Return every reason why the two cannot be judged yet: missing fixtures, then coverage under the floor."""
    if not base.fixtures and not candidate.fixtures:
        return [Reason(code="missing", text="neither side has any fixture")]
    found = [
        reason
        for (side, arm), other in zip(_sides(base, candidate), (candidate, base), strict=True)
        for reason in _missing_fixtures(side, arm, other)
    ]
    found += [
        Reason(
            code="coverage",
            text=f"the {item.side} has {item.observed} of {item.planned} {item.family} cells"
            f" ({percent(item.share)}, floor {percent(floor)})",
        )
        for item in coverage
        if item.share < floor - 1e-9
    ]
    return found


# The decision: from two arms to one verdict, in a fixed order, with every number that led to it.

FailOn = Literal["never", "regressed", "inconclusive"]


@dataclass(frozen=True)
class Options:
    """The constants of the rule; the defaults are the shipped rule."""

    alpha_scores: float = 0.03
    alpha_facts: float = 0.02
    culprit_alpha: float = 0.05
    """Adjusted p up to which a dimension or probe of a significant test is named."""
    margin_scores: float = 0.35
    margin_facts: float = 0.07
    """Equivalence margins: the same share of the scale, 7 %, for points out of 5 and for shares of facts."""
    coverage_floor: float = 0.95
    arrangements: int = LIMIT
    seed: int = 0


@dataclass(frozen=True)
class _Case:
    """What stays the same whichever verdict it comes to."""

    base: Arm
    candidate: Arm
    options: Options
    earlier: tuple[Look, ...] = ()
    """What was measured of this candidate at earlier looks."""
    shift: Shift | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def measured(self) -> Look:
        """What has been measured of the candidate now."""
        fixtures = self.candidate.fixtures.values()
        return Look(
            max((len(item.scores) for item in fixtures), default=0),
            max((len(item.structure) for item in fixtures), default=0),
        )

    @property
    def levels(self) -> tuple[float, float]:
        """The alpha of the score test and of the fact test at this look."""
        now = self.measured
        return (
            self.options.alpha_scores * looking.share(now.graded, (look.graded for look in self.earlier)),
            self.options.alpha_facts * looking.share(now.compressed, (look.compressed for look in self.earlier)),
        )

    @property
    def spent(self) -> float:
        """What all looks up to this one have spent."""
        now = self.measured
        return self.options.alpha_scores * looking.spent(now.graded) + self.options.alpha_facts * looking.spent(
            now.compressed
        )

    def verdict(
        self,
        kind: Kind,
        headline_: str,
        next_step: str,
        *,
        reasons: Sequence[Reason] = (),
        culprits: Sequence[Culprit] = (),
        rows: Sequence[Row] = (),
        units: Sequence[UnitRow] = (),
        structure: Sequence[StructureChange] = (),
        medians: Sequence[MedianFinding] = (),
        spread: Sequence[SpreadFinding] = (),
        tests: Sequence[TestSummary] = (),
        coverage: Sequence[Coverage] = (),
        advice: Advice | None = None,
    ) -> Verdict:
        return Verdict(
            kind=kind,
            headline=headline_,
            next_step=next_step,
            base_label=self.base.label,
            candidate_label=self.candidate.label,
            reasons=tuple(reasons),
            culprits=tuple(culprits),
            rows=tuple(rows),
            units=tuple(units),
            structure=tuple(StructureFinding(**asdict(item)) for item in structure),
            medians=tuple(medians),
            spread=tuple(spread),
            tests=tuple(tests),
            coverage=tuple(coverage),
            notes=tuple(self.notes),
            advice=advice,
            look=1 + sum(look.graded < self.measured.graded for look in self.earlier),
            planned_looks=len(looking.RUNS_AT_LOOK),
            alpha=round(sum(self.levels), 12),
            alpha_spent=round(self.spent, 12),
        )


def _incomparable(differences: Iterable[tuple[str, str, str]], drift: Drift | None) -> list[Reason]:
    reasons = [
        Reason(
            code="difference",
            text=f"{item.field} differs ({item.base} → {item.candidate})",
            field=item.field,
            base=item.base,
            candidate=item.candidate,
        )
        for item in (Difference(*difference) for difference in differences)
    ]
    if drift is not None and drift.fired:
        name, shift = drift.largest
        text = f"the judge drifted: stored answers graded again move {name} by {signed(shift)} (p {p_value(drift.p)})"
        reasons.append(Reason(code="drift", text=text))
    return reasons


def _test(case: _Case) -> tuple[list[TestedFamily], list[SpreadFinding]]:
    """Run the two tests, each with its part of alpha for this look, and look at the spread."""
    options, (alpha_scores, alpha_facts) = case.options, case.levels
    scores, facts = score_blocks(case.base, case.candidate), fact_blocks(case.base, case.candidate)
    seed, limit = options.seed, options.arrangements
    graded = permute(scores, SCORE_HYPOTHESES, alpha=alpha_scores, seed=seed, limit=limit, shift=case.shift)
    kept = permute(facts, FACT_HYPOTHESES, alpha=alpha_facts, seed=seed, limit=limit)
    found = [TestedFamily("facts", kept, options.margin_facts, options.culprit_alpha)] if kept is not None else []
    if graded is not None:
        ways = {culprit.direction for item in found for culprit in culprits_of(item) if culprit.name == AUTHORED}
        by_facts = ways.pop() if ways else None
        found.insert(0, TestedFamily("scores", graded, options.margin_scores, options.culprit_alpha, by_facts))
    spread = [
        SpreadFinding(
            name=item.name,
            base_sd=item.base_sd,
            candidate_sd=item.candidate_sd,
            p=item.p,
            verdict="less_stable" if item.less_stable else "more_stable",
        )
        for item in spread_changes(scores, facts, seed=seed, limit=limit)
    ]
    return found, spread


def _kind(evidence: Sequence[TestedFamily], culprits: Sequence[Culprit], rows: Sequence[Row]) -> Kind:
    directions = {item.direction for item in culprits}
    if directions:
        if len(directions) == 2:
            return Kind.MIXED
        return Kind.REGRESSED if "worse" in directions else Kind.IMPROVED
    reachable = all(item.result.can_reach for item in evidence)
    settled = rows and all(row.verdict is RowVerdict.NO_DETECTABLE_CHANGE for row in rows)
    return Kind.NO_DETECTABLE_CHANGE if settled and reachable else Kind.INCONCLUSIVE


def _unreachable(evidence: Sequence[TestedFamily]) -> tuple[str | None, int | None]:
    """Return the words for a design with too few runs, and how many more would do."""
    short = [item for item in evidence if not item.result.can_reach]
    if not short:
        return None, None
    first = short[0]
    words = f"with so few runs no {first.family} could be significant (smallest p {p_value(first.result.attainable_p)})"
    enough = [_runs_to_reach(item) for item in short]
    return words, None if None in enough else max(runs for runs in enough if runs is not None)


def _runs_to_reach(evidence: TestedFamily) -> int | None:
    """Return how many more candidate runs would let the test become significant at all."""
    runs = evidence.result.runs.values()
    for extra in range(1, MOST_EXTRA + 1):
        if Design(tuple((n + extra, m) for n, m in runs)).attainable_p <= evidence.result.alpha:
            return extra
    return None


def _stability(item: SpreadFinding) -> str:
    text = score if item.name == OVERALL else percent
    word = "Less" if item.verdict == "less_stable" else "More"
    return (
        f"{word} stable: {item.name} varies by {text(item.candidate_sd)} from run to run, by {text(item.base_sd)} in"
        f" the base (p {p_value(item.p)}); that is neither better nor worse."
    )


def _notes(
    case: _Case, evidence: Sequence[TestedFamily], structure: Sequence[StructureChange], spread: Sequence[SpreadFinding]
) -> None:
    case.notes.extend(map(_stability, spread))
    for item in evidence:
        if item.result.left_out:
            names = [unit.label for unit in item.result.left_out]
            case.notes.append(f"Left out of the {item.family}, measured on one side only: {', '.join(names)}.")
    if not any(item.family == "scores" for item in evidence):
        case.notes.append("No scores were compared; this rests on facts and structure.")
    for change in structure:
        if change.kind == "shaky":
            failed = change.candidate_runs - change.candidate_passed
            case.notes.append(
                f"{change.label} fails in {failed} of {change.candidate_runs} runs and never did in the baseline."
            )
    case.notes.append("The inference covers these fixtures, not all sessions.")


def decide(
    base: Arm,
    candidate: Arm,
    *,
    differences: Iterable[tuple[str, str, str]] = (),
    drift: Drift | None = None,
    shift: Shift | None = None,
    options: Options | None = None,
    earlier: Sequence[Look] = (),
) -> Verdict:
    """Compare two arms. `earlier` says what had been measured of this candidate when it was last looked at."""
    case = _Case(base, candidate, options or Options(), tuple(earlier), shift)
    validate(base)
    validate(candidate)
    coverage = coverage_of(base, candidate)
    incomparable = _incomparable(differences, drift)
    if incomparable:
        step = headline.next_step(Kind.NOT_COMPARABLE, reasons=incomparable)
        text = headline.not_comparable(incomparable)
        return case.verdict(Kind.NOT_COMPARABLE, text, step, reasons=incomparable, coverage=coverage)
    structure = changes(base, candidate)
    certain = structure_culprits(structure)
    missing = gaps(base, candidate, coverage, case.options.coverage_floor)
    if missing:
        broken = [item for item in certain if item.direction == "worse"]
        step = headline.next_step(Kind.INCOMPLETE, reasons=missing)
        text = headline.incomplete(missing, broken)
        return case.verdict(
            Kind.INCOMPLETE, text, step, reasons=missing, culprits=broken, structure=structure, coverage=coverage
        )
    evidence, spread = _test(case)
    culprits = [culprit for item in evidence for culprit in culprits_of(item)] + certain
    medians = seed_rule.medians(base), seed_rule.medians(candidate)
    rows = [row_of(item, hypothesis, medians) for item in evidence for hypothesis in item.result.hypotheses]
    kind = _kind(evidence, culprits, rows)
    unreachable, extra = _unreachable(evidence)
    advice: Advice | None = None
    if kind is Kind.NO_DETECTABLE_CHANGE:
        text = headline.no_change(rows)
    elif kind is Kind.INCONCLUSIVE:
        text = headline.inconclusive(rows, unreachable)
        advice = None if unreachable else settle(evidence, case.measured.graded)
        extra = extra if advice is None else advice.runs
    else:
        text = headline.changed(kind, culprits)
    where = list(dict.fromkeys(item.fixture for item in culprits if item.fixture and item.direction == "worse"))
    _notes(case, evidence, structure, spread)
    return case.verdict(
        kind,
        text,
        headline.next_step(kind, fixtures=where, more_runs=extra, chance=advice.chance if advice else None),
        culprits=culprits,
        rows=rows,
        units=[unit for item in evidence for unit in item.units],
        structure=structure,
        spread=spread,
        medians=[
            MedianFinding(**asdict(row), delta=row.delta, flagged=row.flagged)
            for row in seed_rule.table(base, candidate)
        ],
        tests=[item.summary for item in evidence],
        coverage=coverage,
        advice=advice,
    )


def exit_code(verdict: Verdict, fail_on: FailOn = "never") -> int:
    """Return 0 done, 1 where the condition holds, 3 incomplete.

    `regressed` fails on what holds a regression, so on mixed too; `inconclusive` on everything that does not show
    the change to be harmless, so on not comparable too.
    """
    if verdict.kind is Kind.INCOMPLETE:
        return 3
    harmful = {Kind.REGRESSED, Kind.MIXED}
    unproven = harmful | {Kind.INCONCLUSIVE, Kind.NOT_COMPARABLE}
    failing: dict[FailOn, set[Kind]] = {"never": set(), "regressed": harmful, "inconclusive": unproven}
    return int(verdict.kind in failing[fail_on])
