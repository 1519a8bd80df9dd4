"""Which changed files make an evaluation worth its cost, and which are never taken from a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from eval_core.config import CONFIG_FILE, Config

__all__ = ["EVALUATOR", "base_only", "matches"]

EVALUATOR = ("eval_core/**", "bot/**", "scripts/**", "action.yml", "action.yaml")
"""The evaluator's own code, where it lives in the repository that it evaluates."""

_DEPENDENCIES = (
    "**/pyproject.toml",
    "**/setup.py",
    "**/setup.cfg",
    "**/requirements*.txt",
    "**/requirements/*.txt",
    "**/constraints*.txt",
    "**/environment.y*ml",
    "**/Pipfile",
    "**/*.lock",
    "**/package.json",
    "**/package-lock.json",
    "**/npm-shrinkwrap.json",
    "**/pnpm-lock.yaml",
    "**/.python-version",
)


def matches(path: str, globs: Iterable[str]) -> bool:
    """Tell whether a path fits one of the globs; `**` spans folders, and a folder means all that is in it."""
    return any(_pattern(glob).fullmatch(path) for glob in globs)


def base_only(path: str, config: Config, evaluator: Sequence[str] = EVALUATOR) -> str | None:
    """Say what a changed file is if its version on the base branch is used instead; None if the PR's counts."""
    folders = {"fixture": config.fixtures, "probe": config.probes, "baseline": config.baselines}
    for kind, folder in folders.items():
        if matches(path, [f"{folder.strip('/')}/**"]):
            return kind
    if path == CONFIG_FILE:
        return "configuration"
    if matches(path, [".github/**"]):
        return "workflow"
    if matches(path, _DEPENDENCIES):
        return "dependencies"
    # The subject itself may live inside the evaluator's packages; the watch list says so.
    if matches(path, evaluator) and not matches(path, config.watch):
        return "evaluator"
    return None


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    glob = glob.removeprefix("./")
    if glob.endswith("/"):
        glob += "**"
    parts = []
    for piece in re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", glob):
        match piece:
            case "**/":
                parts.append("(?:.*/)?")
            case "/**":
                parts.append("/.*")
            case "**":
                parts.append(".*")
            case "*":
                parts.append("[^/]*")
            case "?":
                parts.append("[^/]")
            case _:
                parts.append(re.escape(piece))
    # "src/compressor" without a wildcard may name a folder as well as a file.
    tail = "" if glob.endswith("*") else "(?:/.*)?"
    return re.compile("".join(parts) + tail, re.DOTALL)
