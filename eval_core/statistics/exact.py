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


def _sums(values: Sequence[int], chosen: int) -> dict[int, float]:
    """Return the chance of each sum of so many of these values, drawn at random."""
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(chosen))]
    for value in values:
        for taken in range(chosen, 0, -1):
            for total, count in ways[taken - 1].items():
                ways[taken][total + value] = ways[taken].get(total + value, 0) + count
    return {total: count / comb(len(values), chosen) for total, count in ways[chosen].items()}


def fewer_total_p(blocks: Iterable[tuple[Sequence[int], Sequence[int]]]) -> float:
    """Return the chance of so small a sum of the candidate's totals, or smaller, if labels do not matter.

    Each block holds a total for each run of the base and of the candidate. Runs are exchanged whole, so that what is
    counted in one run may hang together.
    """
    chances, observed = {0: 1.0}, 0
    for base, candidate in blocks:
        observed += sum(candidate)
        longer: dict[int, float] = {}
        for total, chance in _sums([*base, *candidate], len(candidate)).items():
            for before, known in chances.items():
                longer[before + total] = longer.get(before + total, 0.0) + known * chance
        chances = longer
    return min(1.0, sum(chance for total, chance in chances.items() if total <= observed))
