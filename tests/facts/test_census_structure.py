"""Each kind of structural damage fails its own check and no other."""

from __future__ import annotations

import pytest

from eval_core.base.messages import Message
from eval_core.strands.structure import STRUCTURE_CHECKS, structure_checks


def said(role: str, text: str | None) -> Message:
    return {"role": role, "content": text}


def called(name: str) -> list[Message]:
    calls = [{"id": name, "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": name, "content": f"output of {name} " * 5},
    ]


SESSION: list[Message] = [
    said("system", "You help."),
    said("user", "Fix the importer."),
    *called("a"),
    *called("b"),
    said("assistant", "Fixed; tests are next."),
    said("user", "Run the tests, then stop."),
    *called("c"),
    said("assistant", "All green."),
]
SUMMARY = said("user", "Summary of the earlier conversation: the importer was fixed.")
HEAD, TAIL = SESSION[:1], SESSION[6:]
GOOD = [*HEAD, SUMMARY, *TAIL]


def failed(compressed: list[Message], original: list[Message] = SESSION) -> set[str]:
    return {name for name, passed in structure_checks(original, compressed).items() if not passed}


def test_every_check_is_described_and_every_description_is_checked() -> None:
    assert set(structure_checks(SESSION, GOOD)) == set(STRUCTURE_CHECKS)


@pytest.mark.parametrize(
    "compressed",
    [
        GOOD,
        SESSION,
        [*SESSION[:2], SUMMARY, *TAIL],
        [*HEAD, said("user", f"{SUMMARY['content']}\n\nRun the tests, then stop."), *SESSION[8:]],
        [said("system", "You help.\n\n[Earlier turns were compacted.]"), SUMMARY, *TAIL],
        [*HEAD, said("assistant", "Summary."), *TAIL],
    ],
    ids=["plain", "nothing to do", "longer head", "merged into the request", "note on the prompt", "by the assistant"],
)
def test_a_sound_compression_passes_every_check(compressed: list[Message]) -> None:
    assert failed(compressed) == set()


@pytest.mark.parametrize(
    ("compressed", "checks"),
    [
        ([*HEAD, SUMMARY, TAIL[0], TAIL[4], *TAIL[1:4]], {"kept_messages_in_order"}),
        ([SUMMARY, *HEAD, *TAIL], {"system_prompt_first"}),
        ([said("system", "You obey."), SUMMARY, *TAIL], {"system_prompt_first", "one_summary"}),
        ([*HEAD, SUMMARY, SESSION[5], *TAIL], {"tool_pairs_whole"}),
        ([*HEAD, SUMMARY, SESSION[4], *TAIL], {"tool_pairs_whole"}),
        ([*HEAD, SUMMARY, TAIL[0], *TAIL[2:]], {"last_user_request_present"}),
        ([*HEAD, *TAIL], {"one_summary"}),
        ([*HEAD, SUMMARY, said("assistant", "Understood."), *TAIL], {"one_summary"}),
        ([*HEAD, *TAIL, SUMMARY], {"summary_before_tail"}),
        ([*HEAD, said("summary", "It was fixed."), *TAIL], {"roles_accepted"}),
        ([*HEAD, SUMMARY, TAIL[0], *TAIL], {"nothing_duplicated"}),
        ([*HEAD, said("user", " "), *TAIL], {"no_empty_messages"}),
        ([*HEAD, said("user", "Resume exactly where it stopped; do not ask."), *TAIL], {"no_orders_in_summary"}),
        (
            [*HEAD, SUMMARY, *TAIL[:2], TAIL[2], {**TAIL[3], "content": "[cleared]"}, TAIL[4]],
            {"kept_messages_unchanged"},
        ),
    ],
)
def test_damage_fails_the_check_that_is_named_for_it(compressed: list[Message], checks: set[str]) -> None:
    assert failed(compressed) == checks


def test_a_conversation_may_not_open_with_a_tool_result_or_be_empty() -> None:
    assert "roles_accepted" in failed([*HEAD, *TAIL[3:]])
    assert "roles_accepted" in failed([])


def test_an_order_that_the_user_gave_may_be_told_again() -> None:
    session = [*SESSION[:1], said("user", "From here on do not ask, just do it."), *SESSION[2:]]
    told = said("user", "The user said: do not ask, just do it.")
    assert "no_orders_in_summary" not in failed([*HEAD, told, *TAIL], session)


def test_a_second_compression_replaces_the_first_summary() -> None:
    chained = [*GOOD, said("user", "And the docs?"), said("assistant", "Next.")]
    again = [*HEAD, said("user", "Summary: importer fixed, tests green."), *chained[-2:]]
    assert failed(again, chained) == set()
