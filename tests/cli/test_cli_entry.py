"""How commands are found and how they end, in a real shell where that matters."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest
import small

from bot.cli import root
from eval_core.base.removed import COMMANDS, FLAGS, KEYS
from eval_core.cli import progress

COMMAND = f"{sys.executable} -m bot"


def shell(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=cwd, check=False)


@pytest.mark.parametrize(
    "words", ["fixture show debug-session-feishu-id-model --census", "baseline show baselines/offline.json", "--help"]
)
def test_a_reader_that_has_had_enough_ends_a_command_as_it_ends_cat(words: str) -> None:
    done = shell(f"{COMMAND} {words} | head -c 5 >/dev/null; echo ${{PIPESTATUS[0]}}", small.REPOSITORY)
    assert done.stdout.strip() in ("141", "0")
    assert done.stderr == ""


def test_a_pipe_that_is_closed_at_once_is_no_error_code_1() -> None:
    done = shell(
        f"({COMMAND} fixture show debug-session-feishu-id-model --census; echo $? >&2) | true", small.REPOSITORY
    )
    assert done.stderr.strip() == "141"


def test_a_command_that_is_read_to_its_end_keeps_its_own_code(tmp_path: Path) -> None:
    done = shell(f"{COMMAND} run --fixtures x 2>&1 | cat >/dev/null; echo ${{PIPESTATUS[0]}}", tmp_path)
    assert done.stdout.strip() == "2"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("runn",), "No such command 'runn'. Did you mean run?"),
        (("baseline", "updte"), "No such command 'updte'. Did you mean update?"),
        (("bot", "publsh"), "No such command 'publsh'. Did you mean publish?"),
        (("probe", "xyz"), "No such command 'xyz'. Known: lint, manifest, propose, review, seal, unseal."),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(cli: small.Cli, words: tuple[str, ...], said: str) -> None:
    ran = cli(*words)
    assert ran.code == 2
    assert said in ran.err


@pytest.mark.parametrize("given", ["", ",", "small-debug,", " "])
def test_an_empty_name_does_not_mean_everything(project: Path, cli: small.Cli, given: str) -> None:
    ran = cli("run", "--fixtures", given, "--quiet")
    assert ran.code == 2
    assert f"--fixtures {given!r}: a name is empty" in ran.err
    assert not (project / "results").exists()


def test_a_demo_that_cannot_be_written_says_so_before_it_starts(tmp_path: Path, cli: small.Cli) -> None:
    small.write(tmp_path / "file", "")
    ran = cli("demo", "--output", str(tmp_path / "file" / "below"))
    assert ran.code == 2
    assert ran.err == f"Error: {tmp_path}/file/below/comment.md: cannot be written: Not a directory\n"


def test_an_import_without_a_terminal_says_what_to_pass(tmp_path: Path) -> None:
    source = small.REPOSITORY / "docs" / "examples" / "session.jsonl"
    done = shell(f"{COMMAND} fixture import {source} --output {tmp_path} </dev/null", small.REPOSITORY)
    assert done.returncode == 2
    assert "there is no terminal to ask which of these names to keep: pass --yes" in done.stderr
    assert "Stopped." not in done.stderr


def test_work_without_steps_says_what_it_does_when_it_takes_longer_than_a_moment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = threading.Event()
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 0.01)
    monkeypatch.setattr(progress, "print", lambda *words, **_: (print(*words), said.set()), raising=False)
    with progress.show_waiting("Scrubbing 3 messages"):
        assert said.wait(120)
    assert capsys.readouterr().out == "Scrubbing 3 messages ...\n"
    monkeypatch.setattr(progress, "_SILENT_SECONDS", 60.0)
    with progress.show_waiting("Auditing 1 fixture"):
        pass
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "words",
    ["merge /dev/null", "report {long}", "run --target {long}.yml", "compare {long} {long}", "run --tree {loop}"],
)
def test_a_path_that_no_system_takes_is_a_mistake_of_the_command_line(words: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    done = shell(f"{COMMAND} {words.format(long='a' * 5000, loop='loop')}", tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert "bug" not in done.stderr


def test_what_was_removed_is_named_with_what_to_do_now(project: Path, cli: small.Cli) -> None:
    for words, said in {**{f"run {flag}": said for flag, said in FLAGS.items()}, **COMMANDS}.items():
        ran = cli(*words.split())
        assert ran.code == 2
        assert f"{words.removeprefix('run ')} was removed. {said}" in ran.err
    for key, said in KEYS.items():
        content: object = 1
        for part in reversed(key.split(".")):
            content = {part: content}
        small.write(project / ".compression-eval.yml", json.dumps(content))
        ran = cli("run", "--quiet")
        assert (ran.code, ran.err) == (2, f"Error: .compression-eval.yml: {key} was removed. {said}\n")


def test_run_has_at_most_28_flags() -> None:
    command = root.get_command(click.Context(root), "run")
    assert command is not None
    assert sum(isinstance(param, click.Option) for param in command.params) <= 28
