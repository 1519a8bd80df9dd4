"""Evidence: everything that two sides offer to a strand, read and tested once for all strands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eval_core.base.config import AcceptConfig
from eval_core.base.numbers import counted, counted_range, tokens
from eval_core.domain.extra import PlayedRounds
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.statistics.arms import Arm
from eval_core.statistics.clear_losses import ClearTest
from eval_core.statistics.exact import sign_p
from eval_core.statistics.fates import fates
from eval_core.strands.asks import AsksChange, compare_asks
from eval_core.strands.causes import cause_of
from eval_core.strands.culprits import TestedFamily
from eval_core.strands.fact_changes import FalseValues, fact_changes, false_values, is_exact, same_text
from eval_core.strands.findings import Culprit, FactChange, FalseValue, Family, Finding, Row, StrandState
from eval_core.strands.form import FormChange, compare_form, form_strand, standing_sentences
from eval_core.strands.meaning import MeaningChange, compare_meaning
from eval_core.strands.outcome import OutcomeChange, compare_outcomes
from eval_core.strands.shown import shown_strand
from eval_core.strands.size import SizeChange, size_change
from eval_core.strands.structure import StructureChange
from eval_core.strands.window import window_strand

LEANING_ALPHA = 0.01
"""Of the facts that moved, so many more went down than up only with this chance, if each went its own way."""
_REFUSED = "so short in every run: the model may have refused"


@dataclass(frozen=True)
class Recorded:
    """Everything that the records say without a test of scores."""

    outcome: OutcomeChange
    window: Finding
    shown: Finding
    asks: AsksChange
    form: FormChange
    facts: tuple[FactChange, ...]
    invented: FalseValues
    stale: FalseValues
    size: SizeChange
    asked_facts: int
    """Facts of the sessions that probes ask for, each once."""
    other_facts: int
    """Facts of the sessions that only rules found."""
    exact: bool
    """Every run of a fixture came out the same on both sides: facts are counted, not tested."""
    judged: bool
    """Whether a model judged; without one the grades are advice."""
    cause: str = ""
    """What the facts that are clearly lost have in common, in one clause."""
    stubs: int = 0
    """Runs whose summary is a refusal or garbage."""
    runs: int = 0
    sides: tuple[Measurement, ...] = ()
    """The base and the candidate themselves."""
    accepted: tuple[FactChange, ...] = ()
    """Losses that the configuration accepts; they are in none of the numbers above."""
    stubs_count: bool = False
    """Whether those runs count as the change's doing; otherwise they were left out as the model's failure."""
    stood_in: bool = False
    """Whether the offline stand-in answered the compressor."""
    other_replies: frozenset[str] = frozenset()
    """Fixtures in which it answered the two sides from other text of the session."""
    form_unknown: bool = False
    """Whether that is all of them, so that the form of its summaries says nothing."""
    unjudged_facts: int = 0
    """Facts that moved with the stand-in's choice of lines, which says nothing about the change."""
    model_wrote: bool = False
    """Whether a model wrote the candidate's summaries, which may refuse."""
    meaning: MeaningChange = field(default_factory=MeaningChange)
    """What is said of the lines of the ledgers."""

    @property
    def obeys_asked(self) -> bool:
        """Whether both sides were asked for choices and actions."""
        return bool(self.sides) and all(
            any("obeys" in run.strands for runs in side.fixtures.values() for run in runs) for side in self.sides
        )

    @property
    def played_rounds(self) -> PlayedRounds | None:
        """The runs of both sides of sessions played beside the suite; those of the base may be stored."""
        if not self.sides or (played := self.sides[-1].extra.rounds) is None:
            return None
        stored = self.sides[0].extra.rounds or PlayedRounds(candidate=[])
        base, triggered = played.base or stored.candidate, played.base_triggered or stored.triggered
        known = base or played.base_failed or played.triggered
        return played.model_copy(update={"base": base, "base_triggered": triggered}) if known else None

    @property
    def unfollowed(self) -> bool:
        """Whether there are other instructions, and no model that would follow them."""
        return self.stood_in and (self.asks.changed or self.asks.unknown)

    @property
    def unread(self) -> bool:
        """Whether the agent's model is told something else about the summary, and no model read it."""
        return self.form.other_opening and not (self.judged or self.all_stubs)

    @property
    def all_stubs(self) -> bool:
        """Whether no run has a summary that says anything."""
        return self.stubs_count and self.stubs == self.runs

    @property
    def false_values(self) -> tuple[FalseValue, ...]:
        """Invented and stale values, where there are more of them than chance explains."""
        return tuple(item for found in (self.invented, self.stale) if found.more for item in found.named)

    @property
    def untested(self) -> tuple[str, ...]:
        """What all runs of both sides agree on, and are too few for a test to say: lost facts, then false values."""
        lost = [
            f"lost in all {counted(item.candidate_runs, 'run')}, kept in all {item.base_runs} of the base, "
            f"too few to be tested: {item.name} ({item.fixture})"
            for item in self.facts
            if item.lost_in_all and not item.clear
        ]
        stated = [
            f"in all runs and none of the base, too few to be tested: {item.words}"
            for found in (self.invented, self.stale, self.meaning.misstated)
            if found is not None and not found.more
            for item in found.named
            if item.in_all
        ]
        return *lost, *stated

    @property
    def leaning(self) -> tuple[int, int] | None:
        """How many facts are kept less and more often, where the state shrank and far more are kept less often.

        Facts of one run share its luck, so this is no test of the facts: it keeps a smaller state from being called
        one with the same facts.
        """
        down, up = sum(item.change < 0 for item in self.facts), sum(item.change > 0 for item in self.facts)
        fell = sum(item.change for item in self.facts) < 0
        return (down, up) if self.size.smaller and fell and sign_p(down, up) < LEANING_ALPHA else None

    @property
    def form_strand(self) -> Finding:
        """What the form shows."""
        strand = form_strand(self.form)
        if self.form_unknown and not self.all_stubs:
            return Finding(
                name="form",
                state=StrandState.NOT_JUDGED,
                base=strand.base,
                candidate=strand.candidate,
                details=standing_sentences(self.form),
            )
        if self.stubs_count and not self.all_stubs:
            many = f"{self.stubs} of {self.runs} summaries are {'a refusal or ' if self.model_wrote else ''}a stub"
            update = {"state": StrandState.WORSE, "says": "; ".join(filter(None, [many, strand.says]))}
            return strand.model_copy(update={**update, "loss": max(strand.loss, self.stubs / self.runs)})
        if not self.all_stubs:
            return strand
        before, now = tokens(self.form.base_tokens), tokens(self.form.candidate_tokens)
        fewest, most = self.form.candidate_sections
        sections = f"with {counted_range(fewest, most, 'section')}" if most else "without any of its sections"
        what = "a refusal or a stub" if self.model_wrote else "a stub"
        if self.form.candidate_tokens:
            says = f"every summary is {what}, {now} tokens instead of {before}, {sections}"
        else:
            says = f"no summary is written any more ({before} tokens before)"
        details = (_REFUSED,) if self.model_wrote else ()
        told = {
            "may_be_refusal": self.model_wrote,
            "says": says,
            "details": (*details, *strand.details),
            "loss": 1.0,
            "removed": (),
        }
        return strand.model_copy(update={**told, "code": "all_stubs" if self.form.candidate_tokens else None})


