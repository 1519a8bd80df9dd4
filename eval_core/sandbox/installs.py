"""Releases of a package, installed side by side in a cache: a folder for each, complete or not there."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval_core.base.errors import UserError
from eval_core.base.files import digest
from eval_core.base.globs import watched_digest
from eval_core.domain.package import Package

_VERSION = re.compile(r"^[A-Za-z0-9][\w.+!-]{0,60}$")
_PATIENCE = 1_800
"""Seconds for an installation; the largest take four minutes on a small machine."""
_SAID = 400
_LEAST_FREE = 2**20
"""Bytes; installers end in many ways where less is free."""
_VERSIONS, _PACKAGES, _BUSY, _SCRATCH = "versions.json", "env", "releases.lock", ".installing-"


@dataclass(frozen=True)
class Installed:
    """One release with all that it needs."""

    package: Package
    version: str
    folder: Path

    @property
    def environment(self) -> Path:
        """The virtual environment, or the folder that holds node_modules."""
        return self.folder / _PACKAGES

    @property
    def versions(self) -> dict[str, str]:
        """Every package that was installed, by name."""
        return dict(json.loads((self.folder / _VERSIONS).read_text(encoding="utf-8")))

    @property
    def compaction(self) -> str | None:
        """A digest of the files that compaction is made of; None where the target names none."""
        if self.package.index == "npm":
            return watched_digest(self.environment / "node_modules" / self.package.name, self.package.compaction)
        return watched_digest(next(self.environment.glob("lib/python*/site-packages")), self.package.compaction)


def cache_folder() -> Path:
    """Return where releases are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "compression-eval" / "releases"


def _key(package: Package, version: str) -> str:
    """Return the folder's name: what is in it can only be told by all that was asked for."""
    name = re.sub(r"[^\w.-]+", "-", package.name).strip("-")
    asked = [package.index, package.name, package.extras, package.beside, package.python, package.node, package.scripts]
    return f"{name}-{version}-{digest(asked)[:8]}"


def install(package: Package, version: str, like: Installed | None = None) -> Installed:
    """Install a release, unless it is there already; two commands at once do it one after the other.

    With `like`, what else it needs is taken from there as far as it fits: the two differ in as little as can be.
    """
    if not _VERSION.match(version):
        raise UserError(f"{version!r} is not a version of {package.name}; give one as in its index, for example 1.2.3")
    cache = cache_folder()
    done = Installed(package, version, cache / _key(package, version))
    with _writing(cache), _locked(cache.parent / _BUSY, fcntl.LOCK_SH):
        _remove_stale(cache)
        with _locked(cache / f"{done.folder.name}.lock"):
            if (done.folder / _VERSIONS).exists():
                return done
            with _scratch(cache, done.folder.name) as scratch:
                environment = scratch / _PACKAGES
                found = (
                    _from_pypi(package, version, environment, like)
                    if package.index == "pypi"
                    else _from_npm(package, version, environment)
                )
                (scratch / _VERSIONS).write_text(json.dumps(found, indent=1), encoding="utf-8")
                shutil.rmtree(done.folder, ignore_errors=True)
                scratch.rename(done.folder)
    return done


def prune() -> tuple[int, int]:
    """Remove every installed release; return how many there were, and their bytes."""
    cache = cache_folder()
    if not cache.is_dir():
        return 0, 0
    try:
        with _locked(cache.parent / _BUSY, fcntl.LOCK_EX | fcntl.LOCK_NB):
            folders = [path for path in cache.glob("*") if path.is_dir()]
            size = sum(_size(folder) for folder in folders)
            for folder in folders:
                shutil.rmtree(folder)
            for lock in cache.glob("*.lock"):
                lock.unlink()
    except BlockingIOError:
        raise UserError(f"{cache}: a release is being installed there; remove them when that is done") from None
    return len([folder for folder in folders if not folder.name.startswith(".")]), size


def published(package: Package) -> list[str]:
    """Return the versions that the index has, oldest first; pre-releases are left out."""
    if package.index == "npm":
        said = _run(package, None, ["npm", "view", package.name, "versions", "--json"])
        found = json.loads(said)
        versions = [found] if isinstance(found, str) else list(map(str, found))
    else:
        said = _run(package, None, [sys.executable, "-m", "pip", "index", "versions", package.name])
        listed = re.search(r"^Available versions: (.*)$", said, re.MULTILINE)
        versions = [item.strip() for item in listed[1].split(",")][::-1] if listed else []
    return [version for version in versions if re.fullmatch(r"v?\d+(\.\d+)*(\.post\d+)?", version)]


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@contextlib.contextmanager
def _writing(cache: Path) -> Iterator[None]:
    try:
        cache.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as exc:
        raise UserError(
            f"{cache}: {exc.strerror or exc}; releases are kept there, set XDG_CACHE_HOME to move it"
        ) from None


