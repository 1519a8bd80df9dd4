"""Plots of changes with their intervals: positions are percentages, so that a plot fits any screen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from eval_core.base.numbers import interval, p_value, percent, pp, score, signed
from eval_core.domain.measurement import Measurement
from eval_core.reporting.html.mean_scores import SideMean, side_means
from eval_core.statistics.hypotheses import FACT_HYPOTHESES, FACT_NAMES
from eval_core.strands.findings import Row, RowVerdict, Verdict

_TITLES = FACT_NAMES
ORDER = (
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
        """Return the place of a value in percent; what lies outside is put at the edge."""
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


def nice(reach: float) -> float:
    """Return the next round number."""
    if reach <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(reach))
    return next(power * step for step in (1, 2, 5, 10) if power * step >= reach - 1e-12)


def _change_axis(rows: Sequence[Row], margin: float | None, most: float, shares: bool) -> Axis:
    ends = [abs(value) for row in rows for value in (row.delta, row.ci_low, row.ci_high) if value is not None]
    reach = min(nice(max([*ends, (margin or 0.0) * 1.1]) or most), most)
    words = (lambda value: f"{100 * value:+g}".replace("-", "−").replace("+0", "0")) if shares else signed
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
        _table("scores", ORDER, verdict, sides),
        _table("facts", FACT_HYPOTHESES, verdict, sides),
    )
    return [table for table in tables if table is not None]
