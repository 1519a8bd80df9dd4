"""Two rollouts side by side in the page, and the figures that rollouts take the place of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import small

from eval_core.comparing.compare import ReportData
from eval_core.domain.rollout import ActionRecord, PlayedTasks, RolloutRecord, TaskState
from eval_core.reporting.html.page import render_html
from eval_core.reporting.html.timelines import timelines
from eval_core.reporting.metrics import target_metrics, tokens_per_task


def rollout(arm: str, *calls: str, clean: bool = True, number: int = 0) -> RolloutRecord:
    body: dict[str, Any] = {
        "task": "s/a", "arm": arm, "number": number, "input_tokens": 1000,
        "checks": [{"name": "the job", "kind": "done", "passed": clean}],
        "actions": [{"tool": "terminal", "given": f'{{"command": "{call}"}}', "result": "{}"} for call in calls],
    }  # fmt: skip
    return RolloutRecord.model_validate(body)


def played(*rollouts: RolloutRecord) -> PlayedTasks:
    return PlayedTasks(model="m", tasks=[TaskState(name="s/a", admitted=True)], rollouts=list(rollouts))


def test_it_begins_with_the_first_call_that_differs() -> None:
    (line,) = timelines(
        played(rollout("base", "ls", "make"), rollout("candidate", "ls", "rm \u202ex", "ls", clean=False))
    )
    assert line.shared == 1
    assert [row[0] for row in line.rows] == ["terminal make", ""]
    assert "\u202e" not in line.rows[0][1]
    assert line.ends == ("stopped: finished", "stopped: not finished (the job)")


def test_a_pair_that_shows_the_difference_is_taken() -> None:
    same = [rollout(arm, "ls", number=0) for arm in ("base", "candidate")]
    other = [rollout("base", "make", number=1), rollout("candidate", "rm", clean=False, number=1)]
    (line,) = timelines(played(*same, *other))
    assert line.ends[0] != line.ends[1]
    assert timelines(None) == []


def test_the_page_shows_it_and_the_formula_gives_way(tmp_path: Path) -> None:
    measured = small.measure(small.cases(), tmp_path, "anchored")
    assert tokens_per_task(measured) is not None
    noted = measured.noting(tasks=played(rollout("base", "ls"), rollout("candidate", "rm <b>", clean=False)))
    assert tokens_per_task(noted) is None
    completion = next(metric for metric in target_metrics(noted) if metric.name == "Task completion")
    assert (completion.value, completion.status) == ("0 % of uncompressed", "red flag")
    page = render_html(ReportData(noted))
    assert "Tasks, side by side" in page
    assert "rm &lt;b&gt;" in page


def test_a_call_that_was_cut_off_is_shown_as_far_as_it_goes() -> None:
    cut = ActionRecord(tool="write_file", given='{"path": "a.py", "content": "long', result="{}")
    (line,) = timelines(played(rollout("base", "ls"), rollout("candidate").model_copy(update={"actions": [cut]})))
    assert line.rows == (("terminal ls", 'write_file {"path": "a.py", "content": "long'),)
