"""The result of one model call. Standard library only: the gateway's process uses it too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from eval_core.base.messages import Message
from eval_core.base.strict_json import BadJson, parse_json

ArmName = Literal["candidate", "base"]
Role = Literal["compressor", "answer", "judge"]
FailureKind = Literal[
    "rate_limit", "server", "connection", "timeout", "auth", "payment", "bad_request", "not_found", "context_length",
    "empty", "refusal", "truncated", "malformed", "budget", "stopped", "unknown",
]  # fmt: skip


@dataclass(frozen=True)
class OpaqueState:
    """A compressed state that only its provider can read: items of an API's input, sent back as they are, in order.

    What it holds can be asked, through the same provider, and not seen: facts, census and structure have nothing to
    look at.
    """

    protocol: Literal["openai-responses", "anthropic-messages"]
    """The API whose input the items are."""
    items: list[dict[str, Any]]

    def __post_init__(self) -> None:
        """Refuse a state that holds nothing."""
        if not self.items:
            raise ValueError("items: a state needs at least one")


@dataclass(frozen=True)
class Draw:
    """Which draw of a model a call is: calls that ask the same thing are two draws where any of this differs."""

    run: int = 0
    """The run of the plan, from 0."""
    arm: ArmName = "candidate"
    """The side of the comparison: equal prompts of two arms are still two draws."""
    attempt: int = 0
    """How often a compression was begun again after a reply that was no use; the same bad reply is not replayed."""
    repeat: int = 0
    """How often the same is asked again on purpose: 0 in the run itself, more where stored answers are graded again."""
    control: bool = False
    """Whether it belongs to a control, which is measured once and beside all runs."""

    @property
    def fields(self) -> dict[str, Any]:
        """The fields as a journal keeps them; those that have their usual value are left out."""
        usual = Draw(run=self.run)
        return {name: value for name, value in vars(self).items() if name == "run" or value != getattr(usual, name)}

    @property
    def number(self) -> int:
        """One number for all of this, as the journals of older versions hold it.

        Journals are looked up by a digest in which this number stands. Another number would not find the replies
        that a run has paid for, and what is stored would be asked and drawn again.
        """
        if self.control:
            return -1 - self.repeat
        return self.run + 1_000 * self.attempt + 10_000 * self.repeat + 100_000 * (self.arm == "base")

    @property
    def ambiguous(self) -> bool:
        """Whether the number could be another draw's as well."""
        return not (0 <= self.run < 1_000 and self.attempt < 10 and self.repeat < 10)


class Passage(Protocol):
    """Is told of every request that the client makes for a call, retries included."""

    def left(self) -> None:
        """Hear that a request leaves for the provider: no slot and no budget is waited for any longer."""

    def returned(self, usage: Usage | None, failed: FailureKind | None, *, lost: bool) -> None:
        """Hear what became of it; `lost` where the provider may have charged for a reply that never came."""

    async def again(self, call: ModelCall) -> bool:
        """Tell whether another request may be made for the call."""


@dataclass(frozen=True)
class ModelCall:
    """One request, complete: equal calls of an equal draw are the same call and are paid once."""

    role: Role
    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    draw: Draw = Draw()
    """Keeps calls apart that ask the same thing on purpose."""
    temperature: float | None = None
    response_schema: dict[str, Any] | None = None
    """A JSON Schema the answer should follow, where the model can."""
    params: dict[str, Any] = field(default_factory=dict)
    front: OpaqueState | None = None
    """Sent before the messages, through the API that it belongs to."""
    shared: int = 0
    """How many messages at the beginning other calls repeat: the first call with them goes ahead, the others follow."""
    private: bool = False
    """Neither the reply nor an error that may quote the prompt is written down in the clear."""
    passage: Passage | None = field(default=None, compare=False, repr=False)
    """No part of what is asked: who wants to know of its requests."""

    @property
    def by_compressor(self) -> bool:
        """Whether the compressor under test wrote it; what its words bring about is held against nobody else.

        The requests of controls and checks are the evaluator's own.
        """
        return self.role == "compressor" and not self.draw.control

    def offering(self, tools: Sequence[dict[str, Any]], *, required: bool = False) -> ModelCall:
        """Return the same call with functions that the model may call, or must: `{"name": ..., "parameters": ...}`."""
        offered = [{"type": "function", "function": tool} for tool in tools]
        return replace(
            self, params={**self.params, "tools": offered, "tool_choice": "required" if required else "auto"}
        )


@dataclass(frozen=True)
class Acceptance:
    """What makes a reply usable, and how to ask again for one; all attempts count as the one call."""

    problem: Callable[[str], str | None]
    """What is wrong with a reply's text, or None."""
    amend: Callable[[str], tuple[Message, ...]]
    """The messages of the next attempt, given what was wrong."""


@dataclass(frozen=True)
class Usage:
    """Tokens and money of one call."""

    input_tokens: int = 0
    cached_tokens: int = 0
    """The part of the input tokens that the provider read from its prompt cache."""
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None where the price is unknown."""
    written_tokens: int = 0
    """The part of the input tokens that the provider wrote to its prompt cache, where it charges for that."""

    def plus(self, other: Usage) -> Usage:
        """Add; an unknown price makes the sum unknown."""
        unknown = self.cost_usd is None or other.cost_usd is None
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=None if unknown else (self.cost_usd or 0.0) + (other.cost_usd or 0.0),
            written_tokens=self.written_tokens + other.written_tokens,
        )

    @property
    def told(self) -> dict[str, Any]:
        """What a record says of it."""
        return {name: getattr(self, name) for name in ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")}

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class ReplyCall:
    """One call of a tool that the model asks for."""

    id: str
    name: str
    arguments: str
    """JSON text."""

    @property
    def given(self) -> dict[str, Any] | None:
        """The arguments by their names; None where the text is no JSON object, which models do write."""
        try:
            read = parse_json(self.arguments or "{}")
        except BadJson:
            return None
        return read if isinstance(read, dict) else None


@dataclass(frozen=True)
class Completion:
    """A finished answer."""

    text: str
    usage: Usage
    """Of this answer and of the unusable ones that were paid before it."""
    model: str
    """The model that answered, as the provider names it."""
    seconds: float
    cached: bool = False
    """Read from the journal: nothing was sent."""
    refusal: str = ""
    """The beginning of a text that says nothing but that the model will not do the work."""
    calls: tuple[ReplyCall, ...] = ()
    """Tool calls, where tools were offered."""


@dataclass(frozen=True)
class Failed:
    """No answer, and why."""

    kind: FailureKind
    retryable: bool
    message: str
    usage: Usage = field(default_factory=Usage)
    text: str = ""
    """What a truncated reply held."""
