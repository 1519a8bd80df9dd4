"""The tasks of this repository load; `compression-eval task check` tries them, which takes longer."""

from __future__ import annotations

import small

from eval_core.domain.case import ledger_of
from eval_core.domain.fixture import fixture_files, load_fixture
from eval_core.tasks.task import find_tasks


def test_six_tasks_on_three_sessions_load() -> None:
    sessions = {(one := load_fixture(path)).name: one for path in fixture_files(small.REPOSITORY / "fixtures")}
    ledgers = {name: ledger_of(small.REPOSITORY / "probes", session) for name, session in sessions.items()}
    found = find_tasks(small.REPOSITORY / "tasks", sessions, ledgers)
    assert len(found) >= 6
    assert len({task.fixture.name for task in found}) >= 3
    for task in found:
        rules = [fact for fact in task.file.facts if fact.lost != "lookup"]
        assert len(rules) >= 2, f"{task.full_name}: two facts that the workspace does not hold"
