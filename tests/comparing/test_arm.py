"""What is refused where arms are built, and how it is named."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from adopted import measured

from eval_core.base.errors import UserError
from eval_core.domain.record import CensusRecord
from eval_core.statistics.arms import Arm, make_arm, validate

from .arms import CHECKS, constant, fixture


def test_a_sound_arm_with_missing_cells_passes() -> None:
    arm = constant(3, 4.0)
    arm.fixtures["f0"].scores[1, 0] = np.nan
    arm.fixtures["f0"].facts[2] = np.nan
    validate(arm)


@pytest.mark.parametrize(
    ("array", "index", "value", "message"),
    [
        ("scores", (1, 0, 2), 5.5, "f1 / p0, run 2: a score is 5.5, expected 0 to 5"),
        ("scores", (0, 1, 0), -0.1, "f1 / p1, run 1: a score is -0.1"),
        ("scores", (0, 1, 0), np.inf, "f1 / p1, run 1: a score is inf"),
        ("scores", (2, 1, 3), np.nan, "f1 / p1, run 3: some dimensions are scored and others not"),
        ("facts", (0, 1), 1.2, "f1 / p1, run 1: the share of facts kept is 1.2, expected 0 to 1"),
        ("census", (1, 0), -1.0, "f1 / path, run 2: the share of census facts kept is -1.0"),
        ("census_weights", (1, 1), -3.0, "f1 / number, run 2: the number of census facts is -3.0, expected at least 0"),
    ],
)
def test_an_impossible_value_is_named_with_fixture_probe_and_run(
    array: str, index: tuple[int, ...], value: float, message: str
) -> None:
    arm = Arm("base", {name: fixture(np.full((3, 2, 6), 4.0)) for name in ("f0", "f1")})
    getattr(arm.fixtures["f1"], array)[index] = value
    with pytest.raises(UserError, match="base: " + message.replace("[", r"\[")):
        validate(arm)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": np.zeros((3, 2, 5))}, r"scores has the shape \(3, 2, 5\), expected runs x 2 x 6"),
        ({"facts": np.zeros((4, 2))}, r"facts has the shape \(4, 2\), expected 3 x 2"),
        ({"census": np.zeros(3)}, "census has the shape"),
        ({"probes": ("p", "p")}, "the probe 'p' appears twice"),
        ({"planned_scores": 5}, "6 score cells were measured but only 5 planned"),
        ({"planned_facts": 0}, "6 fact cells were measured but only 0 planned"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, object], message: str) -> None:
    one = dataclasses.replace(fixture(np.full((3, 2, 6), 4.0)), **change)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=message):
        validate(Arm("base", {"f": one}))


def test_a_run_that_took_place_with_nothing_at_risk_is_told_from_a_lost_one() -> None:
    nothing = np.full((2, 2), np.nan)
    arm = fixture(None, nothing, nothing, structure=(CHECKS, {}))
    assert arm.happened.tolist() == [True, False]
    assert arm.fact_cells == 2


@pytest.mark.parametrize("lost", [-1, 4, 10**400])
def test_a_census_that_lost_more_than_it_found_is_refused(lost: int) -> None:
    whole = measured("anchored")
    (name, (first, *_)), *_ = whole.fixtures.items()
    bad = first.model_copy(update={"census": CensusRecord(total={"path": 3}, lost={"path": lost})})
    with pytest.raises(UserError, match=f"^{name} / path, run 1: the census has lost more facts than it found"):
        make_arm(whole.model_copy(update={"fixtures": {name: [bad]}}))
