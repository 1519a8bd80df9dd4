"""The decision about tasks: few rollouts find what to look at, and fresh ones alone decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb

SCREEN_RUNS, FRESH_RUNS = 3, 5
"""Rollouts of each side of every task, and of the tasks that are looked at again."""
TASKS_ALPHA = 0.025
"""One-sided, of the fresh rollouts: two stages together raise a false alarm in less than 1 % of comparisons."""
TASKS_SPEND = 0.01
"""What both stages together take from the chance of a false alarm that a comparison has."""
_DIFFER = 2


def looked_at_again(base: int, candidate: int) -> bool:
    """Tell whether the failures of the first stage differ enough for five fresh rollouts a side."""
    return abs(base - candidate) >= _DIFFER


def more_failures_p(base: int, base_runs: int, candidate: int, candidate_runs: int) -> float:
    """Return the chance of so many failures, or more, among the candidate's, if both sides fail equally often."""
    total, failures = base_runs + candidate_runs, base + candidate
    most = min(failures, candidate_runs)
    ways = sum(comb(candidate_runs, k) * comb(base_runs, failures - k) for k in range(candidate, most + 1))
    return ways / comb(total, failures)


@dataclass(frozen=True)
class Fresh:
    """What the fresh rollouts of one task came to."""

    base: int
    candidate: int
    base_runs: int
    candidate_runs: int

    @property
    def worse_p(self) -> float:
        """The chance of this if nothing got worse."""
        return more_failures_p(self.base, self.base_runs, self.candidate, self.candidate_runs)

    @property
    def better_p(self) -> float:
        """The chance of this if nothing got better."""
        return more_failures_p(self.candidate, self.candidate_runs, self.base, self.base_runs)


def holm(p_values: Mapping[str, float], alpha: float) -> set[str]:
    """Return the hypotheses that Holm's procedure rejects."""
    rejected: set[str] = set()
    for place, name in enumerate(sorted(p_values, key=lambda name: (p_values[name], name))):
        if p_values[name] > alpha / (len(p_values) - place):
            break
        rejected.add(name)
    return rejected


def confirmed(fresh: Mapping[str, Fresh], alpha: float = TASKS_ALPHA) -> tuple[set[str], set[str]]:
    """Return which tasks are confirmed worse, and which better; each direction is tested at the level."""
    worse = holm({name: item.worse_p for name, item in fresh.items()}, alpha)
    return worse, holm({name: item.better_p for name, item in fresh.items()}, alpha)


def smallest_seen(runs: int, alpha: float = TASKS_ALPHA, tested: int = 1) -> int | None:
    """Return from how many failures on, beside none of the base, a task would have been confirmed."""
    seen = (k for k in range(1, runs + 1) if more_failures_p(0, runs, k, runs) <= alpha / tested)
    return next(seen, None)


def chances(runs: int, rate: float) -> Iterable[tuple[int, float]]:
    """Return how likely each number of failures is."""
    return ((k, comb(runs, k) * rate**k * (1 - rate) ** (runs - k)) for k in range(runs + 1))


def power(base_rate: float, candidate_rate: float, alpha: float = TASKS_ALPHA) -> float:
    """Return how likely one task with these rates of failure is confirmed worse, all others being equal."""
    screened = sum(
        p * q
        for b, p in chances(SCREEN_RUNS, base_rate)
        for c, q in chances(SCREEN_RUNS, candidate_rate)
        if looked_at_again(b, c)
    )
    decided = sum(
        p * q
        for b, p in chances(FRESH_RUNS, base_rate)
        for c, q in chances(FRESH_RUNS, candidate_rate)
        if more_failures_p(b, FRESH_RUNS, c, FRESH_RUNS) <= alpha
    )
    return screened * decided
