"""The target metrics, with their targets and red flags, and the tokens a compression saves per task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from eval_core.base.numbers import percent, score
from eval_core.comparing.arms import quarantined
from eval_core.domain.grade import PASS_SCORE, Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord

__all__ = ["Metric", "TokensPerTask", "target_metrics", "tokens_per_task"]

Status = Literal["on target", "off target", "red flag", "not measured"]


@dataclass(frozen=True)
class Metric:
    """One measured value beside what is hoped for."""

    name: str
    value: str
    target: str
    red_flag: str
    status: Status


def _ok_runs(measurement: Measurement) -> Iterator[RunRecord]:
    for runs in measurement.fixtures.values():
        yield from (run for run in runs if run.ok)


def _grades(runs: Iterable[RunRecord]) -> Iterator[tuple[str, str, Grade]]:
    for run in runs:
        for probe, record in run.probes.items():
            if isinstance(record.result, Grade):
                yield run.fixture, probe, record.result


def _judged(value: float | None, good: bool, bad: bool) -> Status:
    if value is None:
        return "not measured"
    return "red flag" if bad else "on target" if good else "off target"


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return fmean(numbers) if numbers else None


def target_metrics(measurement: Measurement) -> list[Metric]:
    """Measure pass rate, compression ratio, task completion and latency."""
    runs, banned = list(_ok_runs(measurement)), quarantined(measurement)
    grades = [item for item in _grades(runs) if item[:2] not in banned]
    passed = _mean(float(grade.overall >= PASS_SCORE) for _, _, grade in grades)
    ratio = _mean(1 - run.tokens_after / run.tokens_before for run in runs if run.tokens_before)
    seconds = _mean(run.seconds for run in runs)
    completion = _task_completion(measurement, grades)
    return [
        Metric(
            "Probe pass rate",
            percent(passed),
            "> 90 %",
            "< 70 %",
            _judged(passed, (passed or 0) > 0.9, (passed or 0) < 0.7),
        ),
        Metric(
            "Compression ratio",
            percent(ratio),
            "60-80 %",
            "> 95 %",
            _judged(ratio, 0.6 <= (ratio or 0) <= 0.8, (ratio or 0) > 0.95),
        ),
        Metric(
            "Task completion",
            "unknown" if completion is None else f"{percent(completion)} of uncompressed",
            "same as uncompressed",
            "degraded",
            _judged(completion, (completion or 0) >= 0.95, (completion or 0) < 0.8),
        ),
        Metric(
            "Latency overhead",
            "unknown" if seconds is None else f"{score(seconds)} s",
            "< 2 s",
            "> 5 s",
            _judged(seconds, (seconds or 0) < 2, (seconds or 0) > 5),
        ),
    ]


def _task_completion(measurement: Measurement, grades: list[tuple[str, str, Grade]]) -> float | None:
    """Compare continuation probes with what the full transcript scores on them."""
    shares = []
    for fixture, probe, grade in grades:
        controls = measurement.controls.get(fixture)
        control = controls.probes.get(probe) if controls else None
        is_continuation = measurement.probe_types.get(fixture, {}).get(probe) == "continuation"
        if is_continuation and control and control.ceiling and not control.quarantined:
            shares.append(min(grade.overall / control.ceiling, 1.0))
    return _mean(shares)


@dataclass(frozen=True)
class TokensPerTask:
    """What a compression saved, and what must be read again for what it lost; means over fixture-runs."""

    removed: float
    refetched: float

    @property
    def net(self) -> float:
        """Negative: the compression cost more than it saved."""
        return self.removed - self.refetched


def tokens_per_task(measurement: Measurement, fixture: str | None = None) -> TokensPerTask | None:
    """Measure the net saving, of one fixture or of all."""
    runs = [run for run in _ok_runs(measurement) if fixture in (None, run.fixture)]
    if not runs:
        return None
    return TokensPerTask(
        removed=fmean(run.tokens_before - run.tokens_after for run in runs),
        refetched=fmean(run.refetch_tokens for run in runs),
    )
