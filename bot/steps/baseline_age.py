"""The age of a baseline in days and commits, for the comment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from eval_core.base.numbers import counted
from eval_core.domain.measurement import Provenance

CommitsSince = Callable[[str], int | None]
"""Tells how many commits the base branch has had since one; None if GitHub does not say."""


def age_words(provenance: Provenance, commits_since: CommitsSince) -> str:
    """Say how old a baseline is: days, and commits of the base branch since; empty if nothing is known of it."""
    words = []
    days = _days(provenance)
    if days is not None:
        words.append(f"{counted(days, 'day')} old" if days else "measured today")
    behind = commits_since(provenance.source_sha) if provenance.source_sha else None
    if behind:
        words.append(f"{counted(behind, 'commit')} behind")
    return ", ".join(words)


def _days(provenance: Provenance) -> int | None:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(provenance.date)).days
    except (TypeError, ValueError):
        return None
