"""The publish step: read the result as hostile input, decide anew, write the comment and the check run."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.body import Surroundings, ended_why, result_body
from bot.github.check import FAILED, Check
from bot.github.comment import RESULT_BUDGET, Sticky
from bot.github.escape import inline
from bot.github.repository import GitHub
from bot.ledger import EvaluationEnded, EvaluationStarted, LedgerEvent, NoticeKind, ResultMeasured
from bot.ticket import Ticket, is_small_file, read_error
from eval_core.base.config import CONFIG_FILE, Config
from eval_core.base.errors import IncompleteError, UserError
from eval_core.base.files import parse, read_json
from eval_core.comparing.compare import ReportData
from eval_core.comparing.day import CONTROL, control_of
from eval_core.comparing.looks import LOOKS, looks_before
from eval_core.domain.case import Case
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Measurement
from eval_core.measuring.evaluate import own_base
from eval_core.measuring.options import Job
from eval_core.measuring.session import now
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.storage.results import SUMMARY

__all__ = [
    "Published",
    "begin",
    "publish",
    "read_measured",
    "read_result",
]

# What the evaluate job left, read as hostile input: it ran a stranger's code.

_LARGEST = 64 << 20
_MOST_RUNS = 200
_LARGEST_COUNT = 1e12
# Letters, digits and signs that markdown does not act on; "@" only inside a word, where it mentions nobody.
_PLAIN = re.compile(r"(?:[\w .,;:/()+%$='~{}-]|(?<=\w)@){0,300}")
_ADDRESS = re.compile(r"://|\bwww\.", re.IGNORECASE)
# Texts of sessions and models; whoever shows them makes them harmless.
_FREE = frozenset(
    {"detail", "notes", "summary", "text", "reason", "label", "worst", "flags", "stopped", "extra", "value", "values"}
    | {"headings", "sentences"}
)


def read_result(ticket: Ticket, config: Config, root: Path, folder: Path) -> ReportData:
    """Read the measurement and decide anew, with the baseline of this checkout or the base that was measured as well.

    Nothing but the numbers of `summary.json` is believed: verdict, texts and deltas are made here.
    """
    measurement, job, cases = read_measured(ticket, config, root, folder)
    if (path := own_base(measurement, folder)) is None:
        return job.compared_with(measurement, list(cases), None)
    base = _read_checked(path, f"{path.name}/{SUMMARY}", cases)
    provenance = base.provenance.model_copy(update={"source_sha": ticket.base_sha, "dirty": False})
    base = base.model_copy(update={"provenance": provenance, "label": f"{ticket.label}/{path.name}"})
    data = job.compared_with(measurement, list(cases), (path, base))
    return replace(data, base_path=f"base branch at {ticket.base_sha[:12]}, measured in this run")


def read_measured(ticket: Ticket, config: Config, root: Path, folder: Path) -> tuple[Measurement, Job, Sequence[Case]]:
    """Read `summary.json` if it is what this ticket's evaluation could have left, and refuse it otherwise."""
    cases = Job(settings=config, root=root, names=tuple(ticket.fixtures) or None).load_cases()
    measurement = _read_checked(folder, SUMMARY, cases)
    if (control := control_of(measurement)) is not None:
        _check_runs(control, cases, f"{SUMMARY}: extra.{CONTROL}")
    job = Job(settings=config, root=root, names=tuple(measurement.fixtures), looks=ticket.looks)
    # The fetched tree is no git checkout and cannot know its commit; the ticket does.
    source = ticket.base_sha if ticket.mode == "baseline" else ticket.sha
    provenance = measurement.provenance.model_copy(update={"source_sha": source, "dirty": False})
    # How often this commit was looked at is the ticket's to say: it decides how much alpha is left.
    extra = {**measurement.extra, LOOKS: looks_before(job.looked_at, measurement)}
    update = {"provenance": provenance, "label": ticket.label, "extra": extra}
    return measurement.model_copy(update=update), job, cases


def _read_checked(folder: Path, name: str, cases: Sequence[Case]) -> Measurement:
    path = folder / SUMMARY
    if not is_small_file(path, _LARGEST):
        raise UserError(f"the evaluation left no {name} that can be read")
    body = read_json(path)
    for where, word in _names(body):
        if not _PLAIN.fullmatch(word) or _ADDRESS.search(word):
            raise UserError(f"{name}: {where}: {word[:60]!a} is not a plain text; refused")
    measurement = parse(Measurement, body, name)
    _check_suite(measurement, cases, name)
    _check_runs(measurement, cases, name)
    if any(abs(number) > _LARGEST_COUNT for number in _numbers(body)):
        raise UserError(f"{name}: holds a number that no measurement has; refused")
    return measurement


def _names(value: Any, where: str = "", free: bool = False) -> Iterator[tuple[str, str]]:
    """Yield every key, and every value that is shown as it stands, with its place."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield where or "a field", key
            place = f"{where}.{key}" if where else key
            # The label of a measurement is a name; that of a fact is a quotation.
            yield from _names(item, place, free or (key in _FREE and place != "label"))
    elif isinstance(value, list):
        for item in value:
            yield from _names(item, where, free)
    elif isinstance(value, str) and not free:
        yield where, value


def _check_suite(measurement: Measurement, cases: Sequence[Case], name: str) -> None:
    fixtures = {case.fixture.name: case.fixture.digest for case in cases}
    banks = {case.fixture.name: case.bank.digest for case in cases}
    if measurement.fingerprint.fixtures != fixtures or measurement.fingerprint.probes != banks:
        raise UserError(f"{name}: measured with other fixtures or probes than those of the base branch; refused")
    types = {case.fixture.name: {probe.id: probe.type for probe in case.bank.probes} for case in cases}
    if set(measurement.fixtures) != set(fixtures) or measurement.probe_types != types:
        raise UserError(f"{name}: holds other fixtures or probes than it says; refused")


def _check_runs(measurement: Measurement, cases: Sequence[Case], name: str) -> None:
    runs = [(fixture, run) for fixture, found in measurement.fixtures.items() for run in found]
    known = {(case.fixture.name, probe.id) for case in cases for probe in case.bank.probes}
    asked = {(fixture, probe) for fixture, run in runs for probe in run.probes}
    if set(measurement.fixtures) - {case.fixture.name for case in cases} or asked - known:
        raise UserError(f"{name}: holds other fixtures or probes than it says; refused")
    if any(run.fixture != fixture for fixture, run in runs):
        raise UserError(f"{name}: a run is filed under another fixture; refused")
    numbers = [[run.run for run in found] for found in measurement.fixtures.values()]
    if any(len(set(found)) != len(found) or len(found) > _MOST_RUNS for found in numbers):
        raise UserError(f"{name}: a run is there twice, or there are more than {_MOST_RUNS}; refused")
    results = (record.result for _, run in runs for record in run.probes.values())
    scores = (result.scores for result in results if isinstance(result, Grade))
    if any(set(six) != set(DIMENSIONS) or not all(0 <= value <= 5 for value in six.values()) for six in scores):
        raise UserError(f"{name}: a grade is not six scores from 0 to 5; refused")


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


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
    event = EvaluationStarted(run=ticket.run, at=now(), url=ticket.run_url, sha=ticket.sha)
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
            at=now(),
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
        return ended or now()

    def _age(self, data: ReportData) -> str:
        """Say how old the baseline is: days, and commits of the base branch since."""
        if data.base is None:
            return ""
        words = []
        try:
            days = (now() - datetime.fromisoformat(data.base.provenance.date)).days
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
