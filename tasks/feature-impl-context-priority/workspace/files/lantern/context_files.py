"""Choose the one context file of a project and turn it into prompt text."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

# First match wins. Joining all of them let a long file push a more important one out of the
# limit, and two files that contradict each other reached the model side by side.
CONTEXT_PRIORITY = (".lantern.md", "AGENTS.md", "CONTEXT.md", ".glowrules")
# Only lantern's own file is looked for above the working folder.
CLIMBING_NAME = ".lantern.md"
MAX_CLIMB = 24
HEAD_SHARE = 0.7
TAIL_SHARE = 0.2


@dataclass(frozen=True)
class ContextFile:
    """A context file that has something to say."""

    path: Path
    text: str


def _climb(cwd: Path) -> list[Path]:
    """Return the folder and its parents up to the git root, or the folder alone outside git."""
    folders: list[Path] = []
    for folder in (cwd, *cwd.parents)[: MAX_CLIMB + 1]:
        folders.append(folder)
        if (folder / ".git").exists():  # a file in a worktree
            return folders
    return [cwd]


def find_context_files(cwd: Path) -> list[Path]:
    """List the context files that apply to a folder, the one with the highest priority first."""
    found: list[Path] = []
    for name in CONTEXT_PRIORITY:
        folders = _climb(cwd) if name == CLIMBING_NAME else [cwd]
        found += [folder / name for folder in folders if (folder / name).is_file()][:1]
    return found


def choose_context_file(cwd: Path) -> ContextFile | None:
    """Return the first context file that is not blank; name the others in the log."""
    chosen: ContextFile | None = None
    skipped: list[str] = []
    for path in find_context_files(cwd):
        # utf-8-sig: str.strip() leaves a byte order mark, so a "blank" file would win.
        text = path.read_text(encoding="utf-8-sig", errors="replace").strip()
        if chosen is None and text:
            chosen = ContextFile(path, text)
        elif text:
            skipped.append(path.name)
    if chosen and skipped:
        # Debug only: the prompt is built anew on every turn.
        logger.debug("using %s, not reading %s", chosen.path.name, ", ".join(skipped))
    return chosen


def cut_middle(text: str, limit: int) -> str:
    """Keep the head and the tail of a text that is longer than the limit."""
    if len(text) <= limit:
        return text
    head = int(limit * HEAD_SHARE)
    tail = int(limit * TAIL_SHARE)
    dropped = len(text) - head - tail
    return f"{text[:head]}\n[... {dropped} characters left out ...]\n{text[-tail:]}"


def load_project_context(cwd: Path, limit: int) -> str:
    """Return the project context for the system prompt, or an empty text."""
    chosen = choose_context_file(cwd)
    if chosen is None:
        return ""
    return cut_middle(f"## {chosen.path.name}\n\n{chosen.text}", limit)
