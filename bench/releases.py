"""Compare published releases of agents and write what came out beside what was said of them: docs/releases.md.

    python -m bench.releases FOLDER [--only langchain] [--write]

Each pair is measured offline with `compression-eval releases`, on two of the shipped sessions, and kept in FOLDER, so
that a stopped run goes on. `said` is what the project's own changelog, pull requests or users say of the later release;
`right` says which of our verdicts agree with it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bot.cli import root
from eval_core.base.errors import UserError
from eval_core.comparing.compare import compare_measurements
from eval_core.storage.results import read_measurement

PAGE = Path(__file__).resolve().parents[1] / "docs" / "releases.md"
BEGIN, END = "<!-- table: python -m bench.releases -->", "<!-- end of table -->"
FIXTURES = "constraints-and-reversals,debug-session-feishu-id-model"
CALM = ("no_detectable_change",)
WORSE, BETTER = ("regressed", "broken"), ("improved",)


@dataclass(frozen=True)
class Pair:
    """Two releases, and what is known of the later one."""

    target: str
    old: str
    new: str
    said: str
    right: tuple[str, ...]


_NOTHING = "nothing about compaction"
_LANGCHAIN = "history is no longer replaced by the error's text when the summary fails (langchain 39268)"
_STRANDS = "an empty summary after a call of the offered tool no longer becomes the state (strands 1947)"
PAIRS = (
    Pair("langchain", "1.3.14", "1.3.15", _LANGCHAIN, BETTER),
    Pair("langchain", "1.3.13", "1.3.14", _NOTHING, CALM),
    Pair("langchain", "1.3.16", "1.3.17", _NOTHING, CALM),
    Pair("langchain", "1.4.9", "1.4.10", _NOTHING, CALM),
    Pair("strands", "1.32.0", "1.33.0", _STRANDS, BETTER),
    Pair("strands", "1.34.0", "1.34.1", _NOTHING, CALM),
    Pair("strands", "1.61.0", "1.61.1", _NOTHING, CALM),
    Pair("aider", "0.86.1", "0.86.2", _NOTHING, CALM),
    Pair("inspect_ai", "0.3.284", "0.3.285", _NOTHING, CALM),
    Pair("headroom", "0.39.0", "0.39.1", _NOTHING, CALM),
    Pair("hermes", "0.18.1", "0.18.2", _NOTHING, CALM),
)


def measured(pair: Pair, folder: Path) -> dict[str, str]:
    """Return what the pair came to, from the folder where it is there."""
    name = f"{pair.target}-{pair.old}-{pair.new}"
    kept = folder / f"{name}.json"
    if kept.exists():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    words = ["releases", pair.target, pair.old, pair.new, "--fixtures", FIXTURES, "--set", "compress_runs=3"]
    words += ["--runs", "1", "--results", str(folder / "results"), "--label", name]
    began = time.monotonic()
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            root.main(args=words, standalone_mode=False)
        sides = [read_measurement(folder / "results" / f"{name}-{pair.target}-{each}") for each in (pair.old, pair.new)]
        verdict, _ = compare_measurements(sides[0], sides[1])
        found = {"kind": str(verdict.kind), "headline": verdict.headline}
    except UserError as exc:
        found = {"kind": "not_measured", "headline": str(exc)}
    same = "is the same." in said.getvalue()
    found |= {"code": "same" if same else "changed", "seconds": f"{time.monotonic() - began:.0f}"}
    kept.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


def line(pair: Pair, found: dict[str, str]) -> str:
    """Return the pair's line of the table."""
    right = "right" if found["kind"] in pair.right else "not measured" if found["kind"] == "not_measured" else "wrong"
    headline = found["headline"].replace("|", "/")
    return (
        f"| {pair.target} | {pair.old} → {pair.new} | {pair.said} | {found['code']} | {headline} | {right} "
        f"| {found['seconds']} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="comma-separated targets")
    parser.add_argument("--write", action="store_true", help="put the table into docs/releases.md")
    options = parser.parse_args()
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    wanted = options.only.split(",") if options.only else [pair.target for pair in PAIRS]
    lines = [
        "| agent | releases | what was said of the later one | compaction code | our verdict | | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for pair in PAIRS:
        if pair.target in wanted:
            lines.append(line(pair, measured(pair, folder)))
            print(lines[-1], flush=True)
    if options.write:
        before, found, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        _, ended, after = rest.partition(END)
        if not found or not ended:
            sys.exit(f"{PAGE.name}: the marks of the table are missing: {BEGIN} ... {END}")
        PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
