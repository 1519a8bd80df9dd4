"""What differs between two texts: words within a text, and lines side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from markupsafe import Markup

from eval_core.report.html.paint import Needle, Span, fact_spans, paint

__all__ = ["DiffRow", "diff_rows", "word_spans"]

_TOKEN = re.compile(r"\S+\s*|\s+")
_MOST_PAIRS = 400_000  # beyond this, comparing word by word takes longer than anybody looks
_ISLAND = 3
_UNLIKE = 0.6
"""Where more than this share of both texts differs, marking all of it would say nothing."""


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
    gone: list[Span] = []
    new: list[Span] = []
    if len(ours) * len(theirs) > _MOST_PAIRS:
        return [Span(there[0], there[-1], "gone")], [Span(here[0], here[-1], "new")]
    codes = _matcher(theirs, ours).get_opcodes()
    for at, (code, a, b, c, d) in enumerate(codes):
        # One or two words between two changes are no agreement; marks in tatters cannot be read.
        inside = 0 < at < len(codes) - 1 and b - a < _ISLAND
        if code == "equal" and not inside:
            continue
        if b > a:
            gone.append(Span(there[a], there[b], "gone"))
        if d > c:
            new.append(Span(here[c], here[d], "new"))
    return _joined(gone), _joined(new)


def _joined(spans: Sequence[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1].end == span.start:
            span = Span(joined.pop().start, span.end, span.kind)
        joined.append(span)
    return joined


def _mostly(spans: Sequence[Span], text: str) -> bool:
    return sum(span.end - span.start for span in spans) > _UNLIKE * len(text)


def word_spans(base: str, candidate: str) -> tuple[list[Span], list[Span]] | None:
    """Return the marks for words that only the base has and that only the candidate has; None where all differs."""
    theirs, ours = base.splitlines(keepends=True), candidate.splitlines(keepends=True)
    there, here = _offsets(theirs, 0), _offsets(ours, 0)
    gone: list[Span] = []
    new: list[Span] = []
    for code, a, b, c, d in _matcher(theirs, ours).get_opcodes():
        if code != "equal":
            left, right = _marks(base[there[a] : there[b]], candidate[here[c] : here[d]], (there[a], here[c]))
            gone += left
            new += right
    if _mostly(gone, base) and _mostly(new, candidate):
        return None
    return gone, new


def _block(base: Sequence[str], candidate: Sequence[str], needles: Sequence[Needle]) -> list[DiffRow]:
    """Show a changed block: line beside line where they pair up, else as two whole columns."""
    pairs = list(zip(base, candidate, strict=False)) if len(base) == len(candidate) else []
    if not pairs or any(SequenceMatcher(None, *pair).quick_ratio() < _UNLIKE for pair in pairs):
        pairs = [("\n".join(base), "\n".join(candidate))]
    rows = []
    for left, right in pairs:
        # A block that stands on one side only needs no marks on every word.
        gone, new = (word_spans(left, right) if left and right else None) or ([], [])
        rows.append(
            DiffRow(
                "changed" if left and right else "gone" if left else "new",
                paint(left, [*gone, *fact_spans(left, needles)]),
                paint(right, [*new, *fact_spans(right, needles)]),
            )
        )
    return rows


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
        rows += _block(theirs[a:b], ours[c:d], needles)
    return rows
