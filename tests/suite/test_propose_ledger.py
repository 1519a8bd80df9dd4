"""Drafts of ledgers: little, but certain; every draft is a line that the lint accepts once a person has read it."""

from __future__ import annotations

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.domain.case import Case
from eval_core.domain.fixture import Fixture
from eval_core.domain.session_ledger import LedgerLine
from eval_core.suite.ledger_lint import lint_ledger
from eval_core.suite.propose_ledger import propose_ledger


def drafted(*messages: Message) -> list[LedgerLine]:
    return propose_ledger(Fixture(name="drafted", messages=[small.SYSTEM, *messages])).lines


TAIL = (small.say("Done."), small.user("Thanks."), small.say("You are welcome."))


@pytest.mark.parametrize(
    ("said", "polarity", "strength"),
    [
        ("Never touch `schema.sql`.", "do_not", "must"),
        ("`schema.sql` darf nicht geändert werden.", "do_not", "must"),
        ("You should not touch `schema.sql`.", "do_not", "should"),
        ("`schema.sql` must stay as it is.", "do", "must"),
    ],
)
def test_a_denial_or_demand_of_the_user_is_a_rule(said: str, polarity: str, strength: str) -> None:
    (rule,) = [line for line in drafted(small.user(said), *TAIL) if line.kind == "rule"]
    assert (rule.anchors, rule.polarity, rule.strength) == (["schema.sql"], polarity, strength)


def test_a_question_is_no_rule_and_a_replaced_value_is_a_value() -> None:
    lines = drafted(
        small.user("Why can I not read `a.py`? Use port 8493, not 8471."), *TAIL[:1], small.user("Take `b.py`."), *TAIL
    )
    assert "rule" not in {line.kind for line in lines}
    assert [line.anchors for line in lines if line.kind == "value"] == [["8471"]]


def test_steps_are_drafted_in_their_order() -> None:
    lines = drafted(small.user("Mind the order: stop fetch, dump, swap."), *TAIL)
    items = [line for line in lines if line.kind == "item"]
    assert [line.anchors for line in items] == [["stop fetch"], ["dump"], ["swap"]]
    assert [line.after for line in items] == [[], [items[0].id], [items[1].id]]


def test_the_todo_list_gives_items_and_a_denied_call_a_refused_approval() -> None:
    def todo(call: str, status: str) -> Message:
        return small.calls((call, "todo", {"todos": [{"content": "Fix `a.py`", "status": status}]}))

    lines = drafted(
        small.user("Go on."),
        todo("c1", "pending"),
        small.result("c1", "ok"),
        todo("c2", "completed"),
        small.result("c2", "ok"),
        small.calls(("c3", "terminal", {"command": "rm data/live.db"})),
        small.result("c3", "", error="Command denied by the user."),
        *TAIL,
    )
    (item,) = [line for line in lines if line.kind == "item"]
    assert [(entry.at, entry.is_) for entry in item.status] == [(2, "open"), (4, "done")]
    (approval,) = [line for line in lines if line.kind == "approval"]
    assert approval.anchors == ["data/live.db"]
    assert [entry.is_ for entry in approval.status] == ["asked", "refused"]


def test_every_draft_of_a_shipped_session_is_sound(shipped: list[Case]) -> None:
    for case in shipped:
        ledger = propose_ledger(case.fixture)
        assert {finding.rule for finding in lint_ledger(ledger, case.fixture)} == {"draft"}
        assert len(ledger.lines) >= 3


def test_a_session_that_says_nothing_of_the_kind_has_no_ledger() -> None:
    with pytest.raises(UserError, match="nothing to propose for a ledger"):
        drafted(small.user("hello"), *TAIL)
