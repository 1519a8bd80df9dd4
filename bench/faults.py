"""Every fault of a provider, in every role, at every call: how soon a run ends, what it costs, and what it says.

    python -m bench.faults
    python -m bench.faults --only hang 500 --role judge

A loopback provider answers all calls of one role with one fault. The command runs with its defaults over the shipped
sessions. The bar: it ends in under five minutes, for less than 2 % of the dry run's price, with an exit code of 3 and
what to do in one sentence.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from eval_core.base.shipped import shipped
from tests.model_provider import MISBEHAVIOURS, Asked, LoopbackProvider

ROLES = ("compressor", "answer", "judge")
OF_THE_JUDGE = frozenset({"invalid-json", "wrong-schema", "out-of-range", "not-a-number"})
HARMLESS = frozenset({"wrong-model", "no-usage", "absurd-usage", "truncated-late"})
"""Replies that are used: odd, but whole."""
FAULTS = tuple(fault for fault in MISBEHAVIOURS if fault not in HARMLESS)
LONGEST_S = 300.0
SHARE = 0.02
INPUT, OUTPUT = 3.0, 15.0


@dataclass(frozen=True)
class Ended:
    """How a run ended whose model failed in one way at every call."""

    fault: str
    role: str
    code: int
    seconds: float
    share: float
    """Of the price that the dry run names."""
    said: str

    @property
    def kept(self) -> bool:
        """Whether it ended soon, cheaply and with a sentence."""
        return self.code == 3 and self.seconds < LONGEST_S and self.share < SHARE and bool(self.said)


@contextmanager
def _serving(fault: str, role: str) -> Iterator[LoopbackProvider]:
    def behave(asked: Asked) -> str | None:
        return fault if asked.model == f"loopback/{role}" else None

    server = LoopbackProvider(behave=behave)
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


def _run(folder: Path, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    here = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "bot", "run", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=here)


def _prepared(folder: Path) -> list[str]:
    places = f"fixtures: {shipped('fixtures')}\nprobes: {shipped('probes')}\n"
    (folder / ".compression-eval.yml").write_text(places, encoding="utf-8")
    words = ["--compare-to", "none", "--target", "builtin:anchored"]
    for role in ROLES:
        words += ["--set", f"models.{role}=loopback/{role}"]
        words += ["--set", f"models.prices={{loopback/{role}: {{input: {INPUT:g}, output: {OUTPUT:g}}}}}"]
    return words


@cache
def price() -> float:
    """Return what the dry run names, without a prompt cache: the loopback has none here."""
    with tempfile.TemporaryDirectory() as name:
        words = _prepared(Path(name))
        said = _run(Path(name), [*words, "--set", "models.api_base=http://127.0.0.1:9/v1", "--dry-run"]).stdout
    total = next(line for line in said.splitlines() if line.startswith("total"))
    return float(total.split("$")[1].split()[0])


def suffer(fault: str, role: str) -> Ended:
    """Run the command against a provider that fails in one role."""
    with tempfile.TemporaryDirectory() as name, _serving(fault, role) as server:
        folder = Path(name)
        words = [*_prepared(folder), "--set", f"models.api_base={server.base_url}", "--budget-usd", "100", "--quiet"]
        began = time.monotonic()
        done = _run(folder, words)
        seconds = time.monotonic() - began
        spent = (server.input_tokens * INPUT + server.output_tokens * OUTPUT) / 1e6
    said = next((line for line in done.stderr.splitlines() if line.startswith(("Incomplete: ", "Error: "))), "")
    # Both ends hold the words of the provider; what comes after is how to resume.
    said = said.partition(". Everything paid for")[0].partition("; what is finished")[0]
    return Ended(fault, role, done.returncode, seconds, spent / price(), said)


def suffer_all(faults: Sequence[str] = FAULTS, roles: Sequence[str] = ROLES, at_once: int = 12) -> Iterator[Ended]:
    """Try every fault in every role; grades that cannot be read are the judge's alone. Most of it is waiting."""
    pairs = [(fault, role) for fault in faults for role in roles if fault not in OF_THE_JUDGE or role == "judge"]
    price()  # once, before everybody asks for it
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(lambda pair: suffer(*pair), pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--role", nargs="+", choices=ROLES, default=list(ROLES))
    options = parser.parse_args()
    found = []
    for item in suffer_all(options.only, options.role):
        found.append(item)
        print(
            f"{item.fault} in the {item.role}: exit {item.code}, {item.seconds:.0f} s, {item.share:.1%} of the price: "
            f"{item.said}",
            flush=True,
        )
    missed = [item for item in found if not item.kept]
    print(f"{len(found) - len(missed)} of {len(found)} within the bar")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
