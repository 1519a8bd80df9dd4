"""Reading a transcript: messages become events that a summariser can sort into sections."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """One tool call with its answer."""

    tool: str
    arguments: dict[str, Any]
    output: str
    """The answer as text, JSON unfolded to its readable leaves."""
    failed: bool
    values: dict[str, Any] = field(default_factory=dict)
    """The answer's JSON object, where it is one."""


@dataclass(frozen=True)
class Event:
    """Somebody's words, or a tool call with its answer."""

    role: str
    text: str = ""
    call: Call | None = None


def message_text(message: dict[str, Any]) -> str:
    """Return the text of a message's content, whether a string, parts or nothing."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part if isinstance(part, str) else str(part.get("text") or "") for part in content)
    return content if isinstance(content, str) else ""


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _readable(text: str) -> str:
    values = _object(text)
    if not values:
        return text
    leaves = []
    for key, value in values.items():
        if isinstance(value, str):
            leaves.append(value if key in ("output", "content", "text", "stdout") else f"{key}: {value}")
        elif isinstance(value, list | dict):
            items = value if isinstance(value, list) else [value]
            leaves.extend(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items)
        elif value not in (None, "", False):
            leaves.append(f"{key}: {value}")
    return "\n".join(leaves)


def _failed(values: dict[str, Any], text: str) -> bool:
    if values:
        code = values.get("exit_code", 0)
        return bool(values.get("error")) or (isinstance(code, int) and code != 0) or values.get("success") is False
    return text.startswith(("Error", "error:", "Traceback"))


def events(messages: Iterable[dict[str, Any]]) -> Iterator[Event]:
    """Yield what happened, in order; each tool call comes once, when it is answered."""
    open_calls: dict[str, dict[str, Any]] = {}
    for message in messages:
        role = str(message.get("role", ""))
        text = message_text(message)
        if role == "tool":
            call = open_calls.pop(str(message.get("tool_call_id")), None)
            function = (call or {}).get("function") or {}
            raw = function.get("arguments", "")
            values = _object(text)
            yield Event(
                role,
                call=Call(
                    tool=str(function.get("name", "tool")),
                    arguments=_object(raw) if isinstance(raw, str) else dict(raw or {}),
                    output=_readable(text),
                    failed=_failed(values, text),
                    values=values,
                ),
            )
            continue
        if text.strip():
            yield Event(role, text=text)
        for call in message.get("tool_calls") or ():
            open_calls[str(call.get("id"))] = call
