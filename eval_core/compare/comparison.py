"""Comparing two stored measurements."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from eval_core.baseline import load_baseline
from eval_core.compare.drift import Drift
from eval_core.compare.finding import Kind
from eval_core.compare.rejudged import drift_of
from eval_core.compare.sides import comparable_part, make_arm, quarantined
from eval_core.compare.verdict import Options, Verdict, decide
from eval_core.compare.wording import listed
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
    return _blamed(verdict, candidate), part


def _blamed(verdict: Verdict, candidate: Measurement) -> Verdict:
    """Say so where an incomplete result is the compressor's own doing, which no resuming can mend.

    Only the class of the failure is named here: its text is the target's, and this sentence is printed as it is.
    """
    runs = [run for records in candidate.fixtures.values() for run in records]
    failed = [run for run in runs if not run.ok and not run.outcome.retryable]
    if verdict.kind is not Kind.INCOMPLETE or not failed:
        return verdict
    kinds = ", ".join(f"{count} x {outcome.value}" for outcome, count in Counter(run.outcome for run in failed).items())
    where = listed(list(dict.fromkeys(run.fixture for run in failed)))
    return verdict.model_copy(
        update={
            "headline": f"Incomplete: the compressor failed in {len(failed)} of {len(runs)} runs ({kinds}): {where}.",
            "next_step": "Look at what is listed as not scored, mend the compressor or its description, and run again.",
        }
    )
