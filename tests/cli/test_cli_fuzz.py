"""What a parser lets through ends no command with the code of a bug: whole commands on changed files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import small

sys.path.insert(0, str(small.REPOSITORY / "bench"))
try:
    import fuzz
finally:
    sys.path.pop(0)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("measured")
    fuzz.make_project(folder)
    return folder


@pytest.fixture(autouse=True)
def crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "CRASHES", tmp_path / "crashes")


def test_no_changed_file_ends_a_command_as_no_command_may(measured: Path) -> None:
    """A part of what `bench/fuzz.py --commands` tries; the same inputs each time."""
    every = [(name, words) for name, commands in fuzz.COMMANDS.items() for words in commands]
    assert {words[0] for _, words in every} >= {"run", "report", "compare", "trend", "baseline", "fixture", "probe"}
    assert fuzz.fuzz_commands(2 * len(every), 0, measured) == []


def session(**last: Any) -> dict[str, Any]:
    """Return a session of which one message is as given."""
    call = {"id": "1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return {
        "name": "s",
        "messages": [
            {"role": "user", "content": "fix src/login.py, line 88"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "def login(): ..."},
            {"role": "assistant", **last},
            {"role": "user", "content": "thanks"},
        ],
    }


@pytest.mark.parametrize("last", [{}, {"content": None}, {"content": "half \ud800 of src/\udfff.py"}])
@pytest.mark.parametrize(
    "words",
    [
        ("fixture", "audit", "fixtures/s.json"),
        ("fixture", "scrub", "fixtures/s.json", "--output", "out/s.json"),
        ("fixture", "show", "s", "--census"),
        ("probe", "lint", "s"),
        ("run", "--fixtures", "s", "--runs", "1", "--set", "compress_runs=1", "--quiet"),
    ],
)
def test_a_message_without_content_and_halves_of_characters_are_no_bugs(
    last: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    small.write(tmp_path / "fixtures/s.json", json.dumps(session(**last)))
    fact = {"fact": "src/\udfff.py"} if last.get("content") else "src/login.py"
    probe = {"id": "file", "type": "recall", "question": "Which \ud800 file?", "expected_facts": [fact]}
    small.write(tmp_path / "probes/s.probes.json", json.dumps({"fixture": "s", "probes": [probe]}))
    code, said = fuzz.run_command(words, tmp_path)
    assert code in (0, 1, 2), said


def test_a_number_that_nothing_measures_counts_as_missing_in_the_trend(measured: Path, tmp_path: Path) -> None:
    history = (measured / "baselines" / "history.jsonl").read_text(encoding="utf-8").splitlines()
    line = json.loads(history[-1]) | {"overall": 1e308, "tokens": -1e308, "facts_kept": 10**19}
    small.write(tmp_path / "baselines/history.jsonl", "\n".join([*history, json.dumps(line)]) + "\n")
    assert fuzz.run_command(("trend",), tmp_path) == (0, "")
    assert fuzz.run_command(("trend", "--format", "html"), tmp_path)[0] == 0
