"""Damage the reference compressor on purpose and see what is caught, by which signal.

    python bench/mutants.py [--seeds 20] [--only NAME]

Every mutant is the compressor's own source with one edit, imported and run for real over the shipped fixtures, offline.
A summariser that forgets each line with a small chance, differently in every run, gives the runs their noise.
The baseline is the unmutated compressor. Nothing here is simulated.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.base.tokens import count_messages
from eval_core.comparing.arms import make_arm, quarantined
from eval_core.comparing.findings import Culprit, Kind, Verdict
from eval_core.comparing.verdict import Options, decide
from eval_core.domain.case import load_suite
from eval_core.domain.compression import Compression, Outcome, Step
from eval_core.domain.fixture import Fixture
from eval_core.domain.measurement import Measurement
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.session import MeasuringSession
from eval_core.measuring.wiring import Roles
from eval_core.storage.results import ResultsFolder

ROOT = Path(__file__).resolve().parent.parent
FORGETS = 0.06
BASE_RUNS, GRADED, COMPRESSIONS = 10, 3, 10


@dataclass(frozen=True)
class Mutant:
    """One edit of the compressor's source."""

    name: str
    sort: str
    """damaging: facts go; structural: no fact goes, yet the state is broken; harmless: nothing should be said."""
    file: str = ""
    old: str = ""
    new: str = ""


FLAT = 'flat = " ".join(text.split())'
RETURN = "return [*messages[:head], summary, *messages[tail:]]"
MUTANTS = [
    Mutant("section 'files modified' removed", "damaging", "context_compressor.py", 'Section("files_modified"', "LINE"),
    Mutant("section 'decisions made' removed", "damaging", "context_compressor.py", 'Section("decisions_made"', "LINE"),
    Mutant("section 'current state' removed", "damaging", "context_compressor.py", 'Section("current_state"', "LINE"),
    Mutant("section 'blockers' removed", "damaging", "context_compressor.py", 'Section("blockers"', "LINE"),
    Mutant("paths shortened to basenames", "damaging", "rule_based.py", FLAT,
           FLAT + '\n    flat = re.sub(r"(?:[\\w.-]+/)+(?=[\\w.-])", "", flat)'),
    Mutant("tail shrunk to one message", "damaging", "window.py",
           "preserve_recent: int = 5", "preserve_recent: int = 1"),
    Mutant("merge replaced by regenerate", "damaging", "summary.py",
           "        files = {path: list(changes)", "        return newer\n        files = {path: list(changes)"),
    Mutant("decisions truncated", "damaging", "rule_based.py",
           '"decisions_made", _flat(sentence), 30', '"decisions_made", _flat(sentence, 30), 30'),
    Mutant("numbers rounded", "damaging", "rule_based.py", FLAT,
           FLAT + '\n    flat = re.sub(r"\\d{3,}", lambda m: m[0][0] + "0" * (len(m[0]) - 1), flat)'),
    Mutant("errors dropped", "damaging", "rule_based.py", "    subject, keys = _subject(call)",
           "    if call.failed:\n        return\n    subject, keys = _subject(call)"),
    Mutant("early constraints dropped", "damaging", "rule_based.py", "    return AnchoredSummary.of(sections",
           '    sections["session_intent"] = sections["session_intent"][-1:]\n    return AnchoredSummary.of(sections'),
    Mutant("stale state wins a merge", "damaging", "summary.py",
           "current_state=newer.current_state or self.current_state",
           "current_state=self.current_state or newer.current_state"),
    Mutant("room for the summary cut to a third", "damaging", "context_compressor.py",
           "_summary_share: ClassVar[float] = 0.28", "_summary_share: ClassVar[float] = 0.09"),
    Mutant("tool outputs ignored", "damaging", "rule_based.py", "    ranked: list[tuple[float, int, str]] = []",
           "    return []\n    ranked: list[tuple[float, int, str]] = []"),
    Mutant("hashes cut to six digits", "damaging", "rule_based.py", FLAT,
           FLAT + '\n    flat = re.sub(r"\\b([0-9a-f]{6})[0-9a-f]{1,34}\\b", r"\\1", flat)'),
    Mutant("user's words left out", "damaging", "rule_based.py", '    if role == "user":\n        limit',
           '    if role == "nobody":\n        limit'),
    Mutant("kept messages in reverse order", "structural", "context_compressor.py", RETURN,
           "return [*messages[:head], summary, *reversed(messages[tail:])]"),
    Mutant("the active task dropped", "structural", "context_compressor.py", RETURN,
           'kept = [m for m in messages[tail:] if m.get("role") != "user"]\n'
           '        last = next((m["content"] for m in reversed(messages) if m.get("role") == "user"), "")\n'
           '        summary["content"] = summary["content"].replace(" ".join(str(last).split()), "")\n'
           "        return [*messages[:head], summary, *kept]"),
    Mutant("an instruction inserted", "structural", "context_compressor.py",
           '{SUMMARY_MARK}\\n\\n{self._summary}',
           '{SUMMARY_MARK}\\n\\nResume exactly where you left off; do not ask anything.\\n\\n{self._summary}'),
    Mutant("a role no provider knows", "structural", "context_compressor.py",
           'summary = {"role": "user"', 'summary = {"role": "summary"'),
    Mutant("the system prompt dropped", "structural", "context_compressor.py", RETURN,
           "return [summary, *messages[tail:]]"),
    Mutant("a kept message duplicated", "structural", "context_compressor.py", RETURN,
           "return [*messages[:head], summary, *messages[tail:], messages[-1]]"),
    Mutant("unmutated", "harmless"),
    Mutant("guidance reworded", "harmless", "context_compressor.py",
           "each decision with its reason, and what it replaced", "what was decided, why, and instead of what"),
    Mutant("a variable renamed", "harmless", "context_compressor.py",
           "max_chars=self._room(middle, total)", "max_chars=(room := self._room(middle, total))"),
    Mutant("sections reordered", "harmless", "context_compressor.py", "_template_sections: ClassVar", "REORDER"),
    Mutant("a comment added", "harmless", "rule_based.py", "        room = max_chars",
           "        # fill the room\n        room = max_chars"),
    Mutant("a title renamed", "harmless", "context_compressor.py", '"Next Steps"', '"What Comes Next"'),
]  # fmt: skip


