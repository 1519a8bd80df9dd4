"""Sandbox levels: choosing bubblewrap, docker or none, what the child sees of the file system, and the command line."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from eval_core.base.errors import UserError
from eval_core.sandbox.credential_files import credentials_in
from eval_core.sandbox.memory import LIMITERS, PROCESSORS, MemoryGroup, MemoryLimiter, find_limiter, memory_group
from eval_core.sandbox.seccomp import abi_of, program

# What the child sees of the file system: the interpreter, the tree under test, the launcher, the gateway.

CHILD = Path(__file__).parent / "child"
TREE, LAUNCHER, GATEWAY, HOME = "/subject", "/launcher", "/gw", "/home/subject"
SCRATCH = 64 * 1024 * 1024

PREFIX_PARTS = ("bin", "lib", "lib64", "share")
"""What an interpreter needs of its prefix; the rest of the folder (pip.conf, or a whole home) stays out."""

RUNTIME_PARTS = ("bin", "lib", "lib64", "libexec", "share", "node_modules")
"""What is shown of a command's runtime folder."""


@dataclass(frozen=True)
class SandboxView:
    """The mounts of one run, in order, and where things are inside."""

    python: str
    binds: tuple[tuple[str, str], ...]
    """Read-only: (path on the host, path inside)."""
    masks: tuple[tuple[str, bool], ...] = ()
    """Paths inside that are covered with nothing: (path, whether it is a folder)."""
    links: tuple[tuple[str, str], ...] = ()
    """Symbolic links to be made: (what they lead to, path inside)."""
    tree: str = TREE
    launcher: str = LAUNCHER
    gateway: str = GATEWAY
    home: str = HOME
    scratch: int = SCRATCH
    """The most that fits into the home, in bytes."""

    def outside(self, text: str, tree: Path) -> str:
        """Return a text from inside with paths as the user knows them: below the tree, or the tree's own."""
        inside = re.escape(self.tree)
        text = re.sub(rf"(?<![\w./-]){inside}/(?=[\w.])", "", text)
        return re.sub(rf"(?<![\w./-]){inside}(?![\w/-])", lambda _: str(tree), text)


def interpreter(named: str | None) -> Path:
    """Return the interpreter that a resolved spec names, its link left alone; ours where it names none."""
    if named is None:
        return Path(sys.executable)
    path = Path(named)
    if path.is_dir():
        raise UserError(f"target.python: {path} is a folder; name the interpreter in it, {path / 'bin' / 'python'}")
    if not path.is_file():
        raise UserError(
            f"target.python: {path}: no such file; create the environment (`setup:` in .compression-eval.yml) "
            "or fix the path, which is relative to the file that names it"
        )
    if not os.access(path, os.X_OK):
        raise UserError(f"target.python: {path} is not executable; name the python of a virtual environment")
    return path


def prefixes(python: Path) -> list[Path]:
    """Return the folders that an interpreter lives from: its virtual environment and its installation."""
    found = []
    config = python.parent.parent / "pyvenv.cfg"
    if config.is_file():
        found.append(python.parent.parent)
        for line in config.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home" and value.strip():
                found.append(Path(value.strip()).parent)
    else:
        found.append(python.parent.parent)
    found.append(python.resolve().parent.parent)
    return list(dict.fromkeys(found))


def interpreter_mounts(python: Path) -> list[tuple[str, str]]:
    """Return the mounts of what an interpreter lives from, each where it is."""
    binds = []
    for prefix in prefixes(python):
        if _covered(prefix):
            continue
        binds += [(str(prefix / part), str(prefix / part)) for part in PREFIX_PARTS if (prefix / part).is_dir()]
        if (prefix / "pyvenv.cfg").is_file():
            binds.append((str(prefix / "pyvenv.cfg"), str(prefix / "pyvenv.cfg")))
    return binds


def _covered(path: Path) -> bool:
    return path == Path("/") or Path("/usr") in (path, *path.parents)


