"""The bar on hard cases of fact matching: near misses that look the same, and the same that looks different."""

from __future__ import annotations

import pytest
from facts_hard import AFTER, FRESH, HARD, LATER, OUTSIDE, UNREAD

from eval_core.domain.probe import FactKind
from eval_core.evidence.facts import Haystack, infer_kind, value_in


def _found(value: str, kind: FactKind | None, text: str) -> bool:
    return value_in(value, kind or infer_kind(value), Haystack.of(text))


@pytest.mark.parametrize(("value", "kind", "text", "found"), [*HARD, *FRESH, *AFTER, *OUTSIDE])
def test_a_part_of_something_else_is_not_the_value(value: str, kind: FactKind | None, text: str, found: bool) -> None:
    assert _found(value, kind, text) is found


@pytest.mark.parametrize("cases", [LATER, UNREAD])
def test_the_rules_hold_for_cases_they_were_not_written_for(
    cases: tuple[tuple[str, FactKind | None, str, bool], ...],
) -> None:
    wrong = [case for case in cases if _found(*case[:3]) is not case[3]]
    assert len(cases) == 50
    assert len(wrong) <= 1, wrong


@pytest.mark.parametrize("value", ["30 s", "30 sec", "30 seconds", "30s", "30 secs"])
def test_a_unit_is_the_same_in_each_of_its_spellings(value: str) -> None:
    assert all(
        _found(value, None, f"wait {text} here") for text in ("30 s", "30s", "30 seconds", "30-second", "30 sec")
    )
    assert not any(_found(value, None, f"wait {text} here") for text in ("30 ms", "30 minutes", "130 s", "30", "30 %"))
