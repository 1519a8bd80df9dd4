"""What is written down of each fixture-run: the grid that comparisons and reports read."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from eval_core.domain.compression import Outcome
from eval_core.domain.grade import Answer, Grade, Unscored
from eval_core.opaque import OpaqueState

__all__ = ["CensusRecord", "FactRecord", "FactStatus", "ProbeRecord", "RunRecord", "UseRecord"]

FactStatus = Literal["used", "not_used", "kept", "lost", "untested"]
"""kept: in the compressed state (and used or not used by an answer, where there is one); untested: its evidence was
left verbatim, so that the compression put nothing at risk."""


class Record(BaseModel):
    """A value on disk: unknown fields are an error, not a surprise."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FactRecord(Record):
    """What became of one expected fact."""

    label: str
    kept: bool
    at_risk: bool
    """False where the fact still stands in a message that was left verbatim."""
    used: bool | None = None
    """Whether the answer states it; None without an answer."""
    evidence: list[int] = []

    @property
    def status(self) -> FactStatus:
        """The one word that reports show."""
        if not self.kept:
            return "lost"
        if not self.at_risk:
            return "untested"
        return "kept" if self.used is None else "used" if self.used else "not_used"


class ProbeRecord(Record):
    """One probe in one fixture-run."""

    facts: list[FactRecord]
    answer: Answer | None = None
    result: Annotated[Grade | Unscored | None, Field(discriminator="kind")] = None
    """None in compress-only runs: nothing was asked."""

    @property
    def retention(self) -> float:
        """The share of the expected facts that the compressed state holds.

        Facts left verbatim count as kept: a change that moves the verbatim region would otherwise give the two
        arms of a comparison different denominators. NaN where the state is not visible.
        """
        return sum(fact.kept for fact in self.facts) / len(self.facts) if self.facts else math.nan


class CensusRecord(Record):
    """What became of the facts that were found in the session by themselves, counted by kind."""

    total: dict[str, int] = {}
    at_risk: dict[str, int] = {}
    lost: dict[str, int] = {}
    worst: list[str] = []
    """The most telling lost facts, as `kind: value`."""


class UseRecord(Record):
    """Calls, tokens and money of one role."""

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def plus(self, other: UseRecord) -> UseRecord:
        """Add; an unknown price makes the sum unknown."""
        unknown = self.cost_usd is None or other.cost_usd is None
        return UseRecord(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
        )


class RunRecord(Record):
    """One compression of one fixture and everything measured of it."""

    fixture: str
    run: int
    graded: bool
    """False for a compress-only run, which measures facts and structure but asks no question."""
    outcome: Outcome
    detail: str = ""
    notes: list[str] = []
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0
    """Compressing, as a user of the compressor feels it: warm, and with the machine to itself."""
    cold_seconds: float = 0.0
    """Starting and importing, which `seconds` leaves out."""
    queued_seconds: float = 0.0
    """Waiting for a turn at the model or the processor, which `seconds` leaves out."""
    summary: str = ""
    messages: list[dict[str, Any]] = []
    opaque: OpaqueState | None = None
    """The state, where only the provider can read it: facts, census and structure are then not visible, not zero."""
    verbatim: list[int] = []
    """Indexes of the fixture's messages that were left unchanged."""
    probes: dict[str, ProbeRecord] = {}
    census: CensusRecord = CensusRecord()
    structure: dict[str, bool] = {}
    refetch_tokens: int = 0
    """Tokens of the messages that must be read again for the facts that were lost, each message once."""
    use: dict[str, UseRecord] = {}

    @property
    def ok(self) -> bool:
        """Whether there is something to score."""
        return self.outcome is Outcome.OK

    @property
    def visible(self) -> bool:
        """Whether the compressed state can be read by anybody but the provider."""
        return self.opaque is None
