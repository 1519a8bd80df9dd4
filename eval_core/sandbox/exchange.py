"""The JSON lines between the evaluator and a `command:` target, as checked values.

The evaluator writes `start` once and `compress` for each segment; the program answers each line with one line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from eval_core.base.messages import Message
from eval_core.domain.call import OpaqueState
from eval_core.sandbox.validate import BadFrame, StepResult, check_values, read_messages, strict_json

PROTOCOL = 1


class _Sent(BaseModel):
    """A line that the evaluator writes: exactly these fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def line(self) -> str:
        """Return the JSON text without its newline."""
        return json.dumps(self.model_dump(mode="json"), ensure_ascii=True)


class _Answered(BaseModel):
    """A line that the program writes: fields that are not known are ignored, so that it may log into them."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class StartLine(_Sent):
    """The first line: what the program may use. It answers `ready`, or `error`."""

    type: Literal["start"] = "start"
    protocol: Annotated[int, Field(description="The version of this contract.")] = PROTOCOL
    model: Annotated[str, Field(description="The model to ask for; any other name is served by it too.")]
    base_url: Annotated[
        str, Field(description="OpenAI-style base address of the gateway, ending in /v1; empty with `llm: none`.")
    ]
    api_key: Annotated[str, Field(description="The token of this run; empty with `llm: none`.")]
    context_length: int | None = None
    focus_topic: str | None = None
    seed: int = 0
    options: Annotated[dict[str, Any], Field(description="The target's `init`.")] = {}


class CompressLine(_Sent):
    """One segment. The program answers `result` or `error` with the same id."""

    type: Literal["compress"] = "compress"
    id: int
    messages: Annotated[
        list[Message],
        Field(
            description="OpenAI chat messages: the list that you returned last time with the new ones appended, or the "
            "new ones alone where you returned a state."
        ),
    ]
    state: Annotated[OpaqueState | None, Field(description="The state that you returned last time.")] = None


class TriggerLine(_Sent):
    """A question, where the program said that it tells when: would it compress this session by itself now?"""

    type: Literal["trigger"] = "trigger"
    id: int
    messages: Annotated[list[Message], Field(description="OpenAI chat messages; they are not to be compressed.")]
    tokens: Annotated[int, Field(description="How many tokens the provider has counted in them.")]


class TurnLine(_Sent):
    """After a result, where the program said that it takes turns: what the user says next."""

    type: Literal["turn"] = "turn"
    id: int
    text: Annotated[str, Field(description="To be sent to the agent; its model's answer is of no interest.")]


class ReadyLine(_Answered):
    """The program can compress."""

    type: Literal["ready"]
    tells_when: Annotated[
        bool, Field(description="The program answers `trigger`: whether it would compress by itself.")
    ] = False
    takes_turns: Annotated[bool, Field(description="The program answers `turn`: its agent goes on.")] = False
    resumable: Annotated[
        bool,
        Field(description="A fresh process can go on from the messages or the state alone: nothing is kept in memory."),
    ] = False

    @property
    def answers(self) -> tuple[str, ...]:
        """What it can be asked beside `compress`."""
        return (*(["trigger"] if self.tells_when else []), *(["turn"] if self.takes_turns else []))


class StepStatus(_Answered):
    """What the program says of itself."""

    degraded: Annotated[bool, Field(description="It fell back to something worse than it is meant to do.")] = False
    error: Annotated[str | None, Field(description="Why.")] = None


class ReportedUsage(_Answered):
    """What the program counted; the gateway's own count is what is reported, and a difference is noted."""

    calls: Annotated[int, Field(ge=0)] = 0
    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0


class ResultLine(_Answered):
    """One segment is compressed: messages, or a state that only the provider can read."""

    type: Literal["result"]
    id: int
    messages: Annotated[list[Message] | None, Field(description="OpenAI chat messages.")] = None
    state: OpaqueState | None = None
    status: StepStatus = StepStatus()
    usage: ReportedUsage | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> ResultLine:
        if (self.messages is None) == (self.state is None):
            raise ValueError("give either messages or state")
        return self


