"""The publish step: read the result as untrusted input, decide again, write the comment and the check run."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from bot.github.repository import GitHub
from bot.github.resources import Pull
from bot.pull_request.admission import is_measured
from bot.pull_request.body import asker, ended_why
from bot.pull_request.ledger import EvaluationEnded, EvaluationStarted, LedgerEvent, NoticeKind, ResultMeasured
from bot.pull_request.ticket import Ticket, read_error
from bot.steps.annotations import Clue, annotate
from bot.steps.check import FAILED, Check
from bot.steps.comment import Sticky
from bot.steps.without_token import start_without_token
from eval_core.base.config import Config
from eval_core.base.errors import IncompleteError, UserError, bug_message
from eval_core.base.markdown_text import inline

_log = logging.getLogger(__name__)
_JOB = "evaluate"
_TITLES: Mapping[NoticeKind, str] = {
    "failed": FAILED,
    "cancelled": "The evaluation was cancelled or timed out",
    "timed_out": "The evaluation ran out of time",
    "rejected": "The evaluation was rejected",
    "superseded": "Cancelled; a later request follows",
}


@dataclass(frozen=True)
class Published:
    """What was posted."""

    title: str
    report: str
    """The whole report, for the step summary."""
    troubles: tuple[str, ...] = ()
    """What could not be posted, and why."""


class ResultAsked(BaseModel):
    """What is to be put into words, and all that GitHub tells about it."""

    ticket: Ticket
    config: Config
    root: Path
    folder: Path
    result: str
    """How the evaluate job ended."""
    head: str | None
    """The last commit of the pull request; None where GitHub does not tell."""
    base_ref: str | None = None
    """The branch that it is meant for now."""
    report_url: str | None


class RenderedResult(BaseModel):
    """A result in words."""

    outcome: str
    headline: str
    report: str
    body: str
    clues: list[Clue] | None = None
    """What a changed line would hold that a loss comes from; None where nothing was lost."""


RenderResult = Callable[[ResultAsked, Callable[[str], int | None]], RenderedResult]
"""Puts a result into words, and asks how many commits the base branch has had since the baseline's."""


def render_without_token(asked: ResultAsked, commits_since: Callable[[str], int | None]) -> RenderedResult:
    """Put a result into words in a process that holds no token."""
    with start_without_token("bot.steps.render_result") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{asked.model_dump_json(by_alias=True)}\n")
        process.stdin.flush()
        for line in process.stdout:
            answer = json.loads(line)
            if "written" in answer:
                return RenderedResult.model_validate(answer["written"])
            if "refused" in answer:
                raise UserError(answer["refused"])
            process.stdin.write(f"{json.dumps(commits_since(answer['since']))}\n")
            process.stdin.flush()
    raise UserError(f"the result is invalid (reading it ended with {process.returncode}); refused")


@dataclass(frozen=True)
class _Saying:
    """What there is to say, before it is known where it can be said."""

    outcome: str
    title: str
    report: str
    event: LedgerEvent
    annotations: Sequence[Mapping[str, Any]] = ()


