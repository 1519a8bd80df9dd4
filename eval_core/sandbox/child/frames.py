"""Length-prefixed JSON frames over private descriptors."""

from __future__ import annotations

import importlib.util
import json
import select
import struct
import sys
import threading

# Bound by name before the target exists, so that one that patches os patches only its own.
from os import _exit, close, devnull, dup, dup2, read, write
from os import open as open_descriptor
from typing import Any

O_RDWR = 2
MAX_COMMAND = 256 * 1024 * 1024


class FrameTooLarge(Exception):
    """The target returned more than the parent accepts."""


def _private_json() -> Any:
    """Load a second copy of the json package, so that a target that patches json changes only its own."""
    spec = importlib.util.spec_from_file_location(
        "_compression_eval_json", json.__file__, submodule_search_locations=[json.__file__.rpartition("/")[0]]
    )
    if spec is None or spec.loader is None:
        return json
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_json = _private_json()
_dumps, _loads = _json.dumps, _json.loads
_pack, _unpack = struct.Struct(">I").pack, struct.Struct(">I").unpack


class Channel:
    """The way to the parent: commands in, one frame per phase out."""

    def __init__(self) -> None:
        """Take standard input and output away before the target exists; its prints go where stderr goes."""
        self._in, self._out = dup(0), dup(1)
        null = open_descriptor(devnull, O_RDWR)
        dup2(null, 0)
        dup2(2, 1)
        close(null)
        self.nonce = ""
        self.limit = 1024 * 1024

    def end_with_parent(self) -> None:
        """End when the parent's end of the pipe closes, even in the middle of a step.

        Through sudo nobody else can tell: the processes between us live on.
        """
        hangup = select.poll()
        hangup.register(self._in, 0)

        def wait() -> None:
            hangup.poll()
            _exit(0)

        threading.Thread(target=wait, daemon=True, name="parent-watch").start()

    @property
    def descriptors(self) -> tuple[int, int]:
        """The two private descriptors."""
        return self._in, self._out

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            part = read(self._in, min(size, 1 << 20))
            if not part:
                _exit(0)  # the parent is gone, and there is nobody to speak to
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def receive(self) -> dict[str, Any]:
        """Wait for the parent's next command; its end is ours."""
        (size,) = _unpack(self._exactly(4))
        if size > MAX_COMMAND:
            _exit(70)
        command: dict[str, Any] = _loads(self._exactly(size).decode("utf-8"))
        return command

    def send(self, frame: dict[str, Any]) -> None:
        """Write one frame, or raise before anything is written."""
        body = _dumps({"nonce": self.nonce, **frame}, allow_nan=False).encode("ascii")
        if len(body) > self.limit:
            raise FrameTooLarge(f"{len(body):,} bytes, more than the {self.limit:,} that are accepted")
        data = memoryview(_pack(len(body)) + body)
        while data:
            data = data[write(self._out, data) :]
