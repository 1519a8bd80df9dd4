"""A compression that stays at the provider: asked through the same API, and never taken for a loss of facts."""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
from pathlib import Path

import pytest
import small

from eval_core.domain.call import Completion, Draw, ModelCall, OpaqueState, Usage
from eval_core.domain.case import Cell
from eval_core.domain.compression import Compression, Outcome, Step
from eval_core.domain.grade import Grade, Unscored
from eval_core.domain.record import RunRecord
from eval_core.judging.answering import ModelAnswerer
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.execute import Executor
from eval_core.models.budget import worst_tokens
from eval_core.models.client import ModelClient
from eval_core.models.journal import call_key
from eval_core.models.settings import Models, Secret
from eval_core.sandbox.child.bridge import open_bridge
from eval_core.sandbox.gateway import Gateway
from eval_core.sandbox.protocol.dialect import ModelReply
from eval_core.sandbox.protocol.openai_responses import OpenAICompact

SEALED = OpenAICompact().answer(ModelReply("m", "the retry limit is 7, in uploader/backoff.py"))["output"]
STATE = OpaqueState("openai-responses", SEALED)


class Sealed:
    """A compressor whose result nobody but the provider can read."""

    name = "sealed"

    async def compress(self, fixture, *, run, seed, focus_topic=None, log=None):
        return Compression(Outcome.OK, steps=(Step([], 5_000, 40, 0.1, opaque=STATE),))


def _run(answerer, case) -> RunRecord:
    executor = Executor(Sealed(), answerer, FactJudge())
    return asyncio.run(executor.cell(Cell(case, 0, True)))


def test_without_a_model_nothing_is_scored_and_nothing_is_called_lost():
    record = _run(ExtractiveAnswerer(), small.cases()[0])
    assert record.ok
    assert not record.visible
    assert record.opaque == STATE
    assert (record.census.total, record.structure, record.verbatim, record.refetch_tokens) == ({}, {}, [], 0)
    assert record.tokens_after == 40
    for probe in record.probes.values():
        assert probe.facts == []
        assert math.isnan(probe.retention)
        assert isinstance(probe.result, Unscored)
        assert "only be read by its provider" in probe.result.reason
    assert RunRecord.model_validate(json.loads(record.model_dump_json())) == record


def test_the_answerer_asks_through_responses_with_the_state_in_front():
    """The provider is a gateway, which reads what its own compact endpoint sealed."""
    case = small.cases()[0]
    heard: list[ModelCall] = []

    async def complete(call: ModelCall) -> Completion:
        heard.append(call)
        return Completion("It is 7.", Usage(50, 0, 5, 0.0), "served", 0.0)

    async def main(folder: Path) -> RunRecord:
        gateway = Gateway(model="served", complete=complete, draw=Draw())
        async with gateway.serve(folder) as socket:
            base = f"http://127.0.0.1:{open_bridge(str(socket))}/v1"
            models = Models("openai/any", "openai/any", "openai/any", api_base=base, key=Secret(gateway.token))
            async with ModelClient(models) as client:
                executor = Executor(Sealed(), ModelAnswerer(client), FactJudge())
                return await executor.cell(Cell(case, 0, True))

    with tempfile.TemporaryDirectory() as folder:
        record = asyncio.run(main(Path(folder)))
    assert len(heard) == len(case.bank.probes)
    for call in heard:
        said = [str(message["content"]) for message in call.messages]
        assert said[1].endswith("the retry limit is 7, in uploader/backoff.py")
        assert any(probe.question in said[-1] for probe in case.bank.probes)
    for probe in record.probes.values():
        assert probe.answer is not None
        assert probe.answer.text == "It is 7."
        assert isinstance(probe.result, Grade)
    assert record.use["answer"].calls == len(heard)


def test_two_states_are_two_calls_and_both_are_reserved_for():
    plain = ModelCall("answer", "m", ({"role": "user", "content": "q"},), 10)
    one = ModelCall("answer", "m", plain.messages, 10, front=STATE)
    other = ModelCall(
        "answer", "m", plain.messages, 10, front=OpaqueState("openai-responses", [{"type": "compaction"}])
    )
    assert len({call_key(plain), call_key(one), call_key(other)}) == 3
    assert worst_tokens(one) > worst_tokens(plain)


def test_a_state_that_holds_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        OpaqueState("openai-responses", [])
