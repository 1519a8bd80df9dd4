"""Damage two compressors on purpose and see what is caught, by which strand of evidence.

    python bench/mutants.py [--seeds 20] [--only NAME]

Every mutant is a compressor's own source with one edit, imported and run for real over the shipped fixtures, offline:
the reference, with a summariser that forgets each line with a small chance, and a compressor in the manner of Hermes',
with a stand-in for its model that follows the template, forgets lines and leaves headings out. Both differ from run to
run. The baseline is the unmutated compressor.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import random
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from eval_core.base.tokens import count_messages
from eval_core.comparing.compare import compare_measurements
from eval_core.comparing.findings import Kind, StrandState, Verdict
from eval_core.comparing.verdict import Options
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
OMITS = 0.04
GRADED, COMPRESSIONS = 1, 10
_TELLING = re.compile(
    r"https?://\S+|#\d{2,6}\b|\b[0-9a-f]{7,40}\b|(?:[\w.-]+/)+[\w.-]+|\b\w+_\w+\b|\d{2,}|\w+\.\w{2,4}\b"
)


Sort = Literal["damaging", "structural", "form only", "inventing", "size only", "harmless"]
"""damaging: facts go; structural: no fact goes, yet the state is broken; size only: bought with tokens."""


@dataclass(frozen=True)
class Mutant:
    """One edit of a compressor's source, and the strand that should catch it."""

    name: str
    sort: Sort
    strand: str
    compressor: str
    file: str = ""
    old: str = ""
    new: str = ""


FLAT = 'flat = " ".join(text.split())'
RETURN = "return [*messages[:head], summary, *messages[tail:]]"
END = 'return [*head, {"role": "user", "content": f"{PREFACE}\\n\\n{summary}"}, *tail]'
OURS, HERMES = "reference", "hermes-like"


def _ours(name: str, sort: Sort, strand: str, file: str, old: str, new: str) -> Mutant:
    return Mutant(name, sort, strand, OURS, file, old, new)


def _hermes(name: str, sort: Sort, strand: str, old: str, new: str) -> Mutant:
    return Mutant(name, sort, strand, HERMES, "hermes_like.py", old, new)


