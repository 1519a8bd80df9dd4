"""Census losses by kind, of one fixture or of all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from eval_core.run.record import RunRecord

__all__ = ["CensusRow", "census_rows"]

Runs = Mapping[str, Sequence[RunRecord]]


@dataclass(frozen=True)
class CensusRow:
    """One kind of census fact: how many there are, and how many a run loses."""

    kind: str
    total: int
    base: str
    candidate: str
    base_share: float | None
    candidate_share: float | None
    delta: float | None


def _words(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _measured(side: Runs, kind: str) -> dict[str, list[RunRecord]]:
    found = {name: [run for run in runs if run.ok and kind in run.census.total] for name, runs in side.items()}
    return {name: runs for name, runs in found.items() if runs}


def _lost(runs: Mapping[str, Sequence[RunRecord]], kind: str) -> float | None:
    means = [fmean(run.census.lost.get(kind, 0) for run in found) for found in runs.values()]
    return sum(means) if means else None


def census_rows(base: Runs, candidate: Runs) -> list[CensusRow]:
    """Return one row for each kind, the greatest new loss first; fixtures measured on one side only are left out."""
    kinds = sorted(
        {kind for side in (base, candidate) for runs in side.values() for run in runs for kind in run.census.total}
    )
    rows = []
    for kind in kinds:
        theirs, ours = _measured(base, kind), _measured(candidate, kind)
        if theirs and ours:
            both = theirs.keys() & ours.keys()
            theirs, ours = ({name: side[name] for name in side if name in both} for side in (theirs, ours))
        total = sum(max(run.census.total[kind] for run in runs) for runs in (ours or theirs).values())
        left, right = _lost(theirs, kind), _lost(ours, kind)
        rows.append(
            CensusRow(
                kind=kind,
                total=total,
                base=_words(left),
                candidate=_words(right),
                base_share=left / total if left is not None and total else None,
                candidate_share=right / total if right is not None and total else None,
                delta=None if left is None or right is None else right - left,
            )
        )
    return sorted(rows, key=lambda row: (-(row.delta or 0.0), -(row.candidate_share or 0.0), row.kind))
