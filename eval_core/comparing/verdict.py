"""The verdict: from two arms to one decision, in a fixed order, with every number that led to it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

import numpy as np

from eval_core.base.numbers import counted, listed, p_value, percent, score
from eval_core.comparing import headline
from eval_core.comparing.control_runs import ControlShift
from eval_core.comparing.rule import decide_kind
from eval_core.comparing.unjudged import JUDGED_BY, unjudged_kind, why_unjudged
from eval_core.domain.extra import Look
from eval_core.domain.fingerprint import Difference
from eval_core.statistics import looks as looking
from eval_core.statistics import medians as median_rule
from eval_core.statistics.arms import Arm, FixtureArm, validate
from eval_core.statistics.clear_losses import OPEN, ClearTest, clear_changes, kept_blocks
from eval_core.statistics.hypotheses import (
    AUTHORED,
    FACT_HYPOTHESES,
    OVERALL,
    SCORE_HYPOTHESES,
    SIZE,
    Block,
    fact_blocks,
    row_name,
    score_blocks,
    size_blocks,
)
from eval_core.statistics.permutation import LIMIT, Hypothesis, Shift, permute
from eval_core.statistics.stability import spread_changes
from eval_core.strands import registry
from eval_core.strands.culprits import TestedFamily, advised_look, culprits_of, row_of
from eval_core.strands.evidence import Evidence, Recorded
from eval_core.strands.facts import facts_strand
from eval_core.strands.findings import (
    Advice,
    Coverage,
    Culprit,
    Direction,
    FactChange,
    FalseValue,
    Finding,
    FurtherTest,
    Kind,
    MedianFinding,
    Reason,
    Row,
    RowVerdict,
    SpreadFinding,
    StrandState,
    StructureFinding,
    TestSummary,
    UnitRow,
    Verdict,
)
from eval_core.strands.outcome import broken_fixtures, never_compressed, outcome_culprits, outcome_strand
from eval_core.strands.rounds import ROUNDS_ALPHA
from eval_core.strands.size import GROWTH, SizeChange
from eval_core.strands.strand import Force
from eval_core.strands.structure import StructureChange, changes, structure_culprits

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
    def reason(text: str, what: str) -> Reason:
        return Reason(code="missing", text=text, mutes="scores" if what == "scores" else "everything")

    def empty(fixture: FixtureArm) -> str | None:
        if fixture.planned_facts and not fixture.fact_cells:
            return "finished compression"
        return "scores" if fixture.planned_scores and not fixture.score_cells else None

    absent: dict[str, list[str]] = {}
    for name in other.fixtures:
        what = empty(arm.fixtures[name]) if name in arm.fixtures else "fixture"
        if what is not None:
            absent.setdefault(what, []).append(name)
    return [
        reason(
            f"the {side} has no fixture {listed(names)}"
            if what == "fixture"
            else f"the {side} has no {what} of {listed(names)}",
            what,
        )
        for what, names in absent.items()
    ]


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
            mutes="scores" if item.family == "scores" else "everything",
            text=f"only {percent(item.share)} of the {item.side}'s planned "
            f"{'grades' if item.family == 'scores' else 'compressions'} are there, {percent(floor)} are needed",
        )
        for item in coverage
        if item.share < floor - 1e-9
    ]
    return found


# The decision: from two arms to one verdict, in a fixed order, with every number that led to it.

FailOn = Literal["never", "regressed", "inconclusive"]
DECIDED = (Kind.BROKEN, Kind.REGRESSED, Kind.IMPROVED, Kind.MIXED)
"""What no grade can change."""
HINT = 0.01
"""A single probe or kind of fact with so small a chance keeps a verdict from being calm."""
_CALM = (RowVerdict.NO_DETECTABLE_CHANGE, RowVerdict.ADVISORY)


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
class _Case:
    """What stays the same whichever verdict it comes to."""

    base: Arm
    candidate: Arm
    options: Options
    earlier: tuple[Look, ...] = ()
    """What was measured of this candidate at earlier looks."""
    shift: Shift | None = None
    alpha_rounds: float = 0.0
    """What the test of the rounds may spend; scores spend that much less."""
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
        spent = self.options.alpha_scores * graded + self.options.alpha_compressions * compressed
        return round(spent + self.alpha_rounds, 12)

    @property
    def spent(self) -> float:
        """What all looks up to this one have spent."""
        now = self.measured
        return self.alpha(looking.spent(now.graded), looking.spent(now.compressed))

    def verdict(
        self,
        kind: Kind,
        headline_: str,
        next_step: str,
        *,
        reasons: Sequence[Reason] = (),
        strands: Sequence[Finding] = (),
        facts: Sequence[FactChange] = (),
        false_values: Sequence[FalseValue] = (),
        exact: bool = False,
        culprits: Sequence[Culprit] = (),
        rows: Sequence[Row] = (),
        units: Sequence[UnitRow] = (),
        structure: Sequence[StructureChange] = (),
        medians: Sequence[MedianFinding] = (),
        spread: Sequence[SpreadFinding] = (),
        tests: Sequence[TestSummary] = (),
        further_tests: Sequence[FurtherTest] = (),
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
            strands=tuple(strands),
            facts=tuple(facts),
            false_values=tuple(false_values),
            exact=exact,
            culprits=tuple(culprits),
            rows=tuple(rows),
            units=tuple(units),
            structure=tuple(StructureFinding(**asdict(item)) for item in structure),
            medians=tuple(medians),
            spread=tuple(spread),
            tests=tuple(tests),
            further_tests=tuple(further_tests),
            coverage=tuple(coverage),
            notes=tuple(self.notes),
            remarks=tuple(self.remarks),
            advice=advice,
            look=1 + len({look.graded for look in self.earlier if look.graded < self.measured.graded}),
            planned_looks=len(looking.RUNS_AT_LOOK),
            alpha=self.alpha(*self.shares),
            alpha_spent=self.spent,
        )


_MUTED_BY: dict[str, Literal["facts", "scores"]] = {
    "judge_model": "scores",
    "rubric": "scores",
    "answer_model": "scores",
    "answer_template": "scores",
    "compressor_model": "facts",
}
"""What a differing field of the fingerprint keeps from being compared; any other field forbids everything."""


def _incomparable(differences: Iterable[tuple[str, str, str]], control: ControlShift | None) -> list[Reason]:
    reasons = [
        Reason(
            code="difference",
            mutes=_MUTED_BY.get(item.field.partition(".")[0], "everything"),
            text=f"{item.field} differs ({item.base} → {item.candidate})",
            field=item.field,
            base=item.base,
            candidate=item.candidate,
        )
        for item in (Difference(*difference) for difference in differences)
    ]
    if control is not None and control.changed:
        reasons.append(Reason(code="models", text=control.says, mutes="scores"))
    return reasons


def _test(
    case: _Case, muted: set[str], *, deterministic: bool, judged: bool
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


def _clear(case: _Case) -> ClearTest | None:
    """Look for single facts that were lost."""
    options = case.options
    blocks = kept_blocks(case.base, case.candidate)
    return clear_changes(
        blocks, alpha=options.alpha_losses * case.shares[1], seed=options.seed, limit=options.arrangements
    )


def _with_size(case: _Case, recorded: Recorded) -> Recorded:
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


def _further(clear: ClearTest | None, size: SizeChange | None) -> list[FurtherTest]:
    found = []
    if clear is not None:
        found.append(FurtherTest(name="facts lost", alpha=clear.alpha, p=clear.lost.p, smallest=clear.smallest))
        if clear.worse and clear.gained.facts:
            found.append(FurtherTest(name="facts gained", alpha=clear.alpha, p=clear.gained.p))
    if size is not None and size.p is not None:
        found.append(FurtherTest(name="retained tokens", alpha=size.alpha, p=size.p))
    return found


def _hints(tested: Sequence[TestedFamily], clear: ClearTest | None) -> list[str]:
    """Say what may be luck, and too little of it to be called calm."""
    found = []
    if clear is not None and clear.open:
        lost = counted(len(clear.lost.facts), "fact")
        found.append(f"{lost} clearly less often kept, which may be luck (p {p_value(clear.lost.p)})")
    for item in tested:
        if item.result.p_local <= HINT:
            unit = "probe" if item.family == "scores" else "kind of fact"
            found.append(f"one {unit} moved much, which may be luck (p {p_value(item.result.p_local)})")
    return found


def _by_facts(found: Sequence[TestedFamily]) -> Direction | None:
    """Return the way in which the authored facts moved for certain."""
    ways = {culprit.direction for item in found for culprit in culprits_of(item) if culprit.name == AUTHORED}
    return ways.pop() if ways else None


def _unreachable(evidence: Sequence[TestedFamily]) -> str | None:
    """Return the words for a design with too few runs."""
    short = next((item for item in evidence if not item.result.can_reach), None)
    if short is None:
        return None
    return f"with so few runs no {short.family} could be significant (smallest p {p_value(short.result.attainable_p)})"


def _stability(item: SpreadFinding) -> str:
    text = score if item.name == OVERALL else percent
    word = "Less" if item.verdict == "less_stable" else "More"
    sds = f"{text(item.candidate_sd)}, in the base {text(item.base_sd)} (p {p_value(item.p)})"
    return f"{word} stable: run-to-run SD of {row_name(item.name)} {sds}; that is neither better nor worse."


def _notes(case: _Case, tested: _Tested) -> None:
    case.remarks.extend(map(_stability, tested.spread))
    case.notes.extend(case.remarks)
    for item in tested.deciding:
        if item.result.left_out:
            names = [unit.label for unit in item.result.left_out]
            case.notes.append(f"Left out of the {item.family}, measured on one side only: {', '.join(names)}.")
    if "scores" not in tested.evidence.tested:
        case.notes.append("No scores were compared; the verdict is based on facts and structure.")
    for change in tested.evidence.structure:
        if change.kind == "shaky":
            failed = change.candidate_runs - change.candidate_passed
            case.notes.append(
                f"{change.label} fails in {failed} of {change.candidate_runs} runs and never did in the baseline."
            )
    case.notes.append("The verdict is about these fixtures, not about every session.")
    recorded = tested.evidence.recorded
    if recorded is not None and recorded.stubs and not recorded.stubs_count:
        runs = f"{recorded.stubs} run{'s' if recorded.stubs > 1 else ''}"
        case.notes.append(f"Left out as the model's failure, not the change's: {runs} with a refusal or a stub.")


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


def _muted(strand: Finding, reasons: Sequence[Reason], levels: Sequence[str]) -> Finding:
    """Return the strand, or that it cannot be compared or is not complete, with the reason."""
    reason = next((item for item in reasons if item.mutes in levels), None)
    if reason is None:
        return strand
    missing = reason.code in ("missing", "coverage")
    state = StrandState.INCOMPLETE if missing else StrandState.NOT_COMPARABLE
    return Finding(name=strand.name, state=state, details=(reason.text,))


def _unjudged(findings: Mapping[str, Finding]) -> dict[str, Finding]:
    """Take back that a stand-in's summary is the same: a model would have written another one."""
    unsaid = {strand.name for strand in registry.STRANDS if strand.of_replies}
    update = {"state": StrandState.NOT_JUDGED}
    return {
        name: finding.model_copy(update=update) if name in unsaid and finding.state is StrandState.SAME else finding
        for name, finding in findings.items()
    }


