"""Model text made safe to look at: what hides itself from the eye is written out, what is endless is cut."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

__all__ = ["clip", "runs_words", "slug", "visible"]

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
