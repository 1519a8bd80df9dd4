"""The result of one run of the compressor under test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from eval_core.base.messages import Message
from eval_core.domain.call import OpaqueState
from eval_core.domain.first_trigger import Trigger
from eval_core.domain.fixture import Fixture
from eval_core.domain.model_failure import FailureReaction, ModelFailure
from eval_core.domain.next_request import NextTurn

SMALLER = "the session is smaller than what the compressor keeps word for word: "
"""How a note begins that says so."""


def both_ends(printed: str, size: int) -> str:
    """Return the beginning and the end of what a compressor printed: Node names the error first, Python last."""
    return printed if len(printed) <= size else f"{printed[: size // 2]} ... {printed[-size // 2 :]}"


class Outcome(StrEnum):
    """The class of a compression; only `OK` is scored, and only the provider's faults are tried again."""

    OK = "ok"
    SETUP_ERROR = "setup_error"
    """The compressor could not be imported or constructed."""
    INFRA = "infra"
    """The last model call of a step failed, was malformed or unfinished."""
    BAD_COMPLETION = "bad_completion"
    """The model answered the compressor with nothing, or was cut off."""
    REFUSED = "refused"
    """The model wrote nothing for this compressor, and summarised the same session when it was asked plainly."""
    TARGET_ERROR = "target_error"
    """The compressor raised, died, ran out of time or returned something that is no message list."""
    NOT_EXERCISED = "not_exercised"
    """A model is required, but the compressor never called one."""
    DEGRADED = "degraded"
    """The compressor says of itself that it fell back."""
    NOT_COMPRESSED = "not_compressed"
    """More than nine tenths of the tokens are still there."""

    @property
    def words(self) -> str:
        """What the compressor did, as the end of a sentence about it."""
        return _WORDS[self]

    @property
    def retryable(self) -> bool:
        """Whether the provider, not the compressor, is to blame."""
        return self in (Outcome.INFRA, Outcome.BAD_COMPLETION)


_WORDS = {
    Outcome.OK: "compressed",
    Outcome.SETUP_ERROR: "could not be imported or constructed",
    Outcome.INFRA: "could not reach its model",
    Outcome.BAD_COMPLETION: "got no summary from its model",
    Outcome.REFUSED: "asks its model for what it does not write",
    Outcome.TARGET_ERROR: "ended in an error",
    Outcome.NOT_EXERCISED: "never called its model",
    Outcome.DEGRADED: "fell back to a lesser way",
    Outcome.NOT_COMPRESSED: "left more than nine tenths of the tokens",
}


class TokenUse(BaseModel):
    """Tokens and money, as every record of model calls has them."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


class ModelUse(TokenUse):
    """Calls, tokens and money of one role, as counted outside of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    calls: int = 0
    fruitless: int = 0
    """Calls that brought nothing: failed, cut off or empty."""

    def __add__(self, other: ModelUse) -> ModelUse:
        """Add; an unknown price makes the sum unknown."""
        unknown = self.cost_usd is None or other.cost_usd is None
        return ModelUse(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
            fruitless=self.fruitless + other.fruitless,
        )


@dataclass(frozen=True)
class ModelRequest:
    """One request of the compressor to its model, and what it got."""

    messages: tuple[Message, ...]
    step: int = 0
    """The step it belongs to, from 0; requests made while the compressor was built belong to the first one."""
    reply: str = ""
    settings: tuple[str, ...] = ()
    """What else the compressor asked for, one `name: value` each: the reply's length, its format, tools."""
    asked_for: tuple[str, ...] = ()
    """The model, by its name, and how hard it should think: another one may have answered, and as hard as it likes."""


@dataclass(frozen=True)
class Step:
    """One compression of a (possibly chained) session."""

    messages: list[Message]
    """The state after this step."""
    tokens_before: int
    tokens_after: int
    seconds: float
    """As a user of the compressor feels it: without imports and without waiting for a turn."""
    import_seconds: float = 0.0
    queued_seconds: float = 0.0
    opaque: OpaqueState | None = None
    """The state, where only the provider can read it; there are no messages then."""
    returned: list[Message] | None = None
    """The messages with fields of the compressor's own; only its next step gets them."""
    use: ModelUse = field(default_factory=ModelUse)
    """What the calls of this step came to."""

    @property
    def as_returned(self) -> list[Message]:
        """What the compressor is given to go on from."""
        return self.messages if self.returned is None else self.returned


