"""What the dry run says against what a loopback provider bills, for every way to use the program.

    python -m bench.bill

Each case asks for its price with `--dry-run`, runs, and is billed by a provider of its own, whose prompt cache is empty
at the beginning. Prices are those of a Sonnet-class model. A cache that is marked, as Claude's, charges a quarter more
for what it keeps; one that keeps everything charges nothing for it. Reading costs a tenth in both.
Summaries are worded differently in each run, as a model would.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from bench.cost import SEED_SHAPE
from bench.plan import provider
from eval_core.base.shipped import shipped

INPUT, OUTPUT, CACHED, WRITE = 3.0, 15.0, 0.3, 3.75
WITHIN = 0.15
_TARGET = ("--target", "builtin:anchored")


@dataclass(frozen=True)
class Cache:
    """A kind of prompt cache, and a model that is served with it."""

    model: str
    option: str
    write: float

    @property
    def price(self) -> str:
        """Return it as on the command line."""
        price = f"input: {INPUT:g}, output: {OUTPUT:g}, cached_input: {CACHED:g}, cache_write: {self.write:g}"
        return f"models.prices={{{self.model}: {{{price}}}}}"

    def bill(self, used: Mapping[str, Any]) -> float:
        """Return what a provider charges for what it delivered."""
        fresh = used["input_tokens"] - used["cached_tokens"] - used["written_tokens"]
        whole = fresh * INPUT + used["cached_tokens"] * CACHED + used["written_tokens"] * self.write
        return float(whole + used["output_tokens"] * OUTPUT) / 1e6


MARKED = Cache("claude-loopback", "--marked-cache", WRITE)
AUTOMATIC = Cache("openai/loopback", "--prompt-cache", INPUT)


@dataclass(frozen=True)
class Case:
    """One way to use the program."""

    what: str
    words: tuple[str, ...]
    cache: Cache = MARKED


CASES = (
    Case("the compressor's model, judged offline", ("run", "--judge", "offline", "--compare-to", "none")),
    Case("first baseline", ("baseline", "update", "--accept-failing")),
    Case("first look", ("run", "--label", "look", "--set", "stop=full")),
    Case("second look", ("run", "--label", "look", "--next-look", "--set", "stop=full")),
    Case("third look", ("run", "--label", "look", "--next-look", "--set", "stop=full")),
    Case(
        "first look, 3 fixtures", ("run", "--label", "three", "--set", "stop=full", "--fixtures", ",".join(SEED_SHAPE))
    ),
    Case("shard 1 of 2", ("run", "--label", "parts", "--shard", "1/2")),
    Case("shard 2 of 2", ("run", "--label", "parts", "--shard", "2/2")),
    Case(
        "first run without a baseline",
        ("run", "--label", "alone"),
        Cache("claude-loopback-new", "--marked-cache", WRITE),  # no controls and no calibration are known of it
    ),
    Case("first baseline, cache without marks", ("baseline", "update", "--accept-failing"), AUTOMATIC),
    Case("first look, cache without marks", ("run", "--label", "plain", "--set", "stop=full"), AUTOMATIC),
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
    """Price, run and bill every case."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = f"fixtures: {shipped('fixtures')}\nprobes: {shipped('probes')}\n"
        (folder / ".compression-eval.yml").write_text(places, encoding="utf-8")
        for case in CASES:
            with provider(case.cache.option, "--sampling", "--latency", "0.05") as url:
                model = ("--model", case.cache.model, "--set", f"models.api_base={url}", "--set", case.cache.price)
                command = (*case.words, *_TARGET, *model)
                said = _run(folder, *command, "--dry-run")
                total = next(line for line in said.splitlines() if line.startswith("total"))
                _run(folder, *command, "--budget-usd", "100", "--quiet")
                with urlopen(f"{url}/stats") as reply:
                    used = json.load(reply)
            calls = int(total.split()[1].replace(",", ""))
            yield Billed(case.what, calls, float(total.rpartition("$")[2]), used["asked"], case.cache.bill(used))


def main() -> None:
    for item in bill():
        print(
            f"{item.what}: dry run {item.said_calls:,} calls, ${item.said_usd:.2f}; bill {item.calls:,} calls, "
            f"${item.usd:.2f} ({item.off:+.0%})",
            flush=True,
        )


if __name__ == "__main__":
    main()
