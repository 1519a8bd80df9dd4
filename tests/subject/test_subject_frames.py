from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_core.sandbox.validate import BadFrame, StepResult, error_text, read_frame, read_step

MESSAGE = {"role": "user", "content": "x"}


def frame(**fields):
    return json.dumps({"nonce": "n", "phase": "step", **fields}).encode()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a frame of this run"),
        (b'{"nonce": "other", "phase": "step"}', "not a frame of this run"),
        (b'{"nonce": "n", "phase": 3}', "not a frame of this run"),
        (b'{"nonce": "n", "phase": "step", "x": NaN}', "NaN"),
        (b'{"nonce": "n", "phase": "step", "x": -Infinity}', "Infinity"),
        (b'{"nonce": "n", "phase": "step", "x": 1e999}', "not finite"),
        (b'{"nonce": "n", "phase": "step", "x": 1' + b"0" * 5000 + b"}", "digits"),
        (b'{"nonce": "n", "phase": "step", "x": ' + b"[" * 40 + b"]" * 40 + b"}", "nested deeper"),
        (b'{"nonce": "n", "phase": "step", "x": [' + b"{}," * 400_000 + b"{}]}", "more than 400,000 values"),
        (b'{"nonce": "n", "phase": "step", "x": "\\ud800"}', "surrogate"),
        (b'{"nonce": "n", "phase": "step", "\\udfff": 1}', "surrogate"),
    ],
)
def test_bytes_that_are_no_frame_of_this_run_are_refused(data, said):
    with pytest.raises(BadFrame, match=said):
        read_frame(data, "n")


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ("text", "returned a str"),
        ([], "empty list"),
        ([["x"]], r"messages\[0\]: a list"),
        ([{"role": ["user"], "content": "x"}], "role: must be text"),
        ([{"role": "tool", "tool_call_id": {}, "content": "x"}], "tool_call_id: must be text"),
        ([{"role": "user", "content": 3}], "must be text"),
        ([{"role": "user", "content": [{"text": 3}]}], "text must be text"),
        ([{"role": "assistant", "tool_calls": [3]}], "function with a name"),
        ([{"role": "assistant", "tool_calls": [{"id": "a", "function": "ls"}]}], "function with a name"),
        ([{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "x", "arguments": 3}}]}], "arguments"),
        ([{"role": "assistant", "tool_calls": {"a": 1}}], "must be a list"),
        ([MESSAGE] * 20_001, "20,001 messages"),
    ],
)
def test_a_list_that_is_no_message_list_is_the_compressors_error(messages, said):
    result = read_step(read_frame(frame(messages=messages), "n"))
    assert isinstance(result, str)
    assert re.search(said, result)


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
CALL = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}


def calling(**changes):
    call = {**CALL, **{key: value for key, value in changes.items() if key == "id"}}
    if "name" in changes:
        call["function"] = {**CALL["function"], "name": changes["name"]}
    answer = {"role": "tool", "tool_call_id": call["id"], "content": "a.py"}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, answer]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (
            [{"role": "user", "content": ["x", {"d": "the whole session"}]}],
            r"a part that is not text \(without a type\)",
        ),
        ([{"role": "user", "content": [{"type": "note", "text": "x"}]}], r"a part that is not text \(note\)"),
        ([{"role": "user", "content": [IMAGE]}], r"a part that is not text \(image_url\) and not in the session"),
        (calling(id="c" * 257), "an id of 257 characters"),
        (calling(name="n" * 65), "a tool's name of 65 characters"),
        (calling(name=""), "a tool's name of 0 characters"),
        (calling(name="  "), "a tool's name of 2 characters"),
    ],
)
def test_what_nobody_would_count_is_refused_unless_the_session_has_it(messages, said):
    result = read_step(read_frame(frame(messages=messages), "n"))
    assert isinstance(result, str)
    assert re.search(said, result)
    kept = read_step(read_frame(frame(messages=messages), "n"), messages)
    assert isinstance(kept, StepResult)
    assert kept.messages == messages


def test_a_part_of_the_session_may_stand_in_another_message():
    given = [{"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]}]
    result = read_step(read_frame(frame(messages=[{"role": "user", "content": [IMAGE, "summary"]}]), "n"), given)
    assert isinstance(result, StepResult)
    assert result.messages == [{"role": "user", "content": [IMAGE, "summary"]}]


def test_fields_that_say_nothing_are_dropped_and_the_compressor_gets_them_back():
    session = [{"role": "user", "content": "x", "timestamp": 3, "name": "ann"}]
    mine = {
        "role": "assistant",
        "content": [{"type": "text", "text": "summary", "cache_control": {"type": "ephemeral"}}],
        "reasoning_content": "the whole session",
        "metadata": {"all": "the whole session"},
        "tool_calls": [{**CALL, "note": "the whole session", "function": {**CALL["function"], "doc": "and again"}}],
        "name": "the whole session",
        "tool_call_id": "the whole session",
    }
    answer = {"role": "tool", "tool_call_id": "c", "name": "ann", "content": "ok"}
    result = read_step(read_frame(frame(messages=[*session, mine, answer]), "n"), session)
    assert isinstance(result, StepResult)
    assert result.messages == [
        *session,
        {"role": "assistant", "content": [{"type": "text", "text": "summary"}], "tool_calls": [CALL]},
        answer,
    ]
    assert result.returned == [*session, mine, answer]


def test_a_claim_of_degradation_is_read_and_anything_else_in_status_is_not():
    told = read_step(read_frame(frame(messages=[MESSAGE], status={"degraded": 1, "error": "e" * 9999}), "n"))
    silent = read_step(read_frame(frame(messages=[MESSAGE], status="degraded"), "n"))
    assert isinstance(told, StepResult)
    assert (told.degraded, len(told.reason)) == (True, 2000)
    assert isinstance(silent, StepResult)
    assert not silent.degraded


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["messages", "status", "error", "problem", "state", "same_object", "phase"]), json_values
    )
)
def test_no_frame_whatever_it_holds_raises_anything_but_bad_frame(fields):
    fields.setdefault("phase", "step")
    try:
        parsed = read_frame(json.dumps({**fields, "nonce": "n"}).encode(), "n")
        read_step(parsed)
        error_text(parsed)
    except BadFrame:
        pass


message_like = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "tool", "system", "oracle"]) | json_values,
        "content": json_values,
        "tool_call_id": st.sampled_from(["a", "b"]) | json_values,
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {}, optional={"id": st.sampled_from(["a", "b"]) | json_values, "function": json_values}
            )
        )
        | json_values,
    },
)


@given(st.lists(message_like | json_values, max_size=5))
def test_no_message_list_whatever_it_holds_raises(messages):
    result = read_step({"phase": "step", "nonce": "n", "messages": messages})
    assert isinstance(result, str | StepResult)
