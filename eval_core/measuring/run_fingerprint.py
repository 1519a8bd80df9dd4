"""The fingerprint of a run, from configuration and content: nothing is started to know it."""

from __future__ import annotations

from collections.abc import Sequence

from eval_core.base.tokens import TOKENIZER
from eval_core.domain.case import Case
from eval_core.domain.fingerprint import INSTRUMENT_VERSION, Fingerprint
from eval_core.domain.measurement import SCHEMA_VERSION
from eval_core.judging.fact_judge import FactJudge
from eval_core.models.settings import Models

_COMPRESSOR = {"model": "offline:rules"}
_ANSWERER = {"model": "offline:extractive"}  # how lines are picked is part of the instrument version


def make_fingerprint(cases: Sequence[Case], models: Models | None, focus_topic: str | None = None) -> Fingerprint:
    """Return what must be equal for two measurements to be compared; without models, that of an offline run."""
    answer, judge = _answerer(models), _judge(models)
    return Fingerprint(
        schema_version=SCHEMA_VERSION,
        fixtures={case.fixture.name: case.fixture.digest for case in cases},
        probes={case.fixture.name: case.bank.digest for case in cases},
        private={
            case.fixture.name: case.private.digest for case in cases if case.private is not None and case.private.probes
        },
        rubric=judge.pop("rubric", "none"),
        answer_template=answer.pop("template", "none"),
        compressor_model=_compressor(models),
        answer_model=answer,
        judge_model=judge,
        focus_topic=focus_topic,
        tokenizer=TOKENIZER,
        instrument=INSTRUMENT_VERSION,
    )


def _compressor(models: Models | None) -> dict[str, str]:
    if models is None:
        return dict(_COMPRESSOR)
    name = models.compressor
    return {"model": name, "max_tokens": str(models.compressor_max_tokens), **models.identity(name)}


def _answerer(models: Models | None) -> dict[str, str]:
    from eval_core.judging.answering import answer_identity

    return dict(_ANSWERER) if models is None or models.offline_judge else answer_identity(models)


def _judge(models: Models | None) -> dict[str, str]:
    from eval_core.judging.grading import judge_identity

    return dict(FactJudge().identity) if models is None or models.offline_judge else judge_identity(models)
