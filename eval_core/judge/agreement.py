"""Judge against facts: where the two tell different stories, a reader is told."""

from __future__ import annotations

from collections.abc import Mapping

from eval_core.facts import Haystack, holds, states_superseded
from eval_core.probe.schema import Probe

__all__ = ["BOUND", "disagreement", "fact_share"]

BOUND = 0.5


def fact_share(probe: Probe, answer: str) -> tuple[int, int, int]:
    """Count the facts that an answer states, those that it should, and the superseded values it gives as current."""
    text = Haystack.of(answer)
    found = sum(1 for fact in probe.required if holds(fact, text))
    stale = sum(1 for fact in probe.superseded if states_superseded(fact, text))
    return found, len(probe.required), stale


def disagreement(probe: Probe, answer: str, scores: Mapping[str, float]) -> list[str]:
    """Return a flag when the judged accuracy and the share of facts are far apart."""
    found, wanted, stale = fact_share(probe, answer)
    share = found / wanted
    if probe.superseded:
        share *= 1 - stale / len(probe.superseded) / 2
    gap = scores["accuracy"] / 5 - share
    if abs(gap) < BOUND:
        return []
    old = f", {stale} superseded stated as current" if stale else ""
    way = "higher" if gap > 0 else "lower"
    return [f"judge {way} than the facts: accuracy {scores['accuracy']:g} of 5, but {found} of {wanted} facts{old}"]
