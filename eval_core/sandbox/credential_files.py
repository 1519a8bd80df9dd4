"""Files of a checkout that hold credentials, found by their names at every depth: no compressor needs them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from eval_core.base.errors import UserError

_FOLDERS = (".git", ".hg", ".svn", ".env", ".aws", ".azure", ".docker", ".gnupg", ".kube", ".ssh")
_FILES = (
    ".git", ".gitconfig", ".git-credentials", ".compression-eval.yml",
    ".env", ".env.*", "*.env", ".envrc", "secrets.toml", "secrets.y*ml", "secrets.json", "credentials",
    "credentials.json", "credentials.toml", ".credentials*", "application_default_credentials.json",
    "service[-_]account*.json", "client_secret*.json",
    ".netrc", "_netrc", ".npmrc", ".pypirc", "pip.conf", "pip.ini", ".pgpass", ".my.cnf", ".htpasswd", ".boto",
    ".s3cfg", ".dockercfg", ".dockerconfigjson", ".vault-token", ".terraformrc", "*.tfstate", "*.tfstate.backup",
    "*.tfvars", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore",
    "*.kdbx",
)  # fmt: skip
_EXAMPLES = re.compile(r"\.(?:dist|example|sample|template|tmpl)$")
"""Ends of names of files that show what to write, and are read as defaults."""
_MOST, _LONGEST = 2_000, 500_000
"""Files, and characters of their paths together: each is a mount of its own, and words of a command line."""
_LARGEST = 4 * 1024 * 1024


def _any_of(patterns: Collection[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)))


_FOLDER, _FILE = _any_of(_FOLDERS), _any_of(_FILES)


def _is_credential(entry: os.DirEntry[str]) -> bool:
    name = entry.name.casefold()
    if _FOLDER.match(name) and os.path.isdir(entry.path):  # noqa: PTH112 - Path's raises where nobody may look
        return True
    if entry.is_dir(follow_symlinks=False):
        return False
    if name.endswith(".pem"):
        return _private(entry)
    return _FILE.match(name) is not None and not _EXAMPLES.search(name)


def _private(entry: os.DirEntry[str]) -> bool:
    """Tell a private key from certificates, which clients of HTTP read when they are made."""
    try:
        if not entry.is_file() or entry.stat().st_size > _LARGEST:
            return True
        return b"PRIVATE KEY" in Path(entry.path).read_bytes()
    except OSError:
        return True


def _walk(folder: Path, shut: Collection[Path]) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return  # what cannot be listed here cannot be listed there either
    for entry in entries:
        path = Path(entry.path)
        if path in shut:
            continue
        if _is_credential(entry):
            yield path
        elif entry.is_dir(follow_symlinks=False):
            yield from _walk(path, shut)


@lru_cache(maxsize=16)
def credentials_in(tree: Path, shut: tuple[Path, ...] = ()) -> tuple[Path, ...]:
    """Return the files and folders below a tree that must not be seen; folders that are shut are not looked into.

    Looked up once: a run starts many sandboxes of one tree, and an environment in it has thousands of files.
    """
    found: list[Path] = []
    room = _LONGEST
    for path in _walk(tree, shut):
        found.append(path)
        room -= len(str(path))
        if len(found) > _MOST or room < 0:
            raise UserError(
                f"{tree}: more than {len(found) - 1:,} files are named like credentials ({found[0].name}, {path.name}, "
                "...), which are hidden from the compressor one by one; remove those that it does not need"
            )
    return tuple(found)
