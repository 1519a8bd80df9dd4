"""The one door to a model: a server on a unix socket, one for each run, that speaks what agents speak."""

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

from eval_core.domain.call import Completion, Failed, FailureKind, ModelCall
from eval_core.sandbox.classify import CallLog, CallRecord
from eval_core.sandbox.protocol.dialect import Dialect, ModelReply, event_bytes
from eval_core.sandbox.protocol.openai_chat import OpenAIChat
from eval_core.sandbox.protocol.route import SERVED, counted, given_token, model_list, route
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


def _error(dialect: Dialect, status: int, message: str, code: str) -> web.Response:
    # The client behind `complete` has retried already; without the header SDKs would do so for minutes.
    body = dialect.error(status, message, code)
    return web.json_response(body, status=status, headers={"x-should-retry": "false"})


def _object(data: bytes) -> dict[str, Any]:
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not JSON", "invalid_request") from None
    if not isinstance(body, dict):
        raise Refusal(400, "the body must be an object", "invalid_request")
    return body


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
        app.router.add_route("*", "/{path:.*}", self._serve)
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

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        found = route(request.method, request.path)
        if found is not None and found.kind == "hello":
            return web.json_response({"status": "ok"})  # some clients look whether anybody is there, without a token
        dialect = found.dialect if found else OpenAIChat()
        token = given_token(request.headers, request.query)
        if not hmac.compare_digest(token.encode(errors="replace"), self.token.encode()):
            return _error(dialect, 401, "the token is not this run's", "invalid_api_key")
        if found is None:
            return _error(dialect, 404, f"{request.method} {request.path[:100]}: {SERVED}", "not_found")
        if found.kind == "models":
            return web.json_response(model_list(self._model, found.model))
        if found.kind == "count":
            try:
                return web.json_response(counted(dialect.to_chat(_object(await request.read())), dialect))
            except Refusal as refusal:
                return _error(dialect, refusal.status, refusal.message, refusal.code)
        return await self._reply(request, dialect)

    async def _reply(self, request: web.Request, dialect: Dialect) -> web.StreamResponse:
        record = self.log.start()
        try:
            try:
                given = dialect.to_chat(_object(await request.read()))
            except web.HTTPRequestEntityTooLarge:
                raise Refusal(413, f"more than {self._limits.request_bytes:,} bytes", "too_large") from None
            asked = read_request(json.dumps(given.body).encode())
            record.requested_model, record.dropped = asked.requested_model, (*given.dropped, *asked.dropped)
            self._check_limits()
        except Refusal as refusal:
            self.log.refuse(record, refusal.message)
            return _error(dialect, refusal.status, refusal.message, refusal.code)
        result = await self._ask(asked, record)
        reply = ModelReply(self._model, "")
        if isinstance(result, Completion):
            usage = result.usage
            reply = ModelReply(
                self._model,
                result.text,
                result.calls,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
            )
        elif result.kind not in ("empty", "refusal", "truncated"):
            status, message = _ANSWERS.get(result.kind, (502, "the model failed"))
            code = "context_length_exceeded" if result.kind == "context_length" else "upstream_failed"
            return _error(dialect, status, message, code)
        elif result.kind == "truncated":
            # A provider sends these as a success with nothing in it, and so do we: that is what is being tested.
            reply = ModelReply(self._model, "", truncated=True)
        if not given.stream:
            return web.json_response(dialect.answer(reply))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        for event in dialect.events(reply, given):
            await response.write(event_bytes(event))
        await response.write_eof()
        return response

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
        )
        result: Completion | Failed
        record.asked_at = time.monotonic()
        try:
            result = await self._complete(call)
        except asyncio.CancelledError:
            raise  # the run is over; the record stays unfinished
        except Exception as exc:
            _LOG.exception("the model client raised")
            result = Failed("unknown", retryable=False, message=f"{type(exc).__name__} in the model client")
        if isinstance(result, Completion):
            record.queued_seconds = time.monotonic() - record.asked_at - result.seconds
        self.log.finish(record, result)
        return result
