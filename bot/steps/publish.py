"""The publish step: read the result as hostile input, decide anew, write the comment and the check run."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.github.escape import inline
from bot.github.repository import GitHub
from bot.pull_request.body import Surroundings, ended_why, result_body
from bot.pull_request.ledger import EvaluationEnded, EvaluationStarted, LedgerEvent, NoticeKind, ResultMeasured
from bot.pull_request.ticket import Ticket, read_error
from bot.steps.check import FAILED, Check
from bot.steps.comment import RESULT_BUDGET, Sticky
from bot.steps.measured import read_result
from eval_core.base.config import CONFIG_FILE, Config
from eval_core.base.errors import IncompleteError, UserError, fault_of_ours
from eval_core.comparing.compare import ReportData
from eval_core.measuring.compared import base_in_run
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view

__all__ = [
    "Published",
    "begin",
    "publish",
]

# The publish job: check what the evaluate job left, decide anew, write the comment and the check run.

_log = logging.getLogger(__name__)
_JOB = "evaluate"
_TITLES: Mapping[NoticeKind, str] = {
    "failed": FAILED,
    "cancelled": "The evaluation was cancelled",
    "timed_out": "The evaluation ran out of time",
    "rejected": "The evaluation was rejected",
}


@dataclass(frozen=True)
class Published:
    """What was posted."""

    title: str
    report: str
    """The whole report, for the step summary."""
    troubles: tuple[str, ...] = ()
    """What could not be posted, and why."""


@dataclass(frozen=True)
class _Saying:
    """What there is to say, before it is known where it can be said."""

    outcome: str
    title: str
    report: str
    event: LedgerEvent


def begin(github: GitHub, ticket: Ticket) -> tuple[str, ...]:
    """Say that an evaluation that waited for a reviewer has begun; return what could not be posted."""
    assert ticket.pr is not None
    event = EvaluationStarted(run=ticket.run, at=datetime.now(UTC), url=ticket.run_url, sha=ticket.sha)
    check = Check(github, ticket.sha, ticket.run, ticket.run_url)
    sticky = Sticky(github, ticket.pr)
    return _each(
        lambda: sticky.record(event), lambda: check.start("Evaluating", f"Approved. [Live log]({ticket.run_url}).")
    )


def publish(
    github: GitHub,
    ticket: Ticket,
    config: Config,
    *,
    root: Path,
    folder: Path,
    result: str,
    report_url: str | None = None,
) -> Published:
    """Post the result, or that there is none, to the comment and the check run; one failing leaves the other."""
    assert ticket.pr is not None
    saying = _Writer(github, ticket, config, root, report_url).saying(folder, result)
    check = Check(github, ticket.sha, ticket.run, ticket.run_url)
    sticky = Sticky(github, ticket.pr)
    troubles = _each(
        lambda: sticky.record(saying.event),
        lambda: check.finish(saying.outcome, saying.title, saying.report, policy=config.bot.conclusion),
    )
    return Published(saying.title, saying.report, troubles)


def _each(*calls: Callable[[], object]) -> tuple[str, ...]:
    troubles: list[str] = []
    for call in calls:
        try:
            call()
        except (UserError, IncompleteError) as exc:
            troubles.append(str(exc))
        except Exception as exc:
            # A fault of ours in one place must not keep the other from being told.
            _log.exception("Not posted")
            troubles.append(fault_of_ours(exc))
    return tuple(troubles)


@dataclass(frozen=True)
class _Writer:
    """Puts into words what the evaluate job left."""

    github: GitHub
    ticket: Ticket
    config: Config
    root: Path
    report_url: str | None

    def saying(self, folder: Path, result: str) -> _Saying:
        """Say the result if there is one, however the job ended; else say how it ended."""
        try:
            data = read_result(self.ticket, self.config, self.root, folder)
            return self._measured(data, result)
        except UserError as exc:
            reason = read_error(folder) or str(exc)
        except Exception as exc:
            # Numbers that no measurement has may break any sum on the way; the pull request is told all the same.
            _log.exception("The result cannot be read")
            reason = f"the result makes no sense ({type(exc).__name__}); refused"
        return self._without_result(folder, result, reason)

    def _without_result(self, folder: Path, result: str, reason: str) -> _Saying:
        kind: NoticeKind = "cancelled" if result == "cancelled" else "failed"
        rejected = self._rejection() if result in ("failure", "skipped") and read_error(folder) is None else None
        if rejected is not None:
            kind, reason = "rejected", rejected
        elif kind == "cancelled":
            reason = "" if read_error(folder) is None else reason
        title = _TITLES[kind]
        event = EvaluationEnded(
            run=self.ticket.run,
            at=datetime.now(UTC),
            url=self.ticket.run_url,
            head=self._head(),
            sha=self.ticket.sha,
            kind=kind,
            why=ended_why(kind, reason, self.config.bot.label),
        )
        report = f"{title}. {inline(reason, 600)}" if reason else title
        return _Saying(kind, title, report, event)

    def _measured(self, data: ReportData, result: str) -> _Saying:
        view = make_view(_in_repository(data, self.root))
        head = self._head()
        judged = [CONFIG_FILE, self.config.fixtures, self.config.probes, self.config.baselines]
        if isinstance(self.config.target, str):
            judged.append(self.config.target)
        person = not self.ticket.sender.endswith("[bot]")
        around = Surroundings(
            label=self.config.bot.label,
            warnings=self._warnings(data, result, head),
            judged=judged,
            report_url=_checked(self.report_url, self.ticket),
            baseline_age=self._age(data),
            mention=self.ticket.sender if self.config.bot.mention and person else None,
        )
        outcome = view.kind.value if view.kind else "inconclusive"
        event = ResultMeasured(
            run=self.ticket.run,
            at=self._measured_at(),
            url=self.ticket.run_url,
            head=head,
            sha=self.ticket.sha,
            outcome=outcome,
            headline=view.headline,
            body=result_body(view, self.ticket, around, budget=RESULT_BUDGET),
        )
        return _Saying(outcome, view.headline, render_markdown(view), event)

    def _warnings(self, data: ReportData, result: str, head: str | None) -> list[str]:
        """Return the gate's warnings, with what has become of the job since; the ledger tells a moved head."""
        found = list(self.ticket.warnings)
        if head is None:
            found.append(f"Whether {self.ticket.sha[:7]} is still the head could not be checked.")
        if data.suspicion is not None:
            found.append(data.suspicion.words)
        if data.candidate.stopped:
            found.append(f"The run ended before its plan: {inline(data.candidate.stopped)}")
        elif result == "cancelled":
            found.append("The job was cancelled or ran out of time; this is what it had measured by then.")
        elif result == "failure":
            found.append("The job failed after it had measured this; its log says why.")
        return found

    def _head(self) -> str | None:
        assert self.ticket.pr is not None
        try:
            return self.github.pull(self.ticket.pr).head_sha
        except (UserError, IncompleteError):
            return None

    def _rejection(self) -> str | None:
        try:
            return self.github.workflow_runs.rejection(self.ticket.run_id)
        except (UserError, IncompleteError):
            return None

    def _measured_at(self) -> datetime:
        """Return when the evaluate job ended: a publication that comes late does not make its result newer."""
        try:
            ended = self.github.workflow_runs.ended_at(self.ticket.run_id, _JOB)
        except (UserError, IncompleteError):
            ended = None
        return ended or datetime.now(UTC)

    def _age(self, data: ReportData) -> str:
        """Say how old the baseline is: days, and commits of the base branch since."""
        if data.base is None:
            return ""
        if base_in_run(data.candidate):
            return f"compared with the base branch at {self.ticket.base_sha[:12]}, not with a stored baseline"
        words = []
        try:
            days = (datetime.now(UTC) - datetime.fromisoformat(data.base.provenance.date)).days
            words.append(f"{days} day{'' if days == 1 else 's'} old")
        except (TypeError, ValueError):
            pass
        if sha := data.base.provenance.source_sha:
            try:
                behind = self.github.compare(sha, self.ticket.base_sha).ahead
                words.append(f"{behind} commit{'' if behind == 1 else 's'} behind")
            except (UserError, IncompleteError):
                pass
        return f"baseline {', '.join(words)}" if words else ""


def _checked(url: str | None, ticket: Ticket) -> str | None:
    """Return the address of the full report if it is one of this very run."""
    run = re.escape(ticket.run_url.partition("/attempts/")[0])
    return url if url and re.fullmatch(rf"{run}/artifacts/[0-9]{{1,19}}", url) else None


def _in_repository(data: ReportData, root: Path) -> ReportData:
    """Show the baseline's path as it stands in the repository."""
    if data.base_path and Path(data.base_path).is_relative_to(root):
        return replace(data, base_path=Path(data.base_path).relative_to(root).as_posix())
    return data
