"""The agent's workspace: tools called one after the other, each in a process of its own with caps of its own.

The process that serves them stays small and opens nothing that a command could have put in its way: whatever is asked,
looking around included, is done in a forked process, and everything it has left running ends with it.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import difflib
import hashlib
import io
import json
import os
import re
import resource
import secrets
import select
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .frames import Channel
from .launch import limit
from .selftest import reachable_canaries

_CHUNK = 65536
_WATCH_S = 0.05
_MOST_PRINTED = 16 * 1024 * 1024
"""A command that prints more is ended: it prints without end."""
_MOST_ENTRIES = 20_000
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_MATCHES = 50
_SCRATCH = "/tmp"  # noqa: S108 - the sandbox's own
_PAGE = os.sysconf("SC_PAGESIZE")


@dataclass
class _Ended:
    """What became of one call."""

    output: bytes = b""
    code: int = 0
    why: str = ""
    """Why it was ended, in the words that the agent reads; empty where it ended by itself."""


@dataclass(frozen=True)
class _Caps:
    seconds: float
    memory: int
    """Bytes, of all processes of a call together."""
    chars: int


def _private() -> None:
    """Shut our memory and descriptors to the commands, which have our uid, and become the parent of their orphans."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _resident() -> int:
    """Return the memory of everything but ourselves."""
    total, ours = 0, {1, os.getpid(), os.getppid()}
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) not in ours:
            with contextlib.suppress(OSError, ValueError, IndexError):
                total += int((process / "statm").read_bytes().split()[1]) * _PAGE
    return total


def _end_all() -> None:
    """End whatever a call has left: nothing else in this namespace has our uid."""
    with contextlib.suppress(OSError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


class _Kept:
    """The beginning and the end of what was printed."""

    def __init__(self, chars: int) -> None:
        self._most, self._head, self._tail, self.total = chars, bytearray(), bytearray(), 0

    def add(self, part: bytes) -> None:
        self.total += len(part)
        room = max(0, self._most - len(self._head))
        self._head += part[:room]
        self._tail = (self._tail + part[room:])[-self._most :]

    def text(self) -> bytes:
        if not self._tail:
            return bytes(self._head)
        if len(self._head) + len(self._tail) == self.total and self.total <= self._most:
            return bytes(self._head + self._tail)
        half = self._most // 2
        left_out = self.total - 2 * half
        return bytes(self._head[:half]) + b"\n... (%d bytes left out) ...\n" % left_out + bytes(self._tail[-half:])


def _limited(action: Callable[[], int], caps: _Caps) -> _Ended:
    """Do something in a forked process; what it prints is its result."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (2 * caps.memory, 2 * caps.memory))
            null = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null, 0), (writing, 1), (writing, 2)):
                os.dup2(source, target)
            os.closerange(3, 256)
            code = action()
            sys.stdout.flush()
            os._exit(code)
        except BaseException as exc:
            os.write(2, f"{type(exc).__name__}: {exc}"[:2000].encode("utf-8", "replace"))
            os._exit(1)
    os.close(writing)
    try:
        return _attended(pid, reading, caps)
    finally:
        os.close(reading)
        _end_all()


def _attended(pid: int, reading: int, caps: _Caps) -> _Ended:
    """Watch a process until it ends, or has to."""
    kept, deadline, done = _Kept(caps.chars), time.monotonic() + caps.seconds, _Ended()
    ended: int | None = None
    while not done.why:
        ready, _, _ = select.select([reading], [], [], 0 if ended is not None else _WATCH_S)
        part = os.read(reading, _CHUNK) if ready else b""
        kept.add(part)
        if ended is None:
            gone, status = os.waitpid(pid, os.WNOHANG)
            ended = os.waitstatus_to_exitcode(status) if gone else None
        if ended is not None and not part:
            break
        if kept.total > _MOST_PRINTED:
            done.why = f"ended: it printed more than {_MOST_PRINTED // 2**20} MiB"
        elif time.monotonic() > deadline:
            done.why = f"ended: it took longer than {caps.seconds:g} s"
        elif _resident() > caps.memory:
            done.why = f"ended: it used more than {caps.memory // 2**20} MB of memory"
    done.output, done.code = kept.text(), -1 if ended is None else ended
    return done


# The tools, with the result shapes that sessions have. Each prints one JSON object.


def _inside(folder: str, path: Any) -> Path:
    if not isinstance(path, str) or not path or "\0" in path:
        raise ValueError(f"path: {path!r} is not a path")
    return Path(folder, Path(path).expanduser())


def _read(path: Path) -> str:
    """Read a file that is one: a pipe would keep us waiting."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path} is not a regular file")
        return stream.read().decode("utf-8", "replace")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o644)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(text.encode("utf-8", "surrogatepass"))


