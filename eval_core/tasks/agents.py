"""Who goes on from a state: a model with tools, a model in plain text, or a script that restates what is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from eval_core.base.messages import Message
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.base.tokens import count_messages, count_text
from eval_core.domain.call import Acceptance, Draw, Failed, ModelCall, OpaqueState, ReplyCall, Usage
from eval_core.domain.rollout import ActionRecord
from eval_core.judging.answering import state_messages
from eval_core.judging.obeying import tools_called
from eval_core.models.client import ModelClient
from eval_core.tasks.task import TOOLS, Task, ToolCall

REPLY_TOKENS = 4_000
"""The longest reply: a file that is written is part of it."""

_TEXT = {"type": "string"}
_TOOL_FIELDS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "terminal": ("Run a shell command in the working folder.", {"command": _TEXT}, ["command"]),
    "read_file": (
        "Read a file.",
        {"path": _TEXT, "offset": {"type": "integer"}, "limit": {"type": "integer"}},
        ["path"],
    ),
    "write_file": ("Write a whole file.", {"path": _TEXT, "content": _TEXT}, ["path", "content"]),
    "patch": (
        "Replace one exact string in a file.",
        {"path": _TEXT, "old_string": _TEXT, "new_string": _TEXT, "replace_all": {"type": "boolean"}},
        ["path", "old_string", "new_string"],
    ),
    "search_files": (
        "Search the contents of files, or their names with target: files.",
        {"pattern": _TEXT, "path": _TEXT, "target": {"enum": ["content", "files"]}},
        ["pattern"],
    ),
}


def tool_schemas(names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the tools as they are offered to a model."""
    return [
        {
            "name": name,
            "description": _TOOL_FIELDS[name][0],
            "parameters": {"type": "object", "properties": _TOOL_FIELDS[name][1], "required": _TOOL_FIELDS[name][2]},
        }
        for name in TOOLS
        if name in names
    ]


@dataclass(frozen=True)
class Turn:
    """One reply: calls, or last words."""

    calls: tuple[ReplyCall, ...]
    text: str
    usage: Usage


class Agent(Protocol):
    """Takes the next turn, given everything so far."""

    async def turn(self, messages: Sequence[Message]) -> Turn | Failed:
        """Reply to the last message."""

    def said(self, turn: Turn) -> list[Message]:
        """Return the turn as it stands in the prompt of the next one."""

    def told(self, results: Sequence[tuple[ReplyCall, str]]) -> list[Message]:
        """Return the results of its calls as they stand there."""


@dataclass(frozen=True)
class ModelAgent:
    """A model that calls tools."""

    client: ModelClient
    tools: Sequence[str]
    draw: Draw
    front: OpaqueState | None = None

    def call(self, messages: Sequence[Message]) -> ModelCall:
        """Return the call of a turn."""
        models = self.client.models
        plain = ModelCall(
            role="answer",
            model=models.answer,
            messages=tuple(messages),
            max_tokens=REPLY_TOKENS,
            draw=self.draw,
            temperature=models.temperature,
            front=self.front,
        )
        return plain.offering(tool_schemas(self.tools))

    async def turn(self, messages: Sequence[Message]) -> Turn | Failed:
        """Ask the model."""
        outcome = await self.client.complete(self.call(messages))
        return outcome if isinstance(outcome, Failed) else Turn(outcome.calls, outcome.text, outcome.usage)

    def said(self, turn: Turn) -> list[Message]:
        """Return the reply in the shape that providers take."""
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in turn.calls
        ]
        return [{"role": "assistant", "content": turn.text or None, **({"tool_calls": calls} if calls else {})}]

    def told(self, results: Sequence[tuple[ReplyCall, str]]) -> list[Message]:
        """Return one message for each result."""
        return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text in results]


_PROTOCOL = """Reply with one JSON object and nothing else. To call a tool: {"tool": NAME, "arguments": {...}}.
When the job is done, or you cannot go on: {"say": "what you tell the user"}. The tools:
"""
_REPLY_SCHEMA = {
    "type": "object",
    "properties": {"tool": _TEXT, "arguments": {"type": "object"}, "say": _TEXT},
    "additionalProperties": False,
}


def _object(text: str) -> dict[str, Any] | None:
    begin, end = text.find("{"), text.rfind("}")
    try:
        found = parse_json(text[begin : end + 1]) if 0 <= begin < end else None
    except BadJson:
        return None
    known = isinstance(found, dict) and (isinstance(found.get("tool"), str) or isinstance(found.get("say"), str))
    return found if known else None


