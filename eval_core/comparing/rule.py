"""The rule: from the strands to one verdict.

1. What failed to compress is *broken*.
2. A broken structure check, a section gone, a value invented or stale is a regression whatever else was gained.
3. Facts, scores, what the compressor's model is shown and repairs are compared as shares of their totals. If there are
   gains and losses, and the smaller is at least half of the larger, that is *mixed*; otherwise the larger decides. If
   what no longer reaches the model alone weighs that much, it is a regression: no model can write what it never sees.
4. A gain that came with a larger state and no higher lift over recency is a *trade*. So is a loss where the state
   shrank by at least twice the share, unless facts no longer reach the model.
5. A repair alone, next to fewer messages kept verbatim, is *mixed*.
6. Nothing gained or lost: a smaller state is an improvement, a larger one a regression. A smaller one is a *trade* if
   fewer messages are kept verbatim, if what was lost was accepted, or if far more facts are kept less often than more
   often, each by chance or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from eval_core.base.numbers import (
    counted,
    interval,
    listed,
    p_value,
    percent,
    percent_change,
    percents_and_change,
    quoted,
    score,
    signed,
)
from eval_core.comparing.strands import Recorded, SizeChange
from eval_core.statistics.arms import Arm
from eval_core.statistics.clear_losses import ClearTest
from eval_core.statistics.hypotheses import FACT_HYPOTHESES, FACT_NAMES
from eval_core.strands.culprits import StructureChange, TestedFamily, culprits_of
from eval_core.strands.findings import Culprit, FactChange, Item, Kind, Row, Strand, StrandName, StrandState
from eval_core.strands.outcome import OutcomeChange
from eval_core.strands.structure import STRUCTURE_FAILURES

__all__ = [
    "COMPARABLE",
    "MATTERS",
    "decide_kind",
    "facts_strand",
    "outcome_strand",
    "scores_strand",
    "structure_strand",
    "weigh",
]

COMPARABLE = 0.5
"""Gain and loss are of comparable weight if the lesser is at least this share of the greater."""
MATTERS = 0.01
"""On deterministic runs a change of the census counts from this share of its facts, an authored fact always."""
TRADED = 2.0
"""A loss is a trade if the state shrank by at least this many times its share."""
_WEIGHED: tuple[StrandName, ...] = ("facts", "scores", "shown")
_CERTAIN: tuple[StrandName, ...] = ("structure", "form")


def weigh(loss: float, gain: float) -> StrandState:
    """Tell which side decides, or that both do."""
    if not loss and not gain:
        return StrandState.SAME
    if min(loss, gain) >= COMPARABLE * max(loss, gain):
        return StrandState.BOTH
    return StrandState.WORSE if loss > gain else StrandState.BETTER


def outcome_strand(change: OutcomeChange) -> Strand:
    """Say how often the two sides failed."""

    def words(items: Sequence[tuple[int, int]]) -> str:
        failed, runs = sum(item[0] for item in items), sum(item[1] for item in items)
        return f"{runs - failed} of {runs} runs" if runs else ""

    details = [f"fails now and then: {name}" for name in change.shaky] + [
        f"repaired: {name}" for name in change.repaired
    ]
    state = StrandState.CANNOT_TELL if change.shaky else StrandState.BETTER if change.repaired else StrandState.SAME
    return Strand(
        name="outcome",
        state=StrandState.WORSE if change.broken else state,
        base=words([(item.failed, item.runs) for item in change.base]),
        candidate=words([(item.failed, item.runs) for item in change.candidate]),
        says=f"{counted(len(change.repaired), 'fixture')} compress again" if change.repaired else "",
        details=tuple(details),
        gain=len(change.repaired) / max(len(change.candidate), 1),
    )


def _by_check(changes: Sequence[StructureChange], kind: str) -> list[str]:
    found = Counter(item.check for item in changes if item.kind == kind)

    def words(check: str) -> str:
        failure = STRUCTURE_FAILURES.get(check, f"structure check {check} fails")
        return failure if kind == "broken" else quoted(failure)

    return [f"{words(check)} ({counted(number, 'fixture')})" for check, number in found.items()]


def _checks(arm: Arm) -> tuple[int, int]:
    """Count the checks that pass, and all: a check of a fixture passes if it passes in every run."""
    passed = [
        all(run[check] for run in fixture.structure if check in run)
        for fixture in arm.fixtures.values()
        for check in dict.fromkeys(name for run in fixture.structure for name in run)
    ]
    return sum(passed), len(passed)


def structure_strand(changes: Sequence[StructureChange], base: Arm, candidate: Arm) -> Strand:
    """Say which checks broke or were repaired."""
    broken, repaired = _by_check(changes, "broken"), _by_check(changes, "repaired")
    says = [listed(broken)] if broken else []
    says += [f"repaired: {listed(repaired)}"] if repaired else []
    counts = _checks(base), _checks(candidate)
    before, now = (f"{passed} of {every} checks" if every else "" for passed, every in counts)
    state = StrandState.WORSE if broken else StrandState.BETTER if repaired else StrandState.SAME
    return Strand(
        name="structure",
        state=state,
        base=before,
        candidate=now,
        says="; ".join(says),
        details=tuple(f"{item.kind}: {item.label}" for item in changes),
        loss=float(bool(broken)),
        gain=sum(item.kind == "repaired" for item in changes) / max(counts[1][1], 1),
    )


def _retention(rows: Sequence[Row], evidence: TestedFamily | None, size: SizeChange | None) -> str:
    """Say how the share of facts kept moved: of all, and of the row that moved most, named rows first."""
    named = {item.name for item in culprits_of(evidence)} if evidence else set()
    family = [row for row in rows if row.family == "facts"]
    if not family:
        return ""
    row = max(family, key=lambda row: (row.name in named, abs(row.delta)))
    change = percent_change(row.base, row.candidate)
    if size is None or not size.recorded:
        return f"{FACT_NAMES[row.name]}: {change} kept"
    return f"facts kept {percent_change(size.base_kept, size.candidate_kept)} ({FACT_NAMES[row.name]} {change})"


def _moved(facts: Sequence[FactChange], *, asked: bool) -> tuple[int, int]:
    mine = [item for item in facts if item.asked is asked and item.clear]
    return sum(item.change < 0 for item in mine), sum(item.change > 0 for item in mine)


def _false(recorded: Recorded) -> tuple[list[str], list[str]]:
    says = []
    if recorded.invented.more:
        number = counted(len(recorded.invented.named), "value")
        often = "the summary states invented values more often"
        says.append(f"the summary states {number} not found in the session" if recorded.invented.named else often)
    if recorded.stale.more:
        number = counted(len(recorded.stale.named), "superseded value")
        what = number if recorded.stale.named else "superseded values more often"
        says.append(f"the summary states {what} without the new one")
    return says, [item.words for item in recorded.false_values]


def _counted_facts(lost: int, gained: int, total: int) -> str:
    """Say how many facts moved."""
    if not gained:
        return f"{lost} of {total} facts lost, none gained"
    if gained > lost:
        return f"{gained} of {total} facts gained, {lost or 'none'} lost"
    return f"{lost} of {total} facts lost, {gained} gained"


def _clearly(recorded: Recorded | None, clear: ClearTest) -> str:
    """Say how many facts were lost for certain, as many as are listed."""
    lost = sum(item.clear and item.change < 0 for item in recorded.facts) if recorded is not None else 0
    return f"{counted(lost or len(clear.lost.facts), 'fact')} clearly lost"


def facts_strand(
    recorded: Recorded | None,
    evidence: TestedFamily | None,
    culprits: Sequence[Culprit],
    rows: Sequence[Row],
    clear: ClearTest | None = None,
) -> Strand:
    """Say what became of the facts: counted where runs are deterministic, tested where they vary."""
    says, details = _false(recorded) if recorded else ([], [])
    details += recorded.untested if recorded else ()
    loss = gain = 0.0
    if recorded is not None and recorded.exact:
        (lost, won), (others_lost, others_won) = (_moved(recorded.facts, asked=asked) for asked in (True, False))
        total, others = max(recorded.asked_facts, 1), max(recorded.other_facts, 1)
        if lost or won or others_lost + others_won >= MATTERS * others:
            loss, gain = (lost / total + others_lost / others) / 2, (won / total + others_won / others) / 2
        if lost + others_lost + won + others_won:
            every = recorded.asked_facts + recorded.other_facts
            says.append(_counted_facts(lost + others_lost, won + others_won, every))
    elif evidence is not None and evidence.significant:
        whole = [item for item in culprits if item.kind == "retention"]
        # The averages hold the single units: where they are named, these must not count a second time.
        moved = whole or [item for item in culprits if item.kind in ("fact", "census")]
        units = max(len(evidence.result.units), 1)
        scale = {"retention": 1 / len(FACT_HYPOTHESES), "fact": 1 / units, "census": 1 / units}
        loss = sum(-(item.delta or 0.0) * scale[item.kind] for item in moved if item.direction == "worse")
        gain = sum((item.delta or 0.0) * scale[item.kind] for item in moved if item.direction == "better")
        words = _retention(rows, evidence, recorded.size if recorded is not None else None)
        if recorded is not None and recorded.facts:
            moves = [_moved(recorded.facts, asked=asked) for asked in (True, False)]
            totals = max(recorded.asked_facts, 1), max(recorded.other_facts, 1)
            shares = [sum(move[at] / total for move, total in zip(moves, totals, strict=True)) / 2 for at in (0, 1)]
            # Named facts show gain and loss where the shares of the two cancel out; a loss that is spread over many
            # facts names few of them, and must not give way to one that was gained.
            loss, gain = max(loss, shares[0]), max(gain, shares[1])
            # Of single facts only those are counted that moved by more than chance explains, so the shares may differ.
            lost, won = (sum(move[at] for move in moves) for at in (0, 1))
            named = [*([f"{lost} clearly lost"] if lost else []), *([f"{won} clearly gained"] if won else [])]
            words += f" ({', '.join(named)})" if named else ""
        says.append(words)
    if clear is not None and clear.worse:
        if not any("clearly lost" in text for text in says):
            says.append(_clearly(recorded, clear))
        loss, gain = max(loss, clear.loss), max(gain, clear.gain)
    if recorded is not None and recorded.size.unusable and gain:
        gain = 0.0
        share = percent(recorded.size.bare)
        says.append(f"{share} of all facts only where no sentence carries them (a comment, loose words, an aside)")
    if recorded is not None and recorded.cause and says and loss > gain:
        says[-1] += f": {recorded.cause}"
    certain = recorded is not None and (recorded.invented.more or recorded.stale.more)
    state = StrandState.WORSE if certain else weigh(loss, gain)
    if state is StrandState.SAME and evidence is not None and not evidence.result.can_reach:
        state = StrandState.CANNOT_TELL
    accepted = recorded.accepted if recorded is not None else ()
    if state is StrandState.SAME and accepted:
        state = StrandState.ACCEPTED
    details += [
        f"accepted: {fact.name} ({fact.fixture}), in {fact.candidate_kept} of {counted(fact.candidate_runs, 'run')}"
        for fact in accepted
    ]
    leaning = recorded.leaning if recorded is not None and not recorded.exact and not says else None
    if leaning is not None:
        says.append("{} kept less often and {} more often".format(counted(leaning[0], "fact"), leaning[1] or "none"))
    kept = [row for row in rows if row.family == "facts"]
    # With as many digits as in the table, which shows the change as well.
    shown = [(FACT_NAMES[row.name], *percents_and_change(row.base, row.candidate)) for row in kept]
    details += [f"{name}: {before} → {after}" for name, before, after, _ in shown if before != after]
    base, candidate = (", ".join(f"{row[0]} {row[side]}" for row in shown) for side in (1, 2))
    if recorded is not None and recorded.size.recorded:
        base, candidate, _ = percents_and_change(recorded.size.base_kept, recorded.size.candidate_kept)
    if recorded is not None and recorded.false_values:
        candidate = ", ".join(filter(None, [candidate, f"{counted(len(recorded.false_values), 'false value')}"]))
    return Strand(
        name="facts",
        state=state,
        base=base,
        candidate=candidate,
        says=", but ".join(["; ".join(says[:-1]), says[-1]]) if certain and gain > loss else "; ".join(says),
        details=tuple(details),
        leans_down=leaning is not None,
        accepted=tuple(Item(fact.name, fact.fixture) for fact in accepted),
        loss=loss,
        gain=gain,
    )


def _moved_scores(moved: Sequence[Culprit], worse: bool) -> str:
    """Say what decided: an average with its interval, or else single probes, or the p of an average beyond facts."""
    dimensions = [item for item in moved if item.kind == "dimension"]
    certain = [item for item in dimensions if (item.ci_low or 0) > 0 or (item.ci_high or 0) < 0]
    if len(dimensions) < len(moved) and not certain:
        return f"{counted(len(moved) - len(dimensions), 'probe')} answered {'worse' if worse else 'better'}"
    first = max(certain or dimensions, key=lambda item: (item.name == "overall", abs(item.delta or 0.0)))
    how = interval(first.ci_low, first.ci_high) if certain else f"(p {p_value(first.p or 0.0)})"
    return f"{first.name.replace('_', ' ')} {signed(first.delta)} {how}"


def scores_strand(
    evidence: TestedFamily | None, culprits: Sequence[Culprit], rows: Sequence[Row], *, judged: bool
) -> Strand:
    """Say what a judge saw; without one the grades are advice and decide nothing."""
    overall = next((row for row in rows if row.name == "overall"), None)
    base, candidate = (score(overall.base), score(overall.candidate)) if overall else ("", "")

    def strand(state: StrandState, says: str = "", loss: float = 0.0, gain: float = 0.0, *details: str) -> Strand:
        return Strand(
            name="scores",
            state=state,
            base=base,
            candidate=candidate,
            says=says,
            details=details,
            loss=loss,
            gain=gain,
        )

    if not judged:
        return strand(StrandState.ADVISORY)
    # Named by their own test, or because they follow from facts that moved for certain.
    moved = [item for item in culprits if item.kind in ("dimension", "probe")]
    if evidence is None or not moved:
        reach = evidence is None or evidence.result.can_reach
        return strand(StrandState.SAME if reach else StrandState.CANNOT_TELL)
    dimensions = [item for item in moved if item.kind == "dimension"]
    units = 1.0 if dimensions else float(max(len(evidence.result.units), 1))
    weights = [(item.direction, abs(item.delta or 0.0) / 5 / units) for item in dimensions or moved]
    loss = sum(weight for direction, weight in weights if direction == "worse")
    gain = sum(weight for direction, weight in weights if direction == "better")
    says = _moved_scores(moved, loss > gain)
    number = max(len(dimensions), 1)
    return strand(weigh(loss, gain), says, loss / number, gain / number)


def _relative_loss(size: SizeChange) -> float:
    return 1 - size.candidate_kept / size.base_kept if size.base_kept else 0.0


def _cut_decides(shown: Strand | None, gain: float) -> bool:
    """Tell whether what no longer reaches the model is by itself of the gain's weight."""
    return shown is not None and shown.state is StrandState.WORSE and shown.loss >= COMPARABLE * gain


