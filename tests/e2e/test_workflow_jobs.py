"""Other jobs of the workflow: a baseline after the merge, and an evaluation split over several jobs."""

from __future__ import annotations

import adopted
import pytest
from workflow_runner import Start, comment, labelled

pytestmark = pytest.mark.e2e


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
