"""Scrubbing: secrets and people taken out of recorded sessions, facts left in."""

from __future__ import annotations

from eval_core.suite.scrub.identities import Candidate, Identities, harvest, load_identities
from eval_core.suite.scrub.pipeline import Scrubbed, ScrubOptions, ScrubReport, scrub_fixture, session_texts

__all__ = [
    "Candidate",
    "Identities",
    "ScrubOptions",
    "ScrubReport",
    "Scrubbed",
    "harvest",
    "load_identities",
    "scrub_fixture",
    "session_texts",
]
