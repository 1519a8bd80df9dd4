"""The messages a compression left alone are told from those it wrote."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eval_core.base.messages import Message
from eval_core.facts.verbatim import Kept, align, verbatim_indexes


def said(role: str, text: str | None, **more: object) -> Message:
    return {"role": role, "content": text, **more}


SESSION = [
    said("system", "You help."),
    said("user", "Fix the importer."),
    said("assistant", "ok"),
    said("user", "Port is 8493."),
    said("assistant", "ok"),
    said("user", "Now the tests."),
    said("assistant", "Done."),
]
SUMMARY = said("user", "Summary: the importer was fixed.")


def test_head_and_tail_are_found_around_a_summary() -> None:
    assert verbatim_indexes(SESSION, [SESSION[0], SUMMARY, *SESSION[5:]]) == {0, 5, 6}


def test_an_unchanged_list_is_verbatim_as_a_whole() -> None:
    assert verbatim_indexes(SESSION, SESSION) == set(range(len(SESSION)))


def test_a_repeated_message_at_the_tail_is_the_late_one() -> None:
    assert verbatim_indexes(SESSION, [SESSION[0], SUMMARY, *SESSION[4:]]) == {0, 4, 5, 6}


def test_equal_messages_in_the_middle_are_paired_in_order() -> None:
    compressed = [SESSION[0], SESSION[2], SESSION[3], SUMMARY]
    assert align(SESSION, compressed).kept == {0: 0, 1: 2, 2: 3}


def test_one_message_moved_to_the_front_does_not_cost_the_rest() -> None:
    compressed = [SESSION[0], SESSION[5], SUMMARY, SESSION[1], SESSION[3], SESSION[6]]
    assert verbatim_indexes(SESSION, compressed) == {0, 1, 3, 6}


def test_no_content_and_empty_content_are_the_same() -> None:
    calls = [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]
    with_none, with_empty = said("assistant", None, tool_calls=calls), said("assistant", "", tool_calls=calls)
    assert verbatim_indexes([SESSION[0], with_none], [SUMMARY, with_empty]) == {1}


def test_a_changed_call_is_another_message() -> None:
    one = said("assistant", None, tool_calls=[{"id": "a", "function": {"name": "f", "arguments": "{}"}}])
    two = said("assistant", None, tool_calls=[{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}])
    assert verbatim_indexes([one], [two]) == set()


def test_a_message_that_carries_a_summary_is_kept_and_its_summary_is_the_compressors() -> None:
    carrier = said("user", f"{SUMMARY['content']}\n\n---\nNow the tests.")
    kept = Kept(SESSION, [SESSION[0], carrier, SESSION[6]])
    assert kept.indexes == {0, 5, 6}
    assert kept.alignment.carried == {1: 5}
    assert "Now the tests." not in kept.own_texts[0]
    assert "importer was fixed" in kept.own_texts[0]


def test_a_summary_that_mentions_a_short_message_does_not_carry_it() -> None:
    summary = said("assistant", "The assistant said ok and went on.")
    assert align(SESSION, [SESSION[0], summary, SESSION[6]]).carried == {}


def test_a_fact_whose_evidence_was_left_verbatim_was_never_at_risk() -> None:
    kept = Kept(SESSION, [SESSION[0], SUMMARY, *SESSION[3:]])
    assert kept.untested([3, 5])
    assert not kept.untested([1, 3])
    assert not kept.untested([])


def test_thousands_of_equal_messages_are_paired_without_delay() -> None:
    session = [SESSION[0], *[said("assistant", "ok") for _ in range(20_000)], SESSION[6]]
    compressed = [SESSION[0], SUMMARY, *session[5000:-1], said("user", "more")]
    assert len(verbatim_indexes(session, compressed)) > 1


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.data())
def test_every_part_taken_out_in_order_is_recognised(texts: list[str], data: st.DataObject) -> None:
    session = [said("user", text) for text in texts]
    picked = [message for message in session if data.draw(st.booleans())]
    assert len(verbatim_indexes(session, picked)) == len(picked)
