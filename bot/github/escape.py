"""Escaping untrusted text for markdown: shown as it is, with no effect in a comment."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["fenced", "inline"]

_MARKS_IN_A_ROW = 4
_LINE_ENDS = re.compile("\r\n|[\r\u2028\u2029\x85\x0b\x0c]")
# Look-alikes: the reader sees the sign, GitHub sees a letter.
_MENTION = "\uff20"
_TICK = "\u02cb"
_PIPE = "\u2223"


def fenced(text: str, limit: int = 4_000, language: str = "text") -> str:
    """Return a code block, with the blank lines it needs, that the text cannot break out of."""
    body = _neutral(_cut(text, limit))
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n\n{fence}{language}\n{body}\n{fence}\n\n"


def inline(text: str, limit: int = 200) -> str:
    """Return a code span that stays one cell of a table and one line."""
    body = " ".join(_neutral(_cut(text, limit)).split())
    body = body.replace("`", _TICK).replace("|", _PIPE)
    return f"`{body}`" if body else "`(empty)`"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def _neutral(text: str) -> str:
    text = _LINE_ENDS.sub("\n", text)
    shown: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        if category in ("Mn", "Me"):
            # Piled-up accents paint over the lines around them; variation selectors show nothing at all.
            marks += 1
            if marks <= _MARKS_IN_A_ROW and not _selects_variant(char):
                shown.append(char)
            continue
        marks = 0
        if char in "\n\t":
            shown.append(char)
        elif category[0] == "C" or _blank(char):
            # Controls, bidi overrides, zero-width and unassigned characters: name them instead of obeying them.
            shown.append(f"[U+{ord(char):04X}]")
        else:
            shown.append(char)
    # A comment marker or a mention must not even be found by a search in the raw text.
    return "".join(shown).replace("@", _MENTION).replace("<!--", "<! --").replace("-->", "-- >")


def _selects_variant(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _blank(char: str) -> bool:
    """Tell whether a letter is drawn as nothing (fillers that stand for absent jamo, the braille blank)."""
    return char in "\u115f\u1160\u3164\uffa0\u2800"
