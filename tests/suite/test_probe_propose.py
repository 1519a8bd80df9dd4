"""Drafts rest on what the session did, and none answers itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import Probe, ProbeBank
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
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


PATCH = (
    "*** Begin Patch\n*** Update File: src/relay/lease.py\n@@\n-old = 1\n+def renew_lease():\n+    pass\n*** End Patch"
)


@pytest.mark.parametrize(
    "call",
    [
        ("apply_patch", {"input": PATCH}),
        ("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        ("shell", {"command": ["apply_patch", PATCH]}),
    ],
    ids=["free input", "here-document", "list of words"],
)
def test_a_patch_is_seen_wherever_the_call_carries_it(call: tuple[str, dict[str, Any]]) -> None:
    session = Session()
    session.call(call[0], {"output": "Success. Updated the following files:\nM src/relay/lease.py"}, **call[1])
    probes = propose(session.fixture()).probes
    assert [fact.label for probe in probes for fact in probe.expected_facts] == ["src/relay/lease.py"]
    assert probes[0].question == "Which file was written or changed to hold `renew_lease`?"


def test_a_patch_that_did_not_apply_changed_nothing() -> None:
    session = Session()
    session.call("apply_patch", {"output": "verification failed", "metadata": {"exit_code": 1}}, input=PATCH)
    session.call("write_file", {"bytes_written": 9}, path="docs/cutover.md", content="x")
    labels = [fact.label for probe in propose(session.fixture()).probes for fact in probe.expected_facts]
    assert labels == ["docs/cutover.md"]


@pytest.mark.parametrize(
    "said",
    [
        "Use a batch of 5000, not 10000.",
        "Make it 5000 instead of 10000.",
        "Not 10000 but 5000, and keep the pause.",
        "Bitte nur 5000 statt 10000 nehmen.",
    ],
)
def test_a_correction_is_asked_with_the_value_that_holds(said: str) -> None:
    session = Session()
    session.say("user", "Always use 10000 rows a batch.")
    session.say("assistant", "I have set the batch size for the importer as you asked.")
    session.say("user", said)
    session.say("assistant", "Changed.")
    facts = [fact for probe in propose(session.fixture()).probes for fact in probe.expected_facts]
    assert "5000" in [fact.fact for fact in facts]
    assert "10000" not in [fact.fact for fact in facts]
    assert "10000" in [fact.not_ for fact in facts]


def _labels(session: Session) -> set[str]:
    probes = propose(session.fixture(), limit=60).probes
    return {fact.label for probe in probes if "blocker" in probe.id for fact in probe.expected_facts}


@pytest.mark.parametrize(
    ("answer", "blocker"),
    [
        ("FAILED tests/test_lease.py::test_renews_twice - AssertionError: 2 != 3", "test_renews_twice"),
        ("--- FAIL: TestLeaseExpiry (0.02s)", "TestLeaseExpiry"),
        ("bash: shellcheck: command not found", "shellcheck"),
        ("cp: /srv/relay/lease.db: Permission denied", "/srv/relay/lease.db"),
        ("dial tcp: connection refused 10.0.0.4:5433", "10.0.0.4:5433"),
    ],
)
def test_what_a_failed_command_reports_is_a_blocker(answer: str, blocker: str) -> None:
    session = Session()
    session.call("terminal", {"output": answer, "exit_code": 1}, command="make check")
    assert blocker in _labels(session)


def test_a_traceback_counts_without_a_status_but_not_when_it_is_only_read() -> None:
    trace = "Traceback (most recent call last)\nLeaseError: 'lease_v2' is gone"
    ran, read = Session(), Session()
    ran.call("terminal", trace, command="python renew.py")
    read.call("terminal", trace, command="cat logs/renew.log")
    read.call("write_file", {"bytes_written": 9}, path="docs/cutover.md", content="x")
    assert "lease_v2" in _labels(ran)
    assert _labels(read) == set()


def test_what_people_say_is_in_the_way_is_a_blocker() -> None:
    session = Session()
    session.say("user", "The rollout is blocked by RELAY-412 until the audit ends.")
    session.say("assistant", "Understood.")
    assert "RELAY-412" in _labels(session)


def test_early_middle_and_late_parts_of_a_session_have_equal_shares() -> None:
    session = Session()
    for number in range(60):
        session.call("terminal", f"[work {number:02}ab{number:02}cd] Part {number:02}\n 1 file", command="git commit")
    places = [(probe.expected_facts[0].evidence or [])[0] for probe in propose(session.fixture(), 9).probes]
    end = len(session.fixture().messages)
    assert [sum(part <= 3 * place / end < part + 1 for place in places) for part in range(3)] == [3, 3, 3]


def test_a_question_that_fits_several_things_is_not_asked() -> None:
    session = Session()
    for number, title in ((387, "Drop the shadow"), (402, "Keep the ledger")):
        command = f"gh pr create --title '{title}'"
        session.call("terminal", f"https://forge.example/a/b/pull/{number}", command=command)
        session.call("terminal", f"https://forge.example/a/b/pull/{number + 50}", command="gh pr create --draft")
    asked = {probe.question: probe.expected_facts[0].fact for probe in propose(session.fixture()).probes}
    assert asked == {
        'Which number did the pull request "Drop the shadow" get?': "#387",
        'Which number did the pull request "Keep the ledger" get?': "#402",
    }
