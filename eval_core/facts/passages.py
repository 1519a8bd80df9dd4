"""A text taken apart into sentences and items of lists, each with the heading that it is under."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from eval_core.facts.clauses import Clause

_CUT = re.compile(r"[,;:!?()]+(?:\s+|$)|\.(?:\s+|$)|\s[-–—]+\s")


@dataclass(frozen=True)
class Statement:
    """A sentence or an item of a list, with the heading that it is under."""

    text: str
    heading: str = ""

    @cached_property
    def whole(self) -> Clause:
        return Clause(self.text)

    @cached_property
    def clauses(self) -> list[Clause]:
        """The sentence cut at its punctuation."""
        return [Clause(part.strip()) for part in _CUT.split(self.text) if part.strip()]


_HEADING = re.compile(
    r"^(?:#{1,6}\s+(?P<marked>.+?)|\*\*(?P<bold>[^*]{3,60})\*\*:?|(?P<label>[A-Z][\w /&-]{2,40}):)\s*$"
)
_LABEL = re.compile(r"^\*{0,2}([A-Z][\w /&-]{2,30}?)\*{0,2}:\*{0,2}\s+(?=\S)")
_BULLET = re.compile(r"^(?:[-*•>]\s+|\d+[.)]\s+|\[(?:user|assistant|system|tool)\]:?\s+)+", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[^\W\d_]|[\"'`(])")


def passages(text: str) -> list[Statement]:
    """Take a text apart into sentences and items of lists."""
    found, heading = [], ""
    for line in text.splitlines():
        if match := _HEADING.match(line.strip()):
            heading = match["marked"] or match["bold"] or match["label"]
            continue
        body = _BULLET.sub("", line.strip())
        label = _LABEL.match(body)
        found += [
            Statement(part, f"{heading}: {label[1]}" if label else heading)
            for part in _SENTENCE.split(body)
            if part.strip()
        ]
    return found
