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
"""So many baselines are looked back at most."""
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
    p: float

    @property
    def significant(self) -> bool:
        """Whether the line as a whole has moved."""
        return self.p <= ALPHA

    @property
    def sentence(self) -> str:
        """Say it."""
        parts = [f"facts kept {percent_change(*self.facts)}"]
        if self.overall is not None:
            parts.insert(0, f"overall {signed(self.overall[0])} {interval(*self.overall[1:])}")
        verb = "has moved" if self.significant else "has not moved for certain"
        span = f"since {self.since[:10]}, {counted(self.steps, 'baseline')} ago"
        return f"The line of baselines {verb} {span}: {', '.join(parts)} (p {p_value(self.p)})."


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
    tests = {name: permute(_blocks(first, last, name), (name,), alpha=ALPHA / 2) for name in _NAMES}
    graded, kept = tests[OVERALL], tests[AUTHORED]
    if kept is None:
        return None
    row = graded.hypotheses[0] if graded is not None else None
    return Trend(
        since=str(first.get("date", "")),
        steps=len(lines) - 1 - lines.index(first),
        overall=(row.delta, row.ci_low, row.ci_high) if row is not None else None,
        facts=(kept.hypotheses[0].base, kept.hypotheses[0].candidate),
        p=min(1.0, 2 * min(result.p for result in (graded, kept) if result is not None)),
    )
