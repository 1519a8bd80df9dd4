"""What the compressor says to its model apart from the session, taken out of its requests."""

from __future__ import annotations

import asyncio
import json

import pytest

from eval_core.base.messages import Message
from eval_core.domain.call import Draw, ModelCall
from eval_core.domain.compression import ModelRequest, Step
from eval_core.domain.session_text import SessionText
from eval_core.models.offline import OfflineModel
from eval_core.strands.asks import read_asks

SESSION: list[Message] = [
    {"role": "user", "content": "Move the exporter to the new queue and keep src/export/run.py as it is."},
    {
        "role": "assistant",
        "content": "I will read the worker first.",
        "tool_calls": [
            {
                "id": "call_7",
                "type": "function",
                "function": {"name": "read_file", "arguments": '{"path": "src/export/worker.py", "limit": 40}'},
            }
        ],
    },
    {
        "role": "tool",
        "tool_call_id": "call_7",
        "content": "def drain(queue):\n    while True:\n        job = queue.get()",
    },
    {"role": "user", "content": "yes"},
    {"role": "assistant", "content": "The queue at /var/spool/export holds 4812 jobs because the worker died."},
]
PROMPT = "Summarise the turns below.\nKeep every path word for word.\n\nTURNS:\n"


def asked(text: str, *before: Message) -> list[str]:
    request = ModelRequest((*before, {"role": "user", "content": text}))
    (record,) = read_asks([request], (), SessionText(SESSION))
    return record.text.split("\n")


def labelled() -> str:
    return "\n".join(f"[{message['role'].upper()}]: {message['content']}" for message in SESSION)


INSTRUCTIONS = ["Summarise the turns below.", "Keep every path word for word."]


@pytest.mark.parametrize(
    "session",
    [
        labelled(),
        json.dumps(SESSION),
        json.dumps(SESSION, indent=2),
        "\n".join(f"<turn>{str(message['content'])[:60]} ...</turn>" for message in SESSION),
        " ".join(str(message["content"]) for message in SESSION),
    ],
    ids=["labelled", "json", "indented json", "cut", "in one line"],
)
def test_the_session_is_left_out_in_whatever_form_it_was_written(session: str) -> None:
    lines = asked(PROMPT + session)
    assert [line for line in lines if line in INSTRUCTIONS] == INSTRUCTIONS
    assert not [line for line in lines if "exporter" in line or "drain" in line or "4812" in line]


def test_instructions_in_the_line_of_the_session_are_kept() -> None:
    lines = asked("Summarise this conversation and keep every path: " + " ".join(str(m["content"]) for m in SESSION))
    assert lines[:2] == ["(user)", "Summarise this conversation and keep every path [...]"]


def test_messages_of_the_session_are_none_of_the_compressor_s() -> None:
    assert asked("Now write the summary.", *SESSION) == ["[...]", "(user)", "Now write the summary."]


def test_a_summary_that_comes_back_is_no_instruction_and_the_template_it_followed_still_is() -> None:
    template = "Write these sections:\n## Goal\n## Files\n"
    reply = "## Goal\n- Move the exporter, as the user asked for today\n## Files\n- src/export/run.py stays as it was"
    state: Message = {"role": "user", "content": f"Earlier turns were compacted.\n{reply}"}
    requests = [
        ModelRequest(({"role": "user", "content": template + labelled()},), 0, reply),
        ModelRequest(({"role": "user", "content": f"{template}PREVIOUS:\n{reply}\n{labelled()}"},), 1),
    ]
    first, second = read_asks(requests, [Step([state], 0, 0, 0.0)] * 2, SessionText(SESSION))
    assert "Write these sections:\n## Goal\n## Files\n" in first.text
    assert "Write these sections:\n## Goal\n## Files\n" in second.text
    assert "exporter" not in second.text


def test_what_was_shown_of_the_session_has_a_digest_that_the_instructions_do_not_change() -> None:
    def digest(text: str) -> str:
        (record,) = read_asks([ModelRequest(({"role": "user", "content": text},))], (), SessionText(SESSION))
        return record.session

    assert digest(PROMPT + labelled()) == digest("In two sentences, please.\n" + labelled())
    assert digest(PROMPT + labelled()) != digest(PROMPT + labelled()[:150])


def test_dates_and_ids_of_a_request_are_not_written_down() -> None:
    line = "Today is {}, request {}."
    made = [
        asked(line.format(*when))
        for when in (
            ("Wednesday, 18 November 2026, 18:35:30", "0b7cf1ab-26cf-4d5b-9f17-3f2a1f1f5e00"),
            ("Thursday, 3 December 2026, 07:01:59", "77e1c6f0-9a4b-4c37-8a51-d2a35d2b6f11"),
        )
    ]
    assert made[0] == made[1]


def test_settings_of_a_request_are_asked_for_too() -> None:
    request = ModelRequest(({"role": "user", "content": "Summarise."},), settings=("max_tokens: 900",))
    (record,) = read_asks([request], (), SessionText(SESSION))
    assert record.text.split("\n") == ["(user)", "Summarise.", "(max_tokens: 900)"]


def summary_of(*messages: Message, max_tokens: int = 2_000) -> str:
    call = ModelCall(role="compressor", model="m", messages=messages, max_tokens=max_tokens, draw=Draw())
    return asyncio.run(OfflineModel(SessionText(SESSION)).complete(call)).text


def test_the_stand_in_keeps_only_text_of_the_session() -> None:
    shown: Message = {"role": "user", "content": PROMPT + labelled()}
    plain = summary_of(shown)
    assert "/var/spool/export" in plain
    examples = "Example: fixed the bug in app/models/user.py because tests/test_user.py failed with 17 errors.\n"
    assert summary_of({"role": "user", "content": examples + PROMPT + labelled()}) == plain
    for role in ("system", "developer"):
        assert (
            summary_of({"role": role, "content": "Never touch AGENTS.md, see skills/review/SKILL.md."}, shown) == plain
        )


def test_the_stand_in_reads_the_arguments_of_calls() -> None:
    assert "src/export/worker.py" in summary_of(*SESSION)


def test_the_stand_in_always_answers() -> None:
    assert summary_of({"role": "user", "content": "Which title does this have?"})
