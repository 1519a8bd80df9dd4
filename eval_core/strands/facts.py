"""Facts: which are lost, gained, invented or stale, counted where runs are deterministic and tested where they vary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval_core.base.numbers import (
    counted,
    percent,
    percent_change,
    percents_and_change,
)
from eval_core.statistics.clear_losses import ClearTest
from eval_core.statistics.hypotheses import FACT_HYPOTHESES, FACT_NAMES
from eval_core.strands.culprits import TestedFamily, culprits_of
from eval_core.strands.evidence import Recorded
from eval_core.strands.findings import Culprit, FactChange, Finding, Item, Row, StrandState, weigh
from eval_core.strands.size import SizeChange

MATTERS = 0.01
"""On deterministic runs a change of the census counts from this share of its facts, an authored fact always."""


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
    """Say how many facts were lost for certain, as many as are listed, and how many gained where that weighs."""
    lost = sum(item.clear and item.change < 0 for item in recorded.facts) if recorded is not None else 0
    gained = sum(item.clear and item.change > 0 for item in recorded.facts) if recorded is not None else 0
    beside = f", {gained or len(clear.gained.facts)} clearly gained" if clear.gain else ""
    return f"{counted(lost or len(clear.lost.facts), 'fact')} clearly lost{beside}"


@dataclass
class _Told:
    """What became of the facts so far: the clauses, and how much was lost and gained."""

    says: list[str]
    loss: float = 0.0
    gain: float = 0.0

    def at_least(self, loss: float, gain: float) -> None:
        self.loss, self.gain = max(self.loss, loss), max(self.gain, gain)


def _count(told: _Told, recorded: Recorded) -> None:
    """Count the facts of deterministic runs."""
    (lost, won), (others_lost, others_won) = (_moved(recorded.facts, asked=asked) for asked in (True, False))
    total, others = max(recorded.asked_facts, 1), max(recorded.other_facts, 1)
    if lost or won or others_lost + others_won >= MATTERS * others:
        told.at_least((lost / total + others_lost / others) / 2, (won / total + others_won / others) / 2)
    if lost + others_lost + won + others_won:
        every = recorded.asked_facts + recorded.other_facts
        told.says.append(_counted_facts(lost + others_lost, won + others_won, every))


def _test(
    told: _Told,
    recorded: Recorded | None,
    evidence: TestedFamily,
    culprits: Sequence[Culprit],
    rows: Sequence[Row],
) -> None:
    """Take what a significant test says."""
    whole = [item for item in culprits if item.kind == "retention"]
    # The averages hold the single units: where they are named, these must not count a second time.
    moved = whole or [item for item in culprits if item.kind in ("fact", "census")]
    units = max(len(evidence.result.units), 1)
    scale = {"retention": 1 / len(FACT_HYPOTHESES), "fact": 1 / units, "census": 1 / units}
    told.at_least(
        sum(-(item.delta or 0.0) * scale[item.kind] for item in moved if item.direction == "worse"),
        sum((item.delta or 0.0) * scale[item.kind] for item in moved if item.direction == "better"),
    )
    words = _retention(rows, evidence, recorded.size if recorded is not None else None)
    if recorded is not None and recorded.facts:
        words += _name_moved(told, recorded)
    told.says.append(words)


def _name_moved(told: _Told, recorded: Recorded) -> str:
    """Count the single facts that moved by more than chance explains, so the shares may differ from the averages'."""
    moves = [_moved(recorded.facts, asked=asked) for asked in (True, False)]
    totals = max(recorded.asked_facts, 1), max(recorded.other_facts, 1)
    shares = [sum(move[at] / total for move, total in zip(moves, totals, strict=True)) / 2 for at in (0, 1)]
    # Named facts show gain and loss where the shares of the two cancel out; a loss that is spread over many
    # facts names few of them, and must not give way to one that was gained.
    told.at_least(shares[0], shares[1])
    lost, won = (sum(move[at] for move in moves) for at in (0, 1))
    named = [*([f"{lost} clearly lost"] if lost else []), *([f"{won} clearly gained"] if won else [])]
    return f" ({', '.join(named)})" if named else ""


