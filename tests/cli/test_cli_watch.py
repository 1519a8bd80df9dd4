"""`run --watch`: an edit of the compressor is measured at once and told as what it lost and regained."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import small

CODE = """KEPT = 40
class Memory:
    def compress(self, messages):
        return [*messages[:1], *messages[-KEPT:]]
"""


@pytest.mark.e2e
def test_an_edit_is_told_as_what_it_lost_and_the_next_as_what_came_back(tmp_path: Path) -> None:
    small.write_suite(tmp_path, small.cases()[:1])
    length = len(small.cases()[0].fixture.messages)
    code = CODE.replace("40", str(length // 2))
    module = small.write(tmp_path / "memory.py", code)
    small.write(
        tmp_path / ".compression-eval.yml", "target: {compressor: 'memory:Memory', llm: none}\nwatch: [memory.py]\n"
    )
    command = [sys.executable, "-u", "-m", "bot", "run", "--watch"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:

        def until_watching() -> str:
            said = ""
            assert process.stdout is not None
            for line in process.stdout:
                said += line
                if line.startswith("Watching "):
                    return said
            raise AssertionError(said)

        until_watching()
        module.write_text(code.replace(str(length // 2), "2"), encoding="utf-8")
        lost = until_watching()
        module.write_text(code, encoding="utf-8")
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
