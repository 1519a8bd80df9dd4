"""The memory, process and processor limits of one run's whole tree: a control group where possible, else a count.

A control group counts everything, shared memory included, and the kernel keeps it. Without one the tree is counted
three times a second, from what its processes map, the memory files that they hold open and the sockets that they made.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eval_core.base.errors import UserError

MemoryLimiter = Literal["cgroup-v1", "cgroup-v2", "systemd-user", "docker", "count"]
LIMITERS: dict[MemoryLimiter, str] = {
    "cgroup-v1": "a control group (v1)",
    "cgroup-v2": "a control group (v2)",
    "systemd-user": "a scope of the user's systemd",
    "docker": "the container",
    "count": "counting, three times a second",
}
"""How each is told to people."""

PROCESSORS = 2
"""That the tree may keep busy; the group as a whole also weighs no more than one process beside it."""
_PERIOD_US = 100_000
_SOCKETS = {b"sockets:": (32, 512 * 1024), b"TCP:": (8, 4 * 1024 * 1024)}
"""How many any program may have, and what each further one counts for: about what its buffers hold when full."""
_PARENT, _THREADS, _RESIDENT = 1, 17, 21
"""Which fields of /proc/PID/stat they are, counted from the state."""
_THREADS_MISSED = 256
"""More than a process may have at once."""
_SHARES = frozenset({b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:"})
_WHOLES = frozenset({b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:"})

CGROUP = Path("/sys/fs/cgroup")
_TCP_LIMIT, _TCP_USED = "memory.kmem.tcp.limit_in_bytes", "memory.kmem.tcp.usage_in_bytes"
PAGE = os.sysconf("SC_PAGE_SIZE")
# bubblewrap and the shell before it are members too.
_OWN_PROCESSES = 8
# Joins each group that is named before the command, as root, and becomes the command.
_ENTER = 'n=$0; while [ "$n" -gt 0 ]; do echo $$ >"$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'
# Makes folders and writes settings; those after a question mark may fail (kernels without swap accounting).
_MAKE = (
    'n=$0; while [ "$n" -gt 0 ]; do mkdir "$1" || exit 1; shift; n=$((n-1)); done; '
    'while [ "$#" -gt 1 ]; do case "$1" in \\?*) { echo "$2" >"${1#?}"; } 2>/dev/null || :;; '
    '*) echo "$2" >"$1" || exit 1;; esac; shift 2; done'
)


def _stat_fields(place: Path) -> list[bytes]:
    """Return what /proc says of a process or a thread, from its state on: the name before it may hold anything."""
    return (place / "stat").read_bytes().rpartition(b")")[2].split()


def process_family(root: int) -> list[int]:
    """Return a process and all its descendants, as the host's /proc shows them."""
    return list(_family(root))


def _family(root: int) -> dict[int, int]:
    """Return a process and all its descendants, each with the bytes that it had in memory, files included."""
    children: dict[int, list[int]] = {}
    resident = {root: 0}
    # The newest first: they are the ones that may be gone in a moment.
    for pid in sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True):  # noqa: PTH208
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = _stat_fields(Path(f"/proc/{pid}"))
            children.setdefault(int(fields[_PARENT]), []).append(pid)
            resident[pid] = int(fields[_RESIDENT]) * PAGE
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return {pid: resident[pid] for pid in found}


def _sizes(file: Path, names: frozenset[bytes]) -> dict[bytes, int]:
    """Return the named sizes in a table of /proc, in bytes; nothing where there is no such process, or none of ours.

    The table also holds words of the process's own choosing, so only whole lines with these names are read: bytes, for
    text knows more ends of a line than the kernel, which keeps the one that it uses out of those words.
    """
    try:
        lines = [line.split() for line in file.read_bytes().split(b"\n")]
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    return {words[0]: int(words[1]) * 1024 for words in lines if words and words[0] in names}


def _place(pid: int) -> Path | None:
    """Return where /proc tells of a process, which is at another thread if its first one has ended and left the others.

    None for a process that is gone. Threads that are followed by others before they can be read hide what they hold.
    """
    place = Path(f"/proc/{pid}")
    seen: set[str] = set()
    try:
        while len(seen) <= _THREADS_MISSED:
            leader = _stat_fields(place)
            if leader[0] != b"Z" or int(leader[_THREADS]) < 2:
                return place
            tasks = {task.name: task for task in (place / "task").iterdir()}
            for task in tasks.values():
                if _sizes(task / "status", _WHOLES):
                    return task
            if tasks.keys() <= seen:
                return place  # nobody new: they are ending
            seen |= tasks.keys()
    except (FileNotFoundError, ProcessLookupError):
        return None
    raise RuntimeError("its threads come and go too fast to be counted")


