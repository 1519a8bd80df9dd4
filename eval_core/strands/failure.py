"""Failure: what the compressor does with the session when its model fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from eval_core.domain.model_failure import FailureReaction, ModelFailure
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.strand import SeenRun

Reactions = dict[ModelFailure, FailureReaction]


def read_failure(seen: SeenRun) -> Mapping[str, Any] | None:
    """Keep the reactions; they were tried in one run of one fixture only."""
    return {str(failure): str(done) for failure, done in seen.compression.with_failing_models.items()} or None


def _reactions(records: list[dict[str, Any]]) -> Reactions:
    """Return what was tried; a failure or reaction of another version of this program is left out."""
    known = {str(item) for item in (*ModelFailure, *FailureReaction)}
    return {
        ModelFailure(failure): FailureReaction(done)
        for record in records[:1]
        for failure, done in record.items()
        if {failure, done} <= known
    }


def _in_short(reactions: Reactions) -> str:
    counts = Counter(reactions.values())
    return ", ".join(f"{number} × {done.words}" for done, number in sorted(counts.items()))


def _line(failure: ModelFailure, before: FailureReaction | None, now: FailureReaction) -> str:
    was = "" if before in (None, now) else f" (base: {before.words})"
    return f"its model {failure.words}: {now.words}{was}"


def _state(base: Reactions, candidate: Reactions, lost: int, saved: int) -> StrandState:
    if not base:
        return StrandState.NOT_RECORDED
    if lost or saved:
        return StrandState.WORSE if lost else StrandState.BETTER
    same = all(base.get(failure, done) is done for failure, done in candidate.items())
    return StrandState.SAME if same else StrandState.CHANGED


def compare_failure(evidence: Evidence) -> Finding | None:
    """Compare by name; only a session that is destroyed, or no longer is, makes it worse or better."""
    base, candidate = map(_reactions, evidence.records("failure"))
    if not candidate:
        return None
    moved = [
        failure
        for failure, done in candidate.items()
        if base.get(failure, done) is not done and FailureReaction.HUNG not in (done, base[failure])
    ]
    lost = [failure.words for failure in moved if candidate[failure] is FailureReaction.DESTROYED]
    saved = [failure.words for failure in moved if base[failure] is FailureReaction.DESTROYED]
    says = []
    if lost:
        says.append(f"if its model {' or '.join(lost)}, the session is now cut without a summary and without an error")
    if saved:
        says.append(f"if its model {' or '.join(saved)}, the session now survives")
    return Finding(
        name="failure",
        state=_state(base, candidate, len(lost), len(saved)),
        base=_in_short(base),
        candidate=_in_short(candidate),
        says="; ".join(says),
        details=tuple(_line(failure, base.get(failure), done) for failure, done in candidate.items()),
        loss=len(lost) / len(candidate),
        gain=len(saved) / len(candidate),
    )
