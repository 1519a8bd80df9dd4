"""A server that speaks the protocols of all providers, in their published shapes, and writes down what it is asked."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from eval_core.base.messages import Message
from tests.model_provider import as_chat, reply_to

READ, WRITTEN, FRESH, OUT = 1_000, 400, 100, 20
"""What every call used, by its own account; the last of it is the output."""


@dataclass(frozen=True)
class Seen:
    """One request."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any = field(repr=False)


class Wire:
    """The server, and everything that reached it."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self.answer: Callable[[Seen], web.Response | None] = lambda seen: None
        """What is answered in place of a proper reply."""
        self.url = ""

    @property
    def calls(self) -> list[Seen]:
        """The requests to models, without logins."""
        return [seen for seen in self.seen if seen.path != "/token"]

    async def start(self) -> web.AppRunner:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{rest:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner

    async def _handle(self, request: web.Request) -> web.Response:
        raw = await request.text()
        body = json.loads(raw) if raw.startswith("{") else raw
        headers = {name.lower(): value for name, value in request.headers.items()}
        seen = Seen(request.method, request.path, dict(request.query), headers, body)
        self.seen.append(seen)
        if seen.path == "/token":
            return web.json_response({"access_token": "a-login", "expires_in": 3600, "token_type": "Bearer"})
        return self.answer(seen) or web.json_response(_reply(seen))


def _reply(seen: Seen) -> dict[str, Any]:
    for end, shape in _SHAPES.items():
        if seen.path.endswith(end):
            return shape(seen.body)
    raise web.HTTPNotFound(text=f"nothing is at {seen.path}")


def _openai(body: Mapping[str, Any]) -> dict[str, Any]:
    details = {"cached_tokens": READ, "cache_creation_tokens": WRITTEN}
    usage = {"prompt_tokens": FRESH + READ + WRITTEN, "completion_tokens": OUT, "prompt_tokens_details": details}
    message = {"role": "assistant", "content": reply_to(body["messages"])}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _anthropic(body: Mapping[str, Any]) -> dict[str, Any]:
    text = reply_to(as_chat({"model": "m", **body})["messages"])
    content: dict[str, Any] = {"type": "text", "text": text}
    if (body.get("tool_choice") or {}).get("type") == "tool":
        content = {"type": "tool_use", "id": "t", "name": body["tool_choice"]["name"], "input": json.loads(text)}
    usage = {
        "input_tokens": FRESH, "output_tokens": OUT, "cache_read_input_tokens": READ,
        "cache_creation_input_tokens": WRITTEN,
    }  # fmt: skip
    return {
        "id": "x", "type": "message", "role": "assistant", "model": "m", "content": [content],
        "stop_reason": "end_turn", "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def _texts(parts: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(part["text"] for part in parts if "text" in part)


def _bedrock(body: Mapping[str, Any]) -> dict[str, Any]:
    said = [{"role": message["role"], "content": _texts(message["content"])} for message in body["messages"]]
    text = reply_to([{"role": "system", "content": _texts(body.get("system", []))}, *said])
    content: dict[str, Any] = {"text": text}
    if tool := body.get("toolConfig", {}).get("toolChoice", {}).get("tool"):
        content = {"toolUse": {"toolUseId": "t", "name": tool["name"], "input": json.loads(text)}}
    usage = {
        "inputTokens": FRESH, "outputTokens": OUT, "totalTokens": FRESH + OUT, "cacheReadInputTokens": READ,
        "cacheWriteInputTokens": WRITTEN,
    }  # fmt: skip
    message = {"role": "assistant", "content": [content]}
    return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}


def _google(body: Mapping[str, Any]) -> dict[str, Any]:
    system: list[Message] = [
        {"role": "system", "content": _texts(body.get("system_instruction", {"parts": []})["parts"])}
    ]
    said = [{"role": message["role"], "content": _texts(message["parts"])} for message in body["contents"]]
    parts = [{"text": reply_to([*system, *said])}]
    usage = {
        "promptTokenCount": FRESH + READ + WRITTEN, "candidatesTokenCount": OUT - 5, "thoughtsTokenCount": 5,
        "cachedContentTokenCount": READ, "totalTokenCount": FRESH + READ + WRITTEN + OUT,
    }  # fmt: skip
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}


_SHAPES: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "/chat/completions": _openai,
    "/messages": _anthropic,
    ":rawPredict": _anthropic,
    "/converse": _bedrock,
    ":generateContent": _google,
}


@contextmanager
def wired() -> Iterator[Wire]:
    """Serve from a thread until the block ends."""
    wire, loop = Wire(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        runner = asyncio.run_coroutine_threadsafe(wire.start(), loop).result()
        yield wire
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
