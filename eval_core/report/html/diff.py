"""What differs between two texts: words within a text, and lines side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from markupsafe import Markup

from eval_core.report.html.paint import Needle, Span, fact_spans, paint

__all__ = ["DiffRow", "diff_rows", "word_spans"]

_TOKEN = re.compile(r"\S+\s*|\s+")
_MOST_PAIRS = 400_000  # beyond this, comparing word by word takes longer than anybody looks
_ALIKE = 0.35


@dataclass(frozen=True)
class DiffRow:
    """One line of a side-by-side diff; the same on both sides is shown once."""

    kind: Literal["same", "changed", "gone", "new"]
    base: Markup
    candidate: Markup


def _matcher(base: Sequence[str], candidate: Sequence[str]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, base, candidate, autojunk=len(base) * len(candidate) > _MOST_PAIRS)


def _offsets(parts: Sequence[str], start: int) -> list[int]:
    found = [start]
    for part in parts:
        found.append(found[-1] + len(part))
    return found


def _marks(base: str, candidate: str, starts: tuple[int, int]) -> tuple[list[Span], list[Span]]:
    """Mark the words that differ in two stretches that begin at the given places."""
    ours, theirs = _TOKEN.findall(candidate), _TOKEN.findall(base)
    here, there = _offsets(ours, starts[1]), _offsets(theirs, starts[0])
    gone, new = [], []
    if len(ours) * len(theirs) > _MOST_PAIRS:
        return [Span(there[0], there[-1], "gone")], [Span(here[0], here[-1], "new")]
    for code, a, b, c, d in _matcher(theirs, ours).get_opcodes():
        if code == "equal":
            continue
        if b > a:
            gone.append(Span(there[a], there[b], "gone"))
        if d > c:
            new.append(Span(here[c], here[d], "new"))
    return gone, new


def word_spans(base: str, candidate: str) -> tuple[list[Span], list[Span]]:
    """Return the marks for words that only the base has and for those that only the candidate has."""
    theirs, ours = base.splitlines(keepends=True), candidate.splitlines(keepends=True)
    there, here = _offsets(theirs, 0), _offsets(ours, 0)
    gone: list[Span] = []
    new: list[Span] = []
    for code, a, b, c, d in _matcher(theirs, ours).get_opcodes():
        if code != "equal":
            left, right = _marks(base[there[a] : there[b]], candidate[here[c] : here[d]], (there[a], here[c]))
            gone += left
            new += right
    return gone, new


def _pair(base: str, candidate: str, needles: Sequence[Needle]) -> DiffRow:
    gone: list[Span] = []
    new: list[Span] = []
    if SequenceMatcher(None, base, candidate).quick_ratio() >= _ALIKE:
        gone, new = _marks(base, candidate, (0, 0))
    return DiffRow(
        "changed",
        paint(base, [*gone, *fact_spans(base, needles)]),
        paint(candidate, [*new, *fact_spans(candidate, needles)]),
    )


def diff_rows(base: str, candidate: str, needles: Sequence[Needle]) -> list[DiffRow]:
    """Return the lines of two texts side by side, with differing words and expected facts marked."""

    def painted(line: str) -> Markup:
        return paint(line, fact_spans(line, needles))

    theirs, ours = base.splitlines(), candidate.splitlines()
    rows: list[DiffRow] = []
    for code, a, b, c, d in _matcher(theirs, ours).get_opcodes():
        if code == "equal":
            rows += [DiffRow("same", painted(line), Markup("")) for line in theirs[a:b]]
            continue
        for left, right in zip_longest(theirs[a:b], ours[c:d]):
            if left is None:
                rows.append(DiffRow("new", Markup(""), painted(right)))
            elif right is None:
                rows.append(DiffRow("gone", painted(left), Markup("")))
            else:
                rows.append(_pair(left, right, needles))
    return rows
