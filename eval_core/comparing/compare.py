"""Comparing two stored measurements, and the one object that every report is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from eval_core.base.config import AcceptConfig, TaskConfig
from eval_core.base.numbers import counted
from eval_core.comparing.control_runs import control_of, control_shift
from eval_core.comparing.overfitting import BankOverfitting, bank_overfitting
from eval_core.comparing.tested import Options
from eval_core.comparing.unjudged import judgeable
from eval_core.comparing.verdict import decide
from eval_core.domain.case import Case
from eval_core.domain.compression import Outcome
from eval_core.domain.history_line import HistoryLine
from eval_core.domain.measurement import Measurement, comparable_part
from eval_core.statistics.arms import Arm, make_arm, quarantined
from eval_core.strands.acceptance import Offer, accepted_losses, offer, touched_probes, without_accepted
from eval_core.strands.evidence import read_evidence
from eval_core.strands.fact_changes import fact_changes, is_exact
from eval_core.strands.findings import FactChange, Kind, Verdict
from eval_core.strands.form import degenerate_runs, too_many
from eval_core.strands.outcome import broken_fixtures, compare_outcomes

# What every view is made from: one object, so that comment, page, terminal and exit code cannot disagree.

OFFLINE_NOTE = "offline: no model was called, so scores are advisory"
OFFLINE_JUDGE_NOTE = "judged offline: answers and grades are rule-based, so scores are advisory"


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
    history: Sequence[HistoryLine] = ()
    note: str | None = None
    """Why there is no comparison, if there is none."""
    first: bool = False
    """Whether the base has no compressor yet, and this one compressed every session."""
    task: TaskConfig = field(default_factory=TaskConfig)
    """How tokens per task are computed."""
    accept: AcceptConfig = field(default_factory=AcceptConfig)
    """What the verdict was told not to count."""

    @property
    def same_target(self) -> bool:
        """Whether both sides measured the same compressor, so that a difference is a change of it."""
        return self.base is not None and self.base.provenance.target == self.candidate.provenance.target

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before believing any number of this report."""
        found = []
        for name, count in sorted(self.candidate.drafts.items()):
            total = len(self.candidate.probe_types.get(name, {}))
            found.append(
                f"{name}: {count} of {total} probes are drafts that have not been reviewed; their scores say little. "
                f'Correct them, remove "draft" and run `compression-eval probe lint {name}`.'
            )
        if self.base is not None and not self.same_target:
            found.append(
                f"The baseline is of another compressor ({self.base.provenance.target}); this run measured "
                f"{self.candidate.provenance.target}. The verdict compares the two; it does not judge a change. "
                "`compression-eval baseline update` stores a baseline of your own."
            )
        if self.candidate.extra.broken_lines:
            found.append(
                f"{counted(self.candidate.extra.broken_lines, 'line')} of the journal could not be read: the cost "
                "leaves out what was paid there, and calls that are needed were made again."
            )
        if self.overfitting is not None:
            found.append(self.overfitting.words)
        return tuple(found)

    @cached_property
    def overfitting(self) -> BankOverfitting | None:
        """Whether the compressor seems to know the probes, against the baseline where there is one."""
        return bank_overfitting(self.base if self.kind_is_comparable else None, self.candidate)

    @property
    def next_step(self) -> str:
        """One sentence on what to do; a compressor that seems to know the probes is not to be merged for its gain."""
        if self.verdict is None:
            return "Read what it keeps; `compression-eval baseline update` makes it the baseline." if self.first else ""
        if self.verdict.kind is Kind.IMPROVED and self.overfitting is not None:
            return "Do not merge on this verdict alone: read the warning, then try it on sessions of your own."
        return self.verdict.next_step

    @cached_property
    def offer(self) -> Offer | None:
        """What accepts the removal that the verdict found, where it found one."""
        base, verdict = self.base, self.verdict
        if base is None or verdict is None:
            return None
        return offer(verdict, lambda accept: compare_measurements(base, self.candidate, accept=accept)[0], self.accept)

    @property
    def kind_is_comparable(self) -> bool:
        """Whether numbers of the two sides may stand beside each other at all."""
        if self.base is None or self.verdict is None or self.verdict.kind is Kind.NOT_COMPARABLE:
            return False
        return not any(reason.code == "difference" for reason in self.verdict.reasons)


# Comparing two stored measurements.


def compare_measurements(
    base: Measurement,
    candidate: Measurement,
    *,
    options: Options | None = None,
    accept: AcceptConfig | None = None,
) -> tuple[Verdict, Measurement]:
    """Decide, and return the verdict with the part of the base that was compared."""
    part, differing = comparable_part(base, candidate)
    accept = accept or AcceptConfig()
    whole, accepted = part, accepted_losses(_changes(part, candidate), accept) if accept.facts else ()
    touched = touched_probes(candidate, accept)
    part, candidate = without_accepted(part, accept), without_accepted(candidate, accept)
    candidate, stubs = without_stubs(part, candidate)
    banned = quarantined(part, candidate) | touched
    arms = make_arm(part, banned), make_arm(candidate, banned)
    runs = control_of(candidate)
    control = control_shift(arms[0], make_arm(runs, banned)) if runs is not None and not differing else None
    verdict = decide(
        *arms,
        differences=differing,
        shift=None if control is None or control.changed else control.shift,
        control=control,
        recorded=replace(
            judgeable(read_evidence(part, candidate, accept)),
            accepted=accepted,
            stubs=len(stubs),
            runs=len(finished_runs(candidate)),
            stubs_count=bool(stubs) and stubs <= finished_runs(candidate),
        ),
        options=options,
        earlier=candidate.extra.looks,
    )
    if control is not None:
        verdict = verdict.noted(control.note)
    return verdict, whole


def _changes(base: Measurement, candidate: Measurement) -> tuple[FactChange, ...]:
    return fact_changes(base, candidate, exact=is_exact(base) and is_exact(candidate))


def judged_alone(candidate: Measurement) -> Verdict | None:
    """Return the verdict that needs no baseline: a compressor that fails in every run is broken."""
    outcome = compare_outcomes({}, candidate.fixtures)
    if not broken_fixtures(outcome):
        return None
    return decide(Arm("none", {}), Arm(candidate.label, {}), recorded=read_evidence(_nothing(candidate), candidate))


def _nothing(candidate: Measurement) -> Measurement:
    return candidate.model_copy(update={"fixtures": {}})


def finished_runs(measurement: Measurement) -> set[tuple[str, int]]:
    """Return all fixture-runs that the compressor finished."""
    return {(name, run.run) for name, runs in measurement.fixtures.items() for run in runs if run.ok}


def without_stubs(base: Measurement, candidate: Measurement) -> tuple[Measurement, set[tuple[str, int]]]:
    """Turn runs whose summary is a refusal or garbage into what they are: failures of the model, to be run again.

    Where every run is one, or more of them than chance explains, it is the change's doing, and they stay.
    """
    stubs = degenerate_runs(base.fixtures, candidate.fixtures)
    if not stubs or stubs == finished_runs(candidate) or too_many(stubs, base.fixtures, candidate.fixtures):
        return candidate, stubs
    fixtures = {
        name: [
            run.model_copy(
                update={"outcome": Outcome.BAD_COMPLETION, "detail": "the summary is a refusal or a stub", "probes": {}}
            )
            if (name, run.run) in stubs
            else run
            for run in runs
        ]
        for name, runs in candidate.fixtures.items()
    }
    return candidate.model_copy(update={"fixtures": fixtures}), stubs
