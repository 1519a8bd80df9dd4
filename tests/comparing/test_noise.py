"""What the rule does when nothing changed, and how noisy the runs are."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from eval_core.base.errors import UserError
from eval_core.comparing.noise import false_alarms, noise_floor, noise_rows, runs_needed
from eval_core.comparing.tested import Options

from .arms import constant, noisy

RULE = Options(arrangements=300)


def test_random_halves_of_one_baseline_alarm_about_as_often_as_promised() -> None:
    found = false_alarms(noisy(1, 10, sd=0.5), splits=100, options=RULE)
    assert found.candidate_runs == 5
    assert found.rate <= 0.12  # 0.05 and three standard errors
    low, high = found.interval
    assert low <= found.rate <= high
    assert found.crit > 1.5


def test_a_deterministic_baseline_never_alarms() -> None:
    assert false_alarms(constant(6, 4.0), splits=20, options=RULE, candidate_runs=2).alarms == 0


def test_the_rate_repeats_with_its_seed() -> None:
    arm = noisy(1, 8, sd=0.5)
    assert false_alarms(arm, splits=15, options=RULE) == false_alarms(arm, splits=15, options=RULE)


def test_compress_only_runs_are_split_too() -> None:
    arm = noisy(1, 10)
    short = {
        name: dataclasses.replace(one, scores=one.scores[:4], planned_scores=16) for name, one in arm.fixtures.items()
    }
    found = false_alarms(dataclasses.replace(arm, fixtures=short), splits=5, options=RULE)
    assert found.candidate_runs == 2


def test_one_run_cannot_be_split() -> None:
    with pytest.raises(UserError, match="f0 has one run only"):
        false_alarms(constant(1, 4.0), splits=1)


def test_the_noise_floor_is_the_pooled_spread_of_run_means() -> None:
    arm = noisy(3, 10, fixtures=2)
    expected = np.sqrt(np.mean([one.scores[:, :, 0].mean(axis=1).var(ddof=1) for one in arm.fixtures.values()]))
    floor = {item.name: item for item in noise_floor(arm)}
    assert floor["accuracy"].sd == pytest.approx(expected)
    assert (floor["accuracy"].fixtures, floor["accuracy"].df) == (2, 18)
    assert set(floor) >= {"overall", "authored facts", "census"}


def test_one_run_measures_no_noise() -> None:
    assert noise_floor(constant(1, 4.0)) == ()


def test_smaller_changes_need_more_runs_and_some_cannot_be_had() -> None:
    table = runs_needed(0.25, fixtures=3, baseline_runs=10, crit=2.4, changes=(0.1, 0.25, 0.3, 0.5, 1.0))
    assert [row.runs for row in table] == [None, 6, 4, 1, 1]


def test_only_rows_that_vary_are_listed_by_the_names_that_readers_know() -> None:
    noise = {"artifact_trail": 0.2, "overall": 0.0, "authored facts": 0.01, "census": 0.0}
    assert noise_rows(noise) == [("artifact trail", 0.2), ("facts that probes ask for", 0.01)]
