from __future__ import annotations

import pytest

from eval_core.measuring.price_calls import CountedCalls, estimate, total
from eval_core.models.prices import Tariff

CHEAP = Tariff(input=1e-6, output=4e-6, cached_input=1e-7, cache_write=1e-6, long_factor=2.0)
PLAN = [
    CountedCalls("answer", "cheap", 10, 100_000, 2_000, shared_tokens=80_000),
    CountedCalls("judge", "cheap", 10, 20_000, 1_000),
]


def test_rows_are_priced_with_and_without_the_prompt_cache() -> None:
    answer, judge = estimate(PLAN, {"cheap": CHEAP})
    assert answer.cost_usd == pytest.approx(0.108)
    assert answer.cached_cost_usd == pytest.approx(0.036)
    assert judge.cost_usd == judge.cached_cost_usd == pytest.approx(0.024)
    summed = total([answer, judge])
    assert (summed.calls, summed.input_tokens, summed.cost_usd) == (20, 120_000, pytest.approx(0.132))


def test_an_unknown_price_makes_the_sum_unknown_not_zero() -> None:
    rows = estimate([*PLAN, CountedCalls("compressor", "nobody", 1, 10, 10)], {"cheap": CHEAP})
    assert rows[2].cost_usd is None
    assert total(rows).cost_usd is None
    assert total(rows).calls == 21


def test_many_short_calls_are_not_one_long_one() -> None:
    (row,) = estimate([CountedCalls("judge", "cheap", 100, 400_000, 0)], {"cheap": CHEAP})
    assert row.cost_usd == pytest.approx(0.4)
    (row,) = estimate([CountedCalls("judge", "cheap", 1, 400_000, 0)], {"cheap": CHEAP})
    assert row.cost_usd == pytest.approx(0.8)


def test_no_more_is_cached_than_there_is() -> None:
    (row,) = estimate([CountedCalls("judge", "cheap", 1, 100, 0, shared_tokens=500)], {"cheap": CHEAP})
    assert row.cached_cost_usd == pytest.approx(100 * 1e-7)
