"""One fixture in the HTML report: probes, runs, summaries, transcript, census and structure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from markupsafe import Markup

from eval_core.base.messages import full_text
from eval_core.base.numbers import counted, percent, score
from eval_core.comparing.compare import ReportData
from eval_core.domain.fixture import Fixture
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.evidence.structure import STRUCTURE_CHECKS
from eval_core.reporting.html.probes import ProbeView, probe_view
from eval_core.reporting.html.text import DiffRow, Needle, clip, diff_rows, fact_spans, paint, runs_words, slug, visible
from eval_core.reporting.metrics import tokens_per_task

__all__ = [
    "TRACE",
    "CensusRow",
    "FixtureView",
    "MessageView",
    "RunRow",
    "StateWord",
    "StructureRow",
    "SummaryView",
    "TranscriptBlock",
    "census_rows",
    "fixture_view",
    "message_anchor",
    "message_views",
    "strip",
]

# Census losses by kind, of one fixture or of all together.

Runs = Mapping[str, Sequence[RunRecord]]


@dataclass(frozen=True)
class CensusRow:
    """One kind of census fact: how many there are, and how many a run loses."""

    kind: str
    total: int
    base: str
    candidate: str
    base_share: float | None
    candidate_share: float | None
    delta: float | None


def _words(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _measured(side: Runs, kind: str) -> dict[str, list[RunRecord]]:
    found = {name: [run for run in runs if run.ok and kind in run.census.total] for name, runs in side.items()}
    return {name: runs for name, runs in found.items() if runs}


def _lost(runs: Mapping[str, Sequence[RunRecord]], kind: str) -> float | None:
    means = [fmean(run.census.lost.get(kind, 0) for run in found) for found in runs.values()]
    return sum(means) if means else None


def census_rows(base: Runs, candidate: Runs) -> list[CensusRow]:
    """Return one row for each kind, the greatest new loss first; fixtures measured on one side only are left out."""
    kinds = sorted(
        {kind for side in (base, candidate) for runs in side.values() for run in runs for kind in run.census.total}
    )
    rows = []
    for kind in kinds:
        theirs, ours = _measured(base, kind), _measured(candidate, kind)
        if theirs and ours:
            both = theirs.keys() & ours.keys()
            theirs, ours = ({name: side[name] for name in side if name in both} for side in (theirs, ours))
        total = sum(max(run.census.total[kind] for run in runs) for runs in (ours or theirs).values())
        left, right = _lost(theirs, kind), _lost(ours, kind)
        rows.append(
            CensusRow(
                kind=kind,
                total=total,
                base=_words(left),
                candidate=_words(right),
                base_share=left / total if left is not None and total else None,
                candidate_share=right / total if right is not None and total else None,
                delta=None if left is None or right is None else right - left,
            )
        )
    return sorted(rows, key=lambda row: (-(row.delta or 0.0), -(row.candidate_share or 0.0), row.kind))


# The session with what became of each message: kept verbatim, summarised or dropped.

StateWord = Literal["verbatim", "summarised", "dropped"]
TRACE = 0.1
"""A message counts as summarised where at least this share of its own words stands in the text written for it."""
_LONGEST = 12_000
_RARE = 3  # a word in more messages than this says nothing about one of them
_WORD = re.compile(r"[^\W_](?:[\w./:-]*\w)?")


@dataclass(frozen=True)
class MessageView:
    """One message of the session and its fate on both sides."""

    number: int
    anchor: str
    role: str
    text: Markup
    size: int
    candidate: StateWord | None
    base: StateWord | None
    trace: str
    """How many of its own words the candidate's new text still holds."""
    segment: int | None
    """The number of the compression that happened after this message, in a chained session."""


@dataclass(frozen=True)
class TranscriptBlock:
    """A stretch of messages with the same fate, as a part of the session's length in percent."""

    start: float
    width: float
    state: StateWord
    words: str


def message_anchor(fixture: str, number: int) -> str:
    """Return the id of a message in the page."""
    return slug("msg", fixture, str(number))


def _own_words(texts: Sequence[str]) -> list[set[str]]:
    words = [{word for word in _WORD.findall(text.lower()) if len(word) > 3} for text in texts]
    spread = Counter(word for found in words for word in found)
    return [{word for word in found if spread[word] <= _RARE} for found in words]


def _fates(texts: Sequence[str], run: RunRecord | None) -> list[tuple[StateWord | None, str]]:
    """Tell for each message what became of it; that a summary covers it is read from the words they share."""
    if run is None:
        return [(None, "")] * len(texts)
    verbatim, written = set(run.verbatim), set(_WORD.findall(run.summary.lower()))
    fates: list[tuple[StateWord | None, str]] = []
    for number, own in enumerate(_own_words(texts)):
        if number in verbatim:
            fates.append(("verbatim", ""))
            continue
        found = len(own & written)
        summarised = bool(found) and found >= TRACE * len(own)
        words = f"{found} of its {len(own)} own words in the new text"
        fates.append(("summarised" if summarised else "dropped", words))
    return fates


def message_views(
    fixture: Fixture, candidate: RunRecord | None, base: RunRecord | None, needles: dict[int, list[Needle]]
) -> list[MessageView]:
    """Return the whole session; facts are marked in the messages that are their evidence."""
    texts = [full_text(message) for message in fixture.messages]
    ours, theirs = _fates(texts, candidate), _fates(texts, base)
    views = []
    for number, (message, text) in enumerate(zip(fixture.messages, texts, strict=True)):
        shown = visible(clip(text, _LONGEST))
        views.append(
            MessageView(
                number=number,
                anchor=message_anchor(fixture.name, number),
                role=str(message.get("role", "?")),
                text=paint(shown, fact_spans(shown, needles.get(number, []))),
                size=len(text),
                candidate=ours[number][0],
                base=theirs[number][0],
                trace=ours[number][1],
                segment=fixture.segments.index(number + 1) + 1 if number + 1 in fixture.segments else None,
            )
        )
    return views


def strip(messages: Sequence[MessageView], side: Literal["base", "candidate"]) -> list[TranscriptBlock]:
    """Draw neighbouring messages with the same fate together."""
    total = sum(message.size + 1 for message in messages) or 1
    blocks: list[TranscriptBlock] = []
    at, start, first = 0.0, 0.0, 0
    for index, message in enumerate(messages):
        state = getattr(message, side)
        at += (message.size + 1) / total * 100
        following = getattr(messages[index + 1], side) if index + 1 < len(messages) else None
        if state is not None and following != state:
            words = f"message {first}" if first == index else f"messages {first} to {index}"
            blocks.append(TranscriptBlock(round(start, 3), round(at - start, 3), state, f"{words}: {state}"))
        if following != state:
            start, first = at, index + 1
    return blocks


# One fixture as it is shown: probes, runs, summaries, transcript, census and structure.

_LONGEST_fixtures = 60_000
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
    strips: tuple[tuple[str, tuple[TranscriptBlock, ...]], ...]
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
        return "\n".join(visible(clip(run.summary, _LONGEST_fixtures)).splitlines()[:_MOST_LINES]) if run else ""

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
