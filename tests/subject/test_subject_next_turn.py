"""What an agent sends after a compaction: a real command takes one more turn through the gateway."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import small

from eval_core.base.messages import said
from eval_core.base.tokens import count_messages
from eval_core.domain.next_request import NextTurn
from eval_core.domain.target import TargetSpec, target_from
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import resolve_paths

TREE = Path(__file__).parent / "commands"
SESSION = small.cases()[0].fixture


def _after(choice: SandboxChoice, adapter: str) -> NextTurn | None:
    spec = target_from({"command": ["python3", "takes_turns.py", adapter], "llm": "required", "timeout_s": 60}, "spec")
    assert isinstance(spec, TargetSpec)
    spec = resolve_paths(spec, TREE, TREE, TREE, "spec")
    subject = ProcessSubject(spec, TREE, choice, "provider/served", None, count_messages)
    return asyncio.run(subject.next_turn(SESSION))


def test_an_agent_that_sends_what_its_adapter_reported(choice: SandboxChoice) -> None:
    assert _after(choice, "right") == NextTurn((), (), instructed=True)


@pytest.mark.parametrize("adapter", ["reports too much", "reports too little"])
def test_an_adapter_that_reports_something_else(choice: SandboxChoice, adapter: str) -> None:
    found = _after(choice, adapter)
    assert found is not None
    wrong, right = (found.not_sent, found.not_reported)[:: 1 if adapter.endswith("much") else -1]
    assert not right
    last = SESSION.messages[: SESSION.cuts[0]][-2:]
    kept = {word.strip('",:{}') for message in last for text in said(message).texts for word in text.split()}
    assert wrong
    assert {word.strip('",:{}') for line in wrong for word in line.split()} <= kept


def test_a_request_that_ends_with_the_session(choice: SandboxChoice) -> None:
    found = _after(choice, "gives no instruction")
    assert found is not None
    assert not found.instructed


def test_a_command_that_takes_no_turn_is_not_asked(choice: SandboxChoice) -> None:
    assert _after(choice, "takes none") is None
