"""The gate's job: decide, consume the label, and tell the pull request either way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.body import last_runs, queued, refused
from bot.check import CHECK_NAME
from bot.comment import Sticky
from bot.event import Ignored, Request, read_event
from bot.facts import gather
from bot.gate import Allowed, Refused, decide
from bot.github import GitHub
from bot.neutral import inline
from bot.ticket import Ticket
from bot.workflow_runs import WORKFLOW
from eval_core.config import Config
from eval_core.errors import UserError

__all__ = ["Admission", "Turned", "admit"]


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


def _decided(github: GitHub, event: Request, config: Config) -> Allowed | Refused:
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


def _tell(github: GitHub, request: Request, why: str) -> None:
    """Post a refusal where it can be read; the run's page shows it where the pull request cannot be written to."""
    if request.pr is None:
        return
    try:
        sticky = Sticky(github, request.pr)
        standing = sticky.find()
        sticky.put(refused(why, last_runs(standing.body) if standing else ()), request.run)
    except UserError as exc:
        print(f"The refusal could not be posted: {exc}")
