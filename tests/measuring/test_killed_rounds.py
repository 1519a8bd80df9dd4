"""A run that is killed in its fifth round goes on there: nothing that was asked before is asked again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eval_core.domain.call import Completion, ModelCall, Usage
from eval_core.domain.compression import Compression, ModelUse, Outcome
from eval_core.sandbox.targets import BuiltinSubject
from eval_core.storage.round_log import RoundFile
from eval_core.suite.generate import SessionPlan, generate

PLAN = SessionPlan("short-1", 1, tokens=24_000, window=4_000)
KILLED_IN = 5


async def _complete(call: ModelCall, asked: Path, stop_at: int) -> Completion:
    """Answer from the prompt alone, write the call down first, and never answer the one that is waited for."""
    with asked.open("a") as stream:
        stream.write(json.dumps([message["content"] for message in call.messages]) + "\n")
    if len(asked.read_text().splitlines()) == stop_at:
        await asyncio.sleep(3600)
    words = [word for message in call.messages for word in str(message["content"]).split() if "_" in word]
    text = "## Decisions Made\n" + "\n".join(f"- use {word} (because: said)" for word in words[-20:])
    return Completion(text, Usage(100, 10, cost_usd=0.01), model="test", seconds=0.0)


def _compress(folder: Path, stop_at: int = 0) -> Compression:
    subject = BuiltinSubject("anchored", lambda call: _complete(call, folder / "asked", stop_at), "openai/test")
    fixture = generate(PLAN).fixture
    return asyncio.run(subject.compress(fixture, run=0, seed=0, log=RoundFile(folder / "rounds.jsonl")))


def _until(folder: Path, calls: int) -> None:
    asked = folder / "asked"
    for _ in range(1_200):
        if asked.exists() and len(asked.read_text().splitlines()) >= calls:
            return
        time.sleep(0.1)
    raise AssertionError("the child did not get that far")


def test_a_run_killed_in_round_five_goes_on_there(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    expected = _compress(whole)
    asked = (whole / "asked").read_text().splitlines()
    assert len(asked) == PLAN.rounds > KILLED_IN

    child = subprocess.Popen([sys.executable, __file__, str(tmp_path), str(KILLED_IN)], env=dict(os.environ))
    try:
        _until(tmp_path, KILLED_IN)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert len(RoundFile(tmp_path / "rounds.jsonl").read()) == KILLED_IN - 1

    found = _compress(tmp_path)
    # The fifth call was under way at the kill; no other is made twice.
    now = (tmp_path / "asked").read_text().splitlines()
    assert now == [*asked[:KILLED_IN], *asked[KILLED_IN - 1 :]]
    assert [step.messages for step in found.steps] == [step.messages for step in expected.steps]
    assert found.requests == expected.requests
    assert found.use == expected.use
    # Each round says what it took, on both sides of the kill.
    assert [step.use for step in found.steps] == [step.use for step in expected.steps]
    assert {step.use.calls for step in found.steps} == {1}
    assert sum((step.use for step in found.steps), ModelUse()) == found.use
    assert found.outcome is Outcome.OK


@pytest.mark.parametrize("torn", ["{", '{"step": {}}\n', '{"step": 1}\nmore'])
def test_a_torn_line_is_made_again(tmp_path: Path, torn: str) -> None:
    log = RoundFile(tmp_path / "rounds.jsonl")
    expected = _compress(tmp_path)
    lines = log.path.read_text().splitlines(keepends=True)
    log.path.write_text("".join(lines[:3]) + torn)
    assert len(log.read()) == 3
    assert _compress(tmp_path).steps[-1].messages == expected.steps[-1].messages
    assert len(log.read()) == PLAN.rounds


if __name__ == "__main__":
    _compress(Path(sys.argv[1]), stop_at=int(sys.argv[2]))
