"""One probe as it is shown: question, facts, answers, grades, and what it is found by."""

from __future__ import annotations

from dataclasses import dataclass

from eval_core.compare.finding import Culprit
from eval_core.compare.wording import p_value
from eval_core.measurement import ProbeControl
from eval_core.probe.schema import Probe
from eval_core.report.data import ReportData
from eval_core.report.html.answers import (
    AnswerGroup,
    GradeRow,
    answer_groups,
    grade_rows,
    same_answers,
    unscored_rows,
)
from eval_core.report.html.fact_view import FactView, fact_views, needles
from eval_core.report.html.heat import Cell, cells
from eval_core.report.html.paint import Needle
from eval_core.report.html.tally import OVERALL, probe_means, probe_records, retention
from eval_core.report.html.text import slug

__all__ = ["TAGS", "ProbeView", "probe_view"]

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

    fixture: str
    name: str
    anchor: str
    type: str
    question: str
    kept_verbatim: str
    tags: tuple[str, ...]
    delta: float | None
    fact_delta: float | None
    cells: tuple[Cell, ...]
    facts: tuple[FactView, ...]
    superseded: tuple[str, ...]
    same_answer: bool
    base_answers: tuple[AnswerGroup, ...]
    candidate_answers: tuple[AnswerGroup, ...]
    base_grades: tuple[GradeRow, ...]
    candidate_grades: tuple[GradeRow, ...]
    unscored: tuple[tuple[str, str, str], ...]
    """Side, runs, reason."""
    control: ProbeControl | None
    evidence_words: tuple[str, ...]
    """What the tests say of this probe."""
    needles: tuple[Needle, ...]

    @property
    def way(self) -> str:
        """worse, better, level, or plain where nothing is compared."""
        return next((tag for tag in ("worse", "better", "level") if tag in self.tags), "plain")

    @property
    def sign(self) -> str:
        """The mark for that way."""
        return {"worse": "▼", "better": "▲", "level": "="}.get(self.way, "•")


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


def probe_view(data: ReportData, fixture: str, name: str, key: str, *, compared: bool) -> ProbeView:
    """Collect what both sides say of one probe."""
    base = probe_records(data.base, fixture, name) if compared else []
    ours = probe_records(data.candidate, fixture, name)
    case = data.cases.get(fixture)
    authored: Probe | None = next((probe for probe in case.bank.probes if probe.id == name), None) if case else None
    facts = fact_views(key, base, ours, compared=compared)
    marked = needles(facts, authored)
    their_means, our_means = probe_means(base), probe_means(ours)
    shares = retention(base), retention(ours)
    delta = _difference(their_means.get(OVERALL), our_means.get(OVERALL)) if compared else None
    fact_delta = _difference(*shares) if compared else None
    same = compared and same_answers(base, ours)
    theirs, mine = answer_groups(base, ours, marked)
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
        fixture=fixture,
        name=name,
        anchor=slug("probe", fixture, name),
        type=data.candidate.probe_types.get(fixture, {}).get(name) or (authored.type if authored else "unknown"),
        question=authored.question if authored else "",
        kept_verbatim=(authored.kept_verbatim or "") if authored else "",
        tags=tuple(tag for tag in TAGS if tag in found),
        delta=delta,
        fact_delta=fact_delta,
        cells=tuple(cells(their_means, our_means, shares, compared=compared)),
        facts=tuple(facts),
        superseded=tuple(fact.label for fact in authored.superseded) if authored else (),
        same_answer=same,
        base_answers=tuple(theirs),
        candidate_answers=tuple(mine),
        base_grades=tuple(grade_rows(base)),
        candidate_grades=tuple(grade_rows(ours)),
        unscored=tuple(unscored),
        control=control,
        evidence_words=_evidence_words(data, fixture, name),
        needles=tuple(marked),
    )
