"""Gaps: what was planned and is not there, and what was measured differently: neither may look like a regression."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from eval_core.base.numbers import listed, percent
from eval_core.comparing.control_runs import ControlShift
from eval_core.domain.fingerprint import Difference
from eval_core.statistics.arms import Arm, FixtureArm
from eval_core.strands.findings import (
    Coverage,
    Finding,
    Reason,
    StrandState,
)

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
    def reason(text: str, what: str) -> Reason:
        return Reason(code="missing", text=text, mutes="scores" if what == "scores" else "everything")

    def empty(fixture: FixtureArm) -> str | None:
        if fixture.planned_facts and not fixture.fact_cells:
            return "finished compression"
        return "scores" if fixture.planned_scores and not fixture.score_cells else None

    absent: dict[str, list[str]] = {}
    for name in other.fixtures:
        what = empty(arm.fixtures[name]) if name in arm.fixtures else "fixture"
        if what is not None:
            absent.setdefault(what, []).append(name)
    return [
        reason(
            f"the {side} has no fixture {listed(names)}"
            if what == "fixture"
            else f"the {side} has no {what} of {listed(names)}",
            what,
        )
        for what, names in absent.items()
    ]


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
            mutes="scores" if item.family == "scores" else "everything",
            text=f"only {percent(item.share)} of the {item.side}'s planned "
            f"{'grades' if item.family == 'scores' else 'compressions'} are there, {percent(floor)} are needed",
        )
        for item in coverage
        if item.share < floor - 1e-9
    ]
    return found


_MUTED_BY: dict[str, Literal["facts", "scores"]] = {
    "judge_model": "scores",
    "rubric": "scores",
    "answer_model": "scores",
    "answer_template": "scores",
    "compressor_model": "facts",
}
"""What a differing field of the fingerprint keeps from being compared; any other field forbids everything."""


def incomparable_of(differences: Iterable[tuple[str, str, str]], control: ControlShift | None) -> list[Reason]:
    reasons = [
        Reason(
            code="difference",
            mutes=_MUTED_BY.get(item.field.partition(".")[0], "everything"),
            text=f"{item.field} differs ({item.base} → {item.candidate})",
            field=item.field,
            base=item.base,
            candidate=item.candidate,
        )
        for item in (Difference(*difference) for difference in differences)
    ]
    if control is not None and control.changed:
        reasons.append(Reason(code="models", text=control.says, mutes="scores"))
    return reasons


def muted(strand: Finding, reasons: Sequence[Reason], levels: Sequence[str]) -> Finding:
    """Return the strand, or that it cannot be compared or is not complete, with the reason."""
    reason = next((item for item in reasons if item.mutes in levels), None)
    if reason is None:
        return strand
    missing = reason.code in ("missing", "coverage")
    state = StrandState.INCOMPLETE if missing else StrandState.NOT_COMPARABLE
    return Finding(name=strand.name, state=state, details=(reason.text,))
