"""A baseline over time: score, facts, size and cost as lines, with releases and the verdict on each update."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eval_core.base.numbers import percent, score
from eval_core.base.numbers import tokens as token_words
from eval_core.domain.history_line import HistoryLine
from eval_core.domain.measurement import Measurement
from eval_core.reporting.html.mean_scores import side_means
from eval_core.reporting.html.plots import ORDER, Tick, nice
from eval_core.reporting.view import MARKS
from eval_core.statistics.hypotheses import AUTHORED
from eval_core.strands.findings import Kind

_APART = 24.0
"""Percent of the width between two names of releases, or the second is left to the table."""


@dataclass(frozen=True)
class VerdictMark:
    """What an update was found to be against the baseline that it replaced."""

    sign: str
    words: str
    css: str


@dataclass(frozen=True)
class TrendPoint:
    """One baseline on a line, in percent of the picture."""

    x: float
    y: float
    words: str
    joined: bool = True
    """Whether it was measured as the one before was, so that the step between the two means something."""
    mark: VerdictMark | None = None
    release: str = ""
    named: bool = False
    """Whether the name of its release has room above it."""

    @property
    def spoken(self) -> str:
        """Everything the point says, for those who do not see it."""
        said = [self.words, *([self.mark.words.lower()] if self.mark else [])]
        return ", ".join([*said, *([f"release {self.release}"] if self.release else [])])


@dataclass(frozen=True)
class TrendChart:
    """One line over the baseline's history; the run of this report is its last, open point."""

    name: str
    ticks: tuple[Tick, ...]
    points: tuple[TrendPoint, ...]
    current: TrendPoint | None
    values: tuple[str, ...]
    """The value of each line of the history, in words."""
    ends: tuple[str, str]
    """When the line begins and ends."""


@dataclass(frozen=True)
class _Measure:
    key: str
    name: str
    top: float
    """Where the scale ends at the latest."""
    least: float
    """The least that a scale shows from end to end, or noise would look like a cliff."""
    words: Callable[[float], str]


_MEASURES = (
    *(_Measure(name, name.replace("_", " "), 5.0, 1.0, score) for name in ORDER),
    _Measure("facts_kept", "facts kept", 1.0, 0.2, percent),
    _Measure("expected_kept", "facts kept, of those that probes ask for", 1.0, 0.2, percent),
    _Measure("tokens", "tokens kept", math.inf, 100.0, token_words),
    _Measure("cost_usd", "cost of the baseline", math.inf, 0.1, lambda value: f"${value:.2f}"),
)
_FIRST = ("overall", "facts_kept", "expected_kept", "tokens", "cost_usd")
"""What most want to know; the dimensions of the score follow."""
_OFFLINE_NAMES = {"overall": "offline grade"}
_CSS = {Kind.REGRESSED: "worse", Kind.BROKEN: "worse", Kind.IMPROVED: "better"}


def verdict_mark(line: HistoryLine) -> VerdictMark | None:
    """Return the verdict of one line of the history; None where it has none, or one of another version."""
    try:
        kind = Kind(line.verdict)
    except ValueError:
        return None
    return VerdictMark(MARKS[kind], kind.words, _CSS.get(kind, "level"))


def _current(candidate: Measurement | None, key: str) -> float | None:
    if candidate is None:
        return None
    if key == "facts_kept":
        return candidate.facts_kept
    means = side_means(candidate)
    found = means.get(AUTHORED if key == "expected_kept" else key)
    return found.value if found else None


def _scale(values: Sequence[float], measure: _Measure) -> tuple[float, float]:
    """Return the ends of a scale that shows how the values differ, without making much of little."""
    low, high = min(values), max(values)
    room = max(measure.least, 1.6 * (high - low), 0.2 * high if math.isinf(measure.top) else 0.0)
    middle = (low + high) / 2
    step = nice(room / 2)
    bottom = max(0.0, math.floor((middle - room / 2) / step + 1e-9) * step)
    top = math.ceil((middle + room / 2) / step - 1e-9) * step
    return bottom, min(max(top, bottom + step), measure.top)


def _ends(history: Sequence[HistoryLine], candidate: Measurement | None) -> tuple[str, str]:
    dates = [line.date for line in history]
    size = 10 if candidate or dates[0][:10] != dates[-1][:10] else 16
    first, last = (dates[at][:size].replace("T", " ") for at in (0, -1))
    return first, "this run" if candidate else last


def trends(history: Sequence[HistoryLine], candidate: Measurement | None = None) -> list[TrendChart]:
    """Return score, facts, size, cost and the dimensions over time; what was never measured is left out.

    Where no model graded, the dimensions are one formula over the facts: they would show one line six times.
    """
    found = []
    steps = max(len(history) - (candidate is None), 1)
    measures = sorted(_MEASURES, key=lambda measure: measure.key not in _FIRST)
    if not any(line.judged for line in history):
        measures = [replace(item, name=_OFFLINE_NAMES.get(item.key, item.name)) for item in measures[: len(_FIRST)]]
    for measure in measures:
        values = [line.values.get(measure.key) for line in history]
        known = [value for value in values if value is not None]
        if not known or (measure.key == "cost_usd" and not any(known)):
            continue
        current = _current(candidate, measure.key)
        low, top = _scale([*known, *([] if current is None else [current])], measure)

        def height(value: float, low: float = low, top: float = top) -> float:
            return round(100 - 100 * (min(max(value, low), top) - low) / (top - low), 2)

        points: list[TrendPoint] = []
        before: HistoryLine | None = None
        named = -_APART
        for index, (line, value) in enumerate(zip(history, values, strict=True)):
            if value is None:
                continue
            joined = before is None or before.fingerprint == line.fingerprint
            words = f"{line.date[:10]}: {measure.words(value)}"
            x = round(100 * index / steps, 2)
            room = bool(line.release) and x - named >= _APART
            named = x if room else named
            mark = verdict_mark(line) if joined else None
            points.append(TrendPoint(x, height(value), words, joined, mark, line.release, room))
            before = line
        last = None
        if current is not None:
            last = TrendPoint(100.0, height(current), f"this run: {measure.words(current)}")
        words_of = tuple("–" if value is None else measure.words(value) for value in values)
        ticks = tuple(Tick(height(value), measure.words(value)) for value in (top, (low + top) / 2, low))
        found.append(TrendChart(measure.name, ticks, tuple(points), last, words_of, _ends(history, candidate)))
    return found
