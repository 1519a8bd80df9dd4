"""Answers of GitHub, kept and held against the loopback's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bot_world import WORKFLOW

from bot.github.repository import GitHub
from bot.pull_request.event import WorkflowRun
from bot.steps.check import CHECK_NAME, Check
from bot.steps.recording import mismatches, record_run
from bot.testing.github import LoopbackGitHub

RECORDED = Path(__file__).parent / "recorded"


def evaluated(gh: LoopbackGitHub, client: GitHub) -> int:
    """Let a pull request have been evaluated; return the run's id."""
    gh.user("boss", "admin")
    gh.state.reviewers["compression-eval"] = ["boss"]
    run = gh.run(WORKFLOW, "d" * 40, jobs={"gate": "success", "evaluate": "success"})
    run.reviews.append(("compression-eval", "approved", "boss", ""))
    gh.artifact(run.id, "compression-eval", {"summary.json": b"{}"})
    gh.comment(1, "github-actions[bot]", "a comment")
    sha = gh.state.pulls[1].head_sha
    Check(client, sha, WorkflowRun(run.id, 1), "https://github.com/x").finish("regressed", "t", "s", policy="neutral")
    return run.id


def test_everything_that_the_bot_reads_is_recorded_without_writing(
    gh: LoopbackGitHub, client: GitHub, tmp_path: Path
) -> None:
    run = evaluated(gh, client)
    before = len(gh.seen)
    names = record_run(client, 1, run, tmp_path)
    assert {seen.method for seen in gh.seen[before:]} == {"GET"}
    assert {path.stem for path in tmp_path.iterdir()} == set(names)
    assert len(names) == 13
    checks = json.loads((tmp_path / "checks.json").read_text(encoding="utf-8"))["check_runs"]
    assert checks[0]["name"] == CHECK_NAME


def test_a_field_of_another_type_or_of_our_invention_is_found() -> None:
    real = {"id": 1, "user": {"login": "a"}, "labels": [{"name": "x"}], "closed_at": None}
    assert list(mismatches(real, {"id": 2, "user": {"login": "b"}, "labels": [], "closed_at": "now"})) == []
    wrong = {"id": "1", "user": {"name": "b"}, "labels": [{"name": 7}]}
    assert list(mismatches(real, wrong)) == [
        ".id: int on GitHub, str here",
        ".user.name: GitHub has no such field",
        ".labels[0].name: str on GitHub, int here",
    ]


@pytest.mark.skipif(not RECORDED.is_dir(), reason="no run on github.com was recorded yet; see docs/required-checks.md")
def test_the_loopback_answers_as_the_recorded_github_did(gh: LoopbackGitHub, client: GitHub, tmp_path: Path) -> None:
    record_run(client, 1, evaluated(gh, client), tmp_path)
    for path in sorted(RECORDED.glob("*.json")):
        real, ours = (json.loads((folder / path.name).read_text(encoding="utf-8")) for folder in (RECORDED, tmp_path))
        assert list(mismatches(real, ours, path.stem)) == []