def _advisory(rows: Sequence[Row]) -> list[Row]:
    """Show the facts of a stand-in's summary without a claim."""
    update = {"verdict": RowVerdict.ADVISORY}
    return [row.model_copy(update=update) if row.family == "facts" else row for row in rows]


@dataclass(frozen=True)
class _Tested:
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


def _gather(case: _Case, recorded: Recorded | None, muted: set[str]) -> _Tested:
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
    )
    return _Tested(evidence, frozenset(muted), spread)


def _compare(tested: _Tested, reasons: Sequence[Reason]) -> tuple[dict[str, Finding], Sequence[Row]]:
    """Return what each strand finds, muted where it cannot be compared, and the rows of the table."""
    evidence = tested.evidence
    compared = ((strand, strand.compare(evidence)) for strand in registry.STRANDS)
    findings = {
        strand.name: _muted(finding, reasons, strand.muted_by) for strand, finding in compared if finding is not None
    }
    recorded = evidence.recorded
    if recorded is None or not (recorded.unfollowed or recorded.other_replies):
        return findings, evidence.rows
    return _unjudged(findings), evidence.rows if not recorded.other_replies else _advisory(evidence.rows)


def _kind(
    case: _Case, tested: _Tested, findings: dict[str, Finding], rows: Sequence[Row], hints: Sequence[str]
) -> Kind:
    """Apply the rule to the findings."""
    recorded = tested.evidence.recorded
    calm = bool(rows) and all(row.verdict in _CALM for row in rows)
    calm = calm and not hints and all(item.result.can_reach for item in tested.deciding)
    decided = calm or (tested.evidence.exact and bool(rows))
    if recorded is None:
        return decide_kind(findings, tested.size, certain=False, decided=decided)
    certain = (recorded.invented.more or recorded.stale.more) and findings["facts"].state is StrandState.WORSE
    if not recorded.unfollowed and not recorded.other_replies:
        return decide_kind(findings, tested.size, certain=certain, decided=decided)
    kind = unjudged_kind(findings, tested.size, recorded, certain=certain, decided=decided)
    if recorded.unfollowed and kind is not Kind.NOT_JUDGED:
        case.remarks.append(f"Not judged beside this: {why_unjudged(recorded)}.")
    return kind


