"""Tools that our own calls offer: what the model calls, over several turns, through both ways to a provider."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval_core.base.messages import Message, content_text
from eval_core.domain.call import Completion, ReplyCall
from eval_core.models.client import ModelClient
from eval_core.models.journal import Journal
from eval_core.models.settings import Endpoint, Models
from tests.model_provider import Asked, LoopbackProvider

from .provider import bench, call, models_at

pytestmark = pytest.mark.usefixtures("litellm")

READ = {
    "name": "read_file",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


class AnthropicOnLoopback(Models):
    """A Claude model through litellm, at an address on loopback."""

    def endpoint(self, model: str) -> Endpoint:
        base = (self.api_base or "").removesuffix("/v1")
        return Endpoint("anthropic/claude-sonnet-4-5", "anthropic", base, self.key, direct=False, seconds=20)


def read_then_answer(asked: Asked) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """Read the file first, and answer in words when a result is there."""
    return (
        [] if "not_yet" not in str(asked.messages[0]) or len(asked.messages) > 1 else [("read_file", {"path": "a.py"})]
    )


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_model_calls_a_tool_hears_its_result_and_answers(
    tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x" * 20)

    async def scene() -> None:
        provider = LoopbackProvider(act=read_then_answer, reply=lambda messages: "done: " + str(messages[-1]))
        async with provider as server:
            models = models_at(server.base_url)
            if protocol == "anthropic":
                models = AnthropicOnLoopback(**vars(models))
            journal = Journal(tmp_path / "journal.jsonl")
            async with ModelClient(models, journal=journal) as client:
                asked = call("is it not_yet there?").offering([READ], required=True)
                first = await client.complete(asked)
                assert isinstance(first, Completion), first
                (made,) = first.calls
                assert (made.name, made.given) == ("read_file", {"path": "a.py"})
                assert first.usage.output_tokens > 0
                function = {"name": made.name, "arguments": made.arguments}
                turn: Message = {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": made.id, "type": "function", "function": function}],
                }
                result: Message = {"role": "tool", "tool_call_id": made.id, "content": "print(1)"}
                second = await client.complete(replace(asked, messages=(*asked.messages, turn, result)))
                assert isinstance(second, Completion), second
                assert "print(1)" in second.text
                assert not second.calls
                assert (await client.complete(asked)).calls == first.calls  # type: ignore[union-attr]
                assert len(server.asked) == 2
            journal.close()

    asyncio.run(scene())


def test_a_reply_in_words_is_an_answer_where_a_tool_was_offered() -> None:
    async def scene() -> None:
        async with bench(provider=LoopbackProvider(reply=lambda messages: content_text(messages[-1]).upper())) as at:
            done = await at.client.complete(call("no, thanks").offering([READ]))
            assert isinstance(done, Completion)
            assert (done.text, done.calls) == ("NO, THANKS", ())
            assert at.provider.asked[0].body["tool_choice"] == "auto"

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("arguments", "given"),
    [('{"path": "a"}', {"path": "a"}), ("", {}), ("[1]", None), ('{"path": ', None), ('{"n": NaN}', None)],
)
def test_arguments_that_are_no_object_are_not_guessed_at(arguments: str, given: dict[str, Any] | None) -> None:
    assert ReplyCall("1", "f", arguments).given == given
