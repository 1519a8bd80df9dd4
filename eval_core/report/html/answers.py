"""The answers of both sides, equal ones once, with differences and facts marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from eval_core.compare.wording import score
from eval_core.judge.grade import DIMENSIONS, Grade, Unscored
from eval_core.report.html.diff import word_spans
from eval_core.report.html.paint import Needle, Span, fact_spans, paint
from eval_core.report.html.text import clip, runs_words, visible
from eval_core.run.record import ProbeRecord, RunRecord

__all__ = ["AnswerGroup", "GradeRow", "answer_groups", "grade_rows", "same_answers", "unscored_rows"]

Records = Sequence[tuple[RunRecord, ProbeRecord]]
_LONGEST = 8_000


@dataclass(frozen=True)
class AnswerGroup:
    """One distinct answer and the runs that gave it."""

    runs: str
    text: Markup


@dataclass(frozen=True)
class GradeRow:
    """One distinct grade: its runs, scores and the judge's reason."""

    runs: str
    scores: tuple[str, ...]
    reason: str
    flags: tuple[str, ...]


def _texts(records: Records) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for run, record in records:
        if record.answer is not None:
            found.setdefault(visible(clip(record.answer.text, _LONGEST)), []).append(run.run)
    return found


def same_answers(base: Records, candidate: Records) -> bool:
    """Tell whether all runs of both sides gave one and the same answer."""
    theirs, ours = _texts(base), _texts(candidate)
    return len(ours) == 1 and theirs.keys() == ours.keys()


def _groups(texts: dict[str, list[int]], marks: dict[str, list[Span]], needles: Sequence[Needle]) -> list[AnswerGroup]:
    return [
        AnswerGroup(runs_words(runs), paint(text, [*marks.get(text, []), *fact_spans(text, needles)]))
        for text, runs in texts.items()
    ]


def answer_groups(
    base: Records, candidate: Records, needles: Sequence[Needle]
) -> tuple[list[AnswerGroup], list[AnswerGroup]]:
    """Return both columns; candidate answers are compared with the base's most frequent one, if they share enough."""
    theirs, ours = _texts(base), _texts(candidate)
    gone: dict[str, list[Span]] = {}
    new: dict[str, list[Span]] = {}
    if theirs and ours:
        usual = max(theirs, key=lambda text: len(theirs[text]))
        shown = max(ours, key=lambda text: len(ours[text]))
        for text in ours:
            if text in theirs:
                continue
            marks = word_spans(usual, text)
            new[text] = marks[1] if marks else []
            if text == shown and usual not in ours and marks:
                gone[usual] = marks[0]
    return _groups(theirs, gone, needles), _groups(ours, new, needles)


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
