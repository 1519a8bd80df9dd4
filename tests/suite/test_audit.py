"""The gate lets clean fixtures pass and stops everything else."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.fixture import dump_fixture, write_fixture
from eval_core.suite.audit import AllowList, audit_files, audit_fixture, fixture_paths, load_allow, redact_findings
from eval_core.suite.scrub import Identities
from tests.suite.conftest import ROOT
from tests.suite.sessions import ALNUM, draw, session

TOKEN = "glpat" + "-" + draw(random.Random(3), ALNUM, 22)


def test_a_clean_fixture_passes() -> None:
    assert audit_fixture(session("/home/user/x is fine", "REDACTED-jwt-1 and person1@example.com")) == []


def test_the_stored_fixtures_pass_and_one_planted_token_fails_them(tmp_path: Path) -> None:
    paths = fixture_paths([ROOT / "fixtures"])
    findings = audit_files(paths, allow=load_allow(ROOT / "fixtures" / "allow.json"))
    assert [str(finding) for finding in findings if finding.allowed is None] == []
    for path in paths:
        body = json.loads(path.read_text(encoding="utf-8"))
        place = next(message for message in reversed(body["messages"]) if message["role"] == "tool")
        place["content"] += f"\nusing {TOKEN}"
        copy = tmp_path / path.name
        copy.write_text(json.dumps(body), encoding="utf-8")
        assert "gitlab-token" in {finding.rule for finding in audit_files([copy])}, path.name


def test_a_finding_tells_place_and_hash_but_not_the_value() -> None:
    (finding,) = audit_fixture(session(json.dumps({"output": f"x {TOKEN}"})))
    assert finding.where.startswith("messages[3].content")
    assert TOKEN not in str(finding)


def test_an_allow_listed_hash_passes_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "sample.json"
    path.write_text(dump_fixture(session(f"x {TOKEN}")), encoding="utf-8")
    (finding,) = audit_files([path])
    allow = AllowList.model_validate({"allow": [{"sha256": finding.sha256, "reason": "revoked before recording"}]})
    (allowed,) = audit_files([path], allow=allow)
    assert allowed.allowed == "revoked before recording"


def test_what_is_still_found_can_be_replaced_everywhere_and_is_listed() -> None:
    recorded = session(json.dumps({"output": f'x "{TOKEN}"'}), f"again {TOKEN}, and premarlowepost")
    people = Identities(groups=[("marlowe",)])
    redacted, findings = redact_findings(recorded, people, AllowList())
    assert {finding.rule for finding in findings} == {"gitlab-token", "identity"}
    assert audit_fixture(redacted, people) == []
    text = json.dumps(redacted.messages)
    assert TOKEN not in text
    assert "marlowe" not in text
    assert len(redacted.messages) == len(recorded.messages)
    allow = AllowList.model_validate(
        {"allow": [{"sha256": item.sha256, "reason": "revoked, see the log"} for item in findings]}
    )
    assert redact_findings(recorded, people, allow) == (recorded, [])


def test_an_allow_list_without_reasons_is_refused(tmp_path: Path) -> None:
    (tmp_path / "allow.json").write_text(json.dumps({"allow": [{"sha256": "0" * 64, "reason": ""}]}))
    with pytest.raises(UserError, match="reason"):
        load_allow(tmp_path / "allow.json")


def test_listed_names_are_found_inside_words() -> None:
    people = Identities(groups=[("marlowe",)])
    assert [f.rule for f in audit_fixture(session("host xmarlowebox is up"), people)] == ["identity"]
    assert audit_fixture(session("nothing here"), people) == []


def test_letting_a_word_pass_does_not_let_the_name_pass() -> None:
    people = Identities(groups=[("alice",)])
    (word,) = audit_fixture(session("no malice here"), people)
    (name,) = audit_fixture(session("no alice here"), people)
    assert word.sha256 != name.sha256


def test_arguments_that_are_no_json_are_found() -> None:
    fixture = session("ok")
    fixture.messages[2]["tool_calls"][0]["function"]["arguments"] = '{"command": '
    assert [finding.rule for finding in audit_fixture(fixture)] == ["broken JSON"]


def test_sizes_are_advice_for_each_and_for_all(tmp_path: Path) -> None:
    paths = []
    for number in range(4):
        fixture = session("lorem ipsum " * 11_500).model_copy(update={"name": f"big-{number}"})
        path = tmp_path / f"big-{number}.json"
        path.write_text(dump_fixture(fixture), encoding="utf-8")
        paths.append(path)
    assert [finding.fixture for finding in audit_files(paths)] == ["all fixtures"]
    assert not any(finding.open for finding in audit_files(paths))
    small = tmp_path / "sample.json"
    small.write_text(dump_fixture(session("lorem ipsum " * 13_000)), encoding="utf-8")
    (finding,) = audit_files([small])
    assert "stores it compressed" in str(finding)
    assert not finding.open
    assert audit_files([write_fixture(tmp_path / "packed", session("lorem ipsum " * 13_000))]) == []


def test_the_allow_file_is_no_fixture(tmp_path: Path) -> None:
    (tmp_path / "allow.json").write_text("{}")
    (tmp_path / "a.json").write_text("{}")
    assert [path.name for path in fixture_paths([tmp_path])] == ["a.json"]
