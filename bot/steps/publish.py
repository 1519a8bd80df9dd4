"""The publish step: read the result as hostile input, decide anew, write the comment and the check run."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.body import ended, final, last_runs, run_line
from bot.github.check import FAILED, Check
from bot.github.comment import Sticky, Superseded, body_budget
from bot.github.escape import inline
from bot.github.repository import GitHub
from bot.ticket import Ticket, is_small_file, read_error
from eval_core.base.config import CONFIG_FILE, Config
from eval_core.base.errors import IncompleteError, UserError
from eval_core.base.files import parse, read_json
from eval_core.comparing.compare import ReportData
from eval_core.domain.case import Case
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Measurement
from eval_core.measuring.options import Job
from eval_core.measuring.session import now
from eval_core.reporting.markdown import render_markdown
from eval_core.reporting.view import make_view
from eval_core.storage.results import SUMMARY

__all__ = [
    "Published",
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
    {"detail", "notes", "summary", "text", "reason", "label", "worst", "flags", "stopped", "extra", "value", "headings"}
)


def read_result(ticket: Ticket, config: Config, root: Path, folder: Path) -> ReportData:
    """Read the measurement and decide anew, with the baseline of this checkout.

    Nothing but the numbers of `summary.json` is believed: verdict, texts and deltas are made here.
    """
    measurement, job, cases = read_measured(ticket, config, root, folder)
    return job.compared(measurement, list(cases))


def read_measured(ticket: Ticket, config: Config, root: Path, folder: Path) -> tuple[Measurement, Job, Sequence[Case]]:
    """Read `summary.json` if it is what this ticket's evaluation could have left, and refuse it otherwise."""
    path = folder / SUMMARY
    if not is_small_file(path, _LARGEST):
        raise UserError("the evaluation left no summary.json that can be read")
    body = read_json(path)
    for where, word in _names(body):
        if not _PLAIN.fullmatch(word) or _ADDRESS.search(word):
            raise UserError(f"summary.json: {where}: {word[:60]!a} is not a plain text; refused")
    measurement = parse(Measurement, body, SUMMARY)
    job = Job(settings=config, root=root, names=tuple(measurement.fixtures), looks=ticket.looks)
    cases = Job(settings=config, root=root).load_cases()
    _check_suite(measurement, cases)
    _check_numbers(measurement, body)
    # The fetched tree is no git checkout and cannot know its commit; the ticket does.
    source = ticket.base_sha if ticket.mode == "baseline" else ticket.sha
    provenance = measurement.provenance.model_copy(update={"source_sha": source, "dirty": False})
    return measurement.model_copy(update={"provenance": provenance, "label": ticket.label}), job, cases


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


def _check_suite(measurement: Measurement, cases: Sequence[Case]) -> None:
    fixtures = {case.fixture.name: case.fixture.digest for case in cases}
    banks = {case.fixture.name: case.bank.digest for case in cases}
    if measurement.fingerprint.fixtures != fixtures or measurement.fingerprint.probes != banks:
        raise UserError("summary.json: measured with other fixtures or probes than those of the base branch; refused")
    types = {case.fixture.name: {probe.id: probe.type for probe in case.bank.probes} for case in cases}
    asked = {(name, probe) for name, runs in measurement.fixtures.items() for run in runs for probe in run.probes}
    known = {(name, probe) for name, probes in types.items() for probe in probes}
    if set(measurement.fixtures) != set(fixtures) or measurement.probe_types != types or asked - known:
        raise UserError("summary.json: holds other fixtures or probes than it says; refused")
    if any(run.fixture != name for name, runs in measurement.fixtures.items() for run in runs):
        raise UserError("summary.json: a run is filed under another fixture; refused")
    numbers = [[run.run for run in runs] for runs in measurement.fixtures.values()]
    if any(len(set(found)) != len(found) or len(found) > _MOST_RUNS for found in numbers):
        raise UserError(f"summary.json: a run is there twice, or there are more than {_MOST_RUNS}; refused")


def _check_numbers(measurement: Measurement, body: Any) -> None:
    records = (record for runs in measurement.fixtures.values() for run in runs for record in run.probes.values())
    scores = (record.result.scores for record in records if isinstance(record.result, Grade))
    if any(set(six) != set(DIMENSIONS) or not all(0 <= value <= 5 for value in six.values()) for six in scores):
        raise UserError("summary.json: a grade is not six scores from 0 to 5; refused")
    if any(abs(number) > _LARGEST_COUNT for number in _numbers(body)):
        raise UserError("summary.json: holds a number that no measurement has; refused")


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
