"""Asking GitHub for what the gate has to know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bot.api_error import Conflict, NotFound
from bot.check import FAILED
from bot.event import Request
from bot.gate import Facts
from bot.github import GitHub
from eval_core.config import BotConfig

__all__ = ["gather"]

# Checks that were called off show nobody a result, as those that failed do not.
_NOT_A_LOOK = frozenset({"cancelled", "skipped", "stale"})


def gather(
    github: GitHub,
    request: Request,
    config: BotConfig,
    *,
    workflow: str,
    check: str,
    job: str = "evaluate",
    now: datetime | None = None,
) -> Facts:
    """Collect the facts about a request: `workflow` is a file name, `check` our check's, `job` the one that costs."""
    pull = None if request.pr is None else github.pull(request.pr)
    files = () if request.pr is None else github.changed_files(request.pr)
    # Everything but the subject comes from the tip of the base branch, not from where the PR once left it.
    base = pull.base_ref if pull is not None else request.sha
    return Facts(
        permission=github.permission(request.sender),
        base_sha=github.commit(base).sha,
        looks=_looks(github, request.sha, check),
        runs_today=_runs_today(github, request, config, workflow, job, now or datetime.now(UTC)),
        pull=pull,
        files=files,
    )


def _looks(github: GitHub, sha: str, check: str) -> int:
    try:
        runs = github.check_runs(sha, check)
    except (Conflict, NotFound):
        # GitHub does not know the commit: the gate or the download will say so in better words.
        return 0
    return sum(run.conclusion not in _NOT_A_LOOK and run.title != FAILED for run in runs)


def _runs_today(github: GitHub, request: Request, config: BotConfig, workflow: str, job: str, now: datetime) -> int:
    """Count what was paid for; runs that the gate refused do not use up the quota of others."""
    count = 0
    for run in github.workflow_runs.of(workflow, since=now - timedelta(hours=24)):
        if run.conclusion == "skipped":
            continue
        # Our own costly job may be listed as queued already.
        count += github.workflow_runs.times_run(run.id, job, finished=run.id == request.run.id)
        if count >= config.runs_per_day:
            break
    return count
