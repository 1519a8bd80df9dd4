"""Why an evaluation left no result: one sentence beside the results, from the job that failed to the one that tells."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["forget_error", "is_small_file", "keep_error", "read_error"]

_FILE = "error.txt"
_LARGEST = 8_000


def keep_error(results: Path, message: str) -> None:
    """Leave word of why the evaluation ended."""
    results.mkdir(parents=True, exist_ok=True)
    (results / _FILE).write_text(message[: _LARGEST // 4], encoding="utf-8")


def forget_error(results: Path) -> None:
    """Take the word back: there is a result."""
    (results / _FILE).unlink(missing_ok=True)


def read_error(results: Path) -> str | None:
    """Return the word that was left, if it is what we leave; whoever shows it makes it harmless."""
    path = results / _FILE
    return path.read_text(encoding="utf-8", errors="replace").strip() if is_small_file(path, _LARGEST) else None


def is_small_file(path: Path, limit: int) -> bool:
    """Tell whether there is a regular file, not a link or anything else, of at most so many bytes."""
    try:
        about = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and about.st_size <= limit
