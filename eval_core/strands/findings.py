"""The verdict as data: the one object that every view renders and that the exit code is taken from."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict

from eval_core.base.files import pretty


def _finite(value: object) -> object:
    """Turn what JSON has no word for (an unbounded interval, no median) into null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


MaybeFloat = Annotated[float | None, BeforeValidator(_finite)]
Direction = Literal["worse", "better"]
Family = Literal["scores", "facts"]
FEWEST_FOR_ALL = 2
"""Runs of which it says something that all are alike."""


class Kind(StrEnum):
    """What a comparison can come to, in the order in which it is decided."""

    BROKEN = "broken"
    NOT_COMPARABLE = "not_comparable"
    INCOMPLETE = "incomplete"
    REGRESSED = "regressed"
    IMPROVED = "improved"
    TRADE = "trade"
    MIXED = "mixed"
    NO_DETECTABLE_CHANGE = "no_detectable_change"
    INCONCLUSIVE = "inconclusive"
    NOT_JUDGED = "not_judged"
    """What changed can only be judged with a model, and there was none."""

    @property
    def words(self) -> str:
        """The words at the head of the sentence."""
        return self.value.replace("_", " ").capitalize()


class StrandState(StrEnum):
    """What one strand of evidence says."""

    WORSE = "worse"
    BETTER = "better"
    BOTH = "both"
    CHANGED = "changed"
    """Another, and neither better nor worse for it."""
    SAME = "same"
    ADVISORY = "advisory"
    """Shown, and decides nothing: no model judged."""
    CANNOT_TELL = "cannot_tell"
    ACCEPTED = "accepted"
    NOT_COMPARABLE = "not_comparable"
    INCOMPLETE = "incomplete"
    NOT_RECORDED = "not_recorded"
    NOT_JUDGED = "not_judged"
    """It follows from the stand-in for a model, which says nothing about the change."""

    @property
    def words(self) -> str:
        """How people read it."""
        return "better and worse" if self is StrandState.BOTH else self.value.replace("_", " ")


