"""Parsers of what strangers write: a value, or the one error that they promise."""

from __future__ import annotations

import contextlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval_core.base.errors import UserError
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.base.strict_yaml import parse_yaml
from eval_core.domain.target import target_from
from tests.foreign import damaged_json, json_values

LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}, *{before}, *{before}, *{before}, *{before}, *{before}, *{before}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{name}: &{name}\n  <<: [{', '.join([f'*{before}'] * 30)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 10_000, "nested deeper than 32 levels"),
        ("a: " + "{b: " * 500, "nested deeper than 32 levels"),
        ("- " * 3000 + "x", "nested deeper than 32 levels"),
        ("a: &x [*x]", "nested deeper than 32 levels"),
        ("a: &x {b: {c: *x}}", "nested deeper than 32 levels"),
        ("&x {<<: *x}", "nested deeper than 32 levels"),
        (LAUGHS, "more than 50,000 values"),
        (MERGES, "more than 50,000 values"),
        ("a: 1\nb: 2\na: 3", "line 3, column 1: broken YAML: the key 'a' is given twice"),
        ("init: {a: 1, a: 2}", "the key 'a' is given twice"),
        ("a: " + "1" * 5000, "a number of 5,000 digits"),
        ("a: 0x" + "f" * 500, "is a number in some versions of YAML and text in others"),
        ("budget_usd: 190:20:30", "190:20:30 is a number in some versions of YAML and text in others"),
        ("budget_usd: 1:30.5", "1:30.5 is a number in some versions"),
        ("ports: [22:22]", "22:22 is a number in some versions"),
        ("runs: 1_000", "1_000 is a number in some versions"),
        ("runs: 1_0.5", "1_0.5 is a number in some versions"),
        ("runs: 0o17", "0o17 is a number in some versions"),
        ("runs: 017", "017 is a number in some versions"),
        ("runs: -0x1F", "-0x1F is a number in some versions"),
        ("runs: 0b11", "0b11 is a number in some versions"),
        ("190:20: x", "190:20 is a number in some versions"),
        ("a: !!int 1_0", "is not used here"),
        ("a: !!float 1:30", "is not used here"),
        ("a: -.INF", "is not a finite number"),
        ("a: !!binary aGk=", "is not used here"),
        ("a: !!set {b}", "is not used here"),
        ("a: !!python/name:os.system", "is not used here"),
        ("? [a]\n: b", "cannot be a key"),
        ("a: !!int x", "is not used here"),
        ("a: !!float x", "is not used here"),
        ("a: !!bool x", "is not used here"),
        ("a: !!int", "is not used here"),
        ("a: !!seq abc", "is not used here"),
        ("a: !!seq {b: c}", "is not used here"),
        ("a: !!map [b, c]", "is not used here"),
        ("a: !!map [[b, c]]", "is not used here"),
        ("a: !!map bc", "is not used here"),
        ("!!int {a: 1}", "is not used here"),
        ("!!float [1.5]", "is not used here"),
        ("!!str {=: b}", "is not used here"),
        ("a: !!bool [yes]", "is not used here"),
        ('a: "\\UFFFFFFFF"', "broken YAML"),
        ('a: "\\ud800"', "half of a surrogate pair"),
        ("a: 1\n---\nb: 2", "broken YAML"),
        ("\x00", "broken YAML"),
        ("x" * 600_000, "longer than 524,288 characters"),
    ],
)
def test_yaml_that_is_out_of_bounds_is_one_sentence(text, said):
    with pytest.raises(UserError, match=r"^f: ") as error:
        parse_yaml(text, "f")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_what_people_write_in_yaml_is_read():
    text = "a: &base {x: 1, y: 2.5}\nb:\n  <<: *base\n  y: yes\nsince: 2024-01-31\nt: ~\nl: [a, 'b', \"c\"]\n"
    assert parse_yaml(text, "f") == {
        "a": {"x": 1, "y": 2.5}, "b": {"x": 1, "y": True}, "since": "2024-01-31", "t": None, "l": ["a", "b", "c"],
    }  # fmt: skip
    assert parse_yaml("", "f") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 0", 0),
        ("a: -12", -12),
        ("a: +3", 3),
        ("a: 2.50", 2.5),
        ("a: .5", 0.5),
        ("a: 1e-3", 0.001),
        ("a: '190:20:30'", "190:20:30"),
        ("a: '017'", "017"),
        ("a: 1.2.3", "1.2.3"),
        ("a: 10:02:11Z", "10:02:11Z"),
        ("a: 2024-01-31 10:02:11", "2024-01-31 10:02:11"),
        ("a: 1_x", "1_x"),
        ("a: on", True),
        ("a: 'no'", "no"),
    ],
)
def test_a_plain_scalar_is_a_number_only_as_json_writes_it(text, value):
    found = parse_yaml(text, "f")["a"]
    assert found == value
    assert type(found) is type(value)


@given(json_values())
def test_all_that_yaml_reads_can_be_written_as_json(value):
    with contextlib.suppress(UserError):
        json.dumps(parse_yaml(yaml.safe_dump(value), "f"), allow_nan=False)


@given(st.text(alphabet="ab1.:-?&*!<>|{}[],\"'# \n\t~=%@`", max_size=60))
def test_no_text_makes_the_yaml_reader_raise_anything_but_its_own_error(text):
    with contextlib.suppress(UserError):
        target_from(parse_yaml(text, "f"), "f")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 500 + "]" * 500, "nested deeper than 64 levels"),
        ("[" * 100_000, "nested deeper"),
        ('{"a": ' + "1" * 400 + "}", "a number has 400 digits"),
        ('{"a": ' + "1" * 5000 + "}", "a number has 5,000 digits"),
        ("[NaN]", "NaN is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ("[1e400]", "is not finite"),
        (b"\xff", "not UTF-8"),
        ("", "line 1, column 1: Expecting value"),
    ],
)
def test_json_that_is_out_of_bounds_is_one_error(text, said):
    with pytest.raises(BadJson, match=r"^.{1,100}$") as error:
        parse_json(text)
    assert said in str(error.value)


@given(damaged_json() | st.binary(max_size=100))
def test_no_bytes_make_the_json_reader_raise_anything_but_its_own_error(data):
    with contextlib.suppress(BadJson):
        json.dumps(parse_json(data), allow_nan=False)


def test_of_what_is_merged_the_first_wins_and_a_key_of_its_own_wins_over_both() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {x: 2, z: 2}\nc: {<<: [*a, *b], y: 3}"
    assert parse_yaml(text, "f")["c"] == {"x": 1, "y": 3, "z": 2}
