"""What the changed files speak of: lines of watched files that are in one tree and not in the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from eval_core.base.globs import watched_files
from eval_core.domain.extra import Unexercised

_SPEAKS_OF: dict[Unexercised, re.Pattern[str]] = {
    "focus": re.compile(r"focus_?topic", re.IGNORECASE),
    "trigger": re.compile(r"should_?compress|should_?compact", re.IGNORECASE),
}


def _lines(tree: Path, globs: Sequence[str], skipped: Sequence[Path]) -> set[tuple[str, str]]:
    return {
        (name, line.strip())
        for name in watched_files(tree, globs, skipped)
        for line in (tree / name).read_text(encoding="utf-8", errors="replace").splitlines()
    }


def touched_by(base: Path, tree: Path, globs: Sequence[str], skipped: Sequence[Path] = ()) -> tuple[Unexercised, ...]:
    """Return what lines are about that a change adds or removes."""
    changed = _lines(base, globs, (*skipped, tree)) ^ _lines(tree, globs, skipped)
    return tuple(name for name, pattern in _SPEAKS_OF.items() if any(pattern.search(line) for _, line in changed))
