"""The test of survival over rounds: labels shuffled between the runs of each session, studentised maximum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval_core.statistics.arms import Array

LIMIT = 4_000
"""Arrangements looked at; where there are fewer, all are."""
_FLOOR = 0.01
"""Least standard deviation of a feature: a share of few facts that is the same in every run has one all the same."""
Session = tuple[Array, Array]
"""Base and candidate, [runs, features] each; NaN where a run has nothing of a feature."""


@dataclass(frozen=True)
class SurvivalTest:
    """What the maximum over all features came to."""

    p: float
    attainable_p: float
    """The smallest p that so many runs can reach."""
    t: Array
    """Of each feature, candidate against base; NaN where no session has both sides."""
    delta: Array
    error: Array
    """The standard error of each change."""
    crit: float
    """The maximum that so large a share of arrangements stays below as alpha leaves."""


def _arrangements(sizes: Sequence[tuple[int, int]], seed: int) -> list[NDArray[np.bool_]]:
    """Return for each session [arrangements, runs]: which runs count as the candidate's; the first is as measured."""
    choices = []
    for base, candidate in sizes:
        rows = np.zeros((math.comb(base + candidate, candidate), base + candidate), dtype=bool)
        # In the order of combinations, the last one has the last runs: those of the candidate.
        for row, chosen in enumerate(reversed(list(itertools.combinations(range(base + candidate), candidate)))):
            rows[row, list(chosen)] = True
        choices.append(rows)
    every = math.prod(len(rows) for rows in choices)
    if every <= LIMIT:
        picked = np.array(list(itertools.product(*(range(len(rows)) for rows in choices))))
    else:
        rng = np.random.default_rng(seed)
        picked = np.stack([rng.integers(0, len(rows), LIMIT) for rows in choices], axis=1)
        picked[0] = 0
    return [rows[picked[:, at]] for at, rows in enumerate(choices)]


def _statistics(sessions: Sequence[Session], labels: Sequence[NDArray[np.bool_]]) -> tuple[Array, Array, Array]:
    """Return change, standard error and their ratio, [arrangements, features] each."""
    shape = len(labels[0]), sessions[0][0].shape[1]
    change, parts, squares, freedom = (np.zeros(shape) for _ in range(4))
    found = np.zeros(shape)
    for (base, candidate), chosen in zip(sessions, labels, strict=True):
        values = np.concatenate([base, candidate])
        there = np.isfinite(values).astype(float)
        filled = np.where(there > 0, values, 0.0)
        arms = []
        for picks in (~chosen, chosen):
            counts, sums = picks @ there, picks @ filled
            means = sums / np.maximum(counts, 1)
            arms.append((counts, means, picks @ filled**2 - counts * means**2))
        both = (arms[0][0] > 0) & (arms[1][0] > 0)
        change += np.where(both, arms[1][1] - arms[0][1], 0.0)
        for counts, _, spread in arms:
            parts += np.where(both, 1 / np.maximum(counts, 1), 0.0)
            squares += np.where(both, np.maximum(spread, 0.0), 0.0)
            freedom += np.where(both, counts - 1, 0.0)
        found += both
    variance = squares / np.maximum(freedom, 1) + _FLOOR**2
    error = np.sqrt(variance * parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(found > 0, change / error, np.nan)
        return change / found, error / found, t


def compare_survival(sessions: Sequence[Session], alpha: float, seed: int = 0) -> SurvivalTest | None:
    """Compare two sides over all features at once; None where there is nothing to compare."""
    sessions = [(base, candidate) for base, candidate in sessions if len(base) and len(candidate)]
    if not sessions:
        return None
    labels = _arrangements([(len(base), len(candidate)) for base, candidate in sessions], seed)
    delta, error, t = _statistics(sessions, labels)
    if np.isnan(t[0]).all():
        return None
    largest = np.nanmax(np.abs(np.where(np.isnan(t), 0.0, t)), axis=1)
    many = len(largest)
    crit = np.sort(largest)[max(0, math.ceil((1 - alpha) * many) - 1)]
    return SurvivalTest(
        p=float((largest >= largest[0] - 1e-9).mean()),
        attainable_p=1 / many,
        t=t[0],
        delta=delta[0],
        error=error[0],
        crit=float(crit),
    )
