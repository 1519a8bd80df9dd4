"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.base import numbers as wording
from eval_core.base.numbers import MINUS, percents_and_change, score, scores_and_change, signed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.3, "+0.30"),
        (-0.94, "−0.94"),
        (0.0, "0.00"),
        (-0.0, "0.00"),
        (-0.0001, "0.00"),
        (-0.004, "−0.004"),
        (0.005, "+0.01"),
        (None, "unknown"),
        (math.inf, "unknown"),
        (math.nan, "unknown"),
    ],
)
def test_a_change_in_points(value: float | None, text: str) -> None:
    assert wording.signed(value) == text


@given(st.floats(-5, 5))
def test_no_change_is_ever_shown_as_minus_zero(value: float) -> None:
    for text in (wording.signed(value), wording.pp(value, sign=True), wording.score(value), wording.percent(value)):
        digits = text.removesuffix(" pp").removesuffix(" %")
        assert "-" not in text
        assert digits[0] not in "+−" or float(digits[1:]) != 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (wording.interval(-1.2, -0.7), "[−1.20, −0.70]"),
        (wording.interval(None, 1.0), "[unknown]"),
        (wording.percent(0.85), "85 %"),
        (wording.percent(0.9541, 1), "95.4 %"),
        (wording.percent_change(0.85, 0.62), "85 % → 62 %"),
        (wording.percent_change(0.852, 0.849), "85.2 % → 84.9 %"),
        (wording.percent_change(0.85, 0.85), "85 % → 85 %"),
        (wording.change(4.8, 0.0), "4.80 → 0.00"),
        (wording.pp(0.048), "5 pp"),
        (wording.pp(0.008), "0.8 pp"),
        (wording.pp(-0.23, sign=True), "−23 pp"),
        (wording.pp(None), "unknown"),
        (wording.p_value(0.0001), "<0.001"),
        (wording.p_value(0.0321), "0.032"),
        (wording.points(-0.27), "0.27"),
        (wording.counted(1, "run"), "1 run"),
        (wording.counted(2, "run"), "2 runs"),
        (wording.listed(["a", "b"]), "a, b"),
        (wording.listed(["a", "b", "c", "d", "e"]), "a, b, c and 2 more"),
    ],
)
def test_formats(text: str, expected: str) -> None:
    assert text == expected


@given(st.floats(0, 1), st.floats(0, 1))
def test_shares_and_their_change_add_up_as_they_are_shown(before: float, after: float) -> None:
    shown = percents_and_change(before, after)
    first, second, apart = (float(text.removesuffix(" pp").removesuffix(" %").replace(MINUS, "-")) for text in shown)
    assert abs((second - first) - apart) < 1e-9


@given(st.floats(0, 5), st.floats(0, 5))
def test_scores_and_their_change_add_up_as_they_are_shown(before: float, after: float) -> None:
    first, second, apart = (float(text.replace(MINUS, "-")) for text in scores_and_change(before, after))
    assert abs((second - first) - apart) < 1e-9


def test_a_digit_is_added_only_where_rounding_would_contradict_itself() -> None:
    assert percents_and_change(0.86, 0.82) == ("86 %", "82 %", f"{MINUS}4 pp")
    assert percents_and_change(0.864, 0.815) == ("86.4 %", "81.5 %", f"{MINUS}4.9 pp")
    assert scores_and_change(4.5, 4.0) == ("4.50", "4.00", f"{MINUS}0.50")


def test_a_tie_is_rounded_alike_however_it_was_added_up() -> None:
    # sum() is more exact from Python 3.12 on: the same means differ in their last bit.
    for below, above in ((0.025 - 1e-12, 0.025 + 1e-12), (4.125 - 1e-12, 4.125 + 1e-12)):
        assert signed(below) == signed(above)
        assert score(below) == score(above)
        assert scores_and_change(4.0, 4.0 + below) == scores_and_change(4.0, 4.0 + above)
