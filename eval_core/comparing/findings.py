"""The verdict as data: the one object that every view renders and that the exit code is taken from."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

__all__ = [
    "Advice",
    "Coverage",
    "Culprit",
    "Kind",
    "MedianFinding",
    "Reason",
    "Row",
    "RowVerdict",
    "SpreadFinding",
    "StructureFinding",
    "TestSummary",
    "UnitRow",
    "Verdict",
]


def _finite(value: object) -> object:
    """Turn what JSON has no word for (an unbounded interval, no median) into null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


MaybeFloat = Annotated[float | None, BeforeValidator(_finite)]
Direction = Literal["worse", "better"]
Family = Literal["scores", "facts"]


class Kind(StrEnum):
    """The seven things a comparison can come to, in the order in which they are decided."""

    NOT_COMPARABLE = "not_comparable"
    INCOMPLETE = "incomplete"
    REGRESSED = "regressed"
    IMPROVED = "improved"
    MIXED = "mixed"
    NO_DETECTABLE_CHANGE = "no_detectable_change"
    INCONCLUSIVE = "inconclusive"

    @property
    def words(self) -> str:
        """The words at the head of the sentence."""
        return self.value.replace("_", " ").capitalize()


class RowVerdict(StrEnum):
    """What one row of the table says."""

    WORSE = "worse"
    BETTER = "better"
    NO_DETECTABLE_CHANGE = "no_detectable_change"
    INCONCLUSIVE = "inconclusive"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Reason(_Frozen):
    """Why nothing can be said: a field that differs, a judge that drifted, a side that is missing."""

    code: Literal["difference", "drift", "missing", "coverage"]
    text: str
    field: str | None = None
    base: str | None = None
    candidate: str | None = None


class Culprit(_Frozen):
    """One thing that moved for certain."""

    kind: Literal["dimension", "retention", "probe", "fact", "census", "structure"]
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
    p: float
    mde: MaybeFloat
    mde_two_more: MaybeFloat
    verdict: RowVerdict
    median_base: MaybeFloat = None
    median_candidate: MaybeFloat = None
    """Medians of medians, for display; scores only."""
    explained: MaybeFloat = None
    """The part of a score's change that follows from the facts kept; the test of the scores is about the rest."""


class Advice(_Frozen):
    """How many more runs of each fixture may settle what is open, and how likely that is."""

    runs: int
    chance: float


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
    kind: Literal["broken", "mended", "shaky"]
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
    culprits: tuple[Culprit, ...] = ()
    rows: tuple[Row, ...] = ()
    units: tuple[UnitRow, ...] = ()
    structure: tuple[StructureFinding, ...] = ()
    medians: tuple[MedianFinding, ...] = ()
    spread: tuple[SpreadFinding, ...] = ()
    tests: tuple[TestSummary, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    notes: tuple[str, ...] = ()
    advice: Advice | None = None
    look: int = 1
    planned_looks: int = 1
    alpha: float = 0.05
    """What this look may spend, both tests together."""
    alpha_spent: float = 0.05
    """What all looks at this comparison have spent."""

    def to_json(self) -> str:
        """Return the verdict as JSON text."""
        return self.model_dump_json(indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """Read a verdict back."""
        return cls.model_validate_json(text)

    def row(self, name: str) -> Row | None:
        """Return the row of a hypothesis, where it was tested."""
        return next((row for row in self.rows if row.name == name), None)
