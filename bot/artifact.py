"""Unpacking an artifact: a zip that may have been written by somebody hostile."""

from __future__ import annotations

import re
import stat
import zipfile
import zlib
from pathlib import Path

from eval_core.errors import UserError

__all__ = ["unpack_artifact"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")
_MOST_FILES = 2_000
_MOST_BYTES = 500 << 20
_CHUNK = 1 << 20


def unpack_artifact(archive: Path, into: Path) -> list[str]:
    """Unpack flat, regular files with plain names, within limits; anything else is refused."""
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
                if not _NAME.fullmatch(entry.filename) or kind not in (0, stat.S_IFREG):
                    raise UserError(f"{archive.name}: {entry.filename[:80]!r} is not a plain file name; refused")
                room = _copy(zipped, entry, into / entry.filename, room, archive.name)
                names.append(entry.filename)
    except FileExistsError as exc:
        raise UserError(f"{archive.name}: {Path(exc.filename).name!r} is there twice; refused") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as exc:
        # Broken, encrypted, or packed in a way that no runner packs.
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