def _read_file(folder: str, given: dict[str, Any]) -> dict[str, Any]:
    lines = _read(_inside(folder, given.get("path"))).splitlines()
    first, most = max(1, int(given.get("offset") or 1)), max(1, int(given.get("limit") or 2000))
    shown = lines[first - 1 : first - 1 + most]
    content = "\n".join(f"{number}|{line}" for number, line in enumerate(shown, first))
    return {"content": content, "total_lines": len(lines), "truncated": first - 1 + len(shown) < len(lines)}


def _write_file(folder: str, given: dict[str, Any]) -> dict[str, Any]:
    text = given.get("content")
    if not isinstance(text, str):
        raise ValueError("content: text is needed")
    _write(_inside(folder, given.get("path")), text)
    return {"bytes_written": len(text.encode("utf-8", "surrogatepass")), "path": given["path"]}


def _replaced(text: str, old: str, new: str, *, every: bool) -> str:
    found = text.count(old) if old else 0
    if not found:
        raise ValueError("old_string was not found")
    if found > 1 and not every:
        raise ValueError(f"old_string was found {found} times; give more of what is around it")
    return text.replace(old, new)


def _patch(folder: str, given: dict[str, Any]) -> dict[str, Any]:
    old, new = given.get("old_string"), given.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str):
        raise ValueError("old_string and new_string are needed: one exact text is replaced by another")
    path = _inside(folder, given.get("path"))
    before = _read(path)
    after = _replaced(before, old, new, every=bool(given.get("replace_all")))
    _write(path, after)
    name = str(given["path"])
    was, now = before.splitlines(keepends=True), after.splitlines(keepends=True)
    diff = difflib.unified_diff(was, now, f"a/{name}", f"b/{name}", n=2)
    return {"success": True, "diff": "".join(diff), "files_modified": [name]}


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
    for here, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in (".git", "__pycache__"))
        yield from (Path(here, name) for name in sorted(names))


def _search_files(folder: str, given: dict[str, Any]) -> dict[str, Any]:
    root = _inside(folder, given.get("path") or ".")
    pattern = re.compile(str(given.get("pattern") or ""))
    matches: list[dict[str, Any]] = []
    for file in _files(root):
        name = os.path.relpath(file, folder)
        if given.get("target") == "files":
            matches += [{"path": name}] if pattern.search(name) else []
            continue
        with contextlib.suppress(OSError, ValueError):
            lines = enumerate(_read(file).splitlines(), 1)
            matches += [{"path": name, "line": at, "content": line[:500]} for at, line in lines if pattern.search(line)]
    return {"total_count": len(matches), "matches": matches[:_MATCHES]}


_TOOLS: dict[str, Callable[[str, dict[str, Any]], dict[str, Any]]] = {
    "read_file": _read_file,
    "write_file": _write_file,
    "patch": _patch,
    "search_files": _search_files,
}


def _shell(command: str, folder: str) -> Callable[[], int]:
    def run() -> int:
        with contextlib.suppress(OSError):
            os.chdir(folder)  # where it was deleted, the command says so itself
        shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
        os.execv(shell, [shell, "-c", command])  # noqa: S606 - it is the shell

    return run


def _terminal(folder: str, given: dict[str, Any], caps: _Caps) -> dict[str, Any]:
    command = given.get("command")
    if not isinstance(command, str) or "\0" in command:
        return {"output": "", "exit_code": -1, "error": "command: text is needed"}
    done = _limited(_shell(command, folder), caps)
    code = 128 - done.code if done.code < -1 else done.code
    output = done.output.decode("utf-8", "replace").rstrip("\n")
    return {"output": output, "exit_code": -1 if done.why else code, "error": done.why or None}


