"""The configuration: every field has a default, and a mistake is named with its line or field."""

from __future__ import annotations

from pathlib import Path

import pytest
import small

from eval_core.base.config import CONFIG_FILE, Config, load_config
from eval_core.base.errors import UserError


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    assert load_config(None, tmp_path) == Config()


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    small.write(tmp_path / CONFIG_FILE, "# nothing yet\n")
    assert load_config(None, tmp_path) == Config()


def test_a_file_that_was_asked_for_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"other\.yml: no such file"):
        load_config(tmp_path / "other.yml")


def test_values_are_read(tmp_path: Path) -> None:
    path = small.write(
        tmp_path / "c.yml", "runs: 5\nmodels:\n  judge: openai/gpt\n  prices:\n    m: {input: 1, output: 2.5}\n"
    )
    settings = load_config(path)
    assert (settings.runs, settings.models.judge, settings.models.prices["m"].output) == (5, "openai/gpt", 2.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runz: 5", r"c\.yml: runz: unknown field; did you mean 'runs'\?"),
        ("bot:\n  lable: x", r"c\.yml: bot\.lable: unknown field; did you mean 'label'\?"),
        (
            "models:\n  prices:\n    m: {input: 1, output: 2, outputs: 3}",
            r"prices\.m\.outputs: unknown field; did you mean 'output'\?",
        ),
        ("weather: 5", r"c\.yml: weather: unknown field; remove it or check its spelling"),
        ("runs: 0", r"c\.yml: runs: Input should be greater than or equal to 1 \(got '0'\)"),
        ("runs: many", r"c\.yml: runs: .*valid integer.*\(got 'many'\)"),
        ("bot:\n  conclusion: red", r"c\.yml: bot\.conclusion: 'red' is not one of neutral, verdict"),
        ("models:\n  prices:\n    m: {input: -1, output: 2}", r"c\.yml: models\.prices\.m\.input: .*greater than"),
        ("a: [1,\nb: 2", r"c\.yml: line 2, column 5: broken YAML: "),
        ("- a", r"c\.yml: Input should be a valid dictionary"),
        ("budget_usd: .inf", r"c\.yml: line 1, column 13: broken YAML: \.inf is not a finite number"),
        ("budget_usd: .nan", r"\.nan is not a finite number"),
        ("budget_usd: 1.0e+999", r"1\.0e\+999 is not a finite number"),
        ("runs: 3\nruns: 4", r"c\.yml: line 2, column 1: broken YAML: the key 'runs' is given twice"),
        ("runs: " + "9" * 400, r"a number of 400 digits"),
        ("focus_topic: !!timestamp 2024-99-99", r"the tag '.*timestamp' is not used here"),
        ("target: [1]", r"c\.yml: target"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_value(tmp_path: Path, text: str, message: str) -> None:
    path = small.write(tmp_path / "c.yml", text)
    with pytest.raises(UserError, match=message) as caught:
        load_config(path)
    assert "\n" not in str(caught.value)


def test_a_tag_of_yaml_runs_nothing(tmp_path: Path) -> None:
    path = small.write(tmp_path / "c.yml", "focus_topic: !!python/object/apply:os.getcwd []")
    with pytest.raises(UserError, match="broken YAML"):
        load_config(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["runs=5", "models.judge=j", "concurrency=2"], {"runs": 5, "concurrency": 2, "judge": "j"}),
        (["models.prices={b: {input: 3, output: 4}}"], {"prices": {"a": 1.0, "b": 3.0}}),
        (["models.prices={a: {input: 3, output: 4}}"], {"prices": {"a": 3.0}}),
        (["stop=full", "stop=early"], {"stop": "early"}),
        (["models.api_base=http://127.0.0.1:1/v1?a=b"], {"api_base": "http://127.0.0.1:1/v1?a=b"}),
        (["watch=[a, b]"], {"watch": ["a", "b"]}),
    ],
)
def test_a_key_can_be_set_for_one_run(tmp_path: Path, changes: list[str], said: dict[str, object]) -> None:
    path = tmp_path / "c.yml"
    path.write_text("runs: 2\nwatch: [c]\nmodels: {judge: other, prices: {a: {input: 1, output: 2}}}\n")
    config = load_config(path, changes=changes)
    found = {**config.model_dump(), **config.models.model_dump()}
    found["prices"] = {name: price.input for name, price in config.models.prices.items()}
    assert {name: found[name] for name in said} == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("runs", "--set runs: expected KEY=VALUE, e.g. "),
        ("=5", "--set =5: expected KEY=VALUE, e.g. "),
        ("runs=many", "--set runs: runs: "),
        ("models.nothing=1", "--set models.nothing: models.nothing: "),
        ("models.questions_per_call=4", "models.questions_per_call was removed. "),
    ],
)
def test_a_key_that_cannot_be_set_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        load_config(None, changes=[change])
    assert said in str(caught.value)