class RowVerdict(StrEnum):
    """What one row of the table says."""

    WORSE = "worse"
    BETTER = "better"
    NO_DETECTABLE_CHANGE = "no_detectable_change"
    INCONCLUSIVE = "inconclusive"
    ADVISORY = "advisory"
    """Shown, and decides nothing: a grade that no model gave."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Reason(_Frozen):
    """Why it could not be decided: a field that differs, models that changed, a side that is missing."""

    code: Literal["difference", "models", "missing", "coverage", "failing"]
    text: str
    mutes: Literal["everything", "facts", "scores"] = "everything"
    """What cannot be compared because of it; where facts cannot, scores cannot either."""
    field: str | None = None
    base: str | None = None
    candidate: str | None = None


class Culprit(_Frozen):
    """One thing that moved for certain."""

    kind: Literal["outcome", "dimension", "retention", "probe", "fact", "census", "structure"]
    """A score dimension or overall; authored facts or census as a whole; a probe's scores; a probe's facts;
    a kind of census fact; a structure check."""
    direction: Direction
    name: str
    fixture: str | None = None
    base: MaybeFloat = None
    candidate: MaybeFloat = None
    """Means; for a structure check the share of runs that pass."""
    delta: MaybeFloat = None
    ci_low: MaybeFloat = None
    ci_high: MaybeFloat = None
    p: float | None = None

    @property
    def label(self) -> str:
        """How people read it."""
        return f"{self.fixture} / {self.name}" if self.fixture else self.name


class Item(NamedTuple):
    """One thing that can be removed: a section of the summary, or a fact of a fixture."""

    name: str
    fixture: str = ""


COMPARABLE = 0.5
"""Gain and loss are of comparable weight if the lesser is at least this share of the greater."""


def weigh(loss: float, gain: float) -> StrandState:
    """Tell which side decides, or that both do."""
    if not loss and not gain:
        return StrandState.SAME
    if min(loss, gain) >= COMPARABLE * max(loss, gain):
        return StrandState.BOTH
    return StrandState.WORSE if loss > gain else StrandState.BETTER


class Finding(_Frozen):
    """One kind of evidence: what it says, apart from all others."""

    name: str
    state: StrandState
    base: str = ""
    candidate: str = ""
    """The two sides in a few words; only ours, nothing quoted."""
    says: str = ""
    """The finding in one clause of our own words; empty where there is none."""
    code: Literal["all_stubs", "emptied"] | None = None
    """A finding that other code acts on: every summary is a stub, and all else follows from it; a section is
    there and empty, which is told after what it follows from."""
    may_be_refusal: bool = False
    """Whether a model wrote those stubs, and may have refused to do the work."""
    removed: tuple[Item, ...] = ()
    """What is gone without having been accepted: sections of the summary, facts that the model is not shown."""
    accepted: tuple[Item, ...] = ()
    """What is gone and was accepted in the configuration; it is not counted as a loss."""
    details: tuple[str, ...] = ()
    """What exactly: names from sessions and summaries, to be shown as quotations."""
    parts: tuple[tuple[str, str, str], ...] = ()
    """The two sides part by part, in words of ours: what, base, candidate."""
    leans_down: bool = False
    """Whether far more facts are kept less often than more often, though no test calls it worse."""
    loss: float = 0.0
    gain: float = 0.0
    """How much was lost and gained, as shares of what there is; only comparable with those of other strands."""


class FactChange(_Frozen):
    """One fact that the two sides keep in different numbers of runs."""

    fixture: str
    name: str
    kind: str = ""
    """The kind of a fact that only rules found in the session."""
    asked_by: tuple[str, ...] = ()
    """The probes that ask for it."""
    messages: tuple[int, ...]
    base_kept: int
    base_runs: int
    candidate_kept: int
    candidate_runs: int
    clear: bool
    """Whether it is more than the chance of single runs."""
    verbatim: bool = False
    """Whether every run of the candidate holds it in a message that was left as it was."""
    shown: Literal["never shown", "not passed on", "shown, not written"] | None = None
    """For a loss: whether the compressor's own model saw it; null where that is not known."""
    reworded: bool = False
    """Whether it may be said in other words."""

    @property
    def asked(self) -> bool:
        """Whether a probe asks for it."""
        return bool(self.asked_by)

    @property
    def change(self) -> float:
        """How much more often it is kept; negative for a loss."""
        return self.candidate_kept / self.candidate_runs - self.base_kept / self.base_runs

    @property
    def lost_in_all(self) -> bool:
        """Whether every run of the base keeps it and none of the candidate's, with two or more of each."""
        always = self.base_kept == self.base_runs and not self.candidate_kept
        return always and min(self.base_runs, self.candidate_runs) >= FEWEST_FOR_ALL


class FalseValue(_Frozen):
    """A value that the candidate's summaries state and should not, and no run of the base states."""

    kind: Literal["invented", "stale", "misstated"]
    """Nowhere in the session; superseded while its successor is missing; a line of the ledger that says otherwise."""
    value: str
    where: str
    """What sort of value it is, in which fixtures and in how many runs."""
    in_all: bool = False
    """Whether every run of those fixtures states it, with two or more of each side."""

    @property
    def words(self) -> str:
        """How people read it."""
        return f"{self.kind}: {self.value} ({self.where})"


class Row(_Frozen):
    """One hypothesis of the table."""

    name: str
    family: Family
    base: float
    candidate: float
    delta: float
    ci_low: MaybeFloat
    ci_high: MaybeFloat
    """At the level of the test; null where nothing measures the noise."""
    ci90_low: MaybeFloat
    ci90_high: MaybeFloat
    p: float | None
    """Null, as are the intervals, where deterministic runs were counted and nothing was estimated."""
    mde: MaybeFloat
    mde_two_more: MaybeFloat
    verdict: RowVerdict
    median_base: MaybeFloat = None
    median_candidate: MaybeFloat = None
    """Medians of medians, for display; scores only."""
    explained: MaybeFloat = None
    """The part of a score's change that follows from the facts kept; the test of the scores is about the rest."""


class Advice(_Frozen):
    """How many more runs of each fixture the next look takes, and how likely they settle what is open."""

    runs: int
    chance: float | None = None
    """Null where it is low, or not known."""


class SpreadFinding(_Frozen):
    """A quantity whose runs differ more, or less, than the base's; neither better nor worse."""

    name: str
    base_sd: float
    candidate_sd: float
    p: float
    verdict: Literal["less_stable", "more_stable"]


