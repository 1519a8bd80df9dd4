"""Chat messages in the OpenAI shape: the one structure that stays a plain dict.

Compressors under test receive and return exactly these dicts, so wrapping them would only add a
conversion at each border.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

ROLES = ("system", "user", "assistant", "tool", "developer")
TEXT_PARTS = ("text", "input_text", "output_text")

Message = dict[str, Any]
ToolCall = dict[str, Any]


def is_text_part(part: Any) -> bool:
    """Tell whether a part of a content is text: a plain string, or an object that says so and holds one."""
    if isinstance(part, str):
        return True
    return isinstance(part, dict) and part.get("type", "text") in TEXT_PARTS and isinstance(part.get("text"), str)


def content_text(message: Message) -> str:
    """Return the readable text of a message's content, whatever shape the content has; an image has none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else str(part.get("text") or "") for part in content)
    return ""


def tool_calls(message: Message) -> Sequence[ToolCall]:
    """Return the tool calls of a message, or nothing."""
    return message.get("tool_calls") or ()


def call_name(call: ToolCall) -> str:
    return str((call.get("function") or {}).get("name", ""))


def call_arguments(call: ToolCall) -> str:
    """Return the raw (JSON) argument string of a tool call."""
    arguments = (call.get("function") or {}).get("arguments", "")
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


@dataclass(frozen=True)
class Said:
    """What a message says: all that is counted, searched for facts and shown to a model, and nothing else is."""

    content: str
    calls: tuple[tuple[str, str], ...] = ()
    """The name and the raw arguments of each tool call."""

    @property
    def texts(self) -> Iterator[str]:
        """Every piece of it, in order."""
        yield self.content
        for call in self.calls:
            yield from call


def said(message: Message) -> Said:
    """Return what a message says.

    Tokens, facts and prompts all read messages through this, so that no text can reach a model without being counted.
    """
    return Said(content_text(message), tuple((call_name(call), call_arguments(call)) for call in tool_calls(message)))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict | list):
                yield f"{key}:"
                yield from _leaves(inner)
            else:
                yield f"{key}: {inner if isinstance(inner, str) else json.dumps(inner)}"
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value if isinstance(value, str) else json.dumps(value)


def decoded(text: str) -> str:
    """Return text with an outer JSON document unfolded to plain lines, so that escapes hide nothing."""
    stripped = text.strip()
    if stripped[:1] not in ("{", "["):
        return text
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return text
    return "\n".join(_leaves(value))


def full_text(message: Message) -> str:
    """Return everything a reader of the message sees: content and tool calls, JSON unfolded."""
    whole = said(message)
    parts = [decoded(whole.content), *(f"{name}\n{decoded(arguments)}" for name, arguments in whole.calls)]
    return "\n".join(part for part in parts if part)


def render(messages: Iterable[Message]) -> str:
    """Return the whole list as one text, in order."""
    return "\n\n".join(f"[{message.get('role', '?')}]\n{full_text(message)}" for message in messages)


def message_problems(messages: list[Message]) -> Iterator[str]:
    """Yield everything that a provider would refuse in a message list."""
    open_calls: dict[str, int] = {}
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            yield f"messages[{index}].role: {role!r} is not one of {', '.join(ROLES)}"
        if role == "tool":
            call = message.get("tool_call_id")
            if not isinstance(call, str) or call not in open_calls:
                yield (
                    f"messages[{index}].tool_call_id: {call!r} answers no tool call before it; "
                    "drop the message or restore the call"
                )
            else:
                del open_calls[call]
        elif open_calls:
            for call, at in open_calls.items():
                yield f"messages[{at}].tool_calls: {call!r} is not answered before messages[{index}]"
            open_calls.clear()
        yield from _content_problems(index, message)
        for call in tool_calls(message) if isinstance(message.get("tool_calls"), list) else ():
            if not (
                isinstance(call, dict) and isinstance(call.get("id"), str) and isinstance(call.get("function"), dict)
            ):
                yield f"messages[{index}].tool_calls: each call needs an id (text) and a function (an object)"
            else:
                open_calls[call["id"]] = index
    for call, at in open_calls.items():
        yield f"messages[{at}].tool_calls: {call!r} is never answered"


def _content_problems(index: int, message: Message) -> Iterator[str]:
    content = message.get("content")
    if not isinstance(content, str | list | None):
        yield f"messages[{index}].content: must be text, a list of parts or null, not {type(content).__name__}"
    if isinstance(content, list) and not all(isinstance(part, str | dict) for part in content):
        yield f"messages[{index}].content: parts must be text or objects"
    if content is None and message.get("role") in ("system", "user", "tool"):
        yield f"messages[{index}].content: null is only allowed for an assistant that calls tools"
    if not isinstance(message.get("tool_calls") or [], list):
        yield f"messages[{index}].tool_calls: must be a list"


def message_problem(messages: list[Message]) -> str | None:
    """Return the first thing a provider would refuse in a message list, or None."""
    return next(message_problems(messages), None)
