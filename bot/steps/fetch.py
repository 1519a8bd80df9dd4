"""The fetch step: the pull request's tree and earlier artifacts, unpacked as hostile data."""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from bot.github.repository import TARBALL_LIMIT, WORKFLOW, GitHub
from bot.pull_request.ticket import Ticket, evaluation_artifact
from eval_core.base.errors import UserError
from eval_core.base.tar_files import open_folder, write_member
from eval_core.domain.shard import Shard
from eval_core.storage.results import BASE_FOLDER, CONTROL_FOLDER

# Unpacking an artifact: a zip that may have been written by somebody hostile.

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_FOLDERS = (BASE_FOLDER, CONTROL_FOLDER)
"""Below a result: the base branch, measured whole or as a control."""
_MOST_FILES = 2_000
_MOST_BYTES = 500 << 20
_CHUNK = 1 << 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What runners write, and all that Python unpacks piece by piece: of the others, one read can be gigabytes."""


def unpack_artifact(archive: Path, into: Path) -> list[str]:
    """Unpack regular files with plain names, within limits; of folders only those that a result has. Else refused."""
    names = []
    try:
        with zipfile.ZipFile(archive) as zipped:
            entries = [entry for entry in zipped.infolist() if not entry.filename.endswith("/")]
            if len(entries) > _MOST_FILES:
                raise UserError(f"{archive.name}: {len(entries)} files, more than {_MOST_FILES}; refused")
            room = _MOST_BYTES
            into.mkdir(parents=True, exist_ok=True)
            for entry in entries:
                kind = stat.S_IFMT(entry.external_attr >> 16)
                folder, _, name = entry.filename.rpartition("/")
                if folder not in ("", *_FOLDERS) or not _NAME.fullmatch(name) or kind not in (0, stat.S_IFREG):
                    raise UserError(f"{archive.name}: {entry.filename[:80]!r} is not a plain file name; refused")
                if entry.compress_type not in _METHODS:
                    raise UserError(
                        f"{archive.name}: {entry.filename!r} is neither stored nor deflated, as a runner packs; refused"
                    )
                (into / folder).mkdir(exist_ok=True)
                room = _copy(zipped, entry, into / entry.filename, room, archive.name)
                names.append(entry.filename)
    except FileExistsError as exc:
        raise UserError(f"{archive.name}: {Path(exc.filename).name!r} appears twice; refused") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as exc:
        # Broken or encrypted; a place before its beginning is an OSError.
        raise UserError(f"{archive.name}: not a zip that can be read: {exc}") from None
    return names


def _copy(zipped: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path, room: int, what: str) -> int:
    """Copy one file, counting what really comes out: the sizes that a zip states may be lies."""
    with zipped.open(entry) as source, path.open("xb") as target:
        while chunk := source.read(_CHUNK):
            room -= len(chunk)
            if room < 0:
                raise UserError(f"{what}: more than {_MOST_BYTES >> 20} MB unpacked; refused")
            target.write(chunk)
    return room


# The files of a commit, fetched as data: nothing of them is run, and nothing of them gets out of its folder.


_LATEST = 1 << 32
"""Seconds since 1970 that every file system can store."""
_HEADERS = 64 << 10
"""Bytes before a member's content: its header, its path and link in headers of their own, and what is read ahead."""


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
    open_folder(into)
    if any(into.iterdir()):
        raise UserError(f"{into}: not empty; the {what} need a folder of their own")
    try:
        with gzip.open(archive) as raw:
            stream = _Capped(raw, limits, what)
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                _extract(tar, stream, sha, into, limits, what)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error, ValueError, ArithmeticError) as exc:
        # The last two come from numbers in headers that are none, or too large for whom they are meant.
        raise UserError(f"{what}: the archive is broken or refused: {exc}") from None
    except OSError as exc:
        raise UserError(f"{what}: cannot be unpacked into {into}: {exc.strerror or exc}") from None
    return into


def _extract(tar: tarfile.TarFile, stream: _Capped, sha: str, into: Path, limits: TreeLimits, what: str) -> None:
    links: list[tarfile.TarInfo] = []
    seen: set[str] = set()
    size = 0
    for member in tar:
        _check_header(tar, member, sha, what)
        stream.expect(member.size if member.isreg() else 0)
        name = _inside(member.name, limits, what)
        if name is None:
            continue
        if len(seen) >= limits.entries:
            raise UserError(f"{what}: more than {limits.entries:,} entries; refused")
        if name in seen:
            raise UserError(f"{what}: {name!r} appears twice; refused")
        seen.add(name)
        if member.issym():
            member.name = name
            links.append(member)
        elif member.isreg() or member.isdir():
            size += member.size
            if member.size > limits.file or size > limits.unpacked:
                raise UserError(
                    f"{what}: {name!r} makes it larger than allowed ({limits.file:,} bytes a file, "
                    f"{limits.unpacked:,} in all); refused"
                )
            # A commit may have any date; one that no file can have changes nothing about the files.
            date = member.mtime if 0 <= member.mtime < _LATEST else 0
            write_member(tar, member, into / name, date)
        else:
            raise UserError(f"{what}: {name!r} is neither a file, a folder nor a symbolic link; refused")
    if not seen:
        raise UserError(f"{what}: the archive is empty; refused")
    # Links come last, so that no file was ever written through one.
    _make_links(links, into, what)


