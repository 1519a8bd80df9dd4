"""OpenAI chat completions: the protocol that the others are translated to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from eval_core.sandbox.protocol.dialect import ChatBody, ModelReply, ServerEvent, new_id


def _usage(reply: ModelReply) -> dict[str, int]:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }


def _finish(reply: ModelReply) -> str:
    return "length" if reply.truncated else "tool_calls" if reply.calls else "stop"


def _calls(reply: ModelReply) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in reply.calls
    ]


class OpenAIChat:
    """`POST /v1/chat/completions`."""

    def to_chat(self, body: dict[str, Any]) -> ChatBody:
        """Take the body as it is; it is checked field by field afterwards."""
        options = body.get("stream_options")
        usage = isinstance(options, dict) and options.get("include_usage") is True
        return ChatBody(body, stream=body.get("stream") is True, stream_usage=usage)

    def answer(self, reply: ModelReply) -> dict[str, Any]:
        """Write a chat completion."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.calls:
            message |= {"content": reply.text or None, "tool_calls": _calls(reply)}
        return {
            "id": new_id("chatcmpl-"),
            "object": "chat.completion",
            "created": reply.created,
            "model": reply.model,
            "choices": [{"index": 0, "message": message, "finish_reason": _finish(reply), "logprobs": None}],
            "usage": _usage(reply),
        }

    def events(self, reply: ModelReply, asked: ChatBody) -> Iterator[ServerEvent]:
        """Write chunks and the closing mark."""
        head = {
            "id": new_id("chatcmpl-"), "object": "chat.completion.chunk",
            "created": reply.created, "model": reply.model,
        }  # fmt: skip
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": reply.text}] if reply.text else []
        deltas += [{"tool_calls": [{"index": index, **call}]} for index, call in enumerate(_calls(reply))]
        for delta in deltas:
            yield ServerEvent({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield ServerEvent({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _finish(reply)}]})
        if asked.stream_usage:
            yield ServerEvent({**head, "choices": [], "usage": _usage(reply)})
        yield ServerEvent("[DONE]")

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Write OpenAI's error object."""
        return {"error": {"message": message, "type": "gateway_error", "param": None, "code": code}}
