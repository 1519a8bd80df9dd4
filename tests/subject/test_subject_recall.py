"""The agent's own search of what was removed: asked in the sandbox for what a state has lost, and told beside ours."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from eval_core.base.tokens import count_messages
from eval_core.domain.call import Completion, ModelCall, Usage
from eval_core.domain.case import Case, Cell
from eval_core.domain.compression import ModelUse
from eval_core.domain.record import RecoveryRecord, RoundsRecord
from eval_core.domain.target import TargetSpec
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.execute import Executor
from eval_core.sandbox.gateway import Complete
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.sandbox.subject import ProcessSubject
from eval_core.suite.generate import SessionPlan, generate

AGENT = """
import json, os
from urllib.request import Request, urlopen

def asked(text):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 9}).encode()
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    return urlopen(Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)).read().decode()


class Agent:
    def compress(self, messages):
        if os.environ.get("OPENAI_BASE_URL"):
            asked("a summary")
        tail = [m for m in messages[-4:] if m["role"] != "tool" and not m.get("tool_calls")]
        return messages[:1] + tail + [{"role": "user", "content": "go on"}]

    def broken(self, messages, query):
        raise LookupError("no such table: messages")

    async def nothing(self, messages, query):
        return None

    def model(self, messages, query):
        return asked(query)


def rows(messages, query):
    words = query.lower().split()
    return [m for m in messages if all(word in str(m["content"]).lower() for word in words)][:5]


def everything(messages, query):
    return "\\n".join(str(m["content"]) for m in messages)
"""
ADAPTER = """
def recall(agent, messages, query):
    return {"agent": type(agent).__name__, "hits": [m["content"] for m in messages if query in str(m["content"])][:3]}
"""


@pytest.fixture(scope="module")
def case() -> Case:
    return generate(SessionPlan("short-1", 1, tokens=12_000, window=4_000))


def _played(
    case: Case, tmp_path: Path, choice: SandboxChoice, name: str, adapter: str = "", paid: Complete | None = None
) -> RoundsRecord:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "adapter.py").write_text(adapter)
    spec = TargetSpec(compressor="agent:Agent", recall=name, llm="none" if paid is None else "required").model_copy(
        update={"pythonpath": [str(tmp_path)], "adapter": str(tmp_path / "adapter.py") if adapter else None}
    )
    subject = ProcessSubject(spec, tmp_path, choice, "openai/paid", paid, count_messages)
    executor = Executor(subject, ExtractiveAnswerer(), FactJudge(), rounds_only=True)
    record = asyncio.run(executor.cell(Cell(case, 0, graded=False)))
    assert record.ok, record.detail
    return RoundsRecord.model_validate(record.strands["rounds"])


def _recovery(case: Case, tmp_path: Path, choice: SandboxChoice, name: str, adapter: str = "") -> RecoveryRecord:
    found = _played(case, tmp_path, choice, name, adapter).recovery
    assert found is not None
    assert found.lost > 20
    return found


def test_rows_that_hold_the_fact_are_found(case: Case, tmp_path: Path, choice: SandboxChoice) -> None:
    found = _recovery(case, tmp_path, choice, "agent:rows")
    assert found.own is not None
    assert 0.6 * found.lost < found.own <= found.lost
    assert (found.own_problem, found.own_tokens > 0) == ("", True)


def test_what_stands_after_the_cut_of_an_output_is_not_found(case: Case, tmp_path: Path, choice: SandboxChoice) -> None:
    found = _recovery(case, tmp_path, choice, "agent:everything")
    assert found.own is not None
    assert 0 < found.own < found.lost
    assert found.own_tokens <= 3 * 16_000 / 4 + 1


@pytest.mark.parametrize(
    ("name", "adapter", "problem"),
    [
        ("broken", "", "LookupError: no such table: messages"),
        ("nothing", "", ""),
        ("agent:no_such_thing", "", "agent has no 'no_such_thing'"),
        ("adapter", "x = 1", "the adapter has no recall(instance, messages, query)"),
    ],
)
def test_a_search_that_brings_nothing_back_finds_nothing_and_says_why(
    case: Case, tmp_path: Path, choice: SandboxChoice, name: str, adapter: str, problem: str
) -> None:
    found = _recovery(case, tmp_path, choice, name, adapter)
    assert (found.own, found.own_tokens) == (0, 0)
    assert problem in found.own_problem
    assert bool(found.own_problem) is bool(problem)


def test_an_adapter_may_ask_in_its_own_way(case: Case, tmp_path: Path, choice: SandboxChoice) -> None:
    found = _recovery(case, tmp_path, choice, "adapter", ADAPTER)
    assert found.own is not None
    assert found.own > 0


def test_no_paid_model_answers_a_search(case: Case, tmp_path: Path, choice: SandboxChoice) -> None:
    asked: list[object] = []

    async def paid(call: ModelCall) -> Completion:
        asked.append(call.messages[0]["content"])
        return Completion("paid", Usage(output_tokens=1, cost_usd=0.5), model="paid", seconds=0.0)

    played = _played(case, tmp_path, choice, "model", paid=paid)
    found = played.recovery
    assert found is not None
    assert (found.own_problem, found.own_tokens > 0, asked) == ("", True, ["a summary"] * len(case.fixture.cuts))
    assert [state.use for state in played.rounds] == [ModelUse(calls=1, output_tokens=1, cost_usd=0.5)] * len(asked)
