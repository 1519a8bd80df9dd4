"""What was planned and is not there: an outage must never look like a regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from eval_core.compare.arm import Arm, FixtureArm
from eval_core.compare.finding import Coverage, Reason
from eval_core.compare.wording import percent

__all__ = ["coverage_of", "gaps"]

Side = Literal["baseline", "candidate"]


def _sides(base: Arm, candidate: Arm) -> tuple[tuple[Side, Arm], tuple[Side, Arm]]:
    return ("baseline", base), ("candidate", candidate)


def coverage_of(base: Arm, candidate: Arm) -> list[Coverage]:
    """Return the measured part of the planned grid, per side and family."""
    found = []
    for side, arm in _sides(base, candidate):
        fixtures = arm.fixtures.values()
        found += [
            Coverage(
                side=side,
                family="scores",
                observed=sum(item.score_cells for item in fixtures),
                planned=sum(item.planned_scores for item in fixtures),
            ),
            Coverage(
                side=side,
                family="facts",
                observed=sum(item.fact_cells for item in fixtures),
                planned=sum(item.planned_facts for item in fixtures),
            ),
        ]
    return found


def _missing_fixtures(side: Side, arm: Arm, other: Arm) -> list[Reason]:
    def reason(text: str) -> Reason:
        return Reason(code="missing", text=text)

    def empty(fixture: FixtureArm) -> list[str]:
        scores = ["scores"] if fixture.planned_scores and not fixture.score_cells else []
        return scores + (["compressions"] if fixture.planned_facts and not fixture.fact_cells else [])

    found = [reason(f"the {side} has no fixture {name}") for name in other.fixtures if name not in arm.fixtures]
    for name, fixture in arm.fixtures.items():
        found += [reason(f"the {side} has no {what} of {name}") for what in empty(fixture)]
    return found


def gaps(base: Arm, candidate: Arm, coverage: Sequence[Coverage], floor: float) -> list[Reason]:
    """Return every reason why the two cannot be judged yet: missing fixtures, then coverage under the floor."""
    if not base.fixtures and not candidate.fixtures:
        return [Reason(code="missing", text="neither side has any fixture")]
    found = [
        reason
        for (side, arm), other in zip(_sides(base, candidate), (candidate, base), strict=True)
        for reason in _missing_fixtures(side, arm, other)
    ]
    found += [
        Reason(
            code="coverage",
            text=f"the {item.side} has {item.observed} of {item.planned} {item.family} cells"
            f" ({percent(item.share)}, floor {percent(floor)})",
        )
        for item in coverage
        if item.share < floor - 1e-9
    ]
    return found