def _tool(name: str, given: dict[str, Any], folder: str, caps: _Caps) -> dict[str, Any]:
    if name == "terminal":
        return _terminal(folder, given, caps)
    act = _TOOLS.get(name)
    if act is None:
        return {"error": f"there is no tool {name!r}"}

    def run() -> int:
        try:
            result = act(folder, given)
        except (OSError, ValueError, re.error) as exc:
            result = {"error": str(exc)[:1000]}
        sys.stdout.write(json.dumps(result))
        return 0

    done = _limited(run, _Caps(caps.seconds, caps.memory, _MOST_PRINTED))
    try:
        result: dict[str, Any] = json.loads(done.output)
    except ValueError:
        return {"error": done.why or done.output.decode("utf-8", "replace")[-1000:] or "the tool failed"}
    return _cut(result, caps.chars)


def _cut(result: dict[str, Any], chars: int) -> dict[str, Any]:
    for name in ("content", "diff"):
        text = result.get(name)
        if isinstance(text, str) and len(text) > chars:
            result |= {name: f"{text[:chars]}\n... ({len(text) - chars} characters left out)", "truncated": True}
    while len(result.get("matches", [])) > 1 and len(json.dumps(result)) > chars:
        result["matches"] = result["matches"][: len(result["matches"]) // 2]
    return result


# The tree, out of one sandbox and into another.


def _pack(home: str, most: int) -> dict[str, Any]:
    """Return everything below the home as one archive: files, folders and links, nothing else."""
    paths: list[str] = []
    size = 0
    for here, folders, names in os.walk(home):
        for name in sorted((*folders, *names)):
            path = f"{here}/{name}"
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode) or stat.S_ISLNK(status.st_mode):
                paths.append(path)
                size += status.st_size
        if len(paths) > _MOST_ENTRIES or size > most:
            raise ValueError(f"more was left than is looked at: {len(paths):,} files and folders, {size:,} bytes")
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w:gz", compresslevel=1) as archive:
        for path in sorted(paths):
            member = archive.gettarinfo(path, os.path.relpath(path, home))
            member.type = tarfile.REGTYPE if member.islnk() else member.type
            member.size = os.lstat(path).st_size if member.isreg() else 0
            if member.isreg():
                with Path(path).open("rb") as stream:
                    archive.addfile(member, stream)
            else:
                archive.addfile(member)
    return {"tree": base64.b64encode(kept.getvalue()).decode("ascii"), "digest": _digest(home, paths)}


def _digest(home: str, paths: list[str]) -> str:
    """Name what the tree holds; git's index keeps times and inodes, which differ between equal trees."""
    hasher = hashlib.sha256()
    for path in sorted(paths):
        status = os.lstat(path)
        name = os.path.relpath(path, home)
        if name.endswith(".git/index"):
            continue
        hasher.update(f"{name}\0{stat.S_IMODE(status.st_mode):o}\0".encode("utf-8", "surrogateescape"))
        if stat.S_ISREG(status.st_mode):
            hasher.update(hashlib.sha256(Path(path).read_bytes()).digest())
        elif stat.S_ISLNK(status.st_mode):
            hasher.update(os.fsencode(Path(path).readlink()))
    return hasher.hexdigest()


def _unpack(home: str, tree: str) -> None:
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(tree)), mode="r:gz") as archive:
        for member in archive:
            # A link that leads out of the tree says something about the tree, and opens nothing here.
            with contextlib.suppress(tarfile.FilterError, OSError):
                archive.extract(member, home, filter="tar", set_attrs=True)


_RUN_TESTS = r"""
import json, os, sys
file, result, secret, *search = json.loads(sys.stdin.read())
write, flags = os.open, os.O_WRONLY | os.O_CREAT | os.O_EXCL
sys.path += search
import pytest
class Counts:
    def __init__(self):
        self.passed, self.failed, self.canary = [], [], ""
    def pytest_collection_modifyitems(self, session, items):
        def has_to_fail():
            assert not items
        if items:
            canary = pytest.Function.from_parent(items[0].parent, name=secret, callobj=has_to_fail)
            items.insert(len(items) // 2, canary)
    def pytest_runtest_logreport(self, report):
        if secret in report.nodeid:
            self.canary = report.outcome if report.when == "call" else self.canary
        elif report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed.append(report.nodeid)
counts = Counts()
code = pytest.main(["-q", "--tb=short", "-p", "no:cacheprovider", "--noconftest", "-c", os.devnull,
                    "--rootdir", os.path.dirname(file), file], plugins=[counts])
if counts.canary == "failed":
    body = {"passed": len(counts.passed), "failed": len(counts.failed)}
    with os.fdopen(write(result, flags), "w") as stream:
        json.dump(body, stream)
"""
"""Runs in a process of its own. Whatever makes every test pass also makes the one pass that has to fail."""


