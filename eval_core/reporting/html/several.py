"""Pages of more than one comparison: several results side by side, and a baseline over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from eval_core.base.numbers import percent
from eval_core.comparing.trend import cumulative_changes
from eval_core.domain.history_line import HistoryLine
from eval_core.reporting.html.frontier import frontier
from eval_core.reporting.html.page import asset, render_page
from eval_core.reporting.html.rounds_pictures import rounds_pictures, rounds_sides
from eval_core.reporting.html.trends import trends, verdict_mark
from eval_core.reporting.side_by_side import COLUMNS, FactKept, SideBySide

_MOST_FACTS = 300
_WIDTH = 780
"""Of the size picture, which has a row of its own here."""


@dataclass(frozen=True)
class _Cell:
    words: str
    css: str


def _cell(share: float | None) -> _Cell:
    if share is None:
        return _Cell("–", "none")
    step = min(3, int(share * 4))
    return _Cell(
        "✓" if share == 1 else "✗" if share == 0 else percent(share), "kept-all" if share == 1 else f"kept-{step}"
    )


def render_side_by_side(found: SideBySide) -> str:
    """Return several results as one page: table, sizes, and the facts on which they differ."""
    sides = [
        (name, "base" if number == 0 else f"mark-{number % 5}", measurement)
        for number, (name, measurement) in enumerate(zip(found.names, found.measurements, strict=True))
    ]
    facts: list[tuple[FactKept, list[_Cell]]] = [(fact, [_cell(share) for share in fact.kept]) for fact in found.facts]
    return render_page(
        "side_by_side.html.j2",
        asset("page.js"),
        found=found,
        columns=COLUMNS,
        picture=frontier(sides, width=_WIDTH),
        rounds=rounds_pictures(rounds_sides(sides)),
        facts=facts[:_MOST_FACTS],
        more=max(0, len(facts) - _MOST_FACTS),
        compared=False,
    )


def render_trend(name: str, history: Sequence[HistoryLine]) -> str:
    """Return the history of a baseline as a page."""
    return render_page(
        "trend.html.j2",
        asset("page.js"),
        name=name,
        trends=trends(history),
        history=[(line, verdict_mark(line)) for line in history],
        count=len(history),
        changes=cumulative_changes(history),
        version=version("compression-eval"),
        compared=False,
    )
