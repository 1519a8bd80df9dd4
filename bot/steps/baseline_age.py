"""The age of a baseline in days and commits, for the comment and the scheduled reminder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from eval_core.base.config import Config
from eval_core.base.numbers import counted
from eval_core.domain.measurement import Provenance
from eval_core.storage.baselines import list_baselines, load_baseline

__all__ = ["CommitsSince", "age_words", "old_baselines"]

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


def old_baselines(config: Config, root: Path, commits_since: CommitsSince) -> list[str]:
    """Return a sentence for each stored baseline that is older than the configuration allows."""
    limit = config.bot.remind_after_days
    found = []
    for path in list_baselines(root / config.baselines) if limit is not None else ():
        provenance = load_baseline(path)[0].provenance
        days = _days(provenance)
        if days is not None and limit is not None and days > limit:
            found.append(f"{config.baselines}/{path.name} is {age_words(provenance, commits_since)}.")
    return found


def _days(provenance: Provenance) -> int | None:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(provenance.date)).days
    except (TypeError, ValueError):
        return None
