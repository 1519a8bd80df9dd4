"""Reading names what is wrong and where; writing replaces whole files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

from eval_core.base.errors import UserError
from eval_core.base.files import canonical, digest, pretty, pretty_parts, read_json, read_text, write_atomic

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.json: no such file$"):
        read_json(tmp_path / "gone.json")


def test_a_folder_is_not_read_as_a_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        read_text(tmp_path)


def test_a_file_larger_than_any_session_is_not_read(tmp_path: Path) -> None:
    path = small.write(tmp_path / "huge.json", "")
    os.truncate(path, 5 * 1024**3)
    with pytest.raises(UserError, match=r"huge\.json: cannot be read: it holds 5,368,709,120 bytes, at most 4,294"):
        read_json(path)


def test_text_that_is_not_utf8_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(b'{"a": "caf\xe9"}')
    with pytest.raises(UserError, match=r"latin\.json: not UTF-8 \(byte 10\); save the file as UTF-8"):
        read_json(path)


def test_broken_json_names_line_and_column(tmp_path: Path) -> None:
    path = small.write(tmp_path / "cut.json", '{\n  "a": 1,\n  "b": \n}\n')
    with pytest.raises(UserError, match=r"cut\.json: line 4, column 1: broken JSON: Expecting value"):
        read_json(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": NaN}', "NaN is not a number that JSON knows"),
        ('{"a": 1e999}', "the number 1e999 is not finite"),
        ("[" * 100_000, "broken JSON"),
        ("", "line 1, column 1"),
    ],
)
def test_what_could_not_be_written_again_is_refused_when_read(tmp_path: Path, text: str, why: str) -> None:
    path = small.write(tmp_path / "odd.json", text)
    with pytest.raises(UserError, match=why) as caught:
        read_json(path)
    assert "odd.json" in str(caught.value)


@given(VALUES)
def test_pretty_text_reads_back_as_the_same_value(value: object) -> None:
    assert json.loads(pretty(value)) == value


def test_an_object_written_member_by_member_is_the_same_text() -> None:
    value = {"a": [1, 2], "b": {"x": {"y": [{"z": None}]}, "e": {}}, "c": {}, "d": "ü"}
    parts = pretty_parts((key, iter(item.items()) if isinstance(item, dict) else item) for key, item in value.items())
    assert "".join(parts) + "\n" == pretty(value)
    assert "".join(pretty_parts(())) + "\n" == pretty({})


@given(VALUES)
def test_pretty_text_is_stable(value: object) -> None:
    assert pretty(json.loads(pretty(value))) == pretty(value)


def test_plain_lists_stand_on_one_line_and_nested_ones_do_not() -> None:
    assert pretty({"a": [1, 2], "b": [{"c": "ü"}], "d": []}) == (
        '{\n  "a": [1, 2],\n  "b": [\n    {\n      "c": "ü"\n    }\n  ],\n  "d": []\n}\n'
    )


@given(st.dictionaries(st.text(), st.integers(), min_size=1))
def test_a_digest_does_not_see_the_order_of_keys_but_every_value(value: dict[str, int]) -> None:
    turned = dict(reversed(value.items()))
    assert digest(turned) == digest(value)
    key = next(iter(value))
    assert digest({**value, key: value[key] + 1}) != digest(value)


def test_canonical_bytes_hold_no_number_that_json_lacks() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical(float("inf"))


def test_a_write_replaces_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = small.write(tmp_path / "deep" / "a.json", "old")
    write_atomic(path, "new")
    assert path.read_text() == "new"
    assert [entry.name for entry in path.parent.iterdir()] == ["a.json"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failed_write_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small.write(tmp_path / "a.json", "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(UserError, match="cannot be written: No space left on device"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_half_a_character_is_kept_through_writing_reading_and_digests(tmp_path: Path) -> None:
    value = {"cut": "\ud83d", "whole": "ü😀"}
    write_atomic(tmp_path / "a.json", pretty(value))
    assert read_json(tmp_path / "a.json") == value
    assert digest(value) != digest({**value, "cut": "?"})


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    small.write(tmp_path / "file", "")
    with pytest.raises(UserError, match=r"file/a\.json: cannot be written: "):
        write_atomic(tmp_path / "file" / "a.json", "text")