def _mapped(place: Path | None, resident: int) -> int:
    """Return the bytes that one process maps beside files, its share of what several map, with its page tables.

    What is gone by now had what it had: memory may be handed on from process to process all the time.
    """
    if place is None or not (whole := _sizes(place / "status", _WHOLES)):
        return resident
    share = _sizes(place / "smaps_rollup", _SHARES)
    if b"Pss_Shmem:" in share:
        return sum(share.values()) + whole.get(b"VmPTE:", 0)
    # Not ours to look at (through sudo), or an old kernel: what is shared is then counted for each process.
    return sum(whole.values())


def _socket_buffers(places: list[Path]) -> int:
    """Return what the sockets in the tree's own network may hold; one process of it is enough to see them all."""
    for place in reversed(places):
        with contextlib.suppress(OSError):
            # sockets: used N, and TCP: inuse N with more behind it
            rows = [line.split() for line in (place / "net" / "sockstat").read_bytes().splitlines()]
            kinds = [(int(row[2]), *_SOCKETS[row[0]]) for row in rows if row[0] in _SOCKETS]
            return sum(max(made - free, 0) * size for made, free, size in kinds)
    return 0


def _memory_files(place: Path) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the memory files that a process holds open, each with the bytes it takes."""
    with contextlib.suppress(OSError):
        for entry in (place / "fd").iterdir():
            with contextlib.suppress(OSError):
                if str(entry.readlink()).startswith("/memfd:"):
                    about = entry.stat()
                    yield (about.st_dev, about.st_ino), about.st_blocks * 512


def tree_memory(root: int, *, own_network: bool = False) -> int:
    """Return the bytes that a process and its descendants hold; a memory file that is mapped as well counts twice."""
    family = [(_place(pid), resident) for pid, resident in _family(root).items()]
    places = [place for place, _ in family if place is not None]
    mapped = sum(_mapped(place, resident) for place, resident in family)
    files = dict(file for place in places for file in _memory_files(place))
    return mapped + sum(files.values()) + (_socket_buffers(places) if own_network else 0)


@dataclass(frozen=True)
class MemoryGroup:
    """The limit of one run."""

    limiter: MemoryLimiter
    limit: int
    folders: tuple[Path, ...] = ()
    """Of the control group, one for each hierarchy."""
    settings: tuple[tuple[str, str], ...] = ()
    """(file, value); a file with a question mark before it may be missing."""
    prefix: tuple[str, ...] = ()
    """A command that starts the chain inside the limit."""
    sudo: bool = False
    own_network: bool = False
    """Whether the tree's sockets can be told from the host's."""

    @property
    def in_words(self) -> str:
        """What is told when the limit was reached."""
        return f"the compressor reached its memory limit of {self.limit // 2**20} MB"

    @property
    def environment(self) -> dict[str, str]:
        """What the prefix needs to find its service; the chain behind it starts from nothing."""
        if not self.prefix:
            return {}
        names = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
        return {name: os.environ[name] for name in names if name in os.environ}

    def enter(self, command: list[str]) -> list[str]:
        """Return the command line that runs a command inside the limit."""
        if not self.folders:
            return [*self.prefix, *command]
        files = [str(folder / "cgroup.procs") for folder in self.folders]
        words = ["/bin/sh", "-c", _ENTER, str(len(files)), *files]
        # Through sudo only what comes after it may join.
        return [*command[:2], *words, *command[2:]] if command[:2] == ["sudo", "-n"] else [*words, *command]

    def exceeded(self, pid: int) -> bool:
        """Tell whether the limit was reached, by the kernel's own count where there is one."""
        if self.limiter == "docker":
            return False
        if self.limiter == "count":
            # Twice: processes that end, or start others, while they are counted may be counted for more than they hold.
            return all(tree_memory(pid, own_network=self.own_network) > self.limit for _ in range(2))
        if self.limiter == "cgroup-v1" and _number(self.folders[0] / _TCP_USED) >= 0.9 * self.limit:
            return True  # version 1 counts these buffers apart, and ends nobody for them
        return any(_kills(file) > 0 for file in self._events(pid))

    def _events(self, pid: int) -> list[Path]:
        if self.folders:
            return [self.folders[0] / name for name in ("memory.events", "memory.oom_control")]
        with contextlib.suppress(OSError):
            lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
            own = [line.removeprefix("0::/") for line in lines if line.startswith("0::/")]
            return [CGROUP / name / "memory.events" for name in own if name.endswith(".scope")]
        return []

    def make(self) -> None:
        """Create the control group; raise OSError where that is not possible."""
        if self.folders:
            pairs = [word for pair in self.settings for word in pair]
            self._root_shell(_MAKE, str(len(self.folders)), *map(str, self.folders), *pairs)

    def remove(self) -> None:
        """Remove the control group; its processes are gone or going."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                self._root_shell('for _ in 1 2 3 4 5; do rmdir "$0" 2>/dev/null && exit; sleep 0.1; done', str(folder))

    def _root_shell(self, script: str, *words: str) -> None:
        command = [*(["sudo", "-n"] if self.sudo else []), "/bin/sh", "-c", script, *words]
        ran = subprocess.run(command, capture_output=True, check=False, timeout=30)
        if ran.returncode != 0:
            raise OSError(ran.stderr.decode("utf-8", "replace").strip()[:200] or "no reason given")


def _number(file: Path) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(file.read_text(encoding="ascii"))
    return 0


def _kills(file: Path) -> int:
    """Return how many processes the kernel ended because of the limit."""
    with contextlib.suppress(OSError, ValueError):
        for line in file.read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0


def _own_folder(controller: str) -> Path:
    """Return the control group of this process in one v1 hierarchy; limits nest, so a container's own still holds."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, names, path = line.split(":", 2)
            if controller in names.split(",") and (CGROUP / controller / path.lstrip("/")).is_dir():
                return CGROUP / controller / path.lstrip("/")
    return CGROUP / controller