@dataclass(frozen=True)
class Round:
    """One finished step of a fixture-run, with everything that is needed to go on after it."""

    step: Step
    requests: tuple[ModelRequest, ...] | None
    """What this step alone asked."""
    state: Any = None
    """The adapter's own, where the target has one."""


class RoundLog(Protocol):
    """Where the rounds of one fixture-run are written down, so that a killed run goes on after its last one."""

    def read(self) -> list[Round]:
        """Return the rounds that are there, in order."""

    def add(self, done: Round) -> None:
        """Write one down."""


@dataclass(frozen=True)
class Recalled:
    """What the agent's own search brought back, question by question, and what went wrong in it first."""

    texts: tuple[str, ...]
    problem: str = ""


@dataclass(frozen=True)
class Compression:
    """The whole fixture-run: one step for each segment, or as many as were reached."""

    outcome: Outcome
    detail: str = ""
    """For people: what happened, where the outcome is not ok."""
    steps: tuple[Step, ...] = ()
    use: ModelUse = field(default_factory=ModelUse)
    requests: tuple[ModelRequest, ...] | None = None
    """What the compressor put before its model, in order; None where nobody looked."""
    refused: str = ""
    """What the compressor's model said in place of a summary, where it refused in plain text."""
    notes: tuple[str, ...] = ()
    """What the reader should know though it is no failure (dropped optional keywords, captured output)."""
    start_seconds: float = 0.0
    """Until the compressor was built, or the command ready; not in `seconds`."""
    output: str = ""
    """The beginning of what the compressor printed, where it runs in a process of its own: untrusted text."""
    with_failing_models: Mapping[ModelFailure, FailureReaction] = field(default_factory=dict)
    """What it did when its model failed, where that was tried."""
    fired: tuple[int, ...] = ()
    """Of a session that was compressed when it was due: how many of its messages had been said at each step."""
    own_trigger: bool = False
    """Whether the compressor itself said when."""
    answers: tuple[str, ...] = ()
    """What it can be asked beside: when it would set in by itself, and to take a turn."""
    trigger: Trigger | None = None
    """When it would have set in by itself, where it was asked."""
    recalled: Recalled | None = None
    """What the agent's own search found of what the state has lost, where it has one."""
    next_turn: NextTurn | None = None
    """What it sent after a compaction, where it took a turn."""

    @property
    def state(self) -> list[Message]:
        """The compressed messages after the last step."""
        return self.steps[-1].messages if self.steps else []

    @property
    def cold_seconds(self) -> float:
        """Spent on starting and importing, before the first step and in the steps."""
        return self.start_seconds + sum(step.import_seconds for step in self.steps)

    @property
    def queued_seconds(self) -> float:
        """Spent waiting for a turn at the model or the processor, all steps together."""
        return sum(step.queued_seconds for step in self.steps)

    @property
    def opaque(self) -> OpaqueState | None:
        """The state after the last step, where only the provider can read it."""
        return self.steps[-1].opaque if self.steps else None

    @property
    def seconds(self) -> float:
        """The time spent compressing, all steps together."""
        return sum(step.seconds for step in self.steps)


@runtime_checkable
class TakesBudget(Protocol):
    """A subject that can be run at several budgets, to see what it keeps at which size."""

    @property
    def at_other_budgets(self) -> Sequence[Subject]:
        """The same compressor at each budget beside its own."""


@runtime_checkable
class HasTrigger(Protocol):
    """A subject that plays a session and is compressed when that is due, not at fixed places."""

    async def compress_when_due(self, fixture: Fixture, *, seed: int) -> Compression:
        """Compress whenever the compressor says so, or where it says nothing, whenever the window is nearly full."""


@runtime_checkable
class CanRecall(Protocol):
    """A subject that may bring a search of its own along."""

    @property
    def recalls(self) -> bool:
        """Whether it does."""

    async def recall(
        self, fixture: Fixture, removed: Sequence[Message], questions: Sequence[Sequence[str]]
    ) -> Recalled:
        """Ask for each question, in up to a few queries, over the removed messages."""


class Subject(Protocol):
    """A compressor under test, however it is run."""

    @property
    def name(self) -> str:
        """How reports call it, e.g. `builtin:anchored` or `agent.context_compressor:ContextCompressor`."""

    async def compress(
        self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None, log: RoundLog | None = None
    ) -> Compression:
        """Compress a fixture once, segment after segment, with one instance; go on after the rounds of a log."""
