"""The facts for the gate, asked of a GitHub that has a past."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from bot_world import FILES, REPO, WORKFLOW
from loopback import LoopbackGitHub

from bot.github.repository import GitHub
from bot.pull_request.admission import Allowed, Facts, Refused, decide
from bot.pull_request.event import EvaluationRequest, WorkflowRun
from bot.steps.check import Check
from bot.steps.gate import gather
from eval_core.base.config import BotConfig, Config

CONFIG = Config(watch=["src/**"], bot=BotConfig(looks_per_sha=2, runs_per_day=3))
RAN = {"gate": "success", "evaluate": "success"}
# Our own costly job is listed already while the gate decides.
WAITING = {"gate": None, "evaluate": None}


@pytest.fixture
def request_(gh: LoopbackGitHub) -> EvaluationRequest:
    gh.label(1, "eval-compression")
    return EvaluationRequest(
        repo=REPO,
        pr=1,
        sha=gh.state.pulls[1].head_sha,
        sender="maintainer",
        trigger="label",
        mode="evaluate",
        runs=None,
        force=False,
        label="eval-compression",
        run=WorkflowRun(gh.run(WORKFLOW, "e" * 40, status="in_progress", conclusion=None, jobs=WAITING).id, 1),
        run_url="",
    )


def facts(client: GitHub, request: EvaluationRequest) -> Facts:
    pull = None if request.pr is None else client.pull(request.pr)
    base = client.commit(pull.base_ref if pull else request.sha).sha
    return gather(client, request, CONFIG.bot, pull=pull, base_sha=base)


def test_a_first_request_passes(gh: LoopbackGitHub, client: GitHub, request_: EvaluationRequest) -> None:
    newer = gh.push("main", {**FILES, "NEWS": b"1"})
    found = facts(client, request_)
    assert (found.permission, found.looks, found.runs_today) == ("write", 0, 0)
    verdict = decide(request_, found, CONFIG)
    assert isinstance(verdict, Allowed)
    assert verdict.base_sha == newer
    assert verdict.ignored_files == ()


def test_looks_are_counted_per_commit(gh: LoopbackGitHub, client: GitHub, request_: EvaluationRequest) -> None:
    for run, outcome in ((1, "inconclusive"), (2, "cancelled"), (3, "refused"), (4, "regressed")):
        Check(client, request_.sha, WorkflowRun(run, 1), "").finish(outcome, "t", "s", policy="neutral")
    found = facts(client, request_)
    assert found.looks == 2
    verdict = decide(request_, found, CONFIG)
    assert isinstance(verdict, Refused)
    assert verdict.code == "looks"
    assert facts(client, replace(request_, sha=gh.push_to_pull(1, FILES))).looks == 0


def test_an_outage_uses_up_no_look(gh: LoopbackGitHub, client: GitHub, request_: EvaluationRequest) -> None:
    for run in (1, 2, 3):
        title = "Incomplete: only 11 % of the planned grades are there."
        Check(client, request_.sha, WorkflowRun(run, 1), "").finish("incomplete", title, "s", policy="verdict")
    assert facts(client, request_).looks == 0


def test_only_what_was_paid_for_counts_towards_the_day(
    gh: LoopbackGitHub, client: GitHub, request_: EvaluationRequest
) -> None:
    gh.run(WORKFLOW, "d" * 40, jobs=RAN)
    gh.run(WORKFLOW, "d" * 40, jobs={"gate": "success", "evaluate": "skipped"})
    gh.run(WORKFLOW, "d" * 40, conclusion="skipped", jobs={"gate": "skipped"})
    gh.run(WORKFLOW, "d" * 40, event="pull_request", jobs=RAN)
    gh.run(WORKFLOW, "d" * 40, jobs=RAN, created=datetime.now(UTC) - timedelta(hours=25))
    assert facts(client, request_).runs_today == 1
    # The job has a matrix, and GitHub adds its values to the name.
    jobs = {"gate": "success", "evaluate (1/2)": None, "evaluate (2/2)": None}
    gh.run(WORKFLOW, "d" * 40, status="in_progress", conclusion=None, jobs=jobs)
    assert facts(client, request_).runs_today == 2
    gh.run(WORKFLOW, "d" * 40, conclusion="failure", jobs={"gate": "success", "evaluate": "failure"})
    verdict = decide(request_, facts(client, request_), CONFIG)
    assert isinstance(verdict, Refused)
    assert verdict.code == "daily-quota"


def test_a_commit_that_github_does_not_know_is_refused_not_a_crash(client: GitHub, request_: EvaluationRequest) -> None:
    unknown = replace(request_, trigger="dispatch", label=None, sha="0" * 40)
    verdict = decide(unknown, facts(client, unknown), CONFIG)
    assert isinstance(verdict, Refused)
    assert verdict.code == "head-moved"


def test_a_baseline_of_the_branch_asks_about_no_pull_request(gh: LoopbackGitHub, client: GitHub) -> None:
    sha = gh.state.refs["heads/main"]
    request = EvaluationRequest(
        repo=REPO,
        pr=None,
        sha=sha,
        sender="acme",
        trigger="dispatch",
        mode="baseline",
        runs=None,
        force=False,
        label=None,
        run=WorkflowRun(1, 1),
        run_url="",
    )
    verdict = decide(request, facts(client, request), CONFIG)
    assert isinstance(verdict, Allowed)
    assert (verdict.pr, verdict.sha, verdict.base_sha) == (None, sha, sha)


def test_the_gate_reads_with_nothing_but_read_permissions(gh: LoopbackGitHub, request_: EvaluationRequest) -> None:
    granted = {"metadata": "read", "contents": "read", "pull_requests": "read", "checks": "read", "actions": "read"}
    reader = GitHub(REPO, gh.job_token(granted), api_url=gh.url)
    assert isinstance(decide(request_, facts(reader, request_), CONFIG), Allowed)


OWN = {"bot/rules.py": b"1\n", "scripts/build": b"1\n", "eval_core/a.py": b"1\n", "action.yml": b"1\n"}


@pytest.mark.parametrize("project", [b"", b'[project]\nname = "agent"\n', b"not toml ["])
def test_an_adopters_own_folders_are_not_the_evaluator(gh: LoopbackGitHub, client: GitHub, project: bytes) -> None:
    gh.push("main", {**FILES, "pyproject.toml": project} if project else FILES)
    request = _labelled(gh, OWN)
    found = facts(client, request)
    verdict = decide(request, found, Config(watch=["bot/**"]))
    assert isinstance(verdict, Allowed)
    assert verdict.ignored_files == ()


def test_in_its_own_repository_the_evaluator_comes_from_the_base_branch(gh: LoopbackGitHub, client: GitHub) -> None:
    gh.push("main", {**FILES, "pyproject.toml": b'[project]\nname = "compression-eval"\n'})
    request = _labelled(gh, OWN)
    verdict = decide(request, facts(client, request), Config())
    assert isinstance(verdict, Refused)
    assert verdict.code == "base-only"


def _labelled(gh: LoopbackGitHub, change: dict[str, bytes]) -> EvaluationRequest:
    base = gh.state.history.commits[gh.state.refs["heads/main"]].tree
    pull = gh.open_pull({**base, **change})
    gh.label(pull.number, "eval-compression")
    return EvaluationRequest(
        repo=REPO,
        pr=pull.number,
        sha=pull.head_sha,
        sender="maintainer",
        trigger="label",
        mode="evaluate",
        runs=None,
        force=False,
        label="eval-compression",
        run=WorkflowRun(1, 1),
        run_url="",
    )
