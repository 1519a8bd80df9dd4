from __future__ import annotations

import asyncio

import pytest

from eval_core.base.messages import Message
from eval_core.domain.call import Completion, Draw, ModelCall
from eval_core.models.transport import mark_prefix, prefix_digest, wants_marks
from tests.model_provider import Asked, LoopbackProvider

from .provider import MODEL, bench

STATE = "state " * 1500
MESSAGES: list[Message] = [
    {"role": "system", "content": STATE},
    {"role": "user", "content": "question"},
]


def asks(question: int, run: int = 0) -> ModelCall:
    state = f"{STATE} of run {run}"
    messages = ({"role": "system", "content": state}, {"role": "user", "content": f"question {question}"})
    return ModelCall("answer", MODEL, messages, 50, draw=Draw(run), shared=1)


def test_the_first_goes_ahead_and_its_siblings_find_the_cache_warm() -> None:
    async def scene() -> None:
        provider = LoopbackProvider(prompt_cache=True)
        async with bench(provider=provider) as at:
            done = await asyncio.gather(*(at.client.complete(asks(n)) for n in range(8)))
            assert [isinstance(o, Completion) for o in done] == [True] * 8
            usages = [o.usage for o in done]
            assert [u.cached_tokens > 1024 for u in usages].count(True) == 7
            assert sum(u.cached_tokens for u in usages) == provider.cached_tokens
            warm, cold = usages[1], usages[0]
            assert warm.cost_usd == pytest.approx(cold.cost_usd)  # this model has no cheaper price for cached tokens

    asyncio.run(scene())


def test_siblings_follow_even_when_the_first_fails() -> None:
    async def scene() -> None:
        async with bench(behave=lambda a: "400" if a.number == 0 else None) as at:
            done = await asyncio.gather(*(at.client.complete(asks(n)) for n in range(4)))
            assert [isinstance(o, Completion) for o in done].count(True) == 3

    asyncio.run(scene())


def test_siblings_do_not_wait_for_a_first_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eval_core.models.transport._LONGEST_LEAD", 0.02)

    async def scene() -> None:
        async with bench(behave=lambda a: "hang" if a.number == 0 else None) as at:
            calls = [asyncio.create_task(at.client.complete(asks(n))) for n in range(4)]
            done = await asyncio.gather(*calls[1:])
            assert [isinstance(o, Completion) for o in done] == [True] * 3
            assert not calls[0].done()
            calls[0].cancel()

    asyncio.run(scene())


def test_other_prefixes_do_not_wait() -> None:
    async def scene() -> None:
        both = asyncio.Event()
        seen: set[str] = set()

        def behave(asked: Asked) -> str | None:
            seen.add(asked.last)
            if len(seen) == 2:
                both.set()
            return None

        async with bench(provider=LoopbackProvider(behave=behave, latency=0.05)) as at:
            calls = [asyncio.create_task(at.client.complete(asks(run, run=run))) for run in range(2)]
            await both.wait()
            assert not any(task.done() for task in calls)
            await asyncio.gather(*calls)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("anthropic/claude-sonnet-4-5", True),
        ("claude-sonnet-4-5", True),
        ("bedrock/anthropic.claude-sonnet-4-5-v1:0", True),
        ("bedrock/us.anthropic.claude-sonnet-4-5-v1:0", True),
        ("vertex_ai/claude-sonnet-4-5", True),
        ("openrouter/anthropic/claude-sonnet-4.5", True),
        ("openai/gpt-4o-mini", False),
        ("gemini/gemini-2.5-pro", False),
        ("openai/my-claude-like", False),
    ],
)
def test_marks_are_set_where_the_provider_wants_them(model: str, wanted: bool) -> None:
    assert wants_marks(model) is wanted
    marked = mark_prefix(MESSAGES, model, 1)
    expected = [{"type": "text", "text": STATE, "cache_control": {"type": "ephemeral"}}] if wanted else STATE
    assert marked[0]["content"] == expected
    assert marked[1] == MESSAGES[1]
    assert MESSAGES[0]["content"] == STATE  # the call itself stays as it is


CLAUDE = "anthropic/claude-sonnet-4-5"


def test_a_claude_compressor_reads_the_whole_repeated_prompt_from_the_cache() -> None:
    async def scene() -> None:
        provider = LoopbackProvider(marked_cache=True)
        async with bench(provider=provider, settings={"params": {}}) as at:
            prompt = ({"role": "system", "content": "Summarise."}, {"role": "user", "content": STATE})
            calls = [ModelCall("compressor", CLAUDE, prompt, 50, draw=Draw(run), shared=2) for run in range(10)]
            done = await asyncio.gather(*(at.client.complete(one) for one in calls))
            usages = [one.usage for one in done if isinstance(one, Completion)]
            assert [usage.written_tokens > 1024 for usage in usages].count(True) == 1
            assert [usage.cached_tokens > 1024 for usage in usages].count(True) == 9
            assert provider.cached_tokens > 0.85 * provider.input_tokens

    asyncio.run(scene())


def test_what_is_not_repeated_is_not_marked() -> None:
    marked = mark_prefix(MESSAGES, CLAUDE, 0)
    assert marked == MESSAGES


def test_equal_content_is_one_prefix_whoever_asks_and_a_short_one_is_none() -> None:
    one, other = asks(1), asks(2)
    assert prefix_digest(one) == prefix_digest(other) is not None
    assert prefix_digest(one) != prefix_digest(asks(1, run=1))
    assert prefix_digest(ModelCall("answer", MODEL, ({"role": "user", "content": "hi"},), 50, shared=1)) is None
