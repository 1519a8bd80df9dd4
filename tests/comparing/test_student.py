"""Student's t against the printed tables."""

from __future__ import annotations

import math

import pytest

from eval_core.statistics.permutation import quantile


@pytest.mark.parametrize(
    ("probability", "df", "value"),
    [
        (0.80, 1, 1.376),
        (0.80, 2, 1.061),
        (0.80, 5, 0.920),
        (0.80, 33, 0.853),
        (0.95, 1, 6.314),
        (0.95, 3, 2.353),
        (0.95, 4, 2.132),
        (0.95, 33, 1.692),
        (0.975, 10, 2.228),
        (0.975, 60, 2.000),
        (0.975, 1000, 1.962),
    ],
)
def test_quantiles_are_those_of_the_tables(probability: float, df: int, value: float) -> None:
    assert quantile(probability, df) == pytest.approx(value, abs=0.001)


def test_without_any_degree_of_freedom_the_quantile_is_unbounded() -> None:
    assert math.isinf(quantile(0.95, 0))


def test_the_median_is_zero() -> None:
    assert quantile(0.5, 7) == pytest.approx(0.0, abs=1e-9)
