"""Only what a compression put at risk is counted, and it is counted fairly."""

from __future__ import annotations

import pytest

from eval_core.base.messages import Message
from eval_core.facts.census import CensusFact, census
from eval_core.facts.fact_text import Haystack
from eval_core.facts.retention import KindCount, census_retention, fact_stands

SESSION: list[Message] = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Fix src/importer/main.py, see PR 412."},
    {"role": "assistant", "content": "The cause is in src/importer/parse.py, commit 4d68d0b9."},
    {"role": "user", "content": "Good. Then look at docs/cutover.md and at PR 412 again."},
    {"role": "assistant", "content": "Looking."},
]


def test_facts_in_kept_messages_do_not_count() -> None:
    facts = census(SESSION)
    compressed = [SESSION[0], {"role": "user", "content": "Summary: nothing of note."}, *SESSION[3:]]
    result = census_retention(facts, SESSION, compressed)
    assert {fact.value for fact in result.lost} == {"src/importer/main.py", "src/importer/parse.py", "4d68d0b9"}
    assert "pr" not in result.kinds
    assert result.share == 0


def test_kept_and_lost_are_told_apart_by_kind() -> None:
    facts = census(SESSION)
    summary = {"role": "user", "content": "Summary: src/importer/main.py was fixed in 4d68d0b."}
    result = census_retention(facts, SESSION, [SESSION[0], summary, *SESSION[3:]])
    assert result.kinds["path"] == KindCount(kept=1, at_risk=2)
    assert result.kinds["hash"] == KindCount(kept=1, at_risk=1)
    assert (result.kept, result.at_risk) == (2, 3)


def test_nothing_at_risk_is_no_share_rather_than_none_kept() -> None:
    result = census_retention(census(SESSION), SESSION, SESSION)
    assert result.at_risk == 0
    assert result.share is None


@pytest.mark.parametrize(
    ("kind", "value", "text", "stands"),
    [
        ("test_count", "47 passed", "all 47 tests pass", True),
        ("test_count", "47 passed", "47/47 passing", True),
        ("test_count", "47 passed", "passed: 47", True),
        ("test_count", "47 passed", "147 passed", False),
        ("test_count", "2 failed", "2 files, 3 failed", False),
        ("error", "KeyError: 'union_id'", "a KeyError on union_id", True),
        ("error", "KeyError: 'union_id'", "a KeyError on open_id", False),
        ("error", "KeyError: 'union_id'", "a ValueError on union_id", False),
        ("error", "HTTP 503", "it answered 503", True),
        ("error", "could not revert 0aa267d... LEDG-318: dual", "reverting 0aa267d (LEDG-318) conflicted", True),
        ("error", "could not revert 0aa267d... LEDG-318: dual", "reverting conflicted", False),
        ("error", "could not revert 0aa267d... LEDG-318: dual", "LEDG-318 is about dual writes", False),
        ("decision", "JPY | LEDG-326", "LEDG-326 covers JPY", True),
        ("decision", "JPY | LEDG-326", "LEDG-326 is open", False),
        ("branch", "fix/617-union-id", "pushed to origin/fix/617-union-id", True),
        ("branch", "fix/617-union-id", "pushed to fix/617-union-id-2", False),
        ("path", "src/a.py", "in /home/u/src/a.py:4", True),
    ],
)
def test_a_fact_of_the_census_is_recognised_in_other_words(kind: str, value: str, text: str, stands: bool) -> None:
    fact = CensusFact(value=value, kind=kind, messages=(0,), salience=1.0)  # type: ignore[arg-type]
    assert fact_stands(fact, Haystack.of(text)) is stands
