"""What the dry run says against what a loopback provider bills, for every way to use the program.

    python -m bench.bill

Each case asks for its price with `--dry-run`, runs, and is billed by a provider of its own, whose prompt cache is empty
at the beginning. Prices are those of a Sonnet-class model; cached input costs a tenth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from bench.cost import SEED_SHAPE
from bench.plan import provider
from eval_core.base.shipped import shipped

MODEL = "openai/loopback"
INPUT, OUTPUT, CACHED = 3.0, 15.0, 0.3
WITHIN = 0.15
_TARGET = ("--target", "builtin:anchored")
CASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("the compressor's model, judged offline", ("run", "--judge", "offline", "--compare-to", "none")),
    ("first baseline", ("baseline", "update", "--accept-failing")),
    ("first look", ("run", "--label", "look", "--stop", "full")),
    ("second look", ("run", "--label", "look", "--next-look", "--stop", "full")),
    ("first look, 3 fixtures", ("run", "--label", "three", "--stop", "full", "--fixtures", ",".join(SEED_SHAPE))),
    ("shard 1 of 2", ("run", "--label", "parts", "--shard", "1/2")),
    ("shard 2 of 2", ("run", "--label", "parts", "--shard", "2/2")),
)


@dataclass(frozen=True)
class Billed:
    """One case: what was said and what it came to."""

    what: str
    said_calls: int
    said_usd: float
    calls: int
    usd: float

    @property
    def off(self) -> float:
        """By how much the dry run was off, as a share of the bill."""
        return self.said_usd / self.usd - 1

    @property
    def kept(self) -> bool:
        """Whether it was near enough."""
        return self.calls == self.said_calls and abs(self.off) <= WITHIN


def _run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "bot", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-1000:]}")
    return done.stdout


def bill() -> Iterator[Billed]:
    """Go through all cases, one after the other: later ones use the baseline of an earlier one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = f"fixtures: {shipped('fixtures')}\nprobes: {shipped('probes')}\n"
        (folder / ".compression-eval.yml").write_text(places, encoding="utf-8")
        for what, words in CASES:
            with provider("--prompt-cache", "--latency", "0.05") as url:
                price = f"{MODEL}={INPUT:g},{OUTPUT:g},{CACHED:g}"
                command = (*words, *_TARGET, "--model", MODEL, "--api-base", url, "--price", price)
                said = _run(folder, *command, "--dry-run")
                total = next(line for line in said.splitlines() if line.startswith("total"))
                _run(folder, *command, "--budget-usd", "100", "--quiet")
                with urlopen(f"{url}/stats") as reply:
                    used = json.load(reply)
            fresh = used["input_tokens"] - used["cached_tokens"]
            usd = (fresh * INPUT + used["cached_tokens"] * CACHED + used["output_tokens"] * OUTPUT) / 1e6
            calls = int(total.split()[1].replace(",", ""))
            yield Billed(what, calls, float(total.rpartition("$")[2]), used["asked"], usd)


def main() -> None:
    for item in bill():
        print(
            f"{item.what}: dry run {item.said_calls:,} calls, ${item.said_usd:.2f}; bill {item.calls:,} calls, "
            f"${item.usd:.2f} ({item.off:+.0%})",
            flush=True,
        )


if __name__ == "__main__":
    main()
