"""Next turn: whether an agent goes on from the state that its adapter reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval_core.base.numbers import counted
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.strand import SeenRun

_SHOWN = 3
_LONGEST = 200


def read_next_turn(seen: SeenRun) -> Mapping[str, Any] | None:
    """Keep what differs, its first lines at most; it was tried in one run of one fixture only."""
    turn = seen.compression.next_turn
    if turn is None:
        return None
    both = {"not_sent": turn.not_sent, "not_reported": turn.not_reported}
    first = {name: [line[:_LONGEST] for line in lines[:_SHOWN]] for name, lines in both.items()}
    return {**{name: len(lines) for name, lines in both.items()}, "first": first, "instructed": turn.instructed}


def _words(record: Mapping[str, Any]) -> str:
    parts = [
        f"{counted(record[name], 'line')} {said}"
        for name, said in (("not_sent", "reported and not sent"), ("not_reported", "sent and not reported"))
        if record[name]
    ]
    end = "" if record["instructed"] else "; the request for the summary ends with the session, not an instruction"
    return (", ".join(parts) or "sends what was reported") + end


def compare_next_turn(evidence: Evidence) -> Finding | None:
    """Tell what both sides have as the adapter's, which is the same for both, and another difference as the agent's."""
    base, candidate = (records[:1] for records in evidence.records("next_turn"))
    if not candidate:
        return None
    now = candidate[0]
    details = [f"reported and not sent: {line}" for line in now["first"]["not_sent"]]
    details += [f"sent and not reported: {line}" for line in now["first"]["not_reported"]]
    found = Finding(name="next_turn", state=StrandState.NOT_RECORDED, candidate=_words(now), details=tuple(details))
    if not base:
        return found
    before = base[0]
    same = all(before[name] == now[name] for name in ("not_sent", "not_reported", "instructed"))
    if same and details:
        details.insert(0, "the same on both sides, so it is the adapter's: its state is not all that the agent sends")
    says = "" if same else f"after a compaction it now sends something else: {_words(now)}, before: {_words(before)}"
    state = StrandState.SAME if same else StrandState.CHANGED
    return found.model_copy(update={"state": state, "base": _words(before), "says": says, "details": tuple(details)})
