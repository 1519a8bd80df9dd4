"""How old a baseline is, in days and commits; said in the comment, and by a scheduled reminder where one is set up."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bot.github.repository import GitHub
from eval_core.base.config import Config
from eval_core.base.errors import IncompleteError, UserError
from eval_core.domain.measurement import Provenance
from eval_core.storage.baselines import list_baselines, load_baseline

__all__ = ["age_words", "old_baselines"]


def age_words(github: GitHub, provenance: Provenance, sha: str) -> str:
    """Say how old a baseline is at a commit; empty if nothing is known of it."""
    words = []
    days = _days(provenance)
    if days is not None:
        words.append(f"{days} day{'' if days == 1 else 's'} old")
    if provenance.source_sha:
        try:
            behind = github.compare(provenance.source_sha, sha).ahead
            words.append(f"{behind} commit{'' if behind == 1 else 's'} behind")
        except (UserError, IncompleteError):
            pass
    return ", ".join(words)


def old_baselines(github: GitHub, config: Config, root: Path, sha: str) -> list[str]:
    """Return a sentence for each stored baseline that is older than the configuration allows."""
    limit = config.bot.remind_after_days
    found = []
    for path in list_baselines(root / config.baselines) if limit is not None else ():
        provenance = load_baseline(path)[0].provenance
        days = _days(provenance)
        if days is not None and limit is not None and days > limit:
            found.append(f"{config.baselines}/{path.name} is {age_words(github, provenance, sha)}.")
    return found


def _days(provenance: Provenance) -> int | None:
    try:
        return (datetime.now(UTC) - datetime.fromisoformat(provenance.date)).days
    except (TypeError, ValueError):
        return None
