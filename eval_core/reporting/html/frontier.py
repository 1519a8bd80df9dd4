"""Quality and size in one picture: what each side keeps in how many tokens, beside the plain ways to be that small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal

from eval_core.base.numbers import listed, percent
from eval_core.base.numbers import tokens as token_words
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import AT_BUDGETS
from eval_core.reporting.html.plots import Tick, nice

WIDTH, HEIGHT = 410, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 24, 26, 40
_CURVES = {
    "recency": ("keeping only the newest messages", "recency"),
    "proportional": ("cutting every message evenly", "proportional"),
    "builtin:sliding-window": ("the built-in sliding window", "window"),
    "builtin:anchored": ("the built-in anchored summary", "anchored"),
    AT_BUDGETS: ("this compressor at its other budgets", "own"),
}
_DOTTED = ("builtin:sliding-window", "builtin:anchored", AT_BUDGETS)
"""Curves of a few measured points, which are marked."""
_LETTER, _LINE = 7.6, 15.0
"""About how wide a letter of a mark's name is, and how high its line."""


@dataclass(frozen=True)
class Label:
    """The words beside a mark: where they are written, and which part of them is there."""

    words: str
    x: float
    y: float
    anchor: Literal["start", "middle", "end"]

    @property
    def box(self) -> tuple[float, float, float, float]:
        """About what the words cover: left, top, right, bottom."""
        width = _LETTER * len(self.words)
        left = self.x - {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor] * width
        return left, self.y - _LINE + 4, left + width, self.y + 4


@dataclass(frozen=True)
class FrontierMark:
    """One compressor: its size, what it keeps, and where that is drawn."""

    name: str
    css: str
    tokens: float
    kept: float
    x: float
    y: float
    label: Label | None
    """None where a mark at the same place has the words of both."""


@dataclass(frozen=True)
class Curve:
    """One plain way to be small, as the points of a line."""

    name: str
    css: str
    points: str
    dots: tuple[tuple[float, float], ...] = ()
    """Where single points of it were measured."""


