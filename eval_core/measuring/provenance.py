"""Where a result comes from: the commit of its source, the time, the version of this program."""

from __future__ import annotations

import datetime
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from eval_core.domain.target import CompressorSource


def now() -> datetime.datetime:
    """Return the current time in UTC."""
    return datetime.datetime.now(datetime.UTC)


def package_version() -> str:
    """Return the installed version of this program."""
    try:
        return version("compression-eval")
    except PackageNotFoundError:
        return "unreleased"


def environment(source: CompressorSource) -> dict[str, str]:
    """Return what a run of this compressor depends on beside its own files."""
    return {"Python": platform.python_version(), "system": platform.platform(terse=True), **source.packages}


def source_commit(tree: Path) -> tuple[str | None, bool]:
    """Return the commit a folder is at and whether it has uncommitted changes; (None, False) outside of git."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    sha = git("rev-parse", "HEAD")
    return sha, bool(sha and git("status", "--porcelain", "--untracked-files=no"))
