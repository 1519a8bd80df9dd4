"""`run --watch`: an edit of the compressor is measured at once and told as what it lost and regained."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import small

CODE = """KEPT = 40
class Memory:
    def compress(self, messages):
        return [*messages[:1], *messages[-KEPT:]]
"""


@contextmanager
def watching(folder: Path, **options: Any) -> Iterator[tuple[subprocess.Popen[str], Callable[[], str]]]:
    """Start `run --watch`; the function returns what it says until it waits for the next edit."""
    command = [sys.executable, "-u", "-m", "bot", "run", "--watch"]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    ) as process:

        def until_watching() -> str:
            said = ""
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                if line.startswith("Watching "):
                    return said
            raise AssertionError(said)

        try:
            yield process, until_watching
        finally:
            process.kill()


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """Return the one file of a compressor in a folder that is set up for it."""
    small.write_suite(tmp_path, small.cases()[:1])
    small.write(
        tmp_path / ".compression-eval.yml", "target: {compressor: 'memory:Memory', llm: none}\nwatch: [memory.py]\n"
    )
    return small.write(tmp_path / "memory.py", CODE)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.e2e
def test_what_was_begun_in_the_background_of_a_script_ends_at_sigterm(memory: Path) -> None:
    with watching(memory.parent, preexec_fn=_ignore_interrupts) as (process, until_watching):
        until_watching()
        process.terminate()
        process.communicate(timeout=120)
    assert process.returncode == 130


@pytest.mark.e2e
def test_an_edit_is_told_as_what_it_lost_and_the_next_as_what_came_back(memory: Path) -> None:
    length = len(small.cases()[0].fixture.messages)
    code = CODE.replace("40", str(length // 2))
    memory.write_text(code, encoding="utf-8")
    with watching(memory.parent) as (process, until_watching):
        until_watching()
        memory.write_text(code.replace(str(length // 2), "2"), encoding="utf-8")
        lost = until_watching()
        memory.write_text(code, encoding="utf-8")
        gained = until_watching()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    minus = {line[4:] for line in lost.splitlines() if line.startswith("  - ")}
    plus = {line[4:] for line in gained.splitlines() if line.startswith("  + ")}
    assert minus, lost
    assert minus == plus


def test_there_must_be_something_to_watch(tmp_path: Path, cli: small.Cli) -> None:
    ran = cli("run", "--watch", "--target", "builtin:anchored")
    assert ran.code == 2
    assert "nothing to watch" in ran.err
