"""All figures in one page: makespan, peers, faults, cost, bill, detection, scale, chaos.

    python -m bench all
    python -m bench makespan peers       # these parts only; the others stay as they are in the page
    python -m bench all --quick          # smaller sizes, some minutes
    python -m bench all --no-write       # print only

Everything runs on this machine against a loopback provider; nothing is sent anywhere and nothing is paid for. Only the
peers are fetched from the package registries, into a temporary folder; where that fails, their rows say so. The tables
go to docs/benchmarks.md, each with its date and how busy the machine was: a figure of time from a busy machine says
little.
"""

from __future__ import annotations

import argparse
import datetime
import multiprocessing
import os
import platform
import re
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from bench import bill, chaos, cost, faults, peers, scale
from bench.simulated import SCENARIOS
from bench.trials import Setting, trial

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
HEADINGS = ("what", "measured", "bar", "kept")
HEAD = """# Benchmarks

Written by `python -m bench all`; `python -m bench PART` measures one part again. Everything ran on one machine against
a loopback provider, and nothing was paid for. Times depend on what else the machine had to do, so its load is given
with them: on a busy machine they mean little. Counts, prices and shares do not depend on it.
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
        found = [peers.timed(name, latency) for _ in range(1 if quick else 3)]
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
                found = [peers.timed(name, 0.4, place) for _ in range(1 if quick else 2)]
            except (OSError, subprocess.CalledProcessError, SystemExit) as exc:
                yield Figure(title, f"not measured: {str(exc).splitlines()[0][:120]}")
                continue
            inner = [item.evaluation for item in found if item.evaluation is not None]
            command = f"{statistics.median(item.command for item in found):.2f} with start-up"
            yield Figure(title, f"{statistics.median(inner):.2f}, {command}" if inner else command)


def _faults(quick: bool) -> Iterator[Figure]:
    """Let every call of one role fail in one way; one row for each fault, the worst of the roles."""
    chosen = ("429-quota-day", "hang", "500", "empty", "wrong-schema", "404") if quick else faults.FAULTS
    found = list(faults.suffer_all(chosen))
    for fault in chosen:
        mine = [item for item in found if item.fault == fault]
        slowest, dearest = max(item.seconds for item in mine), max(item.share for item in mine)
        codes = " or ".join(str(code) for code in sorted({item.code for item in mine}))
        yield Figure(
            f"every call is answered with {fault}",
            f"exit {codes} after {slowest:.0f} s and {dearest:.1%} of the price",
            f"{faults.LONGEST_S:.0f} s, {faults.SHARE:.0%}",
            all(item.kept for item in mine),
        )


def _bill(quick: bool) -> Iterator[Figure]:
    del quick
    for item in bill.bill():
        yield Figure(
            f"dry run of {item.what}",
            f"${item.said_usd:.2f} for {item.said_calls:,} calls; billed ${item.usd:.2f} for {item.calls:,} "
            f"({item.off:+.0%})",
            f"within {bill.WITHIN:.0%}",
            item.kept,
        )


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
            setting = Setting(name, 5, change=SCENARIOS[name])
            found = pool.map(partial(trial, setting=setting), range(count), chunksize=10)
            share = sum(item.alarm for item in found) / count
            same = name == "same vs same"
            bar, kept = ("at most 5 %", share <= 0.05 + 2 * (0.05 * 0.95 / count) ** 0.5) if same else ("", None)
            yield Figure(f"{name}, 5 fixtures, {count} comparisons: called changed", f"{share:.1%}", bar, kept)


def _scale(quick: bool, folder: Path | None = None) -> Iterator[Figure]:
    sizes, runs, shards = ([4, 8, 16], 1, 2) if quick else ([125, 500], 10, 20)
    found, growth = scale.grow(sizes, runs, shards, folder)
    last = found[-1]
    per_call = 1000 * last.processor / last.calls
    what = f"{last.fixtures} fixtures x {runs} runs x {scale.PROBES} probes in {shards} shards"
    yield Figure(what, f"{last.calls:,} calls, {per_call:.1f} ms of processor time a call")
    longest = max(shard.processor for shard in last.shards)
    yield Figure("one of these shards", f"{longest:.0f} s of processor time, peak {last.peak_mb:.0f} MB")
    for name, merge in (("merge", last.merge), ("merge and comparison with a result of the same size", last.compared)):
        yield Figure(name, f"{merge.processor:.0f} s of processor time, peak {merge.peak_mb / 1024:.1f} GB")
    sizes_mb = ", ".join(f"{name} {megabytes:.1f} MB" for name, megabytes in last.files_mb.items())
    yield Figure("files of the merged result", sizes_mb)
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


PARTS: dict[str, tuple[str, Callable[[bool], Iterator[Figure]]]] = {
    "makespan": ("Speed: 16 calls at once; the bound is what 16 slots that are never idle would take", _makespan),
    "peers": ("Other programs, timed in the same way", _peers),
    "faults": ("Providers that fail at every call, in each of the three roles", _faults),
    "cost": ("Prices of the defaults, with prompt caching", _cost),
    "bill": ("The dry run against the bill of a provider with a prompt cache", _bill),
    "detection": ("Detection", _detection),
    "scale": ("Scale", _scale),
    "chaos": ("Chaos: one call in ten fails, and the command is killed until it is complete", _chaos),
}
_PART = re.compile(r"^## .*?<!-- (\w+) -->\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def _surroundings(quick: bool) -> str:
    names = ("aiohttp", "litellm", "numpy", "pydantic")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    small = " Small sizes (`--quick`)." if quick else ""
    return (
        f"{today}, Python {platform.python_version()}, {versions}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} before.{small}"
    )


def _measure(name: str, quick: bool, folder: Path | None) -> str:
    """Measure one part and return its section of the page."""
    title, measure = PARTS[name]
    if name == "scale":
        measure = partial(_scale, folder=folder)
    about = _surroundings(quick)
    lines = [f"| {' | '.join(HEADINGS)} |", "|" + "---|" * len(HEADINGS)]
    print(f"{title}\n{about}\n" + "\n".join(lines), flush=True)
    for figure in measure(quick):
        lines.append(f"| {' | '.join(figure.cells())} |")
        print(lines[-1], flush=True)
    return f"## {title} <!-- {name} -->\n\n{about}\n\n" + "\n".join(lines) + "\n\n"


def written(page: str, fresh: Mapping[str, str]) -> str:
    """Return the page with fresh sections in place of older ones, and new ones in the order of the parts.

    Whatever else the page holds stays where it is.
    """
    page, order = page or HEAD, list(PARTS)
    for name in (part for part in order if part in fresh):
        sections = {found[1]: found for found in _PART.finditer(page)}
        if name in sections:
            start, end = sections[name].span()
        else:
            earlier = [sections[part].end() for part in order[: order.index(name)] if part in sections]
            first = re.search(r"^## |\Z", page, re.MULTILINE)
            start = end = max(earlier, default=first.start() if first else len(page))
        parts = page[:start], fresh[name], page[end:]
        page = "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="+", choices=["all", *PARTS])
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    parser.add_argument("--no-write", action="store_true", help="print only")
    parser.add_argument("--folder", type=Path, help="keep what `scale` measures here, and go on with it")
    options = parser.parse_args()
    for name in PARTS:
        if "all" in options.part or name in options.part:
            section = _measure(name, options.quick, options.folder)
            if not options.no_write:  # after each part: an hour's work is not lost to a mistake in the last one
                before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
                PAGE.write_text(written(before, {name: section}), encoding="utf-8")


if __name__ == "__main__":
    main()
