"""Shown: what the compressor put before its own model.

Every request passes the gateway. A fact that was at risk and is in no request cannot be in the summary: it was cut
before the model saw it. A fact that was shown and is lost was not written down, unless it was in an earlier summary
that was not passed on to the model at the next compression.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from eval_core.base.files import canonical
from eval_core.base.messages import Message, content_text, full_text
from eval_core.base.tokens import count_messages
from eval_core.domain.compression import ModelRequest
from eval_core.domain.probe import Fact
from eval_core.domain.record import ShownRecord
from eval_core.facts.census import CensusFact
from eval_core.facts.haystack import Haystack, holds
from eval_core.facts.retention import fact_stands
from eval_core.facts.verbatim import Kept
from eval_core.strands.form_record import labels

__all__ = ["Requests"]

_MOST_HEADINGS = 60


_FEWEST_PAIRS = 4
_MARK = re.compile(r"[^\n\"\\\\]{24,60}")  # what no template and no JSON changes


def _stands(fact: Fact | CensusFact, text: Haystack) -> bool:
    return fact_stands(fact, text) if isinstance(fact, CensusFact) else holds(fact, text)


@dataclass(frozen=True)
class Requests:
    """What one compression put before its own model."""

    requests: Sequence[ModelRequest]
    original: Sequence[Message] = ()
    ends: Sequence[int] = ()
    """Where the segments of the session end."""
    states: Sequence[Sequence[Message]] = ()
    """The state after each step."""

    @cached_property
    def text(self) -> Haystack:
        """Everything that was shown."""
        return _text(self.requests)

    @cached_property
    def _passes(self) -> list[tuple[Haystack, Haystack, Haystack]]:
        """For each step after the first: what only the summary before it says, its requests, and its own state."""
        found = []
        for step, (before, after) in enumerate(pairwise(self.states), 1):
            asked = [request for request in self.requests if request.step == step]
            if asked:
                said = Kept(self.original[: self.ends[step - 1]], before).own
                found.append((said, _text(asked), Haystack.of_messages(after)))
        return found

    def sign(self, fact: Fact | CensusFact) -> str:
        """Return the sign of `ShownRecord.facts`; nothing where no model was asked."""
        if not self.requests:
            return ""
        if not _stands(fact, self.text):
            return "0"
        dropped = (
            _stands(fact, said) and not _stands(fact, asked) and not _stands(fact, after)
            for said, asked, after in self._passes
        )
        return "p" if any(dropped) else "1"

    def _carried(self, facts: Sequence[Fact | CensusFact]) -> Iterator[float | None]:
        for said, asked, _ in self._passes:
            held = [fact for fact in facts if _stands(fact, said)]
            yield round(sum(_stands(fact, asked) for fact in held) / len(held), 4) if held else None

    def _order(self) -> float | None:
        """Compare the places of neighbouring messages in each request."""
        marks = [found.group() for message in self.original if (found := _MARK.search(content_text(message)))]
        marks = [mark for mark, count in Counter(marks).items() if count == 1]
        pairs = ordered = 0
        for request in self.requests:
            text = "\n".join(map(full_text, request.messages))
            places = [at for mark in marks if (at := text.find(mark)) >= 0]
            pairs += max(len(places) - 1, 0)
            ordered += sum(first < second for first, second in pairwise(places))
        return round(ordered / pairs, 4) if pairs >= _FEWEST_PAIRS else None

    def record(
        self, asked_for: Sequence[Fact], found: Sequence[CensusFact], session_lines: Collection[str]
    ) -> ShownRecord:
        """Record the requests; `session_lines` are not the compressor's own words."""
        asked = [content_text(message) for request in self.requests for message in request.messages]
        headings = list(dict.fromkeys(label for text in asked for label in labels(text, session_lines)))
        return ShownRecord(
            calls=len(self.requests),
            tokens=sum(count_messages(request.messages) for request in self.requests),
            digest=hashlib.sha256(canonical([list(request.messages) for request in self.requests])).hexdigest()[:16],
            headings=headings[:_MOST_HEADINGS],
            facts="".join(map(self.sign, found)),
            carried=list(self._carried([*asked_for, *found])),
            order=self._order(),
        )


def _text(requests: Sequence[ModelRequest]) -> Haystack:
    return Haystack.of_all(full_text(message) for request in requests for message in request.messages)
