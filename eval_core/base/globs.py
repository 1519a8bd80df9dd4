"""Watched files: paths matched by the rules of .gitignore, and a digest of what they match in a tree."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from pathspec import GitIgnoreSpec

_NEVER = frozenset({".git", "__pycache__", "node_modules", ".venv"})


def matches(path: str, globs: Iterable[str]) -> bool:
    """Tell whether a path fits the globs: `**` spans folders, and a folder means all that is in it."""
    return _spec(tuple(globs)).match_file(path)


@cache
def _spec(globs: tuple[str, ...]) -> GitIgnoreSpec:
    # Globs are relative to the root of the tree, also one without a slash, and "!" and "#" are parts of names.
    return GitIgnoreSpec.from_lines("/" + glob.removeprefix("./").lstrip("/") for glob in globs)


def watched_digest(tree: Path, globs: Sequence[str], skipped: Sequence[Path] = ()) -> str | None:
    """Return the digest over names and contents of the watched files; None where none is watched or found.

    `skipped` are folders inside the tree that do not belong to it, such as one that holds another tree.
    """
    sums = hashlib.sha256()
    count = 0
    for name in watched_files(tree, globs, skipped):
        content = hashlib.sha256((tree / name).read_bytes()).hexdigest()
        sums.update(f"{name}\0{content}\n".encode("utf-8", "surrogateescape"))
        count += 1
    return sums.hexdigest() if count else None


def watched_files(tree: Path, globs: Sequence[str], skipped: Sequence[Path] = ()) -> Iterator[str]:
    """Yield the watched files of a tree, in order."""
    if not globs or not tree.is_dir():
        return
    left_out = {path.resolve() for path in skipped}
    names = _in_git(tree)
    for name in sorted(_in_folder(tree) if names is None else names):
        path = tree / name
        if matches(name, globs) and path.is_file() and left_out.isdisjoint(path.resolve().parents):
            yield name


def _in_git(tree: Path) -> list[str] | None:
    """Return the files of a checkout, without what git ignores: builds leave files behind that no commit has."""
    if not (tree / ".git").exists():
        return None
    command = ["git", "-C", str(tree), "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        return None
    return sorted(set(os.fsdecode(done.stdout).split("\0")) - {""}) if done.returncode == 0 else None


def _in_folder(tree: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name not in _NEVER]
        yield from (Path(folder, name).relative_to(tree).as_posix() for name in files)
