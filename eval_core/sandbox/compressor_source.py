"""What a compressor is made of: its description, its files and its installed packages, read and never run.

A commit does not say it: an edit that is not committed measures something else under the same name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import eval_core.compressors
from eval_core.base.files import digest, open_file, read_text
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.target import Builtin, CompressorSource, TargetSpec
from eval_core.sandbox.isolation import interpreter, prefixes
from eval_core.sandbox.targets import Target

_MODULES = (".py", ".so", ".pyd")
_SKIPPED = frozenset({"__pycache__", "node_modules", "site-packages"})


def source_of(target: Target, *, watch: Sequence[str] = (), hidden: Sequence[str] = ()) -> CompressorSource:
    """Read what a target is made of; hidden folders, caches and environments are no part of it."""
    if isinstance(target.spec, Builtin) or isinstance(target.written, Builtin):
        folder = Path(eval_core.compressors.__file__).parent
        files = {f"compression-eval/{path.name}": _file_digest(path) for path in sorted(folder.glob("*.py"))}
        return CompressorSource(description={"target": target.spec.name}, files=files)
    shut = {(target.tree / name).resolve() for name in hidden}
    found = set(_watched(target.tree, (*target.spec.watch, *watch), shut))
    if target.spec.command is None:
        for root in target.spec.pythonpath:
            found.update(_importable(Path(root), shut))
        packages = _packages(interpreter(target.spec.python))
    else:
        # What a program reads cannot be told from its name, in any language: all that lies in its folder counts.
        directory = Path(target.spec.directory)
        found.update(folder / file for folder, files in _walk(directory, shut) for file in files)
        packages = _command_packages(Path(target.spec.runtime) if target.spec.runtime else directory)
    return CompressorSource(
        description=_description(target.written, target.spec.adapter),
        files={path.relative_to(target.tree).as_posix(): _file_digest(path) for path in sorted(found)},
        packages=packages,
    )


def _description(written: TargetSpec, adapter: str | None) -> dict[str, str]:
    # A field that is newer than stored baselines counts only where it is used.
    left_out = {"watch"} if written.recall else {"watch", "recall"}
    fields = {name: digest(value)[:16] for name, value in written.model_dump(mode="json", exclude=left_out).items()}
    if adapter is not None:
        fields["adapter"] = digest(read_text(Path(adapter)))[:16]
    return fields


def _file_digest(path: Path) -> str:
    """Return a digest of a file; of a link, also of where it leads to."""
    found = hashlib.sha256(os.fsencode(path.readlink()) if path.is_symlink() else b"")
    try:
        with open_file(path) as stream:
            while block := stream.read(1 << 20):
                found.update(block)
    except OSError as exc:
        found.update(type(exc).__name__.encode())  # what cannot be read here cannot be imported there either
    return found.hexdigest()[:16]


def _walk(top: Path, shut: set[Path]) -> Iterator[tuple[Path, list[str]]]:
    """Yield folders with their files; not what is hidden, starts with a dot, or is an environment of its own."""
    for name, folders, files in os.walk(top):
        here = Path(name)
        folders[:] = sorted(
            folder
            for folder in folders
            if not folder.startswith(".")
            and folder not in _SKIPPED
            and (here / folder).resolve() not in shut
            and not (here / folder / "pyvenv.cfg").is_file()
        )
        yield here, [file for file in files if not file.endswith(".pyc")]


def _importable(root: Path, shut: set[Path]) -> Iterator[Path]:
    """Yield modules, and in folders that hold modules everything: templates and data shape a summary as well."""
    packages: set[Path] = set()
    for folder, files in _walk(root, shut):
        if folder != root and (folder.parent in packages or any(file.endswith(_MODULES) for file in files)):
            packages.add(folder)
        for file in files:
            if folder in packages or file.endswith(_MODULES):
                yield folder / file


def _watched(tree: Path, globs: Sequence[str], shut: set[Path]) -> Iterator[Path]:
    for glob in globs:
        if glob.startswith("/") or ".." in Path(glob).parts or not glob.strip("./"):
            continue
        for path in tree.glob(glob.removesuffix("/")):
            if path.is_dir():
                yield from (folder / file for folder, files in _walk(path, shut) for file in files)
            elif path.is_file() and not any(folder in shut for folder in path.resolve().parents):
                yield path


def _distributions(prefix: Path) -> dict[str, str]:
    return {
        name.lower(): version
        for lib in ("lib", "lib64")
        for pattern in ("python3*/site-packages", "python3*/dist-packages")
        for folder in sorted((prefix / lib).glob(f"{pattern}/*.*-info"))
        for name, _, version in (folder.stem.partition("-"),)
    }


def _command_packages(runtime: Path) -> dict[str, str]:
    """Return what is installed beside a command: Node's packages, and Python's where it is an environment."""
    found = _distributions(runtime)
    for pattern in ("node_modules/*/package.json", "node_modules/@*/*/package.json"):
        for file in sorted(runtime.glob(pattern)):
            try:
                with open_file(file) as stream:
                    described = parse_json(stream.read())
            except (OSError, BadJson):
                continue
            if isinstance(described, dict) and isinstance(described.get("name"), str):
                found[described["name"]] = str(described.get("version", ""))
    return found


def _packages(python: Path) -> dict[str, str]:
    """Return the names and versions of the installed distributions, from the folders that installers leave."""
    found = {}
    for prefix in prefixes(python):
        config = prefix / "pyvenv.cfg"
        text = config.read_text(encoding="utf-8", errors="replace").lower() if config.is_file() else ""
        values = dict(line.replace(" ", "").split("=", 1) for line in text.splitlines() if "=" in line)
        for key in ("version", "version_info"):
            if key in values:
                found["python"] = values[key]
        found.update(_distributions(prefix))
        if text and values.get("include-system-site-packages") != "true":
            break  # the installation's own packages are not seen from here
    return found