def _headline(
    kind: Kind,
    tested: _Tested,
    findings: dict[str, Finding],
    rows: Sequence[Row],
    hints: Sequence[str],
    reasons: Sequence[Reason],
) -> str:
    """Return the sentence at the top."""
    evidence = tested.evidence
    if kind is Kind.NO_DETECTABLE_CHANGE:
        single = evidence.clear.smallest if evidence.clear is not None else None
        calm = headline.no_change(rows, findings.get("facts"), exact=tested.counted, single=single)
        return headline.but_told(calm, findings)
    if kind is Kind.INCONCLUSIVE:
        return headline.but_told(headline.inconclusive(rows, _unreachable(tested.deciding), hints), findings)
    if kind is Kind.NOT_JUDGED and evidence.recorded is not None:
        return f"{kind.words}: {why_unjudged(evidence.recorded)}."
    if kind is Kind.NOT_COMPARABLE:
        return headline.not_comparable([item for item in reasons if item.code not in _GAPS])
    if kind is Kind.INCOMPLETE:
        return headline.incomplete([item for item in reasons if item.code in _GAPS])
    return headline.changed(kind, findings, tested.size)


_GAPS = ("missing", "coverage")
"""Reasons that more runs take away."""


def decide(
    base: Arm,
    candidate: Arm,
    *,
    differences: Iterable[tuple[str, str, str]] = (),
    recorded: Recorded | None = None,
    control: ControlShift | None = None,
    shift: Shift | None = None,
    options: Options | None = None,
    earlier: Sequence[Look] = (),
) -> Verdict:
    """Compare two arms. `earlier` says what had been measured of this candidate when it was last looked at.

    What cannot be compared, or was not measured, mutes what it touches and nothing else: models that
    changed hide no broken structure and no lost fact. `recorded` is what the records say beside the arrays of the arms.
    """
    validate(base)
    validate(candidate)
    alone = never_compressed(recorded.outcome) if recorded is not None else ()
    names = [item.fixture for item in alone]
    base, candidate = _without(base, names), _without(candidate, names)
    rounds = ROUNDS_ALPHA if recorded is not None and recorded.played_rounds is not None else 0.0
    options = options or Options()
    options = replace(options, alpha_scores=options.alpha_scores - rounds)
    case = _Case(base, candidate, options, tuple(earlier), shift, rounds)
    if alone:
        how = " or ".join(sorted({kind.words for item in alone for kind in item.kinds}))
        case.remarks.append(f"Not compared: {listed(names)}. In the base, the compressor {how} in every run.")
    coverage = coverage_of(base, candidate)
    incomparable = _incomparable(differences, control)
    reasons = [*incomparable, *gaps(base, candidate, coverage, case.options.coverage_floor)]
    if recorded is not None and (broken := broken_fixtures(recorded.outcome)):
        return _broken(case, recorded, broken, reasons, coverage)
    if any(reason.mutes == "everything" for reason in incomparable):
        return _nothing_compared(case, incomparable, coverage)
    tested = _gather(case, recorded, {reason.mutes for reason in reasons})
    findings, rows = _compare(tested, reasons)
    hints = [*headline.untested(findings), *_hints(tested.deciding, tested.evidence.clear)]
    kind = _kind(case, tested, findings, rows, hints)
    if reasons and kind in (Kind.NO_DETECTABLE_CHANGE, Kind.INCONCLUSIVE, Kind.NOT_JUDGED):
        # Calm as far as it was compared is not calm: nothing passes a gate on half of the evidence.
        kind = Kind.NOT_COMPARABLE if incomparable else Kind.INCOMPLETE
    advice = advised_look(tested.deciding, case.measured.graded) if kind is Kind.INCONCLUSIVE else None
    if accepted := headline.accepted(findings):
        case.remarks.append(f"Accepted in the configuration, and not counted: {accepted}.")
    _notes(case, tested)
    return case.verdict(
        kind,
        _headline(kind, tested, findings, rows, hints, reasons),
        headline.next_step(
            kind,
            reasons=reasons,
            fixtures=tested.losing_fixtures,
            strands=findings,
            size=tested.size,
            advice=advice,
            label=candidate.label,
            exact=tested.counted,
            false_values=bool(tested.false_values),
            judged_by=JUDGED_BY,
        ),
        reasons=reasons,
        strands=list(findings.values()),
        facts=tested.facts,
        false_values=tested.false_values,
        exact=tested.evidence.exact,
        culprits=tested.evidence.culprits,
        rows=rows,
        units=[unit for item in tested.deciding for unit in item.units],
        structure=tested.evidence.structure,
        spread=tested.spread,
        medians=[
            MedianFinding(**asdict(row), delta=row.delta, flagged=row.flagged)
            for row in median_rule.table(base, candidate)
        ],
        tests=[item.summary for item in tested.deciding],
        further_tests=_further(tested.evidence.clear, tested.size),
        coverage=coverage,
        advice=advice,
    )