def edit(mutant: Mutant, folder: Path) -> None:
    """Apply the edit; a mutant whose text is not found exactly once is a bug of this file."""
    if not mutant.file:
        return
    path = folder / mutant.file
    text = path.read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1, f"{mutant.name}: {mutant.old!r} stands {text.count(mutant.old)} times"
    if mutant.new == "LINE":
        text = "".join(line for line in text.splitlines(keepends=True) if mutant.old not in line)
    elif mutant.new == "REORDER":
        lines = text.splitlines(keepends=True)
        at = [number for number, line in enumerate(lines) if line.startswith("        Section(")]
        lines[at[0] : at[-1] + 1] = reversed(lines[at[0] : at[-1] + 1])
        text = "".join(lines)
    else:
        text = text.replace(mutant.old, mutant.new)
    path.write_text(text, encoding="utf-8")


class Forgetful:
    """A summariser that loses each line with a small chance."""

    def __init__(self, inner: Any, seed: str) -> None:
        self._inner, self._random = inner, random.Random(seed)

    def __call__(self, request: Any) -> str:
        lines = self._inner(request).splitlines()
        return "\n".join(line for line in lines if not line.startswith("- ") or self._random.random() > FORGETS)


@dataclass(frozen=True)
class MutantSubject:
    """A mutated compressor as a subject."""

    package: str
    name: str

    async def compress(self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None) -> Compression:
        compressor = importlib.import_module(f"{self.package}.context_compressor")
        rules = importlib.import_module(f"{self.package}.rule_based")
        forgetful = Forgetful(rules.RuleBasedSummariser(), f"{self.name}/{fixture.name}/{seed}")
        instance = compressor.ContextCompressor(summariser=forgetful)
        state: list[dict[str, Any]] = []
        steps, start = [], 0
        for cut in fixture.cuts:
            state = [*state, *fixture.messages[start:cut]]
            before = count_messages(state)
            state = instance.compress(state)
            steps.append(Step(state, before, count_messages(state), 0.0))
            start = cut
        return Compression(Outcome.OK, steps=tuple(steps))


