"""An evaluation that several jobs share: gate, two jobs that measure, one that joins, one comment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import adopted
import pytest

from bot.demo.journey import _EVALUATE, _PUBLISH, Journey, label_event
from bot.pull_request.ticket import Ticket, read_ticket

WORK = "work"


@pytest.fixture
def journey(request: pytest.FixtureRequest, tmp_path: Path) -> Journey:
    tree = adopted.configured(adopted.base_tree(baseline=getattr(request, "param", True)), "bot: {shards: 2}\n")
    github, pull = adopted.world(tree)
    self = Journey(github, adopted.on_disk(tree, tmp_path / "checkout"), tmp_path / WORK)
    self.pull = pull  # type: ignore[attr-defined]
    return self


def gate(journey: Journey) -> tuple[dict[str, str], Ticket]:
    outputs = journey.gate(label_event(adopted.REPO, journey.pull, "maintainer"))  # type: ignore[attr-defined]
    return outputs, read_ticket(outputs["ticket"])


def evaluate(journey: Journey, outputs: dict[str, str], tmp_path: Path, job: dict[str, str]) -> Path:
    """Run the jobs of one shard on a machine of its own, and return what it uploads."""
    work = str(tmp_path / f"machine{job['suffix']}")
    journey.step("fetch", _EVALUATE, outputs, "--work", work, SHARD=job["shard"])
    journey.step("setup", {}, outputs, "--work", work, SHARD=job["shard"])
    journey.step("evaluate", {}, outputs, "--work", work, SHARD=job["shard"])
    return Path(work, "results", read_ticket(outputs["ticket"]).label + job["suffix"])


@pytest.mark.parametrize("journey", [True, False], indirect=True, ids=["baseline", "no baseline"])
def test_two_jobs_share_the_work_and_the_comment_is_that_of_one(journey: Journey, tmp_path: Path) -> None:
    with journey.github:
        outputs, ticket = gate(journey)
        jobs = json.loads(outputs["shards"])
        assert [job["shard"] for job in jobs] == ["1/2", "2/2"]
        assert outputs["sharded"] == "true"
        folders = {job["suffix"]: evaluate(journey, outputs, tmp_path, job) for job in jobs}
        assert not any((folder / "report.md").exists() for folder in folders.values())
        for suffix, folder in folders.items():
            shutil.copytree(folder, journey.work / "shards" / f"{ticket.artifact}{suffix}")
        journey.step("merge", {}, outputs, "--work", str(journey.work))
        result = journey.work / "results" / ticket.label
        journey.step("publish", _PUBLISH, outputs, "--work", str(result), EVALUATE_RESULT="success")
        (comment,) = journey.github.comments(ticket.pr or 0)
    assert "Regressed · `" in comment.body
    assert "2 jobs share the work" not in comment.body  # that was said while it ran


def test_a_job_that_died_leaves_an_incomplete_result_and_says_which(journey: Journey, tmp_path: Path) -> None:
    with journey.github:
        outputs, ticket = gate(journey)
        first = json.loads(outputs["shards"])[0]
        folder = evaluate(journey, outputs, tmp_path, first)
        shutil.copytree(folder, journey.work / "shards" / f"{ticket.artifact}{first['suffix']}")
        done = journey.step("merge", {}, outputs, "--work", str(journey.work))
        assert "shard 2/2 left no result" in done.stderr
        result = journey.work / "results" / ticket.label
        journey.step("publish", _PUBLISH, outputs, "--work", str(result), EVALUATE_RESULT="failure")
        (comment,) = journey.github.comments(ticket.pr or 0)
    assert "shard 2/2 left no result" in comment.body, comment.body


def test_where_all_jobs_fail_the_comment_says_why(journey: Journey, tmp_path: Path) -> None:
    with journey.github:
        outputs, ticket = gate(journey)
        for suffix in ("-shard-1-of-2", "-shard-2-of-2"):
            folder = journey.work / "shards" / f"{ticket.artifact}{suffix}"
            folder.mkdir(parents=True)
            (folder / "error.txt").write_text("no key for the model provider")
        done = journey.step("merge", {}, outputs, "--work", str(journey.work), check=False)
        assert done.returncode == 2
        result = journey.work / "results" / ticket.label
        journey.step("publish", _PUBLISH, outputs, "--work", str(result), EVALUATE_RESULT="failure")
        (comment,) = journey.github.comments(ticket.pr or 0)
    assert "no key for the model provider" in comment.body


def test_one_job_is_the_default() -> None:
    known = dict.fromkeys(("pr", "runs"))
    ticket = Ticket(
        **known, repo="a/b", mode="baseline", sha="0" * 40, base_sha="1" * 40, sender="x", fixtures=[], looks=1,
        run_id=1, run_attempt=1, run_url="", ignored_files=[], ignored_more=0, warnings=[],
    )  # fmt: skip
    assert ticket.parts == ()
    assert json.loads(ticket.matrix) == [{"shard": "1/1", "suffix": ""}]
