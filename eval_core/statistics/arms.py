"""The two arms of a comparison as arrays, with NaN where nothing was measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eval_core.base.errors import UserError
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.statistics.fates import fates

# One side of a comparison: what was measured, as plain arrays, with NaN where there is nothing.

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FixtureArm:
    """All runs of one fixture. The first rows of the fact arrays are the graded runs, the rest compress-only."""

    probes: tuple[str, ...]
    scores: Array
    """[graded runs, probes, dimensions], 0 to 5; a missing cell is NaN in all six."""
    facts: Array
    """[fact runs, probes], the share kept of the probe's facts at risk; NaN where none was, or the run is missing."""
    census_kinds: tuple[str, ...]
    census: Array
    """[fact runs, kinds], the share kept of each kind of census fact; NaN where nothing of the kind was at risk."""
    census_weights: Array
    """[fact runs, kinds], how many census facts were at risk."""
    structure: tuple[dict[str, bool], ...]
    """Per fact run: the named structure checks; empty where the run is missing."""
    planned_scores: int
    """Score cells planned: graded runs x probes. 0 where no grading was planned."""
    planned_facts: int
    """Fact cells planned: fact runs x probes, whether or not a probe had anything at risk."""
    kept: Mapping[str, Array] = field(default_factory=dict)
    """Each single fact, expected or of the census: [fact runs], 1 kept, 0 lost; NaN where the run is missing."""
    tokens: Array | None = None
    """[fact runs]: the retained tokens; NaN where the run is missing."""

    @property
    def score_cells(self) -> int:
        """Count the graded cells."""
        return int(np.isfinite(self.scores).all(axis=2).sum())

    @property
    def happened(self) -> NDArray[np.bool_]:
        """Tell for each fact run whether its compression took place at all.

        A fact that was not at risk leaves a NaN as a lost run does; the structure checks tell the two apart.
        """
        measured = np.isfinite(self.facts).any(axis=1) | np.isfinite(self.census).any(axis=1)
        return measured | np.array([bool(checks) for checks in self.structure], dtype=bool)

    @property
    def fact_cells(self) -> int:
        """Count the fact cells of the runs that took place."""
        return int(self.happened.sum()) * len(self.probes)


@dataclass(frozen=True)
class Arm:
    """One side: the baseline, or the candidate."""

    label: str
    fixtures: dict[str, FixtureArm]


_MOST_FACTS = 2**53
"""Whole numbers that a float can tell apart."""


def _refuse(where: str, problem: str) -> None:
    raise UserError(f"{where}: {problem}; measure this run again or remove it from the results")


