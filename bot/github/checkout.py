"""Which repository on GitHub a checkout on this machine is of."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

# A server's address; a path on this machine says nothing that a workflow could install from.
_REMOTE = re.compile(r"^(?:(?:https?|ssh)://[^/]+/|[^/@]+@[^/:]+:)([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?$")


def own_repository(root: Path) -> str | None:
    """Return OWNER/REPO of a checkout, by its remote."""
    remote = _REMOTE.match(git(root, "remote", "get-url", "origin"))
    return remote[1] if remote else None


def git(root: Path, *words: str) -> str:
    """Return what git says; nothing where there is no git."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()
