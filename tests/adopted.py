"""A repository that has adopted the bot: a compressor of its own, two small sessions, a baseline, the workflow."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import small
from loopback import LoopbackGitHub
from loopback.shapes import stamp
from loopback.state import StoredComment, StoredPull

from bot.demo.journey import package_source, write_tree
from bot.init import adoption
from eval_core.domain.case import Case
from eval_core.domain.measurement import Measurement
from eval_core.storage.baselines import store_baseline

REPO = "acme/agent"
LABEL = "eval-compression"
ACTION = f"acme/compression-eval@{'5' * 40}"
RUNS = 3
COMPRESSOR = "agent/context_compressor.py"
PLAN = f"runs: {RUNS}\ncompress_runs: {RUNS}\nbaseline_runs: {RUNS + 1}\n"
QUICK = "bot: {suite: quick}\n"
"""Rounds cost seconds in each evaluation; the tests of what they find play them."""

Tree = dict[str, bytes]


def cases() -> list[Case]:
    return small.cases()[1:]


@cache
def measured(strategy: str, runs: int = RUNS) -> Measurement:
    """Measure a reference compressor on the two sessions, once for all tests."""
    with tempfile.TemporaryDirectory() as folder:
        return small.measure(cases(), Path(folder), strategy, runs=runs, compress_runs=runs)


@cache
def _files(*, baseline: bool) -> Mapping[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        write_tree(package_source(small.REPOSITORY / "eval_core" / "compressors", "agent"), root)
        small.write_suite(root, cases())
        if baseline:
            assert store_baseline(measured("anchored", 10), root / "baselines", "offline", noise={})
        for path, text in adoption(root, ACTION, None).files.items():
            small.write(root / path, text + (PLAN + QUICK if path == ".compression-eval.yml" else ""))
        paths = sorted(path for path in root.rglob("*") if path.is_file())
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def base_tree(*, baseline: bool = True) -> Tree:
    return dict(_files(baseline=baseline))


def worse_tree(tree: Tree) -> Tree:
    """Return what a pull request makes of it: the summary gets almost no room."""
    code = tree[COMPRESSOR]
    assert code.count(b"= 0.28") == 1
    return {**tree, COMPRESSOR: code.replace(b"= 0.28", b"= 0.02")}


def on_disk(tree: Tree, folder: Path) -> Path:
    write_tree(tree, folder)
    return folder


def configured(tree: Tree, text: str) -> Tree:
    """Add lines to the configuration; what they say of the bot goes beside what is there."""
    name, bot = ".compression-eval.yml", "bot: {"
    before = tree[name].decode()
    if text.startswith(bot):
        before, text = before.replace(QUICK, ""), text.replace(bot, f"{bot}suite: quick, ")
    return {**tree, name: (before + text).encode()}


def dispatch_event(sender: str = "maintainer", **inputs: Any) -> dict[str, Any]:
    return {
        "inputs": inputs,
        "ref": "refs/heads/main",
        "repository": {"full_name": REPO},
        "sender": {"login": sender},
        "workflow": ".github/workflows/compression-eval.yml",
    }


def comment_event(comment: StoredComment) -> dict[str, Any]:
    return {
        "action": "created",
        "issue": {"number": comment.number, "pull_request": {"url": "x"}},
        "comment": {"id": comment.id, "body": comment.body, "created_at": stamp(comment.created)},
        "repository": {"full_name": REPO},
        "sender": {"login": comment.author},
    }


def review_event(pull: StoredPull, reviewer: str, **changes: object) -> dict[str, Any]:
    """What GitHub sends when the workflow that a review started has ended."""
    run = {
        "event": "pull_request_review",
        "conclusion": "success",
        "head_sha": pull.head_sha,
        "head_branch": pull.head_ref,
        "head_repository": {"full_name": pull.head_repo, "owner": {"login": pull.head_owner}},
        "actor": {"login": reviewer},
        **changes,
    }
    sender = {"login": "somebody-who-ran-it-again"}
    return {"action": "completed", "workflow_run": run, "repository": {"full_name": REPO}, "sender": sender}


def world(tree: Tree, change: Tree | None = None) -> tuple[LoopbackGitHub, StoredPull]:
    """Return a GitHub, not yet started, with a labelled pull request."""
    github = LoopbackGitHub(REPO, files=tree)
    github.user("maintainer", "write")
    github.workflow("compression-eval.yml")
    github.state.actions_open_pulls = True
    pull = github.open_pull(worse_tree(tree) if change is None else change)
    github.label(pull.number, LABEL)
    return github, pull
