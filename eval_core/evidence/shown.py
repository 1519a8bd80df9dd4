"""Shown: what the compressor put before its own model.

Every request passes the gateway. A fact that was at risk and is in no request cannot be in the summary: it was cut
before the model saw it. A fact that was shown and is lost was not written down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence

from eval_core.base.files import canonical
from eval_core.base.messages import content_text, full_text
from eval_core.base.tokens import count_messages
from eval_core.domain.compression import ModelRequest
from eval_core.domain.record import ShownRecord
from eval_core.evidence.census import CensusFact
from eval_core.evidence.facts import Haystack
from eval_core.evidence.form import labels
from eval_core.evidence.retention import fact_stands

__all__ = ["read_shown"]

_MOST_HEADINGS = 60


def read_shown(
    requests: Sequence[ModelRequest], facts: Sequence[CensusFact], session_lines: Collection[str]
) -> ShownRecord:
    """Record the requests of one compression; `session_lines` are not the compressor's own words."""
    texts = [full_text(message) for request in requests for message in request.messages]
    shown = Haystack.of_all(texts)
    asked = [content_text(message) for request in requests for message in request.messages]
    headings = list(dict.fromkeys(label for text in asked for label in labels(text, session_lines)))
    return ShownRecord(
        calls=len(requests),
        tokens=sum(count_messages(request.messages) for request in requests),
        digest=hashlib.sha256(canonical([list(request.messages) for request in requests])).hexdigest()[:16],
        headings=headings[:_MOST_HEADINGS],
        facts="".join("1" if fact_stands(fact, shown) else "0" for fact in facts) if requests else "",
    )
