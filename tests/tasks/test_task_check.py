"""`task check`: what it finds wrong with a task, by trying it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tasks_small import FIXTURE, LEDGER, SOLUTION, TASK, write_task

from eval_core.sandbox.isolation import SandboxChoice
from eval_core.tasks.check import check_task, known_in
from eval_core.tasks.task import Task, load_task


def test_a_good_task_is_good_and_shows_what_each_fact_is_worth(task: Task, sandbox: SandboxChoice) -> None:
    found = asyncio.run(check_task(task, sandbox))
    assert found.problems == []
    told = {
        row.who: (row.rollout.clean, row.rollout.failed("rule"), row.rollout.failed("repeat")) for row in found.rows
    }
    assert told == {
        "knows everything": (True, [], []),
        "knows nothing": (False, ["the limits stay"], ["sorting by tides again"]),
        "all but limits": (False, ["the limits stay"], []),
        "all but tide": (True, [], ["sorting by tides again"]),
        "all but berth": (True, [], []),
    }
    priced = {row.who: row.priced for row in found.rows}
    assert priced["all but berth"] > priced["knows everything"]


@pytest.mark.parametrize(
    ("where", "old", "new", "why"),
    [
        ("task", "needs: [git, pytest]", "needs: [no-such-program]", "the sandbox has no no-such-program"),
        ("task", "passed: 2", "passed: 3", "solution: 'the price' does not pass in run 1: 2 of 3 tests passed"),
        ("task", "same: limits.txt", "run: 'test -d docs'", "floor: "),
        # A check that passes now and then is tried three times before the job and three times after it.
        ("task", "same: limits.txt", 'run: "test $((RANDOM % 16)) = 0"', "does not pass"),
        ("solution", "else: [{tool: terminal, command: echo 9 > limits.txt}]", "else: []", "without 'limits' no check"),
        ("solution", "[{tool: search_files, pattern: berth}, {tool: read_file, path: docs/berths.md}]", "[]",
         "without 'berth' nothing costs more"),
        ("build", "git init", "date +%N > now.txt; git init", "workspace: two builds differ"),
        ("build", "git init", "echo PRICE = 2 > price.py; echo 4711-B > berth.txt; git init", "passes before anything"),
    ],
)  # fmt: skip
def test_a_task_that_measures_nothing_is_told(
    tmp_path: Path, sandbox: SandboxChoice, where: str, old: str, new: str, why: str
) -> None:
    texts = {"task": TASK, "solution": SOLUTION}
    assert where == "build" or old in texts[where]
    path = write_task(tmp_path, **{name: text.replace(old, new) for name, text in texts.items()})
    if where == "build":
        script = path.parent / "workspace" / "build.sh"
        script.write_text(script.read_text().replace(old, new))
    found = asyncio.run(check_task(load_task(path, FIXTURE, LEDGER), sandbox))
    assert any(why in problem for problem in found.problems), found.problems


def test_facts_are_known_where_a_state_holds_them(task: Task) -> None:
    assert known_in(task, "Keep limits.txt as it is. Berth: 4711-B") == {"limits", "berth"}
    assert known_in(task, "A summary without anything.") == frozenset()
