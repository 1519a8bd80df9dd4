"""The strands, in the order in which they are shown. All views walk this list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eval_core.strands.calls import calls_strand
from eval_core.strands.evidence import Evidence, Recorded
from eval_core.strands.facts import facts_strand
from eval_core.strands.failure import compare_failure, read_failure
from eval_core.strands.findings import Finding
from eval_core.strands.meaning import record_meaning
from eval_core.strands.next_actions import compare_next_actions
from eval_core.strands.next_turn import compare_next_turn, read_next_turn
from eval_core.strands.obeys import compare_obeys
from eval_core.strands.outcome import outcome_strand
from eval_core.strands.recovery import compare_recovery
from eval_core.strands.rounds import compare_rounds, record_rounds
from eval_core.strands.scores import scores_strand
from eval_core.strands.sets_in import compare_sets_in, read_sets_in
from eval_core.strands.strand import Force, SeenRun, Strand
from eval_core.strands.structure import structure_strand
from eval_core.strands.tasks import compare_tasks
from eval_core.strands.trigger import compare_trigger


def _of_records(read: Callable[[Recorded], Finding | None]) -> Callable[[Evidence], Finding | None]:
    return lambda evidence: None if evidence.recorded is None else read(evidence.recorded)


STRANDS: tuple[Strand, ...] = (
    Strand("outcome", "Compresses", Force.BREAKS, _of_records(lambda item: outcome_strand(item.outcome)), muted_by=()),
    Strand(
        "structure",
        "Structure",
        Force.CERTAIN,
        lambda item: structure_strand(item.structure, item.base, item.candidate),
    ),
    Strand(
        "failure",
        "When its model fails",
        Force.CERTAIN,
        compare_failure,
        record=read_failure,
    ),
    Strand("sets_in", "Starts compressing", Force.CERTAIN, compare_sets_in, record=read_sets_in),
    Strand("next_turn", "Next turn", Force.TOLD, compare_next_turn, record=read_next_turn),
    Strand("window", "Kept verbatim", Force.TOLD, _of_records(lambda item: item.window)),
    Strand("shown", "Shown to its model", Force.WEIGHED, _of_records(lambda item: item.shown), irreparable=True),
    Strand("asks", "Asked of its model", Force.TOLD, _of_records(lambda item: item.asks.strand)),
    Strand(
        "form",
        "Form of the summary",
        Force.CERTAIN,
        _of_records(lambda item: item.form_strand),
        muted_by=("everything", "facts"),
    ),
    Strand(
        "facts",
        "Facts kept",
        Force.WEIGHED,
        lambda item: facts_strand(item.recorded, item.tested.get("facts"), item.culprits, item.rows, item.clear),
        muted_by=("everything", "facts"),
        of_replies=True,
    ),
    Strand(
        "meaning",
        "Meaning",
        Force.CERTAIN,
        _of_records(lambda item: item.meaning.strand),
        muted_by=("everything", "facts"),
        record=record_meaning,
        of_replies=True,
    ),
    Strand(
        "rounds",
        "Over rounds",
        Force.WEIGHED,
        compare_rounds,
        muted_by=("everything", "facts"),
        record=record_rounds,
        of_replies=True,
    ),
    Strand("recovery", "Found again by search", Force.TOLD, compare_recovery, ("everything", "facts")),
    Strand("trigger", "When it compresses", Force.TOLD, compare_trigger),
    Strand("obeys", "Obeys", Force.WEIGHED, compare_obeys, ("everything", "facts")),
    Strand("tasks", "Tasks finished", Force.WEIGHED, compare_tasks, muted_by=("everything",)),
    Strand("next_actions", "Next actions", Force.TOLD, compare_next_actions),
    Strand("size", "Size", Force.GATE, _of_records(lambda item: item.size.strand), muted_by=("everything", "facts")),
    Strand("calls", "Calls of its model", Force.TOLD, _of_records(lambda item: calls_strand(item.sides))),
    Strand(
        "scores",
        "Scores",
        Force.WEIGHED,
        lambda item: scores_strand(item.tested.get("scores"), item.culprits, item.rows, judged=item.judged),
        muted_by=("everything", "facts", "scores"),
    ),
)


def strand_of(name: str) -> Strand | None:
    """Return a strand by its name; None for one of another version of this program."""
    return next((strand for strand in STRANDS if strand.name == name), None)


def title_of(name: str) -> str:
    """Return what readers see as the name of a strand."""
    strand = strand_of(name)
    return name if strand is None else strand.title


def read_strands(seen: SeenRun) -> dict[str, dict[str, Any]]:
    """Return what each strand with a record of its own reads of a compression."""
    found = {strand.name: strand.record(seen) for strand in STRANDS if strand.record is not None}
    return {name: dict(record) for name, record in found.items() if record is not None}
