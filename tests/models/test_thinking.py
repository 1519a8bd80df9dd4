"""What is sent to a Claude model that is to think: a request its provider takes, seen by a server on loopback."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from eval_core.base.config import Price
from eval_core.domain.call import Completion, ModelCall
from eval_core.models.client import ModelClient
from eval_core.models.settings import Endpoint, Models
from eval_core.models.transport import with_thinking

pytestmark = pytest.mark.usefixtures("litellm")

CLAUDE = "anthropic/claude-sonnet-4-5"


class Recorder:
    """Answers as Anthropic's messages API does, and refuses what that refuses."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        thinking = body.get("thinking") or {}
        problem = None
        if thinking.get("type") == "enabled" and thinking["budget_tokens"] >= body["max_tokens"]:
            problem = "`max_tokens` must be greater than `thinking.budget_tokens`"
        elif thinking.get("type") == "enabled" and body.get("temperature", 1) != 1:
            problem = "`temperature` may only be set to 1 when thinking is enabled"
        if problem:
            error = {"type": "invalid_request_error", "message": problem}
            return web.json_response({"type": "error", "error": error}, status=400)
        return web.json_response(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "a summary"}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 12, "output_tokens": 3},
            }
        )


class Elsewhere(Models):
    """Claude through litellm, at an address on loopback."""

    def endpoint(self, model: str) -> Endpoint:
        found = super().endpoint(model)
        return Endpoint(found.model, "anthropic", self.api_base, self.key, direct=False, seconds=20)


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_thinking_has_room_beside_the_answer_and_no_temperature(effort: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x" * 20)

    async def scene() -> None:
        recorder = Recorder()
        app = web.Application()
        app.router.add_post("/v1/messages", recorder.handle)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            models = Elsewhere(
                CLAUDE,
                CLAUDE,
                CLAUDE,
                api_base=url,
                prices={CLAUDE: Price(input=3, output=15)},
                params={CLAUDE: {"reasoning_effort": effort}},
            )
            async with ModelClient(models) as client:
                messages = ({"role": "user", "content": "grade this"},)
                done = await client.complete(ModelCall("judge", CLAUDE, messages, 900, temperature=0.0))
            assert isinstance(done, Completion), done
            (body,) = recorder.bodies
            assert body["max_tokens"] - body["thinking"]["budget_tokens"] >= 900
            assert body.get("temperature", 1) == 1
        finally:
            await runner.cleanup()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("model", "params", "changed"),
    [
        ("anthropic/claude-sonnet-4-5", {"reasoning_effort": "low"}, True),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", {"reasoning_effort": "low"}, True),
        ("vertex_ai/claude-sonnet-4-5", {"reasoning_effort": "high"}, True),
        ("claude-sonnet-4-5", {"reasoning_effort": "low"}, True),
        ("anthropic/claude-sonnet-4-5", {"reasoning_effort": "none"}, False),
        ("anthropic/claude-sonnet-4-5", {}, False),
        ("openai/o4-mini", {"reasoning_effort": "low"}, True),
        ("openai/gpt-5", {}, True),
        ("openai/gpt-5-chat-latest", {}, False),
        ("vertex_ai/gemini-2.5-flash", {}, True),
        ("gemini/gemini-2.5-flash", {"reasoning_effort": "disable"}, False),
        ("gemini/gemini-2.0-flash", {}, False),
        ("openai/gpt-4.1", {}, False),
    ],
)
def test_only_a_model_that_thinks_is_sent_something_else(model: str, params: dict[str, Any], changed: bool) -> None:
    call = ModelCall("judge", model, ({"role": "user", "content": "x"},), 900, temperature=0.0, params=params)
    assert (with_thinking(call) != call) is changed


def test_what_a_compressor_asks_of_a_model_that_thinks_by_itself_is_its_own() -> None:
    call = ModelCall("compressor", "openai/gpt-5", ({"role": "user", "content": "x"},), 2_000)
    assert with_thinking(call) == call


def test_a_tool_call_is_asked_for_and_not_demanded_of_a_claude_that_thinks() -> None:
    plain = ModelCall("answer", CLAUDE, ({"role": "user", "content": "x"},), 900).offering(
        [{"name": "f"}], required=True
    )
    assert with_thinking(plain).params["tool_choice"] == "required"
    thinks = replace(plain, params={**plain.params, "reasoning_effort": "low"})
    assert with_thinking(thinks).params["tool_choice"] == "auto"
