"""Trigger: the number of tokens at which the compressor first starts compressing by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.strand import SeenRun

_MORE = 0.05
"""A smaller share is no change: the number is known to a hundredth of it."""
_LARGE = 20_000
"""From here on thousands are told."""


def read_sets_in(seen: SeenRun) -> Mapping[str, Any] | None:
    """Keep the answer; it was asked for in one run of one fixture only."""
    trigger = seen.compression.trigger
    return None if trigger is None else {"asked_up_to": trigger.asked_up_to, "at": trigger.at}


def _words(record: Mapping[str, Any]) -> str:
    if record["at"] is None:
        return f"never, up to {record['asked_up_to']:,} tokens"
    at = record["at"]
    return f"at about {round(at, -3) if at >= _LARGE else at:,} tokens"


def compare_sets_in(evidence: Evidence) -> Finding | None:
    """Compare the two numbers: another one is told; a compressor that never sets in any more is worse for it."""
    base, candidate = (records[:1] for records in evidence.records("sets_in"))
    if not candidate:
        return None
    now = candidate[0]
    if not base:
        return Finding(name="sets_in", state=StrandState.NOT_RECORDED, candidate=_words(now))
    before = base[0]
    found = Finding(name="sets_in", state=StrandState.SAME, base=_words(before), candidate=_words(now))
    if before["at"] is None or now["at"] is None:
        if before["at"] == now["at"]:
            return found
        if now["at"] is None:
            says = f"it no longer compresses by itself ({_words(now)}; before {_words(before)})"
            return found.model_copy(update={"state": StrandState.WORSE, "says": says, "loss": 1.0})
        says = f"it compresses by itself again, {_words(now)}"
        return found.model_copy(update={"state": StrandState.BETTER, "says": says, "gain": 1.0})
    if abs(now["at"] / before["at"] - 1) < _MORE:
        return found
    says = f"it compresses {_words(now)}, before {_words(before)}"
    return found.model_copy(update={"state": StrandState.CHANGED, "says": says})
