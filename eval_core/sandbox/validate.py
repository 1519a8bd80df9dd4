"""Reading what the child sends as what it is: the bytes of a stranger."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from eval_core.base.messages import Message, message_problem
from eval_core.domain.call import OpaqueState

__all__ = [
    "MAX_FRAME", "BadFrame", "StepResult", "check_values", "error_text", "list_problem", "read_frame", "read_step",
    "strict_json",
]  # fmt: skip

MAX_FRAME = 16 * 1024 * 1024
MAX_DEPTH = 32
MAX_MESSAGES = 20_000
MAX_VALUES = 20 * MAX_MESSAGES
"""In all objects and lists of one result."""
MAX_NUMBER = 10**15


class BadFrame(Exception):
    """The child broke the protocol; the text says how, for the report."""


def _constant(name: str) -> Any:
    raise BadFrame(f"the result holds {name}, which is no number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadFrame(f"the result holds the number {text[:20]}, which is not finite")
    return value


def _int(text: str) -> int:
    if len(text) > 20 or abs(int(text)) > MAX_NUMBER:
        raise BadFrame(f"the result holds a number of {len(text)} digits")
    return int(text)


def strict_json(text: str) -> Any:
    """Parse JSON without the numbers that JSON does not have; ValueError or BadFrame for anything else."""
    try:
        return json.loads(text, parse_constant=_constant, parse_float=_float, parse_int=_int)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def check_values(value: Any) -> None:
    """Walk without recursion: the nesting is the sender's choice."""
    stack: list[tuple[Any, int]] = [(value, 0)]
    left = MAX_VALUES
    while stack:
        item, depth = stack.pop()
        left -= len(item) if isinstance(item, dict | list) else 0
        if left < 0:
            raise BadFrame(f"the result holds more than {MAX_VALUES:,} values")
        if depth > MAX_DEPTH:
            raise BadFrame(f"the result is nested deeper than {MAX_DEPTH} levels")
        if isinstance(item, str):
            if not item.isascii() and any("\ud800" <= character <= "\udfff" for character in item):
                raise BadFrame("the result holds half of a surrogate pair, which is no text")
        elif isinstance(item, dict):
            stack += [(inner, depth + 1) for pair in item.items() for inner in pair]
        elif isinstance(item, list):
            stack += [(inner, depth + 1) for inner in item]


def read_frame(data: bytes, nonce: str) -> dict[str, Any]:
    """Parse one frame and check everything about it that does not depend on its phase."""
    try:
        frame = strict_json(data.decode("utf-8"))
    except (UnicodeDecodeError, ValueError):
        raise BadFrame("the compressor's process wrote over the result channel: not JSON") from None
    if not isinstance(frame, dict) or frame.get("nonce") != nonce or not isinstance(frame.get("phase"), str):
        raise BadFrame("the compressor's process wrote over the result channel: not a frame of this run")
    check_values(frame)
    return frame


def error_text(frame: dict[str, Any]) -> str:
    """Return `Type: text (at place)` from an error frame, capped."""
    error = frame.get("error")
    if not isinstance(error, dict):
        return "an error that it did not describe"
    kind, text, place = (str(error.get(name) or "") for name in ("type", "text", "place"))
    said = text[:4000] if kind == "SetupError" else f"{kind[:200]}: {text[:2000]}" if text else kind[:200]
    return f"{said} (at {place[:500]})" if place else said


@dataclass(frozen=True)
class StepResult:
    """A step's frame after checking."""

    messages: list[Message]
    same_object: bool
    degraded: bool
    reason: str
    state: Any
    """The adapter's own, for a retry."""
    opaque: OpaqueState | None = None
    """Instead of messages, where only the provider can read the compressed state."""
    import_seconds: float = 0.0
    """Spent importing modules during the step, as the launcher saw it."""
    reported_calls: int | None = None
    """The model calls that the compressor counted, where it says."""


def _message_shape(message: Any, index: int) -> str | None:
    """Return what is wrong with one message's own fields, before they are looked at together."""
    place = f"messages[{index}]"
    if not isinstance(message, dict):
        return f"{place}: a {type(message).__name__}, not an object"
    for name in ("role", "tool_call_id", "name"):
        value = message.get(name)
        if value is not None and not isinstance(value, str):
            return f"{place}.{name}: must be text, not {type(value).__name__}"
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and not isinstance(part.get("text", ""), str):
            return f"{place}.content: a part's text must be text"
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            return f"{place}.tool_calls: each call needs a function with a name"
        if not isinstance(function.get("arguments", ""), str | dict):
            return f"{place}.tool_calls: arguments must be text"
    return None


def list_problem(messages: Any) -> str | None:
    if not isinstance(messages, list):
        return f"returned a {type(messages).__name__}, not a list of messages"
    if not messages:
        return "returned an empty list: nothing of the session is left"
    if len(messages) > MAX_MESSAGES:
        return f"returned {len(messages):,} messages, more than the {MAX_MESSAGES:,} that are accepted"
    for index, message in enumerate(messages):
        if problem := _message_shape(message, index):
            return f"returned a broken list: {problem}"
    problem = message_problem(messages)
    return f"returned a list that a provider would refuse: {problem}" if problem else None


def read_step(frame: dict[str, Any]) -> StepResult | str:
    """Return the step's result, or what the compressor did wrong."""
    phase = frame["phase"]
    if phase == "raised":
        return f"the compressor raised {error_text(frame)}"
    if phase == "bad_result":
        return f"the compressor {str(frame.get('problem') or 'returned no message list')[:2000]}"
    if phase != "step":
        raise BadFrame(f"the compressor's process sent {phase[:40]!r} in the middle of a step")
    if problem := list_problem(frame.get("messages")):
        return f"the compressor {problem}"
    status = frame.get("status")
    told = status if isinstance(status, dict) else {}
    told_imports = frame.get("import_seconds")
    return StepResult(
        messages=frame["messages"],
        same_object=frame.get("same_object") is True,
        degraded=bool(told.get("degraded")),
        reason=str(told.get("error") or "")[:2000],
        state=frame.get("state"),
        import_seconds=float(told_imports) if isinstance(told_imports, int | float) else 0.0,
    )
