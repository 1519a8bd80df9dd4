"""Text with marks on it: where an expected fact stands, what is gone, what is new."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from markupsafe import Markup, escape

from eval_core.probe.schema import Fact

__all__ = ["Needle", "Span", "fact_spans", "paint"]

_MOST_HITS = 50
_OPEN = {"gone": Markup("<del>"), "new": Markup("<ins>")}
_CLOSE = {"gone": Markup("</del>"), "new": Markup("</ins>"), "fact": Markup("</mark>")}


@dataclass(frozen=True)
class Span:
    """A stretch of a text and what is marked there."""

    start: int
    end: int
    kind: Literal["fact", "gone", "new"]
    title: str = ""
    key: str = ""


@dataclass(frozen=True)
class Needle:
    """A fact to be marked: the attribution is the record's, this only shows the reader where to look."""

    key: str
    title: str
    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of_values(cls, key: str, title: str, values: Sequence[str]) -> Needle:
        """Look for literal values."""
        return cls(key, title, tuple(_literal(value) for value in values if value.strip()))

    @classmethod
    def of_fact(cls, key: str, title: str, fact: Fact) -> Needle:
        """Look for an authored fact in whichever form it is given."""
        if fact.regex is not None:
            return cls(key, title, (re.compile(fact.regex, re.IGNORECASE),))
        return cls.of_values(key, title, fact.values)


@lru_cache(maxsize=4096)
def _literal(value: str) -> re.Pattern[str]:
    body = r"\s+".join(map(re.escape, value.split()))
    before = r"(?<!\w)" if re.match(r"\w", value.strip()) else ""
    after = r"(?!\w)" if re.search(r"\w$", value.strip()) else ""
    return re.compile(before + body + after, re.IGNORECASE)


def fact_spans(text: str, needles: Sequence[Needle]) -> list[Span]:
    """Return where facts stand in a text."""
    found = []
    for needle in needles:
        for pattern in needle.patterns:
            for number, match in enumerate(pattern.finditer(text)):
                if number >= _MOST_HITS:
                    break
                if match.end() > match.start():
                    found.append(Span(match.start(), match.end(), "fact", needle.title, needle.key))
    return found


def _opening(span: Span) -> Markup:
    if span.kind != "fact":
        return _OPEN[span.kind]
    return Markup('<mark title="{}" data-fact="{}">').format(span.title, span.key)


def paint(text: str, spans: Sequence[Span]) -> Markup:
    """Return the text as HTML with its marks; everything in it is escaped, overlapping marks are nested."""
    edges = sorted({0, len(text), *(span.start for span in spans), *(span.end for span in spans)})
    starting = sorted(spans, key=lambda span: span.start)
    pieces: list[Markup] = []
    active: list[Span] = []
    at = 0
    for start, end in pairwise(edges):
        while at < len(starting) and starting[at].start <= start:
            active.append(starting[at])
            at += 1
        active = [span for span in active if span.end > start]
        # One mark of each kind is enough; the first fact that begins here names the place.
        by_kind = {span.kind: span for span in reversed(active)}
        covering = [by_kind[kind] for kind in ("gone", "new", "fact") if kind in by_kind]
        pieces.extend(_opening(span) for span in covering)
        pieces.append(escape(text[start:end]))
        pieces.extend(_CLOSE[span.kind] for span in reversed(covering))
    return Markup("").join(pieces)
