"""Structure checks against the baseline's: a broken one is a regression by itself, outside the alpha budget.

A check counts as broken where it passed in every baseline run of a fixture and fails in more than half of the
candidate's, and as mended the other way round. What fails now and then is told apart as shaky and does not decide:
a compressor that writes with a model may stumble once in ten runs without any change to its code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eval_core.compare.arm import Arm

__all__ = ["MAJORITY", "StructureChange", "changes"]

MAJORITY = 0.5
"""Broken needs more than this share of failing runs."""


@dataclass(frozen=True)
class StructureChange:
    """One check of one fixture that no longer behaves as in the baseline."""

    fixture: str
    check: str
    kind: Literal["broken", "mended", "shaky"]
    base_passed: int
    base_runs: int
    candidate_passed: int
    candidate_runs: int

    @property
    def label(self) -> str:
        """How people read it."""
        return f"{self.fixture} / {self.check}"


def _classify(base: list[bool], candidate: list[bool]) -> Literal["broken", "mended", "shaky"] | None:
    failed, failed_before = candidate.count(False) / len(candidate), base.count(False) / len(base)
    if not failed_before and failed > MAJORITY:
        return "broken"
    if not failed and failed_before > MAJORITY:
        return "mended"
    return "shaky" if failed and not failed_before else None


def changes(base: Arm, candidate: Arm) -> tuple[StructureChange, ...]:
    """Return every check that changed, in the baseline's order of fixtures and checks."""
    found = []
    for name, arm in base.fixtures.items():
        other = candidate.fixtures.get(name)
        if other is None:
            continue
        for check in dict.fromkeys(key for run in arm.structure for key in run):
            before = [run[check] for run in arm.structure if check in run]
            now = [run[check] for run in other.structure if check in run]
            kind = _classify(before, now) if now else None
            if kind is not None:
                found.append(
                    StructureChange(name, check, kind, before.count(True), len(before), now.count(True), len(now))
                )
    return tuple(found)
