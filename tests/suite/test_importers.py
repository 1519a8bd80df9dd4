"""Session logs become valid fixtures, and odd ones say where they are odd."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.fixture import dump_fixture, load_fixture
from eval_core.suite.importers import import_session, read_session
from eval_core.suite.importers.imported import NO_ANSWER
from tests.suite.conftest import Write, claude, codex, item, openai_rows


def _stored(path: Path, tmp_path: Path, **options: object) -> object:
    fixture = import_session(path, name="sample", **options)  # type: ignore[arg-type]
    target = tmp_path / "out" / "sample.json"
    target.parent.mkdir()
    target.write_text(dump_fixture(fixture), encoding="utf-8")
    return load_fixture(target)


def _roles(fixture: object) -> list[str]:
    return [message["role"] for message in fixture.messages]  # type: ignore[attr-defined]


@pytest.mark.parametrize("shape", ["lines", "array", "object", "pretty"])
def test_openai_messages_are_read_in_every_layout(shape: str, tmp_path: Path, jsonl: Write) -> None:
    rows = openai_rows()
    path = tmp_path / "log.json"
    if shape == "lines":
        path = jsonl(*rows)
    else:
        body = rows if shape == "array" else {"model": "m-1", "temperature": 0.5, "messages": rows}
        path.write_text(json.dumps(body, indent=2 if shape == "pretty" else None), encoding="utf-8")
    fixture = _stored(path, tmp_path)
    assert _roles(fixture) == ["system", "user", "assistant", "tool", "assistant"]
    assert fixture.messages[3]["tool_call_id"] == fixture.messages[2]["tool_calls"][0]["id"] == "call_0001"  # type: ignore[attr-defined]
    assert fixture.model == ("m-1" if shape in ("object", "pretty") else "unknown")  # type: ignore[attr-defined]


def test_images_become_a_text_placeholder(jsonl: Write, tmp_path: Path) -> None:
    rows = openai_rows()
    rows[1]["content"] = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:..."}}]
    assert import_session(jsonl(*rows)).messages[1]["content"] == "look\n[image]"


def test_hermes_lines_lose_their_meta_row(jsonl: Write, tmp_path: Path) -> None:
    rows = openai_rows()
    rows[2]["reasoning"] = "private"
    fixture = _stored(jsonl({"role": "session_meta", "model": "hermes-4", "tools": []}, *rows), tmp_path)
    assert len(fixture.messages) == 5  # type: ignore[attr-defined]
    assert fixture.model == "hermes-4"  # type: ignore[attr-defined]
    assert "private" not in dump_fixture(fixture)  # type: ignore[arg-type]
    assert "1 session_meta row" in fixture.notes  # type: ignore[attr-defined]


def _state_db(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, model TEXT)")
        database.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, "
            "tool_call_id TEXT, tool_calls TEXT, active INTEGER DEFAULT 1)"
        )
        database.execute("INSERT INTO sessions VALUES ('one', 'm-one'), ('two', 'm-two')")
        rows = openai_rows()
        for session in ("one", "two"):
            for row in rows:
                calls = json.dumps(row["tool_calls"]) if row.get("tool_calls") else None
                database.execute(
                    "INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls) VALUES (?, ?, ?, ?, ?)",
                    (session, row["role"], row["content"], row.get("tool_call_id"), calls),
                )
        database.execute(
            "INSERT INTO messages (session_id, role, content, active) VALUES ('two', 'user', 'taken back', 0)"
        )
        parts = "\x00json:" + json.dumps([{"type": "text", "text": "and now?"}, {"type": "input_audio"}])
        database.execute("INSERT INTO messages (session_id, role, content) VALUES ('two', 'user', ?)", (parts,))
    database.close()


def test_a_state_database_gives_the_active_rows_of_the_latest_session(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    _state_db(path)
    before = path.read_bytes()
    fixture = _stored(path, tmp_path)
    assert [m["content"] for m in fixture.messages if m["role"] == "user"] == [  # type: ignore[attr-defined]
        "Why does the build fail?",
        "and now?\n[audio]",
    ]
    assert fixture.model == "m-two"  # type: ignore[attr-defined]
    assert import_session(path, session_id="one").model == "m-one"
    assert path.read_bytes() == before
    with pytest.raises(UserError, match="no active message of session 'three'"):
        import_session(path, session_id="three")


def test_a_summary_stays_where_the_log_has_nothing_before_it(jsonl: Write, tmp_path: Path) -> None:
    path = jsonl(
        claude("user", "summary of it all", uuid="u1", isCompactSummary=True),
        claude("assistant", [{"type": "text", "text": "Going on."}], uuid="u2", m_id="msg_1"),
        claude("user", "And the tests?", uuid="u3"),
        claude("assistant", [{"type": "text", "text": "Done."}], uuid="u4", m_id="msg_2"),
    )
    fixture = _stored(path, tmp_path)
    assert fixture.messages[0]["content"] == "summary of it all"  # type: ignore[attr-defined]


def _split_db(path: Path, parents: dict[str, str | None], sessions: dict[str, list[tuple[str, str]]]) -> Path:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, model TEXT, parent_session_id TEXT)")
        database.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT)")
        database.executemany("INSERT INTO sessions VALUES (?, 'm', ?)", list(parents.items()))
        rows = [(name, role, content) for name, said in sessions.items() for role, content in said]
        database.executemany("INSERT INTO messages (session_id, role, content) VALUES (?, ?, ?)", rows)
    database.close()
    return path


_SPLIT = {
    "one": [("system", "Be brief."), ("user", "Fix the login."), ("assistant", "Looking."), ("user", "Go on.")],
    "two": [
        ("system", "Be brief."), ("user", "[CONTEXT COMPACTION] login, half fixed"), ("user", "Go on."),
        ("assistant", "Fixed."), ("user", "Go on."),
    ],
    "three": [("user", "[CONTEXT COMPACTION] fixed"), ("user", "Go on."), ("assistant", "Tested.")],
}  # fmt: skip


def test_a_session_that_was_split_at_compactions_is_followed_to_its_beginning(tmp_path: Path) -> None:
    path = _split_db(tmp_path / "state.db", {"one": None, "two": "one", "three": "two"}, _SPLIT)
    fixture = import_session(path)
    said = ["Be brief.", "Fix the login.", "Looking.", "Go on.", "Fixed.", "Go on.", "Tested."]
    assert [message["content"] for message in fixture.messages] == said
    assert fixture.segments == [4, 6]
    assert "2 compaction summary messages" in fixture.notes
    assert "3 repeated messages" in fixture.notes


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"two": "one", "three": "two"}, "session 'two' goes on from 'one', which is not in table sessions"),
        ({"one": "three", "two": "one", "three": "two"}, "session 'three' goes on from itself"),
    ],
    ids=["missing parent", "loop"],
)
def test_a_lineage_that_leads_nowhere_is_one_message(
    tmp_path: Path, parents: dict[str, str | None], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        import_session(_split_db(tmp_path / "state.db", parents, _SPLIT))


def test_claude_code_rows_of_one_answer_are_merged(jsonl: Write, tmp_path: Path) -> None:
    use = [{"type": "tool_use", "id": f"toolu_{n}", "name": "Bash", "input": {"command": f"echo {n}"}} for n in (1, 2)]
    path = jsonl(
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        claude("user", "Fix it", uuid="u1"),
        claude("user", "caveat", uuid="u2", isMeta=True),
        claude("assistant", [{"type": "thinking", "thinking": "hm"}], uuid="u3", m_id="msg_1"),
        claude("assistant", [{"type": "text", "text": "Two looks."}], uuid="u4", m_id="msg_1", m_model="claude-x"),
        claude("assistant", [use[0]], uuid="u5", m_id="msg_1"),
        claude("user", [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "one"}], uuid="u6"),
        claude("assistant", [use[1]], uuid="u7", m_id="msg_1"),
        claude(
            "user", [{"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "two"}]}]
        ),
        claude("assistant", [{"type": "text", "text": "aside"}], uuid="u8", m_id="msg_2", isSidechain=True),
        claude("assistant", [{"type": "text", "text": "API Error: 529"}], uuid="e", m_id="x", isApiErrorMessage=True),
        claude("user", "summary of it all", uuid="u9", isCompactSummary=True),
        claude("assistant", [{"type": "text", "text": "Done."}], uuid="u10", m_id="msg_3"),
        claude("assistant", [{"type": "text", "text": "Done."}], uuid="u10", m_id="msg_3"),
    )
    fixture = _stored(path, tmp_path)
    assert _roles(fixture) == ["user", "assistant", "tool", "tool", "assistant"]
    assert fixture.messages[1]["content"] == "Two looks."  # type: ignore[attr-defined]
    assert [m["content"] for m in fixture.messages[2:4]] == ["one", "two"]  # type: ignore[attr-defined]
    assert fixture.messages[4]["content"] == "Done."  # type: ignore[attr-defined]
    assert "1 compaction summary message" in fixture.notes  # type: ignore[attr-defined]
    assert fixture.segments == [4]  # type: ignore[attr-defined]
    assert fixture.model == "claude-x"  # type: ignore[attr-defined]
    assert "1 sidechain row" in fixture.notes  # type: ignore[attr-defined]


def test_codex_rollouts_pair_calls_and_keep_compactions(jsonl: Write, tmp_path: Path) -> None:
    said = {"type": "output_text", "text": "Looking."}
    path = jsonl(
        codex("session_meta", {"id": "x", "cwd": "/srv/relay"}),
        codex("turn_context", {"model": "gpt-x"}),
        item(
            "message", role="user", content=[{"type": "input_text", "text": "<environment_context>\n<cwd>/srv</cwd>"}]
        ),
        item("message", role="user", content=[{"type": "input_text", "text": "Fix it"}]),
        codex("event_msg", {"type": "user_message", "message": "Fix it"}),
        item("reasoning", summary=[]),
        item("message", role="assistant", content=[said]),
        item("function_call", name="shell", arguments='{"cmd": "ls"}', call_id="c1"),
        item("custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c2"),
        item("custom_tool_call_output", call_id="c2", output="ok"),
        item("function_call_output", call_id="c1", output="a.py"),
        codex("compacted", {"message": "Fixed half."}),
        item("message", role="user", content=[{"type": "input_text", "text": "go on"}]),
        item("function_call", name="shell", arguments="{}", call_id="c3"),
    )
    fixture = _stored(path, tmp_path)
    assert _roles(fixture) == ["user", "assistant", "tool", "tool", "user", "assistant", "tool"]
    assert fixture.messages[1]["content"] == "Looking."  # type: ignore[attr-defined]
    assert [m["content"] for m in fixture.messages[2:4]] == ["a.py", "ok"]  # type: ignore[attr-defined]
    assert json.loads(fixture.messages[1]["tool_calls"][1]["function"]["arguments"]) == {"input": "*** Begin Patch"}  # type: ignore[attr-defined]
    assert fixture.segments == [4]  # type: ignore[attr-defined]
    assert "1 compaction summary message" in fixture.notes  # type: ignore[attr-defined]
    assert fixture.messages[6]["content"] == NO_ANSWER  # type: ignore[attr-defined]
    assert "without an answer" in fixture.notes  # type: ignore[attr-defined]
    assert fixture.model == "gpt-x"  # type: ignore[attr-defined]


def test_an_orphan_answer_is_dropped_with_a_note(jsonl: Write) -> None:
    rows = openai_rows()
    rows.insert(2, {"role": "tool", "tool_call_id": "call_lost", "content": "x"})
    fixture = import_session(jsonl(*rows))
    assert _roles(fixture) == ["system", "user", "assistant", "tool", "assistant"]
    assert "1 tool answer without a call: dropped" in fixture.notes


def test_a_cut_off_last_line_is_dropped_with_a_note(jsonl: Write) -> None:
    fixture = import_session(jsonl(*openai_rows(), tail='{"role": "user", "cont'))
    assert len(fixture.messages) == 5
    assert "the last line (6) was cut off" in fixture.notes


def test_truncation_keeps_pairs_whole(jsonl: Write) -> None:
    rows = openai_rows() + openai_rows()[1:4] + openai_rows()[4:]
    for row in rows[5:]:
        for call in row.get("tool_calls", []):
            call["id"] = "call_b"
        if row["role"] == "tool":
            row["tool_call_id"] = "call_b"
    fixture = import_session(jsonl(*rows), truncate_to=7)
    assert _roles(fixture)[-1] == "user"
    assert fixture.truncated_to == len(fixture.messages) == 6


@pytest.mark.parametrize(
    ("rows", "tail", "complaint"),
    [
        ([*openai_rows(), {"weather": "fine"}], "", "line 6: not a row of any known session format .* keys weather"),
        ([*openai_rows(), claude("user", "hi", uuid="1")], "", "line 6: a claude-code row, but .* openai"),
        ([row for row in openai_rows() if row["role"] != "user"], "", "no user turn in 4 messages"),
        (openai_rows()[:2], "", "2 messages remain; at least 4"),
        ([openai_rows()[0], {"role": "wizard", "content": "x"}], "", "line 2: not a row of any known"),
        (openai_rows()[:3], '{"broken\n{"role": "user", "content": "x"}\n', "line 4: broken JSON"),
        ([{**openai_rows()[3], "tool_call_id": None}], "", "line 1: a tool message needs the tool_call_id"),
        ([], "", "no user turn in 0 messages"),
        ([], "not json at all", "line 1: broken JSON.* OpenAI, Hermes, Claude Code or Codex"),
        ([claude("user", 7, uuid="1")], "", "line 1: message.content is int"),
    ],
)
def test_a_log_that_does_not_fit_is_refused_at_its_line(rows: list, tail: str, complaint: str, jsonl: Write) -> None:
    with pytest.raises(UserError, match=complaint):
        import_session(jsonl(*rows, tail=tail))


def test_a_call_that_is_written_twice_is_one_call(jsonl: Write) -> None:
    call = [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]
    session = read_session(
        jsonl(
            claude("user", "Look", uuid="u1"),
            claude("assistant", call, uuid="u2", m_id="msg_1"),
            claude("assistant", call, uuid="u3", m_id="msg_1"),
        )
    )
    (answer,) = [message for message in session.messages if message["role"] == "assistant"]
    assert [made["id"] for made in answer["tool_calls"]] == ["toolu_1"]


def test_values_of_unknown_rows_are_not_repeated_in_the_error(jsonl: Write) -> None:
    with pytest.raises(UserError) as caught:
        import_session(jsonl({"thing": "private words"}))
    assert "private words" not in str(caught.value)


def test_a_wrong_format_option_is_refused(jsonl: Write, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a openai row, but --format says codex"):
        import_session(jsonl(*openai_rows()), "codex")
    _state_db(tmp_path / "state.db")
    with pytest.raises(UserError, match="only the hermes format reads"):
        import_session(tmp_path / "state.db", "openai")


def test_binary_files_and_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(UserError, match="not UTF-8"):
        import_session(tmp_path / "x.bin")
    with pytest.raises(UserError, match="is a folder"):
        import_session(tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        import_session(tmp_path / "missing.jsonl")


def test_a_long_document_is_read_in_pieces(tmp_path: Path) -> None:
    rows = openai_rows()
    rows[3]["content"] = "x" * 200_000  # larger than one block of the reader
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"messages": rows, "count": 12345678}, indent=1), encoding="utf-8")
    assert len(import_session(path).messages[3]["content"]) == 200_000
    path.write_text(json.dumps({"messages": rows}, indent=1)[:-40], encoding="utf-8")
    with pytest.raises(UserError, match=r"line 3[0-9]: broken JSON"):
        import_session(path)


@pytest.mark.parametrize("calls", [b"[]", "[" * 100_000, "[NaN]"], ids=["bytes", "deep", "nan"])
def test_a_state_database_with_columns_of_any_kind_is_refused_in_one_sentence(tmp_path: Path, calls: object) -> None:
    path = tmp_path / "state.db"
    _state_db(path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE messages SET tool_calls = ?", (calls,))
    with pytest.raises(UserError, match=r"tool_calls: "):
        import_session(path)


def test_a_database_whose_schema_is_not_text_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    _state_db(path)
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE messages (", b"CREATE TABLE messages \xf7"))
    with pytest.raises(UserError, match="cannot be read as a Hermes state database"):
        import_session(path)
