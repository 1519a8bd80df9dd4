"""The check run: one per run and commit, with the conclusion that the policy asks for."""

from __future__ import annotations

from typing import Any

import pytest
from loopback import LoopbackGitHub

from bot.github.repository import GitHub
from bot.pull_request.event import WorkflowRun
from bot.steps.check import INCOMPLETE, SUMMARY_LIMIT, Check, Policy, conclude
from eval_core.strands.findings import Kind

RUN = WorkflowRun(100, 1)
URL = "https://github.com/acme/agent/actions/runs/100"


def check(client: GitHub, gh: LoopbackGitHub, run: WorkflowRun = RUN) -> Check:
    return Check(client, gh.state.pulls[1].head_sha, run, URL)


@pytest.mark.parametrize(
    ("outcome", "neutral", "verdict"),
    [
        ("improved", "success", "success"),
        ("no_detectable_change", "success", "success"),
        ("regressed", "neutral", "failure"),
        ("mixed", "neutral", "failure"),
        ("inconclusive", "neutral", "neutral"),
        ("not_judged", "neutral", "neutral"),
        ("trade", "neutral", "neutral"),
        ("first_result", "neutral", "neutral"),
        ("broken", "neutral", "failure"),
        ("incomplete", "neutral", "action_required"),
        ("not_comparable", "neutral", "action_required"),
        ("failed", "neutral", "action_required"),
        ("timed_out", "neutral", "action_required"),
        ("refused", "skipped", "skipped"),
        ("cancelled", "cancelled", "cancelled"),
    ],
)
def test_outcomes_map_to_conclusions(outcome: str, neutral: str, verdict: str) -> None:
    assert conclude(outcome, "neutral") == neutral
    assert conclude(outcome, "verdict") == verdict


@pytest.mark.parametrize("policy", ["neutral", "verdict"])
def test_every_verdict_there_is_has_a_conclusion(policy: Policy) -> None:
    assert {conclude(kind, policy) for kind in Kind} <= {"success", "neutral", "failure", "action_required"}


@pytest.mark.parametrize("policy", ["neutral", "verdict"])
def test_an_outcome_nobody_knows_is_not_a_pass(policy: Any) -> None:
    assert conclude("splendid", policy) == "neutral"


def test_a_check_is_started_and_finished_as_one(gh: LoopbackGitHub, client: GitHub) -> None:
    started = check(client, gh).start("Evaluating", "3 fixtures")
    # Another job, another process: only run and commit are known there.
    finished = check(client, gh).finish("regressed", "Regressed", "artifact trail", policy="verdict")
    assert started.id == finished.id
    (stored,) = gh.state.checks.values()
    assert (stored.status, stored.conclusion, stored.title) == ("completed", "failure", "Regressed")
    assert stored.details_url == URL


def test_a_crash_before_the_start_is_reported_too(gh: LoopbackGitHub, client: GitHub) -> None:
    finished = check(client, gh).finish("failed", "Failed", "see the log", policy="neutral")
    assert (finished.status, finished.conclusion) == ("completed", "neutral")


def test_each_run_has_a_check_of_its_own_and_all_are_counted(gh: LoopbackGitHub, client: GitHub) -> None:
    sha = gh.state.pulls[1].head_sha
    for run in (RUN, WorkflowRun(100, 2), WorkflowRun(101, 1)):
        check(client, gh, run).finish("improved", "t", "s", policy="neutral")
    assert len(client.check_runs(sha, "compression-eval")) == 3
    assert client.check_runs(sha, "another") == []


@pytest.mark.parametrize("takes_effect", [True, False])
def test_a_lost_answer_makes_no_second_check(gh: LoopbackGitHub, client: GitHub, takes_effect: bool) -> None:
    gh.fail("POST", "/check-runs$", 502, takes_effect=takes_effect)
    if takes_effect:
        check(client, gh).start("t", "s")
    else:
        with pytest.raises(Exception, match="GitHub failed"):
            check(client, gh).start("t", "s")
    check(client, gh).finish("improved", "t", "s", policy="neutral")
    assert [stored.conclusion for stored in gh.state.checks.values()] == ["success"]


def test_a_summary_that_is_too_long_is_cut_and_says_so(gh: LoopbackGitHub, client: GitHub) -> None:
    check(client, gh).finish("improved", "t" * 400, "ä" * 65_000, policy="neutral")
    (stored,) = gh.state.checks.values()
    assert stored.summary is not None
    assert len(stored.summary.encode()) <= SUMMARY_LIMIT
    assert "cut here" in stored.summary


def test_the_gate_knows_an_incomplete_result_by_the_word_that_the_verdict_begins_with() -> None:
    assert Kind.INCOMPLETE.words == INCOMPLETE
