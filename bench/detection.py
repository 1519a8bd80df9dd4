"""Measure what the comparison rule is worth: false verdicts and power on simulated compressors.

    python -m bench.detection                     # all tables; hours on two cores
    python -m bench.detection --quick             # 100 comparisons of each kind, to look at
    python -m bench.detection --only harmless     # some of the tables
    python -m bench.detection --folder FOLDER     # keep each 100 comparisons, and go on with them

What is kept belongs to one state of the rule: use another folder after a change of it. Set OPENBLAS_NUM_THREADS=1:
the products are small, and threads that wait for each other take most of the time.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from bench.simulated import REGIMES, SCENARIOS, Change
from bench.trials import (
    DESIGNS,
    RULE,
    Flicker,
    Outcome,
    Setting,
    any_size_trial,
    clear_trial,
    looked_trial,
    shared_trial,
    trial,
)
from eval_core.statistics.looks import RUNS_AT_LOOK, share
from eval_core.strands.findings import Kind

_CHUNK = 100
_T = TypeVar("_T")
_S = TypeVar("_S")


@dataclass(frozen=True)
class Play:
    """How the tables are filled."""

    pool: multiprocessing.pool.Pool
    seeds: range
    sizes: Sequence[int]
    """Numbers of fixtures, where a table does not set them."""
    designs: Sequence[str]
    folder: Path | None

    def all(self, played: Callable[[int, _S], _T], setting: _S, seeds: range | None = None) -> list[_T]:
        """Play a setting with every seed; what the folder holds is not played again."""
        every, found = self.seeds if seeds is None else seeds, list[_T]()
        for at in range(0, len(every), _CHUNK):
            found += self._chunk(played, setting, every[at : at + _CHUNK])
        return found

    def _chunk(self, played: Callable[[int, _S], _T], setting: _S, seeds: range) -> list[_T]:
        name = hashlib.sha256(repr((played.__name__, setting, seeds)).encode()).hexdigest()[:20]
        place = self.folder / f"{name}.pickle" if self.folder is not None else None
        if place is not None and place.exists():
            kept: list[_T] = pickle.loads(place.read_bytes())
            return kept
        found = self.pool.starmap(played, [(seed, setting) for seed in seeds], chunksize=10)
        if place is not None:
            whole = place.with_suffix(".part")
            whole.write_bytes(pickle.dumps(found))
            whole.replace(place)
        return found


_ANY_SIZE = "uniform, 0 to −0.4"


def _percent(flags: Sequence[bool]) -> str:
    return f"{100 * sum(flags) / len(flags):.1f}"


def _table(columns: Sequence[str]) -> None:
    print(f"\n| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")


def _cell(found: Sequence[Outcome]) -> str:
    """Say how many are called regressed, and how many changed in another way."""
    regressed = _percent([item.kind is Kind.REGRESSED for item in found])
    return f"{regressed} + {_percent([item.alarm and item.kind is not Kind.REGRESSED for item in found])}"


def _rows(play: Play, settings: Mapping[str, Sequence[Setting]]) -> None:
    """Print a row of each name: what each of its settings comes to, and three things about all of them together."""
    first = next(iter(settings.values()))
    columns = [f"{item.fixtures} fixture{'s' * (item.fixtures > 1)}, {item.design.name}" for item in first]
    _table(("", *columns, "inconclusive", "less stable", "odd interval", "more runs"))
    for name, row in settings.items():
        found = [play.all(trial, setting) for setting in row]
        every = [item for one in found for item in one]
        cells = [
            name,
            *map(_cell, found),
            _percent([item.kind is Kind.INCONCLUSIVE for item in every]),
            _percent([item.less_stable for item in every]),
            _percent([item.contradiction for item in every]),
            _percent([item.more for item in found[0]]),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def _grid(play: Play, one: Setting) -> list[Setting]:
    return [replace(one, fixtures=size, design=DESIGNS[name]) for name in play.designs for size in (1, 5)]


_MID = REGIMES["mid"]
_HARMLESS = {
    "SD 0.21, tokens vary by 2 %": Setting("", 5, replace(REGIMES["low"], size=0.02)),
    "SD 0.25, by 5 %": Setting("", 5),
    "SD 0.47, by 10 %": Setting("", 5, replace(REGIMES["high"], size=0.10)),
    "SD 0.25, by 20 %": Setting("", 5, replace(_MID, size=0.20)),
    "5 % of the runs collapse": Setting("", 5, replace(_MID, collapse=0.05)),
    "a section missing in 20 % of the runs": Setting("", 5, replace(_MID, sections=0.2)),
    "in 50 %": Setting("", 5, replace(_MID, sections=0.5)),
    "facts of a section share one fate": Setting("", 5, replace(_MID, blocks=True)),
    "one run of either side a point lower, 4 % of the grades missing": Setting("", 5, missing=0.04, odd_anywhere=True),
    "only the noise doubled": Setting("", 5, spread=2.0),
    "tripled": Setting("", 5, spread=3.0),
    "only the noise of whole runs doubled": Setting("", 5, spread=2.0, singles=1.0),
    "of whole runs tripled": Setting("", 5, spread=3.0, singles=1.0),
}
_HARMFUL = (
    "one fact lost always",
    "two facts lost always",
    "five facts lost always",
    "a section lost in half of the runs",
    "one probe 5 → 0",
    "uniform −0.3",
    "each fact lost with +15 %",
    "a small improvement",
)


def harmless(play: Play) -> None:
    """Nothing changed but the luck: every alarm is false."""
    print("\n## Nothing changed, % called regressed + changed in another way")
    _rows(play, {name: _grid(play, one) for name, one in _HARMLESS.items()})


def power(play: Play) -> None:
    """Something changed."""
    print("\n## Something changed, % called regressed + changed in another way")
    rows = {
        f"{name}, SD {sd}": _grid(play, Setting("", 5, REGIMES[regime], SCENARIOS[name]))
        for regime, sd in (("mid", "0.25"), ("high", "0.47"))
        for name in _HARMFUL
    }
    _rows(play, rows)


def day(play: Play) -> None:
    """Only the day changed, or one run of the base is odd."""
    print("\n## Only the day changed, or a base run is odd; control: one base run of each fixture")

    def row(one: Setting) -> list[Setting]:
        return [replace(one, fixtures=size, control=control) for size in play.sizes for control in (False, True)]

    print(f"Each: {', '.join(f'{size} fixtures, without and with control' for size in play.sizes)}.")
    days = {f"day effect of SD {sd:g}": row(Setting("", 5, day=sd)) for sd in (0.0, 0.05, 0.10)}
    changed = row(Setting("", 5, change=SCENARIOS["uniform −0.3"]))
    _rows(play, {**days, "one base run of ten a point lower": row(Setting("", 5, odd=True)), "uniform −0.3": changed})


def shared(play: Play) -> None:
    """Many pull requests against one baseline."""
    print("\n## 20 harmless pull requests against one baseline, % of baselines with at least one alarm")
    _table(("day", "fixtures", "alarm"))
    for size in play.sizes:
        for sd, control in ((0.0, False), (0.05, False), (0.05, True)):
            setting = Setting("", size, day=sd, control=control)
            starts = range(play.seeds.start, play.seeds.start + 20 * len(play.seeds), 100)
            found = play.all(shared_trial, setting, starts)
            name = f"{f'SD {sd:g}' if sd else 'the same'}{', control' if control else ''}"
            print(f"| {name} | {size} | {_percent(found)} |", flush=True)


def looks(play: Play) -> None:
    """Look again after more runs."""
    print(f"\n## Looks at {', '.join(map(str, RUNS_AT_LOOK))} runs, SD 0.47")
    _table(("scenario", "fixtures", "by look 1", "by look 2", "by look 3", "advised", "promised", "kept"))
    for size in play.sizes:
        for name in ("same vs same", "two facts lost always", "uniform −0.3", _ANY_SIZE):
            setting = Setting(name, size, REGIMES["high"], SCENARIOS.get(name, Change()))
            played = looked_trial if name in SCENARIOS else any_size_trial
            found = play.all(played, setting)
            advised = [item for item in found if item.promised is not None]
            cells = [
                name,
                str(size),
                *(_percent([item.alarm_at[at] for item in found]) for at in range(3)),
                _percent([item.promised is not None for item in found]),
                f"{100 * float(np.mean([item.promised for item in advised])):.1f}" if advised else "",
                _percent([item.settled for item in advised]) if advised else "",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


def clear(play: Play) -> None:
    """Look for clear losses alone, where more or fewer facts are a matter of luck."""
    level, first = RULE.alpha_losses, RULE.alpha_losses * share(RUNS_AT_LOOK[0])
    print("\n## Clear losses alone: 3 runs against 10, five fixtures of 100 facts, some lost always in the first one")
    print(f"% with a p of at most {level:g} / of at most {first:g}, the part of the first look")
    _table(("a matter of luck", "sharing one fate", *map(str, _LOST)))
    for together in (1, 2, 5):
        for flickering in (10, 30, 100):
            found = [play.all(clear_trial, Flicker(flickering, together, lost)) for lost in _LOST]
            cells = [" / ".join(_percent([p <= at for p in one]) for at in (level, first)) for one in found]
            print(f"| {flickering} | {together} | {' | '.join(cells)} |", flush=True)


_LOST = (0, 2, 5, 10)
TABLES = {"harmless": harmless, "power": power, "clear": clear, "day": day, "looks": looks, "shared": shared}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure false alarms and power of the comparison rule.")
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="100 replications")
    parser.add_argument("--first-seed", type=int, default=0, help="fresh data: seeds that no constant was chosen with")
    parser.add_argument("--fixtures", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    parser.add_argument("--folder", type=Path, help="keep what was played here, and do not play it again")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    replications = 100 if options.quick else options.replications
    seeds = range(options.first_seed, options.first_seed + replications)
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
    with multiprocessing.Pool(options.processes) as pool:
        for name in options.only:
            TABLES[name](Play(pool, seeds, options.fixtures, options.designs, options.folder))


if __name__ == "__main__":
    main()
