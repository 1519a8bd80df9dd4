"""What the evaluate job left, read as hostile input: it ran a stranger's code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bot.failure import is_small_file
from bot.ticket import Ticket
from eval_core.config import Config
from eval_core.errors import UserError
from eval_core.files import parse, read_json
from eval_core.job import Job
from eval_core.judge.grade import DIMENSIONS, Grade
from eval_core.measurement import Measurement
from eval_core.report.data import ReportData
from eval_core.run.store import SUMMARY
from eval_core.run.suite import Case

__all__ = ["read_measured", "read_result"]

_LARGEST = 64 << 20
_MOST_RUNS = 200
_LARGEST_COUNT = 1e12
# Letters, digits and signs that markdown does not act on; "@" only inside a word, where it mentions nobody.
_PLAIN = re.compile(r"(?:[\w .,;:/()+%$='~{}-]|(?<=\w)@){0,300}")
_ADDRESS = re.compile(r"://|\bwww\.", re.IGNORECASE)
# Texts of sessions and models; whoever shows them makes them harmless.
_FREE = frozenset({"detail", "notes", "summary", "text", "reason", "label", "worst", "flags", "stopped", "extra"})


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
