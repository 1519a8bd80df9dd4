"""Text for the HTML report: made visible and safe, and where a fact is in it."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup, escape

from eval_core.domain.probe import Fact

# Model text made safe to look at: what hides itself from the eye is written out, what is endless is cut.

_PLAIN = str.maketrans("", "", "\n\t\u200d")
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Cs", "Zl", "Zp"})
_CODE = re.compile(r"`([^`]+)`")
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


def with_code(text: str) -> Markup:
    """Escape a sentence, and show as code what is between two backticks."""
    safe = str(escape(visible(text)))
    return Markup(_CODE.sub(r"<code>\1</code>", safe))  # noqa: S704 - escaped in the line above


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


# Where a fact is: the values to look for, and the sentence around one of them.

_MOST_VALUES = 12
_AROUND = 90
_BREAK = re.compile(r"(?<=[.!?])\s+|\n+")


@dataclass(frozen=True)
class Sentence:
    """The sentence that contains a value, cut in three."""

    before: str
    value: str
    after: str


@lru_cache(maxsize=4096)
def _literal(value: str) -> re.Pattern[str]:
    body = r"\s+".join(map(re.escape, value.split()))
    before = r"(?<!\w)" if re.match(r"\w", value.strip()) else ""
    after = r"(?!\w)" if re.search(r"\w$", value.strip()) else ""
    return re.compile(before + body + after, re.IGNORECASE)


def fact_values(label: str, fact: Fact | None, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the words by which a fact is recognised; those of a regular expression are looked up in the texts."""
    if fact is None:
        return (label,)
    if fact.regex is None:
        return tuple(fact.values)
    pattern = re.compile(fact.regex, re.IGNORECASE)
    found: dict[str, None] = {}
    for text in texts:
        for match in pattern.finditer(text):
            if match.group().strip():
                found.setdefault(match.group(), None)
            if len(found) >= _MOST_VALUES:
                return tuple(found)
    return tuple(found)


def sentence_of(values: Sequence[str], text: str) -> Sentence | None:
    """Return the sentence that contains the first of the values, shortened around it."""
    match = next((found for value in values if value.strip() and (found := _literal(value).search(text))), None)
    if match is None:
        return None
    starts = [found.end() for found in _BREAK.finditer(text, 0, match.start())]
    end = _BREAK.search(text, match.end())
    before = text[starts[-1] if starts else 0 : match.start()]
    after = text[match.end() : end.start() if end else len(text)]
    if len(before) > _AROUND:
        before = "…" + before[-_AROUND:]
    if len(after) > _AROUND:
        after = after[:_AROUND] + "…"
    return Sentence(
        before.replace("\n", " ").lstrip(), " ".join(match.group().split()), after.replace("\n", " ").rstrip()
    )