class TriggeredLine(_Answered):
    """The answer to `trigger`."""

    type: Literal["triggered"]
    id: int
    compresses: bool


class TurnedLine(_Answered):
    """The answer to `turn`: the agent has sent its next request."""

    type: Literal["turned"]
    id: int


class ErrorLine(_Answered):
    """The program could not do what the line asked for; it stays ready for the next one."""

    type: Literal["error"]
    id: int | None = None
    message: str


ExchangeLine = (
    StartLine | CompressLine | TriggerLine | TurnLine | ReadyLine | ResultLine | TriggeredLine | TurnedLine | ErrorLine
)
"""Every line of the contract; what the published schema describes."""

_FIRST: TypeAdapter[ReadyLine | ErrorLine] = TypeAdapter(Annotated[ReadyLine | ErrorLine, Field(discriminator="type")])
_WHEN: TypeAdapter[TriggeredLine | ErrorLine] = TypeAdapter(
    Annotated[TriggeredLine | ErrorLine, Field(discriminator="type")]
)
_TURN: TypeAdapter[TurnedLine | ErrorLine] = TypeAdapter(Annotated[TurnedLine | ErrorLine, Field(discriminator="type")])
_NEXT: TypeAdapter[ResultLine | ErrorLine] = TypeAdapter(Annotated[ResultLine | ErrorLine, Field(discriminator="type")])


def _problem(error: ValidationError, text: str, wanted: str) -> str:
    found = error.errors()[0]
    if found["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return f"{wanted} was expected, and this came: {text[:200]}"
    place = ".".join(str(part) for part in found["loc"][1:]) or "the line"
    return f"{place}: {found['msg'].removeprefix('Value error, ')}"


def _read(adapter: TypeAdapter[Any], text: str, wanted: str) -> Any:
    """Return the checked line, or what is wrong with it in one sentence."""
    try:
        value = strict_json(text)
        check_values(value)
    except BadFrame as exc:
        return str(exc)
    except ValueError:
        return f"a line on standard output is not JSON; logs belong on standard error. The line: {text[:200]!r}"
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        return _problem(error, text, wanted)


def answer_to_start(text: str) -> ReadyLine | str:
    """Read the answer to `start`; a text is why the program cannot be used."""
    line = _read(_FIRST, text, 'a line with "type": "ready"')
    if isinstance(line, ErrorLine):
        return f"the command says: {line.message[:2000]}"
    return line if isinstance(line, ReadyLine) else f"the command broke the protocol: {line}"


def answer_to_compress(text: str, number: int, given: Sequence[Message] = ()) -> StepResult | str:
    """Read the answer to `compress` with the given messages; a text is what the program did wrong."""
    line = _read(_NEXT, text, 'a line with "type": "result"')
    if isinstance(line, ErrorLine):
        return f"the command says: {line.message[:2000]}"
    if isinstance(line, str):
        return f"the command broke the protocol: {line}"
    if line.id != number:
        return f"the command broke the protocol: it answered request {line.id} where request {number} was open"
    messages = [] if line.messages is None else read_messages(line.messages, given)
    if isinstance(messages, str):
        return f"the command {messages}"
    return StepResult(
        messages=messages,
        same_object=False,
        degraded=line.status.degraded,
        reason=(line.status.error or "")[:2000],
        state=None,
        opaque=line.state,
        reported_calls=line.usage.calls if line.usage else None,
        returned=line.messages,
    )


def answer_to_trigger(text: str, number: int) -> bool | None:
    """Read the answer to `trigger`; None where it is none."""
    line = _read(_WHEN, text, 'a line with "type": "triggered"')
    return line.compresses if isinstance(line, TriggeredLine) and line.id == number else None


def is_turned(text: str, number: int) -> bool:
    """Read the answer to `turn`."""
    line = _read(_TURN, text, 'a line with "type": "turned"')
    return isinstance(line, TurnedLine) and line.id == number


def read_error(text: str) -> ErrorLine | str:
    """Read a line that should be an error; a text is why it is none."""
    line = _read(_NEXT, text, 'a line with "type": "error"')
    return line if isinstance(line, ErrorLine) else "not an error" if isinstance(line, ResultLine) else str(line)