def decide_kind(strands: Mapping[StrandName, Strand], size: SizeChange | None, *, certain: bool, settled: bool) -> Kind:
    """Apply the rule; `certain` says that a value was invented or is stale, `settled` that calm rows are calm."""
    if certain or any(name in strands and strands[name].state is StrandState.WORSE for name in _CERTAIN):
        return Kind.REGRESSED
    weighed = [strands[name] for name in _WEIGHED if name in strands]
    spoke = (StrandState.WORSE, StrandState.BETTER, StrandState.BOTH)
    loss = max((item.loss for item in weighed if item.state in spoke), default=0.0)
    gain = max((item.gain for item in weighed if item.state in spoke), default=0.0)
    repaired = max((strands[name].gain for name in ("structure", "outcome") if name in strands), default=0.0)
    only_repaired = bool(repaired) and not gain
    gain = max(gain, repaired)
    state = weigh(loss, gain)
    window = strands.get("window")
    shorter = window is not None and window.state is StrandState.WORSE
    shrunk = 1 - size.ratio if size is not None else 0.0
    if state is StrandState.BOTH:
        return Kind.REGRESSED if _cut_decides(strands.get("shown"), gain) else Kind.MIXED
    if state is StrandState.WORSE:
        # What the model is no longer shown is no matter of size: a smaller state could have held it.
        hidden = "shown" in strands and strands["shown"].state is StrandState.WORSE
        traded = size is not None and size.smaller and size.recorded and shrunk >= TRADED * _relative_loss(size)
        traded = traded and not hidden
        return Kind.TRADE if traded else Kind.REGRESSED
    if state is StrandState.BETTER:
        if only_repaired and shorter:
            return Kind.MIXED
        return Kind.TRADE if size is not None and size.bought else Kind.IMPROVED
    if not settled:
        return Kind.INCONCLUSIVE
    if size is not None and size.smaller:
        facts = strands.get("facts")
        leaning = facts is not None and facts.leans_down
        accepted = any(item.accepted for item in strands.values())
        return Kind.TRADE if shorter or leaning or accepted else Kind.IMPROVED
    return Kind.REGRESSED if size is not None and size.larger else Kind.NO_DETECTABLE_CHANGE
