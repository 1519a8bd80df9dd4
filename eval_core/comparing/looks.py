"""How much of alpha each look at a growing comparison may spend.

One planned look spends all of it. Three planned looks, at 1, 3 and 5 graded runs, spend 0.01, 0.015 and 0.025 of the
0.05 that both tests have together; by the union bound the whole stays at 0.05. A look that nobody planned, such as
running the same commit again, still costs: it gets half of the last planned share, the next one half of that, and
what has been spent is reported, because it then exceeds what was promised.
"""

from __future__ import annotations

from eval_core.base.errors import UserError

__all__ = ["RUNS_AT_LOOK", "SCHEDULES", "share", "spent"]

SCHEDULES: dict[int, tuple[float, ...]] = {1: (1.0,), 3: (0.2, 0.3, 0.5)}
"""Planned looks -> the share of alpha that each may spend."""
RUNS_AT_LOOK = (1, 3, 5)
"""Graded runs of each fixture at each of three planned looks."""


def share(look: int, planned: int = 1) -> float:
    """Return the share of alpha that this look (counted from 1) may spend."""
    if planned not in SCHEDULES:
        raise UserError(f"planned looks: {planned} is not one of {', '.join(map(str, SCHEDULES))}; choose one of these")
    if look < 1:
        raise UserError(f"look: {look} is not a count of looks; the first look is 1")
    schedule = SCHEDULES[planned]
    if look <= planned:
        return schedule[look - 1]
    return float(schedule[-1] * 0.5 ** (look - planned))


def spent(look: int, planned: int = 1) -> float:
    """Return the share of alpha that all looks up to this one have spent."""
    return sum(share(number, planned) for number in range(1, look + 1))
