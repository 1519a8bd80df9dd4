"""Asks: what the compressor says to its own model apart from the session, that is, its instructions.

Each request is taken apart into text of the session and the rest. The rest is written down line by line, with a sign
where the session was; the session's part only as a digest, to see whether two runs were shown the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

from eval_core.base.messages import Message, said
from eval_core.domain.compression import ModelRequest, Step
from eval_core.domain.record import AsksRecord
from eval_core.domain.session_text import SessionText

__all__ = ["SESSION", "read_asks"]

SESSION = "[...]"
"""Where the session's text was."""
_DAY, _TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.?"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? "
_FRESH = re.compile(
    rf"{_DAY}(?:[T ]{_TIME})?|\b{_TIME}\b|\b\d{{1,2}}/\d{{1,2}}/\d{{4}}\b"
    rf"|(?:{_WEEKDAY})?(?:\d{{1,2}}\.? {_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?),? \d{{4}}"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b(?=[a-f]*\d)[0-9a-f]{12,}\b|\b1[6-9]\d{8}(?:\d{3})?\b"
)
"""Dates, times and ids: they tell when and where a request was made."""
_LONGEST_LINE = 6_000
_MOST_LINES = 600


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _short(line: str) -> str:
    """Cut what is too long to be kept, so that a change behind the cut is still a change."""
    line = _FRESH.sub("<...>", line)
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} ... ({_digest([line])})"


def _message_lines(message: Message, known: SessionText, shown: list[str]) -> list[str]:
    """Return the instructions in one message, and add the session's text to what was shown."""
    lines: dict[tuple[int, int], list[str]] = {}
    for number, text in enumerate(said(message).texts):
        for part in known.parts(text):
            parts = lines.setdefault((number, part.line), [])
            if part.session:
                shown.append(part.text)
            if not part.session or parts[-1:] != [SESSION]:
                parts.append(SESSION if part.session else " ".join(part.text.split()))
    written = [" ".join(parts) for parts in lines.values()]
    own = any(line != SESSION for line in written)
    return [f"({message.get('role')})", *written] if own else written


def _step(requests: Sequence[ModelRequest], step: int, known: SessionText) -> AsksRecord:
    shown: list[str] = []
    lines: dict[str, None] = {}
    for request in requests:
        found = [line for message in request.messages for line in _message_lines(message, known, shown)]
        for line in (*found, *(f"({setting})" for setting in request.settings)):
            lines.setdefault(_short(line))
        known.add([request.reply])
    kept = list(lines)
    if len(kept) > _MOST_LINES:
        kept = [*kept[:_MOST_LINES], f"... ({_digest(kept)})"]
    return AsksRecord(step=step, text="\n".join(kept), session=_digest(shown))


def read_asks(requests: Sequence[ModelRequest], steps: Sequence[Step], session: SessionText) -> list[AsksRecord]:
    """Record the instructions of each step in which the model was asked.

    What the model replied, and what an earlier step made of the session, comes back in later requests and is no
    instruction either.
    """
    known = SessionText(beside=session)
    found = []
    for number in sorted({request.step for request in requests}):
        mine = [request for request in requests if request.step == number]
        if 0 < number <= len(steps):
            known.add(text for message in steps[number - 1].messages for text in said(message).texts)
        found.append(_step(mine, number, known))
    return found