def _unusable(told: _Told, recorded: Recorded) -> None:
    """Take back a gain that no sentence carries, and name what the losses have in common."""
    if recorded.size.unusable and told.gain:
        told.gain = 0.0
        share = percent(recorded.size.bare)
        told.says.append(f"{share} of all facts only where no sentence carries them (a comment, loose words, an aside)")
    if recorded.cause and told.says and told.loss > told.gain:
        told.says[-1] += f": {recorded.cause}"


def _state(told: _Told, recorded: Recorded | None, evidence: TestedFamily | None, *, certain: bool) -> StrandState:
    state = StrandState.WORSE if certain else weigh(told.loss, told.gain)
    if state is StrandState.SAME and evidence is not None and not evidence.result.can_reach:
        state = StrandState.CANNOT_TELL
    if state is StrandState.SAME and recorded is not None and recorded.accepted:
        state = StrandState.ACCEPTED
    return state


def _sides(recorded: Recorded | None, rows: Sequence[Row]) -> tuple[str, str, list[str]]:
    """Return both sides in a few words, and the rows that differ as details."""
    # With as many digits as in the table, which shows the change as well.
    shown = [
        (FACT_NAMES[row.name], *percents_and_change(row.base, row.candidate)) for row in rows if row.family == "facts"
    ]
    details = [f"{name}: {before} → {after}" for name, before, after, _ in shown if before != after]
    base, candidate = (", ".join(f"{row[0]} {row[side]}" for row in shown) for side in (1, 2))
    if recorded is not None and recorded.size.recorded:
        base, candidate, _ = percents_and_change(recorded.size.base_kept, recorded.size.candidate_kept)
    if recorded is not None and recorded.false_values:
        candidate = ", ".join(filter(None, [candidate, f"{counted(len(recorded.false_values), 'false value')}"]))
    return base, candidate, details


def facts_strand(
    recorded: Recorded | None,
    evidence: TestedFamily | None,
    culprits: Sequence[Culprit],
    rows: Sequence[Row],
    clear: ClearTest | None = None,
) -> Finding:
    """Say what became of the facts: counted where runs are deterministic, tested where they vary."""
    says, details = _false(recorded) if recorded else ([], [])
    details += recorded.untested if recorded else ()
    told = _Told(says)
    if recorded is not None and recorded.exact:
        _count(told, recorded)
    elif evidence is not None and evidence.significant:
        _test(told, recorded, evidence, culprits, rows)
    if clear is not None and clear.worse:
        if not any("clearly lost" in text for text in says):
            says.append(_clearly(recorded, clear))
        told.at_least(clear.loss, clear.gain)
    if recorded is not None:
        _unusable(told, recorded)
    certain = recorded is not None and (recorded.invented.more or recorded.stale.more)
    state = _state(told, recorded, evidence, certain=certain)
    accepted = recorded.accepted if recorded is not None else ()
    details += [
        f"accepted: {fact.name} ({fact.fixture}), in {fact.candidate_kept} of {counted(fact.candidate_runs, 'run')}"
        for fact in accepted
    ]
    leaning = recorded.leaning if recorded is not None and not recorded.exact and not says else None
    if leaning is not None:
        says.append("{} kept less often and {} more often".format(counted(leaning[0], "fact"), leaning[1] or "none"))
    base, candidate, moved = _sides(recorded, rows)
    return Finding(
        name="facts",
        state=state,
        base=base,
        candidate=candidate,
        says=", but ".join(["; ".join(says[:-1]), says[-1]]) if certain and told.gain > told.loss else "; ".join(says),
        details=(*details, *moved),
        leans_down=leaning is not None,
        accepted=tuple(Item(fact.name, fact.fixture) for fact in accepted),
        loss=told.loss,
        gain=told.gain,
    )
