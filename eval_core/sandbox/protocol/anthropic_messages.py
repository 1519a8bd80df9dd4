"""Anthropic messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from eval_core.base.messages import Message
from eval_core.sandbox.protocol.dialect import (
    ChatBody,
    ModelReply,
    ServerEvent,
    arguments_of,
    bad,
    new_id,
    objects,
    only_text,
)

_HANDLED = {
    "model", "messages", "system", "max_tokens", "temperature", "top_p", "stop_sequences", "stream", "tools",
    "tool_choice",
}  # fmt: skip
_SILENT = ("thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result", "compaction")
"""Blocks of the provider's own, which mean nothing to another model."""
_ERRORS = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
}  # fmt: skip
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def _text(content: Any, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = []
    for block in objects(content, place):
        if block.get("type") != "text" or not isinstance(block.get("text"), str):
            raise only_text(block.get("type"), place)
        parts.append(block["text"])
    return "\n".join(parts)


def _blocks(role: str, content: list[dict[str, Any]], place: str) -> Iterator[Message]:
    """Yield the messages that one message's blocks are: tool answers first, then what was said."""
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in content:
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif kind == "tool_use":
            if not isinstance(block.get("id"), str) or not isinstance(block.get("name"), str):
                raise bad(f"{place}: tool_use needs id and name")
            function = {"name": block["name"], "arguments": json.dumps(block.get("input") or {}, ensure_ascii=False)}
            calls.append({"id": block["id"], "type": "function", "function": function})
        elif kind == "tool_result":
            if not isinstance(block.get("tool_use_id"), str):
                raise bad(f"{place}: tool_result needs tool_use_id")
            said = _text(block.get("content"), f"{place}.tool_result")
            text = f"Error: {said}" if block.get("is_error") else said
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}
        elif kind not in _SILENT:
            raise only_text(kind, place)
    if texts or calls:
        message: Message = {"role": role, "content": "\n".join(texts) or None}
        yield {**message, "tool_calls": calls} if calls else message


def _messages(body: dict[str, Any]) -> list[Message]:
    found: list[Message] = []
    if system := _text(body.get("system"), "system"):
        found.append({"role": "system", "content": system})
    for index, message in enumerate(objects(body.get("messages"), "messages")):
        place, role, content = f"messages[{index}]", message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            raise bad(f"{place}.role: {str(role)[:40]!r} is not user or assistant")
        if isinstance(content, str):
            found.append({"role": role, "content": content})
        else:
            found += _blocks(role, list(objects(content, f"{place}.content")), f"{place}.content")
    return found


def _tools(body: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    kept, dropped = [], []
    for tool in objects(body.get("tools") or [], "tools"):
        if tool.get("type", "custom") != "custom":
            dropped.append(f"tools.{str(tool['type'])[:40]}")
            continue
        function = {"name": tool.get("name"), "parameters": tool.get("input_schema") or {"type": "object"}}
        if tool.get("description"):
            function["description"] = tool["description"]
        kept.append({"type": "function", "function": function})
    return kept, dropped


def _choice(body: dict[str, Any]) -> dict[str, Any]:
    wanted = body.get("tool_choice")
    if not isinstance(wanted, dict):
        return {}
    kind = wanted.get("type")
    if kind == "tool":
        return {"tool_choice": {"type": "function", "function": {"name": wanted.get("name")}}}
    return {"tool_choice": _CHOICES[kind]} if isinstance(kind, str) and kind in _CHOICES else {}


def _stop_reason(reply: ModelReply) -> str:
    return "max_tokens" if reply.truncated else "tool_use" if reply.calls else "end_turn"


def _content(reply: ModelReply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": reply.text, "citations": None}] if reply.text else []
    return blocks + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments_of(call)} for call in reply.calls
    ]


def _usage(reply: ModelReply) -> dict[str, int]:
    return {
        "input_tokens": reply.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": reply.output_tokens,
    }


class AnthropicMessages:
    """`POST /v1/messages`."""

    def to_chat(self, body: dict[str, Any]) -> ChatBody:
        """Translate blocks, tools and settings."""
        tools, unserved = _tools(body)
        chat: dict[str, Any] = {"model": body.get("model", ""), "messages": _messages(body)}
        names = {
            "max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop_sequences": "stop",
            "thinking": "reasoning_effort",
        }  # fmt: skip
        chat |= {ours: body[theirs] for theirs, ours in names.items() if body.get(theirs) is not None}
        if tools:
            chat |= {"tools": tools, **_choice(body)}
        dropped = [name for name in body if name not in _HANDLED and body[name] is not None]
        return ChatBody(chat, stream=body.get("stream") is True, dropped=(*dropped, *unserved))

    def answer(self, reply: ModelReply) -> dict[str, Any]:
        """Write a message object."""
        return {
            "id": new_id("msg_"),
            "type": "message",
            "role": "assistant",
            "model": reply.model,
            "content": _content(reply),
            "stop_reason": _stop_reason(reply),
            "stop_sequence": None,
            "usage": _usage(reply),
        }

    def events(self, reply: ModelReply, asked: ChatBody) -> Iterator[ServerEvent]:
        """Write the events of a message."""
        for event in self._events(reply):
            yield ServerEvent(event, event["type"])

    def _events(self, reply: ModelReply) -> Iterator[dict[str, Any]]:
        whole = self.answer(reply)
        begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
        yield {"type": "message_start", "message": begun}
        yield {"type": "ping"}
        for index, block in enumerate(whole["content"]):
            if block["type"] == "text":
                empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": reply.output_tokens}}
        yield {"type": "message_stop"}

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Write Anthropic's error object."""
        return {"type": "error", "error": {"type": _ERRORS.get(status, "api_error"), "message": message}}
