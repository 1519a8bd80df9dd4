"""Two rollouts of a task side by side, from the first call that differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.rollout import ActionRecord, PlayedTasks, RolloutRecord
from eval_core.reporting.html.text import visible

_MOST_CALLS = 15
_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class Timeline:
    """What one rollout of each side did after they went apart."""

    task: str
    shared: int
    """How many calls at the beginning are the same."""
    rows: tuple[tuple[str, str], ...]
    more: int
    ends: tuple[str, str]


def _words(action: ActionRecord) -> str:
    try:
        given = " → ".join(map(str, parse_json(action.given).values()))
    except (BadJson, AttributeError):
        given = action.given  # cut off, or no object
    text = " ".join(visible(f"{action.tool} {given}").split())
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]} …"


def _end(rollout: RolloutRecord) -> str:
    broken = rollout.failed("rule", "repeat", "redone")
    job = "finished" if rollout.finished else f"not finished ({', '.join(rollout.failed('done'))})"
    return visible(f"{rollout.ended}: {job}" + (f"; against: {', '.join(broken)}" if broken else ""))


def _pair(base: Sequence[RolloutRecord], candidate: Sequence[RolloutRecord]) -> tuple[RolloutRecord, RolloutRecord]:
    """Return the rollouts that show a difference, where any do: one that is clean beside one that is not."""
    theirs = {one.number: one for one in base}
    both = [(theirs[one.number], one) for one in candidate if one.number in theirs]
    return next(((b, c) for b, c in both if b.clean != c.clean), both[0])


def timelines(played: PlayedTasks | None) -> list[Timeline]:
    """Return one pair for each task that counts, those whose outcomes differ first."""
    return sorted(_timelines(played), key=lambda item: item.ends[0] == item.ends[1]) if played else []


def _timelines(played: PlayedTasks) -> Iterator[Timeline]:
    for task in played.tasks:
        sides = played.of("base", task.name), played.of("candidate", task.name)
        if not sides[0] or not sides[1]:
            continue
        base, candidate = _pair(*sides)
        ours, theirs = ([_words(action) for action in one.actions] for one in (candidate, base))
        shared = next((n for n, pair in enumerate(zip(theirs, ours, strict=False)) if pair[0] != pair[1]), None)
        shared = min(len(theirs), len(ours)) if shared is None else shared
        longest = max(len(theirs), len(ours))
        rows = tuple(
            (theirs[n] if n < len(theirs) else "", ours[n] if n < len(ours) else "")
            for n in range(shared, min(longest, shared + _MOST_CALLS))
        )
        more = max(0, longest - shared - _MOST_CALLS)
        yield Timeline(visible(task.name), shared, rows, more, (_end(base), _end(candidate)))
