"""One probe in the HTML report: question, facts, answers of both sides, grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eval_core.base.numbers import p_value, score
from eval_core.comparing.compare import ReportData
from eval_core.domain.grade import DIMENSIONS, Grade, Unscored
from eval_core.domain.measurement import ProbeControl
from eval_core.domain.probe import Probe
from eval_core.domain.record import PRIVATE_PLACE, FactRecord, ProbeRecord, RunRecord
from eval_core.reporting.html.mean_scores import OVERALL, HeatCell, cells, probe_means, probe_records, retention
from eval_core.reporting.html.text import clip, runs_words, slug
from eval_core.strands.findings import Culprit

# What became of each expected fact over all runs of a side, in one word and one count.

Word = Literal["kept", "lost", "not used", "untested", "not measured"]


@dataclass(frozen=True)
class FactState:
    """One side's fate of a fact."""

    word: Word
    detail: str


@dataclass(frozen=True)
class FactView:
    """One expected fact and both sides."""

    label: str
    base: FactState | None
    candidate: FactState
    evidence: tuple[int, ...]


def _of(count: int, total: int) -> str:
    if total == 1:
        return "in the only run"
    return f"in all {total} runs" if count == total else f"in {count} of {total} runs"


def fact_state(records: Sequence[FactRecord]) -> FactState:
    """Sum up one fact: a loss in any run is told before anything else."""
    if not records:
        return FactState("not measured", "")
    runs, lost = len(records), sum(not fact.kept for fact in records)
    if lost:
        reworded = any(fact.status == "paraphrased" for fact in records)
        return FactState("lost", _of(lost, runs) + ("; possibly paraphrased" if reworded else ""))
    if not any(fact.at_risk for fact in records):
        return FactState("untested", "left verbatim")
    asked = [fact.used for fact in records if fact.used is not None]
    unused = sum(not used for used in asked)
    if unused:
        return FactState("not used", f"by {unused} of {len(asked)} answers")
    return FactState("kept", "used by every answer" if asked else _of(runs, runs))


def _by_label(records: Sequence[tuple[RunRecord, ProbeRecord]], *, answered: bool) -> dict[str, list[FactRecord]]:
    found: dict[str, list[FactRecord]] = {}
    for _, record in records:
        for fact in record.facts:
            known = fact if answered else fact.model_copy(update={"used": None})
            found.setdefault(fact.label, []).append(known)
    return found


def fact_views(
    base: Sequence[tuple[RunRecord, ProbeRecord]],
    candidate: Sequence[tuple[RunRecord, ProbeRecord]],
    *,
    compared: bool,
    answered: bool = True,
) -> list[FactView]:
    """Return every fact that either side knows, in the bank's order.

    Unless a model `answered`, it says nothing of the compressor whether a quotation of the state holds a fact.
    """
    theirs, ours = _by_label(base, answered=answered), _by_label(candidate, answered=answered)
    views = []
    for label in dict.fromkeys([*ours, *theirs]):
        known = [*ours.get(label, []), *theirs.get(label, [])]
        views.append(
            FactView(
                label=label,
                base=fact_state(theirs.get(label, [])) if compared else None,
                candidate=fact_state(ours.get(label, [])),
                evidence=tuple(number for number in known[0].evidence if number != PRIVATE_PLACE),
            )
        )
    return views


# The answers and grades of both sides, equal ones once.

Records = Sequence[tuple[RunRecord, ProbeRecord]]
_LONGEST = 8_000


@dataclass(frozen=True)
class AnswerGroup:
    """One distinct answer and the runs that gave it."""

    runs: str
    text: str


@dataclass(frozen=True)
class GradeRow:
    """One distinct grade: its runs, scores and the judge's reason."""

    runs: str
    scores: tuple[str, ...]
    reason: str
    flags: tuple[str, ...]


def answer_groups(records: Records) -> list[AnswerGroup]:
    """Return the distinct answers of one side, the most frequent first."""
    found: dict[str, list[int]] = {}
    for run, record in records:
        if record.answer is not None:
            found.setdefault(clip(record.answer.text, _LONGEST), []).append(run.run)
    ranked = sorted(found.items(), key=lambda item: -len(item[1]))
    return [AnswerGroup(runs_words(runs), text) for text, runs in ranked]


def grade_rows(records: Records) -> list[GradeRow]:
    """Return the grades run by run, equal ones drawn together."""
    found: dict[tuple[tuple[str, ...], str, tuple[str, ...]], list[int]] = {}
    for run, record in records:
        if isinstance(record.result, Grade):
            grade = record.result
            scores = (*(score(grade.scores[name]) for name in DIMENSIONS), score(grade.overall))
            found.setdefault((scores, clip(grade.reason, _LONGEST), tuple(grade.flags)), []).append(run.run)
    return [GradeRow(runs_words(runs), *key) for key, runs in found.items()]


def unscored_rows(records: Records) -> list[tuple[str, str]]:
    """Return why there is no grade, and in which runs."""
    found: dict[str, list[int]] = {}
    for run, record in records:
        if isinstance(record.result, Unscored):
            found.setdefault(record.result.reason, []).append(run.run)
    return [(runs_words(runs), reason) for reason, runs in found.items()]


