"""Stored answers that were graded again: what a measurement keeps of them, and the drift that they show."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from eval_core.compare.drift import Cell, Drift, Regraded, check
from eval_core.files import parse
from eval_core.judge.grade import DIMENSIONS, Grade
from eval_core.measurement import Measurement
from eval_core.run.record import ProbeRecord, Record

__all__ = [
    "DRIFT",
    "RejudgedCell",
    "RejudgedSample",
    "answer_key",
    "drift_of",
    "graded_cells",
    "regraded_pairs",
    "sample_of",
]

DRIFT = "drift"
"""The name in a measurement's extra."""


class RejudgedCell(Record):
    """One stored answer of a baseline and its grades of today."""

    fixture: str
    run: int
    probe: str
    answer: str
    """Digest of the answer: another baseline's cell of the same name is another answer."""
    scores: list[float]


class RejudgedSample(Record):
    """The sample that a run graded again."""

    cells: list[RejudgedCell] = []
    unscored: int = 0
    cost_usd: float | None = 0.0


def answer_key(text: str) -> str:
    """Return what identifies an answer."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def graded_cells(measurement: Measurement) -> Iterator[tuple[Cell, ProbeRecord]]:
    """Yield the cells that have both an answer and a grade."""
    for fixture, runs in measurement.fixtures.items():
        for run in runs:
            for probe, record in run.probes.items():
                if record.answer is not None and isinstance(record.result, Grade):
                    yield Cell(fixture, run.run, probe), record


def sample_of(measurement: Measurement) -> RejudgedSample | None:
    """Return the sample that a measurement holds, checked: it may come from an untrusted file."""
    value = measurement.extra.get(DRIFT)
    return None if value is None else parse(RejudgedSample, value, f"{measurement.label}: extra.{DRIFT}")


def regraded_pairs(base: Measurement, candidate: Measurement) -> list[Regraded]:
    """Return the base's answers that the candidate's run graded again, with both grades."""
    sample = sample_of(candidate)
    again = {(cell.fixture, cell.run, cell.probe): cell for cell in sample.cells} if sample else {}
    pairs = []
    for cell, record in graded_cells(base):
        new = again.get((cell.fixture, cell.run, cell.probe))
        assert record.answer is not None
        if new is None or new.answer != answer_key(record.answer.text) or not isinstance(record.result, Grade):
            continue
        old = tuple(record.result.scores[name] for name in DIMENSIONS)
        pairs.append(Regraded(cell, old, tuple(new.scores)))
    return pairs


def drift_of(base: Measurement, candidate: Measurement) -> Drift | None:
    """Test whether the judge of the candidate's run grades the base's answers as they were graded then."""
    return None if sample_of(candidate) is None else check(regraded_pairs(base, candidate))
