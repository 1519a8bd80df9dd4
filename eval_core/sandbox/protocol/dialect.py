"""What every protocol has in common: a request becomes a chat request, a reply becomes a body or a stream of events."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from eval_core.domain.call import ReplyCall
from eval_core.sandbox.request import Refusal


@dataclass(frozen=True)
class ModelReply:
    """A finished reply of the model, in nobody's protocol."""

    model: str
    text: str
    calls: tuple[ReplyCall, ...] = ()
    truncated: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    created: int = field(default_factory=lambda: int(time.time()))


@dataclass(frozen=True)
class ChatBody:
    """A request as chat completions write it: what is checked next, whatever protocol it came in."""

    body: dict[str, Any]
    stream: bool = False
    stream_usage: bool = False
    dropped: tuple[str, ...] = ()
    """Fields and tools that have no counterpart and were left out."""


@dataclass(frozen=True)
class ServerEvent:
    """One event of a stream."""

    data: dict[str, Any] | str
    name: str | None = None


class Dialect(Protocol):
    """One protocol."""

    def to_chat(self, body: dict[str, Any]) -> ChatBody:
        """Translate a request; raise Refusal for what cannot be served."""

    def answer(self, reply: ModelReply) -> dict[str, Any]:
        """Write the reply as one body."""

    def events(self, reply: ModelReply, asked: ChatBody) -> Iterator[ServerEvent]:
        """Write the reply as a stream."""

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Write an error as this protocol's clients read it."""


def bad(message: str) -> Refusal:
    """Return the refusal of a request that is not well formed."""
    return Refusal(400, message, "invalid_request")


def only_text(kind: Any, place: str) -> Refusal:
    """Return the refusal of content that is not text."""
    return Refusal(403, f"{place}: parts of type {str(kind)[:40]!r} are not served; text only", "text_only")


def objects(value: Any, place: str) -> Sequence[dict[str, Any]]:
    """Return a list of objects, or refuse."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise bad(f"{place}: must be a list of objects")
    return value


def new_id(prefix: str) -> str:
    """Return an id as providers make them."""
    return f"{prefix}{secrets.token_hex(12)}"


def arguments_of(call: ReplyCall) -> dict[str, Any]:
    """Return a call's arguments as an object; a model may have written something else."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {"arguments": call.arguments}
    return value if isinstance(value, dict) else {"arguments": value}


def event_bytes(event: ServerEvent) -> bytes:
    """Write an event as a stream carries it."""
    data = event.data if isinstance(event.data, str) else json.dumps(event.data)
    head = f"event: {event.name}\n" if event.name else ""
    return f"{head}data: {data}\n\n".encode()
