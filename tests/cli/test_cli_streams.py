"""Output that cannot be written, and input that never ends: one message, and never the exit code of a verdict."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
import small

from bot.cli import root

ROOT = Path(__file__).parents[2]
COMMAND = f"PYTHONPATH={ROOT} {sys.executable} -m bot"
RUN = "run --fixtures small-debug --runs 1 --set compress_runs=1 --label a"
COMMANDS = {
    "--help": 0,
    "fixture list": 0,
    "fixture show nothing-of-that-name": 2,
    "probe lint small-debug": 0,
    RUN: 0,
    "doctor": 0,
}


def shell(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", COMMANDS)
def test_where_nobody_can_read_the_result_nothing_is_begun(words: str, project: Path) -> None:
    done = shell(f"{COMMAND} {words} >&-")
    assert (done.returncode, done.stderr) == (
        2, "Error: standard output is closed; send it to a file, or to /dev/null\n",
    )  # fmt: skip
    assert not (project / "results").exists()


@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk_is_no_bug_and_no_verdict(words: str, project: Path) -> None:
    done = shell(f"{COMMAND} {words} --quiet >/dev/full" if words == RUN else f"{COMMAND} {words} >/dev/full")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    if COMMANDS[words] == 0:
        assert "No space left on device" in done.stderr
        assert "Make room and repeat the command" in done.stderr


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("streams", ["2>&- <&-", "2>/dev/full"])
def test_a_message_that_nobody_can_read_changes_no_exit_code(words: str, streams: str, project: Path) -> None:
    done = shell(f"{COMMAND} {words}{' --quiet' * (words == RUN)} {streams}")
    assert done.returncode == COMMANDS[words]


def test_a_disk_that_is_full_in_the_middle_of_a_run_is_named_and_the_run_goes_on_later(project: Path) -> None:
    done = shell(f"ulimit -f 4; {COMMAND} {RUN} --quiet")
    assert done.returncode == 2
    assert "File too large" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert shell(f"{COMMAND} {RUN} --quiet --resume").returncode == 0


STEERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SAID = "no: \\x1b[2J\\x1b]0;owned\\x07 \\x9b31m \\u202egnp \\x00\\x08 ``` end"
FAILING = f"""
import sys, click, bot.cli as cli
from eval_core.base.errors import UserError

@click.command()
def failing():
    click.echo("{SAID}")
    click.echo("{SAID}", err=True)
    raise UserError("{SAID}")

cli._COMMANDS["failing"] = ("__main__:failing", "")
sys.argv = ["compression-eval", "failing"]
cli.main()
"""


def on_a_terminal(*words: str) -> tuple[int, str]:
    """Run a command whose output and messages are on a terminal, and return what it shows."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        words, stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as ran:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # how the end of a terminal is told
            while piece := os.read(ours, 65_536):
                shown += piece
    os.close(ours)
    return ran.returncode, shown.decode()


def test_no_text_steers_the_terminal() -> None:
    code, shown = on_a_terminal(sys.executable, "-c", FAILING)
    assert code == 2
    assert shown.count("end") == 3
    assert not STEERS.search(shown), ascii(shown)


def test_what_is_shown_while_a_run_is_under_way_may_steer_it(project: Path) -> None:
    code, shown = on_a_terminal(sys.executable, "-m", "bot", *RUN.split(), "--target", "builtin:anchored")
    assert code == 0
    assert "\x1b[" in shown
    assert "\ufffd" not in shown


def _commands(
    group: click.Command, above: click.Context, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(group, click.Group):
        yield path, group
        return
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command is not None
        yield from _commands(command, click.Context(command, parent=above), (*path, name))


def _inputs() -> Iterator[Any]:
    """Yield every place of every command where a path can be given, with the words before it."""
    for path, command in _commands(root, click.Context(root)):
        name = " ".join(path)
        if path[0] == "bot" or name == "demo":
            continue  # these take folders, which they make
        arguments = [one for one in command.params if isinstance(one, click.Argument)]
        for option in command.params:
            if isinstance(option, click.Option) and not isinstance(option.type, click.Path):
                continue
            words = []
            for argument in arguments:
                if argument is option:
                    words.append("{pipe}")
                elif argument.required:
                    words.append("{session}" if isinstance(argument.type, click.Path) else "small-debug")
            if isinstance(option, click.Option):
                words += [option.opts[0], "{pipe}"]
            yield pytest.param((*path, *words), id=f"{name} {option.opts[0]}")


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Fail instead of waiting for ever."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("words", list(_inputs()))
def test_no_command_waits_for_a_pipe(words: tuple[str, ...], project: Path, cli: small.Cli) -> None:
    os.mkfifo(project / "pipe.json")
    session = project / "fixtures" / "small-debug.json"
    with at_most(60):
        ran = cli(*(word.format(pipe=project / "pipe.json", session=session) for word in words))
    assert ran.code in (0, 2)


def test_no_file_that_a_command_looks_for_can_make_it_wait(
    tmp_path: Path, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file of a project with one fixture is a pipe in turn."""
    project = tmp_path
    monkeypatch.chdir(small.write_suite(project, small.cases()[1:2]))
    small.write(project / "keep.py", "def keep(messages):\n    return [messages[0], *messages[-3:]]\n")
    small.write(project / ".compression-eval.yml", "target: target.yml\nwatch: ['*.py']\n")
    small.write(project / "target.yml", "compressor: keep:keep\nllm: none\nadapter: bridge.py\n")
    small.write(project / "bridge.py", "")
    run = ("run", "--runs", "1", "--set", "compress_runs=1", "--label", "a", "--quiet")
    assert cli("baseline", "update", "--runs", "1", "--accept-failing", "--quiet").code == 0
    assert cli(*run).code == 0
    small.write(project / "results" / "a" / "journal.jsonl", "")
    every = [path for path in project.rglob("*") if path.is_file() and path.suffix not in (".html", ".md")]
    for path in every:
        kept = path.with_name("kept")
        path.rename(kept)
        os.mkfifo(path)
        for words in ((*run, "--resume"), ("report", "results/a"), ("baseline", "check")):
            with at_most(60):
                ran = cli(*words)
            assert ran.code in (0, 1, 2, 3), (path, words, ran)
        path.unlink(missing_ok=True)
        kept.rename(path)
    assert len(every) > 8