def _without(arm: Arm, fixtures: Sequence[str]) -> Arm:
    return replace(arm, fixtures={name: item for name, item in arm.fixtures.items() if name not in fixtures})


def _nothing_compared(case: _Case, reasons: Sequence[Reason], coverage: Sequence[Coverage]) -> Verdict:
    """Return the verdict on two sides that differ in what was measured."""
    silent = [
        Finding(name=strand.name, state=StrandState.NOT_COMPARABLE)
        for strand in registry.STRANDS
        if strand.force is not Force.BREAKS and strand.record is None  # of the others, nobody knows what they hold
    ]
    return case.verdict(
        Kind.NOT_COMPARABLE,
        headline.not_comparable(reasons),
        headline.next_step(Kind.NOT_COMPARABLE, reasons=reasons),
        reasons=reasons,
        coverage=coverage,
        strands=silent,
    )


def _broken(
    case: _Case, recorded: Recorded, broken: Sequence[str], reasons: Sequence[Reason], coverage: Sequence[Coverage]
) -> Verdict:
    """Return the verdict on a compressor that does not compress: nothing else about it matters yet."""
    culprits = outcome_culprits(recorded.outcome, broken)
    strand = outcome_strand(recorded.outcome).model_copy(update={"state": StrandState.WORSE, "loss": 1.0})
    return case.verdict(
        Kind.BROKEN,
        headline.broken(recorded.outcome, broken),
        headline.next_step(Kind.BROKEN),
        reasons=reasons if case.base.fixtures else (),
        culprits=culprits,
        strands=[strand],
        coverage=coverage,
    )