MUTANTS = [
    _ours("section 'files modified' removed", "damaging", "form", "context_compressor.py",
          'Section("files_modified"', "LINE"),
    _ours("section 'decisions made' removed", "damaging", "form", "context_compressor.py",
          'Section("decisions_made"', "LINE"),
    _ours("section 'current state' removed", "damaging", "form", "context_compressor.py",
          'Section("current_state"', "LINE"),
    _ours("section 'blockers' removed", "damaging", "form", "context_compressor.py", 'Section("blockers"', "LINE"),
    _ours("section 'next steps' removed", "form only", "form", "context_compressor.py", 'Section("next_steps"', "LINE"),
    _ours("section 'session intent' removed", "damaging", "form", "context_compressor.py",
          'Section("session_intent"', "LINE"),
    _ours("decisions come out empty", "form only", "form", "summary.py",
          "return [f\"- {line}\" for line in getattr(self, name)]",
          "return [] if name == \"decisions_made\" else [f\"- {line}\" for line in getattr(self, name)]"),
    _ours("paths shortened to basenames", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"(?:[\\w.-]+/)+(?=[\\w.-])", "", flat)'),
    _ours("tail shrunk to one message", "damaging", "window", "window.py",
          "preserve_recent: int = 5", "preserve_recent: int = 1"),
    _ours("merge replaced by regenerate", "damaging", "facts", "summary.py",
          "        files = {path: list(changes)", "        return newer\n        files = {path: list(changes)"),
    _ours("decisions truncated", "damaging", "facts", "rule_based.py",
          '"decisions_made", _flat(sentence), 30', '"decisions_made", _flat(sentence, 30), 30'),
    _ours("numbers rounded", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"\\d{3,}", lambda m: m[0][0] + "0" * (len(m[0]) - 1), flat)'),
    _ours("errors dropped", "damaging", "facts", "rule_based.py", "    subject, keys = _subject(call)",
          "    if call.failed:\n        return\n    subject, keys = _subject(call)"),
    _ours("early constraints dropped", "damaging", "facts", "rule_based.py", "    return AnchoredSummary.of(sections",
          '    sections["session_intent"] = sections["session_intent"][-1:]\n    return AnchoredSummary.of(sections'),
    _ours("stale state wins a merge", "damaging", "facts", "summary.py",
          "current_state=newer.current_state or self.current_state",
          "current_state=self.current_state or newer.current_state"),
    _ours("room for the summary cut to a third", "damaging", "facts", "context_compressor.py",
          "_summary_share: ClassVar[float] = 0.28", "_summary_share: ClassVar[float] = 0.09"),
    _ours("tool outputs ignored", "damaging", "facts", "rule_based.py", "    ranked: list[tuple[float, int, str]] = []",
          "    return []\n    ranked: list[tuple[float, int, str]] = []"),
    _ours("hashes cut to six digits", "damaging", "facts", "rule_based.py", FLAT,
          FLAT + '\n    flat = re.sub(r"\\b([0-9a-f]{6})[0-9a-f]{1,34}\\b", r"\\1", flat)'),
    _ours("user's words left out", "damaging", "facts", "rule_based.py", '    if role == "user":\n        limit',
          '    if role == "nobody":\n        limit'),
    _ours("paths invented", "inventing", "facts", "rule_based.py", "    return AnchoredSummary.of(sections",
          '    sections["current_state"].append("Also see src/core/telemetry/flux_gateway.py")\n'
          "    return AnchoredSummary.of(sections"),
    _ours("links invented", "inventing", "facts", "rule_based.py", "    return AnchoredSummary.of(sections",
          '    sections["current_state"].append("Tracked in https://tracker.example.org/browse/OPS-99817")\n'
          "    return AnchoredSummary.of(sections"),
    _ours("kept messages in reverse order", "structural", "structure", "context_compressor.py", RETURN,
          "return [*messages[:head], summary, *reversed(messages[tail:])]"),
    _ours("the active task dropped", "structural", "structure", "context_compressor.py", RETURN,
          'kept = [m for m in messages[tail:] if m.get("role") != "user"]\n'
          '        last = next((m["content"] for m in reversed(messages) if m.get("role") == "user"), "")\n'
          '        summary["content"] = summary["content"].replace(" ".join(str(last).split()), "")\n'
          "        return [*messages[:head], summary, *kept]"),
    _ours("an instruction inserted", "structural", "structure", "context_compressor.py",
          '{SUMMARY_MARK}\\n\\n{self._summary}',
          '{SUMMARY_MARK}\\n\\nResume exactly where you left off; do not ask anything.\\n\\n{self._summary}'),
    _ours("a role no provider knows", "structural", "structure", "context_compressor.py",
          'summary = {"role": "user"', 'summary = {"role": "summary"'),
    _ours("the system prompt dropped", "structural", "structure", "context_compressor.py", RETURN,
          "return [summary, *messages[tail:]]"),
    _ours("a kept message duplicated", "structural", "structure", "context_compressor.py", RETURN,
          "return [*messages[:head], summary, *messages[tail:], messages[-1]]"),
    _ours("raises on long sessions", "damaging", "outcome", "context_compressor.py",
          "        middle = list(messages[head:tail])\n",
          "        middle = list(messages[head:tail])\n        if len(middle) > 40:\n            raise ValueError\n"),
    _ours("keeps thirty messages verbatim", "size only", "size", "window.py",
          "preserve_recent: int = 5", "preserve_recent: int = 30"),
    _ours("hoards: the newest half stays", "size only", "size", "context_compressor.py",
          "tail = max(tail_start(messages, self.thresholds.preserve_recent), head)",
          "tail = max(tail_start(messages, len(messages) // 2), head)"),
    _ours("smaller and equal: two blank lines less", "harmless", "-", "summary.py",
          'return "\\n\\n".join(blocks)', 'return "\\n".join(blocks)'),
    _hermes("tool outputs pruned to 400 characters", "damaging", "shown", "OUTPUT_LIMIT = 4_000", "OUTPUT_LIMIT = 400"),
    _hermes("call arguments pruned to 80 characters", "damaging", "shown", "ARGUMENT_LIMIT = 2_000",
            "ARGUMENT_LIMIT = 80"),
    _hermes("the first half never shown", "damaging", "shown", "{serialise(middle)}",
            "{serialise(middle[len(middle) // 2 :])}"),
    _hermes("tool results not shown", "damaging", "shown", "    for message in messages:\n        text",
            '    for message in messages:\n        if message.get("role") == "tool":\n'
            "            continue\n        text"),
    _hermes("section 'relevant files' removed", "damaging", "form", '("Relevant Files"', "LINE"),
    _hermes("section 'errors' removed", "damaging", "form", '("Errors"', "LINE"),
    _hermes("section 'critical context' removed", "damaging", "form", '("Critical Context"', "LINE"),
    _hermes("tail of two", "damaging", "window", "PROTECT_LAST = 6", "PROTECT_LAST = 1"),
    _hermes("room cut to a third", "damaging", "facts", "SUMMARY_CHARS = 9_000", "SUMMARY_CHARS = 3_000"),
    _hermes("previous summary forgotten", "damaging", "facts", '        prompt += f"TURNS:\\n{serialise(middle)}"',
            '        prompt = prompt.partition("PREVIOUS SUMMARY")[0]\n'
            "        middle = [m for m in middle if PREFACE not in str(m.get('content'))]\n"
            '        prompt += f"TURNS:\\n{serialise(middle)}"'),
    _hermes("tool messages of the tail shortened", "structural", "structure", END,
            'tail = [{**m, "content": str(m.get("content"))[:40]} if m.get("role") == "tool" else m for m in tail]\n'
            "        " + END),
    _hermes("summary after the tail", "structural", "structure", END,
            'return [*head, *tail, {"role": "user", "content": f"{PREFACE}\\n\\n{summary}"}]'),
    _hermes("the model refuses", "damaging", "form", "        self._previous = summary\n",
            '        summary = "I cannot help with that."\n        self._previous = summary\n'),
    _hermes("addresses invented", "inventing", "facts", "        self._previous = summary\n",
            '        summary += "\\nSee https://wiki.example.net/runbooks/77123-fallback"\n'
            "        self._previous = summary\n"),
    Mutant("unmutated", "harmless", "-", OURS),
    _ours("guidance reworded", "harmless", "-", "context_compressor.py",
          "each decision with its reason, and what it replaced", "what was decided, why, and instead of what"),
    _ours("a variable renamed", "harmless", "-", "context_compressor.py",
          "max_chars=self._room(middle, total)", "max_chars=(room := self._room(middle, total))"),
    _ours("sections reordered", "harmless", "-", "context_compressor.py", "_template_sections: ClassVar", "REORDER"),
    _ours("a comment added", "harmless", "-", "rule_based.py", "        room = max_chars",
          "        # fill the room\n        room = max_chars"),
    _ours("a title renamed", "harmless", "-", "context_compressor.py", '"Next Steps"', '"What Comes Next"'),
    Mutant("unmutated, with a model", "harmless", "-", HERMES),
    _hermes("preface reworded", "harmless", "-", "Use it as background.", "Treat it as background."),
    _hermes("wording of the request", "harmless", "-", "Summarise the turns below.", "Summarise these turns."),
    _hermes("a new section", "harmless", "-", '    ("Key Decisions"',
            '    ("Open Questions", "what nobody answered"),\n    ("Key Decisions"'),
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


class StandIn:
    """A model that follows a template: under each heading asked for it copies telling lines of what it was shown.

    Each heading takes the lines that suit its guidance least badly, in turn, until the room is used up. Lines are
    forgotten, and headings left out, with a small chance.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.requests: list[tuple[dict[str, Any], ...]] = []

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        self.requests.append(tuple(messages))
        prompt = str(messages[-1]["content"])
        asked, _, shown = prompt.partition("TURNS:\n")
        titles = [line[3:] for line in asked.partition("PREVIOUS SUMMARY")[0].splitlines() if line.startswith("## ")]
        room = int(re.search(r"At most (\d+)", prompt)[1])  # type: ignore[index]
        older = asked.partition("PREVIOUS SUMMARY:\n")[2]
        source = [line for line in older.splitlines() if line.startswith("- ")] + shown.replace(
            "\\n", "\n"
        ).splitlines()
        lines = {line.removeprefix("- ").strip()[:240] for line in source}
        ranked = sorted(lines, key=lambda line: (-len(_TELLING.findall(line)) * 40 / (len(line) + 40), line))
        chosen: list[str] = []
        for line in ranked:
            if len(line) > 8 and room - len(line) > 0 and self._random.random() > FORGETS:
                chosen.append(line)
                room -= len(line) + 3
        parts: dict[str, list[str]] = {title: [] for title in titles}
        for line in chosen:
            parts[titles[sum(map(ord, line)) % len(titles)]].append(line)
        written = [title for title in titles if self._random.random() > OMITS]
        return "\n\n".join(f"## {title}\n" + "\n".join(f"- {line}" for line in parts[title]) for title in written)


@dataclass(frozen=True)
class MutantSubject:
    """A mutated compressor as a subject."""

    package: str
    name: str
    compressor: str

    async def compress(self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None) -> Compression:
        model = StandIn(f"{self.name}/{fixture.name}/{seed}")
        if self.compressor == HERMES:
            instance = importlib.import_module(f"{self.package}.hermes_like").HermesLike(model)
        else:
            compressor = importlib.import_module(f"{self.package}.context_compressor")
            rules = importlib.import_module(f"{self.package}.rule_based")
            forgetful = Forgetful(rules.RuleBasedSummariser(), f"{self.name}/{fixture.name}/{seed}")
            instance = compressor.ContextCompressor(summariser=forgetful)
        state: list[dict[str, Any]] = []
        steps, start = [], 0
        for cut in fixture.cuts:
            state = [*state, *fixture.messages[start:cut]]
            before = count_messages(state)
            try:
                state = instance.compress(state)
            except ValueError as exc:
                return Compression(Outcome.TARGET_ERROR, repr(exc))
            steps.append(Step(state, before, count_messages(state), 0.0))
            start = cut
        return Compression(Outcome.OK, steps=tuple(steps), requests=tuple(model.requests))


def measure(mutant: Mutant, label: str, seed: int, runs: int, compressions: int) -> Measurement:
    """Measure one mutant over all fixtures."""
    with tempfile.TemporaryDirectory() as name:
        package = f"mutant_{abs(hash((mutant.name, label, seed, mutant.compressor)))}"
        folder = Path(name) / package
        shutil.copytree(ROOT / "eval_core" / "compressors", folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "bench" / "hermes_like.py", folder)
        edit(mutant, folder)
        sys.path.insert(0, name)
        importlib.invalidate_caches()
        try:
            session = MeasuringSession(
                cases=load_suite(ROOT / "fixtures", ROOT / "probes"),
                roles=Roles(
                    MutantSubject(package, label, mutant.compressor), ExtractiveAnswerer(), FactJudge(), offline=True
                ),
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


def speaking(verdict: Verdict) -> list[str]:
    """Name the strands that say worse, or that the size is another."""
    worse = (StrandState.WORSE, StrandState.BOTH)
    return [
        item.name
        for item in verdict.strands
        if item.state in worse or (item.name == "size" and item.state is StrandState.CHANGED)
    ]


_BASES: dict[str, Measurement] = {}


def _baseline(compressor: str) -> Measurement:
    if compressor not in _BASES:
        unmutated = Mutant("unmutated", "harmless", "-", compressor)
        _BASES[compressor] = measure(unmutated, "base", 1_000_000, GRADED, COMPRESSIONS)
    return _BASES[compressor]


def judge(mutant: Mutant, seed: int) -> tuple[Mutant, int, Kind, list[str], str]:
    """Measure a mutant and compare it with the baseline."""
    base = _baseline(mutant.compressor)
    candidate = measure(mutant, f"{mutant.name}-{seed}", seed * 1000, GRADED, COMPRESSIONS)
    verdict, _ = compare_measurements(base, candidate, options=Options(arrangements=4000))
    return mutant, seed, verdict.kind, speaking(verdict), verdict.headline


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
    parser.add_argument("--headlines", action="store_true", help="print the sentence of each verdict too")
    options = parser.parse_args()
    began = time.perf_counter()
    work = list(jobs(options.seeds, options.only))
    rows: dict[str, list[tuple[Kind, list[str]]]] = {}
    with ProcessPoolExecutor(2) as pool:
        for mutant, seed, kind, found, text in pool.map(judge, *zip(*work, strict=True)):
            rows.setdefault(mutant.name, []).append((kind, found))
            if options.headlines:
                print(f"{mutant.name} [{seed}] {found}: {text}", flush=True)
    harmed = (Kind.BROKEN, Kind.REGRESSED, Kind.MIXED, Kind.TRADE)
    alarms = (*harmed, Kind.IMPROVED)
    print("| Compressor | Edit | | Verdict | Should be caught by | Strands that spoke |\n|---|---|---|---|---|---|")
    damaging = [mutant for mutant in MUTANTS if mutant.sort != "harmless" and mutant.name in rows]
    flagged = total = 0
    for mutant in MUTANTS:
        if mutant.name not in rows:
            continue
        found = rows[mutant.name]
        if mutant.sort == "harmless":
            loud = [item for item in found if item[0] in alarms]
            flagged, total = flagged + len(loud), total + len(found)
            said = f"flagged {len(loud)} of {len(found)} seeds"
            names = ", ".join(sorted({name for item in loud for name in item[1]})) or "-"
        else:
            said, names = found[0][0].words.lower(), ", ".join(found[0][1]) or "-"
        print(f"| {mutant.compressor} | {mutant.name} | {mutant.sort} | {said} | {mutant.strand} | {names} |")
    kinds = [rows[mutant.name][0][0] for mutant in damaging]
    named = sum(mutant.strand in rows[mutant.name][0][1] for mutant in damaging)
    print(
        f"\nCaught {sum(kind in harmed for kind in kinds)} of {len(kinds)} damaging edits, "
        f"{named} by the strand named beforehand; improved {kinds.count(Kind.IMPROVED)}, "
        f"mixed {kinds.count(Kind.MIXED)}. "
        f"Harmless edits flagged: {flagged} of {total}. {time.perf_counter() - began:.0f} s."
    )


if __name__ == "__main__":
    main()
