"""The commands, as a user calls them."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eval_core.base.errors import UserError
from eval_core.cli.fixture import fixture as group
from eval_core.domain.fixture import dump_fixture, load_fixture
from tests.suite.conftest import ROOT, Write, openai_rows
from tests.suite.sessions import ALNUM, draw, session

TOKEN = "npm" + "_" + draw(random.Random(4), ALNUM, 36)


def run(*arguments: object, answer: str | None = None) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments], input=answer)


def log(jsonl: Write, text: str) -> Path:
    rows = openai_rows()
    rows[3]["content"] = text
    return jsonl(*rows)


def test_import_writes_a_scrubbed_audited_fixture(jsonl: Write, tmp_path: Path) -> None:
    source = log(jsonl, f"key {TOKEN} in /home/brandmark/x, brandmark owns it")
    result = run("import", source, "--name", "demo", "--output", tmp_path / "out", "--yes")
    assert result.exit_code == 0, result.output
    stored = load_fixture(tmp_path / "out" / "demo.json")
    assert stored.messages[3]["content"] == "key REDACTED-npm-token-1 in /home/user1/x, user1 owns it"
    assert TOKEN not in result.output
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["demo.json"]
    audited = run("audit", tmp_path / "out")
    assert audited.exit_code == 0
    assert "0 findings" in audited.output


def test_import_with_redacted_findings_says_nothing_where_there_are_none(jsonl: Write, tmp_path: Path) -> None:
    source = log(jsonl, f"key {TOKEN}")
    result = run("import", source, "--name", "demo", "--output", tmp_path, "--yes", "--redact-findings")
    assert result.exit_code == 0, result.output
    assert "replaced by" not in result.output
    assert load_fixture(tmp_path / "demo.json").messages[3]["content"] == "key REDACTED-npm-token-1"


def test_outputs_of_a_long_session_are_kept_whole_unless_asked(jsonl: Write, tmp_path: Path) -> None:
    short, long = "word " * 2_000, "word " * 110_000
    for text, options, whole in ((short, (), False), (long, (), True), (long, ("--max-output", 4_000), False)):
        result = run("import", log(jsonl, text), "--name", "demo", "--output", tmp_path, "--yes", "--force", *options)
        assert result.exit_code == 0, result.output
        (path,) = tmp_path.glob("demo.*json*")
        assert (len(load_fixture(path).messages[3]["content"]) > 100_000) is whole
        assert ("tool outputs are kept whole" in result.output) is whole


def test_import_asks_before_it_takes_names_out(jsonl: Write, tmp_path: Path) -> None:
    source = log(jsonl, "/home/kestrel/x\nkestrel is our product")
    asked = run("import", source, "--name", "demo", "--output", tmp_path, answer="1\n")
    assert asked.exit_code == 0, asked.output
    assert load_fixture(tmp_path / "demo.json").messages[3]["content"] == "/home/user1/x\nkestrel is our product"
    unanswered = run("import", source, "--name", "other", "--output", tmp_path)
    assert unanswered.exit_code != 0
    assert not (tmp_path / "other.json").exists()


def test_import_uses_the_users_list(jsonl: Write, tmp_path: Path) -> None:
    people = tmp_path / "people.txt"
    people.write_text("# us\nIlse Brandmark, ilse\n!kestrel\n", encoding="utf-8")
    source = log(jsonl, "ilse runs kestrel from /home/kestrel/x")
    result = run("import", source, "--name", "demo", "--output", tmp_path, "--identities", people)
    assert result.exit_code == 0, result.output
    assert load_fixture(tmp_path / "demo.json").messages[3]["content"].startswith("user1 runs kestrel from /home/user")


def test_an_existing_fixture_is_only_replaced_by_force(jsonl: Write, tmp_path: Path) -> None:
    source = log(jsonl, "x")
    assert run("import", source, "--name", "demo", "--output", tmp_path).exit_code == 0
    again = run("import", source, "--name", "demo", "--output", tmp_path)
    assert isinstance(again.exception, UserError)
    assert "exists already" in str(again.exception)
    assert run("import", source, "--name", "demo", "--output", tmp_path, "--force").exit_code == 0


@pytest.mark.parametrize("name", ["../evil", "a/b", "", ".hidden", "UPPER", "x" * 81, "a\n"])
def test_a_name_cannot_leave_the_output_folder(name: str, jsonl: Write, tmp_path: Path) -> None:
    result = run("import", log(jsonl, "x"), "--name", name, "--output", tmp_path / "out")
    assert isinstance(result.exception, UserError)
    assert not (tmp_path / "out").exists()


def test_what_the_gate_refuses_is_not_written(jsonl: Write, tmp_path: Path) -> None:
    people = tmp_path / "people.txt"
    people.write_text("alice\n", encoding="utf-8")
    result = run(
        "import", log(jsonl, "no malice"), "--name", "demo", "--output", tmp_path / "out", "--identities", people
    )
    assert result.exit_code == 1
    assert "nothing was written" in result.output
    assert not (tmp_path / "out").exists()


def test_truncation_is_noted(jsonl: Write, tmp_path: Path) -> None:
    result = run("import", log(jsonl, "x"), "--name", "demo", "--output", tmp_path, "--truncate-to", 4)
    assert result.exit_code == 0, result.output
    assert load_fixture(tmp_path / "demo.json").truncated_to == 4


def test_scrub_rewrites_a_fixture_and_its_probes(tmp_path: Path) -> None:
    path = tmp_path / "sample.json"
    path.write_text(dump_fixture(session("in /home/brandmark/relay")), encoding="utf-8")
    probes = tmp_path / "sample.probes.json"
    probe = {"id": "p", "type": "recall", "question": "Where is it?", "expected_facts": ["/home/brandmark/relay"]}
    probes.write_text(json.dumps({"fixture": "sample", "probes": [probe]}), encoding="utf-8")
    before = path.read_text(encoding="utf-8")
    assert run("scrub", path, "--probes", probes, "--yes", "--dry-run").exit_code == 0
    assert path.read_text(encoding="utf-8") == before
    result = run("scrub", path, "--probes", probes, "--yes")
    assert result.exit_code == 0, result.output
    assert "/home/user1/relay" in path.read_text(encoding="utf-8")
    assert "/home/user1/relay" in probes.read_text(encoding="utf-8")
    once = path.read_text(encoding="utf-8")
    assert run("scrub", path, "--yes").exit_code == 0
    assert path.read_text(encoding="utf-8") == once


def test_audit_fails_on_a_finding(tmp_path: Path) -> None:
    (tmp_path / "sample.json").write_text(dump_fixture(session(f"x {TOKEN}")), encoding="utf-8")
    result = run("audit", tmp_path)
    assert result.exit_code == 1
    assert "npm-token" in result.output
    assert TOKEN not in result.output


def test_show_maps_the_evidence(tmp_path: Path) -> None:
    (tmp_path / "sample.json").write_text(dump_fixture(session("the port is 8471")), encoding="utf-8")
    probe = {"id": "port", "type": "recall", "question": "Which port?", "expected_facts": ["8471", "never said"]}
    probes = tmp_path / "sample.probes.json"
    probes.write_text(json.dumps({"fixture": "sample", "probes": [probe]}), encoding="utf-8")
    result = run("show", "sample", "--fixtures", tmp_path, "--probes", probes)
    assert result.exit_code == 0, result.output
    assert "    8471: 3" in result.output
    assert "never said: in no message" in result.output
    assert "tools: terminal x1" in result.output


def test_show_prints_the_census() -> None:
    path = sorted((ROOT / "fixtures").glob("*.json"))[0]
    result = run("show", path, "--census")
    assert result.exit_code == 0, result.output
    assert " facts\n" in result.output


def test_an_unknown_fixture_names_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "sample.json").write_text(dump_fixture(session("x")), encoding="utf-8")
    result = run("show", "simple", "--fixtures", tmp_path)
    assert isinstance(result.exception, UserError)
    assert "there are: sample" in str(result.exception)


@pytest.mark.parametrize("command", ["import", "scrub", "audit", "show"])
def test_every_help_has_an_example(command: str) -> None:
    assert f"  compression-eval fixture {command}" in run(command, "--help").output


def test_of_a_folder_the_newest_log_is_named_and_nothing_is_guessed(tmp_path: Path) -> None:
    for name, at in (("older.jsonl", 1_000_000), ("deep/newest.jsonl", 2_000_000)):
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", encoding="utf-8")
        os.utime(path, (at, at))
    (tmp_path / "empty").mkdir()
    assert str(run("import", tmp_path / "home").exception).endswith("deep/newest.jsonl")
    assert "no .jsonl file in it" in str(run("import", tmp_path / "empty").exception)
