"""How time, calls and memory grow with the size of a suite, and what shards make of it.

    python -m bench.scale
    python -m bench.scale --fixtures 10 20 40 --shards 4
    python -m bench.scale --fixtures 125 500 --runs 10 --shards 20 --folder /tmp/scale

Sessions are made up: as many messages each, with names and numbers of their own, and twelve probes. A loopback provider
answers at once, so that what is measured is this program. Each size is run in shards, one after the other as on
machines of their own, and merged. The exponent is the slope of the logarithms: 1 grows as the suite does. With
--folder everything is kept there, and the same command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
class Process:
    """What one command took."""

    seconds: float
    processor: float
    """Seconds of processor time."""
    peak_mb: float
    calls: int = 0


@dataclass(frozen=True)
class Scaled:
    """One size."""

    fixtures: int
    shards: tuple[Process, ...]
    merge: Process
    compared: Process
    """The merge again, this time compared with a result of the same size."""
    files_mb: Mapping[str, float]
    """The largest files of the merged result."""

    @property
    def calls(self) -> int:
        """Of all shards together."""
        return sum(shard.calls for shard in self.shards)

    @property
    def processor(self) -> float:
        """Seconds of processor time of all shards together."""
        return sum(shard.processor for shard in self.shards)

    @property
    def peak_mb(self) -> float:
        """Of the largest shard."""
        return max(shard.peak_mb for shard in self.shards)


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
        asked = [number * 1_000 + turn for turn in range(2, MESSAGES // 2, MESSAGES // 2 // PROBES)]
        probes = [
            {
                "id": f"p{at}",
                "type": "recall",
                "question": f"Set limit_{value}: in which config/part_{value}, and to what?",
                "expected_facts": [f"config/part_{value}.toml", str(value + 7)],
            }
            for at, value in enumerate(asked)
        ]
        fixture = {"name": name, "messages": messages, "description": "made up", "context_length": 4_000}
        (folder / "fixtures" / f"{name}.json").write_text(json.dumps(fixture))
        bank = {"fixture": name, "probes": probes}
        (folder / "probes" / f"{name}.probes.json").write_text(json.dumps(bank))


def _run(folder: Path, *words: str) -> Process:
    """Run the command and measure it."""
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
    try:
        code, processor, peak = json.loads(done.stderr.splitlines()[-1])
    except (IndexError, ValueError):
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}") from None
    if code:
        raise SystemExit(f"{' '.join(words)} ended with {code}: {done.stderr[-2000:]}")
    return Process(took, processor, peak)


def _shard(folder: Path, runs: int, shard: str) -> Process:
    """Measure one shard against a provider of its own."""
    with provider() as url:
        words = [
            "run",
            "--model",
            MODEL,
            "--set",
            f"models.api_base={url}",
            "--set",
            f"models.prices={{{MODEL}: {{input: 1, output: 4}}}}",
            "--budget-usd",
            "10000",
        ]
        words += [
            "--runs",
            str(runs),
            "--set",
            f"compress_runs={runs}",
            "--target",
            "builtin:anchored",
            "--set",
            "models.trust_judge=true",
        ]
        words += ["--compare-to", "none", "--quiet", "--label", "scale"]
        found = _run(folder, *words, "--shard", shard)
        with urlopen(f"{url}/stats") as reply:
            return replace(found, calls=json.load(reply)["asked"])


def measure(fixtures: int, runs: int, shards: int, folder: Path) -> Scaled:
    """Measure one size in a folder; what was measured there before is not measured again."""
    noted = folder / "measured.json"
    if not noted.exists():
        write_suite(folder, fixtures)
        noted.write_text("[]")
    parts = [Process(**known) for known in json.loads(noted.read_text())]
    for index in range(len(parts) + 1, shards + 1):
        for left in folder.glob(f"results/*-shard-{index}-of-{shards}"):
            shutil.rmtree(left)  # of a shard that was interrupted
        parts.append(_shard(folder, runs, f"{index}/{shards}"))
        print(f"{fixtures} fixtures, shard {index}/{shards}: {parts[-1]}", file=sys.stderr, flush=True)
        noted.write_text(json.dumps([asdict(part) for part in parts]))
    kept = folder / "merged.json"
    if not kept.exists():
        kept.write_text(json.dumps(_merged(folder, fixtures, runs)))
    found = json.loads(kept.read_text())
    return Scaled(fixtures, tuple(parts), Process(**found["merge"]), Process(**found["compared"]), found["files_mb"])


def _merged(folder: Path, fixtures: int, runs: int) -> dict[str, dict[str, float]]:
    """Merge the shards twice: alone, and compared with what the first merge gave."""
    merged, before = (folder / "results" / name for name in ("scale", "before"))
    for left in (merged, before):
        shutil.rmtree(left, ignore_errors=True)
    merge = _run(folder, "merge", "scale", "--compare-to", "none")
    print(f"{fixtures} fixtures, merge: {merge}", file=sys.stderr, flush=True)
    merged.rename(before)
    compared = _run(folder, "merge", "scale", "--compare-to", "results/before")
    print(f"{fixtures} fixtures, merge and comparison: {compared}", file=sys.stderr, flush=True)
    summary = json.loads((merged / "summary.json").read_text())
    measured = [run for found in summary["fixtures"].values() for run in found]
    assert sum(run["outcome"] == "ok" for run in measured) == fixtures * runs
    graded = [probe["result"]["kind"] for run in measured for probe in run["probes"].values()]
    assert graded.count("grade") == fixtures * runs * PROBES
    sizes = {name: (merged / name).stat().st_size / 2**20 for name in ("summary.json", "journal.jsonl", "report.html")}
    return {"merge": asdict(merge), "compared": asdict(compared), "files_mb": sizes}


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the slope of the logarithms, by least squares."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def grow(
    fixtures: Sequence[int], runs: int, shards: int, folder: Path | None = None
) -> tuple[list[Scaled], dict[str, float]]:
    """Measure all sizes, and how calls, time and memory grow."""
    with tempfile.TemporaryDirectory() as name:
        found = [measure(count, runs, shards, (folder or Path(name)) / str(count)) for count in fixtures]
    sizes = [item.fixtures for item in found]
    return found, {
        "calls": exponent(sizes, [item.calls for item in found]),
        "processor time of all shards": exponent(sizes, [item.processor for item in found]),
        "memory of a shard": exponent(sizes, [item.peak_mb for item in found]),
        "processor time of the merge": exponent(sizes, [item.merge.processor for item in found]),
        "memory of the merge": exponent(sizes, [item.merge.peak_mb for item in found]),
        "processor time of the merge with a comparison": exponent(sizes, [item.compared.processor for item in found]),
        "memory of the merge with a comparison": exponent(sizes, [item.compared.peak_mb for item in found]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", type=int, nargs="+", default=[10, 20, 40])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="keep everything here")
    options = parser.parse_args()
    found, growth = grow(options.fixtures, options.runs, options.shards, options.folder)
    for item in found:
        print(
            f"{item.fixtures} fixtures in {options.shards} shards: {item.calls:,} calls, {item.processor:.0f} s of "
            f"processor time, peak {item.peak_mb:.0f} MB; merge {item.merge.processor:.1f} s of processor time, "
            f"peak {item.merge.peak_mb:.0f} MB; with a comparison {item.compared.processor:.1f} s, "
            f"peak {item.compared.peak_mb:.0f} MB; {item.files_mb}"
        )
    print("growth: " + ", ".join(f"{name} {value:.2f}" for name, value in growth.items()))


if __name__ == "__main__":
    main()
