"""Alpha spending: how much of the false-alarm rate each look at a growing comparison may use.

Every look after more runs is another chance for a false alarm, so all looks share one alpha. How much of it may be
spent at a given number of runs is fixed in advance; a look spends what is due at its number of runs and was not spent
earlier. By the union bound, all looks together stay within alpha. Looking at the same runs again is not another look:
it has the same share and gives the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eval_core.base.errors import UserError
from eval_core.domain.extra import Look
from eval_core.domain.measurement import Measurement

RUNS_AT_LOOK = (3, 6, 10)
"""Graded runs of each fixture at the planned looks."""
_RUNS, _SPENT = (1, 3, 6, 10), (0.6, 0.75, 0.85, 1.0)
"""Most of alpha goes to the first look, because most pull requests get no second one; the last one has to decide."""


def planned_looks(look: int, first: int, measurement: Measurement, *, bought: bool) -> tuple[Look, ...]:
    """Return what the plan had measured at the looks before this one.

    Compressions are `bought` with the graded runs, and more of them look by look while the facts are open, unless they
    cost nothing or their number is configured; then all of them are there from the first look on.
    """
    runs = [runs_at(number, first) for number in range(1, look)]
    if not bought:
        return tuple(Look(count, measurement.planned_compress_runs) for count in runs)
    now = runs_at(look, first)
    return (*(Look(count, count) for count in runs), *bought_looks(now, first, measurement.planned_compress_runs))


def bought_looks(graded: int, first: int, compressed: int) -> tuple[Look, ...]:
    """Return the looks at the facts alone that one run took on its way from the `first` compressions to all of them."""
    return tuple(Look(graded, count) for count in sorted({first, *RUNS_AT_LOOK}) if first <= count < compressed)


def looks_before(looks: Iterable[Look], measurement: Measurement) -> tuple[Look, ...]:
    """Return those looks that had fewer runs than a measurement has."""
    now = Look(measurement.planned_runs, measurement.planned_compress_runs)
    known = dict.fromkeys(looks)
    return tuple(look for look in known if look.graded < now.graded or look.compressed < now.compressed)


def spent(runs: int) -> float:
    """Return the share of alpha that may have been spent when each fixture has this many runs."""
    if runs < 0:
        raise UserError(f"look: {runs} is not a number of runs")
    return float(np.interp(runs, _RUNS, _SPENT)) if runs else 0.0


def share(runs: int, earlier: Iterable[int] = ()) -> float:
    """Return the share of alpha for a look at this many runs, after looks at fewer."""
    return spent(runs) - spent(max((count for count in earlier if count < runs), default=0))


def next_look(runs: int) -> int | None:
    """Return the runs of each fixture at the next planned look; None after the last."""
    return next((count for count in RUNS_AT_LOOK if count > runs), None)


def runs_at(look: int, first: int) -> int:
    """Return the runs of each fixture at a look, counted from 1, where the first one has `first`."""
    later = [count for count in RUNS_AT_LOOK if count > first]
    return first if look <= 1 or not later else later[min(look - 2, len(later) - 1)]
