"""Fixtures and probe banks: what is accepted, what is refused and with which words."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import small

from eval_core.base.errors import UserError
from eval_core.base.files import pretty
from eval_core.base.messages import Message, message_problem
from eval_core.domain.case import Case, load_suite
from eval_core.domain.fixture import Fixture, dump_fixture, load_fixture
from eval_core.domain.probe import dump_bank, load_bank

PLAIN_FIXTURE = """{
  "name": "401-debug",
  "description": "A session about a 401 on /api/auth/login",
  "model": "anthropic/claude-sonnet-4.6",
  "context_length": 200000,
  "messages": [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Why 401 on /api/auth/login?"},
    {"role": "assistant", "content": "Looking.", "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "session_store.py"}
  ],
  "notes": "Written for this test."
}"""
PLAIN_BANK = """{
  "fixture": "401-debug",
  "probes": [
    {"id": "recall-error-code", "type": "recall", "question": "What was the original error code and endpoint?",
     "expected_facts": ["401", "/api/auth/login"]},
    {"id": "artifact-files", "type": "artifact", "question": "Which files?", "expected_facts": ["session_store.py"]}
  ]
}"""


def test_a_plain_fixture_and_a_bank_of_plain_strings_load_unchanged(tmp_path: Path) -> None:
    small.write(tmp_path / "fixtures" / "401-debug.json", PLAIN_FIXTURE)
    small.write(tmp_path / "probes" / "401-debug.probes.json", PLAIN_BANK)
    (case,) = load_suite(tmp_path / "fixtures", tmp_path / "probes")
    assert case.fixture.messages == json.loads(PLAIN_FIXTURE)["messages"]
    assert [fact.label for fact in case.bank.probes[0].required] == ["401", "/api/auth/login"]


@pytest.mark.parametrize("case", small.cases(), ids=lambda case: case.fixture.name)
def test_stored_files_read_back_as_they_are_and_print_the_same(case: Case, tmp_path: Path) -> None:
    fixture = load_fixture(small.write(tmp_path / f"{case.fixture.name}.json", dump_fixture(case.fixture)))
    bank = load_bank(small.write(tmp_path / "bank.json", dump_bank(case.bank)))
    assert fixture.model_copy(update={"json_schema": None}) == case.fixture
    assert bank.model_copy(update={"json_schema": None}) == case.bank
    assert dump_fixture(fixture) == dump_fixture(case.fixture)
    assert dump_bank(bank) == dump_bank(case.bank)


def test_a_digest_sees_content_and_not_formatting(tmp_path: Path) -> None:
    fixture, bank = small.debug_fixture(), small.debug_bank()
    path = tmp_path / "small-debug.json"
    path.write_text(json.dumps(json.loads(dump_fixture(fixture)), indent=7, sort_keys=True), encoding="utf-8")
    assert load_fixture(path).digest == fixture.digest
    path.write_text(dump_bank(bank).replace("\n", "\n\n"), encoding="utf-8")
    assert load_bank(path).digest == bank.digest
    longer = [*fixture.messages[:-1], small.say("The tree holds two changes.")]
    assert fixture.model_copy(update={"messages": longer}).digest != fixture.digest
    fewer = bank.model_copy(update={"probes": bank.probes[1:]})
    assert fewer.digest != bank.digest


def test_the_shipped_files_say_what_their_digest_says_however_they_are_printed(shipped: list[Case]) -> None:
    for case in shipped:
        assert Fixture.model_validate(json.loads(dump_fixture(case.fixture))).digest == case.fixture.digest


def test_a_misspelt_probe_type_is_named_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.loads(dump_bank(small.debug_bank()))
    body["probes"][3]["type"] = "recal"
    small.write(tmp_path / "probes" / "x.probes.json", json.dumps(body))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        load_bank(Path("probes/x.probes.json"))
    assert str(caught.value) == (
        "probes/x.probes.json: probes[3].type: 'recal' is not one of recall, artifact, continuation, decision"
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b["probes"].append(b["probes"][0]), r"probes\[4\]\.id: 'recall-error' is used twice"),
        (lambda b: b["probes"][1].pop("question"), r"probes\[1\]\.question: Field required"),
        (
            lambda b: b["probes"][1].update(kept_verbatm="x"),
            r"probes\[1\]: kept_verbatm: unknown field; did you mean 'kept_verbatim'\?",
        ),
        (lambda b: b["probes"][2].update(expected_facts=[]), r"probes\[2\]\.expected_facts: "),
        (lambda b: b["probes"][2].update(expected_facts=[" "]), r"expected_facts\[0\]: a fact must not be empty"),
        (
            lambda b: b["probes"][2].update(expected_facts=[{"fact": "a", "regex": "b"}]),
            r"probes\[2\]\.expected_facts\[0\]: a fact has exactly one of fact, any, all, regex, not",
        ),
        (
            lambda b: b["probes"][2].update(expected_facts=[{"regex": "("}]),
            r"probes\[2\]\.expected_facts\[0\]: regex '\(' does not compile",
        ),
        (
            lambda b: b["probes"][2].update(expected_facts=[{"fact": "a", "kind": "pth"}]),
            r"expected_facts\[0\]\.kind: 'pth' is not one of path, url, host",
        ),
        (
            lambda b: b["probes"][2].update(expected_facts=[{"not": "a"}]),
            r"probes\[2\]\.expected_facts: only superseded values; add what an answer should state",
        ),
        (lambda b: b.pop("fixture"), r"fixture: Field required"),
        (lambda b: b.update(probes={}), r"probes: "),
        (lambda b: b["probes"].clear(), r"probes: "),
        (lambda b: b["probes"][0].update(id="../x"), r"probes\[0\]\.id: "),
    ],
)
def test_a_mistake_in_a_bank_is_named_with_its_place(change: Any, message: str, tmp_path: Path) -> None:
    path = small.write(tmp_path / "b.probes.json", dump_bank(small.debug_bank()))
    small.edit_json(path, change)
    with pytest.raises(UserError, match=r"b\.probes\.json: .*" + message) as caught:
        load_bank(path)
    assert "\n" not in str(caught.value)


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
START = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ([], "messages: 0 messages are too few to compress; at least 4 are needed"),
        (START, "messages: 3 messages are too few to compress"),
        (
            [*START, {"role": "tool", "tool_call_id": "c9", "content": "x"}],
            r"messages\[3\]\.tool_call_id: 'c9' answers no tool call before it; drop the message or restore the call",
        ),
        (
            [*START, {"role": "tool", "tool_call_id": ["c9"], "content": "x"}],
            r"messages\[3\]\.tool_call_id: \['c9'\] answers",
        ),
        ([*START, {"role": "tool", "content": "x"}], r"messages\[3\]\.tool_call_id: None answers no tool call"),
        (
            [*START, {"role": "assistant", "content": None, "tool_calls": [CALL]}],
            r"messages\[3\]\.tool_calls: 'c1' is never",
        ),
        (
            [*START, {"role": "assistant", "content": None, "tool_calls": [CALL]}, START[0]],
            r"messages\[3\]\.tool_calls: 'c1' is not answered before messages\[4\]",
        ),
        (
            [*START, {"role": "assistant", "content": None, "tool_calls": {"a": 1}}],
            r"messages\[3\]\.tool_calls: must be a list",
        ),
        (
            [*START, {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": "f"}]}],
            r"messages\[3\]\.tool_calls: each call needs an id \(text\) and a function \(an object\)",
        ),
        ([*START, {"role": "user", "content": None}], r"messages\[3\]\.content: null is only allowed for an assistant"),
        (
            [*START, {"role": "user", "content": 7}],
            r"messages\[3\]\.content: must be text, a list of parts or null, not int",
        ),
        ([*START, {"role": "user", "content": [7]}], r"messages\[3\]\.content: parts must be text or objects"),
        ([*START, {"role": "robot", "content": "x"}], r"messages\[3\]\.role: 'robot' is not one of system, user"),
        ([*START, "hello"], r"messages\[3\]: Input should be a valid dictionary"),
    ],
)
def test_a_session_that_a_provider_would_refuse_is_refused_with_its_place(
    messages: list[Any], message: str, tmp_path: Path
) -> None:
    path = small.write(tmp_path / "s.json", json.dumps({"name": "s", "messages": messages}))
    with pytest.raises(UserError, match=r"s\.json: " + message) as caught:
        load_fixture(path)
    assert "\n" not in str(caught.value)


def test_lists_of_parts_and_null_of_a_calling_assistant_are_accepted(tmp_path: Path) -> None:
    messages: list[Message] = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "done"}]},
        {"role": "assistant", "content": "b"},
    ]
    path = small.write(tmp_path / "s.json", json.dumps({"name": "s", "messages": messages}))
    assert load_fixture(path).messages == messages
    assert message_problem(messages) is None


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ([0], "segments: 0 must lie between 0 and 17, increasing"),
        ([17], "segments: 17 must lie between"),
        ([8, 4], "segments: 4 must lie between 8 and 17"),
        ([3], "segments: 3 cuts a tool call from its answer"),
    ],
)
def test_segments_are_whole_and_in_order(segments: list[int], message: str, tmp_path: Path) -> None:
    path = small.write(tmp_path / "small-debug.json", dump_fixture(small.debug_fixture()))
    small.edit_json(path, lambda body: body.update(segments=segments))
    with pytest.raises(UserError, match=message):
        load_fixture(path)


def test_a_file_holds_the_fixture_of_its_name(tmp_path: Path) -> None:
    path = small.write(tmp_path / "other.json", dump_fixture(small.debug_fixture()))
    with pytest.raises(UserError, match=r"name: 'small-debug' should equal the file's name, 'other'"):
        load_fixture(path)


class TestSuite:
    def test_an_unknown_fixture_gets_the_nearest_name(self, project: Path) -> None:
        with pytest.raises(UserError, match=r"^smal-debug: no such fixture in fixtures; did you mean small-debug\?$"):
            load_suite(Path("fixtures"), Path("probes"), ["smal-debug"])

    def test_a_name_like_none_gets_the_list(self, project: Path) -> None:
        with pytest.raises(UserError, match="known: small-chained, small-debug, small-plan"):
            load_suite(Path("fixtures"), Path("probes"), ["zzz"])

    def test_a_bank_of_another_fixture_is_refused(self, project: Path) -> None:
        small.write(project / "probes/small-plan.probes.json", dump_bank(small.debug_bank()))
        with pytest.raises(UserError, match=r"fixture: 'small-debug' is another fixture's bank, 'small-plan' was expe"):
            load_suite(Path("fixtures"), Path("probes"))

    def test_a_missing_bank_names_the_command_that_drafts_one(self, project: Path) -> None:
        (project / "probes/small-plan.probes.json").unlink()
        with pytest.raises(UserError, match=r"no probe bank for fixture small-plan; `compression-eval probe propose"):
            load_suite(Path("fixtures"), Path("probes"))

    def test_evidence_outside_of_the_session_is_refused(self, project: Path) -> None:
        def move(body: Any) -> None:
            body["probes"][0]["expected_facts"][0]["evidence"] = [99]

        small.edit_json(project / "probes/small-plan.probes.json", move)
        with pytest.raises(
            UserError, match=r"expected_facts\[0\]\.evidence: 99 is not a message of small-plan \(0 to 16"
        ):
            load_suite(Path("fixtures"), Path("probes"))

    @pytest.mark.parametrize("make", [False, True])
    def test_a_folder_without_fixtures_says_how_to_get_one(self, tmp_path: Path, make: bool) -> None:
        if make:
            (tmp_path / "fixtures").mkdir()
        with pytest.raises(UserError, match=r"fixtures: no (such folder|fixture here)"):
            load_suite(tmp_path / "fixtures", tmp_path / "probes")

    def test_asking_twice_for_a_fixture_runs_it_once(self, project: Path) -> None:
        found = load_suite(Path("fixtures"), Path("probes"), ["small-plan", "small-debug", "small-plan"])
        assert [case.fixture.name for case in found] == ["small-debug", "small-plan"]


def test_the_published_schemas_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(small.REPOSITORY / "scripts"))
    script = runpy.run_path(str(small.REPOSITORY / "scripts" / "export-schemas"))
    for name, model in script["MODELS"].items():
        stored = (small.REPOSITORY / "docs" / "schema" / f"{name}.schema.json").read_text(encoding="utf-8")
        assert stored == pretty(script["_published"](model)), f"{name}: run scripts/export-schemas"


def test_everything_that_the_documentation_takes_from_the_code_is_up_to_date() -> None:
    script = small.REPOSITORY / "scripts" / "export-schemas"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_published_schemas_accept_the_shipped_files_and_plain_facts() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    folder = small.REPOSITORY / "docs" / "schema"
    for name, pattern in (
        ("fixture", "fixtures/*.json"),
        ("probes", "probes/*.probes.json"),
        ("ledger", "probes/*.ledger.json"),
    ):
        schema = json.loads((folder / f"{name}.schema.json").read_text(encoding="utf-8"))
        validator = jsonschema.Draft202012Validator(schema)
        for path in sorted(small.REPOSITORY.glob(pattern)):
            validator.validate(json.loads(path.read_text(encoding="utf-8")))
        if plain := {"fixture": PLAIN_FIXTURE, "probes": PLAIN_BANK}.get(name):
            validator.validate(json.loads(plain))
        assert not validator.is_valid({"name": "x", "fixture": "x", "messages": "none", "probes": "none"})
