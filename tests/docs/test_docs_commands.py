"""The commands of the documentation are run, in a copy of the repository, beside a repository that adopts the bot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import small
from doc_page import PAGES, Block, blocks

_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "results", "tests", "site")
_MOST_SKIPPED = 7
_RUN = [page for page in PAGES if any(block.language == "sh" and not block.skipped for block in blocks(page))]


def _git(folder: Path, *words: str) -> None:
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *author, *words], check=True, capture_output=True)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
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


class _Shell:
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


def _promised(block: Block) -> Iterator[str]:
    """Yield the pieces of output that a block shows; `...` stands for anything."""
    for line in block.text.splitlines():
        yield from (" ".join(piece.split()) for piece in line.split("...") if piece.strip())


@pytest.mark.parametrize("page", _RUN)
def test_the_commands_of_a_page_do_what_the_page_says(page: str, clone: Path) -> None:
    shell, said = _Shell(clone), ""
    for block in blocks(page):
        if block.language == "sh" and not block.skipped:
            done = shell.run(block)
            said = " ".join((done.stderr + done.stdout).split())
            where = f"{page}:{block.line} ended with {done.returncode}:\n{block.text}\n{done.stdout}\n{done.stderr}"
            assert done.returncode == block.exits, where
        elif block.language == "text" and said:
            for piece in _promised(block):
                assert piece in said, f"{page}:{block.line} shows {piece!r}, which the commands above it do not print"


def test_nearly_every_command_block_is_run() -> None:
    found = [(page, block) for page in PAGES for block in blocks(page) if block.language == "sh"]
    skipped = [f"{page}:{block.line}" for page, block in found if block.skipped]
    assert len(found) - len(skipped) >= 15
    assert len(skipped) <= _MOST_SKIPPED, skipped
