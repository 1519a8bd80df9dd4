"""Does the judge still grade as it did?"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest

from eval_core.base.errors import UserError
from eval_core.comparing.drift import CONFIRMED, SAMPLE, Drift, GradedCell, Regraded, check, confirm, sample

CELLS = [GradedCell(f"f{f}", run, f"p{p}") for f in range(3) for run in range(10) for p in range(8)]


def pairs(shift: float, sd: float, n: int = 30, seed: int = 0) -> list[Regraded]:
    random = np.random.default_rng(seed)
    found = []
    for cell in sample(CELLS, n):
        old = random.uniform(2, 4, 6)
        found.append(Regraded(cell, tuple(old), tuple(old + shift + random.normal(0, sd, 6))))
    return found


def test_the_sample_is_spread_over_fixtures_and_runs() -> None:
    chosen = sample(CELLS, 30)
    assert len(chosen) == len(set(chosen)) == 30
    assert Counter(cell.fixture for cell in chosen) == {"f0": 10, "f1": 10, "f2": 10}
    assert len({(cell.fixture, cell.run) for cell in chosen}) == 30


def test_the_sample_repeats_with_its_seed_and_not_with_another() -> None:
    assert sample(CELLS, seed=1) == sample(list(reversed(CELLS)), seed=1)
    assert sample(CELLS, seed=1) != sample(CELLS, seed=2)


def test_a_small_baseline_is_sampled_whole() -> None:
    assert sample(CELLS[:5]) == tuple(CELLS[:5])


def test_a_judge_a_quarter_point_stricter_is_noticed() -> None:
    drift = check(pairs(-0.25, 0.3))
    assert drift is not None
    assert drift.fired
    name, shift = drift.largest
    assert name == "overall"
    assert shift == pytest.approx(-0.25, abs=0.1)


def test_a_judge_that_repeats_itself_has_not_drifted() -> None:
    drift = check(pairs(0.0, 0.0))
    assert drift is not None
    assert (drift.fired, drift.p) == (False, 1.0)


def test_a_certain_but_tiny_shift_is_left_alone() -> None:
    drift = check(pairs(-0.02, 0.0))
    assert drift is not None
    assert drift.p < 0.01
    assert not drift.fired


def test_an_honest_judge_is_suspected_no_more_often_than_alpha() -> None:
    fired = [check(pairs(0.0, 0.6, n=9, seed=seed), alpha=0.05) for seed in range(300)]
    assert sum(item is not None and item.fired for item in fired) / 300 < 0.08  # 0.05 and three standard errors


def test_too_few_runs_cannot_show_a_drift() -> None:
    drift = check([Regraded(GradedCell("f", run, "p"), (5.0,) * 6, (1.0,) * 6) for run in range(4)], alpha=0.05)
    assert drift is not None
    assert not drift.can_reach
    assert not drift.fired
    assert drift.p == 2 / 16


def test_p_equals_the_share_of_sign_flips_by_brute_force() -> None:
    shifts = [-0.5, -0.2, 0.1, -0.4, -0.3]  # the same in all dimensions, so the largest statistic is that of each
    drift = check([Regraded(GradedCell("f", i, "p"), (3.0,) * 6, (3.0 + s,) * 6) for i, s in enumerate(shifts)])
    assert drift is not None
    flips = [
        abs(sum(a * b for a, b in zip(signs, shifts, strict=True))) for signs in itertools.product((1, -1), repeat=5)
    ]
    assert drift.p == pytest.approx(fmean(flip >= abs(sum(shifts)) - 1e-9 for flip in flips))


def test_cells_of_one_run_count_as_one_cluster() -> None:
    many = [Regraded(GradedCell("f", 0, f"p{i}"), (5.0,) * 6, (1.0,) * 6) for i in range(30)]
    drift = check(many)
    assert drift is not None
    assert (drift.cells, drift.clusters, drift.fired) == (30, 1, False)


def test_no_pairs_no_drift_and_bad_grades_are_refused() -> None:
    assert check([]) is None
    with pytest.raises(UserError, match="not a number"):
        check([Regraded(GradedCell("f", 0, "p"), (1.0,) * 6, (float("nan"),) * 6)])
    with pytest.raises(UserError, match="need 6 scores"):
        check([Regraded(GradedCell("f", 0, "p"), (1.0,), (1.0,))])


def graded_again(shift: float, scale: float, sd: float, n: int, seed: int) -> list[Regraded]:
    random = np.random.default_rng(seed)
    found = []
    for cell in sample(CELLS, n, seed):
        truth = random.uniform(0.5, 4.5)
        old, new = (truth + random.normal(0, sd) + random.normal(0, sd / 2, 6) for _ in range(2))
        found.append(Regraded(cell, tuple(old), tuple(2.5 + scale * (new - 2.5) + shift)))
    return found


def two_samples(shift: float, scale: float, seed: int, sd: float = 0.5) -> Drift | None:
    first, second = (graded_again(shift, scale, sd, SAMPLE, 2 * seed + at) for at in (0, 1))
    alarm = check(first)
    return confirm(alarm, check([*first, *second], alpha=CONFIRMED) if alarm and alarm.fired else None)


def test_a_noisy_but_unchanged_judge_is_hardly_ever_called_drifted() -> None:
    fired = [two_samples(0.0, 1.0, seed) for seed in range(60)]
    assert sum(item is not None and item.fired for item in fired) <= 2


@pytest.mark.parametrize(("shift", "scale"), [(-0.25, 1.0), (0.0, 0.5)])
def test_a_quarter_point_or_a_halved_scale_is_found(shift: float, scale: float) -> None:
    fired = [two_samples(shift, scale, seed) for seed in range(20)]
    assert sum(item is not None and item.fired for item in fired) >= 17


def test_a_first_alarm_alone_mutes_nothing_and_a_small_confirmed_shift_is_corrected() -> None:
    first = check(graded_again(-0.25, 1.0, 0.2, SAMPLE, 1))
    assert first is not None
    assert first.fired
    alone = confirm(first, None)
    assert alone is not None
    assert not alone.fired
    both = two_samples(-0.2, 1.0, 3, sd=0.2)
    assert both is not None
    assert both.fired
    assert both.small
    large = two_samples(-0.8, 1.0, 3, sd=0.2)
    assert large is not None
    assert not large.small


def test_what_moved_is_called_as_people_call_it() -> None:
    found = check(graded_again(-0.25, 1.0, 0.2, SAMPLE, 1))
    assert found is not None
    shifts = {name: -0.24 if name == "instruction_following" else 0.0 for name in found.shifts}
    assert replace(found, shifts=shifts).largest == ("instruction following", -0.24)
