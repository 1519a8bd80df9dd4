"""Tasks in a run: an agent goes on from the states of both sides, behind controls that say which tasks count."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from eval_core.base.config import Config, TaskConfig
from eval_core.base.errors import UserError
from eval_core.base.files import digest, pretty, read_json, write_atomic
from eval_core.base.messages import Message, tool_calls
from eval_core.base.numbers import counted
from eval_core.base.tokens import count_messages
from eval_core.domain.call import ArmName, Draw, Failed
from eval_core.domain.case import Case
from eval_core.domain.compression import ModelUse
from eval_core.domain.fixture import Fixture
from eval_core.domain.obey_probe import session_tools
from eval_core.domain.record import Record, RunRecord
from eval_core.domain.rollout import MEASURES, NextActions, PlayedTasks, RolloutArm, RolloutRecord, TaskState
from eval_core.measuring.price_calls import CountedCalls, estimate, total
from eval_core.models.client import ModelClient
from eval_core.models.settings import Models
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.statistics.two_stage import FRESH_RUNS, SCREEN_RUNS, looked_at_again
from eval_core.tasks.agents import ModelAgent, Speaks, TextAgent, next_actions, speaks
from eval_core.tasks.loop import RolloutLog, RolloutPlan, roll
from eval_core.tasks.task import Task, find_tasks
from eval_core.tasks.task_workspace import Built, build, missing

ROLLOUTS, FRESH_FOLDER = "rollouts.jsonl", "fresh"
_CONTROL_FOLDER = "task-controls"
_CONTROLS: tuple[RolloutArm, RolloutArm] = ("full", "nothing")
_AT_ONCE = 4
_TURNS, _INPUT, _CACHED, _OUTPUT = 8, 42_000, 31_500, 2_000
"""Of a rollout: replies, tokens sent, what of them a prompt cache holds, and tokens written; measured on one model."""
_MINUTES, _CALL_MINUTES = 1.5, 0.2
_LEFT, _CALL_OUTPUT = 0.35, 150
"""Of a session: the share that a state has of it; and what a reply with three calls takes."""
States = dict[ArmName, dict[str, list[RunRecord]]]
"""What each side was compressed to, by session: one state for each compression that succeeded."""
Compress = Callable[[str, int], Awaitable[Mapping[ArmName, list[RunRecord]]]]
"""Compresses a session on both sides until there are so many states of it."""


@dataclass(frozen=True)
class TasksPlan:
    """What is asked and played: next actions of each session, and rollouts of each task, controls included."""

    tasks: tuple[Task, ...] = ()
    sessions: tuple[Fixture, ...] = ()
    """Those in which an agent called tools."""
    sides: int = 0
    """0 where nothing was asked for."""

    @classmethod
    def of(cls, settings: Config, root: Path, cases: Sequence[Case], sides: int) -> TasksPlan:
        """Load the tasks of the sessions of a run."""
        fixtures = {case.fixture.name: case.fixture for case in cases}
        ledgers = {case.fixture.name: case.ledger for case in cases}
        acting = [session for session in fixtures.values() if any(map(tool_calls, session.messages))]
        return cls(tuple(find_tasks(root / settings.tasks, fixtures, ledgers)), tuple(acting), sides)

    @property
    def rollouts(self) -> int:
        return len(self.tasks) * SCREEN_RUNS * (self.sides + len(_CONTROLS))

    @property
    def minutes(self) -> int:
        asked = _CALL_MINUTES * len(self.sessions) * SCREEN_RUNS * (self.sides + 1)
        return math.ceil((_MINUTES * self.rollouts + asked) / _AT_ONCE) if self.sides else 0

    def counted(self, models: Models) -> list[CountedCalls]:
        """Return the calls of next actions and of the first stage."""
        if not self.sides:
            return []
        calls = SCREEN_RUNS * len(self.sessions) * (self.sides + 1)
        length = sum(count_messages(session.messages) for session in self.sessions)
        sent, again = length * SCREEN_RUNS * (1 + _LEFT * self.sides), length * (SCREEN_RUNS - 1)
        asked = CountedCalls("answer", models.answer, calls, sent, calls * _CALL_OUTPUT, again, purpose="next actions")
        calls, sent, got, again = (self.rollouts * each for each in (_TURNS, _INPUT, _OUTPUT, _CACHED))
        played = CountedCalls("answer", models.answer, calls, sent, got, again, purpose="rollouts of tasks")
        return [asked, played]

    def price(self, models: Models) -> str:
        """Say what it costs and how long it takes."""
        asked, played = self.counted(models)
        cost = total(estimate([asked, played], {models.answer: models.tariff(models.answer)})).cached_cost_usd
        price = "unknown price" if cost is None else f"about ${cost:.2f} with prompt caching"
        again = counted(2 * FRESH_RUNS, "rollout")
        more = f"; {again} more, from fresh compressions, for each task in which the sides differ" if self.tasks else ""
        return (
            f"{counted(len(self.tasks), 'task')}: {self.rollouts} rollouts, controls included, and "
            f"{counted(asked.calls, 'call')} for next actions: {price}, about {counted(self.minutes, 'minute')}{more}."
        )


class _ControlFile(Record):
    rollouts: list[RolloutRecord] = []
    next_actions: list[NextActions] = []


@dataclass
class _Player:
    """The tasks of one run, with what they need."""

    client: ModelClient
    sandbox: SandboxChoice
    results: Path
    log: RolloutLog
    states: States
    compress: Compress
    way: Speaks = "tools"
    outage: str = ""
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    growing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def one(self, built: Built, arm: RolloutArm, number: int, stage: Literal[1, 2] = 1) -> RolloutRecord | None:
        """Play one rollout; None is an outage, which is noted."""
        if self.outage:
            return None
        run = None if arm == "full" or arm == "nothing" else self._run(built.task, arm, number)
        state, front = _control_state(built.task, arm) if run is None else (run.messages, run.opaque)
        side: ArmName = "base" if arm == "base" else "candidate"
        draw = Draw(control=True, repeat=number) if arm in _CONTROLS else Draw(number, side)
        kind = ModelAgent if self.way == "tools" else TextAgent
        agent = kind(self.client, built.task.file.tools, draw, front)
        begins = digest([built.task.digest, state, None if front is None else vars(front)])[:16]
        plan = RolloutPlan(built.task.full_name, arm, number, stage, begins)
        async with self.turns:
            done = await roll(built, plan, agent, state, self.log)
        if isinstance(done, Failed):
            self.outage = self.outage or f"not measured: {done.message}"
            return None
        made = ModelUse() if run is None else run.use.get("compressor", ModelUse())
        tokens = {"compressor_input_tokens": made.input_tokens, "compressor_output_tokens": made.output_tokens}
        return done.model_copy(update=tokens)

    def _run(self, task: Task, arm: ArmName, number: int) -> RunRecord:
        runs = self.states[arm][task.fixture.name]
        return runs[number % len(runs)]

    async def controls(self, built: Built) -> list[RolloutRecord] | None:
        """Return the controls of a task: found from an earlier run of the same task and model, or played."""
        models = self.client.models
        key = digest({"task": built.task.digest, "session": built.task.fixture.digest, "model": models.answer,
                      "identity": models.identity(models.answer), "way": self.way})  # fmt: skip
        path = self.results / _CONTROL_FOLDER / f"{key}.json"
        if known := _read_controls(path).rollouts:
            return known
        played = await asyncio.gather(
            *(self.one(built, arm, number) for arm in _CONTROLS for number in range(SCREEN_RUNS))
        )
        found = [one for one in played if one is not None]
        if len(found) < len(played):
            return None
        write_atomic(path, pretty(_ControlFile(rollouts=found).model_dump(mode="json")))
        return found

    async def next_actions(self, session: Fixture) -> list[NextActions]:
        """Ask what would be done next, from the full transcript and from each side's states."""
        tools, models = session_tools(session.messages), self.client.models
        key = digest({"session": session.digest, "model": models.answer, "identity": models.identity(models.answer)})
        path = self.results / _CONTROL_FOLDER / f"next-{key}.json"

        async def ask(arm: RolloutArm, number: int, run: RunRecord | None) -> NextActions | None:
            if self.outage:
                return None
            side: ArmName = "base" if arm == "base" else "candidate"
            draw = Draw(control=True, repeat=number) if run is None else Draw(number, side)
            state, front = (session.messages, None) if run is None else (run.messages, run.opaque)
            async with self.turns:
                calls = await next_actions(self.client, state, tools, draw, front)
            if isinstance(calls, Failed):
                self.outage = self.outage or f"not measured: {calls.message}"
                return None
            return NextActions(session=session.name, arm=arm, calls=calls)

        full = _read_controls(path).next_actions
        if not full:
            asked = await asyncio.gather(*(ask("full", number, None) for number in range(SCREEN_RUNS)))
            full = [one for one in asked if one is not None]
            if len(full) == SCREEN_RUNS:
                write_atomic(path, pretty(_ControlFile(next_actions=full).model_dump(mode="json")))
        runs = [(arm, *item) for arm, of in self.states.items() for item in enumerate(of[session.name][:SCREEN_RUNS])]
        return [*full, *(one for one in await asyncio.gather(*(ask(*item) for item in runs)) if one is not None)]

    async def sides(self, built: Built, arms: Sequence[RolloutArm]) -> list[RolloutRecord]:
        """Play both sides in alternation, and five fresh rollouts a side where they differ."""
        first = await self._several(built, arms, range(SCREEN_RUNS), 1)
        if len(arms) < 2 or not any(
            looked_at_again(*(sum(one.fails(measure) for one in first if one.arm == arm) for arm in arms))
            for measure in MEASURES
        ):
            return first
        # A rollout is as lucky as the state that it goes on from: fresh ones need states that no rollout has seen.
        name = built.task.fixture.name
        async with self.growing:
            if any(len(runs[name]) < SCREEN_RUNS + FRESH_RUNS for runs in self.states.values()):
                for arm, runs in (await self.compress(name, SCREEN_RUNS + FRESH_RUNS)).items():
                    self.states[arm][name] = runs
        most = min(len(runs[name]) for runs in self.states.values())
        return first + await self._several(built, arms, range(SCREEN_RUNS, min(most, SCREEN_RUNS + FRESH_RUNS)), 2)

    async def _several(
        self, built: Built, arms: Sequence[RolloutArm], numbers: range, stage: Literal[1, 2]
    ) -> list[RolloutRecord]:
        played = await asyncio.gather(*(self.one(built, arm, number, stage) for number in numbers for arm in arms))
        return [one for one in played if one is not None]