def group_of(
    limiter: MemoryLimiter, name: str, limit: int, processes: int, *, sudo: bool, own_network: bool = False
) -> MemoryGroup:
    """Plan the limit of one run."""
    most = str(processes + _OWN_PROCESSES)
    settings: tuple[tuple[str, str], ...]
    if limiter == "cgroup-v1":
        memory, pids = _own_folder("memory") / name, _own_folder("pids") / name
        settings = (
            (f"{memory}/memory.limit_in_bytes", str(limit)),
            (f"?{memory}/memory.memsw.limit_in_bytes", str(limit)),
            (f"?{memory}/{_TCP_LIMIT}", str(limit)),
            (f"{pids}/pids.max", most),
        )
        folders: tuple[Path, ...] = (memory, pids)
        if (CGROUP / "cpu").is_dir():
            folders += (cpu := _own_folder("cpu") / name,)
            settings += ((f"?{cpu}/cpu.cfs_quota_us", str(PROCESSORS * _PERIOD_US)),)
        return MemoryGroup(limiter, limit, folders, settings, sudo=sudo)
    if limiter == "cgroup-v2":
        # Beside the slices: a group that holds processes itself, as ours does, cannot have limited ones below it.
        folder = CGROUP / name
        settings = (
            (f"{folder}/memory.max", str(limit)),
            (f"?{folder}/memory.swap.max", "0"),
            (f"?{folder}/memory.oom.group", "1"),
            (f"?{folder}/cpu.max", f"{PROCESSORS * _PERIOD_US} {_PERIOD_US}"),
            (f"{folder}/pids.max", most),
        )
        return MemoryGroup(limiter, limit, (folder,), settings, sudo=sudo)
    if limiter == "systemd-user":
        properties = [f"MemoryMax={limit}", "MemorySwapMax=0", f"TasksMax={most}", f"CPUQuota={PROCESSORS}00%"]
        words = ["systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit={name}"]
        return MemoryGroup(limiter, limit, prefix=(*words, *(word for one in properties for word in ("-p", one)), "--"))
    return MemoryGroup(limiter, limit, own_network=own_network)


@contextmanager
def memory_group(
    limiter: MemoryLimiter, limit: int, processes: int, *, sudo: bool, own_network: bool = False
) -> Iterator[MemoryGroup]:
    """Make the limit of one run, and remove it afterwards."""
    name = f"compression-eval-{secrets.token_hex(8)}"
    group = group_of(limiter, name, limit, processes, sudo=sudo, own_network=own_network)
    try:
        group.make()
    except (OSError, subprocess.TimeoutExpired) as exc:
        group.remove()
        raise UserError(f"the control group that limits the compressor's memory could not be made: {exc}") from None
    try:
        yield group
    finally:
        group.remove()


def _works(limiter: MemoryLimiter, *, sudo: bool) -> bool:
    """Start nothing inside the limit once, for real."""
    try:
        with memory_group(limiter, 256 * 2**20, 64, sudo=sudo) as group:
            command = group.enter([*(["sudo", "-n"] if sudo else []), "/usr/bin/env", "-i", "/usr/bin/true"])
            environment = {"PATH": os.environ.get("PATH", os.defpath), **group.environment}
            return (
                subprocess.run(command, capture_output=True, env=environment, check=False, timeout=30).returncode == 0
            )
    except (UserError, OSError, subprocess.TimeoutExpired):
        return False


@functools.cache
def find_limiter(level: str) -> MemoryLimiter:
    """Return the best way to limit memory for a sandbox level, tried for real."""
    if level == "docker":
        return "docker"
    sudo = level == "bwrap-sudo"
    if os.geteuid() == 0 or sudo:
        kind: MemoryLimiter = "cgroup-v2" if (CGROUP / "cgroup.controllers").is_file() else "cgroup-v1"
        if CGROUP.is_dir() and _works(kind, sudo=sudo):
            return kind
    elif shutil.which("systemd-run") and _works("systemd-user", sudo=False):
        return "systemd-user"
    return "count"
