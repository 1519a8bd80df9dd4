"""Look around before the target is imported: whatever should be out of reach is tried for real."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

AF_VSOCK = 40
STATUS = {"CapInh": "0", "CapPrm": "0", "CapEff": "0", "CapBnd": "0", "NoNewPrivs": "1", "Seccomp": "2"}


def _readable(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def _connects(family: int, kind: int, address: Any) -> bool:
    try:
        with socket.socket(family, kind) as probe:
            probe.settimeout(2)
            probe.connect(address)
            return True
    except OSError:
        return False


def _environment(secret: bytes) -> list[str]:
    hits = [f"variable {name!r} holds the canary" for name, text in os.environb.items() if secret in text]
    # Beside us there may be the first process of the namespace, which started us and waits.
    known = (os.getpid(), 1) if os.getppid() == 1 else (os.getpid(),)
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        if int(process.name) not in known:
            hits.append(f"process {process.name} of another program is visible")
        for file in ("environ", "cmdline"):
            if secret in _readable(f"{process}/{file}"):
                hits.append(f"{process}/{file} holds the canary")
    return hits


def _network(canary: dict[str, Any]) -> list[str]:
    hits = []
    if _connects(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", canary["port"])):
        hits.append("the host's loopback answers")
    if _connects(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + canary["abstract"]):
        hits.append("an abstract unix socket of the host answers")
    if _connects(socket.AF_UNIX, socket.SOCK_STREAM, canary["path"]):
        hits.append("a unix socket outside the gateway's folder answers")
    try:
        socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()
        hits.append("vsock sockets can be made")
    except OSError:
        pass
    return hits


def _privileges() -> list[str]:
    hits = []
    if 0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid()) or 0 in os.getgroups():
        hits.append("the process runs as root")
    seen = dict(
        line.split(":\t", 1)
        for line in _readable("/proc/self/status").decode("ascii", "replace").splitlines()
        if ":\t" in line
    )
    for name, wanted in STATUS.items():
        if seen.get(name, "?").lstrip("0") != wanted.lstrip("0"):
            hits.append(f"{name} is {seen.get(name)}, not {wanted}")
    return hits


def _writes(folders: list[str]) -> list[str]:
    hits = []
    for folder in folders:
        path = Path(folder) / ".selftest"
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
        except OSError:
            continue
        path.unlink()
        hits.append(f"{folder} can be written to")
    return hits


def _descriptors(known: tuple[int, ...]) -> list[str]:
    hits = []
    for entry in list(Path("/proc/self/fd").iterdir()):
        if int(entry.name) in known:
            continue
        try:
            place = entry.readlink()
        except OSError:
            continue  # the listing's own descriptor, already closed
        hits.append(f"descriptor {entry.name} is open on {place}")
    return hits


def reachable_canaries(canary: dict[str, Any], known: tuple[int, ...]) -> list[str]:
    """Return every way out that was found; an empty list lets the run go on."""
    secret = canary["value"].encode()
    hits = _environment(secret) + _network(canary) + _privileges() + _descriptors(known)
    if secret in _readable(canary["file"]):
        hits.append("a file of the host is readable")
    return hits + _writes(["/", "/etc", "/usr", "/dev", "/proc", *canary["read_only"]])
