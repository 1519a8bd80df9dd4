"""How time, calls and memory grow with the size of a suite, and what shards make of it.

    python -m bench.scale
    python -m bench.scale --fixtures 10 20 40 --shards 4

Sessions are made up: as many messages each, with names and numbers of their own, and twelve probes. A loopback provider
answers at once, so that what is measured is this program. Each size is run in shards, one after the other as on
machines of their own, and merged. The exponent is the slope of the logarithms: 1 grows as the suite does.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from bench.plan import provider

MODEL = "loopback/model"
MESSAGES = 120
PROBES = 12
_MEASURE = """
import json, resource, sys
from bot.cli import main
sys.argv = ["compression-eval", *sys.argv[1:]]
try:
    main()
except SystemExit as exc:
    code = exc.code
use = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([code or 0, use.ru_utime + use.ru_stime, use.ru_maxrss / 1024]), file=sys.stderr)
"""


@dataclass(frozen=True)
class Scaled:
    """One size."""

    fixtures: int
    calls: int
    seconds: float
    """Of all shards, one after the other, and the merge."""
    slowest: float
    """Of the slowest shard and the merge: the time it takes on machines of their own."""
    processor: float
    peak_mb: float
    """Of the largest process."""


def write_suite(folder: Path, count: int) -> None:
    """Write made-up sessions with their probes."""
    for part in ("fixtures", "probes"):
        (folder / part).mkdir(parents=True)
    for number in range(count):
        name = f"session-{number:04}"
        messages = [{"role": "system", "content": "You are a coding agent."}]
        for turn in range(MESSAGES // 2):
            value = number * 1_000 + turn
            messages += [
                {"role": "user", "content": f"Set limit_{value} in config/part_{value}.toml to {value + 7}."},
                {"role": "assistant", "content": f"Done: config/part_{value}.toml line {turn} has limit_{value}. " * 4},
            ]
        probes = [
            {
                "id": f"p{at}",
                "type": "recall",
                "question": f"Which file holds limit_{number * 1_000 + at}, and what is its value?",
                "expected_facts": [f"config/part_{number * 1_000 + at}.toml", str(number * 1_000 + at + 7)],
            }
            for at in range(PROBES)
        ]
        fixture = {"name": name, "messages": messages, "description": "made up", "context_length": 4_000}
        (folder / "fixtures" / f"{name}.json").write_text(json.dumps(fixture))
        bank = {"fixture": name, "probes": probes}
        (folder / "probes" / f"{name}.probes.json").write_text(json.dumps(bank))


def _run(folder: Path, *words: str) -> tuple[float, float, float]:
    """Run the command and return seconds, seconds of processor time, and the peak in MB."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    took = time.monotonic() - began
    code, processor, peak = json.loads(done.stderr.splitlines()[-1])
    if code:
        raise SystemExit(f"{' '.join(words)} ended with {code}: {done.stderr[-2000:]}")
    return took, processor, peak


def measure(fixtures: int, runs: int, shards: int) -> Scaled:
    """Measure one size."""
    with tempfile.TemporaryDirectory() as name, provider() as url:
        folder = Path(name)
        write_suite(folder, fixtures)
        words = ["run", "--model", MODEL, "--api-base", url, "--price", f"{MODEL}=1,4", "--budget-usd", "10000"]
        words += ["--runs", str(runs), "--compress-runs", str(runs), "--target", "builtin:anchored", "--trust-judge"]
        words += ["--compare-to", "none", "--quiet", "--label", "scale"]
        parts = [_run(folder, *words, "--shard", f"{index}/{shards}") for index in range(1, shards + 1)]
        merged = _run(folder, "merge", "scale", "--compare-to", "none")
        with urlopen(f"{url}/stats") as reply:
            calls = json.load(reply)["asked"]
        summary = json.loads((folder / "results" / "scale" / "summary.json").read_text())
    assert sum(run["outcome"] == "ok" for found in summary["fixtures"].values() for run in found) == fixtures * runs
    return Scaled(
        fixtures,
        calls,
        sum(part[0] for part in (*parts, merged)),
        max(part[0] for part in parts) + merged[0],
        sum(part[1] for part in (*parts, merged)),
        max(part[2] for part in (*parts, merged)),
    )


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the logarithms, by least squares."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def grow(fixtures: Sequence[int], runs: int, shards: int) -> tuple[list[Scaled], dict[str, float]]:
    """Measure all sizes, and how time, memory and calls grow."""
    found = [measure(count, runs, shards) for count in fixtures]
    sizes = [item.fixtures for item in found]
    return found, {
        "calls": exponent(sizes, [item.calls for item in found]),
        "processor time": exponent(sizes, [item.processor for item in found]),
        "memory": exponent(sizes, [item.peak_mb for item in found]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--shards", type=int, default=2)
    options = parser.parse_args()
    found, growth = grow(options.fixtures, options.runs, options.shards)
    for item in found:
        print(
            f"{item.fixtures} fixtures: {item.calls} calls, {item.seconds:.1f} s in {options.shards} shards "
            f"(slowest and merge {item.slowest:.1f} s), {item.processor:.1f} s of processor time, "
            f"peak {item.peak_mb:.0f} MB"
        )
    print("growth: " + ", ".join(f"{name} {value:.2f}" for name, value in growth.items()))


if __name__ == "__main__":
    main()
