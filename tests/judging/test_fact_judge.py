"""The deterministic judge: facts raise scores, superseded values lower them, nothing else moves them much."""

from __future__ import annotations

import asyncio

import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

from eval_core.domain.call import Draw
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.probe import Probe
from eval_core.facts.fact_text import Haystack
from eval_core.judging.extractive import NOT_IN_CONTEXT
from eval_core.judging.fact_judge import FactJudge

FACTS = ["src/app.py", "8443", "#318", "3f9c2d8", "pooled connection", "test_refresh_window"]
OLD = ["SQLite", "5432", "src/legacy.py"]
PROBE = small.probe(
    [*FACTS, *({"not": value} for value in OLD)],
    "Which file, which port, which pull request and which connection, SQLite or Postgres?",
)
STATEMENTS = [f"It is {fact}." for fact in FACTS] + [f"We use {value}." for value in OLD]


def grade(answer: str, probe: Probe = PROBE) -> Grade:
    found = asyncio.run(FactJudge().grade(probe, answer, fixture="f", draw=Draw()))
    assert isinstance(found, Grade)
    return found


@given(st.lists(st.sampled_from(STATEMENTS)), st.sampled_from(FACTS))
def test_stating_one_more_fact_lowers_no_score(said: list[str], fact: str) -> None:
    before, after = grade("\n".join(said)), grade("\n".join([*said, f"It is {fact}."]))
    assert all(after.scores[name] >= before.scores[name] for name in DIMENSIONS)


@given(st.lists(st.sampled_from(STATEMENTS), min_size=1), st.sampled_from(OLD))
def test_stating_a_superseded_value_raises_no_score(said: list[str], value: str) -> None:
    before, after = grade("\n".join(said)), grade("\n".join([*said, value + "."]))
    assert all(after.scores[name] <= before.scores[name] for name in DIMENSIONS)


@given(st.text(max_size=400))
def test_every_score_lies_between_0_and_5_and_is_always_the_same(answer: str) -> None:
    first = grade(answer)
    assert first == grade(answer)
    assert set(first.scores) == set(DIMENSIONS)
    assert all(0 <= score <= 5 for score in first.scores.values())


def test_an_answer_with_every_fact_gets_full_marks() -> None:
    text = "The file src/app.py, port 8443, pull request #318 (3f9c2d8), a pooled connection, test_refresh_window."
    assert grade(f"{text} We chose Postgres instead of SQLite.").overall == pytest.approx(5.0)


@pytest.mark.parametrize("answer", ["", "   ", NOT_IN_CONTEXT])
def test_no_answer_is_at_the_floor(answer: str) -> None:
    assert grade(answer).overall == 0


def test_a_wrong_answer_gets_points_for_its_form_only() -> None:
    scores = grade("I do not know, sorry.").scores
    assert scores.pop("instruction_following") == pytest.approx(2.0)
    assert set(scores.values()) == {0.0}


def test_an_endless_answer_is_not_in_a_usable_form() -> None:
    assert grade("8443 " * 2_000).scores["instruction_following"] == 0


def test_half_of_the_facts_is_less_than_half_of_what_going_on_needs() -> None:
    half = grade("src/app.py 8443 #318").scores
    assert half["continuity"] == pytest.approx(1.25)
    assert half["context_awareness"] == pytest.approx(2.5)


def test_a_replaced_value_told_as_replaced_costs_nothing() -> None:
    told, stated = grade("8443, no longer 5432"), grade("8443 and 5432")
    assert told.scores["accuracy"] > stated.scores["accuracy"]


def test_the_reason_names_what_is_missing_and_what_is_stale() -> None:
    reason = grade("It is 8443. We use SQLite.").reason
    assert reason.startswith("1 of 6 facts; missing: src/app.py, #318")
    assert reason.endswith("stated though superseded: SQLite")


WRITTEN_AS = st.sampled_from(
    [r"See tests\test_refresh_window.", 'settings = {"port": 8443}', "**8443", "1,", "000", "40 2 * * *", "7"]
)
"""Ways of writing that change how a text is read: Windows separators, escapes, marks, groups of digits."""


def _said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


@given(
    st.lists(st.sampled_from(STATEMENTS) | WRITTEN_AS),
    st.lists(st.sampled_from(STATEMENTS) | WRITTEN_AS | st.text(max_size=80)),
)
def test_a_state_that_holds_more_never_scores_less(held: list[str], more: list[str]) -> None:
    judge = FactJudge()
    before = judge.grade_state(PROBE, Haystack.of_messages(map(_said, held)))
    after = judge.grade_state(PROBE, Haystack.of_messages(map(_said, [*held, *more])))
    assert all(after.scores[name] >= before.scores[name] for name in DIMENSIONS)
