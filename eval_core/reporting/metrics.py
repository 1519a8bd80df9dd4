"""The target metrics, with their targets and red flags, and the tokens a compression saves per task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from eval_core.base.config import TaskConfig
from eval_core.base.numbers import percent, score
from eval_core.domain.compression import ModelUse
from eval_core.domain.grade import PASS_SCORE, Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.domain.rollout import RolloutRecord
from eval_core.statistics.arms import quarantined

_MOST_TURNS = 500

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


def _rollouts(measurement: Measurement) -> list[RolloutRecord]:
    """Return what agents did from these states, where they were asked to finish tasks; the first stage alone."""
    played = measurement.extra.tasks
    return played.of("candidate", stage=1) if played is not None else []


def _task_completion(measurement: Measurement, grades: list[tuple[str, str, Grade]]) -> float | None:
    """Count the tasks that agents finished cleanly, as the full transcript always does; else compare probes with it."""
    if rollouts := _rollouts(measurement):
        return fmean(rollout.clean for rollout in rollouts)
    shares = []
    for fixture, probe, grade in grades:
        controls = measurement.controls.get(fixture)
        control = controls.probes.get(probe) if controls else None
        is_continuation = measurement.probe_types.get(fixture, {}).get(probe) == "continuation"
        if is_continuation and control and control.ceiling and not control.quarantined:
            shares.append(min(grade.overall / control.ceiling, 1.0))
    return _mean(shares)


@dataclass(frozen=True)
class TokenPrices:
    """What tokens cost, in input tokens at full price."""

    cached: float = 0.1
    """Input that a prompt cache holds."""
    output: float = 5.0
    search_input: int = 150
    search_output: int = 60
    """Tokens of one search for something that is gone: what it returns beside the message, and what it takes to ask."""


@dataclass(frozen=True)
class TokensPerTask:
    """What a session costs with and without compression over the turns that follow, in full-price input tokens."""

    turns: float
    uncompressed: float
    retained: float
    """The state, read on every turn: once anew, then from the cache."""
    call: float
    """The compression itself."""
    reread: float
    """Searching for what was lost, reading its messages again and carrying them along."""
    pays_after: int | None
    """Turns after which compressing has paid; None where it never does."""

    @property
    def net(self) -> float:
        """Negative: the compression costs more than it saves."""
        return self.uncompressed - self.retained - self.call - self.reread


def task_cost(
    before: float,
    after: float,
    *,
    turns: float,
    reread_tokens: float,
    searches: float,
    call_tokens: float = 0.0,
    prices: TokenPrices | None = None,
) -> TokensPerTask:
    """Work out one compression: the session kept whole against the compressed one with its re-reads."""
    prices = prices or TokenPrices()

    def parts(count: float) -> tuple[float, float, float]:
        uncompressed = before * prices.cached * count
        retained = after * (1 + prices.cached * (count - 1))
        # A message read again is paid in full once, then carried for half of the turns on average. Each search takes a
        # turn of its own, which reads the state and, on average, half of what was read again.
        carried = reread_tokens * (1 + prices.cached * (count - 1) / 2)
        search = prices.search_input + prices.search_output * prices.output
        return uncompressed, retained, carried + searches * (search + (after + reread_tokens / 2) * prices.cached)

    uncompressed, retained, reread = parts(turns)
    pays = next((count for count in range(1, _MOST_TURNS + 1) if _net(parts(count), call_tokens) > 0), None)
    return TokensPerTask(turns, uncompressed, retained, call_tokens, reread, pays)


def _net(parts: tuple[float, float, float], call: float) -> float:
    return parts[0] - parts[1] - parts[2] - call


def tokens_per_task(
    measurement: Measurement, fixture: str | None = None, task: TaskConfig | None = None
) -> TokensPerTask | None:
    """Estimate the net saving, of one fixture or of all; None where the runs do not tell, or rollouts were measured."""
    if fixture is None and _rollouts(measurement):
        return None
    task = task or TaskConfig()
    prices = TokenPrices(cached=task.cached_price, output=task.output_price)
    runs = [run for run in _ok_runs(measurement) if fixture in (None, run.fixture) and run.refetch_facts is not None]
    if not runs:
        return None
    calls = [run.use.get("compressor", ModelUse()) for run in runs]
    return task_cost(
        fmean(run.tokens_before for run in runs),
        fmean(run.tokens_after for run in runs),
        turns=task.turns or fmean(run.turns_ahead or 1 for run in runs),
        reread_tokens=fmean(run.refetch_tokens for run in runs),
        searches=fmean(run.refetch_facts or 0 for run in runs),
        call_tokens=fmean(use.input_tokens + prices.output * use.output_tokens for use in calls),
        prices=prices,
    )
