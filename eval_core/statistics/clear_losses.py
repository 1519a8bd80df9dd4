"""Clear losses: facts that nearly every run of one side keeps and hardly any of the other.

An average over hundreds of facts hides a few that are always lost. Here each fact counts by how unlikely its own loss
is by chance, and only if that is unlikely at all; what many flickering facts add up to is seen by relabelling whole
runs, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import comb, log, sqrt

import numpy as np

from eval_core.statistics.arms import Arm, Array
from eval_core.statistics.permutation import LIMIT, Design, at_least

UNLIKELY = 0.02
"""A fact counts from this chance of its own loss on."""
OPEN = 0.1
"""Losses with a chance up to this are not called luck: more runs tell."""


@dataclass(frozen=True)
class KeptBlock:
    """What became of each fact of one fixture in every run of both arms, candidate runs first."""

    fixture: str
    candidate_runs: int
    base_runs: int
    facts: tuple[str, ...]
    kept: Array
    """[runs, facts]: 1 kept, 0 lost."""


@dataclass(frozen=True)
class ClearChange:
    """One direction: how surely single facts are lost (or gained), and which."""

    p: float
    facts: tuple[tuple[str, str], ...]
    """Fixture and fact of those that count."""
    share: float
    """Of all facts."""


@dataclass(frozen=True)
class ClearTest:
    """Both directions at one level; only a loss decides by itself."""

    lost: ClearChange
    gained: ClearChange
    alpha: float
    smallest: int | None
    """So many facts of any one fixture, lost in every run, would have been certain; None where no number would."""

    @property
    def worse(self) -> bool:
        """Whether facts were lost for certain."""
        return self.lost.p <= self.alpha

    @property
    def loss(self) -> float:
        """The share of facts lost for certain."""
        return self.lost.share if self.worse else 0.0

    @property
    def gain(self) -> float:
        """The share gained for certain, to be weighed against a loss."""
        return self.gained.share if self.worse and self.gained.p <= self.alpha else 0.0

    @property
    def open(self) -> bool:
        """Whether losses may be luck or not."""
        return self.alpha < self.lost.p <= OPEN


def kept_blocks(base: Arm, candidate: Arm) -> tuple[KeptBlock, ...]:
    """Return the facts that every run of both sides knows, of the fixtures that both have."""
    found = []
    for name, theirs in base.fixtures.items():
        ours = candidate.fixtures.get(name)
        shared = [fact for fact in theirs.kept if ours is not None and fact in ours.kept]
        if ours is None or not shared:
            continue
        sides = [
            np.column_stack([arm.kept[fact] for fact in shared])[happened]
            for arm, happened in ((ours, ours.happened), (theirs, theirs.happened))
        ]
        kept = np.concatenate(sides)
        known = np.asarray(np.isfinite(kept).all(axis=0), dtype=np.bool_)
        if all(map(len, sides)) and known.any():
            facts = tuple(fact for fact, keep in zip(shared, known, strict=True) if keep)
            found.append(KeptBlock(name, len(sides[0]), len(sides[1]), facts, kept[:, known]))
    return tuple(found)


@lru_cache(maxsize=64)
def _weights(candidate_runs: int, base_runs: int) -> Array:
    """Return [times kept in all, times kept by the candidate]: -ln of the chance of so few, 0 where it is likely."""
    runs = candidate_runs + base_runs
    table = np.zeros((runs + 1, candidate_runs + 1))
    for total in range(runs + 1):
        chance = 0.0
        for ours in range(max(0, total - base_runs), min(total, candidate_runs) + 1):
            chance += comb(candidate_runs, ours) * comb(base_runs, total - ours) / comb(runs, total)
            if chance <= UNLIKELY:
                table[total, ours] = -log(chance)
    return table


def _statistic(blocks: Sequence[KeptBlock], design: Design) -> tuple[Array, list[tuple[str, str]]]:
    """Return what the losses come to under every labelling, and the facts that count under the observed one."""
    statistic = np.zeros(design.count)
    named: list[tuple[str, str]] = []
    for block, mask in zip(blocks, design.masks(), strict=True):
        total = block.kept.sum(axis=0).astype(np.intp)
        table = _weights(block.candidate_runs, block.base_runs)
        # What is the same in every run has no chance to be lost, and there is much of it.
        moving = np.flatnonzero(table[total].any(axis=1))
        ours = np.rint(mask @ block.kept[:, moving]).astype(np.intp)
        weights = table.ravel().take(ours + total[moving] * table.shape[1])
        statistic += weights.sum(axis=1) ** 2
        named += [(block.fixture, block.facts[at]) for at in moving[weights[0] > 0]]
    return statistic, named


def _change(blocks: Sequence[KeptBlock], statistic: Array, named: Sequence[tuple[str, str]]) -> ClearChange:
    p = float(at_least(statistic, statistic[:1])[0]) / len(statistic)
    return ClearChange(p, tuple(named), len(named) / sum(len(block.facts) for block in blocks))


def _smallest(blocks: Sequence[KeptBlock], statistic: Array, alpha: float) -> int | None:
    """Return how many lost facts of any one fixture are certain beside the luck that relabelling shows."""
    fewest = 0
    for block in blocks:
        # The labellings that keep this fixture's candidate runs together show the loss as well as the observed one.
        together = 1 / comb(block.candidate_runs + block.base_runs, block.candidate_runs)
        weight = float(_weights(block.candidate_runs, block.base_runs)[block.base_runs, 0])
        beside = int((alpha - together) * len(statistic))
        if not weight or beside < 0 or together > alpha:
            return None
        most = float(np.sort(statistic)[::-1][beside])
        fewest = max(fewest, int(sqrt(most) / weight) + 1)
    return fewest


def clear_changes(blocks: Sequence[KeptBlock], *, alpha: float, seed: int = 0, limit: int = LIMIT) -> ClearTest | None:
    """Test what was lost and what was gained; None where no single fact is known."""
    if not blocks:
        return None
    design = Design(tuple((block.candidate_runs, block.base_runs) for block in blocks), limit, seed)
    lost = _statistic(blocks, design)
    gained = _statistic([replace(block, kept=1 - block.kept) for block in blocks], design)
    return ClearTest(_change(blocks, *lost), _change(blocks, *gained), alpha, _smallest(blocks, lost[0], alpha))
