"""One fixture as it is shown: probes, runs, summaries, transcript, census and structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from eval_core.census.structure import STRUCTURE_CHECKS
from eval_core.compare.wording import counted, percent, score
from eval_core.measurement import Measurement
from eval_core.report.data import ReportData
from eval_core.report.html.census import CensusRow, census_rows
from eval_core.report.html.diff import DiffRow, diff_rows
from eval_core.report.html.paint import Needle, fact_spans, paint
from eval_core.report.html.probes import ProbeView, probe_view
from eval_core.report.html.text import clip, runs_words, slug, visible
from eval_core.report.html.transcript import Block, MessageView, message_views, strip
from eval_core.report.metrics import tokens_per_task
from eval_core.run.record import RunRecord

__all__ = ["FixtureView", "RunRow", "StructureRow", "SummaryView", "fixture_view"]

_LONGEST = 60_000
_MOST_LINES = 2_000


@dataclass(frozen=True)
class RunRow:
    """Runs of one side that came out alike."""

    side: str
    runs: str
    graded: bool
    outcome: str
    ok: bool
    detail: str
    notes: tuple[str, ...]
    tokens: str
    kept: str
    refetch: str
    seconds: str


@dataclass(frozen=True)
class StructureRow:
    """One check: how many runs pass it on each side."""

    check: str
    meaning: str
    base: str
    candidate: str
    passed: bool
    changed: str


@dataclass(frozen=True)
class SummaryView:
    """The texts that the compressors wrote."""

    rows: tuple[DiffRow, ...]
    two_sided: bool
    words: str


@dataclass(frozen=True)
class FixtureView:
    """Everything the page shows of a fixture."""

    name: str
    anchor: str
    description: str
    delta: float | None
    probes: tuple[ProbeView, ...]
    runs: tuple[RunRow, ...]
    failed: tuple[RunRow, ...]
    facts: tuple[tuple[str, int, str], ...]
    """Word, how many expected facts, class; of the candidate."""
    summary: SummaryView | None
    messages: tuple[MessageView, ...]
    strips: tuple[tuple[str, tuple[Block, ...]], ...]
    census: tuple[CensusRow, ...]
    worst: tuple[str, ...]
    structure: tuple[StructureRow, ...]
    net: str


def _sorted_runs(measurement: Measurement | None, fixture: str) -> list[RunRecord]:
    return sorted(measurement.fixtures.get(fixture, []), key=lambda run: run.run) if measurement else []


def _first_ok(runs: Sequence[RunRecord]) -> RunRecord | None:
    done = [run for run in runs if run.ok]
    return next((run for run in done if run.graded), done[0] if done else None)


def _run_rows(side: str, runs: Sequence[RunRecord]) -> list[RunRow]:
    groups: dict[tuple[object, ...], list[RunRecord]] = {}
    for run in runs:
        key = (run.graded, run.outcome, run.detail, *run.notes, run.tokens_before, run.tokens_after, run.refetch_tokens)
        groups.setdefault(key, []).append(run)
    rows = []
    for alike in groups.values():
        first, times = alike[0], [run.seconds for run in alike]
        ends = dict.fromkeys((score(min(times)), score(max(times))))
        rows.append(
            RunRow(
                side=side,
                runs=runs_words(run.run for run in alike),
                graded=first.graded,
                outcome=first.outcome.value.replace("_", " "),
                ok=first.ok,
                detail=clip(first.detail, 2_000),
                notes=tuple(clip(note, 500) for note in first.notes),
                tokens=f"{first.tokens_before:,} → {first.tokens_after:,}",
                kept=percent(first.tokens_after / first.tokens_before) if first.tokens_before else "unknown",
                refetch=f"{first.refetch_tokens:,}" if first.ok else "",
                seconds=f"{'–'.join(ends)} s",
            )
        )
    return rows


def _structure(base: Sequence[RunRecord], candidate: Sequence[RunRecord]) -> list[StructureRow]:
    def passed(runs: Sequence[RunRecord], check: str) -> list[bool]:
        return [run.structure[check] for run in runs if check in run.structure]

    rows = []
    for check in dict.fromkeys(name for run in (*candidate, *base) for name in run.structure):
        theirs, ours = passed(base, check), passed(candidate, check)
        changed = ""
        if theirs and ours and (all(ours) != all(theirs)):
            changed = "mended" if all(ours) else "broken" if not any(ours) else "shaky"
        rows.append(
            StructureRow(
                check=check.replace("_", " "),
                meaning=STRUCTURE_CHECKS.get(check, ""),
                base=f"{sum(theirs)} of {len(theirs)}" if theirs else "–",
                candidate=f"{sum(ours)} of {len(ours)}" if ours else "–",
                passed=bool(ours) and all(ours),
                changed=changed,
            )
        )
    return rows


def _summary(
    base: Sequence[RunRecord], candidate: Sequence[RunRecord], needles: Sequence[Needle]
) -> SummaryView | None:
    theirs, ours = _first_ok(base), _first_ok(candidate)
    shown = [run for run in (theirs, ours) if run is not None and run.summary]
    if not shown:
        return None

    def text(run: RunRecord | None) -> str:
        return "\n".join(visible(clip(run.summary, _LONGEST)).splitlines()[:_MOST_LINES]) if run else ""

    parts = []
    for side, run, runs in (("base", theirs, base), ("candidate", ours, candidate)):
        if run is not None:
            texts = len({other.summary for other in runs if other.ok})
            many = "the same in every run" if texts == 1 else f"{counted(texts, 'different text')} in all"
            parts.append(f"{side}: run {run.run + 1}, {many}")
    if theirs is not None and ours is not None:
        rows = diff_rows(text(theirs), text(ours), needles)
    else:
        lines = text(ours or theirs).splitlines()
        rows = [DiffRow("same", paint(line, fact_spans(line, needles)), paint("", [])) for line in lines]
    return SummaryView(tuple(rows), theirs is not None and ours is not None, "; ".join(parts))


def _fact_counts(probes: Sequence[ProbeView]) -> tuple[tuple[str, int, str], ...]:
    counts: dict[str, tuple[int, str]] = {}
    for probe in probes:
        for fact in probe.facts:
            state = fact.candidate
            counts[state.word] = (counts.get(state.word, (0, ""))[0] + 1, state.css)
    order = ("kept", "not used", "lost", "untested", "not measured")
    return tuple((word, *counts[word]) for word in order if word in counts)


def fixture_view(data: ReportData, name: str, index: int, *, compared: bool) -> FixtureView:
    """Collect what both sides say of one fixture."""
    base = _sorted_runs(data.base, name) if compared else []
    ours = _sorted_runs(data.candidate, name)
    case = data.cases.get(name)
    known = [probe.id for probe in case.bank.probes] if case else []
    stored = [probe for run in (*ours, *base) for probe in run.probes]
    names = dict.fromkeys([*known, *data.candidate.probe_types.get(name, {}), *stored])
    probes = [
        probe_view(data, name, probe, f"{index}.{number}", compared=compared) for number, probe in enumerate(names)
    ]
    needles = [needle for probe in probes for needle in probe.needles]
    evidence: dict[int, list[Needle]] = {}
    for probe in probes:
        for fact, needle in zip(probe.facts, probe.needles, strict=True):
            for number in fact.evidence:
                evidence.setdefault(number, []).append(needle)
    messages = message_views(case.fixture, _first_ok(ours), _first_ok(base), evidence) if case else []
    strips = (("base", tuple(strip(messages, "base"))), ("candidate", tuple(strip(messages, "candidate"))))
    deltas = [probe.delta for probe in probes if probe.delta is not None]
    rows = [*_run_rows("base", base), *_run_rows("candidate", ours)]
    saving = tokens_per_task(data.candidate, name)
    return FixtureView(
        name=name,
        anchor=slug("fixture", name),
        description=case.fixture.description if case else "",
        delta=fmean(deltas) if deltas else None,
        probes=tuple(probes),
        runs=tuple(rows),
        failed=tuple(row for row in rows if not row.ok),
        facts=_fact_counts(probes),
        summary=_summary(base, ours, needles),
        messages=tuple(messages),
        strips=tuple((side, blocks) for side, blocks in strips if blocks),
        census=tuple(census_rows({name: base}, {name: ours})),
        worst=next((tuple(run.census.worst) for run in ours if run.census.worst), ()),
        structure=tuple(_structure(base, ours)),
        net=f"{saving.net:,.0f}" if saving else "",
    )