@dataclass(frozen=True)
class TextAgent(ModelAgent):
    """A model whose server does not pass tools on: it is asked for JSON."""

    def call(self, messages: Sequence[Message]) -> ModelCall:
        """Return the call of a turn, with the tools in words."""
        plain = super().call(messages)
        words = _PROTOCOL + "\n".join(json.dumps(schema) for schema in tool_schemas(self.tools))
        first, *rest = plain.messages
        begun = {**first, "content": f"{first.get('content') or ''}\n\n{words}"}
        params = {name: value for name, value in plain.params.items() if name not in ("tools", "tool_choice")}
        return ModelCall(
            **{**vars(plain), "messages": (begun, *rest), "params": params, "response_schema": _REPLY_SCHEMA}
        )

    async def turn(self, messages: Sequence[Message]) -> Turn | Failed:
        """Ask for an object, once more where none came."""
        call = self.call(messages)

        def problem(text: str) -> str | None:
            return None if _object(text) else "the reply is no JSON object with tool and arguments, or say"

        def amend(why: str) -> tuple[Message, ...]:
            return *call.messages, {"role": "user", "content": f"That could not be used: {why}. {_PROTOCOL}"}

        outcome = await self.client.complete(call, Acceptance(problem, amend))
        if isinstance(outcome, Failed):
            return outcome
        found = _object(outcome.text) or {}
        if "tool" not in found:
            return Turn((), str(found.get("say") or ""), outcome.usage)
        arguments = json.dumps(found.get("arguments") or {}, ensure_ascii=False)
        return Turn((ReplyCall("call", str(found["tool"]), arguments),), outcome.text, outcome.usage)

    def said(self, turn: Turn) -> list[Message]:
        """Return the reply as it was written."""
        return [{"role": "assistant", "content": turn.text}]

    def told(self, results: Sequence[tuple[ReplyCall, str]]) -> list[Message]:
        """Return all results as one message of the user."""
        text = "\n\n".join(f"[result of {call.name}]\n{result}" for call, result in results)
        return [{"role": "user", "content": text}]


Speaks = Literal["tools", "text"]
_OBVIOUS = "Read the file notes.txt, and tell me what it says."
_ASKED = (
    {"role": "system", "content": "You work in a user's repository through tools."},
    {"role": "user", "content": _OBVIOUS},
)


async def speaks(client: ModelClient, repeat: int = 0) -> Speaks | Failed | None:
    """Ask for one obvious tool call, before anything else is paid; None where the model can do it in neither way."""
    tried: tuple[tuple[Speaks, type[ModelAgent]], ...] = (("tools", ModelAgent), ("text", TextAgent))
    for name, kind in tried:
        turn = await kind(client, TOOLS, Draw(control=True, repeat=repeat)).turn(_ASKED)
        if isinstance(turn, Failed) and turn.kind not in ("bad_request", "malformed", "empty", "truncated"):
            return turn
        if isinstance(turn, Turn) and any("notes.txt" in call.arguments for call in turn.calls):
            return name
    return None


ACTIONS = 3
_ACTIONS_ROOM = 1_200
_NEXT = """Go on with the work. Which {count} tool calls do you make next? Nothing is run yet. Reply with a JSON list of
{count} objects and nothing else, each {{"tool": NAME, "arguments": {{...}}}}. The tools, each with its arguments:
{tools}"""


async def next_actions(
    client: ModelClient,
    state: Sequence[Message],
    tools: Mapping[str, Sequence[str]],
    draw: Draw,
    front: OpaqueState | None = None,
) -> list[ActionRecord] | Failed:
    """Ask once; a reply that names no call is one that names none."""
    listed = "\n".join(f"{name}({', '.join(given)})" for name, given in sorted(tools.items()))
    before = state_messages([] if front is not None else list(state))
    asked: Message = {"role": "user", "content": _NEXT.format(count=ACTIONS, tools=listed)}
    outcome = await client.complete(
        ModelCall(
            role="answer",
            model=client.models.answer,
            messages=(*before, asked),
            max_tokens=_ACTIONS_ROOM,
            draw=draw,
            temperature=client.models.temperature,
            front=front,
            shared=0 if front is not None else len(before),
        )
    )
    if isinstance(outcome, Failed):
        return outcome
    named = list(tools_called(outcome.text))[:ACTIONS]
    return [ActionRecord(tool=tool, given=json.dumps(given, ensure_ascii=False), result="") for tool, given in named]


@dataclass
class ScriptedAgent:
    """The solution of a task, by somebody who knows some of its facts. It asks no model and never enters a verdict."""

    task: Task
    known: frozenset[str]
    _left: list[ToolCall] = field(default_factory=list)
    _sent: int = 0

    def __post_init__(self) -> None:
        """Lay out the calls."""
        self._left = [call for step in self.task.solution.steps for call in step.calls(self.known)]

    async def turn(self, messages: Sequence[Message]) -> Turn:
        """Make the next call, and count what a model with a prompt cache would be charged for it."""
        sent = count_messages(messages)
        cached, self._sent = self._sent, sent
        if not self._left:
            says = self.task.solution.says
            return Turn((), says, Usage(sent, min(cached, sent), count_text(says)))
        call = self._left.pop(0)
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        reply = ReplyCall(f"call_{len(messages)}", call.tool, arguments)
        return Turn((reply,), "", Usage(sent, min(cached, sent), count_text(arguments) + 12))

    said = ModelAgent.said
    told = ModelAgent.told
