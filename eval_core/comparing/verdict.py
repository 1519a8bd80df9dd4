"""The verdict: from two arms to one decision, in a fixed order, with every number that led to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Literal

from eval_core.base.numbers import counted, listed, p_value, percent, score
from eval_core.comparing import headline
from eval_core.comparing.control_runs import ControlShift
from eval_core.comparing.gaps import coverage_of, gaps, incomparable_of, muted
from eval_core.comparing.rule import decide_kind
from eval_core.comparing.tested import Options, Sides, Tested, gather
from eval_core.comparing.unjudged import how_to_judge, unjudged_kind, unless_unread, why_unjudged
from eval_core.domain.extra import Look
from eval_core.statistics import medians as median_rule
from eval_core.statistics.arms import Arm, validate
from eval_core.statistics.clear_losses import OPEN, ClearTest
from eval_core.statistics.hypotheses import (
    OVERALL,
    row_name,
)
from eval_core.statistics.permutation import Shift
from eval_core.statistics.two_stage import TASKS_SPEND
from eval_core.strands import registry
from eval_core.strands.culprits import TestedFamily, advised_look
from eval_core.strands.evidence import Recorded
from eval_core.strands.findings import (
    Coverage,
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
    Verdict,
)
from eval_core.strands.obeys import OBEYS_ALPHA
from eval_core.strands.outcome import broken_fixtures, never_compressed, outcome_culprits, outcome_strand
from eval_core.strands.rounds import ROUNDS_ALPHA
from eval_core.strands.size import SizeChange
from eval_core.strands.strand import Force

FailOn = Literal["never", "regressed", "inconclusive"]
DECIDED = (Kind.BROKEN, Kind.REGRESSED, Kind.IMPROVED, Kind.MIXED)
"""What no grade can change."""
WORTH_MORE_RUNS = 0.05
"""Up to this p of the fact that changed most, further compressions are worth their price; they claim nothing."""
HINT = 0.01
"""A single probe or kind of fact with so small a chance keeps a verdict from being calm."""
_CALM = (RowVerdict.NO_DETECTABLE_CHANGE, RowVerdict.ADVISORY)


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


def _notes(case: Sides, tested: Tested) -> None:
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


def _compare(tested: Tested, reasons: Sequence[Reason]) -> tuple[dict[str, Finding], Sequence[Row]]:
    """Return what each strand finds, muted where it cannot be compared, and the rows of the table."""
    evidence = tested.evidence
    compared = ((strand, strand.compare(evidence)) for strand in registry.STRANDS)
    findings = {
        strand.name: muted(finding, reasons, strand.muted_by) for strand, finding in compared if finding is not None
    }
    recorded = evidence.recorded
    if recorded is None or not (recorded.unfollowed or recorded.other_replies):
        return findings, evidence.rows
    return _unjudged(findings), evidence.rows if not recorded.other_replies else _advisory(evidence.rows)


def _kind(case: Sides, tested: Tested, findings: dict[str, Finding], rows: Sequence[Row], hints: Sequence[str]) -> Kind:
    """Apply the rule to the findings."""
    recorded = tested.evidence.recorded
    calm = bool(rows) and all(row.verdict in _CALM for row in rows)
    calm = calm and not hints and all(item.result.can_reach for item in tested.deciding)
    decided = calm or (tested.evidence.exact and bool(rows))
    if recorded is None:
        return decide_kind(findings, tested.size, certain=False, decided=decided)
    certain = (recorded.invented.more or recorded.stale.more) and findings["facts"].state is StrandState.WORSE
    stood_in = recorded.unfollowed or recorded.other_replies
    rule = partial(unjudged_kind, recorded=recorded) if stood_in else decide_kind
    kind = unless_unread(rule(findings, tested.size, certain=certain, decided=decided), recorded)
    unjudged = recorded.unfollowed or recorded.asks.other_model or recorded.unread
    if unjudged and kind is not Kind.NOT_JUDGED:
        case.remarks.append(f"Not judged beside this: {why_unjudged(recorded)}.")
    return kind


def _headline(
    kind: Kind,
    tested: Tested,
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
    obeys = OBEYS_ALPHA if recorded is not None and recorded.obeys_asked else 0.0
    played = recorded is not None and bool(recorded.sides) and recorded.sides[-1].extra.tasks is not None
    tasks = TASKS_SPEND if played else 0.0
    options = replace(options, alpha_scores=options.alpha_scores - rounds - obeys - tasks)
    case = Sides(base, candidate, options, tuple(earlier), shift, rounds + tasks, obeys)
    if alone:
        how = " or ".join(sorted({kind.words for item in alone for kind in item.kinds}))
        case.remarks.append(f"Not compared: {listed(names)}. In the base, the compressor {how} in every run.")
    coverage = coverage_of(base, candidate)
    incomparable = incomparable_of(differences, control)
    reasons = [*incomparable, *gaps(base, candidate, coverage, case.options.coverage_floor)]
    if recorded is not None and (broken := broken_fixtures(recorded.outcome)):
        return _broken(case, recorded, broken, reasons, coverage)
    if any(reason.mutes == "everything" for reason in incomparable):
        return _nothing_compared(case, incomparable, coverage)
    tested = gather(case, recorded, {reason.mutes for reason in reasons})
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
    return Verdict(
        kind=kind,
        headline=_headline(kind, tested, findings, rows, hints, reasons),
        next_step=headline.next_step(
            kind,
            reasons=reasons,
            fixtures=tested.losing_fixtures,
            strands=findings,
            size=tested.size,
            advice=advice,
            label=candidate.label,
            exact=tested.counted,
            false_values=bool(tested.false_values),
            judge_it=how_to_judge(recorded),
        ),
        reasons=tuple(reasons),
        strands=tuple(findings.values()),
        facts=tested.facts,
        false_values=tested.false_values,
        exact=tested.evidence.exact,
        culprits=tuple(tested.evidence.culprits),
        rows=tuple(rows),
        units=tuple(unit for item in tested.deciding for unit in item.units),
        structure=tuple(StructureFinding(**asdict(item)) for item in tested.evidence.structure),
        spread=tuple(tested.spread),
        medians=tuple(
            MedianFinding(**asdict(row), delta=row.delta, flagged=row.flagged)
            for row in median_rule.table(base, candidate)
        ),
        tests=tuple(item.summary for item in tested.deciding),
        further_tests=tuple(_further(tested.evidence.clear, tested.size)),
        coverage=tuple(coverage),
        advice=advice,
        **case.common,
    )


def _without(arm: Arm, fixtures: Sequence[str]) -> Arm:
    return replace(arm, fixtures={name: item for name, item in arm.fixtures.items() if name not in fixtures})


def _nothing_compared(case: Sides, reasons: Sequence[Reason], coverage: Sequence[Coverage]) -> Verdict:
    """Return the verdict on two sides that differ in what was measured."""
    silent = tuple(
        Finding(name=strand.name, state=StrandState.NOT_COMPARABLE)
        for strand in registry.STRANDS
        if strand.force is not Force.BREAKS and strand.record is None  # of the others, nobody knows what they hold
    )
    return Verdict(
        kind=Kind.NOT_COMPARABLE,
        headline=headline.not_comparable(reasons),
        next_step=headline.next_step(Kind.NOT_COMPARABLE, reasons=reasons),
        reasons=tuple(reasons),
        coverage=tuple(coverage),
        strands=silent,
        **case.common,
    )


def _broken(
    case: Sides, recorded: Recorded, broken: Sequence[str], reasons: Sequence[Reason], coverage: Sequence[Coverage]
) -> Verdict:
    """Return the verdict on a compressor that does not compress: nothing else about it matters yet."""
    strand = outcome_strand(recorded.outcome).model_copy(update={"state": StrandState.WORSE, "loss": 1.0})
    return Verdict(
        kind=Kind.BROKEN,
        headline=headline.broken(recorded.outcome, broken),
        next_step=headline.next_step(Kind.BROKEN),
        reasons=tuple(reasons) if case.base.fixtures else (),
        culprits=tuple(outcome_culprits(recorded.outcome, broken)),
        strands=(strand,),
        coverage=tuple(coverage),
        **case.common,
    )


def facts_open(verdict: Verdict) -> bool:
    """Tell whether facts seem to have changed and it is not certain, so that further compressions may show it."""
    lost = next((item for item in verdict.further_tests if item.name == "facts lost"), None)
    rows = [row for row in verdict.rows if row.family == "facts" and row.verdict is RowVerdict.INCONCLUSIVE]
    return (
        any(row.p is not None and row.p <= OPEN for row in rows)
        or any(item.family == "facts" and item.p_local <= WORTH_MORE_RUNS for item in verdict.tests)
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
