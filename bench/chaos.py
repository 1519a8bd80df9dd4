"""A whole evaluation under every fault at once, killed, interrupted and out of disk space until it is complete.

    python -m bench.chaos
    python -m bench.chaos --calls 500 --seed 3

A loopback provider answers one call in ten with a fault, each kind as often as the others. Meanwhile the command is
ended again and again at random moments: with SIGKILL, with SIGTERM, or because nothing more can be written. It is
resumed until it ends by itself. The result is held against a run without any fault, cell by cell: a score that differs
came from a fault.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval_core.base.shipped import shipped
from tests.model_provider import MISBEHAVIOURS, Asked, LoopbackProvider

MODEL = "loopback/model"
CONCURRENCY = 16
RATE = 0.10
FIXTURES = ("debug-session-feishu-id-model", "iterative-merge-migration")
CALLS_PER_RUN = 4 + 2 * 2 * 12
CONFIG = """
fixtures: {fixtures}
probes: {probes}
models: {{time_limit_s: 2}}
"""
# A judge's reply out of shape is a fault; as a summary or an answer the same text would be a result.
_OF_THE_JUDGE = frozenset({"invalid-json", "wrong-schema", "out-of-range", "not-a-number"})
_SLOW = frozenset({"429-retry-after", "429-quota-day"})  # they make a run wait, which is their effect and takes minutes
FAULTS = tuple(fault for fault in MISBEHAVIOURS if fault not in _SLOW)


@dataclass
class Chaos:
    """The provider's side of it."""

    seed: int
    on: bool = True
    faults: Counter[str] = field(default_factory=Counter)
    unusable: set[int] = field(default_factory=set)
    answered: threading.Event = field(default_factory=threading.Event)
    wake_at: int = 1 << 62

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def behave(self, asked: Asked) -> str | None:
        """Choose what becomes of a request."""
        if asked.number >= self.wake_at:
            self.answered.set()
        if not self.on or self._random.random() >= RATE:
            return None
        fault = self._random.choice(FAULTS)
        if fault in _OF_THE_JUDGE and "context_awareness" not in str(asked.messages[0]):
            fault = "500"
        self.faults[fault] += 1
        self.unusable.add(asked.number)
        return fault


@contextmanager
def serving(chaos: Chaos) -> Iterator[LoopbackProvider]:
    """Serve from a thread."""
    server = LoopbackProvider(behave=chaos.behave)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        yield server
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


@dataclass(frozen=True)
class Survived:
    """What came of it."""

    calls: int
    cells: int
    lost: int
    """Cells that are not there in the end."""
    differing: int
    """Grades that are not those of a run without faults."""
    faults: int
    ends: dict[str, int]
    """How often the command was ended, and how."""
    repeated: int
    """Good replies that were asked for again."""
    in_flight: int
    """The most that can have been under way when it was ended."""
    seconds: float

    @property
    def held(self) -> bool:
        """Whether nothing was lost, wrong, or paid for twice without need."""
        return not self.lost and not self.differing and self.repeated <= self.in_flight


class _Command:
    """The command in a process of its own."""

    def __init__(self, folder: Path, url: str, runs: int, label: str) -> None:
        words = [
            "run",
            "--model",
            MODEL,
            "--set",
            f"models.api_base={url}",
            "--set",
            f"models.prices={{{MODEL}: {{input: 1, output: 4}}}}",
            "--budget-usd",
            "1000",
        ]
        words += [
            "--fixtures",
            ",".join(FIXTURES),
            "--runs",
            str(runs),
            "--set",
            f"compress_runs={runs}",
            "--set",
            "stop=full",
        ]
        words += ["--target", "builtin:anchored", "--compare-to", "none", "--set", "models.trust_judge=true", "--quiet"]
        self._words = [sys.executable, "-m", "bot", *words, "--label", label, "--resume"]
        self._folder = folder
        self.journal = folder / "results" / label / "journal.jsonl"

    def start(self, room: int | None = None) -> subprocess.Popen[bytes]:
        """Start it; with `room`, no file may grow larger than that: the disk is full."""
        limit = None if room is None else (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))
        return subprocess.Popen(
            self._words,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=limit,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )

    def summary(self) -> dict[str, Any]:
        """Return the result."""
        return dict(json.loads((self.journal.parent / "summary.json").read_text()))

    def done(self) -> int:
        """Count the calls that the journal holds for good."""
        if not self.journal.exists():
            return 0
        return sum(line.startswith(b'{"at":"done"') for line in self.journal.read_bytes().splitlines())


def _grades(summary: dict[str, Any]) -> dict[tuple[str, int, str], Any]:
    return {
        (name, run["run"], probe): (record["result"] or {}).get("scores")
        for name, runs in summary["fixtures"].items()
        for run in runs
        for probe, record in run["probes"].items()
    }


def survive(calls: int = 2_000, seed: int = 1, say: bool = False) -> Survived:
    """Run the evaluation through all of it."""
    chance, runs, began = random.Random(seed), max(1, round(calls / CALLS_PER_RUN)), time.monotonic()
    chaos = Chaos(seed)
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, serving(chaos) as server:
        folder = Path(name)
        body = CONFIG.format(fixtures=shipped("fixtures"), probes=shipped("probes"))
        (folder / ".compression-eval.yml").write_text(body)
        command = _Command(folder, server.base_url, runs, "chaos")
        while True:
            chaos.wake_at = len(server.asked) + chance.randint(calls // 40, calls // 5)
            chaos.answered.clear()
            how = chance.choice(["SIGKILL", "SIGTERM", "full disk"])
            size = command.journal.stat().st_size if command.journal.exists() else 0
            process = command.start(size + chance.randint(20_000, 200_000) if how == "full disk" else None)
            while process.poll() is None and not chaos.answered.wait(0.2):
                pass
            if process.poll() is None and how != "full disk":
                process.send_signal(signal.SIGKILL if how == "SIGKILL" else signal.SIGTERM)
            elif process.poll() is None:
                chaos.wake_at = 1 << 62
            code = process.wait()
            if say:
                print(f"{len(server.asked)} asked, {command.done()} done, {how}: exit {code}", flush=True)
            if code == 0:
                break
            ends[how if how != "full disk" or code not in (0, 3) else "incomplete"] += 1
        asked, good = len(server.asked), [call for call in server.delivered if call.number not in chaos.unusable]
        repeated, found = max(0, len(good) - command.done()), command.summary()
        chaos.on, chaos.wake_at = False, 1 << 62
        reference = _Command(folder, server.base_url, runs, "reference")
        assert reference.start().wait() == 0
        expected = _grades(reference.summary())
    ours = _grades(found)
    return Survived(
        calls=asked,
        cells=len(expected),
        lost=sum(ours.get(cell) is None for cell in expected),
        differing=sum(ours.get(cell) is not None and ours[cell] != scores for cell, scores in expected.items()),
        faults=sum(chaos.faults.values()),
        ends=dict(ends),
        repeated=repeated,
        in_flight=CONCURRENCY * (ends["SIGKILL"] + ends["full disk"]),
        seconds=time.monotonic() - began,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = survive(options.calls, options.seed, say=True)
    ended = ", ".join(f"{count} x {how}" for how, count in found.ends.items())
    print(
        f"{found.calls} calls, {found.faults} faults, ended {ended}: {found.lost} of {found.cells} cells lost, "
        f"{found.differing} scores differ, {found.repeated} good replies asked for again "
        f"(at most {found.in_flight} under way), {found.seconds:.0f} s"
    )
    sys.exit(0 if found.held else 1)


if __name__ == "__main__":
    main()
