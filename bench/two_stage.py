"""Simulated false alarms and power of the decision about tasks: `python -m bench.two_stage` prints the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eval_core.statistics.two_stage import FRESH_RUNS, SCREEN_RUNS, Fresh, confirmed, looked_at_again, power

TASKS, TRIALS, SEED = 10, 20_000, 3


@dataclass(frozen=True)
class Simulated:
    """What became of many comparisons of the same two compressors."""

    worse: float
    """The share in which some task was confirmed worse."""
    again: float
    """How many tasks were looked at again, on average."""


def simulate(
    base: Sequence[float], candidate: Sequence[float], trials: int = TRIALS, *, lucky: bool = False, fresh: bool = True
) -> Simulated:
    """Compare two compressors whose tasks fail at these rates.

    Where `lucky`, the luck is that of a compression, and all rollouts from one state end alike; without `fresh`, the
    second stage would go on from the states of the first one again.
    """
    draw = np.random.default_rng(SEED)
    runs = SCREEN_RUNS + FRESH_RUNS
    fails = [draw.random((trials, len(rates), runs)) < np.array(rates)[:, None] for rates in (base, candidate)]
    if lucky and not fresh:
        for side in fails:
            side[:, :, SCREEN_RUNS:] = side[:, :, [number % SCREEN_RUNS for number in range(SCREEN_RUNS, runs)]]
    first = [side[:, :, :SCREEN_RUNS].sum(axis=2) for side in fails]
    second = [side[:, :, SCREEN_RUNS:].sum(axis=2) for side in fails]
    again = np.vectorize(looked_at_again)(*first)
    alarms = 0
    for trial in np.flatnonzero(again.any(axis=1)):
        tested = {
            str(task): Fresh(int(second[0][trial, task]), int(second[1][trial, task]), FRESH_RUNS, FRESH_RUNS)
            for task in np.flatnonzero(again[trial])
        }
        alarms += bool(confirmed(tested)[0])
    return Simulated(alarms / trials, float(again.sum(axis=1).mean()))


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    """Print the table."""
    print("| change | confirmed worse | tasks looked at again |\n|---|---|---|")
    for rate in (0.05, 0.1, 0.2, 0.3, 0.5):
        found = simulate([rate] * TASKS, [rate] * TASKS)
        print(f"| none; every task fails in {rate:.0%} | {_percent(found.worse)} | {found.again:.1f} |")
    for before, after, many in ((0.05, 1.0, 1), (0.05, 0.8, 1), (0.05, 0.6, 1), (0.1, 0.3, 1), (0.05, 0.5, TASKS)):
        found = simulate([before] * TASKS, [after] * many + [before] * (TASKS - many))
        alone = f" ({_percent(power(before, after))} where it is the only one)" if many == 1 else ""
        what = "one task" if many == 1 else f"all {many} tasks"
        print(f"| {what} {before:.0%} → {after:.0%} | {_percent(found.worse)}{alone} | {found.again:.1f} |")
    for rate in (0.1, 0.3, 0.5):
        kept, again = (simulate([rate] * TASKS, [rate] * TASKS, lucky=True, fresh=fresh) for fresh in (True, False))
        print(
            f"| none; every task fails after {rate:.0%} of compressions | {_percent(kept.worse)} "
            f"({_percent(again.worse)} from the compressions of the first stage) | {kept.again:.1f} |"
        )


if __name__ == "__main__":
    main()
