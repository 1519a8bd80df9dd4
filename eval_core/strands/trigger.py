"""Trigger: when a compressor compresses by its own word, and what that frees. It describes, and decides nothing."""

from __future__ import annotations

from statistics import median

from eval_core.base.numbers import counted, percent, tokens
from eval_core.domain.fixture import STUCK
from eval_core.domain.record import TriggerRecord
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState

_EVERY = 4
"""Messages from one compression to the next: a call of the model with a tool's answer is two."""
_MOVED = 0.05
"""Shares that differ by less are the same to a reader."""


def _at(record: TriggerRecord) -> float:
    return median(item.before / record.window for item in record.rounds)


def _freed(record: TriggerRecord) -> float:
    return median(1 - item.after / item.before for item in record.rounds)


def _grows(record: TriggerRecord) -> int:
    return sum(item.after > item.before for item in record.rounds)


def _words(record: TriggerRecord) -> str:
    """Say when it fired, what a cycle frees, and how it ended."""
    whose = "`should_compress`" if record.own else f"at {percent(record.share)} of the window (it has no trigger)"
    if not record.rounds:
        never = f"never fires in {tokens(record.tokens)} tokens for a window of {tokens(record.window)}"
        return record.detail if record.ended == "failed" else never
    often = counted(len(record.rounds), "compression")
    parts = [f"{whose}: {often} at {percent(_at(record))} of the window, each frees {percent(_freed(record))}"]
    if grown := _grows(record):
        parts.append(f"{grown} of them made the state larger")
    said = record.rounds[-1].message
    if said - record.rounds[0].message <= _EVERY * len(record.rounds) and len(record.rounds) >= STUCK:
        parts.append(f"from message {record.rounds[0].message} on it fires at nearly every message")
    if record.ended == "stuck":
        parts.append(f"played until message {said} of {record.messages}, where it is stuck")
    if record.ended == "failed":
        parts.append(f"then ended: {record.detail}")
    return "; ".join(parts)


def _moved(before: TriggerRecord, now: TriggerRecord) -> bool:
    if before.own != now.own or before.ended != now.ended or bool(before.rounds) != bool(now.rounds):
        return True
    if not now.rounds:
        return False
    return abs(_at(before) - _at(now)) >= _MOVED or abs(_freed(before) - _freed(now)) >= _MOVED


def compare_trigger(evidence: Evidence) -> Finding | None:
    """Describe both sides on each session that was played until its end; None where none was."""
    beside = evidence.recorded.played_rounds if evidence.recorded is not None else None
    if beside is None or not beside.triggered:
        return None
    bases = {record.session: record for record in beside.base_triggered}
    pairs = [(bases.get(record.session), record) for record in beside.triggered]
    moved = [record.session for before, record in pairs if before is not None and _moved(before, record)]
    if all(before is None for before, _ in pairs):
        state = StrandState.NOT_RECORDED
    else:
        state = StrandState.CHANGED if moved else StrandState.SAME
    first, now = pairs[0]
    return Finding(
        name="trigger",
        state=state,
        base="" if first is None else _words(first),
        candidate=_words(now),
        says="it compresses at another time, or frees another share" if moved else "",
    )
