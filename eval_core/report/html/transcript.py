"""The session with what became of each message: kept verbatim, summarised or dropped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup

from eval_core.fixture.schema import Fixture
from eval_core.messages import full_text
from eval_core.report.html.paint import Needle, fact_spans, paint
from eval_core.report.html.text import clip, slug, visible
from eval_core.run.record import RunRecord

__all__ = ["TRACE", "Block", "MessageView", "StateWord", "message_anchor", "message_views", "strip"]

StateWord = Literal["verbatim", "summarised", "dropped"]
TRACE = 0.1
"""A message counts as summarised where at least this share of its own words stands in the text written for it."""
_LONGEST = 12_000
_RARE = 3  # a word in more messages than this says nothing about one of them
_WORD = re.compile(r"[^\W_](?:[\w./:-]*\w)?")


@dataclass(frozen=True)
class MessageView:
    """One message of the session and its fate on both sides."""

    number: int
    anchor: str
    role: str
    text: Markup
    size: int
    candidate: StateWord | None
    base: StateWord | None
    trace: str
    """How many of its own words the candidate's new text still holds."""
    segment: int | None
    """The number of the compression that happened after this message, in a chained session."""


@dataclass(frozen=True)
class Block:
    """A stretch of messages with the same fate, as a part of the session's length in percent."""

    start: float
    width: float
    state: StateWord
    words: str


def message_anchor(fixture: str, number: int) -> str:
    """Return the id of a message in the page."""
    return slug("msg", fixture, str(number))


def _own_words(texts: Sequence[str]) -> list[set[str]]:
    words = [{word for word in _WORD.findall(text.lower()) if len(word) > 3} for text in texts]
    spread = Counter(word for found in words for word in found)
    return [{word for word in found if spread[word] <= _RARE} for found in words]


def _fates(texts: Sequence[str], run: RunRecord | None) -> list[tuple[StateWord | None, str]]:
    """Tell for each message what became of it; that a summary covers it is read from the words they share."""
    if run is None:
        return [(None, "")] * len(texts)
    verbatim, written = set(run.verbatim), set(_WORD.findall(run.summary.lower()))
    fates: list[tuple[StateWord | None, str]] = []
    for number, own in enumerate(_own_words(texts)):
        if number in verbatim:
            fates.append(("verbatim", ""))
            continue
        found = len(own & written)
        summarised = bool(found) and found >= TRACE * len(own)
        words = f"{found} of its {len(own)} own words in the new text"
        fates.append(("summarised" if summarised else "dropped", words))
    return fates


def message_views(
    fixture: Fixture, candidate: RunRecord | None, base: RunRecord | None, needles: dict[int, list[Needle]]
) -> list[MessageView]:
    """Return the whole session; facts are marked in the messages that are their evidence."""
    texts = [full_text(message) for message in fixture.messages]
    ours, theirs = _fates(texts, candidate), _fates(texts, base)
    views = []
    for number, (message, text) in enumerate(zip(fixture.messages, texts, strict=True)):
        shown = visible(clip(text, _LONGEST))
        views.append(
            MessageView(
                number=number,
                anchor=message_anchor(fixture.name, number),
                role=str(message.get("role", "?")),
                text=paint(shown, fact_spans(shown, needles.get(number, []))),
                size=len(text),
                candidate=ours[number][0],
                base=theirs[number][0],
                trace=ours[number][1],
                segment=fixture.segments.index(number + 1) + 1 if number + 1 in fixture.segments else None,
            )
        )
    return views


def strip(messages: Sequence[MessageView], side: Literal["base", "candidate"]) -> list[Block]:
    """Draw neighbouring messages with the same fate together."""
    total = sum(message.size + 1 for message in messages) or 1
    blocks: list[Block] = []
    at, start, first = 0.0, 0.0, 0
    for index, message in enumerate(messages):
        state = getattr(message, side)
        at += (message.size + 1) / total * 100
        following = getattr(messages[index + 1], side) if index + 1 < len(messages) else None
        if state is not None and following != state:
            words = f"message {first}" if first == index else f"messages {first} to {index}"
            blocks.append(Block(round(start, 3), round(at - start, 3), state, f"{words}: {state}"))
        if following != state:
            start, first = at, index + 1
    return blocks