def begin(github: GitHub, ticket: Ticket, attempt: int = 1) -> tuple[str, ...]:
    """Say that an evaluation that waited for a reviewer has begun; return what could not be posted.

    `attempt` is the job's own: higher than the ticket's where only failed jobs are run again, as after a rejection.
    """
    assert ticket.pr is not None
    event = EvaluationStarted(
        run=ticket.run,
        at=datetime.now(UTC),
        url=ticket.run_url,
        sha=ticket.sha,
        again=attempt > ticket.run.attempt,
    )
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
    write: RenderResult,
    report_url: str | None = None,
) -> Published:
    """Post the result, or that there is none, to the comment and the check run; one failing leaves the other."""
    assert ticket.pr is not None
    saying = _Writer(github, ticket, config, root, report_url, write).saying(folder, result)
    check = Check(github, ticket.sha, ticket.run, ticket.run_url)
    sticky = Sticky(github, ticket.pr)
    silent = config.bot.comment == "changes" and saying.outcome == "no_detectable_change"
    troubles = _each(
        lambda: None if silent and sticky.find() is None else sticky.record(saying.event),
        lambda: check.finish(
            saying.outcome,
            saying.title,
            saying.report,
            policy=config.bot.conclusion,
            annotations=saying.annotations,
        ),
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
            troubles.append(bug_message(exc))
    return tuple(troubles)


@dataclass(frozen=True)
class _Writer:
    """Puts into words what the evaluate job left."""

    github: GitHub
    ticket: Ticket
    config: Config
    root: Path
    report_url: str | None
    write: RenderResult

    def saying(self, folder: Path, result: str) -> _Saying:
        """Say the result if there is one, however the job ended; else say how it ended."""
        pull = self._pull()
        head = pull.head_sha if pull is not None else None
        asked = ResultAsked(
            ticket=self.ticket,
            config=self.config,
            root=self.root,
            folder=folder,
            result=result,
            head=head,
            base_ref=pull.base_ref if pull is not None else None,
            report_url=_checked(self.report_url, self.ticket),
        )
        try:
            written = self.write(asked, self._commits_since)
        except UserError as exc:
            return self._without_result(folder, result, read_error(folder) or str(exc), head)
        event = ResultMeasured(
            run=self.ticket.run,
            at=self._measured_at(),
            url=self.ticket.run_url,
            head=head,
            sha=self.ticket.sha,
            outcome=written.outcome,
            headline=written.headline,
            asker=asker(self.ticket.sender, self.config.bot),
            body=written.body,
        )
        notes = () if written.clues is None else self._annotations(pull, written.clues, written.headline)
        return _Saying(written.outcome, written.headline, written.report, event, notes)

    def _without_result(self, folder: Path, result: str, reason: str, head: str | None) -> _Saying:
        kind: NoticeKind = "cancelled" if result == "cancelled" else "failed"
        rejected = self._rejection() if result in ("failure", "skipped") and read_error(folder) is None else None
        if rejected is not None:
            kind, reason = "rejected", rejected
        elif kind == "cancelled" and read_error(folder) is None and self._superseded():
            kind, reason = "superseded", ""
        elif kind == "cancelled":
            reason = "" if read_error(folder) is None else reason
        title = _TITLES[kind]
        event = EvaluationEnded(
            run=self.ticket.run,
            at=datetime.now(UTC),
            url=self.ticket.run_url,
            head=head,
            sha=self.ticket.sha,
            kind=kind,
            asker=asker(self.ticket.sender, self.config.bot),
            why=ended_why(kind, reason, self.config.bot.label),
        )
        report = f"{title}. {inline(reason, 600)}" if reason else title
        return _Saying(kind, title, report, event)

    def _annotations(self, pull: Pull | None, clues: Sequence[Clue], headline: str) -> Sequence[Mapping[str, Any]]:
        """Return what is said beside the diff; nothing where GitHub shows another diff by now, or not all of it."""
        if pull is None or pull.head_sha != self.ticket.sha:
            return ()
        try:
            files = self.github.changed_files(pull.number)
        except (UserError, IncompleteError):
            return ()
        measured = [file for file in files if is_measured(file.path, self.config)]
        return annotate(clues, measured, headline) if len(files) >= pull.changed_files else ()

    def _pull(self) -> Pull | None:
        assert self.ticket.pr is not None
        try:
            return self.github.pull(self.ticket.pr)
        except (UserError, IncompleteError):
            return None

    def _rejection(self) -> str | None:
        try:
            return self.github.workflow_runs.rejection(self.ticket.run_id)
        except (UserError, IncompleteError):
            return None

    def _superseded(self) -> bool:
        """Tell whether a later evaluation follows: of those that wait GitHub keeps only the last."""
        assert self.ticket.pr is not None
        try:
            runs = Sticky(self.github, self.ticket.pr).read().runs
        except (UserError, IncompleteError):
            return False
        return any(run.run_id > self.ticket.run_id for run in runs)

    def _measured_at(self) -> datetime:
        """Return when the evaluate job ended: a publication that comes late does not make its result newer."""
        try:
            ended = self.github.workflow_runs.ended_at(self.ticket.run_id, _JOB)
        except (UserError, IncompleteError):
            ended = None
        return ended or datetime.now(UTC)

    def _commits_since(self, sha: str) -> int | None:
        """Return how many commits the base branch has had since one, if GitHub tells."""
        try:
            return self.github.compare(sha, self.ticket.base_sha).ahead
        except (UserError, IncompleteError):
            return None


def _checked(url: str | None, ticket: Ticket) -> str | None:
    """Return the address of the full report if it is one of this very run."""
    run = re.escape(ticket.run_url.partition("/attempts/")[0])
    return url if url and re.fullmatch(rf"{run}/artifacts/[0-9]{{1,19}}", url) else None
