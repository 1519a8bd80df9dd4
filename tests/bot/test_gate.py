"""The gate as tables: who and what may spend money."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.github.resources import ChangedFile, Pull
from bot.pull_request.admission import EVALUATOR, Allowed, Facts, IgnoredFile, Refused, base_only, decide
from bot.pull_request.event import EvaluationRequest, WorkflowRun
from eval_core.base.config import BotConfig, Config
from eval_core.base.globs import matches

SHA, NEW, BASE = "a" * 40, "c" * 40, "b" * 40
CONFIG = Config(watch=["src/compressor/**"], bot=BotConfig(looks_per_sha=3, runs_per_day=20))
REQUEST = EvaluationRequest(
    repo="acme/agent",
    pr=7,
    sha=SHA,
    sender="maintainer",
    trigger="label",
    mode="evaluate",
    runs=None,
    force=False,
    label="eval-compression",
    run=WorkflowRun(10, 1),
    run_url="https://github.com/acme/agent/actions/runs/10/attempts/1",
)
DISPATCH = replace(REQUEST, trigger="dispatch", label=None)
PULL = Pull(
    number=7,
    state="open",
    draft=False,
    merged=False,
    locked=False,
    title="Change",
    author="contributor",
    head_sha=SHA,
    head_repo="contributor/agent",
    base_sha=BASE,
    base_ref="main",
    labels=("eval-compression",),
    changed_files=1,
    html_url="https://github.com/acme/agent/pull/7",
    updated=datetime(2026, 1, 2, tzinfo=UTC),
)


def file(path: str, previous: str | None = None) -> ChangedFile:
    return ChangedFile(path=path, status="renamed" if previous else "modified", previous=previous)


def facts(*paths: str | ChangedFile, pull: dict[str, Any] | None = None, **changes: Any) -> Facts:
    files = tuple(file(path) if isinstance(path, str) else path for path in paths or ("src/compressor/a.py",))
    seen = replace(PULL, changed_files=len(files))
    base = Facts(permission="write", base_sha=BASE, looks=0, runs_today=0, pull=replace(seen, **(pull or {})))
    return replace(base, files=files, **changes)


MERGED = {"merged": True, "state": "closed"}

ALLOWED: dict[str, tuple[EvaluationRequest, Facts]] = {
    "write": (REQUEST, facts(permission="write")),
    "maintain": (REQUEST, facts(permission="maintain")),
    "admin": (REQUEST, facts(permission="admin")),
    "a draft": (REQUEST, facts(pull={"draft": True})),
    "a branch of the repository": (REQUEST, facts(pull={"head_repo": "acme/agent"})),
    "a deleted fork": (REQUEST, facts(pull={"head_repo": None})),
    "the last look": (REQUEST, facts(looks=2)),
    "the last run of the day": (REQUEST, facts(runs_today=19)),
    "the head moved after the label": (REQUEST, facts(pull={"head_sha": NEW})),
    "the label in another case": (REQUEST, facts(pull={"labels": ("Eval-Compression",)})),
    "a re-run finds its label consumed": (replace(REQUEST, run=WorkflowRun(10, 2)), facts(pull={"labels": ()})),
    "a dispatch without the label": (DISPATCH, facts(pull={"labels": ()})),
    "a dispatch of the head": (DISPATCH, facts()),
    "moved out of the watched folder": (REQUEST, facts(file("lib/a.py", previous="src/compressor/a.py"))),
    "watched among others": (REQUEST, facts("README.md", "fixtures/a.json", "src/compressor/deep/er/b.py")),
    "unwatched but forced": (replace(DISPATCH, force=True), facts("README.md")),
    "base-only but forced": (replace(DISPATCH, force=True), facts("fixtures/a.json")),
    "not all files listed": (REQUEST, facts("README.md", pull={"changed_files": 5_000})),
    "a baseline of a merged pull request": (
        replace(DISPATCH, mode="baseline"),
        facts(pull=MERGED),
    ),
    "a baseline after many looks": (replace(DISPATCH, mode="baseline"), facts(looks=9, pull=MERGED)),
    "a baseline of unwatched files": (replace(DISPATCH, mode="baseline"), facts("README.md", pull=MERGED)),
    "a baseline of the branch": (
        replace(DISPATCH, mode="baseline", pr=None),
        Facts(permission="admin", base_sha=BASE, looks=0, runs_today=0),
    ),
}

REFUSED: dict[str, tuple[EvaluationRequest, Facts, str]] = {
    "read": (REQUEST, facts(permission="read"), "permission"),
    "triage": (REQUEST, facts(permission="triage"), "permission"),
    "none": (REQUEST, facts(permission="none"), "permission"),
    "unknown account": (REQUEST, facts(permission=None), "permission"),
    "empty": (REQUEST, facts(permission=""), "permission"),
    "wrong case": (REQUEST, facts(permission="Admin"), "permission"),
    "made-up role": (REQUEST, facts(permission="owner"), "permission"),
    "a dispatch by a reader": (DISPATCH, facts(permission="read"), "permission"),
    "a forced dispatch by a reader": (replace(DISPATCH, force=True), facts(permission="read"), "permission"),
    "a baseline by a reader": (
        replace(DISPATCH, mode="baseline", pr=None),
        Facts(permission="read", base_sha=BASE, looks=0, runs_today=0),
        "permission",
    ),
    "closed": (REQUEST, facts(pull={"state": "closed"}), "closed"),
    "a state yet unknown": (REQUEST, facts(pull={"state": "archived"}), "closed"),
    "merged": (REQUEST, facts(pull={"state": "closed", "merged": True}), "merged"),
    "a baseline of a closed pull request": (
        replace(DISPATCH, mode="baseline"),
        facts(pull={"state": "closed"}),
        "not-merged",
    ),
    "a baseline of an open pull request": (replace(DISPATCH, mode="baseline"), facts(), "not-merged"),
    "locked": (REQUEST, facts(pull={"locked": True}), "locked"),
    "label taken off": (REQUEST, facts(pull={"labels": ("bug",)}), "label-gone"),
    "a dispatch of an old commit": (DISPATCH, facts(pull={"head_sha": NEW}), "head-moved"),
    "a command before something that may have been a push": (
        replace(REQUEST, trigger="comment", label=None),
        facts(head_sure=False),
        "head-unsure",
    ),
    "a forced dispatch of an old commit": (
        replace(DISPATCH, force=True),
        facts(pull={"head_sha": NEW}),
        "head-moved",
    ),
    "no pull request": (REQUEST, replace(facts(), pull=None), "no-pull-request"),
    "another pull request": (REQUEST, facts(pull={"number": 8}), "no-pull-request"),
    "unwatched": (REQUEST, facts("README.md"), "not-watched"),
    "a sibling of the watched folder": (REQUEST, facts("src/compressor2/a.py"), "not-watched"),
    "only fixtures": (REQUEST, facts("fixtures/a.json"), "base-only"),
    "only probes and workflow": (
        REQUEST,
        facts("probes/a.probes.json", ".github/workflows/compression-eval.yml"),
        "base-only",
    ),
    "looks used up": (REQUEST, facts(looks=3), "looks"),
    "looks over": (REQUEST, facts(looks=30), "looks"),
    "force does not buy looks": (replace(DISPATCH, force=True), facts(looks=3), "looks"),
    "the day is used up": (REQUEST, facts(runs_today=20), "daily-quota"),
    "force does not buy the day": (replace(DISPATCH, force=True), facts(runs_today=20), "daily-quota"),
    "a baseline when the day is used up": (
        replace(DISPATCH, mode="baseline"),
        facts(runs_today=20, pull=MERGED),
        "daily-quota",
    ),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_the_gate_allows(case: str) -> None:
    request, given = ALLOWED[case]
    verdict = decide(request, given, CONFIG)
    assert isinstance(verdict, Allowed), verdict
    assert (verdict.pr, verdict.sha, verdict.base_sha, verdict.looks) == (request.pr, SHA, BASE, given.looks + 1)


@pytest.mark.parametrize("case", REFUSED)
def test_the_gate_refuses_in_one_sentence_with_a_remedy(case: str) -> None:
    request, given, code = REFUSED[case]
    verdict = decide(request, given, CONFIG)
    assert isinstance(verdict, Refused), verdict
    assert verdict.code == code
    assert verdict.why.endswith(".")
    assert ": " in verdict.why
    assert "\n" not in verdict.why


def test_permission_is_looked_at_before_anything_else() -> None:
    given = facts("README.md", permission="read", looks=9, runs_today=99, pull={"state": "closed", "locked": True})
    verdict = decide(REQUEST, given, CONFIG)
    assert isinstance(verdict, Refused)
    assert verdict.code == "permission"


def test_a_moved_head_runs_the_pinned_commit_and_says_stale() -> None:
    verdict = decide(REQUEST, facts(pull={"head_sha": NEW}), CONFIG)
    assert isinstance(verdict, Allowed)
    assert verdict.sha == SHA
    assert verdict.stale


def test_files_taken_from_the_base_branch_are_named_with_their_kind() -> None:
    given = facts(
        "src/compressor/a.py",
        "fixtures/debug.json",
        "probes/debug.probes.json",
        "baselines/offline.json",
        ".compression-eval.yml",
        ".github/workflows/ci.yml",
        "eval_core/judging/rubric.py",
        "bot/pull_request/admission.py",
        "uv.lock",
        "pyproject.toml",
        "requirements-dev.txt",
        "README.md",
    )
    verdict = decide(REQUEST, replace(given, own_repository=True), CONFIG)
    assert isinstance(verdict, Allowed)
    assert verdict.ignored_files == (
        IgnoredFile("fixtures/debug.json", "fixture"),
        IgnoredFile("probes/debug.probes.json", "probe"),
        IgnoredFile("baselines/offline.json", "baseline"),
        IgnoredFile(".compression-eval.yml", "configuration"),
        IgnoredFile(".github/workflows/ci.yml", "workflow"),
        IgnoredFile("eval_core/judging/rubric.py", "evaluator"),
        IgnoredFile("bot/pull_request/admission.py", "evaluator"),
        IgnoredFile("uv.lock", "dependencies"),
        IgnoredFile("pyproject.toml", "dependencies"),
        IgnoredFile("requirements-dev.txt", "dependencies"),
    )


def test_watching_a_fixture_does_not_let_a_pull_request_bring_its_own() -> None:
    config = Config(watch=["**"])
    assert base_only("fixtures/a.json", config) == "fixture"
    assert base_only(".github/workflows/x.yml", config) == "workflow"
    own = config.model_copy(update={"target": {"compressor": "a:B", "adapter": "./eval/adapter.py"}})
    assert base_only("eval/adapter.py", own) == "adapter"
    assert base_only("eval/target.yml", config.model_copy(update={"target": "eval/target.yml"})) == "target"
    assert isinstance(decide(REQUEST, facts("fixtures/a.json"), config), Refused)


def test_a_subject_inside_the_evaluator_counts_when_it_is_watched() -> None:
    config = Config(watch=["eval_core/compressors/**"])
    assert base_only("eval_core/compressors/summary.py", config, EVALUATOR) is None
    assert base_only("eval_core/judging/fact_judge.py", config, EVALUATOR) == "evaluator"


def test_elsewhere_a_folder_named_bot_is_the_subject() -> None:
    assert base_only("bot/compress.py", Config()) is None
    verdict = decide(REQUEST, facts("bot/rules.py", "scripts/x", "action.yml"), Config(watch=["bot/**"]))
    assert isinstance(verdict, Allowed)
    assert verdict.ignored_files == ()


def test_without_a_watch_list_every_change_counts() -> None:
    assert isinstance(decide(REQUEST, facts("lib/anything.rs"), Config()), Allowed)


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", False),
        ("src/**", "src2/a.py", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("**/compress*.py", "compressor.py", True),
        ("**/compress*.py", "a/b/compressor.py", True),
        ("src/**/x.py", "src/x.py", True),
        ("src/**/x.py", "src/a/b/x.py", True),
        ("src/compressor", "src/compressor/deep/a.py", True),
        ("src/compressor", "src/compressor.py", False),
        ("src/compressor/", "src/compressor/a.py", True),
        ("./src/a.py", "src/a.py", True),
        ("a?.py", "ab.py", True),
        ("a?.py", "a/.py", False),
        ("a.py", "axpy", False),
        ("[ab].py", "a.py", True),
        ("[ab].py", "c.py", False),
        ("compressor.py", "lib/compressor.py", False),
        ("#notes/**", "#notes/a.py", True),
        ("!kept.py", "!kept.py", True),
        ("**", "x/y\nz", True),
    ],
)
def test_globs_mean_what_people_expect(glob: str, path: str, fits: bool) -> None:
    assert matches(path, [glob]) is fits
