"""What the child sees of the file system: the interpreter, the tree under test, the launcher, the gateway."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from eval_core.errors import UserError

__all__ = ["ALWAYS_HIDDEN", "CHILD", "View", "interpreter", "open_view", "view_of"]

CHILD = Path(__file__).parent / "child"
TREE, LAUNCHER, GATEWAY, HOME = "/subject", "/launcher", "/gw", "/home/subject"

ALWAYS_HIDDEN = (".git", ".env", ".netrc", ".npmrc", ".pypirc", ".aws", ".ssh", ".compression-eval.yml")
"""Names at the root of the tree that never help a compressor and often hold a credential."""

PREFIX_PARTS = ("bin", "lib", "lib64", "share")
"""What an interpreter needs of its prefix; the rest of the folder (pip.conf, or a whole home) stays out."""


@dataclass(frozen=True)
class View:
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


def interpreter(named: str | None, base: Path) -> Path:
    """Return the interpreter that a spec names, links unresolved so that a virtual environment stays one."""
    if named is None:
        return Path(sys.executable)
    path = Path(os.path.normpath(base / Path(named).expanduser()))
    if not path.is_file() or not os.access(path, os.X_OK):
        raise UserError(f"target.python: {path} is not an executable file; create the environment or fix the path")
    return path


def _prefixes(python: Path) -> list[Path]:
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


def _covered(path: Path) -> bool:
    return path == Path("/") or Path("/usr") in (path, *path.parents)


def _tree_mounts(tree: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the mounts and links that show the tree to a uid of nobody's.

    A folder that only its owner may enter, as temporary folders are, is shown entry by entry. A link
    among them is made anew inside, never followed here: where it leads is the pull request's choice.
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


def open_view(python: Path, tree: Path, folder: Path) -> View:
    """Describe a run without a sandbox: everything is where it is."""
    return View(
        python=str(python),
        binds=(),
        tree=str(tree),
        launcher=str(CHILD),
        gateway=str(folder / "gw"),
        home=str(folder / "home"),
    )


def view_of(python: Path, tree: Path, gateway: Path | None, hidden: tuple[str, ...] = ()) -> View:
    """Plan the mounts for one interpreter and one tree; hidden names are relative to the tree."""
    tree = tree.resolve()  # of a relative one nothing could be shown, nor hidden
    binds: list[tuple[str, str]] = []
    for prefix in _prefixes(python):
        if _covered(prefix):
            continue
        binds += [(str(prefix / part), str(prefix / part)) for part in PREFIX_PARTS if (prefix / part).is_dir()]
        if (prefix / "pyvenv.cfg").is_file():
            binds.append((str(prefix / "pyvenv.cfg"), str(prefix / "pyvenv.cfg")))
    tree_binds, links = _tree_mounts(tree)
    binds += [*tree_binds, (str(CHILD), LAUNCHER)]
    if gateway is not None:
        binds.append((str(gateway), GATEWAY))
    masks: list[tuple[str, bool]] = []
    for name in dict.fromkeys((*ALWAYS_HIDDEN, *hidden)):
        # Where the name is a link, what it leads to is what has to be covered.
        path = (tree / name).resolve()
        if tree in path.parents and path.exists():
            masks.append((f"{TREE}/{path.relative_to(tree)}", path.is_dir()))
    return View(python=str(python), binds=tuple(binds), masks=tuple(masks), links=tuple(links))
