"""Slow decay: each baseline against the one before shows nothing, the last against the first of many does.

Every line of the history keeps the means of its runs, so that two baselines far apart can be tested like two arms, as
long as both were measured under the same fingerprint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eval_core.base.numbers import counted, interval, p_value, percent_change, signed
from eval_core.comparing.arms import Array
from eval_core.comparing.hypotheses import AUTHORED, OVERALL, Block, Explained, Unit
from eval_core.comparing.permutation import permute

__all__ = ["ALPHA", "BACK", "Trend", "trend"]

BACK = 10
"""How many baselines are looked back at most."""
ALPHA = 0.05
_NAMES = (OVERALL, AUTHORED)


@dataclass(frozen=True)
class Trend:
    """The change from an earlier baseline to the last one."""

    since: str
    steps: int
    """Baselines in between, the last one counted."""
    overall: tuple[float, float, float] | None
    """Change and interval, in points; None where nothing was graded."""
    facts: tuple[float, float]
    """Share of facts kept then and now."""
    p: float | None
    """None where the runs of each baseline are copies of each other: then the change is counted, not tested."""

    @property
    def significant(self) -> bool:
        """Whether the line as a whole has moved."""
        if self.p is None:
            changes = (self.facts[1] - self.facts[0], self.overall[0] if self.overall else 0.0)
            return any(abs(change) > 1e-9 for change in changes)
        return self.p <= ALPHA

    @property
    def sentence(self) -> str:
        """Say it."""
        parts = [f"facts kept {percent_change(*self.facts)}"]
        if self.overall is not None:
            within = "" if self.p is None else f" {interval(*self.overall[1:])}"
            parts.insert(0, f"overall {signed(self.overall[0])}{within}")
        still = "has not moved" if self.p is None else "has not moved for certain"
        verb = "has moved" if self.significant else still
        how = "counted" if self.p is None else f"p {p_value(self.p)}"
        span = f"since {self.since[:10]}, {counted(self.steps, 'baseline')} ago"
        return f"The line of baselines {verb} {span}: {', '.join(parts)} ({how})."


def _values(line: Mapping[str, Any], fixture: str, name: str) -> Array:
    runs = line.get("runs")
    part = runs.get(fixture, {}) if isinstance(runs, dict) else {}
    values = part.get(name, []) if isinstance(part, dict) else []
    return np.array([value for value in values if isinstance(value, int | float)], dtype=np.float64)


def _blocks(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> list[Block]:
    blocks = []
    for fixture in after.get("runs", {}):
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


def trend(history: Sequence[Mapping[str, Any]], back: int = BACK) -> Trend | None:
    """Test the last baseline of one line against the earliest comparable one among the last `back` before it."""
    lines = [line for line in history if isinstance(line.get("runs"), dict)]
    if not lines:
        return None
    last = lines[-1]
    earlier = [line for line in lines[-1 - back : -1] if line.get("fingerprint") == last.get("fingerprint")]
    if not earlier:
        return None
    first = earlier[0]
    blocks = {name: _blocks(first, last, name) for name in _NAMES}
    tests = {name: permute(blocks[name], (name,), alpha=ALPHA / 2) for name in _NAMES}
    graded, kept = tests[OVERALL], tests[AUTHORED]
    if kept is None:
        return None
    row = graded.hypotheses[0] if graded is not None else None
    return Trend(
        since=str(first.get("date", "")),
        steps=len(lines) - 1 - lines.index(first),
        overall=(row.delta, row.ci_low, row.ci_high) if row is not None else None,
        facts=(kept.hypotheses[0].base, kept.hypotheses[0].candidate),
        p=None
        if all(map(_copies, blocks.values()))
        else min(1.0, 2 * min(result.p for result in (graded, kept) if result is not None)),
    )