def _tree_mounts(tree: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the mounts and links that show the tree to an unused uid.

    A folder that only its owner may enter, as temporary folders are, is shown entry by entry. A link
    among them is made again inside, never followed here: where it leads is the pull request's choice.
    """
    if tree.stat().st_mode & 0o005 == 0o005:
        return [(str(tree), TREE)], []
    binds, links = [], []
    for entry in sorted(tree.iterdir()):
        if entry.is_symlink():
            links.append((str(entry.readlink()), f"{TREE}/{entry.name}"))
        elif entry.is_dir() or entry.is_file():
            binds.append((str(entry), f"{TREE}/{entry.name}"))
    return binds, links


def open_view(python: Path, tree: Path, folder: Path) -> SandboxView:
    """Describe a run without a sandbox: everything is where it is."""
    return SandboxView(
        python=str(python),
        binds=(),
        tree=str(tree),
        launcher=str(CHILD),
        gateway=str(folder / "gw"),
        home=str(folder / "home"),
    )


def runtime_mounts(runtime: Path) -> list[tuple[str, str]]:
    """Return the mounts of what a command lives from: its folders where they are, and its packages at the root.

    Node looks for packages in every folder above a file, so `/node_modules` serves the tree and the adapter alike.
    Only known parts are shown: the folder may be a whole repository, probes included.
    """
    if not runtime.is_dir():
        raise UserError(f"target.runtime: {runtime} is not a folder; install what the command needs, or fix the path")
    binds = [(str(runtime / part), str(runtime / part)) for part in RUNTIME_PARTS if (runtime / part).is_dir()]
    if not binds and not _covered(runtime):
        raise UserError(f"target.runtime: {runtime} has none of {', '.join(RUNTIME_PARTS)}, so it shows nothing")
    if (runtime / "node_modules").is_dir():
        binds.append((str(runtime / "node_modules"), "/node_modules"))
    return [] if _covered(runtime) else binds


def view_of(
    python: Path, tree: Path, gateway: Path | None, hidden: tuple[str, ...] = (), runtime: str | None = None
) -> SandboxView:
    """Plan the mounts for one interpreter and one tree; hidden names are relative to the tree."""
    tree = tree.resolve()  # of a relative one nothing could be shown, nor hidden
    binds: list[tuple[str, str]] = [] if runtime is None else runtime_mounts(Path(runtime))
    binds += interpreter_mounts(python)
    tree_binds, links = _tree_mounts(tree)
    binds += [*tree_binds, (str(CHILD), LAUNCHER)]
    if gateway is not None:
        binds.append((str(gateway), GATEWAY))
    shut = tuple(tree / name for name in hidden)
    masks = _masks([*shut, *credentials_in(tree, shut)], tree, TREE)
    for outside, inside in [] if runtime is None else runtime_mounts(Path(runtime)):
        shown = Path(outside).resolve()
        masks += _masks(credentials_in(shown), shown, inside)
    return SandboxView(python=str(python), binds=tuple(binds), masks=tuple(masks), links=tuple(links))


def _masks(paths: Iterable[Path], root: Path, inside: str) -> list[tuple[str, bool]]:
    """Return what covers the paths below a root; where one is a link, what it leads to is what has to be covered."""
    real = {Path(os.path.realpath(path)): None for path in paths}  # of links that go round in circles, too
    below = [path for path in real if root in path.parents and real.keys().isdisjoint(path.parents)]
    seen = [path for path in below if os.path.exists(path)]  # noqa: PTH110 - Path's raises where nobody may look
    return [(f"{inside}/{path.relative_to(root)}", path.is_dir()) for path in seen]


# Choosing a sandbox and writing its command line.

Level = Literal["bwrap-root", "bwrap-sudo", "bwrap-user", "docker", "none"]
Wanted = Literal["auto", "bwrap", "docker", "none"]

NONE_WARNING = (
    "no sandbox: the compressor runs with your rights and can read your files and reach your network. "
    "Only the environment is scrubbed. Use this for your own code alone."
)
IMAGE = "compression-eval-sandbox:1"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROCESSES = 128
DESCRIPTORS = 512
BOOTSTRAP = (
    "import importlib.util as u,sys;d=sys.argv[1];n='_compression_eval_child';"
    "s=u.spec_from_file_location(n,d+'/__init__.py',submodule_search_locations=[d]);"
    "m=u.module_from_spec(s);sys.modules[n]=m;s.loader.exec_module(m);"
    "from _compression_eval_child.{module} import main;main()"
)
"""Loads a module of the launcher under a name that no target uses."""

ETC = {
    "passwd": "subject:x:65534:65534::/home/subject:/bin/false\n",
    "group": "subject:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_uids = itertools.count()


def _fresh_uid() -> int:
    """Return an unused uid: process limits count per uid, so runs side by side must not share one."""
    return 1_900_000_000 + (os.getpid() % 200_000) * 1000 + next(_uids) % 1000


@contextmanager
def run_folder() -> Iterator[Path]:
    """Make the folder of one run: `gw` for the gateway's socket, `etc`, the filter; removed at the end."""
    with tempfile.TemporaryDirectory(prefix="ce-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)  # the child's uid passes through; the names inside are fixed and mounted anyway
        (folder / "gw").mkdir(mode=0o755)
        (folder / "etc").mkdir(mode=0o755)
        (folder / "home").mkdir(mode=0o700)
        for file, text in ETC.items():
            (folder / "etc" / file).write_text(text, encoding="ascii")
            (folder / "etc" / file).chmod(0o644)
        yield folder


def _environment(view: SandboxView) -> dict[str, str]:
    """Return all that the child's environment holds before the spec's own variables."""
    return {
        "PATH": f"{Path(view.python).parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": view.home,
        "USER": "subject",
        "LOGNAME": "subject",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        "NO_PROXY": "*",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",  # the child is ended, not asked to end: nothing may wait in a buffer
        # Address space is limited, and libc would otherwise reserve much of it for each thread.
        "MALLOC_ARENA_MAX": "2",
        "OMP_NUM_THREADS": str(PROCESSORS),
        "OPENBLAS_NUM_THREADS": str(PROCESSORS),
    }


def _python(view: SandboxView, module: str) -> list[str]:
    return [view.python, "-s", "-B", "-c", BOOTSTRAP.format(module=module), view.launcher]


def _system_mounts(folder: Path) -> list[str]:
    """Mount /usr read-only with the links to it, and an /etc of our own."""
    words = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/") / name
        if path.is_symlink():
            words += ["--symlink", str(path.readlink()), f"/{name}"]
        elif path.is_dir():
            words += ["--ro-bind", str(path), f"/{name}"]
    words += ["--dir", "/etc"]  # as a mount point's parent it would be closed, and OpenSSL in Node gives up on that
    for name in ETC:
        words += ["--ro-bind", str(folder / "etc" / name), f"/etc/{name}"]
    for name in ("ld.so.cache", "alternatives"):
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return words


def _bwrap_common(view: SandboxView, folder: Path, memory: MemoryLimiter) -> list[str]:
    words = [
        "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try",
        "--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "sandbox",
    ]  # fmt: skip
    words += _system_mounts(folder)
    words += ["--proc", "/proc", "--dev", "/dev"]
    if memory == "count":
        words += ["--ro-bind", "/dev/null", "/dev/zero"]  # a shared mapping of it is memory that cannot be counted
    words += ["--perms", "1777", "--size", str(SCRATCH // 4), "--tmpfs", "/dev/shm"]  # noqa: S108
    for scratch, size in (("/tmp", SCRATCH), (view.home, view.scratch)):  # noqa: S108
        words += ["--perms", "1777", "--size", str(size), "--tmpfs", scratch]
    folders = [view.tree, *(str(up) for _, inside in view.binds for up in reversed(Path(inside).parents[:-1]))]
    for name in dict.fromkeys(folders):
        words += ["--dir", name]  # bubblewrap makes the parents of a mount point for root alone
    for outside, inside in view.binds:
        words += ["--ro-bind", outside, inside]
    for leads_to, inside in view.links:
        words += ["--symlink", leads_to, inside]
    for path, is_folder in view.masks:
        words += ["--perms", "0000", "--size", "4096", "--tmpfs", path] if is_folder else [
            "--ro-bind", "/dev/null", path]  # fmt: skip
        words += ["--remount-ro", path] if is_folder else []
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--seccomp", "9", "--chdir", "/", "--clearenv"]
    for name, value in _environment(view).items():
        words += ["--setenv", name, value]
    return words


def _with_filter(folder: Path, words: list[str], memory: MemoryLimiter) -> list[str]:
    """Open the filter on descriptor 9 in a shell that then becomes the command; sudo closes ours."""
    file = folder / "filter.bpf"
    file.write_bytes(program(abi_of(), counted=memory == "count"))
    file.chmod(0o644)
    return ["/bin/sh", "-c", 'exec 9<"$0"; exec "$@"', str(file), *words]


def _set_user(uid: int) -> list[str]:
    return [
        "setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--no-new-privs",
        "--inh-caps=-all", "--bounding-set=-all",
    ]  # fmt: skip


# The signal of --die-with-parent reaches a process of the same uid alone, and a change of uid clears it. So the first
# process stays root's own and only waits; the kernel ends it with us, and with it all that is in its namespace.
_FIRST_PROCESS = ["/bin/sh", "-c", '"$@"; exit $?', "sh"]


@functools.cache
def _bwrap_knows(option: str) -> bool:
    shown = subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False)
    return option in shown.stdout + shown.stderr


@dataclass(frozen=True)
class SandboxChoice:
    """How children are confined on this machine."""

    level: Level
    warning: str = ""
    """For the user, where the choice is weaker than they may think."""
    memory: MemoryLimiter = "count"
    """What keeps the tree within its memory."""

    @property
    def in_words(self) -> str:
        """How provenance and `doctor` tell of it."""
        return f"{self.level}, memory limited by {LIMITERS[self.memory]}"

    @property
    def confined(self) -> bool:
        """Whether a stranger's code may run under this choice."""
        return self.level != "none"

    @property
    def limits_processes(self) -> bool:
        """Whether the child has a uid, or a user namespace, of its own that processes can be counted by."""
        return self.level.startswith("bwrap")

    def limit_memory(self, memory: int) -> AbstractContextManager[MemoryGroup]:
        """Return the limit of one run's whole tree, in bytes; it is there while the context is open."""
        return memory_group(self.memory, memory, PROCESSES, sudo=self.level == "bwrap-sudo", own_network=self.confined)

    def resource_limits(self, memory: int, seconds: float, *, address_space: bool = True) -> dict[str, int]:
        """Return the limits that the launcher sets on itself, and so on all that it starts.

        Without a limit of address space for runtimes that reserve far more than they use, as Node and Bun do: the
        limit of the whole tree holds for them all the same.
        """
        limits = {"CORE": 0, "NOFILE": DESCRIPTORS, "FSIZE": SCRATCH, "CPU": PROCESSORS * int(seconds) + 1}
        if address_space:
            limits["AS"] = memory
        else:
            limits["NOFILE"] = 2 * DESCRIPTORS  # the same runtimes open every module of a large bundle at once
        if self.limits_processes:
            limits["NPROC"] = PROCESSES
        return limits

    def command(
        self, view: SandboxView, folder: Path, seconds: float, memory: int, module: str = "launch"
    ) -> list[str]:
        """Return the command line that starts a module of the launcher; stdin and stdout carry its frames."""
        return self.wrap(view, folder, _python(view, module), seconds, memory)

    def wrap(self, view: SandboxView, folder: Path, inner: list[str], seconds: float, memory: int) -> list[str]:
        """Return the command line that runs any command in the view."""
        clean = ["/usr/bin/env", "-i", f"PATH={PATH}"]
        if self.level == "none":
            values = {**_environment(view), "TMPDIR": view.home}
            return ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in values.items()), *inner]
        if self.level == "docker":
            return _docker(view, folder, inner, memory)
        common = _bwrap_common(view, folder, self.memory)
        if self.level == "bwrap-user":
            userns = ["--unshare-user", *(["--disable-userns"] if _bwrap_knows("--disable-userns") else [])]
            bwrap = _with_filter(folder, ["bwrap", *userns, "--cap-drop", "ALL", *common, "--", *inner], self.memory)
            return [*clean, *(_set_user(_fresh_uid()) if os.geteuid() == 0 else []), *bwrap]
        keep = [word for cap in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP") for word in ("--cap-add", cap)]
        bwrap = ["bwrap", "--cap-drop", "ALL", *keep, *common, "--", *_FIRST_PROCESS, *_set_user(_fresh_uid()), *inner]
        if self.level == "bwrap-root":
            return [*clean, *_with_filter(folder, bwrap, self.memory)]
        # Through sudo we are not the parent: a clock of root's own ends the run if we cannot.
        backstop = ["timeout", "-k", "5", str(int(seconds) + 60)]
        return ["sudo", "-n", *clean, *backstop, *_with_filter(folder, bwrap, self.memory)]


def _docker_path(path: str, separator: str = "") -> str:
    """Return a path that docker takes as it is; its name may be the pull request's choice."""
    # The client drops a carriage return, refuses space at either end, and replaces what is not UTF-8.
    if path != path.strip() or re.search(r"[\x00-\x1f\x7f\ud800-\udfff]", path) or (separator and separator in path):
        raise UserError(
            f"docker cannot mount {path!r}: its name holds a character that the command line of docker cannot express; "
            "rename it, or use bubblewrap (--sandbox bwrap)"
        )
    return path


def _docker_mount(outside: str, inside: str) -> str:
    """Return the value of --mount, which docker reads as a line of CSV: a comma in a name would begin an option."""
    line = io.StringIO()
    fields = ["type=bind", f"src={_docker_path(outside)}", f"dst={_docker_path(inside)}", "readonly"]
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def _docker(view: SandboxView, folder: Path, inner: list[str], memory: int) -> list[str]:
    words = [
        "docker", "run", "--rm", "-i", "--name", folder.name, "--log-driver", "none", "--pull", "never",
        "--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
        "--user", "65534:65534", "--pids-limit", str(PROCESSES), "--memory", f"{memory}m",
        "--memory-swap", f"{memory}m", "--ipc", "private", "--hostname", "sandbox", "--workdir", "/",
    ]  # fmt: skip
    for scratch, size in (("/tmp", SCRATCH), (view.home, view.scratch)):  # noqa: S108
        words += ["--tmpfs", f"{scratch}:rw,nosuid,nodev,size={size},mode=1777"]
    binds = [("/usr", "/usr"), *((str(folder / "etc" / name), f"/etc/{name}") for name in ETC), *view.binds]
    binds += [("/etc/ld.so.cache", "/etc/ld.so.cache")] if Path("/etc/ld.so.cache").is_file() else []
    binds += [("/dev/null", path) for path, is_folder in view.masks if not is_folder]
    for outside, inside in binds:
        words += ["--mount", _docker_mount(outside, inside)]
    for path, is_folder in view.masks:
        words += ["--tmpfs", f"{_docker_path(path, ':')}:ro,size=4096,mode=0000"] if is_folder else []
    for name, value in _environment(view).items():
        words += ["--env", f"{name}={value}"]
    return [*words, "--entrypoint", inner[0], IMAGE, *inner[1:]]


def _docker_image() -> str | None:
    """Make sure of an image that is nothing but the links to /usr, or say why it cannot be had."""
    if not shutil.which("docker"):
        return "not installed"
    present = subprocess.run(["docker", "image", "inspect", IMAGE], capture_output=True, check=False)
    if present.returncode == 0:
        return None
    blank = io.BytesIO()
    with tarfile.open(fileobj=blank, mode="w") as archive:
        for name in ("bin", "sbin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
    made = subprocess.run(["docker", "import", "-", IMAGE], input=blank.getvalue(), capture_output=True, check=False)
    return None if made.returncode == 0 else _last_line(made.stderr)


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:200] if lines else "no reason given"


def _trouble(choice: SandboxChoice) -> str | None:
    """Start nothing in the sandbox once, for real; return why it does not work here."""
    if choice.level == "docker" and (missing := _docker_image()):
        return missing
    if choice.level.startswith("bwrap") and not shutil.which("bwrap"):
        return "bubblewrap is not installed"
    if choice.level == "bwrap-sudo" and not shutil.which("sudo"):
        return "sudo is not installed"
    view = SandboxView(python="/usr/bin/true", binds=())
    with run_folder() as folder:
        command = choice.wrap(view, folder, ["/usr/bin/true"], 10, 256)
        try:
            tried = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as exc:
            return str(exc)[:200]
    return None if tried.returncode == 0 else _last_line(tried.stderr)


@functools.cache
def detect(wanted: Wanted = "auto") -> SandboxChoice:
    """Return the strongest sandbox that works here, tried for real, or refuse and say how to get one."""
    if wanted == "none":
        return SandboxChoice("none", NONE_WARNING, find_limiter("none"))
    levels: list[Level] = ["bwrap-root"] if os.geteuid() == 0 else ["bwrap-sudo"]
    levels.append("bwrap-user")
    if wanted == "docker":
        levels = ["docker"]
    elif wanted == "auto":
        levels.append("docker")
    troubles = []
    for level in levels:
        choice = SandboxChoice(level)
        trouble = _trouble(choice)
        if trouble is None:
            return replace(choice, memory=find_limiter(level))
        troubles.append(f"{level}: {trouble}")
    raise UserError(
        "no sandbox works here, and a compressor under test is not run without one. Install bubblewrap (apt-get "
        "install bubblewrap); where user namespaces are restricted, as on Ubuntu 24.04, allow passwordless sudo or "
        "start Docker. On your own machine, for code that you trust: --sandbox none. Tried: " + "; ".join(troubles)
    )
