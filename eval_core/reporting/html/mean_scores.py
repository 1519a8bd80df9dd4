"""Mean scores by probe for each side, and the cells of the heat map."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from eval_core.base.numbers import percent, pp, score, signed
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import ProbeRecord, RunRecord
from eval_core.statistics.arms import quarantined

# Means over runs, probe by probe, for one side.

OVERALL = "overall"


def mean(values: Iterable[float]) -> float | None:
    """Return the mean; nothing has none."""
    numbers = list(values)
    return fmean(numbers) if numbers else None


def probe_records(measurement: Measurement | None, fixture: str, probe: str) -> list[tuple[RunRecord, ProbeRecord]]:
    """Return what all runs say of one probe, in the order of runs."""
    if measurement is None:
        return []
    runs = sorted(measurement.fixtures.get(fixture, []), key=lambda run: run.run)
    return [(run, run.probes[probe]) for run in runs if probe in run.probes]


def probe_means(records: Iterable[tuple[RunRecord, ProbeRecord]]) -> dict[str, float]:
    """Return the mean score of each dimension and overall; empty where nothing was graded."""
    grades = [record.result for _, record in records if isinstance(record.result, Grade)]
    if not grades:
        return {}
    means = {name: fmean(grade.scores[name] for grade in grades) for name in DIMENSIONS}
    return {**means, OVERALL: fmean(grade.overall for grade in grades)}


def retention(records: Iterable[tuple[RunRecord, ProbeRecord]]) -> float | None:
    """Return the share of expected facts that is still there, over all runs."""
    return mean(record.retention for _, record in records if record.facts and record.in_session)


@dataclass(frozen=True)
class SideMean:
    """One side's mean, and the lowest and highest single run."""

    value: float
    low: float
    high: float


def _run_scores(run: RunRecord, banned: set[tuple[str, str]]) -> dict[str, float]:
    kept = [(run, record) for probe, record in run.probes.items() if (run.fixture, probe) not in banned]
    return probe_means(kept)


def _run_facts(run: RunRecord) -> dict[str, float]:
    shares = {"authored facts": retention((run, record) for record in run.probes.values())}
    total = sum(run.census.total.values())
    shares["census"] = 1 - sum(run.census.lost.values()) / total if total else None
    return {name: share for name, share in shares.items() if share is not None}


def side_means(measurement: Measurement) -> dict[str, SideMean]:
    """Return mean and spread of every row of the table: fixtures weigh the same, a run goes over all of them."""
    banned = quarantined(measurement)
    by_name: dict[str, dict[str, dict[int, float]]] = {}
    for fixture, runs in measurement.fixtures.items():
        for run in runs:
            if run.ok:
                for name, value in {**_run_scores(run, banned), **_run_facts(run)}.items():
                    by_name.setdefault(name, {}).setdefault(fixture, {})[run.run] = value
    found = {}
    for name, fixtures in by_name.items():
        # A run that lacks a fixture is no lower or higher run, only a shorter one.
        numbers = set.intersection(*(set(runs) for runs in fixtures.values()))
        spread = [fmean(runs[number] for runs in fixtures.values()) for number in numbers]
        whole = fmean(fmean(runs.values()) for runs in fixtures.values())
        found[name] = SideMean(whole, min([*spread, whole]), max([*spread, whole]))
    return found


# Cells of the heat map: a score, its change, and how strongly to colour it.

FACTS = "facts"
COLUMNS = {
    OVERALL: "Overall",
    "accuracy": "Accuracy",
    "context_awareness": "Context",
    "artifact_trail": "Artifacts",
    "completeness": "Complete",
    "continuity": "Continuity",
    "instruction_following": "Instructions",
    FACTS: "Facts kept",
}
_STEPS = (0.01, 0.1, 0.3, 0.6)
"""Shares of the scale at which the colour gets one step stronger."""


@dataclass(frozen=True)
class HeatCell:
    """One probe in one dimension."""

    column: str
    value: str
    delta: str
    css: str
    """worse-1 to worse-4, better-1 to better-4, level, plain (no comparison) or none (not scored)."""
    sign: str = ""


def _cell(column: str, base: float | None, candidate: float | None, compared: bool) -> HeatCell:
    shares = column == FACTS
    top = 1.0 if shares else 5.0
    if candidate is None:
        return HeatCell(column, "–", "", "none")
    value = percent(candidate) if shares else score(candidate)
    if not compared or base is None:
        return HeatCell(column, value, "", "plain")
    delta = candidate - base
    strength = sum(abs(delta) / top >= step - 1e-9 for step in _STEPS)
    words = pp(delta, sign=True) if shares else signed(delta)
    if not strength:
        return HeatCell(column, value, "±0" if abs(delta) < 1e-9 else words, "level", "=")
    way, sign = ("worse", "▼") if delta < 0 else ("better", "▲")
    return HeatCell(column, value, words, f"{way}-{strength}", sign)


def cells(
    base: dict[str, float],
    candidate: dict[str, float],
    facts: tuple[float | None, float | None],
    *,
    compared: bool,
) -> list[HeatCell]:
    """Return the row of one probe: overall, the six dimensions, facts."""
    names = (OVERALL, *DIMENSIONS)
    row = [_cell(name, base.get(name), candidate.get(name), compared) for name in names]
    return [*row, _cell(FACTS, facts[0], facts[1], compared)]