def facts_open(verdict: Verdict) -> bool:
    """Tell whether facts seem to have changed and it is not certain, so that further compressions may show it."""
    lost = next((item for item in verdict.further_tests if item.name == "facts lost"), None)
    rows = [row for row in verdict.rows if row.family == "facts" and row.verdict is RowVerdict.INCONCLUSIVE]
    return (
        any(row.p is not None and row.p <= OPEN for row in rows)
        or any(item.family == "facts" and item.p_local <= HINT for item in verdict.tests)
        or (lost is not None and lost.alpha < lost.p <= OPEN)
    )


def exit_code(verdict: Verdict, fail_on: FailOn = "never") -> int:
    """Return 0 done, 1 where the condition holds, 3 where there is no answer to it.

    `regressed` fails on what holds a regression, so on broken, on mixed and on a trade of facts for size too;
    `inconclusive` also on a change that is
    not shown to be harmless. A gate that could not be decided is never passed: incomplete, and with any condition not
    comparable too, end with 3.
    """
    undecided = (Kind.NOT_COMPARABLE, Kind.NOT_JUDGED)
    if verdict.kind is Kind.INCOMPLETE or (verdict.kind in undecided and fail_on != "never"):
        return 3
    unproven = fail_on == "inconclusive" and verdict.kind is Kind.INCONCLUSIVE
    return int(fail_on != "never" and (verdict.harmful or unproven))
