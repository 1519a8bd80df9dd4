from __future__ import annotations

import asyncio
import math
import random
from pathlib import Path

import pytest

from eval_core.base.config import Price
from eval_core.base.errors import UserError
from eval_core.base.tokens import count_bytes, count_messages
from eval_core.domain.call import Completion, Failed, Usage
from eval_core.models.budget import Budget, Reservation, worst_case, worst_tokens
from eval_core.models.journal import Spent
from eval_core.models.prices import tariff
from tests.model_provider import LoopbackProvider

from .provider import MODEL, bench, call

PRICE = tariff(MODEL, {MODEL: Price(input=1, output=2)})
assert PRICE is not None
WORST = PRICE.worst(worst_tokens(call()), 50)
TOKENS = worst_case(call(), PRICE).tokens


def test_the_worst_case_is_reserved_and_the_actual_settled() -> None:
    async def scene() -> None:
        budget = Budget(WORST * 1.5)
        held = await budget.reserve(call(), PRICE)
        assert isinstance(held, Reservation)
        assert budget.held_usd == pytest.approx(WORST)
        budget.charge(held, Usage(5, 0, 5, 0.001))
        assert (budget.held_usd, budget.spent_usd) == (0.0, 0.001)

    asyncio.run(scene())


def test_a_call_waits_for_reservations_and_is_refused_only_by_spend() -> None:
    async def scene() -> None:
        budget = Budget(WORST * 1.5)
        first = await budget.reserve(call(), PRICE)
        assert isinstance(first, Reservation)
        second = asyncio.create_task(budget.reserve(call(), PRICE))
        await asyncio.sleep(0)
        assert not second.done()
        budget.charge(first, Usage(1, 0, 1, WORST / 100))
        held = await second
        assert isinstance(held, Reservation)
        budget.charge(held, Usage(1, 0, 1, WORST))
        refused = await budget.reserve(call(), PRICE)
        assert isinstance(refused, Failed)
        assert (refused.kind, refused.retryable) == ("budget", False)
        assert "--budget-usd" in refused.message

    asyncio.run(scene())


def test_the_cap_is_never_passed_whatever_the_order() -> None:
    async def scene(seed: int) -> None:
        dice = random.Random(seed)
        budget = Budget(WORST * 7.3)

        async def one() -> None:
            held = await budget.reserve(call(), PRICE)
            assert budget.spent_usd + budget.unsure_usd + budget.held_usd <= WORST * 7.3 + 1e-12
            if isinstance(held, Reservation):
                for _ in range(dice.randrange(4)):
                    await asyncio.sleep(0)
                if dice.random() < 0.2:
                    budget.lose(held)
                else:
                    budget.charge(held, Usage(1, 0, 1, held.usd * dice.random()))

        await asyncio.gather(*(one() for _ in range(60)))
        assert budget.spent_usd + budget.unsure_usd <= WORST * 7.3 + 1e-12

    for seed in range(20):
        asyncio.run(scene(seed))


def test_earlier_spend_counts_and_so_does_what_may_have_been_charged() -> None:
    async def scene() -> None:
        budget = Budget(WORST * 3, carried=Spent(usd=WORST, unsure_usd=WORST * 1.5))
        refused = await budget.reserve(call(), PRICE)
        assert isinstance(refused, Failed)
        assert "possibly charged" in refused.message

    asyncio.run(scene())


def test_a_token_cap_holds_without_any_price() -> None:
    async def scene() -> None:
        budget = Budget(None, worst_tokens(call()) + 50)
        held = await budget.reserve(call(), None)
        assert isinstance(held, Reservation)
        budget.charge(held, Usage(10, 0, 10, None))
        refused = await budget.reserve(call(), None)
        assert isinstance(refused, Failed)
        assert "max_tokens_total" in refused.message

    asyncio.run(scene())


def test_an_unknown_price_is_refused_with_the_ways_out() -> None:
    with pytest.raises(UserError, match=r"nobody/knows: price unknown.*models.prices.*max_tokens_total"):
        Budget(5.0).require_prices(["nobody/knows"], {"nobody/knows": None})
    Budget(5.0, 1_000_000).require_prices(["nobody/knows"], {"nobody/knows": None})


