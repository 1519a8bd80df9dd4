"""A provider's error that quotes the request: what a compressor writes decides nothing but its own fate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from eval_core.domain.call import Completion, Failed
from eval_core.models.error_body import kind_told

from .provider import MODEL, Bench, bench, call

Body = dict[str, Any]
Rule = Callable[[Body], tuple[int, object] | None]

WORDS = (
    "invalid_api_key",
    "model_not_found",
    "credit balance is too low",
    "too many requests",
    "'temperature' is not supported",
    "max_tokens max_completion_tokens",
)
LOW = "Your credit balance is too low to access the Anthropic API."
FINE = {
    "model": MODEL,
    "choices": [{"message": {"content": "A fine and long enough summary of it."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 5},
}


@asynccontextmanager
async def provider(rule: Rule, folder: Path) -> AsyncIterator[tuple[Bench, list[Body]]]:
    """Answer every request well, except where the rule has a status and a body for it."""
    seen: list[Body] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(await request.json())
        status, body = rule(seen[-1]) or (200, FINE)
        return web.json_response(body, status=status)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with bench(folder, usd=5.0) as at:
            object.__setattr__(at.client.models, "api_base", f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
            yield at, seen
    finally:
        await runner.cleanup()


def quoting(status: int, *, coded: bool) -> Rule:
    """Quote the first property of a schema, as OpenAI does with a code and others without one."""

    def rule(body: Body) -> tuple[int, object] | None:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
        if not schema.get("properties"):
            return None
        said = f"Invalid schema: In context=('properties', \"{next(iter(schema['properties']))}\"), no 'type' key."
        if not coded:
            return status, {"object": "error", "message": said, "type": "BadRequestError", "code": status}
        error = {"message": said, "type": "invalid_request_error", "param": "response_format"}
        return status, {"error": {**error, "code": "invalid_json_schema"}}

    return rule


def schema(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {}}}


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize("coded", [True, False], ids=["with a code", "in words alone"])
@pytest.mark.parametrize("name", WORDS)
def test_words_that_a_compressor_chose_are_its_own_bad_request_and_nobody_else_s(
    name: str, coded: bool, status: int, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with provider(quoting(status, coded=coded), tmp_path) as (at, seen):
            for run in range(4):
                asked = call(role="compressor", run=run, response_schema=schema(name), temperature=0.0)
                failed = await at.client.complete(asked)
                assert isinstance(failed, Failed)
                assert (failed.kind, failed.retryable) == ("bad_request", False)
                assert at.client.budget is not None
                assert at.client.budget.unsure_usd == 0
            for role in ("judge", "answer"):
                assert isinstance(await at.client.complete(call(role=role, temperature=0.0)), Completion)
                assert (seen[-1]["temperature"], seen[-1]["max_tokens"]) == (0.0, 50)
            assert at.client.health(MODEL).state == "healthy"
            assert not at.time.slept

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"type": "error", "error": {"type": "invalid_request_error", "message": LOW}}, "payment"),
        (400, {"message": "The provided model identifier is invalid."}, "not_found"),
        (403, {"message": "not for you"}, "auth"),
        (400, {"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}, "auth"),
    ],
)
def test_a_provider_that_refuses_everybody_is_not_the_compressor_s_fault(
    status: int, body: object, kind: str, tmp_path: Path
) -> None:
    async def scene() -> None:
        async with provider(lambda _: (status, body), tmp_path) as (at, _):
            failed = await at.client.complete(call(role="compressor"))
            assert isinstance(failed, Failed)
            assert failed.kind == kind
            assert at.client.out[MODEL].kind == kind

    asyncio.run(scene())


def needs_newer_names(body: Body) -> tuple[int, object] | None:
    if "max_tokens" in body:
        said = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
        return 400, {"error": {"message": said, "param": "max_tokens", "code": "unsupported_parameter"}}
    if "temperature" in body:
        return 400, {"error": {"message": "'temperature' does not support 0.2 with this model.", "code": None}}
    return None


def test_what_a_model_really_does_not_take_is_learned_from_our_own_question(tmp_path: Path) -> None:
    async def scene() -> None:
        async with provider(needs_newer_names, tmp_path) as (at, seen):
            done = await at.client.complete(call("compress", role="compressor", temperature=0.2))
            assert isinstance(done, Completion)
            assert (seen[-1]["messages"][0]["content"], seen[-1]["max_completion_tokens"]) == ("compress", 50)

    asyncio.run(scene())


def test_a_code_goes_before_the_words() -> None:
    def told(code: str, message: str) -> str:
        return kind_told(400, f'{{"error": {{"message": "{message}", "code": "{code}"}}}}').kind

    assert told("invalid_function_parameters", "credit balance is too low") == "bad_request"
    assert told("model_not_found", "prompt is too long") == "not_found"
    assert told("context_length_exceeded", "invalid_api_key") == "context_length"
    assert told("400", LOW) == "payment"
    quoted = kind_told(400, 'bad schema: {"error": {"code": "insufficient_quota"}}')
    assert (quoted.kind, quoted.unproven) == ("bad_request", False)
