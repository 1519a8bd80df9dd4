"""The commands of the documentation are run, in a copy of the repository, beside a repository that adopts the bot."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_page import PAGES, blocks
from doc_shell import DocShell, make_clone, promised

_MOST_SKIPPED = 15
_ELSEWHERE = ("docs/tutorial-typescript.md",)
"""Run by a test of their own, which needs more than a clone."""
_RUN = [
    page
    for page in PAGES
    if page not in _ELSEWHERE and any(block.language == "sh" and not block.skipped for block in blocks(page))
]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    return make_clone(tmp_path)


@pytest.mark.parametrize("page", _RUN)
def test_the_commands_of_a_page_do_what_the_page_says(page: str, clone: Path) -> None:
    shell, said = DocShell(clone), ""
    for block in blocks(page):
        if block.language == "sh" and not block.skipped:
            done = shell.run(block)
            said = " ".join((done.stderr + done.stdout).split())
            where = f"{page}:{block.line} ended with {done.returncode}:\n{block.text}\n{done.stdout}\n{done.stderr}"
            assert done.returncode == block.exits, where
        elif block.language == "text" and said:
            for piece in promised(block):
                assert piece in said, f"{page}:{block.line} shows {piece!r}, which the commands above it do not print"


def test_nearly_every_command_block_is_run() -> None:
    found = [(page, block) for page in PAGES for block in blocks(page) if block.language == "sh"]
    skipped = [f"{page}:{block.line}" for page, block in found if block.skipped]
    assert len(found) - len(skipped) >= 15
    assert len(skipped) <= _MOST_SKIPPED, skipped
