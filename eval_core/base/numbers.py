"""Number formats: every report and message formats its numbers with these."""

from __future__ import annotations

import math
from collections.abc import Sequence

MINUS = "\N{MINUS SIGN}"
ARROW = "\N{RIGHTWARDS ARROW}"
UNKNOWN = "unknown"
_EXACT = 9
"""Decimals that do not depend on the order of an addition."""


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _number(value: float, digits: int, *, sign: bool) -> str:
    # Python 3.12 adds floats up more exactly than 3.11. A tie such as 0.025 must be rounded the same way by both.
    text = f"{abs(round(value, _EXACT)):.{digits}f}"
    if float(text) == 0:
        return text  # a zero has no sign
    return (MINUS if value < 0 else "+" if sign else "") + text


def signed(value: float | None) -> str:
    """Return a change in points: +0.30, −0.94; a change too small for two digits shows a third."""
    if value is None or not _known(value):
        return UNKNOWN
    return _number(value, 3 if 0.0005 <= abs(value) < 0.005 else 2, sign=True)


def score(value: float | None) -> str:
    """Return a mean or median score: 4.12."""
    return _number(value, 2, sign=False) if value is not None and _known(value) else UNKNOWN


def points(value: float | None) -> str:
    """Return a size in points, without a sign: 0.27."""
    return score(None if value is None else abs(value))


def interval(low: float | None, high: float | None) -> str:
    """Return an interval in points: [−1.20, −0.70]."""
    if low is None or high is None or not (_known(low) and _known(high)):
        return "[unknown]"
    return f"[{signed(low)}, {signed(high)}]"


def percent(share: float | None, digits: int = 0) -> str:
    """Return a share: 85 %."""
    return f"{_number(share * 100, digits, sign=False)} %" if share is not None and _known(share) else UNKNOWN


def percent_change(before: float, after: float) -> str:
    """Return two shares: 85 % → 62 %; with a decimal where whole numbers would hide the change."""
    digits = 1 if percent(before) == percent(after) and abs(before - after) >= 0.0005 else 0
    return f"{percent(before, digits)} {ARROW} {percent(after, digits)}"


def change(before: float, after: float) -> str:
    """Return two scores: 4.80 → 0.00."""
    return f"{score(before)} {ARROW} {score(after)}"


def pp(share: float | None, *, sign: bool = False) -> str:
    """Return a difference of shares in percentage points: 5 pp, 0.8 pp; with a sign where it is a change."""
    if share is None or not _known(share):
        return UNKNOWN
    digits = 0 if abs(share) >= 0.0095 or abs(share) < 0.0005 else 1
    return f"{_number(share * 100 if sign else abs(share * 100), digits, sign=sign)} pp"


def _adding_up(before: float, after: float, digits: int, most: int) -> tuple[int, float]:
    """Return how many digits to show, and the change that the two rounded numbers have between them.

    A digit more is shown where rounding each number by itself would contradict the rounded change.
    """
    before, after = round(before, _EXACT), round(after, _EXACT)
    for shown in range(digits, most + 1):
        apart = round(round(after, shown) - round(before, shown), shown)
        hidden = apart == 0 and round(after - before, most) != 0
        if apart == round(after - before, shown) and not hidden:
            return shown, apart
    return most, round(round(after, most) - round(before, most), most)


def scores_and_change(before: float, after: float) -> tuple[str, str, str]:
    """Return two scores and their change, which add up: 4.69, 1.83, −2.86."""
    if not (_known(before) and _known(after)):
        return score(before), score(after), UNKNOWN
    digits, apart = _adding_up(before, after, 2, 3)
    return _number(before, digits, sign=False), _number(after, digits, sign=False), _number(apart, digits, sign=True)


def percents_and_change(before: float, after: float) -> tuple[str, str, str]:
    """Return two shares and their change in percentage points, which add up: 86.4 %, 81.5 %, −4.9 pp."""
    if not (_known(before) and _known(after)):
        return percent(before), percent(after), UNKNOWN
    digits, apart = _adding_up(before * 100, after * 100, 0, 1)
    return percent(before, digits), percent(after, digits), f"{_number(apart, digits, sign=True)} pp"


def p_value(p: float | None) -> str:
    """Return a p-value: 0.032, <0.001."""
    if p is None:
        return UNKNOWN
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: 1 run, 2 runs."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def counted_range(fewest: int, most: int, noun: str) -> str:
    """Return a number of things that differs from case to case: "6 to 7 sections", "7 messages", "1 section"."""
    return counted(most, noun) if fewest == most else f"{fewest} to {counted(most, noun)}"


def tokens(count: float) -> str:
    """Return a number of tokens: 640, 5.2k."""
    return f"{count / 1000:.1f}k" if count >= 999.5 else f"{count:.0f}"


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def ordinal(number: int) -> str:
    """Return the word for a place in an order, from 1."""
    return _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"number {number}"


def quoted(text: str) -> str:
    """Return a name that was read off a text as plain words in quotes: letters and digits only, not too long."""
    return f"“{' '.join(''.join(char if char.isalnum() or char == chr(39) else ' ' for char in text).split())[:60]}”"


def listed(items: Sequence[str], most: int = 3) -> str:
    """Return a list for one line; what does not fit is counted."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
