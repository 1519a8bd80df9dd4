"""All figures in one table: makespan, peers, cost, detection, scale, chaos.

    python -m bench all
    python -m bench all --quick          # smaller sizes, some minutes
    python -m bench all --no-write       # print only

Everything runs on this machine against a loopback provider; nothing is sent anywhere and nothing is paid for. Only the
peers are fetched from the package registries, into a temporary folder; where that fails, their rows say so. The table
goes to docs/benchmarks.md with the date, the versions and how busy the machine was.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import os
import platform
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench import chaos, cost, peers, scale
from bench.detection import SCENARIOS, Setting, trial

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEADINGS = ("what", "measured", "bar", "kept")
HEAD = """# Benchmarks

Written by `python -m bench all`. Everything ran on one machine against a loopback provider; nothing was paid for.
Figures of time depend on what else the machine had to do, so that its load is given with them.

"""


@dataclass(frozen=True)
class Figure:
    """One row: what was measured, what it came to, and what it should come to."""

    what: str
    measured: str
    bar: str = ""
    kept: bool | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        return self.what, self.measured, self.bar, {None: "", True: "yes", False: "no"}[self.kept]


def _makespan(quick: bool) -> Iterator[Figure]:
    """Measure in a fresh process each time, so that what a first run has to load and to compile counts."""
    what = {"ours": "whole evaluation, first in its process", "ours, command": "whole command, start-up included"}
    for name, latency, bar in (("ours", 0.4, 1.05), ("ours", 0.1, 1.20), ("ours, command", 0.4, 1.25)):
        found = [peers.timed(name, latency) for _ in range(1 if quick else 5)]
        ratios = [item.command if item.evaluation is None else item.evaluation for item in found]
        middle = statistics.median(ratios)
        spread = f" [{min(ratios):.2f}-{max(ratios):.2f}]" if len(ratios) > 1 else ""
        title = f"{what[name]}, {latency * 1000:.0f} ms a call, 16 at once: time as a multiple of the bound"
        measured = f"{middle:.2f}{spread} at a load of {os.getloadavg()[0]:.1f}, {found[-1].calls} calls"
        yield Figure(title, measured, f"{bar:.2f}", middle <= bar)


def _peers(quick: bool) -> Iterator[Figure]:
    """Measure other programs in the same way; where they cannot be installed, say so."""
    with tempfile.TemporaryDirectory() as folder:
        place = peers.Place(Path(folder))
        for name in peers.PEERS:
            title = f"as many calls by {name}, 400 ms a call"
            try:
                place.install([name])
                found = [peers.timed(name, 0.4, place) for _ in range(1 if quick else 3)]
            except (OSError, subprocess.CalledProcessError, SystemExit) as exc:
                yield Figure(title, f"not measured: {str(exc).splitlines()[0][:120]}")
                continue
            inner = [item.evaluation for item in found if item.evaluation is not None]
            command = f"{statistics.median(item.command for item in found):.2f} with start-up"
            yield Figure(title, f"{statistics.median(inner):.2f}, {command}" if inner else command)


def _cost(quick: bool) -> Iterator[Figure]:
    del quick
    for row in cost.price_defaults():
        if row.bar_usd is not None and row.cached_usd is not None:
            kept = row.cached_usd <= row.bar_usd
            yield Figure(f"price of {row.what}, {cost.MODEL}", f"${row.cached_usd:.2f}", f"${row.bar_usd:.2f}", kept)


def _detection(quick: bool) -> Iterator[Figure]:
    count = 100 if quick else 500
    with multiprocessing.Pool(2) as pool:
        for name in ("same vs same", "uniform −0.3"):
            setting = Setting(name, 5, "mid", SCENARIOS[name])
            found = pool.map(partial(trial, setting=setting), range(count), chunksize=10)
            share = sum(item.alarm for item in found) / count
            same = name == "same vs same"
            bar, kept = ("at most 5 %", share <= 0.05 + 2 * (0.05 * 0.95 / count) ** 0.5) if same else ("", None)
            yield Figure(f"{name}, 5 fixtures, {count} comparisons: called changed", f"{share:.1%}", bar, kept)


def _scale(quick: bool) -> Iterator[Figure]:
    sizes, runs, shards = ([4, 8, 16], 1, 2) if quick else ([10, 20, 40], 2, 2)
    found, growth = scale.grow(sizes, runs, shards)
    last = found[-1]
    per_call = 1000 * last.processor / last.calls
    what = f"{last.fixtures} fixtures x {runs} runs x {scale.PROBES} probes in {shards} shards"
    yield Figure(what, f"{last.calls:,} calls, {per_call:.1f} ms of processor time a call, peak {last.peak_mb:.0f} MB")
    for name, value in growth.items():
        yield Figure(f"growth of {name} from {sizes[0]} to {sizes[-1]} fixtures (exponent)", f"{value:.2f}", "1.10",
                     value <= 1.10)  # fmt: skip


def _chaos(quick: bool) -> Iterator[Figure]:
    found = chaos.survive(300 if quick else 2_000)
    ended = ", ".join(f"{count} x {how}" for how, count in found.ends.items())
    yield Figure(
        f"chaos: {found.calls:,} calls, {found.faults} faults, ended {ended}",
        f"{found.lost} of {found.cells} cells lost, {found.differing} scores differ",
        "0 and 0",
        not found.lost and not found.differing,
    )
    yield Figure("chaos: good replies asked for again", str(found.repeated), f"at most {found.in_flight} in flight",
                 found.repeated <= found.in_flight)  # fmt: skip


PARTS: dict[str, Callable[[bool], Iterator[Figure]]] = {
    "makespan": _makespan,
    "peers": _peers,
    "cost": _cost,
    "detection": _detection,
    "scale": _scale,
    "chaos": _chaos,
}


def _surroundings() -> str:
    names = ("compression-eval", "aiohttp", "litellm", "numpy", "pydantic")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    return f"{today}; Python {platform.python_version()}, {versions}; {os.cpu_count()} cores, load {load}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["all", *PARTS])
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--no-write", action="store_true", help="print only")
    options = parser.parse_args()
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    print("\n".join(lines), flush=True)
    for name, measure in PARTS.items():
        if options.part in ("all", name):
            for figure in measure(options.quick):
                lines.append(f"| {' | '.join(figure.cells())} |")
                print(lines[-1], flush=True)
    about = _surroundings() + (" Small sizes (`--quick`)." if options.quick else "")
    print(f"\n{about}")
    if options.part == "all" and not options.no_write:
        PAGE.write_text(HEAD + about + "\n\n" + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
