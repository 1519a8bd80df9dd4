"""Fixtures as gzip files, for those too large for plain JSON; each is named by the digest of its content."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import zlib
from pathlib import Path

from eval_core.base.errors import UserError
from eval_core.base.files import open_file

PLAIN_LIMIT = 150_000
"""Bytes of JSON above which a fixture is stored compressed."""
MAX_UNPACKED = 64 * 1024 * 1024
"""Bytes that a compressed fixture may grow to: some ten million tokens; what claims to be more is refused."""
PACKED_SUFFIX = ".json.gz"
_PACKED_NAME = re.compile(r"(?P<name>.+)\.(?P<digest>[0-9a-f]{8})\.json\.gz")
_CHUNK = 1024 * 1024


def packed_name(name: str, text: bytes) -> str:
    """Return the file name under which a text is stored compressed."""
    return f"{name}.{hashlib.sha256(text).hexdigest()[:8]}{PACKED_SUFFIX}"


def split_name(path: Path) -> tuple[str, str | None]:
    """Return the fixture's name that a file name gives and, of a compressed one, the digest in it."""
    if not path.name.endswith(PACKED_SUFFIX):
        return path.stem, None
    match = _PACKED_NAME.fullmatch(path.name)
    if match is None:
        raise UserError(
            f"{path}: a compressed fixture is named NAME.DIGEST{PACKED_SUFFIX}, DIGEST being the first 8 digits of "
            "the sha256 of the JSON in it; store it again with `compression-eval fixture scrub`"
        )
    return match["name"], match["digest"]


def pack(text: bytes) -> bytes:
    """Compress so that the same text gives the same bytes on any day and any machine."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=9) as stream:
        stream.write(text)
    return out.getvalue()


def unpack(path: Path) -> bytes:
    """Read a compressed file piece by piece; refuse one that grows too large or is not what its name says."""
    _, wanted = split_name(path)
    digest = hashlib.sha256()
    pieces: list[bytes] = []
    size = 0
    try:
        with open_file(path) as packed, gzip.open(packed) as stream:
            while piece := stream.read(_CHUNK):
                size += len(piece)
                if size > MAX_UNPACKED:
                    raise UserError(
                        f"{path}: unpacks to more than {MAX_UNPACKED:,} bytes; no session is that long, remove the file"
                    )
                digest.update(piece)
                pieces.append(piece)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as exc:
        raise UserError(f"{path}: not a whole gzip file: {exc}; restore it from your repository") from None
    except OSError as exc:
        raise UserError(f"{path}: cannot be read: {exc.strerror}") from None
    found = digest.hexdigest()[:8]
    if found != wanted:
        raise UserError(
            f"{path}: its content has the digest {found}, its name says {wanted}; restore the file, or rename it if "
            "you changed it on purpose"
        )
    return b"".join(pieces)
