"""An error that nobody foresaw, in each step of the bot: exit code 70, a reason on the run's page, and a comment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import adopted
import pytest
import small
from bot_tickets import ticket_for
from loopback import LoopbackGitHub

from bot.github.repository import GitHub
from bot.pull_request.ticket import read_error
from bot.steps import evaluate, fetch, publish
from bot.steps.comment import Sticky

SECRET = "what the error quotes"
PERMISSIONS = {"metadata": "read", "contents": "read", "pull_requests": "write", "checks": "write", "actions": "read"}
WORDS = "this is a bug in compression-eval: ZeroDivisionError"


def fail(*args: object, **more: object) -> None:
    raise ZeroDivisionError(SECRET)


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackGitHub]:
    """A checkout of the base branch, and the environment of a workflow's step."""
    tree = adopted.base_tree()
    github, _ = adopted.world(tree)
    monkeypatch.chdir(adopted.on_disk(tree, tmp_path / "base"))
    with github:
        monkeypatch.setenv("TICKET", ticket_for(github).line)
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
        monkeypatch.setenv("GITHUB_REPOSITORY", adopted.REPO)
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        monkeypatch.setenv("GITHUB_TOKEN", github.job_token(PERMISSIONS))
        yield github


@pytest.mark.parametrize(
    ("step", "module", "name"),
    [("fetch", fetch, "fetch"), ("setup", evaluate, "set_up"), ("evaluate", evaluate, "evaluate")],
)
def test_a_step_of_the_evaluation_leaves_the_reason_for_the_comment(
    gh: LoopbackGitHub,
    cli: small.Cli,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    step: str,
    module: object,
    name: str,
) -> None:
    Path(".compression-eval.yml").write_text(Path(".compression-eval.yml").read_text() + "setup: ['true']\n")
    monkeypatch.setattr(module, name, fail)
    ran = cli("bot", step)
    assert ran.code == 70
    assert WORDS in (tmp_path / "page.md").read_text()
    folder = Path(".compression-eval/results") / ticket_for(gh).label
    assert WORDS in (read_error(folder) or "")
    monkeypatch.setenv("EVALUATE_RESULT", "failure")
    assert cli("bot", "publish", "--work", str(folder)).code == 0
    (comment,) = gh.comments(1)
    assert "**The evaluation failed**" in comment.body
    assert WORDS in comment.body
    assert SECRET not in comment.body + (tmp_path / "page.md").read_text()


def test_a_fault_in_the_comment_leaves_the_check_and_a_red_job_with_the_reason(
    gh: LoopbackGitHub, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Sticky, "record", fail)
    monkeypatch.setenv("EVALUATE_RESULT", "failure")
    ran = cli("bot", "publish", "--work", str(tmp_path))
    assert ran.code == 3
    assert f"not everything could be posted: {WORDS}" in ran.err
    (check,) = gh.state.checks.values()
    assert check.conclusion is not None


def test_a_fault_in_any_other_step_is_a_red_job_with_the_reason(
    gh: LoopbackGitHub, cli: small.Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(publish, "publish", fail)
    monkeypatch.setattr(GitHub, "from_environment", fail)
    for step in ("publish", "begin", "baseline"):
        page = tmp_path / "page.md"
        page.unlink(missing_ok=True)
        assert cli("bot", step).code == 70
        assert f"**{step}:** {WORDS}" in page.read_text()
