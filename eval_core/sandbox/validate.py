"""Reading what the child sends as what it is: the bytes of a stranger."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from eval_core.base.files import canonical
from eval_core.base.messages import Message, call_name, is_text_part, message_problem, tool_calls
from eval_core.domain.call import OpaqueState

MAX_FRAME = 16 * 1024 * 1024
MAX_DEPTH = 32
MAX_MESSAGES = 20_000
MAX_VALUES = 20 * MAX_MESSAGES
"""In all objects and lists of one result."""
MAX_NUMBER = 10**15
MAX_NAME = 64
"""Of a tool, as providers limit it; longer ones are refused unless the session has them."""
MAX_ID = 256


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
    """Rebuilt from the fields that say something, and those of the session's own messages."""
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
    returned: list[Message] | None = None
    """The messages with the compressor's own fields, for it to get back; nobody else reads them."""


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


def _list_problem(messages: Any) -> str | None:
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


class _Refused(Exception):
    """Part of a message that a provider would bill or refuse, and nobody here could count."""


@dataclass(frozen=True)
class _Session:
    """What the compressor was given: this it may hand on as it is, whatever it holds."""

    messages: frozenset[bytes]
    parts: frozenset[bytes]
    names: frozenset[str]
    """Of senders and of tools."""
    ids: frozenset[str]

    @classmethod
    def of(cls, messages: Iterable[Message]) -> _Session:
        given = list(messages)
        calls = [call for message in given for call in tool_calls(message)]
        contents = [message["content"] for message in given if isinstance(message.get("content"), list)]
        return cls(
            frozenset(map(canonical, given)),
            frozenset(canonical(part) for content in contents for part in content if not is_text_part(part)),
            frozenset([*map(call_name, calls), *(str(message["name"]) for message in given if message.get("name"))]),
            frozenset(str(call.get("id", "")) for call in calls),
        )

    def _part(self, part: Any, place: str) -> Any:
        if isinstance(part, str):
            return part
        if is_text_part(part):
            return {"type": part.get("type", "text"), "text": part["text"]}
        if canonical(part) in self.parts:
            return part
        kind = str(part.get("type") or "without a type")[:40]
        raise _Refused(
            f"{place}.content: a part that is not text ({kind}) and not in the session; a compressed state is text"
        )

    def _call(self, call: dict[str, Any], place: str) -> dict[str, Any]:
        identity, name = call["id"], call_name(call)
        if identity not in self.ids and len(identity) > MAX_ID:
            raise _Refused(f"{place}.tool_calls: an id of {len(identity):,} characters; at most {MAX_ID} are accepted")
        if name not in self.names and not 0 < len(name.strip()) <= len(name) <= MAX_NAME:
            raise _Refused(
                f"{place}.tool_calls: a tool's name of {len(name):,} characters; 1 to {MAX_NAME} are accepted"
            )
        function = {key: call["function"][key] for key in ("name", "arguments") if key in call["function"]}
        return {"id": identity, "type": "function", "function": function}

    def rebuilt(self, message: Message, place: str) -> Message:
        """Return the message with the fields that say something; one of the session's own stays as it is."""
        if canonical(message) in self.messages:
            return message
        content = message.get("content")
        fresh: Message = {
            "role": message["role"],
            "content": [self._part(part, place) for part in content] if isinstance(content, list) else content,
        }
        if calls := tool_calls(message):
            fresh["tool_calls"] = [self._call(call, place) for call in calls]
        if message["role"] == "tool":
            fresh["tool_call_id"] = message["tool_call_id"]
        if message.get("name") in self.names:
            fresh["name"] = message["name"]
        return fresh


def read_messages(messages: Any, given: Sequence[Message]) -> list[Message] | str:
    """Return what the compressor returned, rebuilt from what is counted; a text is what is wrong with it.

    Providers bill or refuse fields and parts that we do not know, and here they would count as nothing.
    """
    if problem := _list_problem(messages):
        return problem
    session = _Session.of(given)
    try:
        return [session.rebuilt(message, f"messages[{index}]") for index, message in enumerate(messages)]
    except _Refused as exc:
        return f"returned a list that a provider would refuse: {exc}"


def read_step(frame: dict[str, Any], given: Sequence[Message] = ()) -> StepResult | str:
    """Return the step's result, or what the compressor did wrong with the messages it was given."""
    phase = frame["phase"]
    if phase == "raised":
        return f"the compressor raised {error_text(frame)}"
    if phase == "bad_result":
        return f"the compressor {str(frame.get('problem') or 'returned no message list')[:2000]}"
    if phase != "step":
        raise BadFrame(f"the compressor's process sent {phase[:40]!r} in the middle of a step")
    messages = read_messages(frame.get("messages"), given)
    if isinstance(messages, str):
        return f"the compressor {messages}"
    status = frame.get("status")
    told = status if isinstance(status, dict) else {}
    told_imports = frame.get("import_seconds")
    return StepResult(
        messages=messages,
        same_object=frame.get("same_object") is True,
        degraded=bool(told.get("degraded")),
        reason=str(told.get("error") or "")[:2000],
        state=frame.get("state"),
        import_seconds=float(told_imports) if isinstance(told_imports, int | float) else 0.0,
        returned=frame["messages"],
    )
