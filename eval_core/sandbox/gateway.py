"""The one door to a model: an OpenAI-shaped server on a unix socket, one for each run."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from eval_core.domain.call import Completion, Failed, FailureKind, ModelCall, Usage
from eval_core.sandbox.classify import CallLog, CallRecord
from eval_core.sandbox.request import ChatRequest, Refusal, read_request

__all__ = ["Complete", "Gateway", "GatewayLimits"]

Complete = Callable[[ModelCall], Awaitable[Completion | Failed]]

SOCKET = "llm.sock"
_LOG = logging.getLogger(__name__)

# What the compressor is told: a status that its SDK understands and a sentence of ours, never the provider's words.
_ANSWERS: dict[FailureKind, tuple[int, str]] = {
    "rate_limit": (429, "the model is busy"),
    "timeout": (504, "the model did not answer in time"),
    "auth": (402, "the model cannot be used at present"),
    "payment": (402, "the model cannot be used at present"),
    "budget": (402, "the budget of this evaluation is used up"),
    "bad_request": (400, "the model refused the request"),
    "not_found": (404, "the model is not available"),
    "context_length": (400, "the request is longer than the model's context window"),
}


@dataclass(frozen=True)
class GatewayLimits:
    """What one run of the compressor may ask for."""

    requests: int = 64
    request_bytes: int = 8 * 1024 * 1024
    total_tokens: int = 4_000_000
    """Input and output of all calls together; checked before each call."""
    output_tokens: int = 16_384
    """Of one call; a larger wish is lowered."""


def _error(status: int, message: str, code: str) -> web.Response:
    # The client behind `complete` has retried already; without the header SDKs would do so for minutes.
    body = {"error": {"message": message, "type": "gateway_error", "param": None, "code": code}}
    return web.json_response(body, status=status, headers={"x-should-retry": "false"})


class Gateway:
    """Serve one run's compressor model to the child, whatever model it asks for."""

    def __init__(self, *, model: str, complete: Complete, run: int, limits: GatewayLimits | None = None) -> None:
        self.token = f"run-{secrets.token_urlsafe(32)}"
        self.log = CallLog()
        self._model, self._complete, self._run = model, complete, run
        self._limits = limits or GatewayLimits()

    @asynccontextmanager
    async def serve(self, folder: Path) -> AsyncIterator[Path]:
        """Listen in the folder until the block ends; a call still under way then stays unfinished."""
        app = web.Application(client_max_size=self._limits.request_bytes)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/v1/models/{name:.+}", self._models)
        app.router.add_route("*", "/{path:.*}", self._nothing)
        # Access lines would print the child's request targets into the evaluator's log.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        path = folder / SOCKET
        try:
            await web.UnixSite(runner, str(path)).start()
            path.chmod(0o666)  # the child has another uid; the token is what opens the door
            yield path
        finally:
            await runner.cleanup()

    def _allowed(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(errors="replace"), f"Bearer {self.token}".encode())

    async def _nothing(self, request: web.Request) -> web.Response:
        return _error(404, "only /v1/chat/completions and /v1/models are served", "not_found")

    async def _models(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return _error(401, "the token is not this run's", "invalid_api_key")
        model = {"id": self._model, "object": "model", "created": 0, "owned_by": "evaluation"}
        return web.json_response(model if "name" in request.match_info else {"object": "list", "data": [model]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        if not self._allowed(request):
            return _error(401, "the token is not this run's", "invalid_api_key")
        record = self.log.start()
        try:
            try:
                asked = read_request(await request.read())
            except web.HTTPRequestEntityTooLarge:
                raise Refusal(413, f"more than {self._limits.request_bytes:,} bytes", "too_large") from None
            record.requested_model, record.dropped = asked.requested_model, asked.dropped
            self._check_limits()
        except Refusal as refusal:
            self.log.refuse(record, refusal.message)
            return _error(refusal.status, refusal.message, refusal.code)
        result = await self._ask(asked, record)
        if isinstance(result, Failed):
            if result.kind not in ("empty", "refusal", "truncated"):
                status, message = _ANSWERS.get(result.kind, (502, "the model failed"))
                code = "context_length_exceeded" if result.kind == "context_length" else "upstream_failed"
                return _error(status, message, code)
            # A provider sends these as a success with nothing in it, and so do we: that is what is being tested.
            return await self._answer(request, asked, "", "length" if result.kind == "truncated" else "stop", Usage())
        return await self._answer(request, asked, result.text, "stop", result.usage)

    def _check_limits(self) -> None:
        served = [record for record in self.log.records if record.status != "refused"]
        if len(served) > self._limits.requests:
            raise Refusal(429, f"the run's {self._limits.requests} requests are used up", "too_many_requests")
        spent = sum(record.usage.input_tokens + record.usage.output_tokens for record in served)
        if spent >= self._limits.total_tokens:
            raise Refusal(429, f"the run's {self._limits.total_tokens:,} tokens are used up", "too_many_tokens")

    async def _ask(self, asked: ChatRequest, record: CallRecord) -> Completion | Failed:
        call = ModelCall(
            role="compressor",
            model=self._model,
            messages=asked.messages,
            max_tokens=min(asked.max_tokens or self._limits.output_tokens, self._limits.output_tokens),
            run=self._run,
            temperature=asked.temperature,
            response_schema=asked.response_schema,
            params=asked.params,
            # What is asked before any reply is the same in every run of the fixture.
            shared=0 if any(other.ended is not None for other in self.log.records) else len(asked.messages),
        )
        result: Completion | Failed
        try:
            result = await self._complete(call)
        except asyncio.CancelledError:
            raise  # the run is over; the record stays unfinished
        except Exception as exc:
            _LOG.exception("the model client raised")
            result = Failed("unknown", retryable=False, message=f"{type(exc).__name__} in the model client")
        self.log.finish(record, result)
        return result

    async def _answer(
        self, request: web.Request, asked: ChatRequest, text: str, finish: str, usage: Usage
    ) -> web.StreamResponse:
        head = {"id": f"chatcmpl-{secrets.token_hex(8)}", "created": int(time.time()), "model": self._model}
        counted = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.input_tokens + usage.output_tokens,
        }
        if not asked.stream:
            message = {"role": "assistant", "content": text, "refusal": None}
            choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
            return web.json_response({**head, "object": "chat.completion", "choices": [choice], "usage": counted})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
        deltas += [({"content": text}, None)] if text else []
        deltas.append(({}, finish))
        events: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]} for delta, reason in deltas
        ]
        if asked.stream_usage:
            events.append({"choices": [], "usage": counted})
        for event in events:
            line = json.dumps({**head, "object": "chat.completion.chunk", **event})
            await response.write(f"data: {line}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response
