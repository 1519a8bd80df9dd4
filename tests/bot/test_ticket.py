"""The ticket that the gate hands on to the later jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bot_tickets import SHA, allowed, request
from hypothesis import given
from hypothesis import strategies as st

from bot.pull_request.event import WorkflowRun
from bot.pull_request.ticket import Ticket, read_ticket
from eval_core.base.errors import UserError


def test_a_ticket_comes_back_as_it_was_written() -> None:
    ticket = Ticket.of(request(runs=5), allowed("fixtures/a.json"))
    assert read_ticket(ticket.line) == ticket
    assert ticket.ignored_files == ["fixtures/a.json (fixture)"]
    assert ticket.run == WorkflowRun(12, 2)


@given(st.lists(st.text(st.characters(), max_size=300), max_size=60))
def test_a_ticket_is_one_line_and_small_whatever_the_files_are_called(paths: list[str]) -> None:
    text = Ticket.of(request(), allowed(*paths)).line
    assert len(text.splitlines()) == 1
    assert text.isascii()
    # GitHub allows a job's outputs one megabyte.
    assert len(text.encode()) < 100_000
    ticket = read_ticket(text)
    assert len(ticket.ignored_files) + ticket.ignored_more == len(set(range(len(paths))))


@pytest.mark.parametrize(
    "change",
    [
        {"sha": "a" * 39},
        {"sha": "A" * 40},
        {"sha": SHA + "\n"},
        {"base_sha": "main"},
        {"pr": 0},
        {"pr": "1; rm"},
        {"repo": "acme/agent/../other"},
        {"mode": "anything"},
        {"runs": 51},
        {"looks": 0},
        {"surplus": 1},
    ],
)
def test_a_ticket_that_the_gate_cannot_have_written_is_refused(change: dict[str, Any]) -> None:
    body = json.loads(Ticket.of(request(), allowed()).line)
    with pytest.raises(UserError, match="TICKET: not what"):
        read_ticket(json.dumps({**body, **change}))


@pytest.mark.parametrize("text", ["", "{}", "null", "[]", "not json"])
def test_no_ticket_is_said_in_words(text: str) -> None:
    with pytest.raises(UserError, match="compression-eval bot gate"):
        read_ticket(text)


def test_an_evaluation_and_a_baseline_of_the_same_commit_never_share_an_artifact_or_a_folder() -> None:
    evaluation = Ticket.of(request(), allowed(base_sha=SHA))
    baseline = Ticket.of(request(mode="baseline"), allowed(base_sha=SHA))
    assert evaluation.artifact != baseline.artifact
    assert evaluation.label != baseline.label
