"""The first calls of a run, before it spends money: every model must answer, and the judge must grade sensibly.

One short compression, one answer, and three grades of answers whose order is plain. The answer is one of the controls
and the grades are part of the calibration, so where those are measured anyway these calls are not paid for twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.base.tokens import count_bytes, count_text
from eval_core.compressors.summariser import Request, Section, prompt
from eval_core.domain.call import Draw, Failed, FailureKind, ModelCall
from eval_core.domain.case import Case
from eval_core.domain.grade import Answerer, Grade, Judge, Unscored
from eval_core.judging.answering import ModelAnswerer
from eval_core.judging.calibration import GradedAnswer, Group, calibration_set
from eval_core.measuring.controls import CONTROL
from eval_core.models.client import ModelClient
from eval_core.models.health import remedy
from eval_core.models.refusals import said_instead
from eval_core.models.settings import Models

_PREFLIGHT = Draw(control=True, repeat=1)
_ATTEMPT_SECONDS = 75.0
# All within five minutes, also where every attempt hangs; a passing fault is survived as in the run itself.
_AGAIN: Mapping[FailureKind, int] = MappingProxyType(
    {
        "rate_limit": 5, "server": 4, "connection": 4, "timeout": 2, "empty": 2, "malformed": 2, "truncated": 2,
        "refusal": 2, "unknown": 2, "auth": 2, "payment": 2, "not_found": 2, "bad_request": 2, "context_length": 1,
    }
)  # fmt: skip
_DEADLINE = 150.0
_SESSION: tuple[Message, ...] = (
    {"role": "user", "content": "The nightly export fails since yesterday. Please find out why."},
    {
        "role": "assistant",
        "content": "exports/nightly.py line 42 reads EXPORT_BUCKET, which was renamed to BUCKET_URL.",
    },
    {"role": "user", "content": "Good. Fix it and run the tests."},
    {"role": "assistant", "content": "Fixed in exports/nightly.py; 17 tests pass. Next: deploy on Thursday."},
)
_SECTIONS = (Section("state", "State", "what was done and what comes next"),)


def compressor_call(models: Models) -> ModelCall:
    request = Request(_SESSION, None, _SECTIONS, 1_000)
    return ModelCall(
        role="compressor",
        model=models.compressor,
        messages=tuple(prompt(request)),
        max_tokens=models.compressor_max_tokens,
        draw=_PREFLIGHT,
    )


def plain_order() -> tuple[Group, tuple[GradedAnswer, ...]]:
    """Return a calibration probe with a right, a partial and a worthless answer, best first."""
    group = calibration_set().groups[0]
    best = {answer.rank: answer for answer in reversed(group.answers)}
    return group, tuple(best[rank] for rank in sorted(best, reverse=True))


@dataclass(frozen=True)
class _Graded:
    names: tuple[str, ...]
    results: tuple[Grade | Unscored, ...]

    def unusable(self) -> str | None:
        return next((result.reason for result in self.results if isinstance(result, Unscored)), None)

    def misranked(self) -> str | None:
        scores = [result.overall for result in self.results if isinstance(result, Grade)]
        if scores == sorted(scores, reverse=True) and scores[0] > scores[-1]:
            return None
        return ", ".join(f"{name} answer {score:.1f}" for name, score in zip(self.names, scores, strict=True))


async def _grades(judge: Judge) -> _Graded:
    group, answers = plain_order()
    results = await asyncio.gather(
        *(judge.grade(group.probe, answer.text, fixture="calibration", draw=Draw()) for answer in answers)
    )
    return _Graded(tuple(answer.name for answer in answers), tuple(results))


async def _compression(client: ModelClient) -> str | None:
    """Return why there is no summary; a refusal in plain text, or next to nothing, is none unless it came only once."""
    call, said, times = compressor_call(client.models), "", 1 + _AGAIN["refusal"]
    for repeat in range(1, 1 + times):
        outcome = await client.complete(replace(call, draw=replace(call.draw, repeat=repeat)))
        if isinstance(outcome, Failed):
            return f"no summary ({outcome.kind}): {outcome.message}"
        said = said_instead(outcome.text, outcome.refusal).rstrip(".")
        if not said:
            return None
    return f"no summary (refusal): {call.model}: the model refused {times} times: {said}; {remedy('refusal', '')}"


async def _answer(client: ModelClient, answerer: Answerer, case: Case) -> str | None:
    """Return why there is no answer; one that is cut off each time is none, though in the run it would be graded."""
    assert isinstance(answerer, ModelAnswerer)
    asked = answerer.call([], case.bank.probes[0], fixture=f"{case.fixture.name}/empty", draw=CONTROL)
    outcome = await client.complete(asked)
    return f"no answer ({outcome.kind}): {outcome.message}" if isinstance(outcome, Failed) else None


async def preflight(
    client: ModelClient,
    answerer: Answerer,
    judge: Judge,
    case: Case,
    *,
    compresses: bool,
    trust_judge: bool,
    judged: bool = True,
) -> str | None:
    """Return why the run should spend nothing, or None. A judge that misranks plain answers is refused.

    Where no model is to judge, none answers either, and only the compressor's is tried.
    """
    patient = client.retry
    seconds = min(patient.attempt_seconds or _ATTEMPT_SECONDS, _ATTEMPT_SECONDS)
    again = {kind: min(times, patient.again.get(kind, times)) for kind, times in _AGAIN.items()}
    client.retry = replace(patient, attempt_seconds=seconds, deadline_seconds=_DEADLINE, again=again)
    client.gate.patient = False  # everything else waits for these few calls
    client.count = count_bytes
    try:
        problem, answered, graded = await asyncio.gather(
            _compression(client) if compresses else _nothing(),
            _answer(client, answerer, case) if judged else _nothing(),
            _grades(judge) if judged else _ungraded(),
        )
    finally:
        client.retry = patient
        client.gate.patient = True
        client.count = count_text
    unusable = graded.unusable()
    reason = problem or answered or unusable
    if reason is not None:
        role = "compressor" if problem else "answer" if answered else "judge"
        return f"the {role} model did not pass the check before the run: {reason}"
    if judged and not trust_judge and (order := graded.misranked()) is not None:
        raise UserError(
            f"the judge {judge.identity['model']} is not fit to decide: it graded three answers from right to wrong as "
            f"{order}. Choose another --judge-model, or continue anyway with models.trust_judge "
            "(`compression-eval judge calibrate` shows more cases)"
        )
    return None


async def _nothing() -> None:
    return None


async def _ungraded() -> _Graded:
    return _Graded((), ())
