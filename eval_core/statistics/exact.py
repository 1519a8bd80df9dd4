"""Exact tests on counts, for things that either happen in a run or do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True)
class Counts:
    """In how many runs of one fixture something happened, on both sides."""

    base: int
    base_runs: int
    candidate: int
    candidate_runs: int

    @property
    def swapped(self) -> Counts:
        """The same runs, counted by what did not happen."""
        return Counts(
            self.base_runs - self.base, self.base_runs, self.candidate_runs - self.candidate, self.candidate_runs
        )


def _hypergeometric(total: int, base_runs: int, candidate_runs: int) -> list[float]:
    """Return the chance of each number of candidate runs among `total` that happened, if labels do not matter."""
    runs = base_runs + candidate_runs
    ways = comb(runs, total)
    return [
        comb(candidate_runs, k) * comb(base_runs, total - k) / ways if 0 <= total - k <= base_runs else 0.0
        for k in range(candidate_runs + 1)
    ]


def _convolved(distributions: Iterable[Sequence[float]]) -> list[float]:
    result = [1.0]
    for distribution in distributions:
        longer = [0.0] * (len(result) + len(distribution) - 1)
        for i, left in enumerate(result):
            for j, right in enumerate(distribution):
                longer[i + j] += left * right
        result = longer
    return result


def fewer_p(counts: Sequence[Counts]) -> float:
    """Return the chance of so few candidate runs, or fewer, over all fixtures together, if nothing changed."""
    chances = _convolved(
        _hypergeometric(item.base + item.candidate, item.base_runs, item.candidate_runs) for item in counts
    )
    return min(1.0, sum(chances[: sum(item.candidate for item in counts) + 1]))


def sign_p(down: int, up: int) -> float:
    """Return the chance that so many of all that moved, or more, moved down, if each way were as likely."""
    moved = down + up
    return float(sum(comb(moved, k) for k in range(down, moved + 1)) / 2**moved)


def smallest_p(counts: Sequence[Counts]) -> float:
    """Return the smallest p that so many runs could give: everything in the base, nothing in the candidate."""
    return fewer_p([Counts(item.base_runs, item.base_runs, 0, item.candidate_runs) for item in counts])
