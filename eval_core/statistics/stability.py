"""Stability: did runs vary more? Tested separately from better or worse, with its own row.

The runs are dealt out again between the arms, once as they are and once as their distances from the mean of their own
arm; the larger p counts. The first is exact where nothing changed; the second keeps a change of the mean from looking
like one of the spread. A change of the spread does not count as better or worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_core.statistics.arms import Array
from eval_core.statistics.hypotheses import FACT_HYPOTHESES, OVERALL, SCORE_HYPOTHESES, Block
from eval_core.statistics.permutation import LIMIT, Design

ALPHA = 0.012
"""For all rows together, in each direction; outside the alpha of the verdict, which this does not decide. One fixture
with 3 runs against 10 has 286 arrangements: 0.0035 is the least that each of three rows can reach."""
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


def _values(block: Block, index: int) -> Array | None:
    values = (block.means + block.explained.means)[:, index]
    few = min(block.candidate_runs, block.base_runs) < 2
    return None if few or not np.isfinite(values).all() else values


def _distances(block: Block, values: Array) -> Array:
    """Return how far each run is from its own arm's mean, made as large as it is in the population."""
    arms = values[: block.candidate_runs], values[block.candidate_runs :]
    return np.concatenate([(arm - arm.mean()) * math.sqrt(len(arm) / (len(arm) - 1)) for arm in arms])


def _spreads(blocks: Sequence[Block], values: Sequence[Array], design: Design, floor: float) -> tuple[Array, Array]:
    """Return the variance of each arm under every labelling, the candidate's first."""
    ours, theirs = np.zeros(design.count), np.zeros(design.count)
    for block, runs, mask in zip(blocks, values, design.masks(), strict=True):
        # Measured around the mean that an arm has after dealing, as the observed spread is around the observed mean.
        centred = runs - runs.mean()
        inside, moved = mask @ centred**2, mask @ centred
        ours += inside - moved**2 / block.candidate_runs
        theirs += (centred**2).sum() - inside - (centred.sum() - moved) ** 2 / block.base_runs
    ours = np.maximum(ours / sum(block.candidate_runs - 1 for block in blocks), floor)
    return ours, np.maximum(theirs / sum(block.base_runs - 1 for block in blocks), floor)


def _test(name: str, blocks: Sequence[Block], index: int, seed: int, limit: int) -> SpreadChange | None:
    found = [(block, values) for block in blocks if (values := _values(block, index)) is not None]
    if not found:
        return None
    measured = [block for block, _ in found]
    design = Design(tuple((block.candidate_runs, block.base_runs) for block in measured), limit, seed)
    floor = _FLOOR.get(name, _FACT_FLOOR)
    ours, theirs = _spreads(measured, [values for _, values in found], design, floor)
    dealt = _spreads(measured, [_distances(block, values) for block, values in found], design, floor)
    sign = 1 if ours[0] >= theirs[0] else -1
    ratios = [sign * np.log(one / other) for one, other in ((ours, theirs), dealt)]
    p = max(float((ratio >= ratio[0] - _TOLERANCE).mean()) for ratio in ratios)
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
