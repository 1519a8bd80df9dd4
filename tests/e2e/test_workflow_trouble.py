"""What the workflow tells the pull request when something goes wrong."""

from __future__ import annotations

import adopted
import pytest
from workflow_runner import Start, comment, labelled

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("command", "reason"),
    [("kill -9 $PPID", "left no summary.json"), ("exit 3", "setup: 'exit 3' ended with 3")],
    ids=["killed", "failed"],
)
def test_a_crash_in_evaluate_is_told_in_the_comment(start: Start, command: str, reason: str) -> None:
    runner, pull = start(adopted.configured(adopted.base_tree(), f"setup: ['{command}']\n"))
    ran = runner.run(labelled(pull))
    assert ran.code != 0
    assert [ran.result(job) for job in ("gate", "evaluate", "publish")] == ["success", "failure", "success"]
    body = comment(runner, pull)
    assert "**The evaluation failed**" in body
    assert reason in body
    (check,) = runner.github.state.checks.values()
    assert (check.conclusion, check.title) == ("neutral", "The evaluation failed")


def test_a_refusal_after_a_result_leaves_the_result(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    assert runner.run(labelled(pull)).code == 0
    runner.github.user("helper", "triage")
    runner.github.label(pull.number, adopted.LABEL)
    ran = runner.run(labelled(pull, "helper"))
    assert ran.code == 0, ran.log
    body = comment(runner, pull)
    assert "helper has only triage permission" in body
    assert "Regressed · `" in body


def test_what_a_job_had_measured_when_its_time_was_up_is_published(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    # GitHub reports a job that ran out of time as cancelled.
    runner.edits["${{ needs.evaluate.result }}"] = "cancelled"
    ran = runner.run(labelled(pull))
    assert ran.code == 0, ran.log
    body = comment(runner, pull)
    assert "Regressed · `" in body
    assert "These are the results up to that point" in body


def test_a_rejected_approval_is_told(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    runner.github.user("boss", "admin")
    runner.github.state.reviewers["compression-eval"] = ["boss"]
    # GitHub reports a job whose deployment was rejected as failed; it never ran.
    runner.edits["if: needs.gate.outputs.allowed == 'true'\n"] = "if: false\n"
    runner.edits["needs.gate.outputs.awaits == 'true'"] = "false"
    runner.edits["${{ needs.evaluate.result }}"] = "failure"
    runner.reviews.append(("compression-eval", "rejected", "boss", "not today"))
    ran = runner.run(labelled(pull))
    assert ran.code == 0, ran.log
    body = comment(runner, pull)
    assert "**A reviewer rejected the evaluation**" in body
    assert "boss rejected it: not today" in body
    (check,) = runner.github.state.checks.values()
    assert (check.status, check.conclusion) == ("completed", "cancelled")


def test_a_refusal_is_a_comment_and_no_red_job(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    runner.github.user("helper", "triage")
    ran = runner.run(labelled(pull, "helper"))
    assert ran.code == 0, ran.log
    assert [ran.result(job) for job in ("gate", "evaluate", "publish")] == ["success", "skipped", "skipped"]
    body = comment(runner, pull)
    assert "helper has only triage permission" in body
    assert "ask someone with write permission" in body
    assert runner.github.state.pulls[pull.number].labels == []


def test_a_moved_head_is_evaluated_as_it_was_labelled_and_called_stale(start: Start) -> None:
    tree = adopted.base_tree()
    runner, pull = start(tree)
    event = labelled(pull)
    old = pull.head_sha
    new = runner.github.push_to_pull(pull.number, {**adopted.worse_tree(tree), "README.md": b"more\n"})
    ran = runner.run(event)
    assert ran.code == 0, ran.log
    body = comment(runner, pull)
    assert f"The result below is for `{old[:7]}`, not for the last commit, `{new[:7]}`." in body
    assert "Regressed · `" in body
    assert [check.head_sha for check in runner.github.state.checks.values()] == [old]
