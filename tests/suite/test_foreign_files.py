"""Fixtures and banks that other programs wrote: loaded unchanged, written back whole, never leaked through."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.case import load_suite
from eval_core.domain.fixture import dump_fixture, load_fixture
from eval_core.domain.probe import dump_bank, load_bank
from eval_core.suite.audit import audit_fixture
from eval_core.suite.scrub import ScrubOptions, scrub_fixture
from eval_core.suite.scrub.people import home_folders
from tests.suite.conftest import openai_rows


def _fixture(**fields: Any) -> dict[str, Any]:
    """Return a fixture as an agent's own tool writes it, with what that tool notes about its work."""
    rows = openai_rows()
    rows[3]["tool_name"] = "terminal"
    return {
        "name": "cache-eviction",
        "description": "A cache is sized.",
        "model": "some/model",
        "context_length": 128_000,
        "source": "~/.agent/sessions/20260105_101500_1f2e3d.jsonl",
        "truncated_to": None,
        "scrubbed_at": "2026-01-06T08:00:00Z",
        "scrubbing_passes": ["keys masked", "home folders of mbelrose renamed"],
        "reviewed": {"by": None, "rounds": 2},
        "messages": rows,
        **fields,
    }


def _bank(**fields: Any) -> dict[str, Any]:
    question = {"id": "recall-code", "type": "recall", "question": "How did the build end?", "weight": 2}
    facts = ["missing header", {"fact": "exit code 2", "note": "from make"}]
    return {
        "fixture": "cache-eviction",
        "description": "Two facts about a build.",
        "probes": [{**question, "expected_facts": facts}],
        **fields,
    }


def _write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")
    return path


def test_fields_that_only_another_program_knows_are_kept(tmp_path: Path) -> None:
    fixture = load_fixture(_write(tmp_path / "fixtures" / "cache-eviction.json", _fixture()))
    bank = load_bank(_write(tmp_path / "probes" / "cache-eviction.probes.json", _bank()))
    written = json.loads(dump_fixture(fixture))
    assert {name: written[name] for name in fixture.unknown} == {
        name: _fixture()[name] for name in ("source", "scrubbed_at", "scrubbing_passes", "reviewed")
    }
    again = json.loads(dump_bank(bank))
    assert again["description"] == "Two facts about a build."
    assert again["probes"][0]["weight"] == 2
    assert again["probes"][0]["expected_facts"][1]["note"] == "from make"
    (case,) = load_suite(tmp_path / "fixtures", tmp_path / "probes")
    assert case.bank == bank


def test_a_misspelt_field_is_told_by_the_name_it_resembles(tmp_path: Path) -> None:
    body = _fixture(segment=[3], contxt_length=5)
    del body["context_length"]
    with pytest.raises(UserError) as caught:
        load_fixture(_write(tmp_path / "cache-eviction.json", body))
    assert str(caught.value).splitlines()[1:] == [
        "  segment: unknown field; did you mean 'segments'?",
        "  contxt_length: unknown field; did you mean 'context_length'?",
    ]


def test_a_field_beside_the_one_it_resembles_is_kept(tmp_path: Path) -> None:
    fixture = load_fixture(_write(tmp_path / "cache-eviction.json", _fixture(models=["a", "b"])))
    assert fixture.unknown["models"] == ["a", "b"]


def test_every_problem_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    body = _bank()
    body["probes"] = [
        {"id": "A b", "type": "recal", "question": "How?", "expected_facts": ["x"]},
        {"id": "b", "type": "recall", "expected_facts": [{"fact": "x", "regex": "y"}]},
    ]
    with pytest.raises(UserError) as caught:
        load_bank(_write(tmp_path / "b.probes.json", body))
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / 'b.probes.json'}: 4 problems:\n")
    for place in ("probes[0].id", "probes[0].type", "probes[1].question", "probes[1].expected_facts[0]"):
        assert f"  {place}: " in told


def test_every_broken_tool_pair_is_told_at_once(tmp_path: Path) -> None:
    rows = openai_rows()
    rows[3]["tool_call_id"] = "elsewhere"
    rows.append({"role": "robot", "content": 7})
    with pytest.raises(UserError) as caught:
        load_fixture(_write(tmp_path / "cache-eviction.json", _fixture(messages=rows)))
    told = str(caught.value)
    assert "messages[3].tool_call_id: 'elsewhere' answers no tool call" in told
    assert "messages[2].tool_calls: 'call_a' is not answered before messages[4]" in told
    assert "messages[5].role: 'robot'" in told
    assert "messages[5].content: must be text" in told


def test_unknown_fields_are_scrubbed_and_audited_like_all_others(tmp_path: Path) -> None:
    secret = "npm" + "_" + "Zk3" * 12
    body = _fixture(
        source="/home/mbelrose/.agent/x.jsonl", reviewed={"by": "Maud Belrose <maud@belrose.io>", "k": secret}
    )
    fixture = load_fixture(_write(tmp_path / "cache-eviction.json", body))
    assert {finding.where.partition(",")[0] for finding in audit_fixture(fixture)} == {"source", "reviewed"}
    bank = load_bank(_write(tmp_path / "b.probes.json", _bank(description=f"from /home/mbelrose with {secret}")))
    result = scrub_fixture(fixture, ScrubOptions(), bank)
    assert result.bank is not None
    for left in (dump_fixture(result.fixture), dump_bank(result.bank)):
        assert secret not in left
        assert "/home/mbelrose" not in left
        assert "maud@" not in left


@pytest.mark.parametrize(
    "text",
    [
        "see https://docs.cache.dev/document/home/sizing-guide/introduction",
        "docs.cache.dev/home/sizing",
        '{"urls": ["https://cache.dev:8443/home/overview"]}',
    ],
)
def test_home_in_the_path_of_a_web_address_is_nobodys_folder(text: str) -> None:
    assert list(home_folders(text, None)) == []


@pytest.mark.parametrize(
    "text",
    [
        "cd /home/mbelrose/relay",
        "file:///home/mbelrose/relay",
        "http://localhost:8000/open?path=/home/mbelrose/relay",
        "PYTHONPATH=/srv:/home/mbelrose/lib",
        "/mnt/backup/home/mbelrose",
        "scp box.lan:/home/mbelrose/x .",
    ],
)
def test_a_folder_of_a_person_is_still_found(text: str) -> None:
    assert [text[hit.start : hit.end] for hit in home_folders(text, None)] == ["mbelrose"]
