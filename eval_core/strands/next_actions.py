"""Next actions: does a model that sees only the state want to do what it would with the full transcript?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import fmean

from eval_core.base.numbers import percent
from eval_core.domain.rollout import ActionRecord, PlayedTasks, RolloutArm
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.tasks import played_tasks

_WORD = re.compile(r"\w+")
Calls = Sequence[ActionRecord]


def _alike(one: ActionRecord, other: ActionRecord) -> float:
    """Return the share of words that two calls of a tool have in common."""
    if one.tool != other.tool:
        return 0.0
    words, others = (set(_WORD.findall(call.given)) for call in (one, other))
    return len(words & others) / len(words | others) if words | others else 1.0


def agreement(calls: Calls, others: Calls) -> float:
    """Return how far each of these calls is among the others, on average."""
    return fmean(max((_alike(one, other) for other in others), default=0.0) for one in calls) if calls else 0.0


def _of(played: PlayedTasks, session: str, arm: RolloutArm) -> list[Calls]:
    return [item.calls for item in played.next_actions if (item.session, item.arm) == (session, arm)]


def _shares(played: PlayedTasks, session: str) -> tuple[float, float, float] | None:
    """Return how far both sides, and the full transcript asked again, do as the full transcript would."""
    full, base, candidate = (_of(played, session, arm) for arm in ("full", "base", "candidate"))
    if len(full) < 2 or not base or not candidate:
        return None
    itself = fmean(agreement(one, other) for at, one in enumerate(full) for other in full[:at] + full[at + 1 :])
    before, now = (fmean(agreement(one, other) for one in side for other in full) for side in (base, candidate))
    return before, now, itself


def compare_next_actions(evidence: Evidence) -> Finding | None:
    """Say how far both sides go on as the full transcript would; it decides nothing."""
    played = played_tasks(evidence)
    if played is None:
        return None
    sessions = dict.fromkeys(item.session for item in played.next_actions)
    found = {name: shares for name in sessions if (shares := _shares(played, name)) is not None}
    if not found:
        return None
    before, now, itself = (fmean(values) for values in zip(*found.values(), strict=True))
    lines = [
        f"{name}: {percent(b)} → {percent(n)}; the full transcript asked again {percent(own)}"
        for name, (b, n, own) in sorted(found.items(), key=lambda item: item[1][1] - item[1][0])
    ]
    return Finding(
        name="next_actions",
        # Farther apart than the same transcript is from itself; less is what asking again comes to.
        state=StrandState.CHANGED if abs(now - before) > 1 - itself else StrandState.SAME,
        base=f"{percent(before)} as with the full transcript",
        candidate=f"{percent(now)}; the full transcript asked again: {percent(itself)}",
        details=tuple(lines),
    )
