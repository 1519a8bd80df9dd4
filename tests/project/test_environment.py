"""What the scripts say while they install: never silent for long, and the reason where it fails."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "environment.sh"


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


def named_pythons() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project["classifiers"]]
    versions = sorted((match[1] for match in found if match), key=lambda version: int(version.split(".")[1]))
    assert project["requires-python"] == f">={versions[0]}"
    return versions


def test_every_python_that_is_claimed_is_tested_and_no_other() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named_pythons()
    assert jobs["debian"]["container"]["image"] == "debian:12", "the lowest release of the lowest version"


def test_the_lowest_and_the_highest_python_are_looked_for(tmp_path: Path) -> None:
    lowest, *_, highest = named_pythons()
    program = tmp_path / f"python{highest}"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    asked = ["bash", "-c", '. "$0"; claimed_pythons', str(SCRIPT)]
    shown = subprocess.run(asked, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True)
    first, last = shown.stdout.splitlines()
    own = Path(f"/usr/bin/python{lowest}")
    assert first.split() == [lowest, *([str(own)] if own.exists() else [])]
    assert last.split() == [
        highest,
        str(own.with_name(program.name)) if own.with_name(program.name).exists() else program.name,
    ]
