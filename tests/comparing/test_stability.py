"""The spread of runs: which changes of it are told, and how often none is told in vain."""

from __future__ import annotations

import numpy as np
import pytest

from eval_core.statistics.arms import Arm, Array
from eval_core.statistics.hypotheses import fact_blocks, score_blocks
from eval_core.statistics.stability import SpreadChange, spread_changes

from .arms import fixture


def arm(means: Array) -> Arm:
    """Build an arm from [fixtures, runs] of overall scores; the facts follow them."""
    cells = [np.repeat(np.repeat(np.clip(one, 0, 5)[:, None, None], 2, axis=1), 6, axis=2) for one in means]
    shares = [np.repeat(np.clip(one / 5, 0, 1)[:, None], 2, axis=1) for one in means]
    pairs = enumerate(zip(cells, shares, strict=True))
    return Arm("arm", {f"f{at}": fixture(scores, facts, facts) for at, (scores, facts) in pairs})


def told(base: Array, candidate: Array) -> tuple[SpreadChange, ...]:
    sides = arm(base), arm(candidate)
    return spread_changes(score_blocks(*sides), fact_blocks(*sides), limit=1000)


def test_one_fixture_with_three_runs_against_ten_can_be_less_stable() -> None:
    found = told(2.5 + np.linspace(-0.3, 0.3, 10)[None], np.array([[0.4, 4.2, 4.6]]))
    assert found
    assert all(item.less_stable and item.p == pytest.approx(1 / 286) for item in found)


@pytest.mark.parametrize("moved", [0.0, 0.6, 1.5])
def test_three_runs_are_rarely_told_less_stable_in_vain_whatever_the_mean_does(moved: float) -> None:
    random = np.random.default_rng(7)
    false = 0
    for _ in range(150):
        runs = 2.5 + 0.3 * random.standard_t(4, (5, 13))
        false += any(item.less_stable for item in told(runs[:, 3:], runs[:, :3] - moved))
    assert false <= 5  # 1.2 % would be 2 of 150


def test_runs_that_vary_three_times_as_much_are_told() -> None:
    random = np.random.default_rng(8)
    seen = 0
    for _ in range(20):
        base, candidate = random.normal(2.5, 0.15, (5, 10)), random.normal(2.5, 0.45, (5, 3))
        seen += any(item.less_stable for item in told(base, candidate))
    assert seen >= 15
