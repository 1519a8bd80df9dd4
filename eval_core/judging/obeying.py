"""Models that choose and act: what they would do next, seeing only the state; graded by comparison.

The call of a tool is asked for in words. Real definitions of tools stand before the state in a provider's cache, so
that every state would be paid for twice, and not every server takes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from eval_core.base.files import digest
from eval_core.base.messages import Message
from eval_core.base.strict_json import BadJson
from eval_core.domain.call import Completion, Draw, Failed, ModelCall, OpaqueState
from eval_core.domain.grade import Answer, Unscored
from eval_core.domain.obey_probe import ChoiceProbe, ObeyProbe
from eval_core.judging.answering import state_messages
from eval_core.judging.grading import forgiving_json, json_objects
from eval_core.judging.prompts import render, template_digest
from eval_core.models.client import ModelClient
from eval_core.models.prices import supports_schema
from eval_core.models.settings import Models
from eval_core.models.transport import wants_marks

_TEMPLATES = ("answer_system.j2", "choice_question.j2", "action_question.j2")
_LETTERS = "ABCD"
_LETTER = re.compile(r"(?<![A-Za-z])([A-D])(?![A-Za-z])")
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"choice": {"type": "string", "enum": list(_LETTERS)}},
    "required": ["choice"],
    "additionalProperties": False,
}
ROOM = {"choice": 100, "action": 400}
_QUOTED = 200
_UNREAD = {"choice": "it names no letter of the list, or several", "action": "it holds no call of a tool"}


def chosen(text: str, count: int) -> str | None:
    """Return the letter of a reply; None where it names none of those offered, or several."""
    text = text.rpartition("</think>")[2]
    named = re.search(r'"choice"\s*:\s*"([A-D])"', text)
    letters = {named[1]} if named else set(_LETTER.findall(text))
    if len(letters) > 1 and (first := re.match(r"\W*([A-D])\b\s*(?:[.):*\n-]|$)", text)):
        letters = {first[1]}  # the letter, and behind it why the others are not taken
    return letters.pop() if len(letters) == 1 and letters <= set(_LETTERS[:count]) else None


def tools_called(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tool calls that a reply writes."""
    for stretch in json_objects(text.rpartition("</think>")[2]):
        try:
            found = forgiving_json(stretch)
        except BadJson:
            continue
        arguments = found.get("arguments", {}) if isinstance(found, dict) else None
        if isinstance(found, dict) and isinstance(found.get("tool"), str) and isinstance(arguments, dict):
            yield found["tool"].rpartition(".")[2], arguments


def _question(probe: ObeyProbe, tools: Mapping[str, list[str]], turn: int, problem: str | None = None) -> Message:
    if isinstance(probe, ChoiceProbe):
        options = list(zip(_LETTERS, probe.options(turn), strict=False))
        text = render("choice_question.j2", situation=probe.situation, options=options, problem=problem)
    else:
        text = render("action_question.j2", instruction=probe.instruction, tools=sorted(tools.items()), problem=problem)
    return {"role": "user", "content": text}


def obey_identity(models: Models, model: str) -> str:
    """Return what makes the replies of a model comparable with those of another day."""
    heat = "default" if models.temperature is None else f"{models.temperature:g}"
    return digest([heat, template_digest(*_TEMPLATES), models.identity(model)])[:16]


def obey_call(
    models: Models, model: str, state: list[Message], probe: ObeyProbe, tools: Mapping[str, list[str]], *, draw: Draw
) -> ModelCall:
    """Return the call that asks one probe; a dry run counts its tokens."""
    front = state_messages(state)
    return ModelCall(
        role="answer",
        model=model,
        messages=(*front, _question(probe, tools, _turn(draw))),
        max_tokens=ROOM[probe.type],
        draw=draw,
        temperature=models.temperature,
        shared=len(front),
    )


def _turn(draw: Draw) -> int:
    """Return the turn that places the options: another one for each run, the same on both sides."""
    return draw.run + draw.repeat


class ModelObeyer:
    """Asks one model, through the client that everything goes through."""

    def __init__(self, client: ModelClient, model: str) -> None:
        """Use a schema where the model takes one, and where it does not part the call from its cached state."""
        self._client, self.model = client, model
        self.identity = obey_identity(client.models, model)
        self._schema = supports_schema(model) and not wants_marks(model)

    async def obey(
        self, state: list[Message] | OpaqueState, probe: ObeyProbe, tools: Mapping[str, list[str]], *, draw: Draw
    ) -> tuple[bool | None, Answer | Unscored]:
        """Ask once; a reply that cannot be read is asked for again, and is no answer if it stays so."""
        opaque = isinstance(state, OpaqueState)
        call = obey_call(
            self._client.models, self.model, [] if isinstance(state, OpaqueState) else state, probe, tools, draw=draw
        )
        if isinstance(state, OpaqueState):
            call = replace(call, front=state, shared=0)
        schema = isinstance(probe, ChoiceProbe) and self._schema and not opaque
        outcome = await self._client.complete(replace(call, response_schema=_SCHEMA) if schema else call)
        if schema and isinstance(outcome, Failed) and outcome.kind == "bad_request":
            self._schema = False
            outcome = await self._client.complete(call)
        if isinstance(outcome, Completion) and self._read(probe, outcome.text, draw) is None:
            # Not the client's retry: a model that writes no calls is no reason to end a run whose answers are fine.
            again = _question(probe, tools, _turn(draw), _UNREAD[probe.type])
            outcome = await self._client.complete(replace(call, messages=(*call.messages[:-1], again)))
        if isinstance(outcome, Failed):
            return None, Unscored(
                code=outcome.kind, missing="answer", reason=f"no answer ({outcome.kind}): {outcome.message}"
            )
        return self._read(probe, outcome.text, draw), Answer(text=outcome.text[:_QUOTED], **outcome.usage.told)

    def _read(self, probe: ObeyProbe, text: str, draw: Draw) -> bool | None:
        """Tell whether a reply is what is demanded; None where it cannot be read."""
        if isinstance(probe, ChoiceProbe):
            options = probe.options(_turn(draw))
            letter = chosen(text, len(options))
            return None if letter is None else options[_LETTERS.index(letter)] == probe.demanded
        called = next(tools_called(text), None)
        return None if called is None else probe.obeyed(*called)
