"""Shards: one plan split over several machines, so that each measures its part and the parts add up to the whole.

The split follows from the plan alone. Runs of one fixture stay together as far as possible, because their prompts begin
alike and a provider's cache serves all but the first. A run stays in its shard when a later look adds others: what is
paid for is not measured again elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from eval_core.base.config import MOST_SHARDS
from eval_core.base.errors import UserError
from eval_core.domain.case import Cell

_FORM = re.compile(r"([0-9]{1,3})/([0-9]{1,3})")
_FOLDER = re.compile(r"(?P<label>.+)-shard-(?P<index>[0-9]{1,3})-of-(?P<of>[0-9]{1,3})")
_ONCE = 90
"""Calls that the first shard makes for all, about: the judge's calibration and the checks."""


def _weight(cell: Cell) -> int:
    """Count the model calls of a cell; the first run of a fixture brings its controls along."""
    probes = len(cell.case.bank.probes)
    return 1 + (2 * probes if cell.graded else 0) + (4 * probes if cell.run == 0 else 0)


@dataclass(frozen=True)
class Shard:
    """One part of a plan, counted from 1."""

    index: int
    of: int

    def __str__(self) -> str:
        """Write it as on the command line."""
        return f"{self.index}/{self.of}"

    @property
    def first(self) -> bool:
        """Whether this shard also does what is done once for all."""
        return self.index == 1

    @property
    def suffix(self) -> str:
        """What its results folder and its artifact have after the name of the whole."""
        return f"-shard-{self.index}-of-{self.of}"

    def label(self, label: str) -> str:
        """Return the name of this shard's results folder."""
        return label + self.suffix

    def cells(self, plan: Sequence[Cell]) -> list[Cell]:
        """Return the cells of this shard, in the order of the plan."""
        mine = {(cell.case.fixture.name, cell.run) for cell, shard in self._assigned(plan) if shard == self.index}
        return [cell for cell in plan if (cell.case.fixture.name, cell.run) in mine]

    def share(self, plan: Sequence[Cell]) -> float:
        """Return the part of all calls that this shard makes, which is its part of the budget."""
        once = _ONCE if self.first else 0
        mine = sum(_weight(cell) for cell, shard in self._assigned(plan) if shard == self.index)
        return (once + mine) / (_ONCE + sum(map(_weight, plan)))

    def _assigned(self, plan: Sequence[Cell]) -> list[tuple[Cell, int]]:
        """Cut the suite into parts of about equal weight; runs of a fixture that is cut lie on both sides of it."""
        weights = {cell.case.fixture.name: 1 + 2 * len(cell.case.bank.probes) for cell in plan}
        names = sorted(weights)
        ends = dict(zip(names, accumulate(weights[name] for name in names), strict=True))
        whole, found = sum(weights.values()), []
        for cell in plan:
            name = cell.case.fixture.name
            place = ends[name] - weights[name] * (1 - _spread(cell.run))
            found.append((cell, min(self.of, 1 + int(self.of * place / whole))))
        return found


def _spread(run: int) -> float:
    """Return where in its fixture a run lies, 0 to 1: 0, 1/2, 1/4, 3/4, ..., evenly after any number of runs."""
    place, step = 0.0, 0.5
    while run:
        place += step * (run & 1)
        run, step = run >> 1, step / 2
    return place


def parse_shard(text: str, where: str = "--shard") -> Shard:
    """Read `2/5`."""
    found = _FORM.fullmatch(text.strip())
    index, of = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= index <= of <= MOST_SHARDS:
        raise UserError(f"{where} {text!r}: give the number of the shard and how many there are, e.g. 2/5")
    return Shard(index, of)


def shard_of_folder(name: str) -> tuple[str, Shard] | None:
    """Return the label and the shard that a results folder is named after, if it is one of a shard."""
    found = _FOLDER.fullmatch(name)
    if found is None or not 1 <= int(found["index"]) <= int(found["of"]) <= MOST_SHARDS:
        return None
    return found["label"], Shard(int(found["index"]), int(found["of"]))