def _check_shape(where: str, name: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    fits = array.ndim == len(shape) and all(
        want is None or got == want for got, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = " x ".join("runs" if size is None else str(size) for size in shape)
        _refuse(where, f"{name} has the shape {array.shape}, expected {wanted}")


def _check_range(where: str, name: str, array: Array, names: tuple[str, ...], low: float, high: float) -> None:
    bad = ~np.isnan(array) & ~((array >= low) & (array <= high))
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        limits = f"{low:g} to {high:g}" if np.isfinite(high) else f"at least {low:g}"
        _refuse(f"{where} / {names[first[1]]}, run {first[0] + 1}", f"{name} is {array[first]}, expected {limits}")


def _check_fixture(label: str, name: str, arm: FixtureArm) -> None:
    where = f"{label}: {name}"
    for kind, names in (("probe", arm.probes), ("census kind", arm.census_kinds)):
        twice = sorted({item for item in names if names.count(item) > 1})
        if twice:
            _refuse(where, f"the {kind} {twice[0]!r} appears twice")
    runs = len(arm.structure)
    kinds = len(arm.census_kinds)
    _check_shape(where, "scores", arm.scores, (None, len(arm.probes), len(DIMENSIONS)))
    _check_shape(where, "facts", arm.facts, (runs, len(arm.probes)))
    _check_shape(where, "census", arm.census, (runs, kinds))
    _check_shape(where, "census_weights", arm.census_weights, (runs, kinds))
    _check_range(where, "a score", arm.scores, arm.probes, 0.0, 5.0)
    _check_range(where, "the share of facts kept", arm.facts, arm.probes, 0.0, 1.0)
    _check_range(where, "the share of census facts kept", arm.census, arm.census_kinds, 0.0, 1.0)
    _check_range(where, "the number of census facts", arm.census_weights, arm.census_kinds, 0.0, np.inf)
    for fact, values in arm.kept.items():
        _check_shape(where, f"the fact {fact!r}", values, (runs,))
    if arm.tokens is not None:
        _check_shape(where, "tokens", arm.tokens, (runs,))
        _check_range(where, "the number of tokens", arm.tokens[:, None], ("retained",), 0.0, np.inf)
    finite = np.isfinite(arm.scores)
    partial = finite.any(axis=2) & ~finite.all(axis=2)
    if partial.any():
        run, probe = (int(i) for i in np.argwhere(partial)[0])
        _refuse(f"{where} / {arm.probes[probe]}, run {run + 1}", "some dimensions are scored and others not (NaN)")
    for what, seen, planned in (
        ("score", arm.score_cells, arm.planned_scores),
        ("fact", arm.fact_cells, arm.planned_facts),
    ):
        if planned < seen:
            _refuse(where, f"{seen} {what} cells were measured but only {planned} planned")


def validate(arm: Arm) -> None:
    """Refuse an arm whose arrays do not fit together or hold impossible values, naming fixture and probe."""
    for name, fixture in arm.fixtures.items():
        _check_fixture(arm.label, name, fixture)


# From measurements to the two arms of a comparison.

Quarantine = Collection[tuple[str, str]]


ANSWERED = 3.0
"""A probe that scores this in any run can be answered, whatever the full transcript led the answerer to."""


def _answered(measurement: Measurement, fixture: str, probe: str) -> bool:
    records = (run.probes.get(probe) for run in measurement.fixtures.get(fixture, []))
    return any(
        item is not None and isinstance(item.result, Grade) and item.result.overall >= ANSWERED for item in records
    )


def quarantined(*measurements: Measurement) -> set[tuple[str, str]]:
    """Return the (fixture, probe) pairs that are unfit for scoring: by their controls, and answered by no side."""
    return {
        (fixture, probe)
        for measurement in measurements
        for fixture, controls in measurement.controls.items()
        for probe, control in controls.probes.items()
        if control.quarantined
        and not (
            control.ceiling_facts
            and (control.floor or 0.0) < ANSWERED
            and any(_answered(other, fixture, probe) for other in measurements)
        )
    }


def _scores(runs: list[RunRecord], probes: tuple[str, ...], banned: Collection[str]) -> np.ndarray:
    cells = np.full((len(runs), len(probes), len(DIMENSIONS)), np.nan)
    for row, run in enumerate(runs):
        for column, probe in enumerate(probes):
            record = run.probes.get(probe)
            if record is not None and isinstance(record.result, Grade) and probe not in banned:
                cells[row, column] = [record.result.scores[name] for name in DIMENSIONS]
    return cells


def _failed(runs: list[RunRecord]) -> int:
    """Count the runs that the compressor failed: that is a finding about it, not something still to be measured."""
    return sum(not run.ok and not run.outcome.retryable for run in runs)


def _kept(runs: Sequence[RunRecord], fixture: str, measurement: Measurement) -> dict[str, Array]:
    """Return for each fact that every run recorded whether the runs kept it."""
    rows = [row for row, run in enumerate(runs) if run.ok]
    found = {}
    for key, fate in fates(measurement.model_copy(update={"fixtures": {fixture: runs}}), fixture).items():
        if len(fate.kept) == len(rows):
            found[key] = np.full(len(runs), np.nan)
            found[key][rows] = fate.kept
    return found


def _fixture_arm(
    runs: list[RunRecord],
    probes: tuple[str, ...],
    planned: tuple[int, int],
    banned: Collection[str],
    kept: Callable[[Sequence[RunRecord]], dict[str, Array]],
) -> FixtureArm:
    graded = [run for run in runs if run.graded]
    ordered = graded + [run for run in runs if not run.graded]
    kinds = tuple(sorted({kind for run in ordered for kind in run.census.total}))
    facts = np.full((len(ordered), len(probes)), np.nan)
    census = np.full((len(ordered), len(kinds)), np.nan)
    weights = np.zeros((len(ordered), len(kinds)))
    for row, run in enumerate(ordered):
        if not run.ok:
            continue
        for column, probe in enumerate(probes):
            if probe in run.probes:
                facts[row, column] = run.probes[probe].retention
        for column, kind in enumerate(kinds):
            if total := run.census.total.get(kind, 0):
                lost = run.census.lost.get(kind, 0)
                if not 0 <= lost <= total < _MOST_FACTS:
                    _refuse(f"{run.fixture} / {kind}, run {row + 1}", "the census has lost more facts than it found")
                census[row, column] = 1 - lost / total
                weights[row, column] = total
    return FixtureArm(
        probes=probes,
        scores=_scores(graded, probes, banned),
        facts=facts,
        census_kinds=kinds,
        census=census,
        census_weights=weights,
        structure=tuple(dict(run.structure) if run.ok else {} for run in ordered),
        planned_scores=(planned[0] - _failed(graded)) * (len(probes) - len(set(banned) & set(probes))),
        planned_facts=(planned[1] - _failed(ordered)) * len(probes),
        kept=kept(ordered),
        tokens=np.array([run.tokens_after if run.ok else np.nan for run in ordered], dtype=np.float64),
    )


def make_arm(measurement: Measurement, banned: Quarantine = ()) -> Arm:
    """Turn a measurement into arrays; quarantined probes are not scored, but their facts still count."""
    planned = (measurement.planned_runs, max(measurement.planned_runs, measurement.planned_compress_runs))
    return Arm(
        label=measurement.label,
        fixtures={
            name: _fixture_arm(
                sorted(runs, key=lambda run: run.run),
                tuple(measurement.probe_types.get(name, {})),
                planned,
                {probe for fixture, probe in banned if fixture == name},
                partial(_kept, fixture=name, measurement=measurement),
            )
            for name, runs in measurement.fixtures.items()
        },
    )
