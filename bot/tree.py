"""The files of a commit, fetched as data: nothing of them is run, and nothing of them gets out of its folder."""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from bot.github import TARBALL_LIMIT, GitHub
from eval_core.errors import UserError

__all__ = ["TreeLimits", "fetch_tree", "unpack"]


@dataclass(frozen=True)
class TreeLimits:
    """How much a commit's files may weigh."""

    download: int = TARBALL_LIMIT
    unpacked: int = 1 << 30
    file: int = 100 << 20
    entries: int = 50_000
    path: int = 1_000


def fetch_tree(github: GitHub, sha: str, into: Path, limits: TreeLimits | None = None) -> Path:
    """Download a commit by its SHA and unpack it into an empty or absent folder, which is returned."""
    limits = limits or TreeLimits()
    with tempfile.TemporaryDirectory(prefix="tree-") as folder:
        archive = Path(folder, "tree.tar.gz")
        github.tarball(sha, archive, limits.download)
        return unpack(archive, sha, into, limits)


def unpack(archive: Path, sha: str, into: Path, limits: TreeLimits | None = None) -> Path:
    """Unpack GitHub's archive of a commit without its top folder; anything odd refuses the whole of it."""
    limits = limits or TreeLimits()
    what = f"files of commit {sha[:7]}"
    into.mkdir(parents=True, exist_ok=True)
    if any(into.iterdir()):
        raise UserError(f"{into}: not empty; the {what} need a folder of their own")
    try:
        with gzip.open(archive) as raw, tarfile.open(fileobj=_Capped(raw, limits, what), mode="r|") as tar:
            _extract(tar, sha, into, limits, what)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise UserError(f"{what}: the archive is broken or refused: {exc}") from None
    except OSError as exc:
        raise UserError(f"{what}: cannot be unpacked into {into}: {exc.strerror or exc}") from None
    return into


def _extract(tar: tarfile.TarFile, sha: str, into: Path, limits: TreeLimits, what: str) -> None:
    links: list[tarfile.TarInfo] = []
    seen: set[str] = set()
    size = 0
    for member in tar:
        # git writes the commit's SHA into the archive's header: the answer must be to our question.
        named = tar.pax_headers.get("comment")
        if named is not None and named != sha:
            raise UserError(f"{what}: the archive is of another commit ({named[:40]!r}); refused")
        name = _inside(member.name, limits, what)
        if name is None:
            continue
        if len(seen) >= limits.entries:
            raise UserError(f"{what}: more than {limits.entries:,} entries; refused")
        if name in seen:
            raise UserError(f"{what}: {name!r} is there twice; refused")
        seen.add(name)
        if member.issym():
            links.append(member.replace(name=name, deep=False))
        elif member.isreg() or member.isdir():
            size += member.size
            if member.size > limits.file or size > limits.unpacked:
                raise UserError(
                    f"{what}: {name!r} makes it larger than allowed ({limits.file:,} bytes a file, "
                    f"{limits.unpacked:,} in all); refused"
                )
            tar.extract(member.replace(name=name, deep=False), into, filter="data")
        else:
            raise UserError(f"{what}: {name!r} is neither a file, a folder nor a symbolic link; refused")
    if not seen:
        raise UserError(f"{what}: the archive is empty; refused")
    # Links come last, so that no file was ever written through one.
    for link in links:
        _link(link, into, what)
    root = into.resolve()
    for link in links:
        try:
            arrives = (into / link.name).resolve()
        except (OSError, RuntimeError):
            continue  # A circle leads nowhere at all.
        if not arrives.is_relative_to(root):
            raise UserError(f"{what}: the link {link.name!r} leads out of the tree; refused")


def _inside(path: str, limits: TreeLimits, what: str) -> str | None:
    """Return a member's path below the top folder, None for the top folder itself."""
    parts = path.rstrip("/").split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise UserError(f"{what}: the path {path[:80]!r} is not inside the tree; refused")
    if len(path.encode(errors="surrogateescape")) > limits.path:
        raise UserError(f"{what}: a path is longer than {limits.path} bytes ({path[:80]!r}...); refused")
    return "/".join(parts[1:]) or None


def _link(link: tarfile.TarInfo, into: Path, what: str) -> None:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(link.name), link.linkname))
    if posixpath.isabs(link.linkname) or target == ".." or target.startswith("../"):
        raise UserError(
            f"{what}: the link {link.name!r} leads out of the tree (to {link.linkname[:80]!r}); remove it from the PR"
        )
    place = into / link.name
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.parent.resolve().is_relative_to(into.resolve()):
        raise UserError(f"{what}: the link {link.name!r} lies behind another link; refused")
    place.symlink_to(link.linkname)


class _Capped(io.RawIOBase):
    """A stream that stops a small archive from growing without end, headers and padding included."""

    def __init__(self, raw: gzip.GzipFile, limits: TreeLimits, what: str) -> None:
        self._raw = raw
        # Each entry adds a header or three of 512 bytes and up to 511 bytes of padding.
        self._left = limits.unpacked + limits.entries * 4_096
        self._what = what

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise UserError(f"{self._what}: the archive unpacks to more than allowed; refused")
        return data
