"""The model that grades: a rubric, the facts, the answer behind marks it cannot forge, and six scores back."""

from __future__ import annotations

import hashlib

from eval_core.files import canonical, digest
from eval_core.judge.agreement import disagreement
from eval_core.judge.grade import Grade, Unscored
from eval_core.judge.parsing import GRADE_SCHEMA, Unusable, parse_grade
from eval_core.judge.template import render, template_digest
from eval_core.messages import Message
from eval_core.model.client import ModelClient
from eval_core.model.outcome import Acceptance, Failed, ModelCall
from eval_core.model.prices import supports_schema
from eval_core.probe.schema import Probe

__all__ = ["ModelJudge", "grade_messages"]

_TEMPLATES = ("grade_system.j2", "grade_user.j2")
_TEMPERATURE = 0.0
_SCHEMA_DIGEST = digest(GRADE_SCHEMA)[:12]


def _nonce(probe: Probe, answer: str) -> str:
    """Return marks that depend on the whole answer: stable for the journal, out of reach for whoever wrote it."""
    content = canonical([probe.model_dump(mode="json", by_alias=True), answer])
    return "MARK" + hashlib.sha256(content).hexdigest()[:24]


def grade_messages(probe: Probe, answer: str, problem: str | None = None) -> tuple[Message, ...]:
    """Build the prompt; `problem` is what was wrong with the reply to the same prompt before."""
    user = render(
        "grade_user.j2",
        kind=probe.type,
        question=probe.question,
        required=[fact.label for fact in probe.required],
        superseded=[" or ".join(fact.values) for fact in probe.superseded],
        nonce=_nonce(probe, answer),
        answer=answer,
        problem=problem,
    )
    return ({"role": "system", "content": render("grade_system.j2")}, {"role": "user", "content": user})


def _problem(text: str) -> str | None:
    result = parse_grade(text)
    return result.problem if isinstance(result, Unusable) else None


class ModelJudge:
    """Grades through a model; a reply that cannot be read is asked for again, and never becomes a zero."""

    def __init__(self, client: ModelClient) -> None:
        """Ask for schema-bound output where the model may give it."""
        self._client = client
        self._model, self._max_tokens = client.models.judge, client.models.judge_max_tokens
        self._schema = supports_schema(self._model)
        self._schema_refused = False

    @property
    def identity(self) -> dict[str, str]:
        """What makes grades comparable."""
        return {
            "model": self._model,
            "temperature": f"{_TEMPERATURE:g}",
            "max_tokens": str(self._max_tokens),
            "rubric": template_digest(*_TEMPLATES),
            "output": f"schema {_SCHEMA_DIGEST}" if self._schema else "text",
            **self._client.models.identity(self._model),
        }

    def call(self, probe: Probe, answer: str, *, run: int) -> ModelCall:
        """Return the call that `grade` makes; a dry run counts its tokens."""
        return ModelCall(
            role="judge",
            model=self._model,
            messages=grade_messages(probe, answer),
            max_tokens=self._max_tokens,
            run=run,
            temperature=_TEMPERATURE,
            response_schema=GRADE_SCHEMA if self._schema and not self._schema_refused else None,
            prefix="judge/rubric",
        )

    async def grade(self, probe: Probe, answer: str, *, fixture: str, run: int) -> Grade | Unscored:
        """Ask for a grade; a reply that cannot be read is asked for again, with what was wrong with it."""
        acceptance = Acceptance(_problem, lambda problem: grade_messages(probe, answer, problem))
        call = self.call(probe, answer, run=run)
        outcome = await self._client.complete(call, acceptance)
        if isinstance(outcome, Failed) and outcome.kind == "bad_request" and call.response_schema is not None:
            # The provider knows the model but not the schema; the rubric asks for the same JSON in words.
            self._schema_refused = True
            outcome = await self._client.complete(self.call(probe, answer, run=run), acceptance)
        if isinstance(outcome, Failed):
            return Unscored(reason=f"no grade ({outcome.kind}): {outcome.message}")
        result = parse_grade(outcome.text)
        if isinstance(result, Unusable):
            return Unscored(reason=f"no grade (malformed): {result.problem}")
        return Grade(
            scores=result.values,
            reason=result.reason,
            flags=disagreement(probe, answer, result.values),
            input_tokens=outcome.usage.input_tokens,
            cached_tokens=outcome.usage.cached_tokens,
            output_tokens=outcome.usage.output_tokens,
            cost_usd=outcome.usage.cost_usd,
        )