def _check_header(tar: tarfile.TarFile, member: tarfile.TarInfo, sha: str, what: str) -> None:
    # git writes the commit's SHA into the archive's header: the answer must be to our question.
    named = tar.pax_headers.get("comment")
    if named is not None and named != sha:
        raise UserError(f"{what}: the archive is of another commit ({named[:40]!r}); refused")
    if member.issparse():
        raise UserError(f"{what}: {member.name[:80]!r} is a sparse file, which git does not write; refused")


def _make_links(links: list[tarfile.TarInfo], into: Path, what: str) -> None:
    made = [link for link in links if _link(link, into, what)]
    root = into.resolve()
    for link in made:
        try:
            arrives = (into / link.name).resolve()
        except (OSError, RuntimeError):
            continue  # A circle leads nowhere at all.
        if not arrives.is_relative_to(root):
            # Inside by its own words, but outside by way of another link.
            raise UserError(f"{what}: the link {link.name!r} leads out of the tree; refused")


def _inside(path: str, limits: TreeLimits, what: str) -> str | None:
    """Return a member's path below the top folder, None for the top folder itself."""
    parts = path.rstrip("/").split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise UserError(f"{what}: the path {path[:80]!r} is not inside the tree; refused")
    if len(path.encode(errors="surrogateescape")) > limits.path:
        raise UserError(f"{what}: a path is longer than {limits.path} bytes ({path[:80]!r}...); refused")
    return "/".join(parts[1:]) or None


def _link(link: tarfile.TarInfo, into: Path, what: str) -> bool:
    """Make a link that stays inside the tree; one that leads out is left out, since nothing it names is here."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(link.name), link.linkname))
    if posixpath.isabs(link.linkname) or target == ".." or target.startswith("../"):
        print(
            f"{what}: the link {link.name!a} leads out of the tree (to {link.linkname[:80]!a}); left out",
            flush=True,
        )
        return False
    place = into / link.name
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.parent.resolve().is_relative_to(into.resolve()):
        raise UserError(f"{what}: the link {link.name!r} is inside another link; refused")
    place.symlink_to(link.linkname)
    return True


class _Capped(io.RawIOBase):
    """A stream that stops a small archive from growing without end, headers and padding included."""

    def __init__(self, raw: gzip.GzipFile, limits: TreeLimits, what: str) -> None:
        self._raw = raw
        # Each entry adds a header or three of 512 bytes and up to 511 bytes of padding.
        self._left = limits.unpacked + limits.entries * 4_096
        self._until_next = _HEADERS
        self._what = what

    def expect(self, content: int) -> None:
        """Allow a member's content and the headers of the next: they are kept in memory before they can be checked."""
        self._until_next = content + _HEADERS

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        self._left -= len(data)
        self._until_next -= len(data)
        if self._until_next < 0:
            raise UserError(f"{self._what}: a header is longer than {_HEADERS >> 10} KB; refused")
        if self._left < 0:
            raise UserError(f"{self._what}: the archive unpacks to more than allowed; refused")
        return data


# Fetching what the evaluate job works on: the pull request's tree as data, and what was measured before.

SUBJECT = "subject"
BASE = "base"
"""The tree that a pull request is compared with, or that a baseline is measured of: fetched as a pull request's is,
since a checkout differs from GitHub's archive where .gitattributes leaves files out or keeps them elsewhere."""
SHARDS = "shards"
"""The artifacts of an evaluation's shards, one folder each."""
EARLIER = "earlier"
"""Left by a run with the same ticket."""
ACCEPTED = "accepted"
"""Left by the evaluation of the pull request that a baseline is made after."""


def fetch(github: GitHub, ticket: Ticket, work: Path, shard: Shard | None = None) -> None:
    """Bring the tree of the evaluated commit, and what was measured of it before, into the work folder."""
    if ticket.pr is not None:
        fetch_tree(github, ticket.sha, work / SUBJECT)
    # Beside a pull request it is what that branched from: what others did since must not count for or against it.
    fetch_tree(github, ticket.compared_sha, work / BASE)
    _download(github, ticket.artifact + (shard.suffix if shard else ""), work / EARLIER)
    if ticket.mode == "baseline" and ticket.pr is not None:
        _download(github, evaluation_artifact(ticket.sha), work / ACCEPTED)


def _download(github: GitHub, name: str, into: Path) -> None:
    """Fetch an artifact if there is one; one that cannot be used only costs its reuse."""
    found = github.workflow_runs.find_artifact(WORKFLOW, name)
    if found is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "artifact.zip"
        try:
            github.workflow_runs.download(found, archive)
            unpack_artifact(archive, into)
        except UserError as exc:
            shutil.rmtree(into, ignore_errors=True)
            print(f"Earlier results are not reused: {exc}", flush=True)