# One probe as it is shown: question, facts, answers, grades, and what it is found by.

TAGS = {
    "named": "named in the verdict",
    "worse": "worse than the base",
    "better": "better than the base",
    "level": "unchanged",
    "lost": "with a lost fact",
    "not-used": "with a fact not used",
    "untested": "with an untested fact",
    "unscored": "unscored",
    "quarantined": "quarantined",
}
_TINY = 0.01  # share of the scale below which a probe counts as unchanged


@dataclass(frozen=True)
class ProbeView:
    """Everything the page shows of a probe."""

    name: str
    anchor: str
    type: str
    question: str
    kept_verbatim: str
    tags: tuple[str, ...]
    score: float | None
    delta: float | None
    fact_delta: float | None
    cells: tuple[HeatCell, ...]
    facts: tuple[FactView, ...]
    superseded: tuple[str, ...]
    base_answers: tuple[AnswerGroup, ...]
    candidate_answers: tuple[AnswerGroup, ...]
    base_grades: tuple[GradeRow, ...]
    candidate_grades: tuple[GradeRow, ...]
    unscored: tuple[tuple[str, str, str], ...]
    """Side, runs, reason."""
    remarks: tuple[str, ...]
    """What controls and tests say of this probe, in sentences."""
    quarantined: str


def _way(delta: float | None, fact_delta: float | None) -> str | None:
    """Scores decide; where they say nothing, facts do."""
    for change, top in ((delta, 5.0), (fact_delta, 1.0)):
        if change is not None and abs(change) / top >= _TINY:
            return "worse" if change < 0 else "better"
    return None if delta is None and fact_delta is None else "level"


def _difference(base: float | None, candidate: float | None) -> float | None:
    return None if base is None or candidate is None else candidate - base


def _names(culprits: tuple[Culprit, ...], fixture: str, probe: str) -> bool:
    return any(item.fixture == fixture and item.name == probe and item.kind in ("probe", "fact") for item in culprits)


def _evidence_words(data: ReportData, fixture: str, probe: str) -> tuple[str, ...]:
    titles = {"probe": "scores", "fact": "facts"}
    units = data.verdict.units if data.verdict else ()
    return tuple(
        f"{titles[unit.kind]}: p {p_value(unit.p)}, adjusted for all that is tested"
        for unit in units
        if unit.fixture == fixture and unit.name == probe and unit.kind in titles
    )


def _remarks(data: ReportData, fixture: str, probe: str, control: ProbeControl | None) -> tuple[str, ...]:
    tests = _evidence_words(data, fixture, probe)
    if control is None:
        return tests
    ends = f"full transcript {score(control.ceiling)}, no context {score(control.floor)}"
    return (f"controls: {ends}", *tests)


def probe_view(data: ReportData, fixture: str, name: str, *, compared: bool) -> ProbeView:
    """Collect what both sides say of one probe."""
    base = probe_records(data.base, fixture, name) if compared else []
    ours = probe_records(data.candidate, fixture, name)
    case = data.cases.get(fixture)
    authored: Probe | None = next((probe for probe in case.bank.probes if probe.id == name), None) if case else None
    facts = fact_views(base, ours, compared=compared, answered=not data.candidate.offline)
    their_means, our_means = probe_means(base), probe_means(ours)
    shares = retention(base), retention(ours)
    delta = _difference(their_means.get(OVERALL), our_means.get(OVERALL)) if compared else None
    fact_delta = _difference(*shares) if compared else None
    unscored = [("base", *row) for row in unscored_rows(base)] + [("candidate", *row) for row in unscored_rows(ours)]
    controls = data.candidate.controls.get(fixture)
    control = controls.probes.get(name) if controls else None
    states = {fact.candidate.word for fact in facts}
    found = {
        _way(delta, fact_delta),
        "named" if data.verdict and _names(data.verdict.culprits, fixture, name) else None,
        "lost" if "lost" in states else None,
        "not-used" if "not used" in states else None,
        "untested" if "untested" in states else None,
        "unscored" if unscored else None,
        "quarantined" if control and control.quarantined else None,
    }
    return ProbeView(
        name=name,
        anchor=slug("probe", fixture, name),
        type=data.candidate.probe_types.get(fixture, {}).get(name) or (authored.type if authored else "unknown"),
        question=authored.question if authored else "",
        kept_verbatim=(authored.kept_verbatim or "") if authored else "",
        tags=tuple(tag for tag in TAGS if tag in found),
        score=our_means.get(OVERALL),
        delta=delta,
        fact_delta=fact_delta,
        cells=tuple(cells(their_means, our_means, shares, compared=compared)),
        facts=tuple(facts),
        superseded=tuple(fact.label for fact in authored.superseded) if authored else (),
        base_answers=tuple(answer_groups(base)),
        candidate_answers=tuple(answer_groups(ours)),
        base_grades=tuple(grade_rows(base)),
        candidate_grades=tuple(grade_rows(ours)),
        unscored=tuple(unscored),
        remarks=_remarks(data, fixture, name, control),
        quarantined=(control.quarantined or "") if control else "",
    )
