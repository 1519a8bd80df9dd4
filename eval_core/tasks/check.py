"""`task check`: a task measures what it says, shown with an agent that knows all facts, none, and all but one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from eval_core.base.config import TaskConfig
from eval_core.base.messages import Message, render
from eval_core.domain.call import Failed
from eval_core.domain.rollout import RolloutRecord
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.tasks.agents import ScriptedAgent
from eval_core.tasks.loop import RolloutPlan, roll
from eval_core.tasks.task import Loss, Task
from eval_core.tasks.task_workspace import Built, build, missing, run_checks

_TIMES = 3
ALL, NOTHING = "knows everything", "knows nothing"
_KIND: dict[Loss, tuple[str, ...]] = {"rule": ("rule",), "repeat": ("repeat", "redone"), "lookup": ()}


@dataclass(frozen=True)
class CheckedRow:
    """What one agent came to."""

    who: str
    rollout: RolloutRecord
    priced: float


@dataclass
class Checked:
    """What was found out about a task."""

    name: str
    rows: list[CheckedRow] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


async def scripted(
    built: Built, known: frozenset[str], number: int = 0, state: Sequence[Message] | None = None
) -> RolloutRecord:
    """Let somebody who knows these facts do the task; no model is asked. A state is only counted."""
    task = built.task
    agent = ScriptedAgent(task, known)
    plan = RolloutPlan(task.full_name, "full", number)
    record = await roll(built, plan, agent, task.fixture.messages[:1] if state is None else state)
    assert not isinstance(record, Failed), "a script has no outage"
    return record


def known_in(task: Task, state: str) -> frozenset[str]:
    """Return the facts of a task that a state still holds, as facts are matched everywhere."""
    text = Haystack.of(state)
    return frozenset(name for name, line in task.lines.items() if holds(line.fact, text))


async def from_states(
    tasks: Sequence[Task],
    sandbox: SandboxChoice,
    states: Mapping[str, Mapping[str, Sequence[Message]]],
    said: Callable[[str], None] = lambda text: None,
) -> dict[str, list[RolloutRecord]]:
    """Do each task from each state of its session, as somebody who knows what that state still holds."""
    found: dict[str, list[RolloutRecord]] = {arm: [] for arm in states}
    for task in tasks:
        built = await build(task, sandbox)
        for arm, of in states.items():
            state = of[task.fixture.name]
            said(f"{task.full_name}: {arm}")
            found[arm].append(await scripted(built, known_in(task, render(state)), state=state))
    return found


async def check_task(task: Task, sandbox: SandboxChoice, said: Callable[[str], None] = lambda text: None) -> Checked:
    """Try a task in every way that it is going to be used."""
    found = Checked(task.full_name)
    if lacking := await missing(task, sandbox):
        found.problems.append(f"needs: the sandbox has no {lacking[0]}; install it beside this program")
        return found
    built, again = await build(task, sandbox), await build(task, sandbox)
    if built.tree.digest != again.tree.digest:
        found.problems.append("workspace: two builds differ; leave out times and random numbers")
    await _before(built, found)
    facts = frozenset(fact.id for fact in task.file.facts)
    said(f"{task.full_name}: {ALL}")
    for number in range(_TIMES):
        record = await scripted(built, facts, number)
        if bad := record.failed("done", "rule", "repeat", "redone"):
            found.problems.append(f"solution: {bad[0]!r} does not pass in run {number + 1}: {_why(record, bad[0])}")
            break
    found.rows.append(_row(ALL, record))
    said(f"{task.full_name}: {NOTHING}")
    floor = await scripted(built, frozenset())
    found.rows.append(_row(NOTHING, floor))
    if floor.clean:
        found.problems.append("floor: somebody who knows nothing of the session finishes it cleanly")
    for fact in task.file.facts:
        said(f"{task.full_name}: all but {fact.id}")
        row = _row(f"all but {fact.id}", await scripted(built, facts - {fact.id}))
        found.problems += _unneeded(fact.id, fact.lost, row, found.rows[0])
        found.rows.append(row)
    return found


async def _before(built: Built, found: Checked) -> None:
    """Check the workspace as it is given: whatever is to be done is not done yet."""
    for number in range(_TIMES):
        checks = await run_checks(built, built.tree, [])
        if green := [check.name for check in checks if check.kind == "done" and check.passed]:
            found.problems.append(f"checks: {green[0]!r} passes before anything is done (run {number + 1})")
            return
        if red := [check for check in checks if check.kind != "done" and not check.passed]:
            found.problems.append(f"checks: {red[0].name!r} does not pass before anything is done: {red[0].says}")
            return


def _why(record: RolloutRecord, name: str) -> str:
    return next((check.says for check in record.checks if check.name == name), "")[-300:]


def _row(who: str, record: RolloutRecord) -> CheckedRow:
    return CheckedRow(who, record, record.priced(TaskConfig()))


def _unneeded(fact: str, lost: Loss, row: CheckedRow, whole: CheckedRow) -> list[str]:
    """Say so where a fact makes no difference, or another one than the task says."""
    kinds = _KIND[lost]
    if kinds and not row.rollout.failed(*kinds):
        return [f"facts: without {fact!r} no check of kind {' or '.join(kinds)} fails, though losing it is a {lost}"]
    if not kinds and row.priced <= whole.priced:
        return [f"facts: without {fact!r} nothing costs more, though losing it is a {lost}"]
    return []


async def check_tasks(
    tasks: Sequence[Task], sandbox: SandboxChoice, said: Callable[[str], None] = lambda text: None
) -> list[Checked]:
    """Check tasks, two at a time."""
    turns = asyncio.Semaphore(2)

    async def one(task: Task) -> Checked:
        async with turns:
            return await check_task(task, sandbox, said)

    return list(await asyncio.gather(*map(one, tasks)))
