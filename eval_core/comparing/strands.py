"""The strands that come from the records alone: window, shown, facts by name, and size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from eval_core.base.config import AcceptConfig
from eval_core.base.numbers import counted, counted_range, p_value, percent, tokens
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord, WindowRecord
from eval_core.statistics.exact import sign_p
from eval_core.statistics.fates import fates
from eval_core.strands.asks import AsksChange, compare_asks
from eval_core.strands.causes import cause_of
from eval_core.strands.fact_changes import FalseValues, fact_changes, false_values, is_exact, same_text
from eval_core.strands.findings import FactChange, FalseValue, Strand, StrandState
from eval_core.strands.form import FormChange, compare_form, form_strand
from eval_core.strands.outcome import OutcomeChange, compare_outcomes
from eval_core.strands.shown import shown_strand

__all__ = ["GROWTH", "LIFT", "Recorded", "SizeChange", "read_evidence"]

GROWTH = 0.05
"""A state that is larger or smaller by more than this is another size, if that is more than runs vary."""
LEANING_ALPHA = 0.01
"""Of the facts that moved, so many more went down than up only with this chance, if each went its own way."""
UNUSABLE = 0.02
"""The reference compressors' own lists of loose words hold 0.016 of all facts."""
LIFT = 0.03
"""Facts gained beside a larger state count as a gain only if the lift over recency rises by this."""


_REFUSED = "so short in every run: the model may have refused"


@dataclass(frozen=True)
class SizeChange:
    """What the two sides retain."""

    recorded: bool
    base_tokens: float
    candidate_tokens: float
    """Mean over fixtures of the mean over runs."""
    base_kept: float = 0.0
    candidate_kept: float = 0.0
    """Share of all facts of the sessions that the state holds, verbatim or not."""
    base_lift: float = 0.0
    candidate_lift: float = 0.0
    """That share less the share which the newest messages of the same size hold."""
    bare: float = 0.0
    """The share of all facts that the candidate, and not the base, holds only where no sentence carries them."""
    fixtures: tuple[tuple[str, float, float], ...] = ()
    p: float | None = None
    """The chance of such a difference if nothing changed; None where the sizes were counted."""
    alpha: float = 0.0

    @property
    def ratio(self) -> float:
        """Candidate tokens over base tokens."""
        return self.candidate_tokens / self.base_tokens if self.base_tokens else 1.0

    @property
    def larger(self) -> bool:
        """Whether the state grew, by enough to matter and by more than runs vary."""
        return self.ratio > 1 + GROWTH and self._sure

    @property
    def smaller(self) -> bool:
        """Whether the state shrank, by enough to matter and by more than runs vary."""
        return self.ratio < 1 - GROWTH and self._sure

    @property
    def _sure(self) -> bool:
        return self.p is None or self.p <= self.alpha

    @property
    def bought(self) -> bool:
        """Whether what was gained came with the size: it grew, and the lift over recency did not."""
        return self.larger and (not self.recorded or self.candidate_lift - self.base_lift < LIFT)

    @property
    def unusable(self) -> bool:
        """Whether most of what was gained stands where no sentence carries it."""
        return self.bare >= UNUSABLE and self.bare * 2 >= self.candidate_kept - self.base_kept

    @property
    def strand(self) -> Strand:
        """Say what the size shows; a size alone is neither good nor bad."""
        state = StrandState.CHANGED if self.larger or self.smaller else StrandState.SAME
        if abs(self.ratio - 1) > GROWTH and state is StrandState.SAME:
            state = StrandState.CANNOT_TELL
        details = [
            f"{name}: {tokens(before)} → {tokens(after)} tokens"
            for name, before, after in self.fixtures
            if abs(after / max(before, 1.0) - 1) > GROWTH
        ]
        word = "larger" if self.ratio > 1 else "smaller"
        luck = f", which may be luck (p {p_value(self.p)})" if state is StrandState.CANNOT_TELL and self.p else ""
        return Strand(
            name="size",
            state=state if self.base_tokens else StrandState.NOT_RECORDED,
            base=f"{tokens(self.base_tokens)} tokens",
            candidate=f"{tokens(self.candidate_tokens)} tokens",
            says=f"the state is {percent(abs(self.ratio - 1))} {word}{luck}" if state is not StrandState.SAME else "",
            details=tuple(details),
        )


@dataclass(frozen=True)
class Recorded:
    """Everything that the records say without a test of scores."""

    outcome: OutcomeChange
    window: Strand
    shown: Strand
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
    unclaimed: int = 0
    """Facts that moved with the stand-in's choice of lines, which says nothing about the change."""
    model_wrote: bool = False
    """Whether a model wrote the candidate's summaries, which may refuse."""

    @property
    def unfollowed(self) -> bool:
        """Whether there are other instructions, and no model that would follow them."""
        return self.stood_in and (self.asks.changed or self.asks.unknown)

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
            for found in (self.invented, self.stale)
            if not found.more
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
    def form_strand(self) -> Strand:
        """What the form shows."""
        strand = form_strand(self.form)
        if self.form_unknown and not self.all_stubs:
            return Strand(name="form", state=StrandState.NOT_JUDGED, base=strand.base, candidate=strand.candidate)
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


