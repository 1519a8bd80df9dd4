from __future__ import annotations

from pathlib import Path

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.target import VARIABLES, Builtin, TargetSpec, read_target, substitute, target_from

TARGETS = Path(__file__).parents[2] / "docs" / "targets"


def test_every_shipped_target_is_a_valid_spec_with_its_adapter_beside_it():
    files = sorted(TARGETS.glob("*.yml"))
    assert {"hermes", "langchain", "strands", "aider", "headroom"} <= {file.stem for file in files}
    for file in files:
        spec = read_target(file)
        assert isinstance(spec, TargetSpec)
        if spec.adapter:
            assert (TARGETS / spec.adapter).is_file()
        if spec.adapter and spec.adapter.endswith(".py"):
            compile((TARGETS / spec.adapter).read_text(), spec.adapter, "exec")


def test_a_builtin_is_named_not_described():
    assert target_from("builtin:anchored", "x") == Builtin("anchored")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("anchored", "neither builtin:NAME nor a mapping"),
        ("builtin:", "neither builtin:NAME nor a mapping"),
        (["a"], "a mapping with the key compressor or command was expected, not list"),
        ({}, "conf.yml: give either compressor (Python) or command (any language)"),
        ({"compressor": "a:B", "command": ["x"]}, "give either compressor (Python) or command"),
        ({"command": "node run.mjs"}, "write the program and its arguments as a list, for example ['node', 'run.mjs']"),
        ({"command": []}, "command"),
        ({"command": ["x"], "method": "y"}, "method is for Python compressors"),
        ({"command": ["${HOME}/x"]}, "command: ${HOME} is not a variable"),
        ({"compressor": "a:B", "runtime": "."}, "runtime goes with command"),
        ({"compressor": "agent.compressor"}, "compressor"),
        ({"compressor": "a:B", "metod": "x"}, "metod: unknown field"),
        ({"compressor": "a:B", "init": {"key": "${HOME}"}}, "init: ${HOME} is not a variable; known are MODEL"),
        ({"compressor": "a:B", "call": {"deep": [{"x": "a ${PATH} b"}]}}, "${PATH} is not a variable"),
        ({"compressor": "a:B", "env": {"A-B": "1"}}, "'A-B' is not a name of an environment variable"),
        ({"compressor": "a:B", "env": {"A": 1}}, "env.A: Input should be a valid string (got '1')"),
        ({"compressor": "a:B", "files": {"../x": ""}}, "'../x' must be a relative path"),
        ({"compressor": "a:B", "pythonpath": ["/usr"]}, "'/usr' must be a relative path"),
        ({"compressor": "a:B", "llm": "maybe"}, "'maybe' is not one of required, none"),
        ({"compressor": "a:B", "timeout_s": 0}, "timeout_s"),
        ({"compressor": "a:B", "optional_init": ["x"]}, "'x' is in neither init nor call"),
    ],
)
def test_a_wrong_spec_is_refused_with_the_place_and_the_value(value, said):
    with pytest.raises(UserError) as error:
        target_from(value, "conf.yml")
    assert said in str(error.value)
    assert str(error.value).startswith("conf.yml")


def test_a_file_may_hold_the_keys_or_a_target_with_watch_beside_it(tmp_path):
    flat, nested = tmp_path / "flat.yml", tmp_path / "nested.yml"
    flat.write_text("compressor: a:B\nwatch: [a.py]\n")
    nested.write_text("target:\n  compressor: a:B\nwatch: [a.py]\n")
    assert read_target(flat) == read_target(nested)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("target: [", "line 1, column 10: broken YAML"),
        ("target: {compressor: 'a:B'}\nother: 1", "other: unknown field next to target"),
        ("target: {compressor: 'a:B', watch: []}\nwatch: []", "watch is given twice"),
    ],
)
def test_a_broken_file_is_named_with_the_line(tmp_path, text, said):
    file = tmp_path / "target.yml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"target\.yml") as error:
        read_target(file)
    assert said in str(error.value)


def test_a_lone_reference_keeps_its_type_and_an_embedded_one_becomes_text():
    values = {"FOCUS_TOPIC": None, "CONTEXT_LENGTH": 5, "MODEL": "m"}
    given = {
        "a": "${CONTEXT_LENGTH}",
        "b": ["${FOCUS_TOPIC}"],
        "c": "x-${MODEL}-${FOCUS_TOPIC}",
        "d": "${LLM_BASE_URL}",
    }
    assert substitute(given, values) == {"a": 5, "b": [None], "c": "x-m-", "d": "${LLM_BASE_URL}"}
    assert "LLM_BASE_URL" in VARIABLES
