"""Task files: what is accepted, what is refused and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from tasks_small import FIXTURE, LEDGER, SOLUTION, TASK, write_task

from eval_core.base.errors import UserError
from eval_core.tasks.task import find_tasks, load_task


def test_a_task_loads_with_its_session(tmp_path: Path) -> None:
    task = load_task(write_task(tmp_path), FIXTURE, LEDGER)
    assert task.full_name == "quay/berth"
    assert (task.end, task.compressions) == (4, 1)
    assert sorted(task.lines) == ["berth", "limits", "tide"]
    calls = [call.tool for step in task.solution.steps for call in step.calls(frozenset({"limits", "tide"}))]
    assert calls == ["search_files", "read_file", "write_file", "patch"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("folder: /home/user/quay", "folder: quay", "'quay' is not an absolute path"),
        ("folder: /home/user/quay", "folder: /usr/lib/quay", "lies where the sandbox keeps its own"),
        ("{turns: 12,", "{turns: 0,", "limits.turns"),
        ("{turns: 12,", "{turn: 12,", "turns"),
        (
            "  - {id: berth, lost: lookup}\n",
            "  - {id: quayside, lost: lookup}\n",
            "'quayside' is no line of the ledger",
        ),
        ("  - {id: berth, lost: lookup}\n", "", "'berth' is guarded in solution.yml and no fact of the task"),
        ("lost: rule}", "lost: never}", "lost"),
        ("kind: done, tests", "kind: rule, tests", "none is of kind done"),
        (", passed: 2}", "}", "passed: belongs to tests"),
        ("kind: repeat, tried", "kind: rule, tried", "a text in a command does not show"),
        ("same: limits.txt}", "same: limits.txt, run: ls}", "give one of tests, same, run, tried"),
        ("checks/test_price.py", "checks/test_gone.py", "there is no checks/test_gone.py"),
        ("folder: /home", "at: 2\nfolder: /home", "at: 2: quay has 1 segments"),
        ("folder: /home", "folder: /home\nfolder: /home", "given twice"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert old in TASK
    path = write_task(tmp_path, task=TASK.replace(old, new, 1))
    with pytest.raises(UserError) as told:
        load_task(path, FIXTURE, LEDGER)
    assert why in str(told.value)
    assert str(path / "task.yml") in str(told.value)


def test_each_fact_needs_its_guard(tmp_path: Path) -> None:
    solution = "\n".join(line for line in SOLUTION.splitlines() if "knows: tide" not in line)
    with pytest.raises(UserError, match=r"'tide' has no guard in solution.yml"):
        load_task(write_task(tmp_path, solution=solution), FIXTURE, LEDGER)


def test_a_step_is_a_call_or_a_guard(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a step is either a call, or knows"):
        load_task(write_task(tmp_path, solution="steps:\n  - {then: []}\n"), FIXTURE, LEDGER)


def test_a_workspace_has_to_be_there_and_small(tmp_path: Path) -> None:
    path = write_task(tmp_path)
    (path.parent / "workspace" / "files" / "big.bin").write_bytes(b"0" * 300_000)
    with pytest.raises(UserError, match=r"has 302,\d+ bytes; more than 300,000"):
        load_task(path, FIXTURE, LEDGER)


def test_a_task_that_is_not_there_is_named(tmp_path: Path) -> None:
    write_task(tmp_path)
    load = lambda *names: find_tasks(tmp_path / "tasks", {"quay": FIXTURE}, {"quay": LEDGER}, names)  # noqa: E731
    assert [task.full_name for task in load()] == ["quay/berth"]
    assert [task.full_name for task in load("quay")] == ["quay/berth"]
    with pytest.raises(UserError, match="there is no task 'quay/brth'"):
        load("quay/brth")
