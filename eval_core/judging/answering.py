"""The model that answers probes: it sees the compressed state and the question, nothing else.

Several questions about one state can share a call (`questions_per_call`), where that does not change the scores.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from eval_core.base.messages import Message
from eval_core.domain.call import Acceptance, Draw, Failed, ModelCall, OpaqueState, Usage
from eval_core.domain.grade import Answer, Unscored
from eval_core.domain.probe import Probe
from eval_core.judging.prompts import as_turns, render, template_digest
from eval_core.models.client import ModelClient
from eval_core.models.settings import Models

__all__ = ["ModelAnswerer", "answer_messages", "group_messages", "grouped", "split_answers"]

_TEMPLATES = ("answer_system.j2", "answer_question.j2")
_GROUP_TEMPLATE = "answer_questions.j2"
_UNREADABLE = ("malformed", "truncated", "empty")
_NUMBER = re.compile(r"^[ \t*#]*\[\[(\d{1,2})\]\][ \t*:]*$", re.MULTILINE)


def _state_messages(state: list[Message]) -> tuple[Message, ...]:
    """Build what all questions about a state begin with: instructions, then the state as turns."""
    system, turns = as_turns(state)
    return {"role": "system", "content": render("answer_system.j2", system=system)}, *turns


def _question(probe: Probe) -> Message:
    return {"role": "user", "content": render("answer_question.j2", question=probe.question)}


def answer_messages(state: list[Message], probe: Probe) -> tuple[Message, ...]:
    """Build the prompt: instructions, the state as turns, the question last."""
    return *_state_messages(state), _question(probe)


def _questions(probes: Sequence[Probe], problem: str | None = None) -> Message:
    asked = [probe.question for probe in probes]
    return {"role": "user", "content": render(_GROUP_TEMPLATE, questions=asked, problem=problem)}


def group_messages(state: list[Message], probes: Sequence[Probe]) -> tuple[Message, ...]:
    """Build the prompt for several probes: as for one, with all questions at the end."""
    return *_state_messages(state), _questions(probes)


def grouped(probes: Sequence[Probe], size: int) -> list[list[Probe]]:
    """Split probes into those that share a call; private ones share none with others, whose answers are not sealed."""
    sorts = ([probe for probe in probes if probe.private is private] for private in (False, True))
    return [some[at : at + size] for some in sorts for at in range(0, len(some), size)]


def split_answers(text: str, count: int) -> list[str] | str:
    """Return the answers of one reply in the order of the questions, or what is wrong with it."""
    _, *pieces = _NUMBER.split(text)
    numbers, answers = [int(number) for number in pieces[::2]], [answer.strip() for answer in pieces[1::2]]
    if numbers != list(range(1, count + 1)):
        given = ", ".join(f"[[{number}]]" for number in numbers) or "none"
        return f"it must hold the lines [[1]] to [[{count}]] once each, in this order; it holds {given}"
    empty = [f"[[{number}]]" for number, answer in zip(numbers, answers, strict=True) if not answer]
    return f"there is no answer below {' and '.join(empty)}" if empty else answers


def answer_identity(models: Models) -> dict[str, str]:
    """Return what the fingerprint holds of the model that answers, from its settings alone."""
    several = models.questions_per_call > 1
    templates = (*_TEMPLATES, _GROUP_TEMPLATE) if several else _TEMPLATES
    return {
        "model": models.answer,
        "temperature": "default" if models.temperature is None else f"{models.temperature:g}",
        "max_tokens": str(models.answer_max_tokens),
        "template": template_digest(*templates),
        **({"questions_per_call": str(models.questions_per_call)} if several else {}),
        **models.identity(models.answer),
    }


class ModelAnswerer:
    """Answers through a model."""

    def __init__(self, client: ModelClient) -> None:
        """Take model and sampling parameters from the client's settings."""
        self._client = client
        models = client.models
        self._model, self._temperature, self._max_tokens = models.answer, models.temperature, models.answer_max_tokens
        self._latest: tuple[list[Message], tuple[Message, ...]] | None = None

    @property
    def identity(self) -> dict[str, str]:
        """What makes answers comparable."""
        return answer_identity(self._client.models)

    def call(self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw) -> ModelCall:
        """Return the call that `answer` makes; a dry run counts its tokens."""
        # A dozen questions about one state follow each other.
        if self._latest is None or self._latest[0] is not state:
            self._latest = state, _state_messages(state)
        messages = *self._latest[1], _question(probe)
        return ModelCall(
            role="answer",
            model=self._model,
            messages=messages,
            max_tokens=self._max_tokens,
            draw=draw,
            temperature=self._temperature,
            shared=len(messages) - 1,
            private=probe.private,
        )

    async def answer(self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw) -> Answer | Unscored:
        """Ask the model."""
        return await self._ask(self.call(state, probe, fixture=fixture, draw=draw))

    @property
    def questions_per_call(self) -> int:
        """How many probes it answers in one call."""
        return self._client.models.questions_per_call

    async def answer_together(
        self, state: list[Message], probes: Sequence[Probe], *, fixture: str, draw: Draw
    ) -> list[Answer | Unscored]:
        """Ask several questions in one call; where the reply cannot be split into answers, ask them one by one."""
        single = self.call(state, probes[0], fixture=fixture, draw=draw)
        before, count = single.messages[:-1], len(probes)

        def problem(text: str) -> str | None:
            found = split_answers(text, count)
            return found if isinstance(found, str) else None

        outcome = await self._client.complete(
            replace(single, messages=(*before, _questions(probes)), max_tokens=count * single.max_tokens),
            Acceptance(problem, lambda why: (*before, _questions(probes, why))),
        )
        if isinstance(outcome, Failed) and outcome.kind not in _UNREADABLE:
            return [_unanswered(outcome)] * count
        answers = split_answers(outcome.text, count)
        if isinstance(answers, str):
            return [await self.answer(state, probe, fixture=fixture, draw=draw) for probe in probes]
        return [_answer(text, Usage() if at else outcome.usage) for at, text in enumerate(answers)]

    async def answer_opaque(self, state: OpaqueState, probe: Probe, *, fixture: str, draw: Draw) -> Answer | Unscored:
        """Ask the model that can read the state, with the state in front."""
        return await self._ask(replace(self.call([], probe, fixture=fixture, draw=draw), front=state, shared=0))

    async def _ask(self, call: ModelCall) -> Answer | Unscored:
        outcome = await self._client.complete(call)
        if isinstance(outcome, Failed) and outcome.kind == "truncated" and outcome.text.strip():
            # Longer than it was asked to be: what was said can be graded, and is paid for.
            return _answer(outcome.text, outcome.usage)
        if isinstance(outcome, Failed):
            return _unanswered(outcome)
        return _answer(outcome.text, outcome.usage)


def _unanswered(failed: Failed) -> Unscored:
    reason = f"no answer ({failed.kind}): {failed.message}"
    return Unscored(code=failed.kind, missing="answer", reason=reason)


def _answer(text: str, usage: Usage) -> Answer:
    return Answer(
        text=text,
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=usage.cost_usd,
    )