def _tests(file: str, folder: str, caps: _Caps) -> dict[str, Any]:
    """Run a file of tests against the workspace, which comes last on the path and configures nothing."""
    result, secret = f"{_SCRATCH}/{secrets.token_hex(16)}", secrets.token_hex(16)

    def run() -> int:
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HOME": _SCRATCH}
        for name in [name for name in environment if name.startswith(("PYTHON", "PYTEST_ADD"))]:
            del environment[name]
        job = json.dumps([file, result, secret, str(Path(file).parent), folder])
        os.chdir(folder)
        return subprocess.run(
            [sys.executable, "-I", "-B", "-c", _RUN_TESTS], input=job, text=True, env=environment, check=False
        ).returncode

    done = _limited(run, caps)
    said = {"output": done.output.decode("utf-8", "replace")[-4000:], "why": done.why}
    try:
        return {**said, **json.loads(Path(result).read_text("utf-8"))}
    except (OSError, ValueError):
        return {**said, "passed": 0, "failed": 0, "why": done.why or "the tests could not be counted"}


def _sums(folder: str, names: list[str]) -> dict[str, str]:
    """Return what each file holds, or that it is gone."""
    found = {}
    for name in names:
        path = Path(folder, name)
        if path.is_dir():
            below = [f"{here}/{file}" for here, _, files in os.walk(path) for file in files]
            found[name] = _digest(str(path), below)
            continue
        try:
            found[name] = hashlib.sha256(_read(path).encode()).hexdigest()
        except (OSError, ValueError):
            found[name] = "gone"
    return found


class _Server:
    """Answers one command after the other."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.home, self.folder = job["home"], job["folder"]
        self.most = job["megabytes"] * 2**20
        os.environ.update(job["env"])
        os.chdir("/")

    def caps(self, command: dict[str, Any]) -> _Caps:
        return _Caps(command["seconds"], command["memory"], command["chars"])

    def printed(self, action: Callable[[], Any], caps: _Caps) -> dict[str, Any]:
        """Do something with what the workspace holds, in a forked process."""

        def run() -> int:
            sys.stdout.write(json.dumps(action()))
            return 0

        done = _limited(run, _Caps(caps.seconds, max(caps.memory, 8 * self.most), 4 * self.most))
        try:
            value: dict[str, Any] = json.loads(done.output)
        except ValueError:
            return {"error": (done.why or done.output.decode("utf-8", "replace"))[:500] or "it could not be looked at"}
        return value

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        caps, do = self.caps(command), command["do"]
        if do == "unpack":
            _unpack(self.home, command["tree"])
            return {}
        if do == "tool":
            return {"result": _tool(command["name"], command["arguments"], self.folder, caps)}
        if do == "run":
            return {"result": _terminal(self.folder, {"command": command["command"]}, caps)}
        if do == "tests":
            return {"result": _tests(command["file"], self.folder, caps)}
        if do == "sums":
            return {"result": self.printed(lambda: _sums(self.folder, command["names"]), caps)}
        return {"result": self.printed(lambda: _pack(self.home, self.most), caps)}


def main() -> None:
    """Run the whole life of the child."""
    channel = Channel()
    channel.end_with_parent()
    hello = channel.receive()
    channel.nonce, channel.limit = hello["nonce"], hello["max_frame"]
    sys.path[:] = [entry for entry in sys.path if entry]
    limit(hello["limits"])
    hits = reachable_canaries(hello["canary"], (0, 1, 2, *channel.descriptors)) if hello["canary"] else []
    channel.send({"phase": "hello", "hits": hits})
    server = _Server(channel.receive())
    _private()
    channel.send({"phase": "ready"})
    while True:
        command = channel.receive()
        channel.send({"phase": "answer", **server.answer(command)})