def _read_controls(path: Path) -> _ControlFile:
    try:
        return _ControlFile.model_validate(read_json(path)) if path.exists() else _ControlFile()
    except (UserError, ValidationError):
        return _ControlFile()  # of another version: asked again


def _control_state(task: Task, arm: RolloutArm) -> tuple[list[Message], None]:
    messages = task.fixture.messages
    return messages if arm == "full" else [one for one in messages[:1] if one.get("role") == "system"], None


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


async def _ready(task: Task, sandbox: SandboxChoice, states: States) -> Built | str:
    """Build a workspace, or say why the task does not count here."""
    if task.file.at != "end":
        return "the state after an earlier segment is not kept"
    if lost := [arm for arm, runs in states.items() if not runs.get(task.fixture.name)]:
        return f"the {lost[0]} has no state of {task.fixture.name}"
    if lacking := await missing(task, sandbox):
        return f"the sandbox has no {lacking[0]}"
    return await build(task, sandbox)


async def play_tasks(
    plan: TasksPlan,
    client: ModelClient,
    sandbox: SandboxChoice,
    results: Path,
    folder: Path,
    states: States,
    compress: Compress,
    prices: TaskConfig,
) -> PlayedTasks:
    """Ask what would be done next, then play tasks, behind controls; an outage leaves rollouts out and is said."""
    model = client.models.answer
    player = _Player(client, sandbox, results, RolloutLog(folder / ROLLOUTS), states, compress)
    asked = await asyncio.gather(*map(player.next_actions, plan.sessions))
    played = PlayedTasks(model=model, prices=prices, next_actions=[one for found in asked for one in found])
    way = await speaks(client) if plan.tasks else "tools"
    if isinstance(way, Failed):
        return played.model_copy(update={"not_measured": f"not measured: {way.message}"})
    if way is None:
        why = f"{model} made no obvious tool call, neither with tools nor in JSON"
        return played.model_copy(update={"not_measured": f"not measured: {why}"})
    player.way = way
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

    await asyncio.gather(*map(one, plan.tasks))
    return played.model_copy(
        update={
            "tasks": sorted(told, key=lambda item: item.name),
            "rollouts": sorted(rollouts, key=lambda item: (item.task, item.arm, item.number)),
            "not_measured": player.outage,
        }
    )
