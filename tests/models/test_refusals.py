from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eval_core.domain.call import Completion, Failed
from eval_core.models.refusals import refusal_in
from tests.model_provider import LoopbackProvider

from .provider import MODEL, bench, call

REFUSALS = [
    "I'm sorry, but I can't assist with that request.",
    "I’m sorry, but I can’t help with that.",
    "I cannot assist with that.",
    "Sorry, I can't help you with this request. Please try something else.",
    "I am unable to comply with this request.",
    "I apologize, but I cannot provide a summary of this conversation.",
    "As an AI language model, I can't engage with this content.",
    "I must decline to summarize this transcript.",
    "I won't do that.",
    "Unfortunately, I'm not able to fulfill this request.",
]
WORK = [
    "I cannot find that in the context.",
    "I can't tell from the summary which file was patched.",
    "Not in context.",
    "I cannot determine the port; the summary does not mention it.",
    "The user cannot assist with deployments before Thursday.",
    "I can't continue until pull request #318 is merged.",
    "Sorry, the transcript does not say which release it was.",
    "The agent said: I can't help with that, and moved on to the tests.",
    "I will not deploy before Thursday; the user asked me to wait.",
    "I'm sorry, but I can't help with billing. " + "The login endpoint answers 401 since v2.4.1. " * 30,
    "",
    "OK",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_polite_refusal_is_one(text: str) -> None:
    assert refusal_in(text)


@pytest.mark.parametrize("text", WORK)
def test_an_answer_that_knows_little_is_an_answer(text: str) -> None:
    assert refusal_in(text) is None


def test_an_answer_that_refuses_is_no_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        async with bench(tmp_path, provider=LoopbackProvider(reply=lambda _: REFUSALS[0])) as at:
            failed = await at.client.complete(call())
            assert isinstance(failed, Failed)
            assert failed.kind == "refusal"
            assert "I'm sorry, but I can't assist" in failed.message
            assert failed.usage.tokens == at.provider.input_tokens + at.provider.output_tokens

    asyncio.run(scene())


def test_a_compressors_model_that_refuses_is_heard_and_after_six_times_left_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with bench(tmp_path, provider=LoopbackProvider(reply=lambda _: REFUSALS[0]), concurrency=1) as at:
            done = [await at.client.complete(call(role="compressor", run=run)) for run in range(8)]
            assert [one.refusal for one in done if isinstance(one, Completion)] == [REFUSALS[0]] * 6
            assert len(at.provider.asked) == 6
            assert "refuses the work" in at.client.out[MODEL].message
        async with bench(tmp_path) as at:
            again = await at.client.complete(call(role="compressor", run=0))
            assert isinstance(again, Completion)
            assert again.refusal == REFUSALS[0]  # the journal keeps the text, and with it what it is

    asyncio.run(scene())
