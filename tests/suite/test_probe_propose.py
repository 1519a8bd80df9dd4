"""Drafts rest on what the session did, and none answers itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import Probe, ProbeBank
from eval_core.evidence.facts import Haystack, holds
from eval_core.suite.lint import lint
from eval_core.suite.propose import propose


class Session:
    """Builds a session call by call."""

    def __init__(self) -> None:
        self.messages: list[Message] = [
            {"role": "system", "content": "You help."},
            {"role": "user", "content": "Please look after the ledger."},
            {"role": "assistant", "content": "Looking round the repository first, then asking."},
        ]

    def say(self, role: str, text: str) -> None:
        self.messages.append({"role": role, "content": text})

    def call(self, tool: str, reply: object, /, **arguments: Any) -> None:
        call = f"c{len(self.messages)}"
        function = {"name": tool, "arguments": json.dumps(arguments)}
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": call, "function": function}]})
        text = reply if isinstance(reply, str) else json.dumps(reply)
        self.messages.append({"role": "tool", "tool_call_id": call, "content": text})

    def fixture(self) -> Fixture:
        tail: list[Message] = [{"role": "user", "content": "go on"}, {"role": "assistant", "content": "Going on."}] * 3
        return Fixture(name="ledger", messages=[*self.messages, *tail])


def busy() -> Fixture:
    session = Session()
    session.call(
        "write_file", {"bytes_written": 9}, path="/home/user/proj/ledger/shadow.py", content="class Shadow:\n    pass"
    )
    session.call("patch", {"success": True}, path="docs/cutover.md", old_string="a", new_string="b")
    session.call("patch", {"success": False, "error": "no match"}, path="docs/never.md", old_string="a", new_string="b")
    made = {"success": True, "job": {"job_id": "8abb428ed465"}}
    session.call("cronjob", made, action="create", name="weekly-digest", schedule="30 9 * * 2")
    session.call("cronjob", {"success": True}, action="update", job_id="8abb428ed465", schedule="25 7 * * 5")
    session.call(
        "cronjob", {"success": True, "job": {"job_id": "77aa428ed465"}}, name="gone-soon", schedule="1 1 * * 1"
    )
    session.call("cronjob", {"success": True}, action="remove", job_id="77aa428ed465")
    session.call("terminal", "[fix/shadow 4d68d0b] Compare both readings\n 1 file", command="git commit -am x")
    session.call("terminal", "https://forge.example/a/b/pull/387", command="gh pr create --draft")
    session.call("terminal", {"output": "LinkError: 'ledger_v2' is gone\n", "exit_code": 1}, command="python run.py")
    session.call("terminal", {"output": "ok", "exit_code": 0, "error": None}, command="true")
    session.call("terminal", {"output": "=== 147 passed, 12 failed in 2s ===", "exit_code": 1}, command="pytest -q")
    session.call("todo", {"ok": True}, todos=[{"content": "empty skip_currencies after LEDG-326", "status": "pending"}])
    session.say("assistant", "Everything is prepared for the next decision.")
    session.say("user", "Never touch orders_audit. The cut-over waits until 26 March.")
    return session.fixture()


def by_fact(bank: ProbeBank) -> dict[str, Probe]:
    return {fact.label: entry for entry in bank.probes for fact in entry.expected_facts}


def test_each_thing_the_session_did_becomes_a_draft_of_its_type() -> None:
    found = by_fact(propose(busy()))
    types = {label: entry.type for label, entry in found.items()}
    assert types["ledger/shadow.py"] == "artifact"
    assert types["docs/cutover.md"] == "artifact"
    assert types["25 7 * * 5"] == types["8abb428ed465"] == types["not 30 9 * * 2"] == "artifact"
    assert types["4d68d0b"] == types["#387"] == "artifact"
    assert types["147 passed or 147 tests passed or 147 test passed"] == "recall"
    assert types["orders_audit"] == "decision"
    assert types["26 March"] == types["skip_currencies"] == "continuation"


def test_what_was_refused_or_removed_is_not_proposed() -> None:
    labels = set(by_fact(propose(busy())))
    assert not labels & {"docs/never.md", "1 1 * * 1", "77aa428ed465"}


def test_a_field_called_error_that_is_null_is_no_blocker() -> None:
    blockers = [entry for entry in propose(busy()).probes if "`true`" in entry.question]
    assert blockers == []


def test_an_exit_other_than_zero_is_asked_about_by_what_it_names() -> None:
    session = Session()
    session.call(
        "terminal", {"output": "LedgerError: table 'ledger_v2' is gone", "exit_code": 1}, command="python run.py"
    )
    entry = by_fact(propose(session.fixture()))["ledger_v2"]
    assert entry.type == "recall"
    assert "python run.py" in entry.question


def test_every_draft_is_marked_has_evidence_and_does_not_answer_itself() -> None:
    bank = propose(busy())
    for entry in bank.probes:
        assert entry.draft
        for fact in entry.expected_facts:
            assert fact.evidence
            assert not holds(fact, Haystack.of(entry.question))
    assert {item.rule for item in lint(bank, busy()) if item.level == "error"} == {"draft"}


def test_no_fact_is_proposed_twice_and_the_result_is_stable() -> None:
    bank = propose(busy())
    labels = [fact.label for entry in bank.probes for fact in entry.expected_facts]
    assert len(labels) == len(set(labels))
    assert propose(busy()) == bank


def test_the_limit_is_shared_among_the_types() -> None:
    bank = propose(busy(), limit=4)
    assert sorted(entry.type for entry in bank.probes) == ["artifact", "continuation", "decision", "recall"]


def test_a_session_that_did_nothing_is_said_to_be_one() -> None:
    with pytest.raises(UserError, match="nothing to propose"):
        propose(Session().fixture())
