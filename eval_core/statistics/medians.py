"""Medians of medians with a fixed step of 0.3: shown beside the verdict, never deciding it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from eval_core.statistics.arms import Arm, Array, FixtureArm
from eval_core.statistics.hypotheses import SCORE_HYPOTHESES

STEP = 0.3


@dataclass(frozen=True)
class MedianRow:
    """One fixture and dimension: the median over probes of the median over runs, on both sides."""

    fixture: str
    dimension: str
    base: float
    candidate: float

    @property
    def delta(self) -> float:
        """Candidate minus baseline."""
        return self.candidate - self.base

    @property
    def flagged(self) -> bool:
        """Whether the fixed step is reached."""
        return abs(self.delta) >= STEP - 1e-9


def _probe_medians(arm: FixtureArm) -> Array:
    """[probes, dimensions and overall], over the runs that were graded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a probe never graded has no median
        cells = np.concatenate([arm.scores, arm.scores.mean(axis=2, keepdims=True)], axis=2)
        # nanmedian is slow, and nearly always nothing is missing.
        median = np.nanmedian if np.isnan(cells).any() else np.median
        return np.asarray(median(cells, axis=0), dtype=np.float64)


def _median(values: Array) -> Array:
    known = values[np.isfinite(values).all(axis=1)]
    return np.median(known, axis=0) if len(known) else np.full(values.shape[1], np.nan)


def medians(arm: Arm) -> dict[str, float]:
    """Return for each dimension the median over all probes of all fixtures; NaN where nothing is graded."""
    graded = [_probe_medians(fixture) for fixture in arm.fixtures.values() if fixture.scores.size]
    stacked = np.concatenate(graded) if graded else np.full((0, len(SCORE_HYPOTHESES)), np.nan)
    return dict(zip(SCORE_HYPOTHESES, (float(value) for value in _median(stacked)), strict=True))


def table(base: Arm, candidate: Arm) -> tuple[MedianRow, ...]:
    """Return the rule's own table: a row for each fixture and dimension that both sides graded."""
    rows = []
    for name, arm in base.fixtures.items():
        other = candidate.fixtures.get(name)
        if other is None or not (arm.scores.size and other.scores.size):
            continue
        ours, theirs = _median(_probe_medians(other)), _median(_probe_medians(arm))
        rows += [
            MedianRow(name, dimension, float(b), float(c))
            for dimension, b, c in zip(SCORE_HYPOTHESES, theirs, ours, strict=True)
            if np.isfinite(b) and np.isfinite(c)
        ]
    return tuple(rows)
