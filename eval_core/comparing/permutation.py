"""The permutation test: whole runs are relabelled within fixtures, max-T over dimensions and probes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from eval_core.comparing.arms import Array
from eval_core.comparing.hypotheses import Block, Unit

__all__ = [
    "LIMIT",
    "VARIANCE_FLOOR",
    "Design",
    "Hypothesis",
    "PermutationResult",
    "UnitDelta",
    "permute",
    "quantile",
]

# Quantiles of Student's t for whole degrees of freedom, so that no statistics package is needed.


def _cdf(t: float, df: int) -> float:
    """Return P(T <= t) by the finite series that exists for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(df))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = df % 2
    term = cosine if odd else 1.0
    total = term if df > 1 else 0.0
    for step in range(3 if odd else 2, df - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + inside / 2


@lru_cache(maxsize=1024)
def quantile(probability: float, df: int) -> float:
    """Return the t that is exceeded with probability 1 - `probability`; infinite where nothing measures the noise."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"probability must be in [0.5, 1), got {probability}")
    if df < 1:
        return math.inf
    low, high = 0.0, 1.0
    while _cdf(high, df) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _cdf(middle, df) < probability else (low, middle)
    return (low + high) / 2


# All the ways, or a fair draw of them, in which runs could have carried the two labels.

LIMIT = 10_000
"""Enumerate up to this many arrangements; draw this many where there are more."""


@dataclass(frozen=True)
class Design:
    """How many candidate and baseline runs each fixture has; runs trade labels only inside their fixture."""

    sizes: tuple[tuple[int, int], ...]
    """Per fixture: candidate runs, baseline runs."""
    limit: int = LIMIT
    seed: int = 0

    @property
    def total(self) -> int:
        """Count the distinct arrangements."""
        return math.prod(math.comb(n + m, n) for n, m in self.sizes)

    @property
    def enumerated(self) -> bool:
        """Tell whether all arrangements are looked at."""
        return self.total <= self.limit

    @property
    def count(self) -> int:
        """Count the arrangements looked at."""
        return min(self.total, self.limit)

    @property
    def attainable_p(self) -> float:
        """Return the smallest p-value this design can give.

        With equal run counts everywhere the mirror image of an arrangement has the same statistics, so even the
        clearest change shares its place with its mirror.
        """
        mirrored = all(n == m for n, m in self.sizes)
        return min(1.0, max((2 if mirrored else 1) / self.total, 1 / self.count))

    def masks(self) -> Iterator[Array]:
        """Yield for each fixture an [arrangement, run] matrix, 1 where the run is labelled candidate.

        Candidate runs stand first; arrangement 0 is the observed one.
        """
        tables = [_choices(n, m) for n, m in self.sizes] if self.enumerated else []
        if self.enumerated:
            shape = tuple(len(table) for table in tables)
            picks: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.intp]]] = np.unravel_index(
                np.arange(self.total), shape
            )
            for table, pick in zip(tables, picks, strict=True):
                yield table[pick]
            return
        for index, (n, m) in enumerate(self.sizes):
            # A stream per fixture: adding a fixture leaves the draws of the others as they were.
            random = np.random.default_rng((self.seed, index))
            ranks = random.random((self.count, n + m)).argsort(axis=1)
            mask = (ranks < n).astype(np.float64)
            mask[0] = np.arange(n + m) < n
            yield mask


def _choices(n: int, m: int) -> Array:
    rows = np.array(list(itertools.combinations(range(n + m), n)), dtype=np.intp)
    mask = np.zeros((len(rows), n + m))
    np.put_along_axis(mask, rows, 1.0, axis=1)
    return mask


# The test: did relabelling whole runs ever look as different as what was observed?

VARIANCE_FLOOR = 0.05**2
"""Deterministic runs have no variance; the floor keeps their statistics finite and tiny wobbles small."""
COVERAGE = 0.95
POWER = 0.80
TOLERANCE = 1e-9
"""Statistics closer than this are tied: the order of a sum must not break a tie."""

Counts = NDArray[np.intp]


@dataclass(frozen=True)
class Hypothesis:
    """One averaged quantity: how it moved, how surely, and what would have been seen."""

    name: str
    base: float
    candidate: float
    delta: float
    se: float
    df: int
    ci_low: float
    ci_high: float
    """Simultaneous with all other hypotheses of the test."""
    ci90_low: float
    ci90_high: float
    """This hypothesis alone; what equivalence is read from."""
    p: float
    """Adjusted for the number of hypotheses."""
    mde: float
    """The smallest change that would have been seen with 80 % power."""
    mde_two_more: float
    """The same, had the candidate two more runs of each fixture."""


@dataclass(frozen=True)
class UnitDelta:
    """One probe or kind of fact: how it moved, and its adjusted p (doubled, as the local part of the test is)."""

    unit: Unit
    base: float
    candidate: float
    delta: float
    p: float


@dataclass(frozen=True)
class PermutationResult:
    """What one test says."""

    p: float
    p_global: float
    p_local: float
    hypotheses: tuple[Hypothesis, ...]
    units: tuple[UnitDelta, ...]
    crit: float
    """The 95th percentile of the largest standardised change under relabelling."""
    arrangements: int
    enumerated: bool
    attainable_p: float
    can_reach: bool
    """Whether any data at all could have been significant at `alpha` with this many runs."""
    alpha: float
    runs: dict[str, tuple[int, int]]
    """Per fixture: candidate runs, baseline runs."""
    left_out: tuple[Unit, ...]


def _at_least(statistic: Array, values: Array | None = None) -> Counts:
    """Count, for each value, the arrangements whose statistic is at least as large, ties included."""
    wanted = statistic if values is None else values
    slack = wanted - TOLERANCE * np.maximum(1.0, np.abs(wanted))
    return np.asarray(len(statistic) - np.searchsorted(np.sort(statistic), slack, side="left"), dtype=np.intp)


@dataclass(frozen=True)
class _Sums:
    """What the arrangements come to, added up over fixtures."""

    delta: Array
    """[arrangements, hypotheses]"""
    se: Array
    local: Array
    """[arrangements]: the largest change of a single unit."""
    df: NDArray[np.intp]
    fixtures: NDArray[np.intp]
    """Per hypothesis: how many fixtures measure it."""


def _relabel(blocks: Sequence[Block], design: Design) -> _Sums:
    count, width = design.count, blocks[0].means.shape[1]
    delta, squares = np.zeros((count, width)), np.zeros((count, width))
    inverse = np.zeros(width)
    df, fixtures = np.zeros(width, dtype=np.intp), np.zeros(width, dtype=np.intp)
    local = np.zeros(count)
    for block, mask in zip(blocks, design.masks(), strict=True):
        n, m = block.candidate_runs, block.base_runs
        measured = np.isfinite(block.means).all(axis=0)
        # Centred, so that the difference of large sums keeps its digits; the other arm's sum is then the negative.
        centred = np.where(measured, block.means - block.means.mean(axis=0), 0.0)
        moved = mask @ centred
        delta += moved / n + moved / m
        squares += (centred**2).sum(axis=0) - moved**2 / n - moved**2 / m
        inverse += measured * (1 / n + 1 / m)
        df += measured * (n + m - 2)
        fixtures += measured
        units = mask @ (block.values - block.values.mean(axis=0))
        np.maximum(local, np.abs(units).max(axis=1) * (1 / n + 1 / m), out=local)
    known = np.maximum(fixtures, 1)
    variance = np.maximum(squares / np.maximum(df, 1), VARIANCE_FLOOR)
    return _Sums(delta / known, np.sqrt(variance * inverse) / known, local, df, fixtures)


def _hypothesis(name: str, index: int, blocks: Sequence[Block], sums: _Sums, crit: float, p: float) -> Hypothesis:
    measuring = [block for block in blocks if np.isfinite(block.means[:, index]).all()]
    base = float(np.mean([block.means[block.candidate_runs :, index].mean() for block in measuring]))
    delta, se, df = float(sums.delta[0, index]), float(sums.se[0, index]), int(sums.df[index])
    # One run on each side measures no noise: the floor ranks arrangements, but promises nothing about the true change.
    half = crit * se if df else math.inf
    half90 = quantile(0.95, df) * se
    mde = (crit + quantile(POWER, df)) * se
    shrunk = sum(1 / (block.candidate_runs + 2) + 1 / block.base_runs for block in measuring)
    now = sum(1 / block.candidate_runs + 1 / block.base_runs for block in measuring)
    more = (crit + quantile(POWER, df + 2 * len(measuring))) * se * math.sqrt(shrunk / now) if df else math.inf
    return Hypothesis(
        name=name,
        base=base,
        candidate=base + delta,
        delta=delta,
        se=se,
        df=df,
        ci_low=delta - half,
        ci_high=delta + half,
        ci90_low=delta - half90,
        ci90_high=delta + half90,
        p=p,
        mde=mde,
        mde_two_more=more,
    )


def _unit_deltas(blocks: Sequence[Block], local: Array) -> tuple[UnitDelta, ...]:
    found = []
    for block in blocks:
        candidate = block.values[: block.candidate_runs].mean(axis=0)
        base = block.values[block.candidate_runs :].mean(axis=0)
        shares = np.minimum(1.0, 2 * _at_least(local, np.abs(candidate - base)) / len(local))
        found += [
            UnitDelta(unit, float(b), float(c), float(c - b), float(p))
            for unit, b, c, p in zip(block.units, base, candidate, shares, strict=True)
        ]
    return tuple(found)


def permute(
    blocks: Sequence[Block], hypotheses: tuple[str, ...], *, alpha: float, seed: int = 0, limit: int = LIMIT
) -> PermutationResult | None:
    """Test all hypotheses and units at once; None where there is nothing to test."""
    if not blocks:
        return None
    design = Design(tuple((block.candidate_runs, block.base_runs) for block in blocks), limit, seed)
    sums = _relabel(blocks, design)
    measured = np.flatnonzero(sums.fixtures)
    statistic = np.zeros_like(sums.delta)
    statistic[:, measured] = np.abs(sums.delta[:, measured]) / sums.se[:, measured]
    largest = statistic.max(axis=1)
    beaten_global, beaten_local = _at_least(largest), _at_least(sums.local)
    combined = np.minimum(beaten_global, 2 * beaten_local)
    count = design.count
    crit = float(np.sort(largest)[math.ceil(COVERAGE * count) - 1])
    if crit <= TOLERANCE and len(measured):
        # All runs are equal: relabelling shows no spread, so the floor's normal theory stands in for it.
        crit = min(quantile(0.975, max(1, int(df))) for df in sums.df[measured])
    adjusted = _at_least(largest, statistic[0]) / count
    return PermutationResult(
        p=float((combined <= combined[0]).mean()),
        p_global=float(beaten_global[0] / count),
        p_local=float(beaten_local[0] / count),
        hypotheses=tuple(
            _hypothesis(hypotheses[index], int(index), blocks, sums, crit, float(adjusted[index])) for index in measured
        ),
        units=_unit_deltas(blocks, sums.local),
        crit=crit,
        arrangements=count,
        enumerated=design.enumerated,
        attainable_p=design.attainable_p,
        can_reach=design.attainable_p <= alpha,
        alpha=alpha,
        runs={block.fixture: (block.candidate_runs, block.base_runs) for block in blocks},
        left_out=tuple(unit for block in blocks for unit in block.left_out),
    )
