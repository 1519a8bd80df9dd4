"""The decision about tasks: few rollouts find what to look at, fresh ones alone decide."""

from __future__ import annotations

import pytest

from bench.two_stage import simulate
from eval_core.statistics.two_stage import (
    FRESH_RUNS,
    Fresh,
    confirmed,
    holm,
    more_failures_p,
    power,
    smallest_seen,
)


def test_the_exact_test_counts_all_ways() -> None:
    assert more_failures_p(0, 5, 5, 5) == pytest.approx(1 / 252)
    assert more_failures_p(0, 5, 4, 5) == pytest.approx(5 / 210)
    assert more_failures_p(2, 5, 2, 5) > 0.5
    assert more_failures_p(5, 5, 5, 5) == 1.0
    assert more_failures_p(0, 5, 0, 5) == 1.0


def test_a_named_failure_needs_four_of_five() -> None:
    assert confirmed({"a": Fresh(0, 4, 5, 5)}) == ({"a"}, set())
    assert confirmed({"a": Fresh(0, 3, 5, 5)}) == (set(), set())
    assert confirmed({"a": Fresh(5, 0, 5, 5)}) == (set(), {"a"})
    assert smallest_seen(FRESH_RUNS) == 4


def test_more_tasks_that_are_looked_at_need_more() -> None:
    assert confirmed({"a": Fresh(0, 4, 5, 5), "b": Fresh(2, 2, 5, 5)})[0] == set()
    assert confirmed({"a": Fresh(0, 5, 5, 5), "b": Fresh(0, 4, 5, 5)})[0] == {"a", "b"}
    assert holm({"a": 0.01, "b": 0.04, "c": 0.2}, 0.05) == {"a"}


def test_what_the_two_stages_see() -> None:
    assert power(0.05, 1.0) == pytest.approx(0.97, abs=0.005)
    assert power(0.05, 0.8) == pytest.approx(0.534, abs=0.005)
    assert max(power(rate / 100, rate / 100) for rate in range(101)) < 0.005


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5])
def test_simulated_false_alarms_of_ten_tasks_stay_below_one_in_a_hundred(rate: float) -> None:
    for lucky in (False, True):
        assert simulate([rate] * 10, [rate] * 10, 2000, lucky=lucky).worse < 0.013


def test_the_second_stage_needs_compressions_of_its_own() -> None:
    assert simulate([0.3] * 10, [0.3] * 10, 1000, lucky=True, fresh=False).worse > 0.1
    assert simulate([0.05] * 10, [0.95, *[0.05] * 9], 1000, lucky=True).worse > 0.7
