"""All the ways, or a fair draw of them, in which runs could have carried the two labels."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eval_core.compare.arm import Array

__all__ = ["LIMIT", "Design"]

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
