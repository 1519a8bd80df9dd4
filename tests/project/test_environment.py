"""What the scripts say while they install: never silent for long, and the reason where it fails."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "environment.sh"


def on_terminal(commands: str) -> tuple[str, int]:
    """Run shell commands after the script was sourced, with a terminal as stderr; return what it showed."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["bash", "-c", f'. "$0"; {commands}', str(SCRIPT)], stdin=subprocess.DEVNULL, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:
            pass  # the other end is closed: everything was read
        code = process.wait()
    os.close(ours)
    return shown.decode(), code


def test_a_long_command_shows_the_seconds_and_what_it_is_at(tmp_path: Path) -> None:
    # It ends when its line was shown, however slow this machine is.
    flag = tmp_path / "shown"
    command = f"bash -c 'echo Collecting things; while [ ! -e {flag} ]; do sleep 0.1; done'"
    shown, code = on_terminal(f'printf() {{ builtin printf "$@"; touch {flag}; }}; shown_in_one_line {command}')
    assert code == 0
    assert " s  Collecting things" in shown


def test_a_failing_command_is_explained_by_its_last_lines() -> None:
    shown, code = on_terminal("shown_in_one_line bash -c 'echo no such package; exit 3' || exit 7")
    assert code == 7
    assert "no such package" in shown
