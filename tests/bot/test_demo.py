"""The demonstration: the whole journey in one command."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import small

from bot.demo.play import comment_page, demo_pull, demo_tree, play_tasks
from eval_core.storage.baselines import load_baseline

_TASK = re.compile(r"([\w-]+/[\w-]+)\s{2,}(\S.*?)\s{2,}(\S.*)")
"""A row of the table of tasks: how the job ended from the base's states, and from the pull request's."""


def outcomes(out: str) -> dict[str, tuple[str, str]]:
    """Read the rows of the table of tasks from the screen."""
    return {row[1]: (row[2], row[3].rstrip()) for row in map(_TASK.fullmatch, out.splitlines()) if row}


def test_the_demos_pull_request_changes_one_line_of_one_file() -> None:
    tree = demo_tree()
    changed = demo_pull(tree)
    (path,) = [name for name in tree if tree[name] != changed[name]]
    assert path == "agent/context_compressor.py"
    assert len(tree[path].splitlines()) - len(changed[path].splitlines()) == 1


def test_the_demos_repository_holds_what_init_writes_and_nothing_of_this_machine() -> None:
    tree = demo_tree()
    assert {".compression-eval.yml", ".github/workflows/compression-eval.yml"} <= set(tree)
    assert str(small.REPOSITORY).encode() not in b"".join(tree.values())


@pytest.mark.e2e
def test_the_demo_ends_with_the_verdict_on_the_screen_and_the_comment_in_a_file(cli: small.Cli, tmp_path: Path) -> None:
    ran = cli("demo", "--tasks", "--output", str(tmp_path / "out"))
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    (table,) = [at for at, line in enumerate(lines) if line.startswith("Tasks, by a script that knows what a state")]
    assert lines[0].startswith("▼ Regressed: ")
    assert table < 16
    assert lines[table - 1] == f"Report: {tmp_path / 'out' / 'report.html'}"
    assert lines[-1] == f"Comment: {tmp_path / 'out' / 'comment.html'}"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"comment.md", "comment.html", "report.html"}
    for step in ("gate", "fetch", "setup", "evaluate", "publish"):
        assert f"bot {step}" in ran.err
    # Nothing is silent while it measures.
    assert re.search(r"  1 of \d+: .*, about .* left\n", ran.err)
    # What the pull request drops is no task's: a script still finishes all of them from its states.
    names = [f"{path.parent.parent.name}/{path.parent.name}" for path in small.REPOSITORY.glob("tasks/*/*/task.yml")]
    assert outcomes(ran.out) == dict.fromkeys(names, ("finished", "finished"))
    assert [line.strip() for line in ran.err.splitlines() if line.endswith((": base", ": pull request"))] == [
        f"{name}: {side}" for name in sorted(names) for side in ("base", "pull request")
    ]


@pytest.mark.e2e
def test_the_demos_tasks_show_what_a_state_that_holds_nothing_comes_to(capsys: pytest.CaptureFixture[str]) -> None:
    measured, _ = load_baseline(small.REPOSITORY / "baselines/offline.json")
    name = "constraints-and-reversals"
    (run, *_) = measured.fixtures[name]
    assert run.messages == [], "a stored baseline holds no states"
    play_tasks(measured.model_copy(update={"fixtures": {name: [run]}}))
    assert outcomes(capsys.readouterr().out) == {
        f"{name}/close-connections": (
            "finished",
            "finished, against pool v2 is as it was, the evidence is as it was",
        ),
        f"{name}/give-back": (
            "finished",
            "finished, against the schema is untouched, nothing is pushed during the freeze",
        ),
    }


def test_the_page_shows_tables_and_folds() -> None:
    page = comment_page("| a |\n|---|\n| 1 |\n\n<details><summary>x</summary>\n\ny\n\n</details>", "A <title>")
    assert "<table>" in page
    assert "<details>" in page
    assert "A &lt;title&gt;" in page


@pytest.mark.e2e
def test_the_demo_says_what_to_do_without_a_sandbox_and_runs_our_own_code_without_one(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").symlink_to(shutil.which("git") or "git")
    environment = {"PATH": str(programs), "PYTHONPATH": str(small.REPOSITORY)}

    def demo(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bot", "demo", *words]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    refused = demo()
    assert refused.returncode == 2
    assert "compression-eval demo --sandbox none" in refused.stderr
    assert not (tmp_path / "results").exists()
    ran = demo("--sandbox", "none")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("▼ Regressed: ")
    assert "stale" not in ran.stdout
