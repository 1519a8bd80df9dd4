from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.call import Completion
from eval_core.models.budget import Budget, worst_tokens
from eval_core.models.client import ModelClient
from eval_core.models.settings import Models
from tests.model_provider import Asked, LoopbackProvider

from .provider import bench, call


def test_equal_calls_under_way_are_paid_once() -> None:
    async def scene() -> None:
        async with bench(provider=LoopbackProvider(latency=0.02)) as at:
            done = await asyncio.gather(*(at.client.complete(call()) for _ in range(10)))
            assert len(at.provider.asked) == 1
            assert len({o.text for o in done if isinstance(o, Completion)}) == 1
            assert [o.cached for o in done if isinstance(o, Completion)].count(False) == 1

    asyncio.run(scene())


def test_the_parameters_of_a_model_go_with_every_call_to_it() -> None:
    async def scene() -> None:
        params = {"loop": {"seed": 7, "top_p": 0.5}, "another": {"seed": 1}}
        async with bench(settings={"params": params}) as at:
            await at.client.complete(call())
            await at.client.complete(call("and again", params={"seed": 8}))  # what a caller asks for goes before
            bodies = [asked.body for asked in at.provider.asked]
            assert [(body["seed"], body["top_p"]) for body in bodies] == [(7, 0.5), (8, 0.5)]

    asyncio.run(scene())


def test_repetitions_are_kept_apart_by_their_run_index() -> None:
    async def scene() -> None:
        async with bench() as at:
            await asyncio.gather(*(at.client.complete(call(run=n)) for n in range(5)))
            assert len(at.provider.asked) == 5

    asyncio.run(scene())


def test_the_provider_never_sees_more_calls_at_once_than_allowed() -> None:
    async def scene() -> None:
        async with bench(provider=LoopbackProvider(latency=0.02), concurrency=3) as at:
            await asyncio.gather(*(at.client.complete(call(run=n)) for n in range(20)))
            assert at.provider.most_at_once == 3

    asyncio.run(scene())


def test_a_caller_who_goes_away_does_not_throw_away_what_is_being_paid(tmp_path: Path) -> None:
    async def scene() -> None:
        arrived = asyncio.Event()

        def behave(asked: Asked) -> None:
            arrived.set()

        async with bench(tmp_path, provider=LoopbackProvider(behave=behave, latency=0.02)) as at:
            gone = asyncio.create_task(at.client.complete(call()))
            await arrived.wait()
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            done = await at.client.complete(call())
            assert isinstance(done, Completion)
            assert len(at.provider.asked) == 1

    asyncio.run(scene())


def test_a_closed_client_leaves_the_worst_case_of_what_was_under_way_in_the_journal(tmp_path: Path) -> None:
    async def scene() -> None:
        arrived = asyncio.Event()

        def behave(asked: Asked) -> str:
            arrived.set()
            return "hang"

        async with bench(tmp_path, behave=behave, usd=5.0) as at:
            task = asyncio.create_task(at.client.complete(call()))
            await arrived.wait()
            await at.client.aclose()
            await asyncio.gather(task, return_exceptions=True)
            assert at.journal is not None
            assert at.journal.spent.unsure_usd > 0
            assert at.client.budget is not None
            assert at.client.budget.unsure_usd == pytest.approx(at.journal.spent.unsure_usd)

    asyncio.run(scene())


def test_throttling_is_survived_by_sending_less() -> None:
    async def scene() -> None:
        refused = 0

        def behave(asked: Asked) -> str | None:
            nonlocal refused
            if provider.under_way > 3:
                refused += 1
                return "429"
            return None

        provider = LoopbackProvider(behave=behave, latency=0.005)
        async with bench(provider=provider, concurrency=16) as at:
            done = await asyncio.gather(*(at.client.complete(call(run=n)) for n in range(40)))
            assert all(isinstance(o, Completion) for o in done)
            assert refused > 0
            assert at.client._limiters[provider.base_url].limit < 16

    asyncio.run(scene())


def test_a_dollar_cap_without_prices_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UserError, match="price unknown"):
        ModelClient(Models("nobody/knows", "nobody/knows", "nobody/knows"), budget=Budget(1.0))


def test_a_tool_call_is_an_answer_where_tools_were_offered_and_is_replayed_from_the_journal(tmp_path: Path) -> None:
    function = {"name": "read_file", "parameters": {"type": "object", "properties": {}}}
    asked = call(params={"tools": [{"type": "function", "function": function}]})

    async def scene() -> None:
        async with bench(tmp_path, behave=lambda _: "tool-call") as at:
            first = await at.client.complete(asked)
            assert isinstance(first, Completion)
            assert [item.name for item in first.calls] == ["read_file"]
            assert at.provider.asked[0].body["tools"][0]["function"]["name"] == "read_file"
            again = await at.client.complete(asked)
            assert isinstance(again, Completion)
            assert (again.cached, again.calls) == (True, first.calls)
            assert len(at.provider.asked) == 1

    asyncio.run(scene())


def test_offered_tools_are_reserved_for_like_the_rest_of_the_prompt() -> None:
    function = {"name": "f", "description": "word " * 500}
    assert (
        worst_tokens(call(params={"tools": [{"type": "function", "function": function}]})) > worst_tokens(call()) + 500
    )
