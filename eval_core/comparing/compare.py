"""Comparing two stored measurements, and the one object that every report is made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_core.base.numbers import listed, signed
from eval_core.comparing.arms import make_arm, quarantined
from eval_core.comparing.day import control_of, day_of, without_scores
from eval_core.comparing.drift import Drift, drift_of, shift_of
from eval_core.comparing.findings import Kind, Verdict
from eval_core.comparing.looks import earlier_looks
from eval_core.comparing.verdict import Options, decide
from eval_core.domain.case import Case
from eval_core.domain.measurement import Measurement, comparable_part

__all__ = [
    "OFFLINE_NOTE",
    "ReportData",
    "compare_measurements",
]

# What every view is made from: one object, so that comment, page, terminal and exit code cannot disagree.

OFFLINE_NOTE = "offline, deterministic: no model judged this"


@dataclass(frozen=True)
class ReportData:
    """A measurement, what it was compared with and what came of it."""

    candidate: Measurement
    """In memory its records hold the compressed messages; read back from `summary.json` they do not."""
    base: Measurement | None = None
    verdict: Verdict | None = None
    base_path: str | None = None
    cases: Mapping[str, Case] = field(default_factory=dict)
    """Fixtures and banks by name, where they are at hand; they hold the questions and the transcript."""
    history: Sequence[dict[str, Any]] = ()
    note: str | None = None
    """Why there is no comparison, if there is none."""

    @property
    def kind_is_comparable(self) -> bool:
        """Whether numbers of the two sides may stand beside each other at all."""
        return self.base is not None and self.verdict is not None and self.verdict.kind is not Kind.NOT_COMPARABLE


# Comparing two stored measurements.


def compare_measurements(
    base: Measurement,
    candidate: Measurement,
    *,
    drift: Drift | None = None,
    options: Options | None = None,
) -> tuple[Verdict, Measurement]:
    """Decide, and return the verdict with the part of the base that was compared.

    The drift of the judge follows from the answers that the candidate's run has graded again, so that every view of
    the same two measurements comes to the same verdict.
    """
    part, differing = comparable_part(base, candidate)
    banned = quarantined(part, candidate)
    arms = make_arm(part, banned), make_arm(candidate, banned)
    control = control_of(candidate)
    day = day_of(arms[0], make_arm(control, banned)) if control is not None and not differing else None
    if day is not None and day.changed:
        arms = without_scores(arms[0]), without_scores(arms[1])
    moved = drift_of(part, candidate) if drift is None else drift
    corrected = moved if moved is not None and moved.fired and moved.small else None
    shift = None if day is None or day.changed else day.shift
    verdict = decide(
        *arms,
        differences=differing,
        # The control was graded by the judge of today too: what it shows holds the judge's shift.
        shift=shift_of(corrected) if corrected is not None and shift is None else shift,
        drift=None if corrected is not None else moved,
        options=options,
        earlier=earlier_looks(candidate.extra, candidate.label),
    )
    if corrected is not None:
        name, points = corrected.largest
        note = f"The judge has moved {name} by {signed(points)} since the baseline; that is taken off the scores."
        verdict = verdict.model_copy(update={"notes": (*verdict.notes, note)})
    if day is not None:
        verdict = verdict.model_copy(update={"notes": (*verdict.notes, day.note)})
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
