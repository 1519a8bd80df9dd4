"""All detectors together: what they find in one readable piece of a text."""

from __future__ import annotations

from functools import lru_cache

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.personal_numbers import PERSONAL_DETECTORS
from eval_core.suite.scrub.secrets import SECRET_DETECTORS

__all__ = ["DETECTORS", "context_hits"]

DETECTORS = (*SECRET_DETECTORS, *PERSONAL_DETECTORS)


# A session is looked at several times: names are gathered, then learned, then replaced, then audited. Most pieces are
# the same each time, and the patterns are what a scrub's time goes into.
@lru_cache(maxsize=50_000)
def context_hits(text: str, key: str | None) -> tuple[Hit, ...]:
    """Run every detector that judges by form and place."""
    return tuple(hit for detector in DETECTORS for hit in detector(text, key))
