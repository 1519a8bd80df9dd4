"""Count the attacks on the sandbox and the gateway, tried and blocked, for each sandbox level of this machine.

    python bench/attacks.py [--resume] [--write]

Runs `tests/sandbox` and says of each attack how it ended: it is blocked when its test passes. Results are kept in
`bench/attacks.jsonl` as they come, so that `--resume` goes on where a run ended; `--write` puts the table into
docs/security.md. Nothing depends on how fast the machine is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "bench" / "attacks.jsonl"
PAGE = ROOT / "docs" / "security.md"
MARKS = ("<!-- written by bench/attacks.py -->\n", "<!-- end -->\n")
KINDS = {
    "test_sandbox_ways_out": "ways out (key, files, network, privileges, kernel)",
    "test_sandbox_bombs": "bombs, forged results, orphans",
    "test_sandbox_gateway": "requests and floods against the gateway",
    "test_sandbox_memory": "memory, by each way to limit it",
    "test_sandbox_orphans": "the evaluator killed",
}
LEVELS = {"privileged": "privileged", "system": "rootless", "home": "rootless, interpreter at home"}
# These start their own evaluators, as root.
_PRIVILEGED = ("test_sandbox_gateway", "test_sandbox_memory", "test_sandbox_orphans")


def pytest_runtest_logreport(report: object) -> None:
    """Write one attack down when it has ended; pytest calls this, for which this file is its plugin."""
    name, when, outcome = (str(getattr(report, field)) for field in ("nodeid", "when", "outcome"))
    if when == "call" or outcome != "passed":
        with KEPT.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"attack": name, "outcome": outcome}) + "\n")
        print(f"\n{outcome:8}{name}", flush=True)


def known() -> dict[str, str]:
    """Return how each attack ended; one that failed anywhere has failed."""
    found: dict[str, str] = {}
    for line in KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else ():
        entry = json.loads(line)
        if found.get(entry["attack"]) != "failed":
            found[entry["attack"]] = entry["outcome"]
    return found


def table(ended: Mapping[str, str]) -> str:
    """Return attacks tried and blocked, by kind and level; controls outside of the sandbox are not attacks."""
    tried: Counter[tuple[str, str]] = Counter()
    blocked: Counter[tuple[str, str]] = Counter()
    for name, outcome in ended.items():
        kind = next((kind for kind in KINDS if kind in name), None)
        parameters = name.partition("[")[2].rstrip("]")
        level = next((level for level in LEVELS if parameters == level or parameters.startswith(f"{level}-")), None)
        if level is None and kind in _PRIVILEGED:
            level = "privileged"
        if kind is None or level is None or outcome == "skipped":
            continue
        tried[kind, level] += 1
        blocked[kind, level] += outcome == "passed"
    lines = ["| attacks | " + " | ".join(LEVELS.values()) + " |", "|---|" + "---:|" * len(LEVELS)]
    for kind, words in KINDS.items():
        cells = [f"{blocked[kind, level]} of {tried[kind, level]}" if tried[kind, level] else "-" for level in LEVELS]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    totals = [f"{sum(blocked[k, level] for k in KINDS)} of {sum(tried[k, level] for k in KINDS)}" for level in LEVELS]
    lines.append(f"| together | {' | '.join(totals)} |")
    return "\n".join(lines) + "\n"


def attack(done: Mapping[str, str]) -> int:
    """Try what has not been tried yet, and return pytest's exit code."""
    left = [word for name, outcome in done.items() if outcome != "failed" for word in ("--deselect", name)]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "bench.attacks", *left, "tests/sandbox"]
    environment = {**os.environ, "ATTACK_LEVELS": ",".join(LEVELS), "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resume", action="store_true", help="try only what has not been tried, or failed")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    given = parser.parse_args()
    done = {name: outcome for name, outcome in known().items() if outcome != "failed"} if given.resume else {}
    KEPT.write_text("".join(json.dumps({"attack": name, "outcome": done[name]}) + "\n" for name in done))
    attack(done)
    ended = known()
    print("\n" + table(ended), end="")
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        start, end = (text.index(mark) for mark in MARKS)
        PAGE.write_text(f"{text[:start]}{MARKS[0]}{table(ended)}{text[end:]}", encoding="utf-8")
    sys.exit(any(outcome == "failed" for outcome in ended.values()))


if __name__ == "__main__":
    main()
