"""The status workflow: what happens to a pull request is marked, and a check that waits for nothing is answered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import adopted
import pytest
import small
import yaml
from bot_gate import environment
from loopback import LoopbackGitHub

from bot.github.repository import GitHub
from bot.pull_request.event import WorkflowRun
from bot.pull_request.ledger import ResultMeasured
from bot.steps.comment import Sticky
from bot.steps.status import mark

WORKFLOW = small.REPOSITORY / ".github/workflows/compression-eval-status.yml"
PERMISSIONS = {"metadata": "read", "contents": "read", "pull_requests": "write", "checks": "write"}


@pytest.fixture
def gh() -> Iterator[LoopbackGitHub]:
    github, _ = adopted.world(adopted.base_tree())
    with github:
        yield github


def client(gh: LoopbackGitHub) -> GitHub:
    return GitHub(adopted.REPO, gh.job_token(PERMISSIONS), api_url=gh.url)


def happened(gh: LoopbackGitHub, action: str, sender: str = "contributor", **more: Any) -> str:
    pull = gh.state.pulls[1]
    event = {
        "action": action,
        "number": 1,
        "pull_request": {"number": 1, "head": {"sha": pull.head_sha}},
        "repository": {"full_name": adopted.REPO},
        "sender": {"login": sender},
        **more,
    }
    return mark(client(gh), "pull_request_target", event, environment(200))


def measured(gh: LoopbackGitHub) -> str:
    head = gh.state.pulls[1].head_sha
    event = ResultMeasured(
        run=WorkflowRun(100, 1), at=datetime.now(UTC), url="https://x.invalid/1", head=head, sha=head,
        outcome="improved", headline="Improved: more.", body="A report.",
    )  # fmt: skip
    Sticky(client(gh), 1).record(event)
    return head


def body(gh: LoopbackGitHub) -> str:
    (comment,) = gh.comments(1)
    return comment.body


def test_a_push_marks_the_result_as_that_of_an_older_commit(gh: LoopbackGitHub) -> None:
    old = measured(gh)
    new = gh.push_to_pull(1, {**adopted.worse_tree(adopted.base_tree()), "agent/more.py": b"MORE = 1\n"})
    happened(gh, "synchronize")
    assert f"The result below is for `{old[:7]}`, not for the last commit, `{new[:7]}`." in body(gh)
    assert gh.state.checks == {}, "a pull request that changes the compressor waits for its evaluation"


def test_events_out_of_order_leave_the_head_of_now(gh: LoopbackGitHub) -> None:
    measured(gh)
    tree = adopted.worse_tree(adopted.base_tree())
    first = gh.push_to_pull(1, {**tree, "agent/more.py": b"MORE = 1\n"})
    last = gh.push_to_pull(1, {**tree, "agent/more.py": b"MORE = 2\n"})
    happened(gh, "synchronize")
    late = {"pull_request": {"number": 1, "head": {"sha": first}}}
    happened(gh, "synchronize", **late)
    assert f"not for the last commit, `{last[:7]}`" in body(gh)


def test_another_base_branch_and_a_merge_are_said(gh: LoopbackGitHub) -> None:
    measured(gh)
    gh.state.refs["heads/release"] = gh.state.refs["heads/main"]
    gh.retarget(1, "release")
    happened(gh, "edited", changes={"base": {"ref": {"from": "main"}}})
    assert "**The base branch was changed**" in body(gh)
    assert "It is meant for `release` now." in body(gh)
    gh.merge(1)
    happened(gh, "closed")
    assert "**Merged**" in body(gh)
    assert "still holds" not in body(gh)


def test_nothing_is_said_where_nobody_asked_for_a_result(gh: LoopbackGitHub) -> None:
    assert happened(gh, "opened") == "Nothing to mark."
    assert gh.comments(1) == []
    assert happened(gh, "edited", changes={"title": {"from": "x"}}).startswith("only the text")
    assert "token that can only read" in happened(gh, "synchronize", sender="dependabot[bot]")


def test_a_check_is_answered_where_nothing_is_measured_and_is_no_look(gh: LoopbackGitHub) -> None:
    head = gh.push_to_pull(1, {**adopted.base_tree(), "README.md": b"Words.\n"}, onto=(gh.state.refs["heads/main"],))
    happened(gh, "synchronize")
    happened(gh, "edited", changes={"base": {}})
    (check,) = gh.state.checks.values()
    assert (check.head_sha, check.name, check.conclusion) == (head, "compression-eval", "neutral")
    assert check.title == "Nothing to evaluate"
    from bot.steps.gate import _looks

    assert _looks(client(gh), head) == 0


def test_the_merge_queue_gets_its_check(gh: LoopbackGitHub) -> None:
    sha = gh.state.refs["heads/main"]
    event = {"merge_group": {"head_sha": sha}, "repository": {"full_name": adopted.REPO}, "action": "checks_requested"}
    mark(client(gh), "merge_group", event, environment(300))
    (check,) = gh.state.checks.values()
    assert (check.head_sha, check.conclusion, check.title) == (sha, "neutral", "Nothing to evaluate: merge queue")


def test_the_workflow_has_no_key_and_takes_nothing_of_the_pull_request(tmp_path: Path, cli: small.Cli) -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    assert (small.REPOSITORY / "bot/templates/compression-eval-status.yml").read_text(encoding="utf-8") == text
    assert "secrets." not in text
    (job,) = yaml.safe_load(text)["jobs"].values()
    assert {name.replace("-", "_") for name in job["permissions"]} | {"metadata"} == set(PERMISSIONS)
    assert "environment" not in job
    assert all("ref" not in step.get("with", {}) for step in job["steps"])
    queued = yaml.safe_load(text.replace("  # merge_group:", "  merge_group:"))
    assert queued[True]["merge_group"] == {"types": ["checks_requested"]}
    small.write(tmp_path / "context_compressor.py", "class C:\n    def compress(self, messages): ...\n")
    assert cli("init", str(tmp_path), "--action", adopted.ACTION, "--status").code == 0
    written = (tmp_path / ".github/workflows/compression-eval-status.yml").read_text(encoding="utf-8")
    assert f"      - uses: {adopted.ACTION}\n        with:\n          job: bot\n" in written
