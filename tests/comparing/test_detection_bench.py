"""The simulated compressors of `bench.detection`, decided by the rule as it is: each design once."""

from __future__ import annotations

import pytest

from bench.simulated import SCENARIOS
from bench.trials import DESIGNS, Setting, looked_trial, trial
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
