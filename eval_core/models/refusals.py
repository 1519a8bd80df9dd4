"""Refusals in plain text: a model that says politely that it will not do the work has not done it badly.

The patterns are narrow on purpose. An answer such as "I cannot find that in the context" is an answer, and a long text
that begins with an apology and then does the work is work.
"""

from __future__ import annotations

import re

_NEAR_EMPTY = 20  # characters; no more than this says nothing of a session
_LONGEST = 700
_SHOWN = 120
_SORRY = (
    r"(?:(?:i['’]?m|i am)\s+(?:\w+\s+)?(?:sorry|afraid)|sorry|i\s+apologi[sz]e|my\s+apologies|unfortunately|apologies)"
)
_CANNOT = (
    r"(?:cannot|can['’]?t|can\s+not|could\s+not|couldn['’]?t|won['’]?t|will\s+not|must\s+decline|have\s+to\s+decline|"
    r"decline|(?:am|['’]m)\s+(?:unable|not\s+able|not\s+comfortable)|refuse)"
)
_WORK = (
    r"(?:assist(?:ing)?|help(?:ing)?\s+(?:you\s+)?(?:with|out)|comply(?:ing)?|fulfil+(?:ing)?|engage|participate|"
    r"summari[sz](?:e|ing)\s+(?:this|that|the|your)|process(?:ing)?\s+(?:this|that|your)\s+request|"
    r"do(?:ing)?\s+(?:that|this)\b|answer(?:ing)?\s+(?:that|this)|discuss(?:ing)?\s+(?:that|this)|"
    r"provid(?:e|ing)\s+(?:(?:a|the|that|this|any)\s+)?(?:summary|assistance|help|such)|"
    r"complet(?:e|ing)\s+(?:this|that|your)\s+(?:request|task)|continue\s+with\s+(?:this|that)\s+request)"
)
_REFUSAL = re.compile(
    rf"^\W*(?:{_SORRY}\W+(?:but\W+|that\W+)?)?(?:as\s+an?\s+ai\b[^.!?]{{0,60}}?)?i\s*{_CANNOT}\s+(?:to\s+)?{_WORK}",
    re.IGNORECASE,
)


def refusal_in(text: str) -> str | None:
    """Return the beginning of a reply that is nothing but a refusal, or None."""
    stripped = text.strip()
    if len(stripped) > _LONGEST or not _REFUSAL.match(stripped):
        return None
    line = " ".join(stripped.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def said_instead(text: str, refusal: str) -> str:
    """Return what a model said in place of a summary: that it refuses, or a few characters; nothing for a summary."""
    stripped = text.strip()
    return refusal or (f"nothing but {stripped!r}" if len(stripped) <= _NEAR_EMPTY else "")
