"""The model judge: rubric prompt, reply parsing into six scores, and the check of the grade against facts."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eval_core.base.files import canonical, digest
from eval_core.base.messages import Message
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.call import Acceptance, Draw, Failed, ModelCall
from eval_core.domain.grade import DIMENSIONS, Grade, Unscored
from eval_core.domain.probe import Probe
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds, states_superseded
from eval_core.judging.prompts import render, template_digest
from eval_core.models.client import ModelClient
from eval_core.models.prices import supports_schema
from eval_core.models.settings import Models

# Judge against facts: where the two tell different stories, a reader is told.

BOUND = 0.5


def fact_share(probe: Probe, answer: str) -> tuple[int, int, int]:
    """Count the facts that an answer states, those that it should, and the superseded values it gives as current."""
    text = Haystack.of(answer)
    found = sum(1 for fact in probe.required if holds(fact, text))
    stale = sum(1 for fact in probe.superseded if states_superseded(fact, text))
    return found, len(probe.required), stale


def disagreement(probe: Probe, answer: str, scores: Mapping[str, float]) -> list[str]:
    """Return a flag when the judged accuracy and the share of facts are far apart."""
    found, wanted, stale = fact_share(probe, answer)
    share = found / wanted
    if probe.superseded:
        share *= 1 - stale / len(probe.superseded) / 2
    gap = scores["accuracy"] / 5 - share
    if abs(gap) < BOUND:
        return []
    old = f", {stale} superseded stated as current" if stale else ""
    way = "higher" if gap > 0 else "lower"
    return [f"judge {way} than the facts: accuracy {scores['accuracy']:g} of 5, but {found} of {wanted} facts{old}"]


# A judge's reply read as scores: tolerant of dress, strict about content.

_KEYS = {
    "accuracy": "accuracy",
    "context_awareness": "context",
    "artifact_trail": "artifact",
    "completeness": "complete",
    "continuity": "continuity",
    "instruction_following": "instruction",
}
"""Dimension to its key in a reply: one token each, because output is the dearest part of a grade."""
_STEPS = [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]
GRADE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "description": "At most 25 words."},
        # Spelt out, not as a range: not every provider takes a minimum and a maximum in a schema.
        **{key: {"type": "number", "enum": _STEPS} for key in _KEYS.values()},
    },
    "required": ["reason", *_KEYS.values()],
    "additionalProperties": False,
}
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:/\s*5(?:\.0)?)?\s*")
_LONGEST_REASON = 600


@dataclass(frozen=True)
class Scores:
    """Six scores and the reason."""

    values: dict[str, float]
    reason: str


@dataclass(frozen=True)
class Unusable:
    """Why a reply cannot be used."""

    problem: str


def json_objects(text: str) -> list[str]:
    """Return the outermost {...} stretches, heeding strings; the last may be unclosed."""
    found, depth, start, quoted, escaped = [], 0, 0, False, False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            escaped = char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = depth > 0  # outside of an object a quotation mark is prose
        elif char == "{":
            start = at if depth == 0 else start
            depth += 1
        elif char == "}" and depth:
            depth -= 1
            if depth == 0:
                found.append(text[start : at + 1])
    if depth:
        found.append(text[start:])
    return found


def forgiving_json(text: str) -> Any:
    """Read JSON; commas before a closing bracket are forgiven, outside of strings."""
    try:
        return parse_json(text)
    except BadJson:
        pieces = re.split(r'("(?:[^"\\]|\\.)*")', text)
        pieces[::2] = [_TRAILING_COMMA.sub(r"\1", piece) for piece in pieces[::2]]
        return parse_json("".join(pieces))


def _score(name: str, value: Any) -> float | str:
    """Return the score, or what is wrong with it."""
    if isinstance(value, dict) and "score" in value:
        value = value["score"]
    if isinstance(value, str) and (form := _NUMBER.fullmatch(value)):
        value = float(form.group(1))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{name} is {json.dumps(value)[:40]}, not a number"
    if not math.isfinite(value) or not 0 <= value <= 5:
        return f"{name} is {value}, outside of 0 to 5"
    return float(value)


def _scores(found: dict[str, Any]) -> Scores | Unusable:
    named = {str(name).strip().lower().replace(" ", "_").replace("-", "_"): value for name, value in found.items()}
    inner = named.get("scores")
    if isinstance(inner, dict):
        named = {**named, **{str(name).strip().lower(): value for name, value in inner.items()}}
    named = {**{name: named[key] for name, key in _KEYS.items() if key in named}, **named}
    missing = [_KEYS[name] for name in DIMENSIONS if name not in named]
    if missing:
        return Unusable(f"the JSON lacks {', '.join(missing)}")
    values: dict[str, float] = {}
    for name in DIMENSIONS:
        score = _score(_KEYS[name], named[name])
        if isinstance(score, str):
            return Unusable(score)
        values[name] = score
    reason = next((named[name] for name in ("reason", "rationale", "explanation") if name in named), "")
    return Scores(values, str(reason)[:_LONGEST_REASON])


def parse_grade(text: str) -> Scores | Unusable:
    """Find the grade in a reply: in fences, amid prose, after thinking aloud; never guess a missing part."""
    text = _THINKING.sub("", text)
    stretches = json_objects(text)
    if not stretches:
        return Unusable("it holds no JSON object")
    problem: Unusable | None = None
    usable: list[Scores] = []
    for stretch in stretches:
        try:
            found = forgiving_json(stretch)
        except BadJson as exc:
            cut = not stretch.rstrip().endswith("}")
            problem = Unusable("the JSON is cut off" if cut else f"broken JSON: {str(exc)[:80]}")
            continue
        result = _scores(found) if isinstance(found, dict) else Unusable("it holds no JSON object")
        if isinstance(result, Scores):
            usable.append(result)
        else:
            problem = result
    if not usable:
        return problem or Unusable("it holds no JSON object")
    if any(grade.values != usable[0].values for grade in usable):
        return Unusable("it holds several different grades")
    return usable[-1]


# The model that grades: a rubric, the facts, the answer behind marks it cannot forge, and six scores back.

_TEMPLATES = ("grade_system.j2", "grade_user.j2")
_TEMPERATURE = 0.0
_SCHEMA_DIGEST = digest(GRADE_SCHEMA)[:12]


def _nonce(probe: Probe, answer: str) -> str:
    """Return marks that depend on the whole answer: stable for the journal, out of reach for whoever wrote it."""
    # Without what only some probes have: the marks of all others stay, and with them the replies that are kept.
    unset = {name for name in ("line", "established") if getattr(probe, name) is None}
    content = canonical([probe.model_dump(mode="json", by_alias=True, exclude=unset), answer])
    return "MARK" + hashlib.sha256(content).hexdigest()[:12]


def example_replies() -> list[str]:
    """Return the replies that the rubric shows the judge as examples; its own will be about as long."""
    return [line for line in render("grade_system.j2").splitlines() if line.startswith("{") and "<" not in line]


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
    user = f"{probe.established}\n\n{user}" if probe.established else user
    return ({"role": "system", "content": render("grade_system.j2")}, {"role": "user", "content": user})


def _problem(text: str) -> str | None:
    result = parse_grade(text)
    return result.problem if isinstance(result, Unusable) else None


def judge_identity(models: Models) -> dict[str, str]:
    """Return what the fingerprint holds of the model that judges, from its settings alone."""
    return {
        "model": models.judge,
        "temperature": f"{_TEMPERATURE:g}",
        "max_tokens": str(models.judge_max_tokens),
        "rubric": template_digest(*_TEMPLATES),
        "output": f"schema {_SCHEMA_DIGEST}" if supports_schema(models.judge) else "text",
        **models.identity(models.judge),
    }


class ModelJudge:
    """Grades through a model; a reply that cannot be read is asked for again, and never becomes a zero."""

    def __init__(self, client: ModelClient) -> None:
        """Ask for schema-bound output where the model may give it."""
        self._client = client
        self._model, self._max_tokens = client.models.judge, client.models.judge_max_tokens
        self._schema = supports_schema(self._model)
        self._schema_refused = self._schema_taken = False

    @property
    def identity(self) -> dict[str, str]:
        """What makes grades comparable."""
        return judge_identity(self._client.models)

    def call(self, probe: Probe, answer: str, *, draw: Draw) -> ModelCall:
        """Return the call that `grade` makes; a dry run counts its tokens."""
        return ModelCall(
            role="judge",
            model=self._model,
            messages=grade_messages(probe, answer),
            max_tokens=self._max_tokens,
            draw=draw,
            temperature=_TEMPERATURE,
            response_schema=GRADE_SCHEMA if self._schema and not self._schema_refused else None,
            shared=1,
            private=probe.private,
        )

    async def grade(self, probe: Probe, answer: str, *, fixture: str, draw: Draw) -> Grade | Unscored:
        """Ask for a grade; a reply that cannot be read is asked for again, with what was wrong with it."""
        acceptance = Acceptance(_problem, lambda problem: grade_messages(probe, answer, problem))
        call = self.call(probe, answer, draw=draw)
        outcome = await self._client.complete(call, acceptance)
        if isinstance(outcome, Failed) and outcome.kind == "bad_request" and call.response_schema is not None:
            # The provider knows the model but not the schema; the rubric asks for the same JSON in words.
            self._schema_refused = not self._schema_taken
            outcome = await self._client.complete(replace(call, response_schema=None), acceptance)
        elif not isinstance(outcome, Failed):
            self._schema_taken |= call.response_schema is not None
        if isinstance(outcome, Failed):
            reason = f"no grade ({outcome.kind}): {outcome.message}"
            return Unscored(code=outcome.kind, missing="grade", reason=reason)
        result = parse_grade(outcome.text)
        if isinstance(result, Unusable):
            return Unscored(code="malformed", missing="grade", reason=f"no grade (malformed): {result.problem}")
        return Grade(
            scores=result.values,
            reason=result.reason,
            flags=disagreement(probe, answer, result.values),
            **outcome.usage.told,
        )