def test_a_run_stops_at_its_cap_and_the_provider_sees_no_more_calls(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = LoopbackProvider(reply=lambda _: "word " * 40)
        async with bench(tmp_path, provider=provider, usd=WORST * 4) as at:
            outcomes = await asyncio.gather(*(at.client.complete(call(run=n)) for n in range(60)))
            done = [o for o in outcomes if isinstance(o, Completion)]
            refused = [o for o in outcomes if isinstance(o, Failed)]
            assert done
            assert {o.kind for o in refused} == {"budget"}
            assert len(provider.asked) == len(done)
            assert at.client.budget is not None
            assert at.client.budget.spent_usd <= WORST * 4
            assert at.journal is not None
            assert at.journal.spent.usd == pytest.approx(at.client.budget.spent_usd)
        more = LoopbackProvider(reply=lambda _: "word " * 40)
        async with bench(tmp_path, provider=more, usd=WORST * 4) as at:
            outcomes = await asyncio.gather(*(at.client.complete(call(run=n)) for n in range(60)))
            assert len([o for o in outcomes if isinstance(o, Completion)]) == len(done)
            assert not more.asked  # what was spent before still counts

    asyncio.run(scene())


def test_listed_models_have_prices_and_cached_tokens_are_cheaper() -> None:
    listed = tariff("openai/gpt-4o-mini")
    assert listed is not None
    assert listed == tariff("gpt-4o-mini")
    plain, cached = listed.cost(Usage(1000, 0, 10)), listed.cost(Usage(1000, 900, 10))
    assert cached < plain
    assert tariff("groq/gpt-4o-mini") is None  # the same name at another provider is another price
    claude = tariff("anthropic/claude-sonnet-4-5")
    assert claude is not None
    assert (
        claude.cost(Usage(1000, 0, 0, None, 1000)) > claude.cost(Usage(1000, 0, 0)) > claude.cost(Usage(1000, 1000, 0))
    )


def test_the_users_price_goes_before_the_list() -> None:
    own = tariff("gpt-4o-mini", {"gpt-4o-mini": Price(input=10, output=20, cached_input=1)})
    assert own is not None
    assert own.cost(Usage(1_000_000, 500_000, 0)) == pytest.approx(5.5)


def test_the_last_dollar_and_the_last_token_can_be_spent() -> None:
    async def scene(cap: Budget) -> None:
        assert await cap.reserve(call(), PRICE) == Reservation(WORST, TOKENS)
        cap.charge(Reservation(WORST, TOKENS), None)
        assert isinstance(await Budget(WORST * 0.999).reserve(call(), PRICE), Failed)
        assert isinstance(await Budget(None, TOKENS - 1).reserve(call(), PRICE), Failed)

    for cap in (Budget(WORST), Budget(None, TOKENS)):
        asyncio.run(scene(cap))


async def _held() -> tuple[Budget, Reservation]:
    budget = Budget(2.0)
    part = await budget.reserve(call(), PRICE)
    assert isinstance(part, Reservation)
    return budget, part


def test_a_lost_call_counts_at_its_worst_and_a_free_one_not_at_all() -> None:
    budget, part = asyncio.run(_held())
    budget.lose(part)
    assert (budget.held_usd, budget.held_tokens) == (0.0, 0)
    assert (budget.unsure_usd, budget.unsure_tokens) == (part.usd, part.tokens)
    budget, part = asyncio.run(_held())
    budget.charge(part, None)
    assert (budget.held_usd, budget.spent_usd, budget.spent_tokens, budget.unsure_usd) == (0.0, 0.0, 0, 0.0)


def test_a_refusal_names_the_cap_that_stands_in_the_way_and_is_counted() -> None:
    async def refusal(budget: Budget) -> str:
        found = await budget.reserve(call(), PRICE)
        assert isinstance(found, Failed)
        assert budget.refused == 1
        return found.message

    used = Spent(usd=0.5, tokens=20, unsure_tokens=10)
    dollars = asyncio.run(refusal(Budget(0.5, 10**9, carried=used)))
    assert dollars.startswith("budget of $0.5 reached: $0.5000 spent, and the next call may cost $")
    tokens = asyncio.run(refusal(Budget(9.0, 31, carried=used)))
    assert tokens.startswith("token cap of 31 reached: 30 used, and the next call may use ")


def test_tools_a_schema_and_what_goes_before_the_messages_are_part_of_the_worst_case() -> None:
    tools = [{"name": "read_a_file", "description": "a text of a few words"}]
    plain = worst_tokens(call())
    # Half as many again as ours, for other tokenizers, and the frame of a chat.
    assert plain == math.ceil(count_messages(call().messages) * 1.5) + 64
    assert worst_tokens(call(params={"tools": tools})) > plain
    assert worst_tokens(call(params={"seed": 1})) == plain
    assert worst_tokens(call(response_schema={"type": "object", "title": "a text"})) > plain
    assert worst_case(call(), None) == Reservation(0.0, plain + 50)


def test_a_cap_in_tokens_makes_up_for_an_unknown_price() -> None:
    with pytest.raises(UserError, match=f"^{MODEL}: price unknown"):
        Budget(1.0).require_prices([MODEL, "known"], {MODEL: None, "known": PRICE})
    Budget(1.0).require_prices(["known"], {"known": PRICE})
    Budget(1.0, 100).require_prices([MODEL], {})
    Budget(None).require_prices([MODEL], {})


def test_bytes_bound_tokens_where_the_table_is_not_read_yet() -> None:
    for content in ("plain words and code: x = y[0]", "日本語のテキスト", "🙂🙃", "\ud800 alone"):
        assert worst_tokens(call(content), count_bytes) >= worst_tokens(call(content))