@dataclass(frozen=True)
class Evidence:
    """What every strand is compared from."""

    base: Arm
    candidate: Arm
    recorded: Recorded | None
    """What the records say beside the arrays of the arms; None where only arrays are at hand."""
    structure: tuple[StructureChange, ...] = ()
    tested: Mapping[Family, TestedFamily] = field(default_factory=dict)
    """The tests that decide, where runs vary."""
    culprits: Sequence[Culprit] = ()
    rows: Sequence[Row] = ()
    clear: ClearTest | None = None
    graded_share: float = 1.0
    """The part of alpha that graded runs may spend at this look."""

    @property
    def judged(self) -> bool:
        return self.recorded is None or self.recorded.judged

    @property
    def exact(self) -> bool:
        """Whether facts are counted, because every run of a fixture came out the same."""
        return self.recorded is not None and self.recorded.exact

    def records(self, strand: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return what a strand recorded of each finished run of both sides; runs without a record are left out."""
        sides = self.recorded.sides if self.recorded is not None else ()
        found = [
            [run.strands[strand] for runs in _ok(side).values() for run in runs if strand in run.strands]
            for side in sides
        ]
        return (found[0], found[1]) if found else ([], [])


def _ok(measurement: Measurement) -> dict[str, list[RunRecord]]:
    return {name: found for name, runs in measurement.fixtures.items() if (found := [run for run in runs if run.ok])}


def read_evidence(base: Measurement, candidate: Measurement, accept: AcceptConfig | None = None) -> Recorded:
    """Read every strand that the records hold."""
    accept = accept or AcceptConfig()
    exact = is_exact(base) and is_exact(candidate)
    theirs, ours = _ok(base), _ok(candidate)
    asks = compare_asks(base, candidate)
    unread = asks.sessions if candidate.stood_in else frozenset[str]()
    if candidate.stood_in and asks.unknown:
        unread = frozenset(ours)
    read = {name: runs for name, runs in ours.items() if name not in unread}
    # What the base never compressed is in no comparison, so not among the facts that could be lost either.
    both = [name for name in ours if name in theirs]
    asked = [bool(fate.asked_by) for name in both for fate in fates(candidate, name).values()]
    facts = fact_changes(base, candidate, exact=exact)
    return Recorded(
        outcome=compare_outcomes(base.fixtures, candidate.fixtures),
        window=window_strand(theirs, ours),
        shown=shown_strand(base, candidate, accept),
        asks=asks,
        meaning=compare_meaning(base, candidate, exact=exact, unread=unread),
        # Equal facts do not make the sections equal: these are counted only where all that was written is.
        form=compare_form(
            theirs, read or ours, accept.sections, exact=exact and same_text(base) and same_text(candidate)
        ),
        facts=facts,
        cause=cause_of(facts, base, candidate),
        invented=false_values(base, candidate, "invented", exact=exact),
        stale=false_values(base, candidate, "stale", exact=exact),
        size=size_change(theirs, ours),
        asked_facts=sum(asked),
        other_facts=len(asked) - sum(asked),
        exact=exact,
        judged=candidate.judged,
        sides=(base, candidate),
        stood_in=candidate.stood_in,
        other_replies=unread,
        form_unknown=bool(unread) and not read,
        model_wrote=candidate.model_wrote,
    )
