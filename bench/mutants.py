"""Damage three compressors on purpose and see what is caught, by which strand of evidence.

    python bench/mutants.py [--sets settled,held-out,later] [--seeds 3] [--only NAME] [--keep FOLDER] [--write PAGE]

Every mutant is a compressor's own source with one edit, run for real over the shipped fixtures, offline: the reference,
one in the manner of Hermes', and one in JavaScript. Their summarisers forget lines, so that every run differs. The
baseline is the unmutated compressor. `--keep` stores what was measured, so that only what changed is measured again.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutant_edits import HELD_OUT, LATER, MUTANTS, Mutant
from mutant_subjects import MutantSubject

from eval_core.comparing.compare import compare_measurements
from eval_core.comparing.tested import Options
from eval_core.domain.case import Case, load_suite
from eval_core.domain.fingerprint import INSTRUMENT_VERSION
from eval_core.domain.measurement import Controls, Measurement
from eval_core.facts.session_facts import SessionFacts
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import MeasuringSession
from eval_core.measuring.wiring import Roles
from eval_core.storage.results import ResultsFolder
from eval_core.strands.findings import Kind, StrandState, Verdict

ROOT = Path(__file__).resolve().parent.parent
GRADED, COMPRESSIONS = 1, 10
BASE_SEED = 1_000_000
SETS = {"settled": MUTANTS, "held-out": HELD_OUT, "later": LATER}
HARMED = (Kind.BROKEN, Kind.REGRESSED, Kind.MIXED, Kind.TRADE)
MARKERS = "<!-- measured by bench/mutants.py -->", "<!-- end of measurement -->"


@dataclass(frozen=True)
class Task:
    """One mutant to be measured with one seed."""

    mutant: Mutant
    seed: int
    keep: Path | None
    measured_only: bool = False


class NotMeasuredError(Exception):
    """Nothing is kept of this mutant, and nothing was to be measured."""


@dataclass(frozen=True)
class Finding:
    """What was said about one mutant."""

    mutant: Mutant
    seed: int
    kind: Kind
    strands: tuple[str, ...]
    headline: str

    @property
    def caught(self) -> bool:
        """Whether it was called anything but good or unchanged."""
        return self.kind in HARMED

    @property
    def flagged(self) -> bool:
        """Whether anything was said to have changed."""
        return self.kind in (*HARMED, Kind.IMPROVED)


def _digest(folder: Path) -> str:
    found = hashlib.sha256(str(INSTRUMENT_VERSION).encode())
    # By name, not by path: what was measured in one clone is found again from another.
    for path in (ROOT / "bench" / "mutant_subjects.py", *sorted(folder.iterdir(), key=lambda path: path.name)):
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()[:16]


# What follows from the suite alone is read once in each process, not for each mutant again.
_CONTROLS: dict[str, Controls] = {}
_FACTS: dict[str, SessionFacts] = {}


@cache
def _suite() -> Sequence[Case]:
    return load_suite(ROOT / "fixtures", ROOT / "probes")


def measure(
    mutant: Mutant, label: str, seed: int, keep: Path | None = None, *, measured_only: bool = False
) -> Measurement:
    """Measure one mutant over all fixtures, or read what was measured of the same source before."""
    with tempfile.TemporaryDirectory() as name:
        package = f"mutant_{abs(hash((mutant.name, label, seed, mutant.compressor)))}"
        folder = Path(name) / package
        shutil.copytree(ROOT / "eval_core" / "compressors", folder, ignore=shutil.ignore_patterns("__pycache__"))
        for source in ("hermes_like.py", "compaction.mjs"):
            shutil.copy(ROOT / "bench" / source, folder)
        mutant.apply(folder)
        stored = keep / f"{re.sub(r'[^a-z0-9]+', '-', label)}-{seed}-{_digest(folder)}.json" if keep else None
        if stored is not None and stored.exists():
            return Measurement.model_validate_json(stored.read_bytes())
        if measured_only:
            raise NotMeasuredError(label)
        sys.path.insert(0, name)
        importlib.invalidate_caches()
        try:
            session = MeasuringSession(
                cases=_suite(),
                roles=Roles(
                    MutantSubject(folder, label, mutant.compressor), ExtractiveAnswerer(), FactJudge(), offline=True
                ),
                fingerprint=make_fingerprint(_suite(), None),
                folder=ResultsFolder(Path(name) / "results"),
                label=label,
                runs=GRADED,
                compress_runs=COMPRESSIONS,
                seed=seed,
                concurrency=1,
                known_controls=_CONTROLS,
                facts=_FACTS,
            )
            measurement = asyncio.run(session.measure())
            _CONTROLS.update(measurement.controls)
        finally:
            sys.path.remove(name)
            for module in [module for module in sys.modules if module.startswith(package)]:
                del sys.modules[module]
    if stored is not None:
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(measurement.model_dump_json(), encoding="utf-8")
    return measurement


def speaking(verdict: Verdict) -> tuple[str, ...]:
    """Name the strands that say worse, or that the size is another."""
    worse = (StrandState.WORSE, StrandState.BOTH)
    return tuple(
        item.name
        for item in verdict.strands
        if item.state in worse or (item.name == "size" and item.state is StrandState.CHANGED)
    )


_BASES: dict[str, Measurement] = {}


def judge(task: Task) -> Finding | None:
    """Measure a mutant and compare it with the baseline of its compressor; None where it is not to be measured."""
    mutant = task.mutant
    if mutant.compressor not in _BASES:
        unmutated = Mutant("unmutated", "harmless", "-", mutant.compressor)
        _BASES[mutant.compressor] = measure(unmutated, f"base of {mutant.compressor}", BASE_SEED, task.keep)
    label = f"{mutant.compressor} {mutant.name} {task.seed}"
    try:
        candidate = measure(mutant, label, task.seed * 1000, task.keep, measured_only=task.measured_only)
    except NotMeasuredError:
        return None
    verdict, _ = compare_measurements(_BASES[mutant.compressor], candidate, options=Options(arrangements=4000))
    return Finding(mutant, task.seed, verdict.kind, speaking(verdict), verdict.headline)


def tasks(
    mutants: Sequence[Mutant], seeds: int, only: str, keep: Path | None, *, measured_only: bool
) -> Iterator[Task]:
    """List what is to be measured: harmful mutants once, harmless ones once for each seed."""
    for mutant in mutants:
        if only in f"{mutant.compressor} {mutant.name}":
            times = seeds if mutant.harmless else 1
            yield from (Task(mutant, seed, keep, measured_only) for seed in range(1, times + 1))


def table(findings: Sequence[Finding]) -> str:
    """Return one row for each mutant."""
    rows = [
        "| compressor | edit | sort | verdict | strand expected | strands that changed |",
        "|---|---|---|---|---|---|",
    ]
    for mutant in dict.fromkeys(item.mutant for item in findings):
        found = [item for item in findings if item.mutant == mutant]
        if mutant.harmless:
            loud = [item for item in found if item.flagged]
            said = f"flagged {len(loud)} of {len(found)} times"
            spoke = sorted({name for item in loud for name in item.strands})
        else:
            said, spoke = found[0].kind.words.lower(), list(found[0].strands)
        cells = (mutant.compressor, mutant.name, mutant.sort, said, mutant.strand, ", ".join(spoke) or "-")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def summary(name: str, findings: Sequence[Finding]) -> str:
    """Return the counts of one set in a sentence."""
    harmful = [item for item in findings if not item.mutant.harmless]
    calm = [item for item in findings if item.mutant.harmless]
    kinds = [item.kind for item in harmful]
    return (
        f"{name}: caught {sum(item.caught for item in harmful)} of {len(harmful)} harmful edits, "
        f"{sum(item.mutant.strand in item.strands for item in harmful)} by the strand expected; "
        f"called improved {kinds.count(Kind.IMPROVED)}, mixed {kinds.count(Kind.MIXED)}, trade "
        f"{kinds.count(Kind.TRADE)}; harmless edits flagged {sum(item.flagged for item in calm)} of {len(calm)} times."
    )


def not_measured(mutants: set[Mutant]) -> str:
    """Name the edits that are in the list and have no row."""
    names = sorted(f"{mutant.compressor}: {mutant.name}" for mutant in mutants)
    return f" Not measured: {'; '.join(names)}." if names else ""


def write_page(page: Path, text: str) -> None:
    """Put the measurement between the two markers of a page."""
    old = page.read_text(encoding="utf-8")
    before, _, rest = old.partition(MARKERS[0])
    _, found, after = rest.partition(MARKERS[1])
    if not found:
        raise SystemExit(f"{page}: no lines {MARKERS[0]!r} and {MARKERS[1]!r}; the table goes between them")
    page.write_text(f"{before}{MARKERS[0]}\n\n{text}\n\n{MARKERS[1]}{after}", encoding="utf-8")


def main() -> None:
    """Measure the mutants, print progress to stderr and the tables to stdout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="times that each harmless edit is measured")
    parser.add_argument("--workers", type=int, default=2, help="processes that measure")
    parser.add_argument("--only", default="", help="mutants whose compressor and name hold this")
    parser.add_argument("--sets", default=",".join(SETS), help="settled, held-out, later, or several with commas")
    parser.add_argument("--headlines", action="store_true", help="print the sentence of each verdict too")
    parser.add_argument("--keep", type=Path, help="folder for what was measured")
    parser.add_argument("--measured-only", action="store_true", help="judge again what is kept, and measure nothing")
    parser.add_argument("--write", type=Path, help="page that the tables are written into")
    options = parser.parse_args()
    parts, every = [], list[Finding]()
    for name in options.sets.split(","):
        began = time.perf_counter()
        work = list(tasks(SETS[name], options.seeds, options.only, options.keep, measured_only=options.measured_only))
        findings: list[Finding] = []
        with ProcessPoolExecutor(options.workers) as pool:
            for found in pool.map(judge, work):
                if found is None:
                    continue
                findings.append(found)
                told = f": {found.headline}" if options.headlines else f": {found.kind.words.lower()}"
                at = f"[{len(findings)}/{len(work)}] {found.mutant.compressor}, {found.mutant.name}"
                print(f"{at} {list(found.strands)}{told}", file=sys.stderr, flush=True)
        every += findings
        if findings:
            unmeasured = {task.mutant for task in work} - {item.mutant for item in findings}
            parts.append(f"{summary(name, findings)}{not_measured(unmeasured)}\n\n{table(findings)}")
            print(f"{parts[-1]}\n\n{time.perf_counter() - began:.0f} s", flush=True)
    together = summary("together", every)
    print(together)
    if options.write is not None:
        write_page(options.write, "\n\n".join([together, *parts]))


if __name__ == "__main__":
    main()
