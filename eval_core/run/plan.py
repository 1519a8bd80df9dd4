"""The plan: which fixture is compressed how often, and which of these runs are graded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval_core.run.suite import Case

__all__ = ["Cell", "make_plan"]


@dataclass(frozen=True)
class Cell:
    """One fixture-run: the unit that is repeated."""

    case: Case
    run: int
    graded: bool


def make_plan(cases: Sequence[Case], runs: int, compress_runs: int) -> list[Cell]:
    """Plan run after run over all fixtures, so that a run that is cut short is short everywhere alike."""
    return [Cell(case, run, graded=run < runs) for run in range(max(runs, compress_runs)) for case in cases]
