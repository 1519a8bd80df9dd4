"""Things that must be out of the child's reach, set out before each run for its self-test to look for."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["CANARY_VARIABLE", "Canary", "canaries"]

CANARY_VARIABLE = "COMPRESSION_EVAL_CANARY"


@dataclass(frozen=True)
class Canary:
    """Where the canaries are; no secret, but each is as reachable as a secret in its place would be."""

    value: str
    """In the environment of the process that starts the sandbox, and in the file."""
    file: str
    port: int
    abstract: str
    path: str
    read_only: tuple[str, ...]

    def as_frame(self) -> dict[str, Any]:
        """Return what the self-test is told."""
        return asdict(self)


@contextmanager
def canaries(folder: Path, read_only: tuple[str, ...]) -> Iterator[Canary]:
    """Set out the canaries in a folder that is not mounted, with real listeners on loopback."""
    value = secrets.token_hex(16)
    file, path = folder / "canary", folder / "canary.sock"
    file.write_text(value, encoding="ascii")
    file.chmod(0o644)
    abstract = f"compression-eval-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (f"\0{abstract}", str(path)):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(address)
            listener.listen()
        path.chmod(0o666)
        yield Canary(value, str(file), tcp.getsockname()[1], abstract, str(path), read_only)
