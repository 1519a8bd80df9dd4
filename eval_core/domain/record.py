"""Records of fixture-runs: everything that comparisons and reports read."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from eval_core.domain.call import OpaqueState
from eval_core.domain.compression import ModelUse, Outcome, TokenUse
from eval_core.domain.grade import Answer, Grade, Unscored
from eval_core.domain.session_ledger import LineKind

FactStatus = Literal["used", "not_used", "kept", "paraphrased", "lost", "untested"]
"""kept: in the compressed state (and used or not used by an answer, where there is one); untested: its evidence was
left verbatim, so that the compression put nothing at risk."""


PRIVATE = "private"
"""What is written where the text of a private probe would be."""
PRIVATE_PLACE = -1
"""The evidence of a private fact: somewhere in the session, and nobody is told where."""


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
    """The messages that establish it; empty for a fact that is not in the session: nobody can keep it."""
    paraphrased: bool = False
    """Whether a lost fact may be there in other words; it counts as lost all the same."""
    shown: str = ""
    """Whether the compressor's own model saw it, by the signs of `ShownRecord.facts`; empty where not recorded."""

    @property
    def status(self) -> FactStatus:
        """The one word that reports show."""
        if not self.kept:
            return "paraphrased" if self.paraphrased else "lost"
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
    def in_session(self) -> bool:
        """Whether the session holds any of the expected facts; what it does not hold is nobody's to keep."""
        return not self.facts or any(fact.evidence for fact in self.facts)

    @property
    def retention(self) -> float:
        """The share of the expected facts that the compressed state holds.

        Facts left verbatim count as kept: a change that moves the verbatim region would otherwise give the two
        arms of a comparison different denominators. Facts that the session does not hold are nobody's to keep, and
        count nowhere; not a number where there is no other, or where the state is not visible.
        """
        present = [fact for fact in self.facts if fact.evidence]
        return sum(fact.kept for fact in present) / len(present) if present else math.nan

    @property
    def redacted(self) -> ProbeRecord:
        """The same outcome and scores without a word of question, facts, answer or reason."""
        facts = [
            fact.model_copy(
                update={
                    "label": f"{PRIVATE} fact {number}",
                    "evidence": [PRIVATE_PLACE] if fact.evidence else [],
                    "paraphrased": False,
                }
            )
            for number, fact in enumerate(self.facts, 1)
        ]
        answer = self.answer and self.answer.model_copy(update={"text": PRIVATE})
        result = self.result
        if isinstance(result, Grade):
            result = result.model_copy(update={"reason": PRIVATE, "flags": [PRIVATE] if result.flags else []})
        elif isinstance(result, Unscored):
            # Providers quote prompts in their errors; what went wrong is in the journal, by kind.
            missing: Literal["answer", "grade"] = "answer" if self.answer is None else "grade"
            reason = f"no {missing} to a private probe; the journal names the kind of failure"
            result = Unscored(code="private", missing=missing, reason=reason)
        return ProbeRecord(facts=facts, answer=answer, result=result)


class CensusRecord(Record):
    """What became of the facts that rules found in the session and no probe asks for, counted by kind."""

    total: dict[str, int] = {}
    at_risk: dict[str, int] = {}
    lost: dict[str, int] = {}
    worst: list[str] = []
    """The most telling lost facts, as `kind: value`."""
    fates: str = ""
    """One sign for each census fact of the fixture: 1 kept, 0 lost, - never at risk; empty where not recorded."""


class CensusEntry(Record):
    """One census fact of a fixture that no probe asks for; the runs tell its fate by its place in the list."""

    value: str
    kind: str
    messages: list[int]


class WindowRecord(Record):
    """Messages that were kept verbatim: at the beginning, at the end, between; and those changed where they stand."""

    head: int
    tail: int
    middle: int
    changed: int


class ShownRecord(Record):
    """What the compressor put before its own model."""

    calls: int
    tokens: int
    digest: str
    headings: list[str] = []
    facts: str = ""
    """One sign for each census fact: 1 in a request, 0 in none, p where a summary had it that was not passed on to the
    next request, so that it was gone."""
    carried: list[float | None] = []
    """For each compression after the first, the share of the facts in the summary before it that its requests hold."""
    order: float | None = None
    """The share of neighbouring messages that are shown in their order; null where too few are recognised."""


class AsksRecord(Record):
    """What one step said to the compressor's model apart from the session."""

    step: int
    """From 0."""
    text: str
    """The instructions, each line once; `[...]` is where the session's text was."""
    session: str
    """Digest of the session's text in the requests."""
    asked_for: list[str] | None = None
    """Names of models other than the one that answers, and how hard they should think; null in older records."""


class SectionRecord(Record):
    """One labelled part of what the compressor wrote; 0 tokens where it says nothing."""

    label: str
    tokens: int


class FormRecord(Record):
    """The sections of what the compressor wrote, in order, and its length."""

    sections: list[SectionRecord]
    tokens: int


class SizeRecord(Record):
    """Facts of the session, each counted once, in the state and in two plain ways to be that small."""

    facts: int
    kept: int
    recency: float
    """Facts in the system prompt and the last messages, as many tokens as the state has."""
    proportional: float
    """Facts left if every message were cut to the same share of its length."""

    @property
    def share(self) -> float | None:
        """The facts kept, as a share; None of a session without facts."""
        return self.kept / self.facts if self.facts else None


