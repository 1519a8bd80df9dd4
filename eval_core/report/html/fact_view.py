"""What became of each expected fact over all runs of a side, in one word and one count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eval_core.probe.schema import Probe
from eval_core.report.html.paint import Needle
from eval_core.report.html.text import visible
from eval_core.run.record import FactRecord, ProbeRecord, RunRecord

__all__ = ["FactState", "FactView", "fact_views", "needles"]

Word = Literal["kept", "lost", "not used", "untested", "not measured"]
_SIGNS: dict[Word, str] = {"kept": "✓", "lost": "✗", "not used": "○", "untested": "–", "not measured": "?"}


@dataclass(frozen=True)
class FactState:
    """One side's fate of a fact."""

    word: Word
    detail: str

    @property
    def sign(self) -> str:
        """The mark beside the word, for eyes that do not tell colours apart."""
        return _SIGNS[self.word]

    @property
    def css(self) -> str:
        """The class of the chip."""
        return self.word.replace(" ", "-")


@dataclass(frozen=True)
class FactView:
    """One expected fact and both sides."""

    key: str
    label: str
    base: FactState | None
    candidate: FactState
    evidence: tuple[int, ...]

    @property
    def changed(self) -> bool:
        """Whether the two sides differ."""
        return self.base is not None and self.base != self.candidate


def _of(count: int, total: int) -> str:
    if total == 1:
        return "in the only run"
    return f"in all {total} runs" if count == total else f"in {count} of {total} runs"


def fact_state(records: Sequence[FactRecord]) -> FactState:
    """Sum up one fact: a loss in any run is told before anything else."""
    if not records:
        return FactState("not measured", "")
    runs, lost = len(records), sum(not fact.kept for fact in records)
    if lost:
        return FactState("lost", _of(lost, runs))
    if not any(fact.at_risk for fact in records):
        return FactState("untested", "left verbatim")
    asked = [fact.used for fact in records if fact.used is not None]
    unused = sum(not used for used in asked)
    if unused:
        return FactState("not used", f"by {unused} of {len(asked)} answers")
    return FactState("kept", "used by every answer" if asked else _of(runs, runs))


def _by_label(records: Sequence[tuple[RunRecord, ProbeRecord]]) -> dict[str, list[FactRecord]]:
    found: dict[str, list[FactRecord]] = {}
    for _, record in records:
        for fact in record.facts:
            found.setdefault(fact.label, []).append(fact)
    return found


def fact_views(
    key: str,
    base: Sequence[tuple[RunRecord, ProbeRecord]],
    candidate: Sequence[tuple[RunRecord, ProbeRecord]],
    *,
    compared: bool,
) -> list[FactView]:
    """Return every fact that either side knows, in the bank's order."""
    theirs, ours = _by_label(base), _by_label(candidate)
    views = []
    for number, label in enumerate(dict.fromkeys([*ours, *theirs])):
        known = [*ours.get(label, []), *theirs.get(label, [])]
        views.append(
            FactView(
                key=f"{key}.{number}",
                label=label,
                base=fact_state(theirs.get(label, [])) if compared else None,
                candidate=fact_state(ours.get(label, [])),
                evidence=tuple(known[0].evidence),
            )
        )
    return views


def needles(views: Sequence[FactView], probe: Probe | None) -> list[Needle]:
    """Return what to mark in texts for the facts of a probe."""
    authored = {fact.label: fact for fact in probe.expected_facts} if probe else {}
    found = []
    for view in views:
        title = f"expected fact: {visible(view.label)}"
        fact = authored.get(view.label)
        found.append(Needle.of_fact(view.key, title, fact) if fact else Needle.of_values(view.key, title, [view.label]))
    return found
