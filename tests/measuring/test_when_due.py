"""Sessions that are compressed when the compressor says so: described on both sides, never tested."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from eval_core.base.errors import UserError
from eval_core.base.tokens import count_messages
from eval_core.domain.extra import PlayedRounds
from eval_core.domain.fixture import Fixture
from eval_core.domain.record import TriggerRecord
from eval_core.domain.target import TargetSpec
from eval_core.measuring.play_rounds import trigger_record
from eval_core.sandbox.isolation import SandboxChoice, detect
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.statistics.arms import Arm
from eval_core.strands.evidence import Evidence, Recorded
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.trigger import compare_trigger
from eval_core.suite.generate import SessionPlan, generate

TARGETS = """
class _Tail:
    def compress(self, messages):
        return messages[:1] + messages[-3:] if messages[-1]["role"] != "tool" else messages[:1] + messages[-2:]

class ByTokens(_Tail):
    def should_compress(self, prompt_tokens=None):
        return prompt_tokens > 2_000

class Never(_Tail):
    def should_compress(self, messages, current_tokens):
        assert current_tokens > 0
        return False

class Always:
    def should_compress(self, messages):
        return len(messages) > 2
    def compress(self, messages):
        return messages

class Grows(Always):
    def compress(self, messages):
        return messages[:1] + [{"role": "user", "content": "as it was " * 400}] + messages[1:]

class Raises(_Tail):
    def should_compress(self, messages):
        raise ValueError("no window")

def plain(messages):
    return messages[:2]
"""

COMMAND = """
import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    if asked["type"] == "start":
        answer = {"type": "ready", "tells_when": True}
    elif asked["type"] == "trigger":
        answer = {"type": "triggered", "id": asked["id"], "compresses": len(asked["messages"]) >= 12}
    else:
        said = asked["messages"]
        answer = {"type": "result", "id": asked["id"],
                  "messages": [said[0], {"role": "user", "content": "so far"}, {"role": "assistant", "content": "yes"}]}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture(scope="module")
def session() -> Fixture:
    return generate(SessionPlan("short-1", 1, tokens=12_000, window=4_000)).fixture


@pytest.fixture(scope="module")
def choice() -> SandboxChoice:
    try:
        return detect()
    except UserError:
        return detect("none")


def _compared(now: TriggerRecord, before: TriggerRecord | None = None) -> Finding:
    beside = PlayedRounds(candidate=[], triggered=[now], base_triggered=[] if before is None else [before])
    recorded = cast(Recorded, SimpleNamespace(played_rounds=beside, sides=()))
    finding = compare_trigger(Evidence(Arm("a", {}), Arm("b", {}), recorded))
    assert finding is not None
    return finding


def _played(session: Fixture, tmp_path: Path, choice: SandboxChoice, name: str) -> TriggerRecord:
    (tmp_path / "shapes.py").write_text(TARGETS)
    spec = TargetSpec(compressor=f"shapes:{name}", llm="none").model_copy(update={"pythonpath": [str(tmp_path)]})
    subject = ProcessSubject(spec, tmp_path, choice, "offline:rules", None, count_messages)
    return trigger_record(session, asyncio.run(subject.compress_when_due(session, seed=0)))


def test_a_strategy_is_asked_and_one_without_a_word_is_called_at_a_share_of_the_window(session: Fixture) -> None:
    own, window = (
        trigger_record(session, asyncio.run(BuiltinSubject(name).compress_when_due(session, seed=0)))
        for name in ("anchored", "sliding-window")
    )
    assert (own.own, window.own) == (True, False)
    assert all(item.before >= 0.7 * session.context_length for item in window.rounds)
    assert all(item.before >= 0.7 * 0.8 * session.context_length for item in own.rounds)
    assert len(own.rounds) > 1 < len(window.rounds)
    assert _compared(window, window).state is StrandState.SAME
    finding = _compared(window, own)
    assert finding.state is StrandState.CHANGED
    assert finding.base.startswith("`should_compress`: ")
    assert finding.candidate.startswith("at 70 % of the window (it has no trigger): ")
    assert finding.loss == finding.gain == 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ByTokens", "`should_compress`: "),
        ("Never", "never fires in 13.4k tokens for a window of 4.0k"),
        ("Always", "from message 4 on it fires at nearly every message; played until message 11 of "),
        ("Grows", "5 of them made the state larger"),
        (
            "Raises",
            "the compressor ended in an error (should_compress raised ValueError: no window (at shapes.py:",
        ),
        ("plain", "at 70 % of the window (it has no trigger): "),
    ],
)
def test_each_kind_of_trigger_is_told_in_one_sentence(
    session: Fixture, tmp_path: Path, choice: SandboxChoice, name: str, words: str
) -> None:
    record = _played(session, tmp_path, choice, name)
    finding = _compared(record)
    assert words in finding.candidate, finding.candidate
    assert finding.state is StrandState.NOT_RECORDED
    if name == "ByTokens":
        assert len(record.rounds) > 2
        assert all(item.before > 2_000 for item in record.rounds)


def test_a_command_that_tells_when_is_asked_with_all_that_it_would_compress(
    session: Fixture, tmp_path: Path, choice: SandboxChoice
) -> None:
    (tmp_path / "agent.py").write_text(COMMAND)
    spec = TargetSpec(command=["python3", "agent.py"], llm="none").model_copy(update={"directory": str(tmp_path)})
    subject = ProcessSubject(spec, tmp_path, choice, "offline:rules", None, count_messages)
    done = asyncio.run(subject.compress_when_due(session, seed=0))
    record = trigger_record(session, done)
    assert (record.own, record.ended) == (True, "session")
    assert len(record.rounds) > 2
    # It sets in at 12 messages, of which it keeps its three of the last time.
    assert all(len(step.messages) + later - earlier >= 12 for step, earlier, later in
               zip(done.steps, done.fired, done.fired[1:], strict=False))  # fmt: skip
    assert done.fired[0] >= 12
