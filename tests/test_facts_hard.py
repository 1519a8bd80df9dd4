"""The bar on hard cases of fact matching: near misses that look the same, and the same that looks different."""

from __future__ import annotations

import time

import pytest
from facts_audited import AUDITED
from facts_from_the_table import SEVENTH, SIXTH, Case
from facts_hard import AFTER, FRESH, HARD, LATER, OUTSIDE, UNREAD
from facts_unseen import FIFTH, FIRST, FOURTH, SECOND, SIBLINGS, THIRD

from eval_core.domain.probe import Fact, FactKind
from eval_core.facts.fact_text import Haystack, infer_kind
from eval_core.facts.haystack import holds, value_in


def _found(value: str, kind: FactKind | None, text: str) -> bool:
    return value_in(value, kind or infer_kind(value), Haystack.of(text))


@pytest.mark.parametrize(("value", "kind", "text", "found"), [*HARD, *FRESH, *AFTER, *OUTSIDE, *SIBLINGS, *AUDITED])
def test_a_part_of_something_else_is_not_the_value(value: str, kind: FactKind | None, text: str, found: bool) -> None:
    assert _found(value, kind, text) is found


@pytest.mark.parametrize("cases", [LATER, UNREAD, FIRST, SECOND, THIRD, FOURTH, FIFTH])
def test_the_rules_hold_for_cases_they_were_not_written_for(
    cases: tuple[tuple[str, FactKind | None, str, bool], ...],
) -> None:
    wrong = [case for case in cases if _found(*case[:3]) is not case[3]]
    assert len(cases) == 50
    assert len(wrong) <= 1, wrong


@pytest.mark.parametrize("cases", [SIXTH, SEVENTH])
def test_the_documented_table_is_enough_to_predict_the_matcher(cases: tuple[Case, ...]) -> None:
    wrong = []
    for fact, kind, text, kept in cases:
        found = (
            _found(fact, kind, text) if isinstance(fact, str) else holds(Fact.model_validate(fact), Haystack.of(text))
        )
        wrong += [] if found is kept else [(fact, text)]
    assert len(cases) == 50
    assert not wrong


@pytest.mark.parametrize("value", ["30 s", "30 sec", "30 seconds", "30s", "30 secs"])
def test_a_unit_is_the_same_in_each_of_its_spellings(value: str) -> None:
    assert all(
        _found(value, None, f"wait {text} here") for text in ("30 s", "30s", "30 seconds", "30-second", "30 sec")
    )
    assert not any(_found(value, None, f"wait {text} here") for text in ("30 ms", "30 minutes", "130 s", "30", "30 %"))


# Each kind by its needle, so that a text made of it is searched at every place.
NEEDLES: tuple[tuple[str, FactKind | None], ...] = (
    ("3 retries", None), ("30 s", None), ("12", "number"), ("0.5", None), ("1234567", None), ("$40", None),
    ("v1.2.3", None), ("18", "version"), ("src/a.py", None), ("src/", None), ("/etc/app", None), ("https://a/b", None),
    ("a.b.com", None), ("a_b", None), ("a1b2c3d", None), ("#412", None), ("exit code 2", None), ("HTTP 503", None),
    ("0 3 * * *", None), ("2026-03-14", None), ("word", None),
    ("use word", None), ("~/src/a", None), ("acme/relay#412", None), ("404", "number"), ("使用缓存", None),
)  # fmt: skip
# What an expression might try again and again: runs that nearly match.
RUNS = (
    "a", "1", "/", "\\", "{a,", "a/{b,c}", "1-", "1,000,", "1 000 ", "*a ", "&#", "\x1b[", "a//", "#1, ", "pr 1, ",
    "exit ", "code 2 ", "0 3 * * ", "1.2.3-", "a1b2c3d", "src/a", "http://a/", "12:34:", "three ", "word ",
    "[a](", "[a](b/c)", "__a", "__A b__", "\n> ", "\n>", "1M", "5 million ", "*a, ", "_a b", "not ",
    "not ever use word ", "not, a", "~~use word", "不使用缓存", "401,403", "status 404/", "exit 2, ", "/home/a/src/a",
    "other/repo#412", "10⁶", "a—b",
)  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_a_hostile_text_is_read_in_linear_time(run: str) -> None:
    text = run * (60_000 // len(run))
    start = time.process_time()
    haystack = Haystack.of(text)
    assert len(haystack.text) <= 2 * len(text)
    for value, kind in NEEDLES:
        value_in(value, kind or infer_kind(value), haystack)
    assert time.process_time() - start < 1, "0.1 s is usual; twice the text must take twice the time"
