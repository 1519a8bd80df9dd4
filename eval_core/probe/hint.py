"""What an author may have meant by a value that stands nowhere in the session."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["did_you_mean"]

_TOKEN = re.compile(r"[^\s\"'`,;()\[\]{}<>|=]{3,80}")
_CLOSE = 0.72


def _trigrams(word: str) -> set[str]:
    return {word[at : at + 3] for at in range(len(word) - 2)}


def _candidates(value: str, texts: Iterable[str]) -> list[str]:
    words = len(value.split())
    found: dict[str, None] = {}
    for text in texts:
        tokens = [token.rstrip(".:!?") for token in _TOKEN.findall(text)]
        if words == 1:
            found.update(dict.fromkeys(tokens))
        else:
            found.update(dict.fromkeys(" ".join(tokens[at : at + words]) for at in range(len(tokens) - words + 1)))
    return list(found)


def did_you_mean(value: str, texts: Iterable[str]) -> str | None:
    """Return the nearest thing that the texts do say, or None; only a hint for people, never a match."""
    wanted = _trigrams(value.lower())
    near = [
        candidate
        for candidate in _candidates(value, texts)
        if abs(len(candidate) - len(value)) <= max(3, len(value) // 2)
        and len(wanted & _trigrams(candidate.lower())) * 3 >= len(wanted)
    ]
    by_lower = {candidate.lower(): candidate for candidate in near}
    best = difflib.get_close_matches(value.lower(), list(by_lower), n=1, cutoff=_CLOSE)
    return by_lower[best[0]] if best else None
