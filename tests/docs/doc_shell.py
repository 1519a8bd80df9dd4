"""A clone of this repository as the documentation assumes it, and a shell that runs a page's blocks in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import small
from doc_page import Block

__all__ = ["DocShell", "make_clone", "promised"]

_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "results", "tests", "site")


def _git(folder: Path, *words: str) -> None:
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True, capture_output=True)


def make_clone(tmp_path: Path) -> Path:
    """A clone of this repository as the documentation assumes it, with somebody's agent in the folder beside it."""
    clone, agent = tmp_path / "compression-eval", tmp_path / "my-agent"
    shutil.copytree(small.REPOSITORY, clone, ignore=_LEFT_OUT)
    (clone / ".venv").symlink_to(sys.prefix)
    shutil.copytree(small.REPOSITORY / "eval_core" / "compressors", agent / "agent")
    for folder in (clone, agent):
        _git(folder, "init", "-q")
        _git(folder, "add", "-A")
        _git(folder, "commit", "-qm", "Start")
    _git(clone, "remote", "add", "origin", "https://github.com/example/compression-eval.git")
    return clone


class DocShell:
    """Runs one block after the other; the folder that a block changes to is where the next one starts."""

    def __init__(self, clone: Path) -> None:
        self._place = clone.parent / "place"
        self._place.write_text(f"{clone}\n", encoding="utf-8")
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(clone),
            "HOME": str(clone.parent),
            "LANG": "C.UTF-8",
        }

    def run(self, block: Block) -> subprocess.CompletedProcess[str]:
        script = f"trap 'pwd >\"{self._place}\"' EXIT\nset -euo pipefail\n{block.text}"
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self._place.read_text(encoding="utf-8").rstrip("\n"),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def promised(block: Block) -> Iterator[str]:
    """Yield the pieces of output that a block shows; `...` stands for anything."""
    for line in block.text.splitlines():
        yield from (" ".join(piece.split()) for piece in line.split("...") if piece.strip())
