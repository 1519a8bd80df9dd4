"""Processor time and memory of playing a long session in rounds, offline: `python -m bench.round_speed`.

Each size in a process of its own: generate, compress by rules (anchored), read every round, search for what is lost.
Exponents are of the smallest to the largest size, in tokens (ten rounds each) and in rounds (125,000 tokens each).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import resource
import subprocess
import sys
import time

from eval_core.facts.verbatim import Kept
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.strands.rounds import read_rounds
from eval_core.strands.strand import SeenRun
from eval_core.suite.generate import SessionPlan, generate

SECONDS, MEGABYTES, EXPONENT = 60.0, 300.0, 1.1


def play(tokens: int, rounds: int) -> dict[str, float]:
    """Play one session and return what it took."""
    before = time.process_time()
    case = generate(SessionPlan("speed-1", 1, tokens=tokens, window=round(tokens / (0.7 * rounds))))
    assert len(case.fixture.cuts) == rounds, len(case.fixture.cuts)
    made = asyncio.run(BuiltinSubject("anchored").compress(case.fixture, run=0, seed=0))
    found = read_rounds(SeenRun(case.fixture, made, Kept(case.fixture.messages, made.state), case.ledger))
    assert found is not None
    assert found.recovery is not None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.process_time() - before, "megabytes": peak}


def _alone(tokens: int, rounds: int) -> dict[str, float]:
    words = [sys.executable, "-m", "bench.round_speed", "--one", str(tokens), str(rounds)]
    return dict(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout))


def main() -> int:
    """Print the table; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.round_speed")
    parser.add_argument("--one", nargs=2, type=int)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(play(*given.one)))
        return 0
    print("| tokens | rounds | s of processor time | peak MB |\n|---:|---:|---:|---:|")
    found = {}
    for size in ((125_000, 10), (250_000, 10), (500_000, 10), (125_000, 20), (125_000, 40)):
        found[size] = _alone(*size)
        print(
            f"| {size[0]:,} | {size[1]} | {found[size]['seconds']:.1f} | {found[size]['megabytes']:.0f} |", flush=True
        )
    kept = found[500_000, 10]["seconds"] < SECONDS and found[500_000, 10]["megabytes"] < MEGABYTES
    for what, size in (("tokens", (500_000, 10)), ("rounds", (125_000, 40))):
        growth = found[size]["seconds"] / found[125_000, 10]["seconds"]
        exponent = math.log(growth) / math.log(4)
        kept = kept and exponent <= EXPONENT
        print(f"exponent in {what}: {exponent:.2f} (at most {EXPONENT})")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