def _ok(measurement: Measurement) -> dict[str, list[RunRecord]]:
    return {name: found for name, runs in measurement.fixtures.items() if (found := [run for run in runs if run.ok])}


def _typical(runs: Sequence[RunRecord]) -> WindowRecord | None:
    """Return the window that most runs have."""
    seen = Counter(run.window for run in runs if run.window is not None)
    return seen.most_common(1)[0][0] if seen else None


def _window(base: Mapping[str, Sequence[RunRecord]], candidate: Mapping[str, Sequence[RunRecord]]) -> Strand:
    pairs = [
        (name, before, now)
        for name in base.keys() & candidate.keys()
        if (before := _typical(base[name])) and (now := _typical(candidate[name]))
    ]
    if not pairs:
        return Strand(name="window", state=StrandState.NOT_RECORDED)
    details, shrunk, grown = [], 0, 0
    for name, before, now in sorted(pairs, key=lambda pair: pair[0]):
        parts = [
            f"{part} {getattr(before, part)} → {getattr(now, part)}"
            for part in ("head", "tail", "middle", "changed")
            if getattr(before, part) != getattr(now, part)
        ]
        if parts:
            details.append(f"{name}: {', '.join(parts)} messages")
        more = (now.head + now.tail + now.middle) - (before.head + before.tail + before.middle)
        shrunk, grown = shrunk + (more < 0), grown + (more > 0)
    sides = [before for _, before, _ in pairs], [now for _, _, now in pairs]
    kept = [[item.head + item.tail + item.middle for item in side] for side in sides]
    theirs, ours = (counted_range(min(numbers), max(numbers), "message") for numbers in kept)
    if shrunk > grown and shrunk * 2 > len(pairs):
        state, says = StrandState.WORSE, f"fewer messages are kept verbatim ({ours}, before {theirs})"
    else:
        state, says = (StrandState.CHANGED if details else StrandState.SAME), ""
    return Strand(
        name="window",
        state=state,
        base=theirs,
        candidate=ours,
        says=says,
        details=tuple(details),
        loss=max(0.0, 1 - sum(kept[1]) / sum(kept[0])) if any(kept[0]) else 0.0,
    )


def _size(base: Mapping[str, Sequence[RunRecord]], candidate: Mapping[str, Sequence[RunRecord]]) -> SizeChange:
    names = sorted(base.keys() & candidate.keys())
    if not names:
        return SizeChange(recorded=False, base_tokens=0.0, candidate_tokens=0.0)

    def mean(side: Mapping[str, Sequence[RunRecord]], name: str) -> float:
        return fmean(run.tokens_after for run in side[name])

    def shares(side: Mapping[str, Sequence[RunRecord]], *, lift: bool) -> float:
        return fmean(
            fmean(
                (run.size.kept - (run.size.recency if lift else 0.0)) / max(run.size.facts, 1)
                for run in side[name]
                if run.size
            )
            for name in names
        )

    def bare(side: Mapping[str, Sequence[RunRecord]], name: str) -> float:
        return fmean(run.bare / max(run.size.facts if run.size else 0, 1) for run in side[name])

    rows = tuple((name, mean(base, name), mean(candidate, name)) for name in names)
    recorded = all(run.size for side in (base, candidate) for name in names for run in side[name])
    return SizeChange(
        recorded=recorded,
        base_tokens=fmean(row[1] for row in rows),
        candidate_tokens=fmean(row[2] for row in rows),
        base_kept=shares(base, lift=False) if recorded else 0.0,
        candidate_kept=shares(candidate, lift=False) if recorded else 0.0,
        base_lift=shares(base, lift=True) if recorded else 0.0,
        candidate_lift=shares(candidate, lift=True) if recorded else 0.0,
        bare=fmean(bare(candidate, name) - bare(base, name) for name in names),
        fixtures=rows,
    )


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
    asked = [bool(fate.asked_by) for name in ours for fate in fates(candidate, name).values()]
    facts = fact_changes(base, candidate, exact=exact)
    return Recorded(
        outcome=compare_outcomes(base.fixtures, candidate.fixtures),
        window=_window(theirs, ours),
        shown=shown_strand(base, candidate, accept),
        asks=asks,
        # Equal facts do not make the sections equal: these are counted only where all that was written is.
        form=compare_form(
            theirs, read or ours, accept.sections, exact=exact and same_text(base) and same_text(candidate)
        ),
        facts=facts,
        cause=cause_of(facts, base, candidate),
        invented=false_values(base, candidate, "invented", exact=exact),
        stale=false_values(base, candidate, "stale", exact=exact),
        size=_size(theirs, ours),
        asked_facts=sum(asked),
        other_facts=len(asked) - sum(asked),
        exact=exact,
        judged=candidate.judged,
        stood_in=candidate.stood_in,
        other_replies=unread,
        form_unknown=bool(unread) and not read,
        model_wrote=candidate.model_wrote,
    )
