"""Cells of the heat map: a score, its change, and how strongly to colour it."""

from __future__ import annotations

from dataclasses import dataclass

from eval_core.compare.wording import percent, pp, score, signed
from eval_core.judge.grade import DIMENSIONS
from eval_core.report.html.tally import OVERALL

__all__ = ["COLUMNS", "Cell", "cells"]

FACTS = "facts"
COLUMNS = {
    OVERALL: "Overall",
    "accuracy": "Accuracy",
    "context_awareness": "Context",
    "artifact_trail": "Artifacts",
    "completeness": "Complete",
    "continuity": "Continuity",
    "instruction_following": "Instructions",
    FACTS: "Facts kept",
}
_STEPS = (0.01, 0.1, 0.3, 0.6)
"""Shares of the scale at which the colour gets one step stronger."""


@dataclass(frozen=True)
class Cell:
    """One probe in one dimension."""

    column: str
    value: str
    delta: str
    css: str
    """worse-1 to worse-4, better-1 to better-4, level, plain (no comparison) or none (not scored)."""
    sign: str = ""


def _cell(column: str, base: float | None, candidate: float | None, compared: bool) -> Cell:
    shares = column == FACTS
    top = 1.0 if shares else 5.0
    if candidate is None:
        return Cell(column, "–", "", "none")
    value = percent(candidate) if shares else score(candidate)
    if not compared or base is None:
        return Cell(column, value, "", "plain")
    delta = candidate - base
    strength = sum(abs(delta) / top >= step - 1e-9 for step in _STEPS)
    words = pp(delta, sign=True) if shares else signed(delta)
    if not strength:
        return Cell(column, value, "±0" if abs(delta) < 1e-9 else words, "level", "=")
    way, sign = ("worse", "▼") if delta < 0 else ("better", "▲")
    return Cell(column, value, words, f"{way}-{strength}", sign)


def cells(
    base: dict[str, float],
    candidate: dict[str, float],
    facts: tuple[float | None, float | None],
    *,
    compared: bool,
) -> list[Cell]:
    """Return the row of one probe: overall, the six dimensions, facts."""
    names = (OVERALL, *DIMENSIONS)
    row = [_cell(name, base.get(name), candidate.get(name), compared) for name in names]
    return [*row, _cell(FACTS, facts[0], facts[1], compared)]
