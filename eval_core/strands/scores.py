"""Scores: what a judge saw in six dimensions; without a judge they decide nothing."""

from __future__ import annotations

from collections.abc import Sequence

from eval_core.base.numbers import (
    counted,
    interval,
    p_value,
    score,
    signed,
)
from eval_core.strands.culprits import TestedFamily
from eval_core.strands.findings import Culprit, Finding, Row, StrandState, weigh


def _moved_scores(moved: Sequence[Culprit], worse: bool) -> str:
    """Say what decided: an average with its interval, or else single probes, or the p of an average beyond facts."""
    dimensions = [item for item in moved if item.kind == "dimension"]
    certain = [item for item in dimensions if (item.ci_low or 0) > 0 or (item.ci_high or 0) < 0]
    if len(dimensions) < len(moved) and not certain:
        return f"{counted(len(moved) - len(dimensions), 'probe')} answered {'worse' if worse else 'better'}"
    first = max(certain or dimensions, key=lambda item: (item.name == "overall", abs(item.delta or 0.0)))
    how = interval(first.ci_low, first.ci_high) if certain else f"(p {p_value(first.p or 0.0)})"
    return f"{first.name.replace('_', ' ')} {signed(first.delta)} {how}"


def scores_strand(
    evidence: TestedFamily | None, culprits: Sequence[Culprit], rows: Sequence[Row], *, judged: bool
) -> Finding:
    """Say what a judge saw; without one the grades are advice and decide nothing."""
    overall = next((row for row in rows if row.name == "overall"), None)
    base, candidate = (score(overall.base), score(overall.candidate)) if overall else ("", "")

    def strand(state: StrandState, says: str = "", loss: float = 0.0, gain: float = 0.0, *details: str) -> Finding:
        return Finding(
            name="scores",
            state=state,
            base=base,
            candidate=candidate,
            says=says,
            details=details,
            loss=loss,
            gain=gain,
        )

    if not judged:
        return strand(StrandState.ADVISORY)
    # Named by their own test, or because they follow from facts that moved for certain.
    moved = [item for item in culprits if item.kind in ("dimension", "probe")]
    if evidence is None or not moved:
        reach = evidence is None or evidence.result.can_reach
        return strand(StrandState.SAME if reach else StrandState.CANNOT_TELL)
    dimensions = [item for item in moved if item.kind == "dimension"]
    units = 1.0 if dimensions else float(max(len(evidence.result.units), 1))
    weights = [(item.direction, abs(item.delta or 0.0) / 5 / units) for item in dimensions or moved]
    loss = sum(weight for direction, weight in weights if direction == "worse")
    gain = sum(weight for direction, weight in weights if direction == "better")
    says = _moved_scores(moved, loss > gain)
    number = max(len(dimensions), 1)
    return strand(weigh(loss, gain), says, loss / number, gain / number)
