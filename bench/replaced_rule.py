"""The rule that the present one replaced, kept to be measured beside it: pooled spread, scores as they are graded.

It relabels whole runs as the present rule does, but divides an average's change by the spread of both arms together,
does not divide a single probe's change at all, and tests scores without regard to the facts.
"""

from __future__ import annotations

import numpy as np

from eval_core.comparing.arms import Arm, Array
from eval_core.comparing.hypotheses import Block, fact_blocks, score_blocks
from eval_core.comparing.permutation import Design

ALPHA_SCORES, ALPHA_FACTS, FLOOR = 0.03, 0.02, 0.05**2


def _at_least(statistic: Array) -> Array:
    slack = statistic - 1e-9 * np.maximum(1.0, statistic)
    return len(statistic) - np.searchsorted(np.sort(statistic), slack, side="left")


def _p(blocks: tuple[Block, ...], seed: int, limit: int) -> float:
    if not blocks:
        return 1.0
    design = Design(tuple((block.candidate_runs, block.base_runs) for block in blocks), limit, seed)
    delta = squares = np.zeros((design.count, 1))
    inverse, df, local = 0.0, 0, np.zeros(design.count)
    for block, mask in zip(blocks, design.masks(), strict=True):
        n, m = block.candidate_runs, block.base_runs
        means, values = block.means + block.explained.means, block.values + block.explained.values
        centred = means - means.mean(axis=0)
        moved = mask @ centred
        delta = delta + moved / n + moved / m
        squares = squares + (centred**2).sum(axis=0) - moved**2 / n - moved**2 / m
        inverse += 1 / n + 1 / m
        df += n + m - 2
        units = mask @ (values - values.mean(axis=0))
        local = np.maximum(local, np.abs(units).max(axis=1) * (1 / n + 1 / m))
    error = np.sqrt(np.maximum(squares / max(df, 1), FLOOR) * inverse)
    combined = np.minimum(_at_least((np.abs(delta) / error).max(axis=1)), 2 * _at_least(local))
    return float((combined <= combined[0]).mean())


def alarms(base: Arm, candidate: Arm, *, seed: int, limit: int) -> bool:
    """Tell whether the replaced rule would have called the candidate changed."""
    scores, facts = score_blocks(base, candidate), fact_blocks(base, candidate)
    return _p(scores, seed, limit) <= ALPHA_SCORES or _p(facts, seed, limit) <= ALPHA_FACTS
