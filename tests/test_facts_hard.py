"""The bar on hard cases of fact matching: near misses that look the same, and the same that looks different."""

from __future__ import annotations

import pytest
from facts_hard import AFTER, FRESH, HARD, LATER, OUTSIDE

from eval_core.domain.probe import FactKind
from eval_core.evidence.facts import Haystack, infer_kind, value_in


def _found(value: str, kind: FactKind | None, text: str) -> bool:
    return value_in(value, kind or infer_kind(value), Haystack.of(text))


@pytest.mark.parametrize(("value", "kind", "text", "found"), [*HARD, *FRESH, *AFTER, *OUTSIDE])
def test_a_part_of_something_else_is_not_the_value(value: str, kind: FactKind | None, text: str, found: bool) -> None:
    assert _found(value, kind, text) is found


def test_the_rules_hold_for_cases_they_were_not_written_for() -> None:
    wrong = [case for case in LATER if _found(*case[:3]) is not case[3]]
    assert len(LATER) == 50
    assert len(wrong) <= 1, wrong
