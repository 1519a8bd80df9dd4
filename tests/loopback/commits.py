"""Commits and trees, as far as the API shows them: content-addressed, with ancestry and diffs."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

__all__ = ["FileDiff", "History", "StoredCommit", "blob_sha"]

Tree = Mapping[str, bytes]


def blob_sha(content: bytes) -> str:
    """Return a blob's SHA as git computes it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def tree_sha(tree: Tree) -> str:
    """Return one SHA for a whole tree; equal trees have equal ones."""
    listing = "".join(f"{path}\0{blob_sha(content)}\n" for path, content in sorted(tree.items()))
    return hashlib.sha1(listing.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class StoredCommit:
    """A commit with all of its files."""

    sha: str
    tree: Tree
    parents: tuple[str, ...]
    message: str
    author: str
    date: datetime

    @property
    def tree_sha(self) -> str:
        """The SHA of the files."""
        return tree_sha(self.tree)


@dataclass(frozen=True)
class FileDiff:
    """One changed file between two trees."""

    path: str
    status: str
    sha: str
    additions: int
    deletions: int
    previous: str | None = None
    patch: str | None = None


@dataclass
class History:
    """All commits of a repository and its forks."""

    commits: dict[str, StoredCommit] = field(default_factory=dict)
    tried: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """The merges that were tried, by the base's branch and the head; None where they conflict."""

    def add(self, tree: Tree, parents: tuple[str, ...], message: str, author: str) -> StoredCommit:
        """Store a commit; the same files on the same parent give a new SHA each time, as on GitHub."""
        date = datetime.now(UTC).replace(microsecond=0)
        seed = "\0".join([tree_sha(tree), *parents, message, author, str(len(self.commits))])
        sha = hashlib.sha1(seed.encode(), usedforsecurity=False).hexdigest()
        commit = StoredCommit(sha, dict(tree), parents, message, author, date)
        self.commits[sha] = commit
        return commit

    def ancestors(self, sha: str) -> set[str]:
        """Return a commit and everything before it."""
        found: set[str] = set()
        waiting = [sha]
        while waiting:
            current = waiting.pop()
            if current not in found and current in self.commits:
                found.add(current)
                waiting.extend(self.commits[current].parents)
        return found

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the nearest common ancestor."""
        theirs = self.ancestors(other)
        level = [one]
        while level:
            for sha in level:
                if sha in theirs:
                    return sha
            level = [parent for sha in level if sha in self.commits for parent in self.commits[sha].parents]
        return None

    def tried_merge(self, branch: str, tip: str, head: str) -> str | None:
        """Return the commit of a merge that was tried, file by file; None where both sides changed the same file.

        As on GitHub, a new head is tried and a branch that moves on is not: its merge is then of an old tip.
        """
        if (branch, head) not in self.tried:
            tree = self._merged(tip, head)
            made = None if tree is None else self.add(tree, (tip, head), f"Merge {head} into {tip}", "web-flow")
            self.tried[branch, head] = made.sha if made is not None else None
        return self.tried[branch, head]

    def _merged(self, base: str, head: str) -> Tree | None:
        fork = self.merge_base(head, base)
        if fork is None or head not in self.commits:
            return None
        old, ours, theirs = (self.commits[sha].tree for sha in (fork, base, head))
        merged: dict[str, bytes] = {}
        for path in {*old, *ours, *theirs}:
            was, here, there = (tree.get(path) for tree in (old, ours, theirs))
            if here not in (was, there) and there != was:
                return None
            kept = there if here == was else here
            if kept is not None:
                merged[path] = kept
        return merged

    def diff(self, base: str, head: str) -> list[FileDiff]:
        """Return the changed files in path order; a file moved unchanged is a rename."""
        old, new = self.commits[base].tree, self.commits[head].tree
        gone = {blob_sha(old[path]): path for path in sorted(old.keys() - new.keys())}
        files: list[FileDiff] = []
        moved: set[str] = set()
        for path in sorted(new.keys() - old.keys()):
            source = gone.get(blob_sha(new[path]))
            if source is not None and source not in moved:
                moved.add(source)
                files.append(FileDiff(path, "renamed", blob_sha(new[path]), 0, 0, source))
            else:
                files.append(FileDiff(path, "added", blob_sha(new[path]), _lines(new[path]), 0))
        files += [
            FileDiff(path, "removed", blob_sha(old[path]), 0, _lines(old[path]))
            for path in old.keys() - new.keys() - moved
        ]
        files += [
            FileDiff(
                path,
                "modified",
                blob_sha(new[path]),
                _lines(new[path]),
                _lines(old[path]),
                patch=_patch(old[path], new[path]),
            )
            for path in old.keys() & new.keys()
            if old[path] != new[path]
        ]
        return sorted(files, key=lambda file: file.path)

    def archive(self, sha: str, top: str) -> bytes:
        """Return the tar.gz of a commit as git writes it: one top folder, the SHA in the header."""
        packed = io.BytesIO()
        with (
            gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": sha}) as tar,
        ):
            folder = tarfile.TarInfo(top)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o775
            tar.addfile(folder)
            for path, content in sorted(self.commits[sha].tree.items()):
                info = tarfile.TarInfo(f"{top}/{path}")
                info.size, info.mode = len(content), 0o664
                tar.addfile(info, io.BytesIO(content))
        return packed.getvalue()


def _lines(content: bytes) -> int:
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content))


def _patch(old: bytes, new: bytes) -> str | None:
    """Return what changed as git shows it, without the names; nothing of what is not text."""
    try:
        sides = [side.decode().splitlines() for side in (old, new)]
    except UnicodeDecodeError:
        return None
    return "\n".join(list(difflib.unified_diff(*sides, lineterm=""))[2:])
