"""Text for the HTML report: made visible and safe, with facts marked and differences shown."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from markupsafe import Markup, escape

from eval_core.domain.probe import Fact

__all__ = [
    "DiffRow",
    "Needle",
    "Span",
    "clip",
    "diff_rows",
    "fact_spans",
    "paint",
    "runs_words",
    "slug",
    "visible",
    "word_spans",
]

# Model text made safe to look at: what hides itself from the eye is written out, what is endless is cut.

_PLAIN = str.maketrans("", "", "\n\t\u200d")
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Cs", "Zl", "Zp"})
_UNSAFE_ID = re.compile(r"[^A-Za-z0-9._-]+")


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    # The joiner holds emoji together; alone it does nothing.
    if char in "\n\t\u200d" or unicodedata.category(char) not in _HIDDEN:
        return char
    return f"\N{MATHEMATICAL LEFT ANGLE BRACKET}U+{ord(char):04X}\N{MATHEMATICAL RIGHT ANGLE BRACKET}"


def visible(text: str) -> str:
    """Write out control characters, direction overrides and lone surrogates; nothing invisible is left."""
    text = text.replace("\r\n", "\n")
    if text.translate(_PLAIN).isprintable():
        return text
    return "".join(map(_shown, text))


def clip(text: str, limit: int) -> str:
    """Cut a text that would swamp the page, and say how much is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n… {len(text) - limit:,} more characters are in the results folder"


def slug(*parts: str) -> str:
    """Return an id that is stable, unique and made of plain characters."""
    joined = "-".join(parts)
    plain = _UNSAFE_ID.sub("_", joined)
    if plain == joined:
        return plain
    digest = hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain[:80]}-{digest[:8]}"


def runs_words(runs: Iterable[int]) -> str:
    """Return run numbers, counted from 1, with stretches drawn together: runs 1–3, 5."""
    numbers = sorted({run + 1 for run in runs})
    stretches: list[list[int]] = []
    for number in numbers:
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1][1] = number
        else:
            stretches.append([number, number])
    words = ", ".join(str(low) if low == high else f"{low}\N{EN DASH}{high}" for low, high in stretches)
    return f"run{'' if len(numbers) == 1 else 's'} {words}"


# Text with marks on it: where an expected fact stands, what is gone, what is new.

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


# What differs between two texts: words within a text, and lines side by side.

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
