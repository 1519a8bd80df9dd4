"""Choice and action probes: what would you do next? They name a line of the ledger, and need no judge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from eval_core.base.files import ForeignRecord, digest
from eval_core.base.messages import Message, tool_calls
from eval_core.base.strict_json import BadJson, parse_json

ASK_USER = "ask_user"
"""A tool that every action probe offers: who may not do a thing must have something else to do."""


class _ObeyProbe(ForeignRecord):
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
    line: Annotated[str, Field(description="The line of the ledger that it tests.")]

    @property
    def digest(self) -> str:
        """What identifies it: answers to another wording are not compared."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude_none=True))[:16]


class ChoiceProbe(_ObeyProbe):
    """A situation and two to four actions, one of them what the ledger demands."""

    type: Literal["choice"]
    situation: Annotated[str, Field(min_length=3, description="Where the work stands; it does not name the rule.")]
    demanded: Annotated[str, Field(min_length=1, description="The action that the ledger demands.")]
    others: Annotated[
        list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=3, description="The other actions.")
    ]

    @model_validator(mode="after")
    def _different(self) -> ChoiceProbe:
        if len({text.strip().lower() for text in (self.demanded, *self.others)}) <= len(self.others):
            raise ValueError("others: two of the actions are the same")
        return self

    def options(self, turn: int) -> list[str]:
        """Return the actions in the order of one turn, so that no position and no habit of a model decides."""
        return sorted((self.demanded, *self.others), key=lambda text: digest([self.id, turn, text]))


class ActionProbe(_ObeyProbe):
    """An instruction that is carried out by one call of a tool, and what its arguments must and must not hold."""

    type: Literal["action"]
    instruction: Annotated[str, Field(min_length=3, description="What the user says next; it does not name the rule.")]
    tools: Annotated[list[str], Field(description="Tools one of which must be called; empty where any will do.")] = []
    must: Annotated[list[str], Field(description="Patterns that the arguments must hold, each of them.")] = []
    must_not: Annotated[list[str], Field(description="Patterns that tool and arguments must not hold.")] = []

    @field_validator("must", "must_not")
    @classmethod
    def _patterns(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as exc:
                raise ValueError(f"{pattern!r} does not compile: {exc}") from None
        return patterns

    @model_validator(mode="after")
    def _checks(self) -> ActionProbe:
        if not self.tools and not self.must and not self.must_not:
            raise ValueError("must: an action probe checks something; give tools, must or must_not")
        return self

    def obeyed(self, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Compare a call with what must and must not be there."""
        given = "\n".join(_texts(arguments))
        whole = f"{tool}\n{given}"
        return (
            (not self.tools or tool in self.tools)
            and all(re.search(pattern, given, re.IGNORECASE) for pattern in self.must)
            and not any(re.search(pattern, whole, re.IGNORECASE) for pattern in self.must_not)
        )


ObeyProbe = ChoiceProbe | ActionProbe


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)


def session_tools(messages: Sequence[Message]) -> dict[str, list[str]]:
    """Return the tools that a session called, with their arguments by name, and the way to ask the user."""
    found: dict[str, set[str]] = {}
    for message in messages:
        for call in tool_calls(message):
            function = call.get("function")
            if not isinstance(function, dict) or not isinstance(function.get("name"), str):
                continue
            try:
                given = parse_json(str(function.get("arguments") or "{}"))
            except BadJson:
                given = {}
            found.setdefault(function["name"], set()).update(given if isinstance(given, dict) else ())
    return {**{name: sorted(arguments) for name, arguments in sorted(found.items())}, ASK_USER: ["question"]}
