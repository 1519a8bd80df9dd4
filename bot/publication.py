"""The publish job: check what the evaluate job left, decide anew, write the comment and the check run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.body import ended, final, last_runs, run_line
from bot.check import FAILED, Check
from bot.comment import Sticky, Superseded, body_budget
from bot.failure import read_error
from bot.github import GitHub
from bot.neutral import inline
from bot.result import read_result
from bot.ticket import Ticket
from eval_core.config import CONFIG_FILE, Config
from eval_core.errors import IncompleteError, UserError
from eval_core.report.data import ReportData
from eval_core.report.markdown import render_markdown
from eval_core.report.view import make_view
from eval_core.run.provenance import now

__all__ = ["Published", "publish"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Published:
    """What was posted."""

    title: str
    report: str
    """The whole report, for the step summary."""
    superseded: bool
    """A newer run had spoken; its comment was left standing."""
    troubles: tuple[str, ...] = ()
    """What could not be posted, and why."""


@dataclass(frozen=True)
class _Saying:
    """What there is to say, before it is known where it can be said."""

    outcome: str
    title: str
    report: str
    comment: Callable[[Sequence[str]], str]
    """The comment's text, given the list of the last runs."""


def publish(github: GitHub, ticket: Ticket, config: Config, *, root: Path, folder: Path, result: str) -> Published:
    """Post the result, or that there is none, to the comment and the check run; one failing leaves the other."""
    assert ticket.pr is not None
    saying = _saying(github, ticket, config, root, folder, result)
    line = run_line(ticket, saying.outcome.replace("_", " "), now().strftime("%Y-%m-%d %H:%M"))
    troubles: list[str] = []
    superseded = False
    try:
        sticky = Sticky(github, ticket.pr)
        standing = sticky.find()
        text = saying.comment(last_runs(standing.body if standing else "", line))
        superseded = isinstance(sticky.put(text, ticket.run), Superseded)
    except (UserError, IncompleteError) as exc:
        troubles.append(str(exc))
    try:
        check = Check(github, ticket.sha, ticket.run, ticket.run_url)
        check.finish(saying.outcome, saying.title, saying.report, policy=config.bot.conclusion)
    except (UserError, IncompleteError) as exc:
        troubles.append(str(exc))
    return Published(saying.title, saying.report, superseded, tuple(troubles))


def _saying(github: GitHub, ticket: Ticket, config: Config, root: Path, folder: Path, result: str) -> _Saying:
    if result == "cancelled":
        return _without_result(ticket, "cancelled", "")
    try:
        data = read_result(ticket, config, root, folder)
        return _with_result(github, ticket, config, root, data, failed=result == "failure")
    except UserError as exc:
        return _without_result(ticket, "failed", read_error(folder) or str(exc))
    except Exception as exc:
        # Numbers that no measurement has may break any sum on the way; the pull request is told all the same.
        _log.exception("The result cannot be read")
        return _without_result(ticket, "failed", f"the result makes no sense ({type(exc).__name__}); refused")


def _without_result(ticket: Ticket, state: str, reason: str) -> _Saying:
    title = "The evaluation was cancelled" if state == "cancelled" else FAILED
    report = f"{title}. {inline(reason, 600)}" if reason else title
    return _Saying(state, title, report, lambda runs: ended(ticket, state, reason, runs))


def _with_result(
    github: GitHub, ticket: Ticket, config: Config, root: Path, data: ReportData, *, failed: bool
) -> _Saying:
    view = make_view(_in_repository(data, root))
    warnings = _warnings(github, ticket)
    if data.candidate.stopped:
        warnings.append(f"The run ended before its plan: {inline(data.candidate.stopped)}")
    elif failed:
        warnings.append("The job failed after it had measured this; its log says why.")
    judged = [CONFIG_FILE, config.fixtures, config.probes, config.baselines]
    if isinstance(config.target, str):
        judged.append(config.target)

    def comment(runs: Sequence[str]) -> str:
        budget = body_budget(ticket.run)
        return final(view, ticket, label=config.bot.label, warnings=warnings, judged=judged, runs=runs, budget=budget)

    comment(())  # what cannot be rendered is a failed result, not a failed job
    outcome = view.kind.value if view.kind else "inconclusive"
    return _Saying(outcome, view.headline, render_markdown(view), comment)


def _warnings(github: GitHub, ticket: Ticket) -> list[str]:
    """Return the gate's warnings, with what has become of the head since."""
    assert ticket.pr is not None
    try:
        head = github.pull(ticket.pr).head_sha
    except (UserError, IncompleteError):
        return [*ticket.warnings, f"Whether {ticket.sha[:7]} is still the head could not be checked."]
    if head == ticket.sha:
        return list(ticket.warnings)
    moved = f"The head has moved to {head[:7]}; this is about {ticket.sha[:7]}."
    return [moved, *(warning for warning in ticket.warnings if "has moved on" not in warning)]


def _in_repository(data: ReportData, root: Path) -> ReportData:
    """Show the baseline's path as it stands in the repository."""
    if data.base_path and Path(data.base_path).is_relative_to(root):
        return replace(data, base_path=Path(data.base_path).relative_to(root).as_posix())
    return data
