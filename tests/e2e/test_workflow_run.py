"""From the event to the comment through the workflow file itself."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import adopted
import pytest
from workflow_runner import Start, comment, labelled

from bot.demo.journey import label_event

pytestmark = pytest.mark.e2e


def test_a_label_becomes_a_comment_and_a_second_label_takes_up_what_was_measured(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    key = "key-" + "0123456789" * 3
    runner.secrets["COMPRESSION_EVAL_API_KEY"] = key
    ran = runner.run(labelled(pull))
    assert ran.code == 0, ran.log
    jobs = ("gate", "begin", "evaluate", "publish", "propose")
    assert [ran.result(job) for job in jobs] == ["success", "skipped", "success", "success", "skipped"]
    body = comment(runner, pull)
    assert "Regressed · `" in body
    assert f"[Full report](https://github.com/acme/agent/actions/runs/{runner.run_id}/artifacts/1)" in body
    assert "Requested by @maintainer." in body
    assert "E_QUOTA_FULL" in body
    assert runner.github.state.pulls[pull.number].labels == []
    (check,) = runner.github.state.checks.values()
    assert (check.head_sha, check.conclusion, check.status) == (pull.head_sha, "neutral", "completed")
    assert "### Compared with the baseline" in ran.log  # the step summary holds the full report
    assert key not in ran.log + body + str(check.summary)

    runner.github.label(pull.number, adopted.LABEL)
    again = runner.run(labelled(pull))
    assert again.code == 0, again.log
    assert "What an earlier run measured" in again.log
    assert "Last 2 results" in comment(runner, pull)
    assert comment(runner, pull).count("([log](") == 2


def test_a_dispatch_through_the_adopted_workflow_becomes_a_comment(start: Start) -> None:
    tree = adopted.base_tree()
    runner, pull = start(tree)
    runner.workflow = runner.folder / "trees" / "default" / ".github/workflows/compression-eval.yml"
    inputs = {"pr": str(pull.number), "sha": pull.head_sha, "mode": "evaluate", "runs": "2", "force": False}
    ran = runner.run(adopted.dispatch_event(**inputs), "workflow_dispatch")
    assert ran.code == 0, ran.log
    assert "--runs 2" in comment(runner, pull)


def test_another_label_starts_nothing(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    ran = runner.run(label_event(adopted.REPO, pull, "maintainer", "documentation"))
    # Its exit code says nothing here: act reads the matrix of a job whose gate was skipped, and cannot.
    assert "⭐ Run" not in ran.log, ran.log
    assert runner.github.comments(pull.number) == []
    assert runner.github.seen == []


def test_a_label_added_during_a_run_hides_neither_the_run_nor_its_result(start: Start, tmp_path: Path) -> None:
    started, go = tmp_path / "started", tmp_path / "go"
    os.mkfifo(started)
    os.mkfifo(go)
    command = f"echo yes > {started}; cat {go}"
    runner, pull = start(adopted.configured(adopted.base_tree(), f"setup: ['{command}']\n"))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(runner.run, labelled(pull))
        assert started.read_text() == "yes\n"  # the evaluate job is at work
        second = runner.run(labelled(pull))  # its label is consumed already, and its run id is newer
        during = comment(runner, pull)
        go.write_text("go\n")
        ran = first.result()
    assert (ran.code, second.code) == (0, 0), ran.log
    assert second.result("evaluate") == "skipped"
    assert "**Evaluating**" in during
    assert "removed before the evaluation began" in during
    body = comment(runner, pull)
    assert "Regressed · `" in body
    assert "**Evaluating**" not in body


def test_an_approved_evaluation_is_told_to_have_begun(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    runner.github.user("boss", "admin")
    runner.github.state.reviewers["compression-eval"] = ["boss"]
    ran = runner.run(labelled(pull))
    assert ran.code == 0, ran.log
    assert [ran.result(job) for job in ("gate", "begin", "evaluate", "publish")] == ["success"] * 4
    assert "Regressed · `" in comment(runner, pull)
    (check,) = runner.github.state.checks.values()
    assert check.status == "completed"


def test_the_command_in_a_comment_starts_it_where_its_line_is_turned_on(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    runner.edits["  # issue_comment:"] = "  issue_comment:"
    said = runner.github.comment(pull.number, "maintainer", "/eval-compression runs=2 fixtures=small-plan")
    event = adopted.comment_event(said)
    ran = runner.run(event, "issue_comment")
    assert ran.code == 0, ran.log
    body = runner.github.comments(pull.number)[-1].body
    assert "--runs 2 --fixtures small-plan" in body
    small_talk = runner.run({**event, "comment": {"body": "thanks"}}, "issue_comment")
    assert small_talk.result("gate") == "skipped"
