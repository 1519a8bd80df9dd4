"""The publish job: no key and no foreign code; it checks what the evaluate job left and tells the pull request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from bot.body import ended, final, last_runs, run_line
from bot.check import Check
from bot.comment import Sticky, Superseded, body_budget
from bot.github import GitHub
from bot.ticket import Ticket
from eval_core.config import Config
from eval_core.errors import UserError
from eval_core.job import Job
from eval_core.report.data import ReportData
from eval_core.report.markdown import render_markdown
from eval_core.report.view import make_view
from eval_core.run.provenance import now
from eval_core.run.store import read_measurement

__all__ = ["Published", "publish", "read_result"]

_LARGEST = 64 << 20


def read_result(ticket: Ticket, config: Config, root: Path, folder: Path) -> ReportData:
    """Read the measurement as hostile input and decide anew, with the baseline of this checkout.

    Nothing but the numbers of `summary.json` is believed: verdict, texts and deltas are made here.
    """
    summary = folder / "summary.json"
    if summary.is_symlink() or not summary.is_file():
        raise UserError("the evaluation left no summary.json")
    if summary.stat().st_size > _LARGEST:
        raise UserError(f"summary.json: {summary.stat().st_size:,} bytes, more than {_LARGEST:,}; refused")
    measurement = read_measurement(folder)
    job = Job(settings=config, root=root, names=tuple(measurement.fixtures), looks=ticket.looks)
    cases = job.load_cases()
    expected = {case.fixture.name: case.fixture.digest for case in cases}
    if measurement.fingerprint.fixtures != expected:
        raise UserError("summary.json: measured with other fixtures than those of the base branch; refused")
    # The fetched tree is no git checkout and cannot know its commit; the ticket does.
    provenance = measurement.provenance.model_copy(update={"source_sha": ticket.sha, "dirty": False})
    measurement = measurement.model_copy(update={"provenance": provenance})
    return job.compared(measurement, cases)


@dataclass(frozen=True)
class Published:
    """What was posted."""

    title: str
    report: str
    """The whole report, for the step summary."""
    superseded: bool
    """A newer run had spoken; its comment was left standing."""


def publish(github: GitHub, ticket: Ticket, config: Config, *, root: Path, folder: Path, result: str) -> Published:
    """Post the result, or that there is none, to the comment and the check run."""
    assert ticket.pr is not None
    sticky = Sticky(github, ticket.pr)
    standing = sticky.find()
    earlier = standing.body if standing else ""
    moment = now().strftime("%Y-%m-%d %H:%M")
    check = Check(github, ticket.sha, ticket.run, ticket.run_url)
    try:
        data = read_result(ticket, config, root, folder) if result != "cancelled" else None
        reason = ""
    except UserError as exc:
        data, reason = None, str(exc)
    if data is None:
        state = "cancelled" if result == "cancelled" else "failed"
        runs = last_runs(earlier, run_line(ticket, state, moment))
        posted = sticky.put(ended(ticket, state, reason, runs), ticket.run)
        title = "The evaluation was cancelled" if state == "cancelled" else "The evaluation failed"
        check.finish(state, title, reason or title, policy=config.bot.conclusion)
        return Published(title, reason, isinstance(posted, Superseded))
    head = github.pull(ticket.pr).head_sha
    warnings = list(ticket.warnings)
    if head != ticket.sha:
        moved = f"The head has moved to {head[:7]}; this is about {ticket.sha[:7]}."
        warnings = [moved, *(warning for warning in warnings if "has moved on" not in warning)]
    view = make_view(_in_repository(data, root))
    outcome = view.kind.value if view.kind else "inconclusive"
    runs = last_runs(earlier, run_line(ticket, outcome.replace("_", " "), moment))
    body = final(view, ticket, label=config.bot.label, warnings=warnings, runs=runs, budget=body_budget(ticket.run))
    posted = sticky.put(body, ticket.run)
    report = render_markdown(view)
    check.finish(outcome, view.headline, report, policy=config.bot.conclusion)
    return Published(view.headline, report, isinstance(posted, Superseded))


def _in_repository(data: ReportData, root: Path) -> ReportData:
    """Show the baseline's path as it stands in the repository."""
    if data.base_path and Path(data.base_path).is_relative_to(root):
        return replace(data, base_path=Path(data.base_path).relative_to(root).as_posix())
    return data
