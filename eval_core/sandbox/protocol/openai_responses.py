"""OpenAI responses, with its compact endpoint."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any

from eval_core.base.messages import Message
from eval_core.sandbox.protocol.dialect import ChatBody, ModelReply, ServerEvent, bad, new_id, objects, only_text

_TEXT = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_SETTINGS = {
    "max_output_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "reasoning": "reasoning_effort",
}  # fmt: skip
_HANDLED = {
    "model", "input", "instructions", "max_output_tokens", "temperature", "top_p", "stream", "text", "tools",
    "tool_choice",
}  # fmt: skip
_COMPACT_PROMPT = (
    "Condense the conversation above so that its assistant can go on from your text alone. Keep every request, "
    "decision, file path, identifier, number, error text and open step exactly. Write the summary and nothing else."
)
_SEAL = "compression-eval-1:"
_CLIENT_CALLS = ("local_shell_call", "shell_call", "apply_patch_call")
"""Calls of tools that the client runs itself, besides functions: what they did is part of the conversation."""


def _text(content: Any, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    parts = []
    for part in objects(content, place):
        if part.get("type") == "refusal":
            parts.append(str(part.get("refusal") or ""))
        elif part.get("type") not in _TEXT or not isinstance(part.get("text"), str):
            raise only_text(part.get("type"), place)
        else:
            parts.append(part["text"])
    return "\n".join(parts)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _sealed(text: str) -> str:
    return base64.b64encode((_SEAL + text).encode()).decode("ascii")


def _unsealed(item: dict[str, Any], place: str) -> str:
    """Read back what this gateway's compact endpoint wrote; nobody can read another's."""
    try:
        text = base64.b64decode(str(item.get("encrypted_content") or ""), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        text = ""
    if not text.startswith(_SEAL):
        raise bad(f"{place}.encrypted_content: not a state of this run's model")
    return text.removeprefix(_SEAL)


class _Conversation:
    """Items become messages; calls that follow one another become one assistant message."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def say(self, role: str, text: str) -> None:
        self.messages.append({"role": role, "content": text})

    def call(self, key: Any, name: Any, arguments: Any, place: str) -> None:
        if not all(isinstance(value, str) for value in (key, name, arguments)):
            raise bad(f"{place}: call_id, name and arguments must be text")
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.messages.append({"role": "assistant", "content": None})
        call = {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
        self.messages[-1].setdefault("tool_calls", []).append(call)

    def item(self, item: dict[str, Any], place: str) -> str | None:
        """Add one item; return its type where it has no counterpart."""
        kind = str(item.get("type", "message"))
        if kind == "message":
            self.say(str(item.get("role")), _text(item.get("content"), f"{place}.content"))
        elif kind == "function_call":
            self.call(item.get("call_id"), item.get("name"), item.get("arguments"), place)
        elif kind == "custom_tool_call":
            self.call(item.get("call_id"), item.get("name"), _json({"input": item.get("input")}), place)
        elif kind == "item_reference":
            raise bad(f"{place}: item_reference: nothing is stored; send the item itself")
        elif kind in _CLIENT_CALLS:
            given = {name: value for name, value in item.items() if name not in ("type", "id", "call_id", "status")}
            self.call(item.get("call_id"), kind.removesuffix("_call"), _json(given), place)
        elif kind.removesuffix("_output") in ("function_call", "custom_tool_call", *_CLIENT_CALLS):
            output = item.get("output")
            plain = isinstance(output, str) or (
                isinstance(output, list) and kind.removesuffix("_output") not in _CLIENT_CALLS
            )
            text = _text(output, f"{place}.output") if plain else _json(output)
            self.messages.append({"role": "tool", "tool_call_id": str(item.get("call_id")), "content": text})
        elif kind in ("compaction", "compaction_summary"):
            self.say("user", f"Summary of the earlier conversation:\n\n{_unsealed(item, place)}")
        else:
            return kind[:60]
        return None


def _tools(body: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    kept, dropped = [], []
    for tool in objects(body.get("tools") or [], "tools"):
        if tool.get("type") == "function":
            names = ("name", "description", "parameters", "strict")
            function = {name: tool[name] for name in names if tool.get(name) is not None}
            kept.append({"type": "function", "function": function})
        else:
            dropped.append(f"tools.{str(tool.get('type'))[:40]}")
    return kept, dropped


def _format(body: dict[str, Any]) -> dict[str, Any]:
    text = body.get("text")
    wanted = text.get("format") if isinstance(text, dict) else None
    if not isinstance(wanted, dict) or wanted.get("type") in (None, "text"):
        return {}
    if wanted["type"] == "json_schema":
        described = {name: wanted[name] for name in ("name", "schema", "strict") if name in wanted}
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    return {"response_format": wanted}


def _conversation(body: dict[str, Any]) -> tuple[list[Message], list[str]]:
    for name in ("previous_response_id", "conversation", "prompt"):
        if body.get(name):
            raise bad(f"{name}: nothing is stored; send the whole input")
    talk, dropped = _Conversation(), []
    if body.get("instructions"):
        talk.say("system", _text(body["instructions"], "instructions"))
    given = body.get("input")
    if isinstance(given, str):
        talk.say("user", given)
    else:
        for index, item in enumerate(objects(given, "input")):
            if (kind := talk.item(item, f"input[{index}]")) is not None:
                dropped.append(f"input.{kind}")
    return talk.messages, list(dict.fromkeys(dropped))


def _usage(reply: ModelReply) -> dict[str, Any]:
    return {
        "input_tokens": reply.input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.output_tokens,
    }


def _output(reply: ModelReply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.text or not reply.calls:
        part = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        status = "incomplete" if reply.truncated else "completed"
        items.append(
            {"type": "message", "id": new_id("msg_"), "role": "assistant", "status": status, "content": [part]}
        )
    items += [
        {
            "type": "function_call", "id": new_id("fc_"), "call_id": call.id, "name": call.name,
            "arguments": call.arguments, "status": "completed",
        }
        for call in reply.calls
    ]  # fmt: skip
    return items


def _response(reply: ModelReply) -> dict[str, Any]:
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": reply.created,
        "status": "incomplete" if reply.truncated else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if reply.truncated else None,
        "instructions": None,
        "metadata": {},
        "model": reply.model,
        "output": _output(reply),
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": _usage(reply),
    }


def _item_events(item: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    """Yield how one output item comes into being."""
    at = {"output_index": index}
    if item["type"] == "message":
        (part,) = item["content"]
        within = {"item_id": item["id"], **at, "content_index": 0}
        yield {"type": "response.output_item.added", **at, "item": {**item, "status": "in_progress", "content": []}}
        yield {"type": "response.content_part.added", **within, "part": {**part, "text": ""}}
        if part["text"]:
            yield {"type": "response.output_text.delta", **within, "delta": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **within, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **within, "part": part}
    else:
        within = {"item_id": item["id"], **at}
        yield {"type": "response.output_item.added", **at, "item": {**item, "status": "in_progress", "arguments": ""}}
        yield {"type": "response.function_call_arguments.delta", **within, "delta": item["arguments"]}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": "response.function_call_arguments.done", **within, **done}
    yield {"type": "response.output_item.done", **at, "item": item}


class OpenAIResponses:
    """`POST /v1/responses`."""

    def to_chat(self, body: dict[str, Any]) -> ChatBody:
        """Translate the input items, tools and settings."""
        messages, dropped = _conversation(body)
        tools, unserved = _tools(body)
        chat: dict[str, Any] = {"model": body.get("model", ""), "messages": messages, **_format(body)}
        chat |= {ours: body[theirs] for theirs, ours in _SETTINGS.items() if body.get(theirs) is not None}
        if tools:
            chat["tools"] = tools
            choice = body.get("tool_choice")
            if isinstance(choice, dict) and choice.get("type") == "function":
                choice = {"type": "function", "function": {"name": choice.get("name")}}
            if choice is not None:
                chat["tool_choice"] = choice
        dropped += [name for name in body if name not in _HANDLED and body[name] is not None]
        return ChatBody(chat, stream=body.get("stream") is True, dropped=(*dropped, *unserved))

    def answer(self, reply: ModelReply) -> dict[str, Any]:
        """Write a response object."""
        return _response(reply)

    def events(self, reply: ModelReply, asked: ChatBody) -> Iterator[ServerEvent]:
        """Write the numbered events of a response."""
        whole = _response(reply)
        begun = {**whole, "status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": begun},
            {"type": "response.in_progress", "response": begun},
        ]
        for index, item in enumerate(whole["output"]):
            events += _item_events(item, index)
        events.append({"type": f"response.{whole['status']}", "response": whole})
        for number, event in enumerate(events):
            yield ServerEvent({**event, "sequence_number": number}, event["type"])

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Write OpenAI's error object."""
        return {"error": {"message": message, "type": "gateway_error", "param": None, "code": code}}


class OpenAICompact(OpenAIResponses):
    """`POST /v1/responses/compact`: the run's model writes a summary, and the client gets it sealed."""

    def to_chat(self, body: dict[str, Any]) -> ChatBody:
        """Ask for a summary of the input."""
        asked = super().to_chat({name: value for name, value in body.items() if name not in ("tools", "stream")})
        messages = [*asked.body["messages"], {"role": "user", "content": _COMPACT_PROMPT}]
        return ChatBody({**asked.body, "messages": messages}, dropped=asked.dropped)

    def answer(self, reply: ModelReply) -> dict[str, Any]:
        """Write a compaction object; its one item is for the next request's input."""
        item = {"type": "compaction", "id": new_id("cmp_"), "encrypted_content": _sealed(reply.text)}
        return {
            "id": new_id("resp_"),
            "object": "response.compaction",
            "created_at": reply.created,
            "output": [item],
            "usage": _usage(reply),
        }
