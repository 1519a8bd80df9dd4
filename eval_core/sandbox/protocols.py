"""The wire formats that a compressor's model calls may have: how each is read, answered and refused.

The gateway's process knows connections and bytes; what a request means is here and in `request`. A further format is
one more entry in `PROTOCOLS`. Standard library only.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from eval_core.sandbox.request import ChatRequest, Refusal, read_request

__all__ = ["PROTOCOLS", "ModelProtocol", "ModelReply", "WireAnswer", "model_list", "protocol_of"]


@dataclass(frozen=True)
class ModelReply:
    """What the model said, whole."""

    text: str
    finish: Literal["stop", "length"]
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class WireAnswer:
    """The body of a response."""

    content_type: str
    body: bytes


@dataclass(frozen=True)
class ModelProtocol:
    """One wire format."""

    name: str
    matches: Callable[[str], bool]
    """Whether a POST to this path is a model call of this format."""
    read: Callable[[str, bytes], ChatRequest]
    """The request meant by a path and a body; raises Refusal and nothing else."""
    answer: Callable[[ChatRequest, ModelReply, str], WireAnswer]
    """The reply of the model with this name; a stream is its events one after another."""
    refuse: Callable[[Refusal], WireAnswer]


def _json(value: Any) -> WireAnswer:
    return WireAnswer("application/json", json.dumps(value).encode("ascii"))


def _chat_answer(asked: ChatRequest, reply: ModelReply, model: str) -> WireAnswer:
    head = {"id": f"chatcmpl-{secrets.token_hex(8)}", "created": int(time.time()), "model": model}
    usage = {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }
    if not asked.stream:
        message = {"role": "assistant", "content": reply.text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}
        return _json({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [({"content": reply.text}, None)] if reply.text else []
    deltas.append(({}, reply.finish))
    events: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} for delta, reason in deltas
    ]
    if asked.stream_usage:
        events.append({"choices": [], "usage": usage})
    lines = [json.dumps({**head, "object": "chat.completion.chunk", **event}) for event in events]
    return WireAnswer("text/event-stream", "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode("ascii"))


def _chat_refusal(refusal: Refusal) -> WireAnswer:
    error = {"message": refusal.message, "type": "gateway_error", "param": None, "code": refusal.code}
    return _json({"error": error})


CHAT = ModelProtocol(
    name="chat",
    matches=lambda path: path in ("/v1/chat/completions", "/chat/completions"),
    read=lambda path, body: read_request(body),
    answer=_chat_answer,
    refuse=_chat_refusal,
)
PROTOCOLS: tuple[ModelProtocol, ...] = (CHAT,)


def protocol_of(path: str) -> ModelProtocol | None:
    """Return the format of a POST to this path, or None where no model call goes."""
    return next((protocol for protocol in PROTOCOLS if protocol.matches(path)), None)


def model_list(path: str, model: str) -> WireAnswer | None:
    """Answer a GET of the models: the one that is served, under every name that is asked for."""
    path = path.removeprefix("/v1")
    one = {"id": model, "object": "model", "created": 0, "owned_by": "evaluation"}
    if path == "/models":
        return _json({"object": "list", "data": [one]})
    return _json(one) if path.startswith("/models/") else None
