"""Run a program in any language and pass lines to and from it; what they mean is the parent's business."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Any

from .frames import Channel, FrameTooLarge
from .python_target import SetupError

END_S = 10.0
"""How long a program may take to end after its input has ended."""


class Program:
    """The running command: one line in, one line out; its standard error is shown like a compressor's prints."""

    def __init__(self, words: list[str], adapter: str | None, adapter_path: str, runtime: str) -> None:
        """Start it in the working directory, with this process's environment."""
        if adapter is not None:
            place = Path(adapter_path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(adapter, encoding="utf-8")
            place.chmod(0o755)
        if runtime:
            folders = [f"{runtime}/node_modules/.bin", f"{runtime}/bin"]
            os.environ["PATH"] = os.pathsep.join([*folders, os.environ["PATH"]])
        try:
            self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except FileNotFoundError as exc:
            if Path(words[0]).exists():
                raise SetupError(f"{words[0]} cannot be started: the interpreter in its first line is missing") from exc
            raise SetupError(
                f"the program {words[0]!r} was not found; there are /usr, the tree under test and target.runtime, and "
                f"the search path is {os.environ['PATH']}"
            ) from None
        except OSError as exc:
            raise SetupError(f"{words[0]} cannot be started: {exc.strerror}") from None

    def exchange(self, line: str, limit: int) -> dict[str, Any]:
        """Write one line and read one line back; say how the program ended where there is none."""
        source, sink = self._process.stdout, self._process.stdin
        assert source is not None
        assert sink is not None
        try:
            sink.write(line.encode("utf-8") + b"\n")
            sink.flush()
        except (BrokenPipeError, ConnectionResetError):
            return self._ended("before it read the request")
        text = source.readline(limit)
        while text.strip() == b"" and text:
            text = source.readline(limit)
        if not text:
            return self._ended("without an answer")
        if not text.endswith(b"\n") and len(text) >= limit:
            raise FrameTooLarge(f"a line of more than {limit:,} bytes")
        return {"phase": "line", "text": text.decode("utf-8", "replace").rstrip("\r\n")}

    def _ended(self, when: str) -> dict[str, Any]:
        try:
            status = self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            return {"phase": "ended", "problem": f"closed its standard output {when}"}
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return {"phase": "ended", "problem": f"{how} {when}"}

    def finish(self) -> dict[str, Any]:
        """End the input and wait for the program to leave."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._process.stdin.close()
        try:
            return {"phase": "finished", "status": self._process.wait(END_S)}
        except subprocess.TimeoutExpired:
            return {"phase": "finished", "status": None}


def serve_lines(channel: Channel, program: Program) -> None:
    """Relay until the parent has no more to say."""
    while True:
        asked = channel.receive()
        if asked["do"] == "exchange":
            try:
                # The frame around the line escapes it, at worst sixfold.
                frame = program.exchange(asked["line"], channel.limit // 2)
                channel.send(frame)
            except FrameTooLarge as exc:
                channel.send({"phase": "ended", "problem": f"wrote {exc}"})
        elif asked["do"] == "finish":
            channel.send(program.finish())
        else:
            return
