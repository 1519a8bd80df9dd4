"""The simulated compressors of `bench.detection`, decided by the rule as it is: each design once."""

from __future__ import annotations

import pytest

from bench.simulated import SCENARIOS
from bench.trials import DESIGNS, Flicker, Setting, clear_trial, looked_trial, trial
from eval_core.strands.findings import Kind


@pytest.mark.parametrize("design", DESIGNS)
def test_every_design_finds_a_dropped_section_and_calls_nothing_else_a_regression(design: str) -> None:
    same, dropped = (
        trial(1, Setting("", 3, change=SCENARIOS[name], design=DESIGNS[design]))
        for name in ("same vs same", "a template section dropped")
    )
    assert (same.alarm, dropped.kind) == (False, Kind.REGRESSED)


def test_only_the_noise_and_looks_are_simulated_too() -> None:
    assert not trial(1, Setting("", 3, spread=2.0)).alarm
    assert looked_trial(1, Setting("", 3, change=SCENARIOS["a template section dropped"])).alarm_at == (True,) * 3


def test_two_facts_that_are_always_lost_are_found_among_many_that_flicker_one_by_one() -> None:
    assert sum(clear_trial(seed, Flicker(30, 1, 2)) <= 0.01 for seed in range(20)) >= 18
    assert sum(clear_trial(seed, Flicker(30, 2, 0)) <= 0.01 for seed in range(20)) <= 1