@dataclass(frozen=True)
class Frontier:
    """Facts kept over tokens retained, with a sentence that says the same."""

    marks: tuple[FrontierMark, ...]
    curves: tuple[Curve, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    sentence: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM

    @property
    def right(self) -> int:
        """Where the axes end."""
        return self.width - _RIGHT


def _frontier_curves(measurement: Measurement) -> dict[str, list[tuple[float, float]]]:
    """Return the mean curve of each plain way; the points of all fixtures are at the same shares of their length."""
    found: dict[str, list[tuple[float, float]]] = {}
    for name in _CURVES:
        rows = [[point for point in points if point.name == name] for points in measurement.frontier.values()]
        rows = [row for row in rows if row]
        if rows and len({len(row) for row in rows}) == 1:
            found[name] = sorted(
                (fmean(point.tokens for point in column), fmean(point.kept for point in column))
                for column in zip(*rows, strict=True)
            )
    return found


def _called(name: str) -> str:
    return f"the {name}" if name in ("base", "candidate") else name


def _frontier_sentence(sides: Sequence[tuple[str, str, Measurement]]) -> str:
    def keeps(name: str, measurement: Measurement) -> str:
        kept, tokens = percent(measurement.facts_kept), token_words(measurement.tokens_kept or 0.0)
        return f"{_called(name)} keeps {kept} of all facts in {tokens} tokens"

    def plain(measurement: Measurement) -> tuple[str, str]:
        return percent(measurement.share_kept("recency")), percent(measurement.share_kept("proportional"))

    if len(sides) > 2:
        parts = [
            f"{keeps(name, measurement)} (the newest messages alone {plain(measurement)[0]}, "
            f"every message cut evenly {plain(measurement)[1]})"
            for name, _, measurement in sides
        ]
        return f"{'; '.join(parts)}."
    recency, proportional = plain(sides[-1][2])
    return (
        f"{'; '.join(keeps(name, measurement) for name, _, measurement in sides)}. At "
        f"{_called(sides[-1][0])}'s size, the newest messages alone would keep {recency}, "
        f"every message cut evenly {proportional}."
    )


def _window(low: float, high: float, most: float) -> tuple[float, float, float]:
    """Return the round ends of an axis that shows this much, and the step of its ticks."""
    step = nice((high - low) / 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return max(0.0, first * step), min(last * step, most), step


def _at(points: Sequence[tuple[float, float]], tokens: float) -> float | None:
    """Return the height of a curve at a size; None beyond its ends."""
    for (left, low), (right, high) in pairwise(points):
        if left <= tokens <= right and right > left:
            return low + (high - low) * (tokens - left) / (right - left)
    return None


def _labels(
    marks: Sequence[tuple[str, float, float]], lines: Sequence[Sequence[tuple[float, float]]], width: int
) -> dict[tuple[float, float, str], Label]:
    """Find a free place for the words of each mark: beside, above or below it, off other words, marks and lines."""
    dots = [
        (left[0] + (right[0] - left[0]) * part / 12, left[1] + (right[1] - left[1]) * part / 12)
        for line in lines
        for left, right in pairwise(line)
        for part in range(13)
    ]
    placed: dict[tuple[float, float, str], Label] = {}
    middle = fmean(x for _, x, _ in marks)
    for words, x, y in marks:
        beside = (Label(words, x + 12, y + 4, "start"), Label(words, x - 12, y + 4, "end"))
        nearest = (
            *(beside if x >= middle else beside[::-1]),
            Label(words, x, y - 13, "middle"),
            Label(words, x, y + 21, "middle"),
            *(
                Label(words, x + way * 9, y + 4 + lower, "start" if way > 0 else "end")
                for lower in (-14, 14, -29, 29, -44, 44)
                for way in (1, -1)
            ),
        )

        def crowded(choice: int, nearest: tuple[Label, ...] = nearest) -> float:
            left, top, right, bottom = nearest[choice].box
            outside = left < _LEFT or right > width - 2 or top < 14 or bottom > HEIGHT - _BOTTOM
            others = [other.box for other in placed.values()]
            covered = sum(left < box[2] and box[0] < right and top < box[3] and box[1] < bottom for box in others)
            hidden = sum(left - 8 < at < right + 8 and top - 5 < to < bottom + 5 for _, at, to in marks)
            crossed = sum(left < at < right and top < to < bottom for at, to in dots)
            return 1000 * outside + 100 * covered + 40 * hidden + crossed + 2 * choice

        placed[x, y, words] = nearest[min(range(len(nearest)), key=crowded)]
    return placed


def frontier(sides: Sequence[tuple[str, str, Measurement]], width: int = WIDTH) -> Frontier | None:
    """Draw the sides, given as name, class and measurement; None where no sizes were recorded."""
    sides = [side for side in sides if side[2].facts_kept is not None]
    if not sides:
        return None
    places = [(name, css, side.tokens_kept or 0.0, side.facts_kept or 0.0) for name, css, side in sides]
    curves = _frontier_curves(sides[-1][2])
    plain = {name: points for name, points in curves.items() if name not in _DOTTED}
    own = curves.get(AT_BUDGETS, [])
    # Near enough to tell the marks apart, wide enough for the plain ways at their sizes.
    tokens_kept = [place[2] for place in places] + [tokens for tokens, _ in own]
    kept = [place[3] for place in places] + [share for _, share in own]
    beside = [share for points in plain.values() for size in tokens_kept if (share := _at(points, size)) is not None]
    room = max(0.22 * max(tokens_kept), 0.5 * (max(tokens_kept) - min(tokens_kept)), 1.0)
    x_low, x_high, x_step = _window(max(0.0, min(tokens_kept) - room), max(tokens_kept) + room, math.inf)
    y_low, y_high, y_step = _window(
        max(0.0, min(kept + beside) - 0.05), min(1.0, max(max(kept) + 0.1, max(beside, default=0.0) + 0.05)), 1.0
    )

    def x(tokens: float) -> float:
        return round(_LEFT + (width - _LEFT - _RIGHT) * (tokens - x_low) / (x_high - x_low), 1)

    def y(share: float) -> float:
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (share - y_low) / (y_high - y_low), 1)

    # What lies outside of the axes is cut off by the picture.
    drawn = {name: [(x(tokens), y(share)) for tokens, share in points] for name, points in curves.items()}
    dots = [(x(place[2]), y(place[3])) for place in places]
    same: dict[tuple[float, float], list[int]] = {}
    for number, dot in enumerate(dots):
        same.setdefault(dot, []).append(number)
    words = {
        dot: f"{listed([places[at][0] for at in found], len(found))} "
        f"{percent(places[found[0]][3])}, {token_words(places[found[0]][2])}"
        for dot, found in same.items()
    }
    steps = [dots] if len(dots) == 2 else []
    labels = _labels([(words[dot], *dot) for dot in same], [*drawn.values(), *steps], width)
    return Frontier(
        marks=tuple(
            FrontierMark(*place, *dot, labels[(*dot, words[dot])] if same[dot][0] == at else None)
            for at, (place, dot) in enumerate(zip(places, dots, strict=True))
        ),
        curves=tuple(
            Curve(
                *_CURVES[name],
                " ".join(f"{at},{to}" for at, to in points),
                tuple(points) if name in _DOTTED else (),
            )
            for name, points in drawn.items()
            if len(points) > 1 or name in _DOTTED
        ),
        x_ticks=tuple(Tick(x(value), token_words(value)) for value in _ticks(x_low, x_high, x_step)),
        y_ticks=tuple(Tick(y(value), percent(value)) for value in _ticks(y_low, y_high, y_step)),
        sentence=_frontier_sentence(sides),
        width=width,
    )


def _ticks(low: float, high: float, step: float) -> list[float]:
    return [low + number * step for number in range(round((high - low) / step) + 1)]
