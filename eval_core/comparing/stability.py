"""Stability: did runs vary more? Tested separately from better or worse, with its own row.

Each run's distance from the mean of its own arm is dealt out again between the arms. A change of the mean therefore
cannot look like one of the spread, and a change of the spread does not count as better or worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_core.comparing.arms import Array
from eval_core.comparing.hypotheses import FACT_HYPOTHESES, OVERALL, SCORE_HYPOTHESES, Block
from eval_core.comparing.permutation import LIMIT, Design

__all__ = ["ALPHA", "SpreadChange", "spread_changes"]

ALPHA = 0.01
"""For all rows together; outside the alpha of the verdict, which this does not decide."""
RELEVANT = 1.5
"""A smaller ratio of the two standard deviations is not worth a row."""
_TESTED = (OVERALL, *FACT_HYPOTHESES)
_FLOOR = {OVERALL: 0.05**2}
_FACT_FLOOR = 0.02**2
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class SpreadChange:
    """One quantity whose runs differ more, or less, than they did."""

    name: str
    base_sd: float
    candidate_sd: float
    p: float

    @property
    def less_stable(self) -> bool:
        """Whether the candidate's runs differ more."""
        return self.candidate_sd > self.base_sd


def _distances(block: Block, index: int) -> Array | None:
    """Return how far each run is from its own arm's mean, made as large as it is in the population."""
    n, m = block.candidate_runs, block.base_runs
    values = (block.means + block.explained.means)[:, index]
    if n < 2 or m < 2 or not np.isfinite(values).all():
        return None
    arms = values[:n], values[n:]
    return np.concatenate([(arm - arm.mean()) * math.sqrt(len(arm) / (len(arm) - 1)) for arm in arms])


def _test(name: str, blocks: Sequence[Block], index: int, seed: int, limit: int) -> SpreadChange | None:
    found = [(block, values) for block in blocks if (values := _distances(block, index)) is not None]
    if not found:
        return None
    design = Design(tuple((block.candidate_runs, block.base_runs) for block, _ in found), limit, seed)
    ours, theirs = np.zeros(design.count), np.zeros(design.count)
    for (block, values), mask in zip(found, design.masks(), strict=True):
        n, m = block.candidate_runs, block.base_runs
        # Measured around the mean that an arm has after dealing, as the observed spread is around the observed mean.
        inside, moved = mask @ values**2, mask @ values
        ours += inside - moved**2 / n
        theirs += (values**2).sum() - inside - (values.sum() - moved) ** 2 / m
    floor = _FLOOR.get(name, _FACT_FLOOR)
    ours = np.maximum(ours / sum(block.candidate_runs - 1 for block, _ in found), floor)
    theirs = np.maximum(theirs / sum(block.base_runs - 1 for block, _ in found), floor)
    statistic = np.abs(np.log(ours / theirs))
    p = float((statistic >= statistic[0] - _TOLERANCE).mean())
    return SpreadChange(name, math.sqrt(theirs[0]), math.sqrt(ours[0]), p)


def spread_changes(
    scores: Sequence[Block], facts: Sequence[Block], *, seed: int = 0, limit: int = LIMIT
) -> tuple[SpreadChange, ...]:
    """Return the quantities whose spread changed for certain and by enough to matter."""
    pairs = ((SCORE_HYPOTHESES, scores), (FACT_HYPOTHESES, facts))
    tests = [
        _test(name, blocks, index, seed, limit)
        for names, blocks in pairs
        for index, name in enumerate(names)
        if name in _TESTED
    ]
    known = [item for item in tests if item is not None]
    return tuple(
        item
        for item in known
        if item.p * len(known) <= ALPHA
        and max(item.base_sd, item.candidate_sd) >= RELEVANT * min(item.base_sd, item.candidate_sd)
    )
