"""Tasks: does an agent that goes on from the state still finish the job, and keep the rules?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from eval_core.base.numbers import counted, percent
from eval_core.domain.rollout import MEASURES, Measure, PlayedTasks, RolloutArm, RolloutRecord, tokens_per_clean_task
from eval_core.statistics.two_stage import FRESH_RUNS, Fresh, confirmed, looked_at_again, power, smallest_seen
from eval_core.strands.evidence import Evidence
from eval_core.strands.findings import Finding, StrandState, weigh

_NAMED = 6
_RUINED = 0.05, 1.0
"""Shares of failures before and after, of which is told how surely they are seen."""
_SIDES: tuple[RolloutArm, RolloutArm] = ("base", "candidate")
_WORDS: dict[Measure, str] = {"unfinished": "not finished", "rule broken": "a rule broken"}


def played_tasks(evidence: Evidence) -> PlayedTasks | None:
    """Return the rollouts of the candidate's run."""
    sides = evidence.recorded.sides if evidence.recorded is not None else ()
    return sides[-1].extra.tasks if sides else None


def fresh_rollouts(played: PlayedTasks) -> dict[tuple[str, Measure], Fresh]:
    """Return what the second stage decides: only where the first one differed, and only by fresh rollouts."""
    found: dict[tuple[str, Measure], Fresh] = {}
    for task in played.tasks:
        for measure in MEASURES:
            first, second = (
                [[one.fails(measure) for one in played.of(arm, task.name, stage)] for arm in _SIDES] for stage in (1, 2)
            )
            if looked_at_again(sum(first[0]), sum(first[1])) and all(second):
                found[task.name, measure] = Fresh(sum(second[0]), sum(second[1]), len(second[0]), len(second[1]))
    return found


def _decided(played: PlayedTasks) -> tuple[list[str], list[str], set[str], set[str]]:
    fresh = fresh_rollouts(played)
    worse, better = confirmed({f"{task}|{measure}": item for (task, measure), item in fresh.items()})
    told: tuple[list[str], list[str]] = ([], [])
    for (task, measure), item in fresh.items():
        for names, lines in ((worse, told[0]), (better, told[1])):
            if f"{task}|{measure}" in names:
                sides = f"{item.base} of {item.base_runs} → {item.candidate} of {item.candidate_runs}"
                lines.append(f"{task}: {_WORDS[measure]} in {sides} fresh rollouts")
    return *told, {name.split("|")[0] for name in worse}, {name.split("|")[0] for name in better}


def _side(played: PlayedTasks, rollouts: Sequence[RolloutRecord]) -> str:
    clean = sum(one.clean for one in rollouts)
    tokens = tokens_per_clean_task(rollouts, played.prices)
    spent = "none finished" if tokens is None else f"{tokens:,.0f} tokens a clean task"
    return f"{clean} of {len(rollouts)} clean, {spent}"


def _rows(base: Sequence[RolloutRecord], candidate: Sequence[RolloutRecord]) -> list[str]:
    rows = []
    for what, kinds in (("rules broken", ("rule",)), ("dead ends tried again", ("repeat",)),
                        ("finished work begun again", ("redone",))):  # fmt: skip
        counts = [sum(len(one.failed(*kinds)) for one in side) for side in (base, candidate)]
        if any(counts):
            rows.append(f"{what}: {counts[0]} → {counts[1]}")
    looked = [fmean(one.looked_up for one in side) for side in (base, candidate)]
    return [*rows, f"files read and searched in a rollout: {looked[0]:.1f} → {looked[1]:.1f}"]


def _left_out(played: PlayedTasks) -> list[str]:
    lines = [
        f"does not count for {played.model}: {task.name}, {task.why}" for task in played.tasks if not task.admitted
    ]
    return [*lines, *([played.not_measured] if played.not_measured else [])]


def compare_tasks(evidence: Evidence) -> Finding | None:
    """Say what became of the tasks, and decide by what fresh rollouts confirm."""
    played = played_tasks(evidence)
    if played is None:
        return None
    base, candidate = (played.of(arm, stage=1) for arm in _SIDES)
    if not base or not candidate:
        left_out = tuple(_left_out(played))
        return Finding(name="tasks", state=StrandState.NOT_COMPARABLE, details=left_out) if left_out else None
    losses, gains, worse, better = _decided(played)
    admitted = sum(task.admitted for task in played.tasks)
    loss, gain = len(worse) / admitted, len(better) / admitted
    from_failures = smallest_seen(FRESH_RUNS)
    seen = f"one task that is always ruined is confirmed in {percent(power(*_RUINED))} of comparisons"
    says = ""
    if worse:
        many = counted(len(worse), "task")
        says = f"an agent that goes on from the state no longer finishes {many} cleanly"
    elif better:
        says = f"an agent now finishes {counted(len(better), 'task')} that it did not"
    return Finding(
        name="tasks",
        state=weigh(loss, gain),
        base=_side(played, base),
        candidate=_side(played, candidate),
        says=says,
        details=(
            *losses[:_NAMED],
            *gains[:_NAMED],
            *_rows(base, candidate),
            *_left_out(played),
            f"{seen}, from {from_failures} failures of {FRESH_RUNS} beside none on",
        ),
        loss=loss,
        gain=gain,
    )
