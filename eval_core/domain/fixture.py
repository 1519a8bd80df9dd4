"""The fixture: one recorded session, as stored in `fixtures/<name>.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from eval_core.base.errors import UserError
from eval_core.base.files import digest, parse, pretty, read_json
from eval_core.base.messages import ROLES, Message, tool_calls

__all__ = ["ALLOW_FILE", "ROLES", "Fixture", "dump_fixture", "fixture_files", "load_fixture", "message_problem"]

NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,79}$"
MIN_MESSAGES = 4
ALLOW_FILE = "allow.json"


def message_problem(messages: list[Message]) -> str | None:
    """Return the first thing a provider would refuse in a message list, or None."""
    open_calls: dict[str, int] = {}
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in ROLES:
            return f"messages[{index}].role: {role!r} is not one of {', '.join(ROLES)}"
        if role == "tool":
            call = message.get("tool_call_id")
            if not isinstance(call, str) or call not in open_calls:
                return (
                    f"messages[{index}].tool_call_id: {call!r} answers no tool call before it; "
                    "drop the message or restore the call"
                )
            del open_calls[call]
        elif open_calls:
            call, at = next(iter(open_calls.items()))
            return f"messages[{at}].tool_calls: {call!r} is not answered before messages[{index}]"
        content = message.get("content")
        if not isinstance(content, str | list | None):
            return f"messages[{index}].content: must be text, a list of parts or null, not {type(content).__name__}"
        if isinstance(content, list) and not all(isinstance(part, str | dict) for part in content):
            return f"messages[{index}].content: parts must be text or objects"
        if content is None and role in ("system", "user", "tool"):
            return f"messages[{index}].content: null is only allowed for an assistant that calls tools"
        if not isinstance(message.get("tool_calls") or [], list):
            return f"messages[{index}].tool_calls: must be a list"
        for call in tool_calls(message):
            if not (
                isinstance(call, dict) and isinstance(call.get("id"), str) and isinstance(call.get("function"), dict)
            ):
                return f"messages[{index}].tool_calls: each call needs an id (text) and a function (an object)"
            open_calls[call["id"]] = index
    if open_calls:
        call, at = next(iter(open_calls.items()))
        return f"messages[{at}].tool_calls: {call!r} is never answered"
    return None


class Fixture(BaseModel):
    """A recorded session and what is needed to compress it again."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    json_schema: Annotated[str | None, Field(alias="$schema", exclude=True)] = None
    name: Annotated[str, Field(pattern=NAME_PATTERN, description="Equal to the file's name without .json.")]
    description: Annotated[str, Field(description="One or two sentences: what happens in the session.")] = ""
    model: Annotated[str, Field(description="The model that the session was recorded with.")] = "unknown"
    context_length: Annotated[int, Field(gt=0, description="That model's context window in tokens.")] = 200_000
    messages: Annotated[list[dict[str, Any]], Field(description="OpenAI chat messages, tool pairs whole.")]
    segments: Annotated[
        list[int],
        Field(description="Exclusive end indexes of earlier segments; a compression happens at each, then at the end."),
    ] = []
    notes: Annotated[str, Field(description="Where the session came from and what was changed in it.")] = ""
    truncated_to: Annotated[int | None, Field(description="Index at which a longer session was cut.")] = None

    @model_validator(mode="after")
    def _whole(self) -> Fixture:
        if len(self.messages) < MIN_MESSAGES:
            raise ValueError(
                f"messages: {len(self.messages)} messages are too few to compress; at least {MIN_MESSAGES} are needed"
            )
        if problem := message_problem(self.messages):
            raise ValueError(problem)
        previous = 0
        for cut in self.segments:
            if not previous < cut < len(self.messages):
                raise ValueError(f"segments: {cut} must lie between {previous} and {len(self.messages)}, increasing")
            if self.messages[cut].get("role") == "tool":
                raise ValueError(f"segments: {cut} cuts a tool call from its answer")
            previous = cut
        return self

    @property
    def cuts(self) -> list[int]:
        """The exclusive ends of all segments, the last one being the end of the session."""
        return [*self.segments, len(self.messages)]

    @property
    def digest(self) -> str:
        """The sha256 that identifies the session's content in fingerprints."""
        return digest(self.model_dump(mode="json"))


def fixture_files(folder: Path) -> list[Path]:
    """Return the fixture files of a folder; the allow list of the audit lies beside them."""
    return sorted(path for path in folder.glob("*.json") if path.name != ALLOW_FILE)


def load_fixture(path: Path) -> Fixture:
    """Read and check one fixture file."""
    fixture = parse(Fixture, read_json(path), str(path))
    if path.stem != fixture.name:
        raise UserError(f"{path}: name: {fixture.name!r} should equal the file's name, {path.stem!r}")
    return fixture


def dump_fixture(fixture: Fixture) -> str:
    """Return the file text of a fixture; a reference to its schema, which editors follow, is kept."""
    body = fixture.model_dump(mode="json", exclude_none=True)
    if not fixture.segments:
        body.pop("segments")
    return pretty({"$schema": fixture.json_schema, **body} if fixture.json_schema else body)
