"""Comparing two stored measurements."""

from __future__ import annotations

from pathlib import Path

from eval_core.baseline import load_baseline
from eval_core.compare.drift import Drift
from eval_core.compare.rejudged import drift_of
from eval_core.compare.sides import comparable_part, make_arm, quarantined
from eval_core.compare.verdict import Options, Verdict, decide
from eval_core.errors import UserError
from eval_core.measurement import Measurement
from eval_core.run.store import read_measurement

__all__ = ["compare_measurements", "load_side"]


def load_side(path: Path) -> Measurement:
    """Read one side of a comparison: a results folder or a baseline file."""
    if path.is_dir():
        return read_measurement(path)
    if not path.exists():
        raise UserError(f"{path}: no such results folder or baseline file")
    return load_baseline(path)[0]


def compare_measurements(
    base: Measurement,
    candidate: Measurement,
    *,
    looks: int = 1,
    drift: Drift | None = None,
    options: Options | None = None,
) -> tuple[Verdict, Measurement]:
    """Decide, and return the verdict with the part of the base that was compared.

    The drift of the judge follows from the answers that the candidate's run has graded again, so that every view of
    the same two measurements comes to the same verdict.
    """
    part, differing = comparable_part(base, candidate)
    banned = quarantined(part, candidate)
    verdict = decide(
        make_arm(part, banned),
        make_arm(candidate, banned),
        differences=differing,
        drift=drift_of(part, candidate) if drift is None else drift,
        options=options,
        looks=looks,
    )
    return verdict, part
