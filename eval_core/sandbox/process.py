"""One child process: frames both ways, capped output, a memory watch, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import struct
from typing import Any

from eval_core.sandbox.isolation import PATH, SCRATCH, SandboxChoice
from eval_core.sandbox.memory import MemoryGroup, process_family
from eval_core.sandbox.validate import MAX_FRAME, BadFrame, read_frame

KEPT_OUTPUT = 64 * 1024
MAX_OUTPUT = 16 * 1024 * 1024
WATCH_EVERY_S = 0.3


_LIMIT_SIGNALS: dict[int, str] = {
    signal.SIGXCPU: "the compressor used up its processor time",
    signal.SIGXFSZ: f"the compressor wrote a file of more than {SCRATCH // 2**20} MiB",
    signal.SIGSYS: "the compressor made a system call that the sandbox forbids",
}


_WHO = "the compressor"


class ChildGone(Exception):
    """The child ended, or was ended, before it answered; the text says why."""


def _ending(code: int) -> str:
    """Say how a process ended; a shell's 128+N and Python's -N both mean signal N."""
    number = -code if code < 0 else code - 128 if code > 128 else 0
    with contextlib.suppress(ValueError):
        if number in _LIMIT_SIGNALS:
            return _LIMIT_SIGNALS[number]
        if number:
            return f"the compressor's process was ended by {signal.Signals(number).name}"
    return f"the compressor's process ended by itself with status {code}"


class Child:
    """The parent's side of a running child."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        sandbox: SandboxChoice,
        name: str,
        memory: MemoryGroup,
        who: str = _WHO,
    ) -> None:
        self._process, self._sandbox, self._name, self._memory, self._who = process, sandbox, name, memory, who
        self.nonce = secrets.token_hex(16)
        self._killed = ""
        self._kept = bytearray()
        self._written = 0
        self._tasks = [asyncio.create_task(self._drain()), asyncio.create_task(self._watch())]

    @classmethod
    async def start(
        cls,
        command: list[str],
        sandbox: SandboxChoice,
        *,
        name: str,
        memory: MemoryGroup,
        environment: dict[str, str],
        who: str = _WHO,
    ) -> Child:
        """Start the command in a session of its own; `environment` is what a leak would show.

        `who` is what messages speak of: the compressor, or something else that runs in the sandbox.
        """
        pipe = asyncio.subprocess.PIPE
        base = {"PATH": PATH, **memory.environment}
        if sandbox.level == "docker":
            base |= {key: os.environ[key] for key in ("HOME", "DOCKER_HOST", "DOCKER_CONTEXT") if key in os.environ}
        process = await asyncio.create_subprocess_exec(
            *memory.enter(command),
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=base | environment,
            start_new_session=True,
            cwd="/",
        )
        return cls(process, sandbox, name, memory, who)

    def pids(self) -> list[int]:
        """The processes of the child, as the host numbers them."""
        return process_family(self._process.pid)

    @property
    def output(self) -> str:
        """The beginning of what the compressor printed: untrusted, for people, never for a log."""
        return self._kept.decode("utf-8", "replace")

    @property
    def output_bytes(self) -> int:
        """How much it printed in all."""
        return self._written

    async def _drain(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        while chunk := await stream.read(65536):
            self._written += len(chunk)
            self._kept += chunk[: KEPT_OUTPUT - len(self._kept)]
            if self._written > MAX_OUTPUT and not self._killed:
                await self.kill(f"the compressor printed more than {MAX_OUTPUT // 2**20} MiB")

    async def _watch(self) -> None:
        """End the child at its memory limit, and also when nobody can tell any more whether it has reached it."""
        try:
            while self._process.returncode is None:
                await asyncio.sleep(WATCH_EVERY_S)
                if await asyncio.to_thread(self._memory.exceeded, self._process.pid):
                    await self.kill(self._memory.in_words)
        except Exception as exc:
            await self.kill(f"the compressor's memory could not be watched any more ({type(exc).__name__}: {exc})")

    async def send(self, frame: dict[str, Any]) -> None:
        """Write one command to the child."""
        body = json.dumps(frame).encode("ascii")
        stream = self._process.stdin
        assert stream is not None
        try:
            stream.write(struct.pack(">I", len(body)) + body)
            await stream.drain()
        except (BrokenPipeError, ConnectionResetError):
            await self._gone()

    async def receive(self) -> dict[str, Any]:
        """Wait for the child's next frame; raise ChildGone or BadFrame."""
        stream = self._process.stdout
        assert stream is not None
        try:
            (size,) = struct.unpack(">I", await stream.readexactly(4))
            if size > MAX_FRAME:
                raise BadFrame(f"{self._who}'s process announced a result of {size:,} bytes")
            return read_frame(await stream.readexactly(size), self.nonce)
        except BadFrame as exc:
            raise BadFrame(self._told(str(exc))) from None
        except asyncio.IncompleteReadError:
            await self._gone()
            raise  # not reached

    async def ask(self, frame: dict[str, Any], seconds: float, what: str) -> dict[str, Any]:
        """Send a command and wait for its answer, within a time that ends the child."""
        try:
            async with asyncio.timeout(seconds):
                await self.send(frame)
                return await self.receive()
        except TimeoutError:
            await self.kill(f"{what} took longer than {seconds:g} s")
            raise ChildGone(self._killed) from None

    async def _gone(self) -> None:
        """Raise the reason of the end; one that closed its pipe and lives on is ended."""
        try:
            async with asyncio.timeout(2):
                code = await self._process.wait()
        except TimeoutError:
            await self.kill("the compressor's process closed the result channel")
            code = 0
        raise ChildGone(self._killed or self._told(self.limit_reached or _ending(code)))

    def _told(self, why: str) -> str:
        """Let a reason speak of what runs here."""
        return why if self._who == _WHO else why.replace(f"{_WHO}'s process", self._who).replace(_WHO, self._who)

    @property
    def limit_reached(self) -> str:
        """The memory limit in words, where the kernel has kept it already: it is faster than the watch."""
        kept = self._memory.folders and self._memory.exceeded(self._process.pid)
        return self._memory.in_words if kept else ""

    async def kill(self, why: str) -> None:
        """End the whole tree at once; the first reason is the one that is told."""
        self._killed = self._killed or self._told(why)
        if self._process.returncode is not None:
            return
        try:
            pids = process_family(self._process.pid)
        except OSError:  # what is below the first process ends with it, at every level but `none`
            pids = [self._process.pid]
        denied = []
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            except PermissionError:
                denied.append(str(pid))
        if denied and self._sandbox.level == "bwrap-sudo":
            await _quietly("sudo", "-n", "kill", "-KILL", *denied)
        if self._sandbox.level == "docker":
            await _quietly("docker", "kill", self._name)

    async def close(self) -> None:
        """End the child and wait for its last output."""
        await self.kill("the run was over")
        # The end of a process is only noticed when its pipes have ended too, and a full one that nobody reads does not.
        emptied = asyncio.create_task(self._empty())
        await self._process.wait()
        emptied.cancel()
        if self._sandbox.level == "none":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        drain, watch = self._tasks
        watch.cancel()
        # An orphan that kept the pipe open cannot hold us: its output is not waited for.
        await asyncio.wait([drain], timeout=1)
        drain.cancel()
        await asyncio.gather(emptied, *self._tasks, return_exceptions=True)

    async def _empty(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while await stream.read(1 << 20):
            pass


async def _quietly(*command: str) -> None:
    null = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdin=null, stdout=null, stderr=null)
    await process.wait()