class InventedRecord(Record):
    """A value that the compressor wrote and that is nowhere in the session."""

    kind: str
    value: str


class StaleRecord(Record):
    """A superseded value that the state holds without its successor."""

    probe: str
    value: str


class LineRecord(Record):
    """One fact of a session that is played in rounds."""

    name: str
    kind: LineKind
    value: str
    message: int
    """Where it is said first."""
    said: list[int]
    """The rounds, from 0, whose new messages say it."""


class RoundState(Record):
    """The state after one round."""

    before: int
    after: int
    written: int
    """Tokens: before the round, after it, and of the compressor's own text."""
    seconds: float = 0.0
    use: ModelUse | None = None
    """What its calls came to; None in results from before this was kept."""
    idle: bool = False
    """Whether next to nothing was freed."""
    broken: list[str] = []
    """Structure checks that fail."""
    fates: str
    """One sign for each fact: `_` not said yet, `~` superseded, `0` lost, `s` in the compressor's own text,
    `v` left verbatim."""


class RecoveryRecord(Record):
    """What a search of the removed messages brings back of the facts that a state has lost."""

    live: int
    lost: int
    searched: int
    """Found with an index."""
    plain: int
    """Found with a plain text search."""
    tokens: int
    """Read for one question, with the index."""
    own: int | None = None
    """Found with the agent's own search; None where it has none that could be asked."""
    own_tokens: int = 0
    """Read for one question, with that search."""
    own_problem: str = ""
    """What went wrong in it first: untrusted text."""


class RoundsRecord(Record):
    """One run of a session that is compressed again and again."""

    session: str
    facts: list[LineRecord]
    rounds: Annotated[list[RoundState], Field(min_length=2)]
    oracle: list[float]
    """What the reading finds of a perfect copy of everything that holds, round by round."""
    recovery: RecoveryRecord | None = None
    """After the last round."""

    @model_validator(mode="after")
    def _whole(self) -> RoundsRecord:
        if any(len(item.fates) != len(self.facts) or set(item.fates) - set("_~0sv") for item in self.rounds):
            raise ValueError("fates: there must be one of the signs _~0sv for each fact")
        return self


class TriggerRound(Record):
    """One compression of a session that is compressed when it is due."""

    message: int
    """How many messages had been said."""
    before: int
    after: int


class TriggerRecord(Record):
    """One session, compressed when the compressor says so, or where it says nothing, at a share of the window."""

    session: str
    window: int
    share: float
    """The share of the window at which a compressor without a word in it is called."""
    tokens: int
    messages: int
    """Of the whole session."""
    own: bool
    """Whether its own `should_compress` was asked."""
    rounds: list[TriggerRound] = []
    ended: Literal["session", "stuck", "failed"] = "session"
    detail: str = ""


AT_BUDGETS = "this compressor"
"""The name of frontier points at the other budgets of the compressor under test."""


class FrontierPoint(Record):
    """One way to make a session small: how many tokens it leaves, and how many facts."""

    name: str
    tokens: int
    kept: float


def reply_use(reply: Answer | Grade) -> ModelUse:
    """Return what one reply took."""
    return ModelUse(calls=1, **reply.model_dump(include=set(TokenUse.model_fields)))


class RunRecord(Record):
    """One compression of one fixture and everything measured of it."""

    fixture: str
    run: int
    graded: bool
    """False for a compress-only run, which measures facts and structure but asks no question."""
    outcome: Outcome
    detail: str = ""
    notes: list[str] = []
    output: str = ""
    """The beginning and the end of what the compressor printed, where it failed: untrusted text."""
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
    window: WindowRecord | None = None
    """This and the following are null in results of older versions: not recorded."""
    shown: ShownRecord | None = None
    asks: list[AsksRecord] | None = None
    form: FormRecord | None = None
    size: SizeRecord | None = None
    invented: list[InventedRecord] | None = None
    stale: list[StaleRecord] | None = None
    bare: int = 0
    """Facts that the state holds only where no sentence carries them: in a comment, a list of loose words, an aside."""
    held: list[int] = []
    """After each compression of a chained session, how many of its facts the state holds."""
    strands: dict[str, dict[str, Any]] = {}
    """What further strands of evidence recorded, by their name; the fields above are those of the first ones."""
    refetch_tokens: int = 0
    """Tokens of the messages that must be read again for the facts that were lost and needed, each message once."""
    refetch_facts: int | None = None
    """How many facts these are: those that probes ask for, and that a tool can show again."""
    turns_ahead: int | None = None
    """Turns that the work goes on for: as many as the second half of the session took."""
    use: dict[str, ModelUse] = {}
    refused: str = ""
    """What the compressor's model said in place of a summary, where it refused in plain text."""
    answered_plainly: bool = False
    """Whether the model, which wrote no summary for the compressor, did so for the evaluator at the same time."""

    @property
    def ok(self) -> bool:
        """Whether there is something to score."""
        # A session that did not shrink was measured all the same: it is a finding, not a gap.
        return self.outcome is Outcome.OK or (self.outcome is Outcome.NOT_COMPRESSED and bool(self.structure))

    @property
    def visible(self) -> bool:
        """Whether the compressed state can be read by anybody but the provider."""
        return self.opaque is None
