"""Messages are read as people see them, whatever shape their content has."""

from __future__ import annotations

import json

import pytest
import small

from eval_core.base.messages import Message, call_arguments, call_name, content_text, full_text, render, tool_calls


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ([{"type": "text", "text": "one"}, "two"], "one\ntwo"),
        ([{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text", "text": None}], "\n"),
        ([], ""),
    ],
)
def test_content_of_every_shape_has_a_text(content: object, text: str) -> None:
    assert content_text({"role": "user", "content": content}) == text


def test_a_message_without_calls_has_none() -> None:
    assert list(tool_calls({"role": "user", "content": "x"})) == []
    assert list(tool_calls({"role": "assistant", "content": "x", "tool_calls": None})) == []


def test_arguments_may_be_a_string_or_an_object() -> None:
    assert call_arguments({"function": {"name": "f", "arguments": '{"a": 1}'}}) == '{"a": 1}'
    assert json.loads(call_arguments({"function": {"name": "f", "arguments": {"a": "ü"}}})) == {"a": "ü"}
    assert call_name({"id": "x"}) == ""


def test_escapes_of_nested_json_hide_nothing() -> None:
    path = "src\\app\nnext"
    message = small.result("c", path, error=None, items=[{"id": 7}, "last"])
    text = full_text(message)
    assert path in text
    assert "id: 7" in text
    assert "last" in text
    assert "error: null" in text


def test_text_that_only_begins_like_json_stays_as_it_is() -> None:
    assert full_text(small.say("[note] keep {this}")) == "[note] keep {this}"


def test_a_rendered_session_holds_roles_contents_and_arguments_in_order() -> None:
    messages: list[Message] = [small.user("first"), small.calls(("c", "terminal", {"command": "ls -a"}))]
    text = render([*messages, small.result("c", "third")])
    assert text.index("[user]\nfirst") < text.index("terminal\ncommand: ls -a") < text.index("[tool]\noutput: third")
