"""Shown: what the compressor put before its own model.

Every request passes the gateway. A fact that was at risk and is in no request cannot be in the summary: it was cut
before the model saw it. A fact that was shown and is lost was not written down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from eval_core.base.files import canonical
from eval_core.base.messages import content_text, full_text
from eval_core.base.tokens import count_messages
from eval_core.domain.compression import ModelRequest
from eval_core.domain.probe import Fact
from eval_core.domain.record import ShownRecord
from eval_core.evidence.census import CensusFact
from eval_core.evidence.facts import Haystack, holds
from eval_core.evidence.form import labels
from eval_core.evidence.retention import fact_stands

__all__ = ["Requests"]

_MOST_HEADINGS = 60


@dataclass(frozen=True)
class Requests:
    """What one compression put before its own model."""

    requests: Sequence[ModelRequest]

    @cached_property
    def text(self) -> Haystack:
        """Everything that was shown."""
        return Haystack.of_all(full_text(message) for request in self.requests for message in request.messages)

    def sign(self, fact: Fact | CensusFact) -> str:
        """Return 1 for a fact in a request, 0 for one in none; nothing where no model was asked."""
        if not self.requests:
            return ""
        stands = fact_stands(fact, self.text) if isinstance(fact, CensusFact) else holds(fact, self.text)
        return "1" if stands else "0"

    def record(self, facts: Sequence[CensusFact], session_lines: Collection[str]) -> ShownRecord:
        """Record the requests; `session_lines` are not the compressor's own words."""
        asked = [content_text(message) for request in self.requests for message in request.messages]
        headings = list(dict.fromkeys(label for text in asked for label in labels(text, session_lines)))
        return ShownRecord(
            calls=len(self.requests),
            tokens=sum(count_messages(request.messages) for request in self.requests),
            digest=hashlib.sha256(canonical([list(request.messages) for request in self.requests])).hexdigest()[:16],
            headings=headings[:_MOST_HEADINGS],
            facts="".join(map(self.sign, facts)),
        )
