"""The gate step: gather the facts from GitHub, decide, consume the label, tell the pull request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.admission import Allowed, Facts, Refused, decide
from bot.body import last_runs, queued, refused
from bot.event import EvaluationRequest, Ignored, read_event
from bot.github.api_error import Conflict, NotFound
from bot.github.check import CHECK_NAME, FAILED
from bot.github.comment import Sticky
from bot.github.escape import inline
from bot.github.repository import WORKFLOW, GitHub
from bot.ticket import Ticket
from eval_core.base.config import BotConfig, Config
from eval_core.base.errors import UserError

__all__ = [
    "Admission",
    "Turned",
    "admit",
    "gather",
]

# Asking GitHub for what the gate has to know.

# Checks that were called off show nobody a result, as those that failed do not.
_NOT_A_LOOK = frozenset({"cancelled", "skipped", "stale"})


def gather(
    github: GitHub,
    request: EvaluationRequest,
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


def _runs_today(
    github: GitHub, request: EvaluationRequest, config: BotConfig, workflow: str, job: str, now: datetime
) -> int:
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


# The gate's job: decide, consume the label, and tell the pull request either way.


@dataclass(frozen=True)
class Admission:
    """The evaluation may begin."""

    ticket: Ticket


@dataclass(frozen=True)
class Turned:
    """Nothing is evaluated, and why."""

    why: str


def admit(
    github: GitHub,
    name: str,
    payload: Any,
    env: Mapping[str, str],
    config: Config,
    *,
    models: str,
    estimate: str,
    minutes: str,
    unfit: str | None = None,
) -> Admission | Turned:
    """Read the event, ask GitHub, decide, and post what was decided; `unfit` says why nothing can be measured here."""
    event = read_event(name, payload, env, label=config.bot.label)
    if isinstance(event, Ignored):
        return Turned(event.why)
    decision = _unfit(unfit) or _decided(github, event, config)
    if event.label is not None and event.pr is not None:
        # Consumed whatever was decided: a label that stays on would look like a promise.
        github.remove_label(event.pr, event.label)
    if isinstance(decision, Refused):
        _tell(github, event, decision.why)
        return Turned(decision.why)
    ticket = Ticket.of(event, decision)
    if event.pr is not None and event.mode == "evaluate":
        github.react(event.pr, "eyes")
        sticky = Sticky(github, event.pr)
        standing = sticky.find()
        runs = last_runs(standing.body) if standing else []
        sticky.put(queued(ticket, models=models, estimate=estimate, minutes=minutes, runs=runs), ticket.run)
    return Admission(ticket)


def _unfit(why: str | None) -> Refused | None:
    if why is None:
        return None
    return Refused(f"The base branch is not ready for an evaluation: {inline(why, 600)}", "unfit")


def _decided(github: GitHub, event: EvaluationRequest, config: Config) -> Allowed | Refused:
    facts = gather(github, event, config.bot, workflow=WORKFLOW, check=CHECK_NAME)
    decision = decide(event, facts, config)
    if event.mode == "baseline" and isinstance(decision, Allowed):
        branch = github.default_branch()
        if github.compare(branch, decision.base_sha).ahead:
            return Refused(
                f"{decision.base_sha[:7]} is not on {branch}, which the baseline is proposed to: "
                f"merge first, or start the workflow on {branch}.",
                "not-default",
            )
    return decision


def _tell(github: GitHub, request: EvaluationRequest, why: str) -> None:
    """Post a refusal where it can be read; the run's page shows it where the pull request cannot be written to."""
    if request.pr is None:
        return
    try:
        sticky = Sticky(github, request.pr)
        standing = sticky.find()
        sticky.put(refused(why, last_runs(standing.body) if standing else ()), request.run)
    except UserError as exc:
        print(f"The refusal could not be posted: {exc}")
