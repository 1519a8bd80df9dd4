"""Tasks in a run: an agent goes on from the states of both sides, behind controls that say which tasks count."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from eval_core.base.config import Config
from eval_core.base.errors import UserError
from eval_core.base.files import digest, pretty, read_json, write_atomic
from eval_core.base.messages import Message
from eval_core.base.numbers import counted
from eval_core.domain.call import ArmName, Draw, Failed, OpaqueState
from eval_core.domain.case import Case
from eval_core.domain.record import Record, RunRecord
from eval_core.domain.rollout import MEASURES, PlayedTasks, RolloutArm, RolloutRecord, TaskState
from eval_core.models.client import ModelClient
from eval_core.models.settings import Models
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.statistics.two_stage import FRESH_RUNS, SCREEN_RUNS, looked_at_again
from eval_core.tasks.agents import ModelAgent, Speaks, TextAgent, speaks
from eval_core.tasks.loop import RolloutLog, RolloutPlan, roll
from eval_core.tasks.task import Task, find_tasks
from eval_core.tasks.task_workspace import Built, build, missing

ROLLOUTS = "rollouts.jsonl"
_CONTROLS: tuple[RolloutArm, RolloutArm] = ("full", "nothing")
_AT_ONCE = 4
_INPUT, _CACHED, _OUTPUT = 42_000, 0.75, 2_000
"""Of a rollout: tokens sent, the share of them that a prompt cache holds, and tokens written; measured on one model."""
_MINUTES = 1.5


def load_run_tasks(settings: Config, root: Path, cases: Sequence[Case]) -> list[Task]:
    """Return the tasks of the sessions of a run."""
    sessions = {case.fixture.name: case.fixture for case in cases}
    folder = root / settings.tasks
    found = find_tasks(folder, sessions, {case.fixture.name: case.ledger for case in cases})
    if not found:
        raise UserError(f"{folder}: there is no task of these fixtures; `compression-eval task new` begins one")
    return found


def estimate_tasks(tasks: int, sides: int, models: Models) -> tuple[int, float | None, int]:
    """Return rollouts, dollars (None where a price is unknown) and minutes, before the second stage."""
    rollouts = tasks * SCREEN_RUNS * (sides + len(_CONTROLS))
    tariff = models.tariff(models.answer)
    minutes = math.ceil(_MINUTES * rollouts / _AT_ONCE)
    if tariff is None:
        return rollouts, None, minutes
    sent = _INPUT * ((1 - _CACHED) * tariff.input + _CACHED * tariff.cached_input)
    return rollouts, rollouts * (sent + _OUTPUT * tariff.output), minutes


def price_of_tasks(tasks: int, sides: int, models: Models) -> str:
    """Say what tasks cost and how long they take."""
    rollouts, usd, minutes = estimate_tasks(tasks, sides, models)
    price = "unknown price" if usd is None else f"about ${usd:.2f} with prompt caching"
    again = counted(2 * FRESH_RUNS, "rollout")
    return (
        f"{counted(tasks, 'task')}: {rollouts} rollouts, controls included, {price}, "
        f"about {counted(minutes, 'minute')}; {again} more for each task in which the sides differ."
    )


class _ControlFile(Record):
    rollouts: list[RolloutRecord]


@dataclass
class _Player:
    """The tasks of one run, with what they need."""

    client: ModelClient
    sandbox: SandboxChoice
    results: Path
    log: RolloutLog
    states: Mapping[ArmName, Mapping[str, list[RunRecord]]]
    way: Speaks = "tools"
    outage: str = ""
    turns: asyncio.Semaphore | None = None

    async def one(self, built: Built, arm: RolloutArm, number: int, stage: Literal[1, 2] = 1) -> RolloutRecord | None:
        """Play one rollout; None is an outage, which is noted."""
        if self.outage:
            return None
        state, front = self._state(built.task, arm, number)
        side: ArmName = "base" if arm == "base" else "candidate"
        draw = Draw(control=True, repeat=number) if arm in _CONTROLS else Draw(number, side)
        kind = ModelAgent if self.way == "tools" else TextAgent
        agent = kind(self.client, built.task.file.tools, draw, front)
        assert self.turns is not None
        async with self.turns:
            done = await roll(built, RolloutPlan(built.task.full_name, arm, number, stage), agent, state, self.log)
        if isinstance(done, Failed):
            self.outage = self.outage or f"not measured: {done.message}"
            return None
        return done

    def _state(self, task: Task, arm: RolloutArm, number: int) -> tuple[list[Message], OpaqueState | None]:
        messages = task.fixture.messages
        if arm == "full":
            return messages, None
        if arm == "nothing":
            return [one for one in messages[:1] if one.get("role") == "system"], None
        runs = self.states[arm][task.fixture.name]
        run = runs[number % len(runs)]
        return run.messages, run.opaque

    async def controls(self, built: Built) -> list[RolloutRecord] | None:
        """Return the controls of a task: found from an earlier run of the same task and model, or played."""
        models = self.client.models
        key = digest({"task": built.task.digest, "session": built.task.fixture.digest, "model": models.answer,
                      "identity": models.identity(models.answer), "way": self.way})  # fmt: skip
        path = self.results / "task-controls" / f"{key}.json"
        if path.exists():
            try:
                return _ControlFile.model_validate(read_json(path)).rollouts
            except (UserError, ValidationError):
                pass  # of another version: played again
        played = await asyncio.gather(
            *(self.one(built, arm, number) for arm in _CONTROLS for number in range(SCREEN_RUNS))
        )
        found = [one for one in played if one is not None]
        if len(found) < len(played):
            return None
        write_atomic(path, pretty(_ControlFile(rollouts=found).model_dump(mode="json")))
        return found

    async def sides(self, built: Built, arms: Sequence[RolloutArm]) -> list[RolloutRecord]:
        """Play both sides in alternation, and five fresh rollouts a side where they differ."""
        first = await self._several(built, arms, range(SCREEN_RUNS), 1)
        if len(arms) < 2 or not any(
            looked_at_again(*(sum(one.fails(measure) for one in first if one.arm == arm) for arm in arms))
            for measure in MEASURES
        ):
            return first
        return first + await self._several(built, arms, range(SCREEN_RUNS, SCREEN_RUNS + FRESH_RUNS), 2)

    async def _several(
        self, built: Built, arms: Sequence[RolloutArm], numbers: range, stage: Literal[1, 2]
    ) -> list[RolloutRecord]:
        played = await asyncio.gather(*(self.one(built, arm, number, stage) for number in numbers for arm in arms))
        return [one for one in played if one is not None]


def _admission(task: str, controls: Sequence[RolloutRecord]) -> TaskState:
    full = [one for one in controls if one.arm == "full"]
    clean, lucky = sum(one.clean for one in full), sum(one.clean for one in controls if one.arm == "nothing")
    if clean < len(full):
        return TaskState(name=task, admitted=False, why=f"the full transcript finishes it in {clean} of {len(full)}")
    if lucky:
        return TaskState(
            name=task, admitted=False, why=f"nothing of the session finishes it in {lucky} of {SCREEN_RUNS}"
        )
    return TaskState(name=task, admitted=True)


async def _ready(
    task: Task, sandbox: SandboxChoice, states: Mapping[ArmName, Mapping[str, list[RunRecord]]]
) -> Built | str:
    """Build a workspace, or say why the task does not count here."""
    if task.file.at != "end":
        return "the state after an earlier segment is not kept"
    if lost := [arm for arm, runs in states.items() if not runs.get(task.fixture.name)]:
        return f"the {lost[0]} has no state of {task.fixture.name}"
    if lacking := await missing(task, sandbox):
        return f"the sandbox has no {lacking[0]}"
    return await build(task, sandbox)


async def play_tasks(
    tasks: Sequence[Task],
    client: ModelClient,
    sandbox: SandboxChoice,
    results: Path,
    folder: Path,
    states: Mapping[ArmName, Mapping[str, list[RunRecord]]],
) -> PlayedTasks:
    """Play the tasks of a run: controls first, then the sides; an outage leaves rollouts out and is said."""
    model = client.models.answer
    way = await speaks(client)
    if isinstance(way, Failed):
        return PlayedTasks(model=model, not_measured=f"not measured: {way.message}")
    if way is None:
        why = f"{model} made no obvious tool call, neither with tools nor in JSON"
        return PlayedTasks(model=model, not_measured=f"not measured: {why}")
    player = _Player(client, sandbox, results, RolloutLog(folder / ROLLOUTS), states, way)
    player.turns = asyncio.Semaphore(_AT_ONCE)
    told: list[TaskState] = []
    rollouts: list[RolloutRecord] = []
    arms: list[RolloutArm] = ["base", "candidate"] if "base" in states else ["candidate"]

    async def one(task: Task) -> None:
        built = await _ready(task, sandbox, states)
        if isinstance(built, str):
            told.append(TaskState(name=task.full_name, admitted=False, why=built))
            return
        controls = await player.controls(built)
        if controls is None:
            told.append(TaskState(name=task.full_name, admitted=False, why="its controls could not be measured"))
            return
        rollouts.extend(controls)
        admitted = _admission(task.full_name, controls)
        told.append(admitted)
        if admitted.admitted:
            rollouts.extend(await player.sides(built, arms))

    await asyncio.gather(*map(one, tasks))
    return PlayedTasks(
        model=model,
        tasks=sorted(told, key=lambda item: item.name),
        rollouts=sorted(rollouts, key=lambda item: (item.task, item.arm, item.number)),
        not_measured=player.outage,
    )
