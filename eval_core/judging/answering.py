"""The model that answers probes: it sees the compressed state and the question, nothing else."""

from __future__ import annotations

from dataclasses import replace

from eval_core.base.messages import Message
from eval_core.domain.call import Draw, Failed, ModelCall, OpaqueState, Usage
from eval_core.domain.grade import Answer, Unscored
from eval_core.domain.probe import Probe
from eval_core.judging.prompts import as_turns, render, template_digest
from eval_core.models.client import ModelClient
from eval_core.models.settings import Models

_TEMPLATES = ("answer_system.j2", "answer_question.j2")


def state_messages(state: list[Message]) -> tuple[Message, ...]:
    """Build what all questions about a state begin with: instructions, then the state as turns."""
    system, turns = as_turns(state)
    return {"role": "system", "content": render("answer_system.j2", system=system)}, *turns


def _question(probe: Probe) -> Message:
    return {"role": "user", "content": render("answer_question.j2", question=probe.question)}


def answer_messages(state: list[Message], probe: Probe) -> tuple[Message, ...]:
    """Build the prompt: instructions, the state as turns, the question last."""
    return *state_messages(state), _question(probe)


def answer_identity(models: Models) -> dict[str, str]:
    """Return what the fingerprint holds of the model that answers, from its settings alone."""
    return {
        "model": models.answer,
        "temperature": "default" if models.temperature is None else f"{models.temperature:g}",
        "max_tokens": str(models.answer_max_tokens),
        "template": template_digest(*_TEMPLATES),
        **models.identity(models.answer),
    }


_AROUND = 1_000
"""Tokens of instructions and question, at most."""


def answer_room(models: Models) -> int | None:
    """Return how many tokens of a state the answering model takes beside question and answer."""
    window = models.window(models.answer)
    return None if window is None else max(0, window - models.answer_max_tokens - _AROUND)


class ModelAnswerer:
    """Answers through a model."""

    def __init__(self, client: ModelClient) -> None:
        """Take model and sampling parameters from the client's settings."""
        self._client = client
        models = client.models
        self._model, self._temperature, self._max_tokens = models.answer, models.temperature, models.answer_max_tokens
        self._latest: tuple[list[Message], tuple[Message, ...]] | None = None

    @property
    def room(self) -> int | None:
        """How many tokens of a state fit into a question; None where nobody says."""
        return answer_room(self._client.models)

    def call(self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw) -> ModelCall:
        """Return the call that `answer` makes; a dry run counts its tokens."""
        # A dozen questions about one state follow each other.
        if self._latest is None or self._latest[0] is not state:
            self._latest = state, state_messages(state)
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
    return Answer(text=text, **usage.told)
