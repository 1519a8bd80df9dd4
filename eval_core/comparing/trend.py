"""Trend: the latest baseline tested against the last release and an older one, so that slow decay shows up.

Every line of the history keeps the means of its runs, so that two baselines far apart can be tested like two arms, as
long as both were measured under the same fingerprint. The last one is tested against the last release and against the
one ten before it: decay that goes on over several releases is seen by the second only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_core.base.numbers import counted, interval, p_value, percent_change, signed
from eval_core.domain.history_line import FACTS_KEPT, HistoryLine
from eval_core.statistics.arms import Array
from eval_core.statistics.hypotheses import OVERALL, Block, Explained, Unit
from eval_core.statistics.permutation import permute

BACK = 10
"""How many baselines are looked back at most."""
ALPHA = 0.05
_NAMES = (OVERALL, FACTS_KEPT)


@dataclass(frozen=True)
class Trend:
    """The change from an earlier baseline to the last one."""

    since: str
    """The name of a release, or a date."""
    steps: int
    """Baselines in between, the last one counted."""
    overall: tuple[float, float, float] | None
    """Change and interval, in points; None where nothing was graded."""
    facts: tuple[float, float]
    """Share of facts kept then and now."""
    p: float | None
    """Adjusted for the number of changes that are tested.

    None where the runs of each baseline are copies of each other: then the change is counted, not tested.
    """

    @property
    def significant(self) -> bool:
        """Whether the baseline has changed."""
        if self.p is None:
            changes = (self.facts[1] - self.facts[0], self.overall[0] if self.overall else 0.0)
            return any(abs(change) > 1e-9 for change in changes)
        return self.p <= ALPHA

    @property
    def change(self) -> str:
        """What moved, with interval or p where it was tested."""
        parts = [f"facts kept {percent_change(*self.facts)}"]
        if self.overall is not None:
            within = "" if self.p is None else f" {interval(*self.overall[1:])}"
            parts.insert(0, f"overall {signed(self.overall[0])}{within}")
        return f"{', '.join(parts)} ({'counted' if self.p is None else f'p {p_value(self.p)}'})"

    @property
    def sentence(self) -> str:
        same = "has not changed" if self.p is None else "has not changed significantly"
        verb = "has changed" if self.significant else same
        return f"The baseline {verb} since {self.since}, {counted(self.steps, 'baseline')} ago: {self.change}."


def _values(line: HistoryLine, fixture: str, name: str) -> Array:
    return np.array(line.runs.get(fixture, {}).get(name, ()), dtype=np.float64)


def _blocks(before: HistoryLine, after: HistoryLine, name: str) -> list[Block]:
    blocks = []
    for fixture in after.runs:
        old, new = _values(before, fixture, name), _values(after, fixture, name)
        if len(old) and len(new):
            values = np.concatenate([new, old])[:, None]
            nothing = Explained.nothing(len(values), 1, 1)
            unit = Unit(fixture, "fact", name)
            blocks.append(Block(fixture, len(new), len(old), values, (unit,), values, nothing, ()))
    return blocks


def _copies(blocks: Sequence[Block]) -> bool:
    """Tell whether the runs of each arm are the same number again and again, so that there is nothing to test."""
    return all(
        len(arm) > 1 and len(set(arm)) == 1
        for block in blocks
        for arm in (block.values[: block.candidate_runs, 0], block.values[block.candidate_runs :, 0])
    )


def cumulative_changes(history: Sequence[HistoryLine], back: int = BACK) -> tuple[Trend, ...]:
    """Test the last baseline of one name against the last release and the earliest of the last `back` before it."""
    lines = [line for line in history if line.runs]
    known = [at for at, line in enumerate(lines[:-1]) if line.fingerprint == lines[-1].fingerprint]
    released = [at for at in known if lines[at].release]
    first = [at for at in known if at >= len(lines) - 1 - back]
    starts = sorted({*released[-1:], *first[:1]})
    found = (_change(lines[at], lines[-1], len(lines) - 1 - at, len(starts)) for at in starts)
    return tuple(item for item in found if item is not None)


def _change(first: HistoryLine, last: HistoryLine, steps: int, tests: int) -> Trend | None:
    blocks = {name: _blocks(first, last, name) for name in _NAMES}
    level = ALPHA / len(_NAMES) / tests
    results = {name: permute(blocks[name], (name,), alpha=level) for name in _NAMES}
    graded, kept = results[OVERALL], results[FACTS_KEPT]
    if kept is None:
        return None
    row = graded.hypotheses[0] if graded is not None else None
    smallest = min(result.p for result in (graded, kept) if result is not None)
    return Trend(
        since=f"release {first.release}" if first.release else first.date[:10],
        steps=steps,
        overall=(row.delta, row.ci_low, row.ci_high) if row is not None else None,
        facts=(kept.hypotheses[0].base, kept.hypotheses[0].candidate),
        p=None if all(map(_copies, blocks.values())) else min(1.0, len(_NAMES) * tests * smallest),
    )
