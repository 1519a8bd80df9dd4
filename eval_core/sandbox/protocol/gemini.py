"""Gemini `generateContent`, streaming and not."""

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
    "contents", "systemInstruction", "system_instruction", "generationConfig", "tools", "toolConfig", "model",
}  # fmt: skip
_SETTINGS = {
    "temperature": "temperature", "topP": "top_p", "maxOutputTokens": "max_tokens", "stopSequences": "stop",
    "thinkingConfig": "reasoning_effort",
}  # fmt: skip
_STATUS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 402: "RESOURCE_EXHAUSTED", 403: "PERMISSION_DENIED",
    404: "NOT_FOUND", 413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip
_MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}


class _Turns:
    """Contents become messages; calls without an id get one, and answers find theirs by name."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._open: list[tuple[str, str]] = []
        self._count = 0

    def add(self, content: dict[str, Any], place: str) -> None:
        role = "assistant" if content.get("role") == "model" else "user"
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        for part in objects(content.get("parts") or [], f"{place}.parts"):
            if part.get("thought"):
                continue
            if isinstance(part.get("text"), str):
                texts.append(part["text"])
            elif isinstance(part.get("functionCall"), dict):
                calls.append(self._call(part["functionCall"], place))
            elif isinstance(part.get("functionResponse"), dict):
                self.messages.append(self._answer(part["functionResponse"], place))
            else:
                raise only_text(next(iter(part), "nothing"), place)
        if texts or calls:
            message: Message = {"role": role, "content": "\n".join(texts) or None}
            self.messages.append({**message, "tool_calls": calls} if calls else message)

    def _call(self, call: dict[str, Any], place: str) -> dict[str, Any]:
        if not isinstance(call.get("name"), str):
            raise bad(f"{place}: functionCall needs a name")
        self._count += 1
        key = str(call.get("id") or f"call-{self._count}")
        self._open.append((call["name"], key))
        function = {"name": call["name"], "arguments": json.dumps(call.get("args") or {}, ensure_ascii=False)}
        return {"id": key, "type": "function", "function": function}

    def _answer(self, answer: dict[str, Any], place: str) -> Message:
        name = str(answer.get("name") or "")
        found = next((pair for pair in self._open if answer.get("id") == pair[1]), None)
        found = found or next((pair for pair in self._open if pair[0] == name), None)
        if found is None:
            raise bad(f"{place}: functionResponse {name[:60]!r} answers no call")
        self._open.remove(found)
        return {
            "role": "tool",
            "tool_call_id": found[1],
            "content": json.dumps(answer.get("response"), ensure_ascii=False),
        }


def _schema(value: Any) -> Any:
    """Return a JSON Schema from Google's variant, which writes types in capitals."""
    if isinstance(value, dict):
        return {
            key: inner.lower() if key == "type" and isinstance(inner, str) else _schema(inner)
            for key, inner in value.items()
            if key != "propertyOrdering"
        }
    return [_schema(inner) for inner in value] if isinstance(value, list) else value


def _format(config: dict[str, Any]) -> dict[str, Any]:
    schema = config.get("responseJsonSchema") or _schema(config.get("responseSchema"))
    if isinstance(schema, dict):
        described = {"name": "reply", "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": described}}
    return {"response_format": {"type": "json_object"}} if config.get("responseMimeType") == "application/json" else {}


def _tools(body: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    kept, dropped = [], []
    for tool in objects(body.get("tools") or [], "tools"):
        dropped += [f"tools.{name[:40]}" for name in tool if name != "functionDeclarations"]
        for declared in objects(tool.get("functionDeclarations") or [], "tools.functionDeclarations"):
            parameters = declared.get("parametersJsonSchema") or _schema(declared.get("parameters"))
            function = {"name": declared.get("name"), "parameters": parameters or {"type": "object"}}
            if declared.get("description"):
                function["description"] = declared["description"]
            kept.append({"type": "function", "function": function})
    return kept, dropped


def _choice(body: dict[str, Any]) -> dict[str, Any]:
    config = body.get("toolConfig")
    calling = config.get("functionCallingConfig") if isinstance(config, dict) else None
    mode = str(calling.get("mode", "")).upper() if isinstance(calling, dict) else ""
    return {"tool_choice": _MODES[mode]} if mode in _MODES else {}


class Gemini:
    """`POST /v1beta/models/MODEL:generateContent` and `:streamGenerateContent`; the address says which."""

    def __init__(self, model: str = "", *, stream: bool = False) -> None:
        self._model, self._stream = model, stream

    def to_chat(self, body: dict[str, Any]) -> ChatBody:
        """Translate contents, tools and settings."""
        turns = _Turns()
        system = body.get("systemInstruction") or body.get("system_instruction")
        if isinstance(system, dict):
            parts = objects(system.get("parts") or [], "systemInstruction.parts")
            text = "\n".join(str(part.get("text") or "") for part in parts)
            turns.messages.append({"role": "system", "content": text})
        for index, content in enumerate(objects(body.get("contents"), "contents")):
            turns.add(content, f"contents[{index}]")
        config = body.get("generationConfig")
        config = config if isinstance(config, dict) else {}
        chat: dict[str, Any] = {"model": self._model, "messages": turns.messages, **_format(config)}
        chat |= {ours: config[theirs] for theirs, ours in _SETTINGS.items() if config.get(theirs) is not None}
        tools, unserved = _tools(body)
        if tools:
            chat |= {"tools": tools, **_choice(body)}
        dropped = [name for name in body if name not in _HANDLED and body[name] is not None]
        return ChatBody(chat, stream=self._stream, dropped=(*dropped, *unserved))

    def answer(self, reply: ModelReply) -> dict[str, Any]:
        """Write one candidate."""
        parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
        parts += [
            {"functionCall": {"id": call.id, "name": call.name, "args": arguments_of(call)}} for call in reply.calls
        ]
        finish = "MAX_TOKENS" if reply.truncated else "STOP"
        return {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": finish, "index": 0}],
            "usageMetadata": {
                "promptTokenCount": reply.input_tokens,
                "candidatesTokenCount": reply.output_tokens,
                "totalTokenCount": reply.input_tokens + reply.output_tokens,
            },
            "modelVersion": reply.model,
            "responseId": new_id(""),
        }

    def events(self, reply: ModelReply, asked: ChatBody) -> Iterator[ServerEvent]:
        """Write the whole answer as the one chunk of a stream."""
        yield ServerEvent(self.answer(reply))

    def error(self, status: int, message: str, code: str) -> dict[str, Any]:
        """Write Google's error object."""
        return {"error": {"code": status, "message": message, "status": _STATUS.get(status, "UNAVAILABLE")}}
