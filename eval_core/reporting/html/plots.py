"""Where marks stand on an axis, in percent of its width, so that a plot fits any screen without being scaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from eval_core.base.numbers import interval, p_value, percent, pp, score, signed
from eval_core.base.numbers import tokens as token_words
from eval_core.comparing.findings import Row, RowVerdict, Verdict
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import AT_BUDGETS, SizeRecord
from eval_core.reporting.html.scores import SideMean, side_means

__all__ = [
    "Axis",
    "Curve",
    "Frontier",
    "FrontierMark",
    "PlotRow",
    "PlotTable",
    "Tick",
    "Trend",
    "TrendPoint",
    "frontier",
    "plot_tables",
    "trends",
]

_TITLES = {"authored facts": "facts kept", "census": "census facts kept"}
_ORDER = (
    "overall",
    "accuracy",
    "context_awareness",
    "artifact_trail",
    "completeness",
    "continuity",
    "instruction_following",
)
_SIGNS = {
    RowVerdict.WORSE: "▼",
    RowVerdict.BETTER: "▲",
    RowVerdict.NO_DETECTABLE_CHANGE: "=",
    RowVerdict.INCONCLUSIVE: "?",
    RowVerdict.ADVISORY: "·",
}


@dataclass(frozen=True)
class Tick:
    """One label of an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A linear scale."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def at(self, value: float) -> float:
        """Return the place of a value in percent; what lies outside stands at the edge."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


@dataclass(frozen=True)
class PlotRow:
    """One row: both sides on the scale, and the change with its interval."""

    name: str
    base: str
    candidate: str
    delta: str
    interval: str
    p: str
    mde: str
    verdict: str
    sign: str
    base_at: tuple[float, float, float] | None
    """Lowest run, mean, highest run."""
    candidate_at: tuple[float, float, float] | None
    delta_at: tuple[float, float, float] | None
    """Lower end, change, upper end."""
    noise: tuple[float, float] | None
    """Start and width of what noise alone would make of no change."""


@dataclass(frozen=True)
class PlotTable:
    """Rows on one scale."""

    title: str
    unit: str
    scale: Axis
    change: Axis | None
    margin: tuple[float, float] | None
    margin_words: str
    rows: tuple[PlotRow, ...]


def _nice(reach: float) -> float:
    """Return the next round number."""
    if reach <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(reach))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= reach - 1e-12)


def _change_axis(rows: Sequence[Row], margin: float | None, most: float, shares: bool) -> Axis:
    ends = [abs(value) for row in rows for value in (row.delta, row.ci_low, row.ci_high) if value is not None]
    reach = min(_nice(max([*ends, (margin or 0.0) * 1.1]) or most), most)
    words = (lambda value: pp(value, sign=True).removesuffix(" pp")) if shares else signed
    return Axis(-reach, reach, tuple(Tick(25.0 * step, words(reach * (step - 2) / 2)) for step in range(5)))


def _places(side: SideMean | None, value: float | None, axis: Axis) -> tuple[float, float, float] | None:
    if value is None:
        return None
    low, high = (side.low, side.high) if side else (value, value)
    return axis.at(min(low, value)), axis.at(value), axis.at(max(high, value))


def _row(
    name: str, row: Row | None, base: SideMean | None, candidate: SideMean | None, axes: tuple[Axis, Axis | None]
) -> PlotRow:
    scale, change = axes
    shares = name in _TITLES
    words = (lambda value: percent(value, 1)) if shares else score
    left = row.base if row else base.value if base else None
    right = row.candidate if row else candidate.value if candidate else None
    delta_at = noise = None
    ends = ""
    if row is not None and change is not None:
        low, high = row.ci_low, row.ci_high
        known = low is not None and high is not None
        delta_at = (
            change.at(row.delta if low is None else low),
            change.at(row.delta),
            change.at(row.delta if high is None else high),
        )
        if low is not None and high is not None:
            half = (high - low) / 2
            noise = (change.at(-half), round(change.at(half) - change.at(-half), 2))
        ends = f"[{pp(low, sign=True)}, {pp(high, sign=True)}]" if shares and known else interval(low, high)
        if row.p is None:
            ends = "counted, not estimated" if shares else ""
    size = pp if shares else score
    return PlotRow(
        name=_TITLES.get(name, name.replace("_", " ")),
        base=words(left) if left is not None else "–",
        candidate=words(right) if right is not None else "–",
        delta=(pp(row.delta, sign=True) if shares else signed(row.delta)) if row else "",
        interval=ends,
        p=p_value(row.p) if row and row.p is not None else "",
        mde=size(row.mde) if row and row.mde is not None else "",
        verdict=row.verdict.replace("_", " ") if row else "",
        sign=_SIGNS[row.verdict] if row else "",
        base_at=_places(base, left, scale),
        candidate_at=_places(candidate, right, scale),
        delta_at=delta_at,
        noise=noise,
    )


def _table(
    family: str,
    names: Iterable[str],
    verdict: Verdict | None,
    sides: tuple[Mapping[str, SideMean], Mapping[str, SideMean]],
) -> PlotTable | None:
    base, candidate = sides
    rows = {row.name: row for row in verdict.rows if row.family == family} if verdict else {}
    shown = [name for name in names if name in rows or name in base or name in candidate]
    if not shown:
        return None
    shares = family == "facts"
    top = 1.0 if shares else 5.0
    steps = 5
    scale = Axis(
        0.0,
        top,
        tuple(Tick(100.0 * step / steps, percent(step / steps) if shares else str(step)) for step in range(steps + 1)),
    )
    test = next((test for test in verdict.tests if test.family == family), None) if verdict else None
    change = _change_axis(list(rows.values()), test.margin if test else None, top, shares) if rows else None
    margin = (change.at(-test.margin), change.at(test.margin)) if change and test else None
    return PlotTable(
        title="Facts" if shares else "Scores",
        unit="share of facts kept" if shares else "mean score, 0 to 5",
        scale=scale,
        change=change,
        margin=margin,
        margin_words=(pp(test.margin) if shares else score(test.margin)) if test else "",
        rows=tuple(_row(name, rows.get(name), base.get(name), candidate.get(name), (scale, change)) for name in shown),
    )


def plot_tables(candidate: Measurement, base: Measurement | None, verdict: Verdict | None) -> list[PlotTable]:
    """Return the score plot and the fact plot, as far as there is something to plot."""
    sides = side_means(base) if base else {}, side_means(candidate)
    tables = (
        _table("scores", _ORDER, verdict, sides),
        _table("facts", ("authored facts", "census"), verdict, sides),
    )
    return [table for table in tables if table is not None]


# Quality and size in one picture: where each side stands between the plain ways to be that small.

WIDTH, HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 24, 26, 40
_CURVES = {
    "recency": ("keeping only the newest messages", "recency"),
    "proportional": ("cutting every message evenly", "proportional"),
    "builtin:sliding-window": ("the built-in sliding window", "window"),
    "builtin:anchored": ("the built-in anchored summary", "anchored"),
    AT_BUDGETS: ("this compressor at its other budgets", "own"),
}
_DOTTED = ("window", "anchored", "own")
"""Curves of a few measured points, which are marked."""


@dataclass(frozen=True)
class FrontierMark:
    """One compressor: its size, what it keeps, and where that is drawn."""

    name: str
    css: str
    tokens: float
    kept: float
    x: float
    y: float
    label: tuple[float, float, Literal["start", "end"]]
    """Where its name stands, and which end of the name that is."""


@dataclass(frozen=True)
class Curve:
    """One plain way to be small, as the points of a line."""

    name: str
    css: str
    points: str
    dots: tuple[tuple[float, float], ...] = ()


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
    right: int = WIDTH - _RIGHT
    top: int = _TOP
    bottom: int = HEIGHT - _BOTTOM


def _sizes(measurement: Measurement) -> dict[str, list[tuple[int, SizeRecord]]]:
    found = {
        name: [(run.tokens_after, run.size) for run in runs if run.ok and run.size]
        for name, runs in measurement.fixtures.items()
    }
    return {name: sizes for name, sizes in found.items() if sizes}


def _share(sizes: Mapping[str, Sequence[tuple[int, SizeRecord]]], name: str) -> float:
    return fmean(fmean(getattr(size, name) / max(size.facts, 1) for _, size in found) for found in sizes.values())


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


def _frontier_sentence(sides: Sequence[tuple[str, str, Measurement]]) -> str:
    parts = []
    for name, _, measurement in sides:
        sizes = _sizes(measurement)
        tokens = fmean(fmean(count for count, _ in found) for found in sizes.values())
        parts.append(f"{name} keeps {percent(_share(sizes, 'kept'))} of the facts in {token_words(tokens)} tokens")
    sizes = _sizes(sides[-1][2])
    return (
        f"{'; '.join(parts)}. At {sides[-1][0]}'s size the newest messages alone would keep "
        f"{percent(_share(sizes, 'recency'))}, every message cut evenly {percent(_share(sizes, 'proportional'))}."
    )


def frontier(sides: Sequence[tuple[str, str, Measurement]]) -> Frontier | None:
    """Draw the sides, given as name, class and measurement; None where no sizes were recorded."""
    sides = [side for side in sides if _sizes(side[2])]
    if not sides:
        return None
    places = []
    for name, css, measurement in sides:
        sizes = _sizes(measurement)
        tokens = fmean(fmean(count for count, _ in found) for found in sizes.values())
        places.append((name, css, tokens, _share(sizes, "kept")))
    known = _frontier_curves(sides[-1][2])
    own = [1.1 * tokens for tokens, _ in known.get(AT_BUDGETS, [])]
    reach = _nice(max([1.35 * place[2] for place in places] + own))

    def x(tokens: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * min(tokens / reach, 1.0), 1)

    def y(share: float) -> float:
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * min(max(share, 0.0), 1.0), 1)

    curves = []
    for name, points in known.items():
        label, css = _CURVES[name]
        inside = [point for point in points if point[0] <= reach]
        dots = tuple((x(tokens), y(kept)) for tokens, kept in inside) if css in _DOTTED else ()
        outside = next((point for point in points if point[0] > reach), None)
        if outside is not None and inside:
            part = (reach - inside[-1][0]) / (outside[0] - inside[-1][0])
            inside.append((reach, inside[-1][1] + part * (outside[1] - inside[-1][1])))
        if dots or len(inside) > 1:
            line = " ".join(f"{x(tokens)},{y(kept)}" for tokens, kept in inside)
            curves.append(Curve(label, css, line, dots))

    # Names stand beside their marks, the higher ones first, each at least a line below the one before.
    marks, last = {}, 0.0
    for place in sorted(places, key=lambda item: -item[3]):
        last = max(y(place[3]) + 4, last + 15)
        right = x(place[2]) > 0.62 * WIDTH
        named: tuple[float, float, Literal["start", "end"]] = (
            x(place[2]) + (-11 if right else 11),
            last,
            "end" if right else "start",
        )
        marks[place[0]] = FrontierMark(*place, x(place[2]), y(place[3]), named)
    return Frontier(
        marks=tuple(marks[place[0]] for place in places),
        curves=tuple(curves),
        x_ticks=tuple(Tick(x(reach * step / 4), token_words(reach * step / 4)) for step in range(5)),
        y_ticks=tuple(Tick(y(step / 4), percent(step / 4)) for step in range(5)),
        sentence=_frontier_sentence(sides),
    )


# A baseline over time.


@dataclass(frozen=True)
class TrendPoint:
    """One baseline on a line, in percent of the picture."""

    x: float
    y: float
    words: str
    joined: bool = True
    """Whether it was measured as the one before was, so that the step between the two means something."""


@dataclass(frozen=True)
class Trend:
    """One line over the baseline's history; the run of this report is its last, open point."""

    name: str
    scale: str
    points: tuple[TrendPoint, ...]
    current: TrendPoint | None
    values: tuple[str, ...]
    """The value of each line of the history, in words."""


