"""From measurements to the two arms of a comparison."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from eval_core.compare.arm import Arm, FixtureArm
from eval_core.compare.fingerprint import Difference, Fingerprint, differences
from eval_core.judge.grade import DIMENSIONS, Grade
from eval_core.measurement import Measurement
from eval_core.run.record import RunRecord

__all__ = ["Quarantine", "comparable_part", "make_arm", "narrowed", "quarantined"]

Quarantine = Collection[tuple[str, str]]


def quarantined(*measurements: Measurement) -> set[tuple[str, str]]:
    """Return the (fixture, probe) pairs that the controls of either side have found unfit for scoring."""
    return {
        (fixture, probe)
        for measurement in measurements
        for fixture, controls in measurement.controls.items()
        for probe, control in controls.probes.items()
        if control.quarantined
    }


def narrowed(fingerprint: Fingerprint, names: Collection[str]) -> Fingerprint:
    """Return the part of a fingerprint that concerns some of its fixtures, or all of it if it lacks one."""
    if not set(names) < set(fingerprint.fixtures):
        return fingerprint
    return fingerprint.model_copy(
        update={
            "fixtures": {name: fingerprint.fixtures[name] for name in sorted(names)},
            "probes": {name: fingerprint.probes[name] for name in sorted(names)},
        }
    )


def comparable_part(base: Measurement, candidate: Measurement) -> tuple[Measurement, list[Difference]]:
    """Cut the base down to the candidate's fixtures, if it has them all, and list what still differs."""
    names = set(candidate.fingerprint.fixtures)
    part = narrowed(base.fingerprint, names)
    if part is not base.fingerprint:
        kept = {name: runs for name, runs in base.fixtures.items() if name in names}
        base = base.model_copy(update={"fingerprint": part, "fixtures": kept})
    return base, differences(base.fingerprint, candidate.fingerprint)


def _scores(runs: list[RunRecord], probes: tuple[str, ...], banned: Collection[str]) -> np.ndarray:
    cells = np.full((len(runs), len(probes), len(DIMENSIONS)), np.nan)
    for row, run in enumerate(runs):
        for column, probe in enumerate(probes):
            record = run.probes.get(probe)
            if record is not None and isinstance(record.result, Grade) and probe not in banned:
                cells[row, column] = [record.result.scores[name] for name in DIMENSIONS]
    return cells


def _fixture_arm(
    runs: list[RunRecord], probes: tuple[str, ...], planned: tuple[int, int], banned: Collection[str]
) -> FixtureArm:
    graded = [run for run in runs if run.graded]
    ordered = graded + [run for run in runs if not run.graded]
    kinds = tuple(sorted({kind for run in ordered for kind in run.census.total}))
    facts = np.full((len(ordered), len(probes)), np.nan)
    census = np.full((len(ordered), len(kinds)), np.nan)
    weights = np.zeros((len(ordered), len(kinds)))
    for row, run in enumerate(ordered):
        for column, probe in enumerate(probes):
            if probe in run.probes:
                facts[row, column] = run.probes[probe].retention
        for column, kind in enumerate(kinds):
            if total := run.census.total.get(kind, 0):
                census[row, column] = 1 - run.census.lost.get(kind, 0) / total
                weights[row, column] = total
    return FixtureArm(
        probes=probes,
        scores=_scores(graded, probes, banned),
        facts=facts,
        census_kinds=kinds,
        census=census,
        census_weights=weights,
        structure=tuple(dict(run.structure) for run in ordered),
        planned_scores=planned[0] * (len(probes) - len(set(banned) & set(probes))),
        planned_facts=planned[1] * len(probes),
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
            )
            for name, runs in measurement.fixtures.items()
        },
    )
