"""Does the judge still grade as it did when the baseline was made?

The baseline keeps its answers. A sample of them is graded again, and old and new grades of the same answer are paired.
If the judge is the same, the two grades of a pair could have come in either order; flipping the signs of whole
fixture-runs (the cluster in which grades hang together) therefore gives an exact test.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_core.compare.arm import Array
from eval_core.compare.arrangement import LIMIT
from eval_core.compare.measure import SCORE_HYPOTHESES
from eval_core.errors import UserError
from eval_core.judge.grade import DIMENSIONS

__all__ = ["ALPHA", "RELEVANT", "SAMPLE", "Cell", "Drift", "Regraded", "check", "sample"]

ALPHA = 0.05
"""A missed drift puts a false verdict on someone's change; a false one only offers to grade the baseline again."""
RELEVANT = 0.1
"""Shifts below this, a third of what a comparison can see, are left alone even when they are certain."""
SAMPLE = 30
TOLERANCE = 1e-9


@dataclass(frozen=True, order=True)
class Cell:
    """One stored answer."""

    fixture: str
    run: int
    probe: str


@dataclass(frozen=True)
class Regraded:
    """One stored answer with its old and its new six scores, in the order of DIMENSIONS."""

    cell: Cell
    old: tuple[float, ...]
    new: tuple[float, ...]


@dataclass(frozen=True)
class Drift:
    """What the paired test says."""

    fired: bool
    p: float
    shifts: dict[str, float]
    """Per dimension and overall: new minus old grade."""
    cells: int
    clusters: int
    attainable_p: float
    alpha: float

    @property
    def can_reach(self) -> bool:
        """Whether so few fixture-runs could have shown a drift at all."""
        return self.attainable_p <= self.alpha

    @property
    def largest(self) -> tuple[str, float]:
        """Return what moved most, overall first where it is among the largest."""
        overall = self.shifts["overall"]
        name = max(self.shifts, key=lambda key: abs(self.shifts[key]))
        return ("overall", overall) if abs(overall) >= RELEVANT else (name, self.shifts[name])


def sample(cells: Sequence[Cell], n: int = SAMPLE, seed: int = 0) -> tuple[Cell, ...]:
    """Choose cells spread as evenly as possible over fixtures, then over runs; the same for the same seed."""
    random = np.random.default_rng(seed)
    queues: dict[str, dict[int, list[Cell]]] = {}
    for cell in sorted(cells):
        queues.setdefault(cell.fixture, {}).setdefault(cell.run, []).append(cell)
    orders = []
    for runs in queues.values():
        shuffled = [[group[i] for i in random.permutation(len(group))] for group in runs.values()]
        spread = [shuffled[i] for i in random.permutation(len(shuffled))]
        # One cell of every run before the second of any.
        orders.append([cell for layer in itertools.zip_longest(*spread) for cell in layer if cell is not None])
    dealt = [cell for layer in itertools.zip_longest(*orders) for cell in layer if cell is not None]
    return tuple(sorted(dealt[:n]))


def _cluster_means(pairs: Sequence[Regraded]) -> Array:
    groups: dict[tuple[str, int], list[Array]] = {}
    for pair in pairs:
        if len(pair.old) != len(DIMENSIONS) or len(pair.new) != len(DIMENSIONS):
            raise UserError(f"{pair.cell}: old and new grade need {len(DIMENSIONS)} scores; grade this answer again")
        difference = np.array(pair.new, dtype=np.float64) - np.array(pair.old, dtype=np.float64)
        if not np.isfinite(difference).all():
            raise UserError(f"{pair.cell}: a score is not a number; leave the cell out, missing is never zero")
        groups.setdefault((pair.cell.fixture, pair.cell.run), []).append(np.append(difference, difference.mean()))
    return np.array([np.mean(group, axis=0) for group in groups.values()])


def _signs(clusters: int, seed: int) -> Array:
    if 2**clusters <= LIMIT:
        return np.array(list(itertools.product((1.0, -1.0), repeat=clusters)))
    signs = np.random.default_rng(seed).choice((1.0, -1.0), size=(LIMIT, clusters))
    signs[0] = 1.0
    return signs


def check(pairs: Sequence[Regraded], *, alpha: float = ALPHA, seed: int = 0) -> Drift | None:
    """Compare old with new grades; None without any pair."""
    if not pairs:
        return None
    means = _cluster_means(pairs)
    count = len(means)
    signs = _signs(count, seed)
    shifts = signs @ means / count
    # Flipping a sign leaves the sum of squares; the floor serves a judge that repeats itself to the letter.
    spread = np.maximum((means**2).sum(axis=0) / count, 0.05**2)
    statistic = np.abs(shifts) / np.sqrt(spread / count)
    largest = statistic.max(axis=1)
    p = float((largest >= largest[0] - TOLERANCE * max(1.0, largest[0])).mean())
    moved = dict(zip(SCORE_HYPOTHESES, (float(value) for value in shifts[0]), strict=True))
    fired = p <= alpha and max(abs(value) for value in moved.values()) >= RELEVANT - TOLERANCE
    # Flipping every sign gives the same statistic, hence two.
    return Drift(fired, p, moved, len(pairs), count, max(2 / 2**count, 1 / len(signs)), alpha)