def measure(mutant: Mutant, label: str, seed: int, runs: int, compressions: int) -> Measurement:
    """Measure one mutant over all fixtures."""
    with tempfile.TemporaryDirectory() as name:
        package = f"mutant_{abs(hash((mutant.name, label, seed)))}"
        folder = Path(name) / package
        shutil.copytree(ROOT / "eval_core" / "compressors", folder, ignore=shutil.ignore_patterns("__pycache__"))
        edit(mutant, folder)
        sys.path.insert(0, name)
        importlib.invalidate_caches()
        try:
            session = MeasuringSession(
                cases=load_suite(ROOT / "fixtures", ROOT / "probes"),
                roles=Roles(MutantSubject(package, label), ExtractiveAnswerer(), FactJudge(), offline=True),
                folder=ResultsFolder(Path(name) / "results"),
                label=label,
                runs=runs,
                compress_runs=compressions,
                seed=seed,
                concurrency=1,
            )
            return asyncio.run(session.measure())
        finally:
            sys.path.remove(name)
            for module in [module for module in sys.modules if module.startswith(package)]:
                del sys.modules[module]


def signals(verdict: Verdict) -> str:
    """Name the signals that speak, worst direction only."""
    by = {"probe": "scores", "dimension": "scores", "fact": "probe facts", "census": "census", "structure": "structure"}

    def of(culprit: Culprit) -> str:
        if culprit.kind == "retention":
            return "census" if culprit.name == "census" else "probe facts"
        return by[culprit.kind]

    order = ("probe facts", "census", "structure", "scores")
    found = {of(culprit) for culprit in verdict.culprits if culprit.direction == "worse"}
    return ", ".join(name for name in order if name in found) or "-"


_BASE: Measurement | None = None


def _baseline() -> Measurement:
    global _BASE
    if _BASE is None:
        _BASE = measure(Mutant("unmutated", "harmless"), "base", 1_000_000, BASE_RUNS, COMPRESSIONS)
    return _BASE


def judge(mutant: Mutant, seed: int) -> tuple[Mutant, int, Kind, str]:
    """Measure a mutant and compare it with the baseline."""
    base = _baseline()
    candidate = measure(mutant, f"{mutant.name}-{seed}", seed * 1000, GRADED, COMPRESSIONS)
    banned = quarantined(base, candidate)
    verdict = decide(make_arm(base, banned), make_arm(candidate, banned), options=Options(arrangements=4000))
    return mutant, seed, verdict.kind, signals(verdict)


def jobs(seeds: int, only: str | None) -> Iterator[tuple[Mutant, int]]:
    """List what is to be measured: damaging mutants once, harmless ones once for each seed."""
    for mutant in MUTANTS:
        if only is None or only in mutant.name:
            yield from ((mutant, seed) for seed in range(1, (seeds if mutant.sort == "harmless" else 1) + 1))


def main() -> None:
    """Measure all mutants and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="runs of each harmless edit")
    parser.add_argument("--only", help="mutants whose name holds this")
    options = parser.parse_args()
    began = time.perf_counter()
    work = list(jobs(options.seeds, options.only))
    rows: dict[str, list[tuple[Kind, str]]] = {}
    with ProcessPoolExecutor(2) as pool:
        for mutant, _, kind, found in pool.map(judge, *zip(*work, strict=True)):
            rows.setdefault(mutant.name, []).append((kind, found))
    caught = (Kind.REGRESSED, Kind.MIXED)
    alarms = (*caught, Kind.IMPROVED)
    print("| Edit | | Verdict | Signals |\n|---|---|---|---|")
    bad = {"damaging": 0, "structural": 0, "harmless": 0}
    for mutant in MUTANTS:
        if mutant.name not in rows:
            continue
        found = rows[mutant.name]
        if mutant.sort == "harmless":
            flagged = [item for item in found if item[0] in alarms]
            bad["harmless"] += len(flagged)
            names = ", ".join(sorted({item[1] for item in flagged})) or "-"
            print(f"| {mutant.name} | harmless | flagged {len(flagged)} of {len(found)} seeds | {names} |")
        else:
            kind, names = found[0]
            bad[mutant.sort] += kind not in caught
            print(f"| {mutant.name} | {mutant.sort} | {kind.words.lower()} | {names} |")
    total = sum(len(found) for found in rows.values())
    print(
        f"\nMissed: {bad['damaging']} damaging, {bad['structural']} structural. "
        f"Harmless edits flagged: {bad['harmless']}. {total} comparisons in {time.perf_counter() - began:.0f} s."
    )


if __name__ == "__main__":
    main()
