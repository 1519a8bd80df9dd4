"""Count the attacks on the sandbox and the gateway, tried and blocked, for each sandbox level of this machine.

    python bench/attacks.py [--out table.md]

Runs `tests/sandbox` and counts its results: an attack is blocked when its test passes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
KINDS = {
    "test_sandbox_ways_out": "ways out (key, files, network, privileges, kernel)",
    "test_sandbox_bombs": "bombs, forged results, orphans",
    "test_sandbox_gateway": "requests and floods against the gateway",
    "test_sandbox_memory": "memory, by each way to limit it",
    "test_sandbox_orphans": "the evaluator killed",
}
LEVELS = ("privileged", "rootless")


def count(report: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return the attacks tried and blocked, by kind and level; controls outside of the sandbox are not attacks."""
    tried: Counter[tuple[str, str]] = Counter()
    blocked: Counter[tuple[str, str]] = Counter()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        kind = next((kind for kind in KINDS if kind in case.get("classname", "")), None)
        parameters = case.get("name", "").partition("[")[2].rstrip("]")
        level = next((level for level in LEVELS if parameters == level or parameters.startswith(f"{level}-")), None)
        if level is None and kind in ("test_sandbox_gateway", "test_sandbox_memory", "test_sandbox_orphans"):
            level = LEVELS[0]
        if kind is None or level is None or case.find("skipped") is not None:
            continue
        tried[kind, level] += 1
        blocked[kind, level] += case.find("failure") is None and case.find("error") is None
    return tried, blocked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", f"--junitxml={report}", "tests/sandbox"]
        subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL)
        tried, blocked = count(report)
    lines = ["| attacks | " + " | ".join(LEVELS) + " |", "|---|" + "---:|" * len(LEVELS)]
    for kind, words in KINDS.items():
        cells = [f"{blocked[kind, level]} of {tried[kind, level]}" if tried[kind, level] else "-" for level in LEVELS]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    totals = [f"{sum(blocked[k, level] for k in KINDS)} of {sum(tried[k, level] for k in KINDS)}" for level in LEVELS]
    lines.append(f"| together | {' | '.join(totals)} |")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if out:
        out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
