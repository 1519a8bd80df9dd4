"""The probe commands say what is wrong, where, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eval_core.base.errors import UserError
from eval_core.cli.probe import probe
from eval_core.domain.fixture import Fixture, dump_fixture
from eval_core.domain.probe import ProbeBank, dump_bank, load_bank

LINES = {
    4: "The importer lives in ledger/importer.py.",
    5: "It was committed as 4d68d0b9.",
    6: "The cut-over waits until 26 March.",
    7: "We chose Postgres for it.",
}
QUESTIONS = {"ledger/importer.py": "artifact", "4d68d0b9": "recall", "26 March": "continuation", "Postgres": "decision"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    messages = [{"role": "system", "content": "You help."}]
    messages += [
        {"role": "assistant" if index % 2 else "user", "content": LINES.get(index, f"Step {index}.")}
        for index in range(1, 16)
    ]
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "ledger.json").write_text(dump_fixture(Fixture(name="ledger", messages=messages)))
    write_bank(tmp_path, list(QUESTIONS))
    return tmp_path


def write_bank(place: Path, facts: list[str]) -> None:
    probes = [
        {
            "id": f"p-{number}",
            "type": QUESTIONS.get(fact, "recall"),
            "question": "Which was it?",
            "expected_facts": [fact],
        }
        for number, fact in enumerate(facts)
    ]
    bank = ProbeBank.model_validate({"fixture": "ledger", "probes": probes})
    (place / "probes").mkdir(exist_ok=True)
    (place / "probes" / "ledger.probes.json").write_text(dump_bank(bank))


def invoke(place: Path, command: str, *arguments: str) -> Result:
    options = ["--probes-dir", str(place / "probes")]
    if command != "manifest":
        options += ["--fixtures-dir", str(place / "fixtures")]
    return CliRunner().invoke(probe, [command, *arguments, *options])


def test_warnings_alone_leave_the_exit_code_at_zero(place: Path) -> None:
    result = invoke(place, "lint")
    assert result.exit_code == 0
    assert "warning: 4 findings in 4 probes [evidence-missing], among them:" in result.output
    assert "  p-0: fact 'ledger/importer.py' names no evidence" in result.output
    assert "  and 1 more; --all lists them" in result.output
    every = invoke(place, "lint", "--all").output
    assert every.count("[evidence-missing]") == 4
    assert "p-0: warning: fact 'ledger/importer.py' names no evidence" in every
    assert result.output.endswith("1 bank, 4 probes: 0 errors, 5 warnings\n")


def test_an_error_is_printed_with_its_file_and_probe_and_exits_with_two(place: Path) -> None:
    write_bank(place, [*QUESTIONS, "ledger/imports.py"])
    result = invoke(place, "lint", "ledger")
    assert result.exit_code == 2
    line = f"{place / 'probes' / 'ledger.probes.json'}: p-4: fact 'ledger/imports.py' is in no message of the fixture"
    assert line in result.output


def test_fill_writes_evidence_and_the_warning_goes(place: Path) -> None:
    result = invoke(place, "lint", "--fill")
    assert "names no evidence" not in result.output
    bank = load_bank(place / "probes" / "ledger.probes.json")
    assert [entry.expected_facts[0].evidence for entry in bank.probes] == [[4], [5], [6], [7]]
    before = (place / "probes" / "ledger.probes.json").read_text()
    assert "evidence filled" not in invoke(place, "lint", "--fill").output
    assert (place / "probes" / "ledger.probes.json").read_text() == before


def test_an_unknown_name_and_a_lonely_bank_or_fixture_are_named(place: Path) -> None:
    result = invoke(place, "lint", "legder")
    assert isinstance(result.exception, UserError)
    assert "there are: ledger" in str(result.exception)
    fixture = json.loads((place / "fixtures" / "ledger.json").read_text())
    (place / "fixtures" / "other.json").write_text(json.dumps({**fixture, "name": "other", "messages": [
        {"role": "user", "content": f"Nothing {index}"} for index in range(4)]}))  # fmt: skip
    assert "other.json: warning: has no probe bank" in invoke(place, "lint").output
    (place / "fixtures" / "ledger.json").unlink()
    assert invoke(place, "lint").exit_code == 2


def test_drafts_go_to_the_screen_or_to_a_file_but_never_over_one(place: Path) -> None:
    shown = invoke(place, "propose", "ledger", "--output", "-")
    drafts = json.loads(shown.output)["probes"]
    assert drafts
    assert all(entry["draft"] for entry in drafts)
    refused = invoke(place, "propose", "ledger")
    assert isinstance(refused.exception, UserError)
    assert "--force" in str(refused.exception)
    target = place / "drafts.json"
    assert invoke(place, "propose", "ledger", "--output", str(target), "--limit", "1").exit_code == 0
    assert len(load_bank(target).probes) == 1
    assert invoke(place, "propose", "ledger", "--force").exit_code == 0
    assert invoke(place, "lint").exit_code == 2


def test_the_manifest_is_a_json_list_with_one_probe_a_line(place: Path) -> None:
    printed = invoke(place, "manifest").output
    assert json.loads(printed) == [f"ledger/p-{number}" for number in range(4)]
    assert len(printed.splitlines()) == 6


def test_every_command_shows_an_example_and_help_loads_nothing_heavy() -> None:
    for name, command in probe.commands.items():
        assert f"compression-eval probe {name}" in (command.help or "")
    script = (
        "import sys\nfrom click.testing import CliRunner\nfrom eval_core.cli.probe import probe\n"
        "assert CliRunner().invoke(probe, ['lint', '--help']).exit_code == 0\n"
        "print(sorted({'numpy', 'tiktoken', 'litellm', 'pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def drafts(place: Path) -> Path:
    path = place / "probes" / "ledger.probes.json"
    bank = load_bank(path)
    path.write_text(
        dump_bank(bank.model_copy(update={"probes": [p.model_copy(update={"draft": True}) for p in bank.probes]}))
    )
    return path


def review(place: Path, answers: str, editor: str = "false") -> Result:
    options = ["--probes-dir", str(place / "probes"), "--fixtures-dir", str(place / "fixtures")]
    return CliRunner(env={"EDITOR": editor}).invoke(probe, ["review", "ledger", *options], input=answers)


def test_a_review_keeps_edits_and_drops_drafts_and_goes_on_where_it_was_left(place: Path) -> None:
    path = drafts(place)
    first = review(place, "k\nd\nq\n")
    assert first.exit_code == 0, first.output
    assert "2 drafts left" in first.output
    assert "message 4: The importer lives in ledger/importer.py." not in first.output, "no evidence was given"
    assert [(item.id, item.draft) for item in load_bank(path).probes] == [("p-0", False), ("p-2", True), ("p-3", True)]
    editor = small_editor(place, "Which was it?", "Until when does the cut-over wait?")
    second = review(place, "e\nk\n", editor)
    assert "no draft is left" in second.output
    assert [item.question for item in load_bank(path).probes][1] == "Until when does the cut-over wait?"
    assert not any(item.draft for item in load_bank(path).probes)


def small_editor(place: Path, old: str, new: str) -> str:
    script = place / "editor.sh"
    script.write_text(f'#!/bin/sh\nsed -i "s/{old}/{new}/" "$1"\n')
    script.chmod(0o755)
    return str(script)


def test_what_a_review_would_break_is_not_stored(place: Path) -> None:
    path = drafts(place)
    before = path.read_text()
    editor = small_editor(place, '\\"p-0\\"', '\\"p-1\\"')
    assert "Not stored" in review(place, "e\nq\n", editor).output
    assert path.read_text() == before
    assert "Not stored" in review(place, "d\nd\nd\nd\n").output
    assert len(load_bank(path).probes) == 1


def test_ledger_lines_are_reviewed_after_the_probes(place: Path) -> None:
    path = place / "probes" / "ledger.ledger.json"
    line = {
        "id": "no-push", "kind": "rule", "anchors": ["cut-over"], "text": "The cut-over waits", "speaker": "user",
        "said": [6], "polarity": "do_not", "strength": "must", "draft": True,
    }  # fmt: skip
    path.write_text(json.dumps({"fixture": "ledger", "lines": [line]}))
    shown = review(place, "k\n").output
    assert "message 6: The cut-over waits until 26 March." in shown
    assert json.loads(path.read_text())["lines"][0].get("draft", False) is False


def test_findings_can_be_read_by_programs(place: Path) -> None:
    write_bank(place, ["ledger/importer.py", "nowhere.py"])
    result = invoke(place, "lint", "--json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert {item["level"] for item in found} >= {"error"}
    assert all(set(item) == {"file", "level", "probe", "rule", "message"} for item in found)