class UnitRow(_Frozen):
    """One probe or census kind of one fixture."""

    fixture: str
    kind: Literal["probe", "fact", "census"]
    name: str
    base: float
    candidate: float
    delta: float
    p: float


class MedianFinding(_Frozen):
    """One line of the median table that is shown beside the verdict."""

    fixture: str
    dimension: str
    base: float
    candidate: float
    delta: float
    flagged: bool


class StructureFinding(_Frozen):
    """A structure check that changed; a shaky one is shown and does not decide."""

    fixture: str
    check: str
    kind: Literal["broken", "repaired", "shaky"]
    base_passed: int
    base_runs: int
    candidate_passed: int
    candidate_runs: int


class TestSummary(_Frozen):
    """What one permutation test came to."""

    __test__ = False  # not a test case, whatever its name

    family: Family
    alpha: float
    p: float
    p_global: float
    p_local: float
    significant: bool
    crit: float
    arrangements: int
    enumerated: bool
    attainable_p: float
    can_reach: bool
    margin: float
    runs: dict[str, tuple[int, int]]
    """Per fixture: candidate runs, baseline runs."""


class FurtherTest(_Frozen):
    """A test beside those of the averages; of the facts gained only to be weighed against those lost."""

    name: Literal["facts lost", "facts gained", "retained tokens"]
    alpha: float
    p: float
    smallest: int | None = None
    """So many facts of one fixture, lost in every run, would have been certain."""


class Coverage(_Frozen):
    """How much of the planned grid was measured."""

    side: Literal["baseline", "candidate"]
    family: Family
    observed: int
    planned: int

    @property
    def share(self) -> float:
        """Return the measured share; nothing planned is nothing missing."""
        return self.observed / self.planned if self.planned else 1.0


class Verdict(_Frozen):
    """One comparison, decided."""

    schema_version: Literal[1] = 1
    kind: Kind
    headline: str
    next_step: str
    base_label: str
    candidate_label: str
    reasons: tuple[Reason, ...] = ()
    strands: tuple[Finding, ...] = ()
    facts: tuple[FactChange, ...] = ()
    """Facts that moved, worst first; those that are clear before those that may be chance."""
    false_values: tuple[FalseValue, ...] = ()
    """Where there are more of them than chance explains."""
    exact: bool = False
    """Whether the facts were counted on deterministic runs, with nothing left to chance."""
    culprits: tuple[Culprit, ...] = ()
    rows: tuple[Row, ...] = ()
    units: tuple[UnitRow, ...] = ()
    structure: tuple[StructureFinding, ...] = ()
    medians: tuple[MedianFinding, ...] = ()
    spread: tuple[SpreadFinding, ...] = ()
    tests: tuple[TestSummary, ...] = ()
    further_tests: tuple[FurtherTest, ...] = ()
    """Of single facts, and of the size where it was not counted."""
    coverage: tuple[Coverage, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """Those notes that a reader must not miss: a stale baseline, less stable runs, what was taken off the scores."""
    advice: Advice | None = None
    look: int = 1
    planned_looks: int = 1
    alpha: float = 0.05
    """What this look may spend, both tests together."""
    alpha_spent: float = 0.05
    """What all looks at this comparison have spent."""

    def to_json(self) -> str:
        """Return the verdict as JSON text."""
        return pretty(self.model_dump(mode="json"))

    def noted(self, *notes: str, remark: bool = False) -> Verdict:
        """Return the verdict with more notes, which a reader must not miss if they are remarks."""
        remarks = notes if remark else ()
        return self.model_copy(update={"notes": (*self.notes, *notes), "remarks": (*self.remarks, *remarks)})

    @property
    def harmful(self) -> bool:
        """Whether it holds a regression: a trade of facts for size does too."""
        if self.kind is Kind.TRADE:
            return any(item.state is StrandState.WORSE for item in self.strands)
        return self.kind in (Kind.BROKEN, Kind.REGRESSED, Kind.MIXED)

    def strand(self, name: str) -> Finding | None:
        """Return what one strand says, where it was looked at."""
        return next((strand for strand in self.strands if strand.name == name), None)

    def row(self, name: str) -> Row | None:
        """Return the row of a hypothesis, where it was tested."""
        return next((row for row in self.rows if row.name == name), None)
