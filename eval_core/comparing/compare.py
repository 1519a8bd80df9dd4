"""Comparing two stored measurements, and the one object that every report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_core.comparing.arms import Arm, make_arm, quarantined
from eval_core.comparing.drift import Drift, drift_of
from eval_core.comparing.findings import Kind, Verdict
from eval_core.comparing.outcome import broken_fixtures, compare_outcomes
from eval_core.comparing.verdict import Options, decide
from eval_core.domain.case import Case
from eval_core.domain.measurement import Measurement, comparable_part

__all__ = [
    "OFFLINE_NOTE",
    "ReportData",
    "compare_measurements",
    "judged_alone",
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
        outcome=compare_outcomes(part.fixtures, candidate.fixtures),
        options=options,
        looks=looks,
    )
    return verdict, part


def judged_alone(candidate: Measurement) -> Verdict | None:
    """Return the verdict that needs no baseline: a compressor that fails in every run is broken."""
    outcome = compare_outcomes({}, candidate.fixtures)
    if not broken_fixtures(outcome):
        return None
    return decide(Arm("none", {}), Arm(candidate.label, {}), outcome=outcome)
