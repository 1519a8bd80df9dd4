"""One fixture in the HTML report: probes, runs, summaries, transcript, census and structure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from eval_core.base.messages import full_text
from eval_core.base.numbers import percent, score
from eval_core.comparing.compare import ReportData
from eval_core.domain.fixture import Fixture
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.reporting.html.probes import ProbeView, probe_view
from eval_core.reporting.html.text import clip, fact_values, runs_words, slug
from eval_core.reporting.metrics import tokens_per_task
from eval_core.strands.structure import STRUCTURE_CHECKS

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
"""A message counts as summarised where at least this share of its own words is in the text written for it."""
_LONGEST_MESSAGE = 12_000
_LARGE_SESSION = 600_000
_SHORT_MESSAGE = 1_500
"""Of a session of more characters than that, only messages with evidence are shown beyond this length."""
_RARE = 3  # a word in more messages than this says nothing about one of them
_WORD = re.compile(r"[^\W_](?:[\w./:-]*\w)?")


@dataclass(frozen=True)
class MessageView:
    """One message of the session and its fate on both sides."""

    role: str
    text: str
    size: int
    candidate: StateWord | None
    base: StateWord | None
    segment: int | None
    """The number of the compression that happened after this message, in a chained session."""


def _own_words(texts: Sequence[str]) -> list[set[str]]:
    words = [{word for word in _WORD.findall(text.lower()) if len(word) > 3} for text in texts]
    spread = Counter(word for found in words for word in found)
    return [{word for word in found if spread[word] <= _RARE} for found in words]


def _fates(texts: Sequence[str], run: RunRecord | None) -> list[StateWord | None]:
    """Tell for each message what became of it; that a summary covers it is read from the words they share."""
    if run is None:
        return [None] * len(texts)
    verbatim, written = set(run.verbatim), set(_WORD.findall(run.summary.lower()))
    fates: list[StateWord | None] = []
    for number, own in enumerate(_own_words(texts)):
        if number in verbatim:
            fates.append("verbatim")
            continue
        found = len(own & written)
        summarised = bool(found) and found >= TRACE * len(own)
        fates.append("summarised" if summarised else "dropped")
    return fates


def message_views(
    fixture: Fixture, candidate: RunRecord | None, base: RunRecord | None, evidence: Container[int] = ()
) -> list[MessageView]:
    """Return the whole session; of a very long one, messages that are no evidence are cut short."""
    texts = [full_text(message) for message in fixture.messages]
    ours, theirs = _fates(texts, candidate), _fates(texts, base)
    large = sum(map(len, texts)) > _LARGE_SESSION
    return [
        MessageView(
            role=str(message.get("role", "?")),
            text=clip(text, _SHORT_MESSAGE if large and number not in evidence else _LONGEST_MESSAGE),
            size=len(text),
            candidate=ours[number],
            base=theirs[number],
            segment=fixture.segments.index(number + 1) + 1 if number + 1 in fixture.segments else None,
        )
        for number, (message, text) in enumerate(zip(fixture.messages, texts, strict=True))
    ]


# One fixture as it is shown: probes, runs, summaries, transcript, census and structure.

_SUMMARIES = 3_000_000
_LONGEST_SUMMARY = (60_000, 400_000)
"""Characters of all summaries of a page, and of one: with few runs even that of a very long session is shown whole."""


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
class FactOfSession:
    """A fact to look for: by which words it is recognised, and which messages establish it."""

    label: str
    values: tuple[str, ...]
    kind: str
    """The kind of a census fact; empty for an authored one."""
    probe: str
    """The probe of an authored fact; empty for one of the census."""
    messages: tuple[int, ...]


@dataclass(frozen=True)
class RunView:
    """One run with the text it wrote."""

    number: int
    ok: bool
    tokens: int
    summary: str
    kept: str
    """One sign for each fact of the session: 1 kept, 0 lost, - never at risk, ? not recorded."""


@dataclass(frozen=True)
class FixtureView:
    """Everything the page shows of a fixture."""

    name: str
    anchor: str
    message_anchor: str
    """The address of its messages, up to their number."""
    summary_anchor: str
    description: str
    tokens: int
    delta: float | None
    probes: tuple[ProbeView, ...]
    facts: tuple[FactOfSession, ...]
    base_runs: tuple[RunView, ...]
    candidate_runs: tuple[RunView, ...]
    runs: tuple[RunRow, ...]
    messages: tuple[MessageView, ...]
    census: tuple[CensusRow, ...]
    structure: tuple[StructureRow, ...]
    net: str


def _sorted_runs(measurement: Measurement | None, fixture: str) -> list[RunRecord]:
    return sorted(measurement.fixtures.get(fixture, []), key=lambda run: run.run) if measurement else []


def _first_ok(runs: Sequence[RunRecord]) -> RunRecord | None:
    done = [run for run in runs if run.ok]
    return next((run for run in done if run.graded), done[0] if done else None)


def _printed(run: RunRecord) -> list[str]:
    return [f"it printed: {run.output}"] if run.output else []


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
                notes=tuple(clip(note, 4_100) for note in (*first.notes, *_printed(first))),
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
            changed = "repaired" if all(ours) else "broken" if not any(ours) else "shaky"
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


_MOST_FACTS = 600


def _facts(
    data: ReportData, name: str, runs: Sequence[RunRecord], messages: Sequence[MessageView]
) -> list[FactOfSession]:
    """Return the facts that probes ask for, then those of the census."""
    case = data.cases.get(name)
    authored = {
        (probe.id, fact.name): fact for probe in (case.bank.probes if case else ()) for fact in probe.expected_facts
    }
    known: dict[tuple[str, str], tuple[int, ...]] = {}
    for run in runs:
        for probe, record in run.probes.items():
            for fact in record.facts:
                known.setdefault((probe, fact.label), tuple(fact.evidence))
    texts = [message.text for message in messages]
    found = [
        FactOfSession(label, fact_values(label, authored.get((probe, label)), texts), "", probe, evidence)
        for (probe, label), evidence in known.items()
        if evidence
    ]
    return found + [
        FactOfSession(entry.value, (entry.value,), entry.kind, "", tuple(entry.messages))
        for entry in data.candidate.census.get(name, [])[:_MOST_FACTS]
    ]


def _kept(run: RunRecord, facts: Sequence[FactOfSession]) -> str:
    signs = {
        (probe, fact.label): "0" if not fact.kept else "1" if fact.at_risk else "-"
        for probe, record in run.probes.items()
        for fact in record.facts
    }
    authored = [fact for fact in facts if fact.probe]
    return "".join(signs.get((fact.probe, fact.label), "?") for fact in authored) + (
        run.census.fates[: len(facts) - len(authored)] or "?" * (len(facts) - len(authored))
    )


def _longest_summary(data: ReportData) -> int:
    sides = [side for side in (data.base, data.candidate) if side is not None]
    runs = sum(len(found) for side in sides for found in side.fixtures.values())
    least, most = _LONGEST_SUMMARY
    return min(most, max(least, _SUMMARIES // max(runs, 1)))


def _run_views(runs: Sequence[RunRecord], facts: Sequence[FactOfSession], longest: int) -> tuple[RunView, ...]:
    return tuple(
        RunView(run.run, run.ok, run.tokens_after, clip(run.summary, longest), _kept(run, facts))
        for run in runs
        if run.ok
    )


def fixture_view(data: ReportData, name: str, *, compared: bool) -> FixtureView:
    """Collect what both sides say of one fixture."""
    base = _sorted_runs(data.base, name) if compared else []
    ours = _sorted_runs(data.candidate, name)
    case = data.cases.get(name)
    known = [probe.id for probe in case.bank.probes] if case else []
    stored = [probe for run in (*ours, *base) for probe in run.probes]
    names = dict.fromkeys([*known, *data.candidate.probe_types.get(name, {}), *stored])
    probes = [probe_view(data, name, probe, compared=compared) for probe in names]
    evidence = {number for probe in probes for fact in probe.facts for number in fact.evidence}
    evidence |= {number for entry in data.candidate.census.get(name, []) for number in entry.messages[:1]}
    messages = message_views(case.fixture, _first_ok(ours), _first_ok(base), evidence) if case else []
    facts = _facts(data, name, [*ours, *base], messages)
    deltas = [probe.delta for probe in probes if probe.delta is not None]
    saving = tokens_per_task(data.candidate, name, task=data.task)
    return FixtureView(
        name=name,
        anchor=slug("fixture", name),
        message_anchor=slug("msg", name),
        summary_anchor=slug("summary", name),
        description=case.fixture.description if case else "",
        tokens=max((run.tokens_before for run in (*ours, *base)), default=0),
        delta=fmean(deltas) if deltas else None,
        probes=tuple(probes),
        facts=tuple(facts),
        base_runs=_run_views(base, facts, _longest_summary(data)),
        candidate_runs=_run_views(ours, facts, _longest_summary(data)),
        runs=(*_run_rows("base", base), *_run_rows("candidate", ours)),
        messages=tuple(messages),
        census=tuple(census_rows({name: base}, {name: ours})),
        structure=tuple(_structure(base, ours)),
        net=f"{saving.net:,.0f}" if saving else "",
    )
