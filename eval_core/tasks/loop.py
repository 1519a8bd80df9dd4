"""One rollout: state, the user's next words, then calls and results until the agent stops or has to."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from eval_core.base.messages import Message
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.call import Failed, ReplyCall, Usage
from eval_core.domain.rollout import ActionRecord, CheckRecord, RolloutArm, RolloutRecord
from eval_core.judging.prompts import as_turns
from eval_core.tasks.agents import Agent, Turn
from eval_core.tasks.task_workspace import Built, Tree, Workspace, WorkspaceLost, run_checks

_SAME_RESULT = 3
"""The same call with the same result so often is a loop."""
_SHOWN = 400
_OF_THE_AGENT = {
    "context_length": "the state and what followed no longer fit the model",
    "empty": "an empty reply",
    "refusal": "a refusal",
    "truncated": "a reply that was cut off",
    "malformed": "a reply that could not be used",
}
"""Failures that are no outage: the agent itself came to an end."""


@dataclass
class RolloutLog:
    """What was done in rollouts, a line each: results of calls that a model has read, and finished rollouts.

    The same command seldom prints the same twice, and the prompt that a resumed rollout sends has to be the one that
    was paid for. So commands run again, for the workspace's sake, and the prompt gets the result that is written here.
    """

    path: Path
    _steps: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    _ends: dict[str, RolloutRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read what is there; a torn last line is cut off."""
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self.path.write_bytes(whole)
        for line in whole.splitlines():
            try:
                self._take(parse_json(line))
            except (BadJson, KeyError, TypeError, ValueError):
                continue  # it is done again

    def _take(self, line: dict[str, Any]) -> None:
        if "record" in line:
            self._ends[line["rollout"]] = RolloutRecord.model_validate(line["record"])
        else:
            self._steps[line["rollout"], line["step"]] = line

    def end(self, rollout: str) -> RolloutRecord | None:
        """Return a rollout that is finished."""
        return self._ends.get(rollout)

    def result(self, rollout: str, step: int, call: ReplyCall) -> str | None:
        """Return what the model has read of a call, if it was made before."""
        found = self._steps.get((rollout, step))
        if found is None or (found["tool"], found["given"]) != (call.name, call.arguments):
            return None
        return str(found["result"])

    def add(self, line: dict[str, Any]) -> None:
        """Append one line, on disk before anything is sent that depends on it."""
        self._take(line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as stream:
            stream.write(json.dumps(line, ensure_ascii=True).encode("ascii") + b"\n")
            stream.flush()
            os.fsync(stream.fileno())


@dataclass(frozen=True)
class RolloutPlan:
    """Which rollout it is."""

    task: str
    arm: RolloutArm
    number: int
    stage: Literal[1, 2] = 1
    begins: str = ""
    """What names the task's files and the state: an edited task is another one."""

    @property
    def key(self) -> str:
        """What it is filed under."""
        return f"{self.task}|{self.arm}|{self.number}|{self.stage}|{self.begins}"


@dataclass
class _Rollout:
    """One rollout under way."""

    built: Built
    plan: RolloutPlan
    agent: Agent
    log: RolloutLog | None
    actions: list[ActionRecord] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    turns: int = 0
    spent_s: float = 0.0
    steps: int = 0
    seen: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    says: str = ""

    async def go(self, workspace: Workspace, messages: list[Message]) -> str | Failed:
        """Take turns until there is an end; return its name, or the outage."""
        limits = self.built.task.file.limits
        while True:
            if self.turns >= limits.turns:
                return "turns"
            if self.usage.tokens >= limits.tokens:
                return "tokens"
            if self.spent_s >= limits.seconds:
                return "seconds"
            turn = await self.agent.turn(messages)
            if isinstance(turn, Failed):
                if turn.kind not in _OF_THE_AGENT:
                    return turn
                self.says = _OF_THE_AGENT[turn.kind]
                return "no usable reply"
            self.turns += 1
            self.usage = self.usage.plus(turn.usage)
            if not turn.calls:
                self.says = turn.text
                return "stopped"
            messages += await self._act(workspace, turn)
            if max(self.seen.values(), default=0) >= _SAME_RESULT:
                return "loops"

    async def _act(self, workspace: Workspace, turn: Turn) -> list[Message]:
        results = []
        for call in turn.calls:
            result = await self._result(workspace, call)
            self.seen[call.name, call.arguments, result] += 1
            self.actions.append(ActionRecord(tool=call.name, given=call.arguments[:_SHOWN], result=result[:_SHOWN]))
            results.append((call, result))
        return [*self.agent.said(turn), *self.agent.told(results)]

    async def _result(self, workspace: Workspace, call: ReplyCall) -> str:
        given = call.given
        self.calls.append((call.name, given or {}))
        began, step = time.monotonic(), self.steps
        self.steps += 1
        if given is None:
            result = json.dumps({"error": "the arguments are no JSON object"})
        elif call.name not in self.built.task.file.tools:
            result = json.dumps({"error": f"there is no tool {call.name!r}"})
        else:
            result = await workspace.call(call.name, given)
        self.spent_s += time.monotonic() - began
        if self.log is None:
            return result
        known = self.log.result(self.plan.key, step, call)
        if known is None:
            line = {"tool": call.name, "given": call.arguments, "result": result}
            self.log.add({"rollout": self.plan.key, "step": step, **line})
        return result if known is None else known


def opening(state: Sequence[Message], instruction: str) -> list[Message]:
    """Return what the agent begins with: the state as turns that every provider accepts, then the user's words."""
    system, turns = as_turns(state)
    begun: list[Message] = [{"role": "system", "content": system}] if system else []
    return [*begun, *turns, {"role": "user", "content": instruction}]


async def roll(
    built: Built, plan: RolloutPlan, agent: Agent, state: Sequence[Message], log: RolloutLog | None = None
) -> RolloutRecord | Failed:
    """Let an agent do a task from a state, and check what it left; an outage is no result."""
    if log is not None and (known := log.end(plan.key)) is not None:
        return known
    rollout = _Rollout(built, plan, agent, log)
    tree: Tree | None = None
    began = time.monotonic()
    try:
        async with built.open() as workspace:
            ended = await rollout.go(workspace, opening(state, built.task.file.instruction))
            if isinstance(ended, Failed):
                return ended
            tree = await workspace.pack()
    except WorkspaceLost as exc:
        ended, rollout.says = "the workspace was lost", str(exc)
    record = RolloutRecord(
        task=plan.task,
        arm=plan.arm,
        number=plan.number,
        stage=plan.stage,
        ended=ended,
        says=rollout.says[:_SHOWN],
        checks=await _checks(built, tree, rollout),
        actions=rollout.actions,
        turns=rollout.turns,
        **rollout.usage.told,
        seconds=round(time.monotonic() - began, 3),
    )
    if log is not None:
        log.add({"rollout": plan.key, "record": record.model_dump(mode="json")})
    return record


async def _checks(built: Built, tree: Tree | None, rollout: _Rollout) -> list[CheckRecord]:
    """Check what is left; of a lost workspace nothing is finished, and what was broken in it is not known."""
    if tree is None:
        lost = [check for check in built.task.file.checks if check.kind == "done"]
        return [CheckRecord(name=check.name, kind=check.kind, passed=False, says=rollout.says) for check in lost]
    return await run_checks(built, tree, rollout.calls)
