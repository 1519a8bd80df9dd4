"""Each expected fact gets one word: kept, lost, used, not used or untested."""

from __future__ import annotations

import math

import small

from eval_core.base.messages import Message, render
from eval_core.domain.record import FactRecord, ProbeRecord
from eval_core.facts.fact_text import Haystack
from eval_core.facts.retention import FixtureFacts, StateFacts
from eval_core.facts.verbatim import Kept

FIXTURE = small.debug_fixture()
PROBE = small.probe(["v2.4.1", "12 workers", "#318", "TokenStale", {"not": "POOL_SIZE = 4"}])


def _facts(summary: str, tail: list[Message], answer: str | None) -> dict[str, FactRecord]:
    state = [FIXTURE.messages[0], small.user(summary), *tail]
    kept = Kept(FIXTURE.messages, state)
    facts = StateFacts(Haystack.of(render(state)), kept.haystack, FixtureFacts(FIXTURE))
    return {fact.label: fact for fact in facts.probe(PROBE, answer)}


def test_facts_are_told_apart_by_state_and_answer() -> None:
    found = _facts("since v2.4.1; shared by 12 workers", FIXTURE.messages[-4:], "It broke in v2.4.1.")
    assert {label: fact.status for label, fact in found.items()} == {
        "v2.4.1": "used",
        "12 workers": "not_used",
        "#318": "untested",
        "TokenStale": "lost",
    }


def test_without_an_answer_a_fact_is_kept_or_lost() -> None:
    found = _facts("since v2.4.1", FIXTURE.messages[-4:], None)
    assert found["v2.4.1"].status == "kept"
    assert found["TokenStale"].status == "lost"
    assert found["v2.4.1"].used is None


def test_a_fact_that_the_answer_invents_is_still_lost() -> None:
    assert _facts("nothing", [], "TokenStale")["TokenStale"].status == "lost"


def test_superseded_values_are_not_attributed() -> None:
    assert "not POOL_SIZE = 4" not in _facts("nothing", [], None)


def test_evidence_is_where_the_fact_stands_unless_its_author_says_otherwise() -> None:
    evidence = FixtureFacts(FIXTURE)
    here, said = small.probe(["v2.4.1"]).required[0], small.probe([{"fact": "v2.4.1", "evidence": [4]}]).required[0]
    assert evidence.of(here) == [1]
    assert evidence.of(said) == [4]


def test_facts_that_the_session_lacks_count_in_no_share() -> None:
    here = FactRecord(label="a", kept=True, at_risk=True, evidence=[3])
    absent = FactRecord(label="b", kept=False, at_risk=True)
    assert ProbeRecord(facts=[here, absent]).retention == 1
    assert math.isnan(ProbeRecord(facts=[absent]).retention)
