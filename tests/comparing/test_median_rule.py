"""Medians of medians, for display."""

from __future__ import annotations

import math

import numpy as np

from eval_core.statistics.arms import Arm
from eval_core.statistics.medians import medians, table

from .arms import constant, fixture, noisy


def test_the_median_over_probes_of_the_median_over_runs() -> None:
    scores = np.repeat(np.array([[5.0, 3.0, 1.0], [4.0, 3.0, 5.0], [4.0, 0.0, 2.0]])[:, :, None], 6, axis=2)
    arm = Arm("a", {"f": fixture(scores, probes=("p", "q", "r"))})
    assert medians(arm)["accuracy"] == 3.0  # run medians 4, 3, 2
    assert medians(arm)["overall"] == 3.0


def test_losing_fewer_than_half_of_the_probes_can_go_unseen() -> None:
    base, candidate = np.full((3, 5, 6), 4.0), np.full((3, 5, 6), 4.0)
    candidate[:, :2] = 0.0
    names = tuple("pqrst")
    rows = table(Arm("b", {"f": fixture(base, probes=names)}), Arm("c", {"f": fixture(candidate, probes=names)}))
    assert not any(row.flagged for row in rows)


def test_a_step_of_three_tenths_is_flagged_either_way() -> None:
    rows = table(constant(3, 4.0), constant(3, 3.7))
    assert len(rows) == 3 * 7
    assert all(row.flagged for row in rows)
    assert all(row.flagged for row in table(constant(3, 3.7), constant(3, 4.0)))
    assert not any(row.flagged for row in table(constant(3, 4.0), constant(3, 3.75)))


def test_missing_cells_are_left_out_and_no_grades_have_no_median() -> None:
    arm = noisy(1, 5)
    arm.fixtures["f0"].scores[:, 0] = np.nan
    assert all(math.isfinite(value) for value in medians(arm).values())
    assert all(math.isnan(value) for value in medians(Arm("none", {})).values())
    assert table(arm, Arm("none", {})) == ()