@contextlib.contextmanager
def _locked(lock: Path, how: int = fcntl.LOCK_EX) -> Iterator[None]:
    with lock.open("a") as file:
        fcntl.flock(file, how)
        yield


def _remove_stale(cache: Path) -> None:
    """Remove what a killed installation left; where one goes on, it holds the release's lock."""
    for left in cache.glob(f"{_SCRATCH}*"):
        name = left.name.removeprefix(_SCRATCH).rpartition("-")[0]
        with contextlib.suppress(BlockingIOError), _locked(cache / f"{name}.lock", fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _scratch(cache: Path, name: str) -> Iterator[Path]:
    """Offer a folder beside the others, which is gone afterwards unless it was renamed."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{_SCRATCH}{name}-", dir=cache))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _from_pypi(package: Package, version: str, environment: Path, like: Installed | None) -> dict[str, str]:
    python = sys.executable
    if package.python and sys.version_info < tuple(map(int, package.python.split("."))):
        found = shutil.which(f"python{package.python}")
        if found is None or subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
            raise UserError(
                f"{package.name} needs Python {package.python} or later, and there is no python{package.python} "
                "on the PATH; install one and try again"
            )
        python = found
    if like is None:
        _run(package, version, [python, "-m", "venv", str(environment)])
    else:
        # Links to the same files: pip replaces files and writes into none.
        shutil.copytree(like.environment, environment, symlinks=True, copy_function=os.link)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    extras = f"[{','.join(package.extras)}]" if package.extras else ""
    _run(package, version, [*pip, "install", "-q", f"{package.name}{extras}=={version}", *package.beside])
    listed = json.loads(_run(package, version, [*pip, "list", "--format=json"]))
    return {item["name"]: item["version"] for item in listed}


def _from_npm(package: Package, version: str, environment: Path) -> dict[str, str]:
    environment.mkdir()
    if shutil.which("npm") is None:
        raise UserError(f"{package.name} is a package of npm, and there is no npm on the PATH; install Node.js")
    words = ["npm", "install", "--prefix", str(environment), "--no-audit", "--no-fund", "--loglevel=error"]
    scripts = [] if package.scripts else ["--ignore-scripts"]
    _run(package, version, [*words, *scripts, f"{package.name}@{version}", *package.beside])
    if package.node:
        _add_node(package.node, environment)
    listed = json.loads((environment / "node_modules" / ".package-lock.json").read_text(encoding="utf-8"))
    return {
        name.removeprefix("node_modules/"): str(about.get("version", "")) for name, about in listed["packages"].items()
    }


def _add_node(major: str, environment: Path) -> None:
    """Put Node beside the agent, from the one copy that the cache has, as links to the same files."""
    node = install(Package(index="npm", name="node"), major).environment / "node_modules"
    modules = environment / "node_modules"
    for source in node.iterdir():
        if source.name.startswith("node"):
            shutil.copytree(source, modules / source.name, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
    (modules / ".bin").mkdir(exist_ok=True)
    link = modules / ".bin" / "node"
    if not link.is_symlink():
        link.symlink_to((node / ".bin" / "node").readlink())


_UNREACHABLE = r"ENOTFOUND|ECONNREFUSED|EAI_AGAIN|Temporary failure|NewConnectionError|ConnectTimeout|Max retries"
_PROBLEMS = (
    (rf".*({_UNREACHABLE}).*", "the package index cannot be reached"),
    (r"(?<![\w.])VERSION Requires-Python [^;\n]*|.*requires a different Python.*", "it needs another Python"),
    (
        r".*(no matching distribution|No matching version|ETARGET|E404|404 Not Found).*",
        "the index lacks this version, or one that it needs",
    ),
    (r".*(Unsupported engine|EBADENGINE).*", "it needs another Node"),
    (r".*(No space left|ENOSPC).*", "the disk is full"),
    (r".*error.*|[\s\S]*", "it was not installed"),
)
"""In this order: after the first two, pip goes on to say that it has no such version."""


def _run(package: Package, version: str | None, words: Sequence[str]) -> str:
    """Run an installer; what it says of a failure becomes one message."""
    named = package.name if version is None else f"{package.name} {version}"
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        raise UserError(f"{named}: the installation took more than {_PATIENCE // 60} minutes and was ended") from None
    except FileNotFoundError:
        raise UserError(f"{named}: {words[0]} cannot be started; is it installed?") from None
    if done.returncode == 0:
        return done.stdout
    said = (done.stderr or done.stdout).strip()
    asked = re.escape(version or "")
    tried = ((re.search(one.replace("VERSION", asked), said, re.IGNORECASE), text) for one, text in _PROBLEMS)
    line, why = next((found[0][-_SAID:], text) for found, text in tried if found)
    if cache_folder().exists() and shutil.disk_usage(cache_folder()).free < _LEAST_FREE:
        why = "the disk is full"
    raise UserError(f"{named}: {why} ({line}). Nothing of it was kept")
