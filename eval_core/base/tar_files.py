"""Writing the members of a tar archive: plain files and folders with permissions of ours, and nothing else.

`tarfile` has had its own filter for this since Python 3.11.4; Debian 12 has 3.11.2.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path


def open_folder(place: Path) -> None:
    """Make a folder, with those above it that are missing, which the user that a sandbox runs as may enter."""
    missing = [folder for folder in (place, *place.parents) if not folder.exists()]
    place.mkdir(parents=True, exist_ok=True)
    for folder in missing or [place]:
        folder.chmod(0o755)


def write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, place: Path, date: float = 0.0) -> None:
    """Write a file or a folder where there is none yet; the caller has seen that the place is inside its folder.

    Whatever the umask is, the file can be read by the user that a sandbox runs as.
    """
    if member.isdir():
        open_folder(place)
        return
    content = tar.extractfile(member)
    if content is None:
        raise tarfile.ExtractError(f"{member.name!r} is neither a file nor a folder")
    if not place.parent.exists():
        open_folder(place.parent)
    with content, place.open("xb") as file:
        shutil.copyfileobj(content, file)
    place.chmod(0o755 if member.mode & 0o100 else 0o644)
    os.utime(place, (date, date))