@dataclass(frozen=True)
class _Measure:
    key: str
    name: str
    top: float | None
    """The end of the scale; None for a scale that ends above the largest value."""
    words: Callable[[float], str]


_MEASURES = (
    *(_Measure(name, name.replace("_", " "), 5.0, score) for name in _ORDER),
    _Measure("facts_kept", "facts kept", 1.0, percent),
    _Measure("tokens", "tokens kept", None, token_words),
    _Measure("cost_usd", "cost of the baseline", None, lambda value: f"${value:.2f}"),
)


def _value(line: Mapping[str, Any], name: str) -> float | None:
    value = line.get(name)
    nested = line.get("dims")
    if value is None and isinstance(nested, Mapping):
        value = nested.get(name)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _current(candidate: Measurement | None, key: str) -> float | None:
    if candidate is None:
        return None
    means = side_means(candidate)
    found = means.get("authored facts" if key == "facts_kept" else key)
    return found.value if found else None


def trends(history: Sequence[Mapping[str, Any]], candidate: Measurement | None = None) -> list[Trend]:
    """Return score, dimensions, facts, size and cost over time; what was never measured is left out."""
    found = []
    steps = max(len(history) - (candidate is None), 1)
    for measure in _MEASURES:
        values = [_value(line, measure.key) for line in history]
        known = [value for value in values if value is not None]
        if not known or (measure.key == "cost_usd" and not any(known)):
            continue
        current = _current(candidate, measure.key)
        top = measure.top or _nice(1.1 * max([*known, current or 0.0]))
        points: list[TrendPoint] = []
        before: Mapping[str, Any] | None = None
        for index, (line, value) in enumerate(zip(history, values, strict=True)):
            if value is not None:
                joined = before is None or before.get("fingerprint") == line.get("fingerprint")
                words = f"{str(line.get('date', ''))[:10]}: {measure.words(value)}"
                points.append(TrendPoint(round(100 * index / steps, 2), _height(value, top), words, joined))
                before = line
        last = None
        if current is not None:
            last = TrendPoint(100.0, _height(current, top), f"this run: {measure.words(current)}")
        words_of = tuple("–" if value is None else measure.words(value) for value in values)
        scale = f"0–{measure.words(top) if measure.top != 5.0 else '5'}"
        found.append(Trend(measure.name, scale, tuple(points), last, words_of))
    return found


def _height(value: float, top: float) -> float:
    return round(100 - 100 * min(max(value, 0.0), top) / top, 2)
