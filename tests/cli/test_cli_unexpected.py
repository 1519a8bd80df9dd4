"""No exit code lies: 1 is what a command was asked to tell, and nothing that fails ends with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The real command line with one fault in it: of ours, of click's, or of whoever reads the output.
RUN = """
import sys
import click
import bot.cli as cli

def fail(*args, **kwargs):
    {fault}

@click.command()
def broken():
    fail()

cli.root.add_command(broken)
cli._COMMANDS["broken"] = ("__main__:broken", "")
sys.argv = ["compression-eval", "broken"]
cli.main()
"""


def run(fault: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN.format(fault=fault)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "fault",
    [
        "float(10**400)",
        "raise RuntimeError('the key is ' + 'sk-' + 'a' * 30)",
        "raise OSError(24, 'Too many open files')",
        "(lambda f: f(f))(lambda f: f(f))",
    ],
)
def test_an_unexpected_error_is_one_sentence_with_a_code_of_its_own(fault: str, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    ran = run(fault, tmp_path)
    assert ran.returncode == 70
    assert len(ran.stderr.splitlines()) == 1
    assert "Everything paid for so far is kept" in ran.stderr
    (kept,) = (tmp_path / "results").iterdir()
    assert kept.name in ran.stderr
    trace = kept.read_text(encoding="utf-8")
    assert "Traceback" in trace
    assert "aaaaaaaaaa" not in trace + ran.stderr


def test_the_traceback_can_be_asked_for(tmp_path: Path) -> None:
    ran = run("float(10**400)", tmp_path, COMPRESSION_EVAL_DEBUG="1")
    assert ran.returncode == 70
    assert "OverflowError" in ran.stderr
    assert "Traceback" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("raise click.ClickException('no such thing')", 2),
        ("raise click.FileError('f')", 2),
        ("raise KeyboardInterrupt", 130),
        ("raise BrokenPipeError(32, 'Broken pipe')", 70),
        ("sys.exit(1)", 1),
    ],
)
def test_only_a_verdict_ends_with_1(fault: str, code: int, tmp_path: Path) -> None:
    assert run(fault, tmp_path).returncode == code


def test_beside_the_key_of_private_probes_an_error_says_only_what_it_is_and_where(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    fault = "try: {}['canary-1']\n    except KeyError: raise ValueError('canary' + '-2')"
    ran = run(fault.replace("{}", "dict()"), tmp_path, MY_PROBES=f"{'a' * 43}=, {'b' * 43}=")
    assert (ran.returncode, len(ran.stderr.splitlines())) == (70, 1)
    assert "a bug in compression-eval: ValueError. Everything" in ran.stderr
    (kept,) = (tmp_path / "results").iterdir()
    trace = kept.read_text(encoding="utf-8")
    assert "KeyError\n" in trace
    assert trace.endswith("ValueError\n")
    assert "canary-2" not in trace + ran.stderr
