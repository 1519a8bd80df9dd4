"""Hermes sessions: one message a line, or the active rows of `state.db`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.suite.importers.imported import ImportedSession
from eval_core.suite.importers.openai import add_message
from eval_core.suite.importers.rows import LogRow

__all__ = ["add_row", "database_rows"]

_STRUCTURED = "\x00json:"  # how the store marks content that is a list of parts
_SUMMARY_MARKS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]", "[PREVIOUS CONTEXT]")


def add_row(session: ImportedSession, row: dict[str, Any], where: str) -> None:
    """Append one row; the session's own description is no message."""
    if row.get("role") == "session_meta":
        session.dropped["session_meta row"] += 1
        if isinstance(row.get("model"), str) and row["model"]:
            session.model = row["model"]
        return
    content = row.get("content")
    if isinstance(content, str) and content.lstrip().startswith(_SUMMARY_MARKS):
        session.cut()
    add_message(session, row, where)


def database_rows(path: Path, session_id: str | None) -> Iterator[LogRow]:
    """Yield the active messages of one session of a state database, oldest first."""
    try:
        # mode=ro: looking at somebody's database must not change it.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            yield from _message_rows(database, path, session_id)
    except (sqlite3.Error, UnicodeDecodeError) as exc:  # the second where an error quotes what is not text
        raise UserError(f"{path}: cannot be read as a Hermes state database: {exc}") from None


def _message_rows(database: sqlite3.Connection, path: Path, session_id: str | None) -> Iterator[LogRow]:
    columns = {row["name"] for row in database.execute("PRAGMA table_info(messages)")}
    missing = {"session_id", "role", "content"} - columns
    if missing:
        raise UserError(f"{path}: table messages lacks {', '.join(sorted(missing))}; not a Hermes state database")
    active = "active = 1" if "active" in columns else "1 = 1"
    if session_id is None:
        latest = database.execute(f"SELECT session_id FROM messages WHERE {active} ORDER BY rowid DESC LIMIT 1")  # noqa: S608 - fixed text
        found = latest.fetchone()
        if found is None:
            raise UserError(f"{path}: table messages has no active row")
        session_id = str(found["session_id"])
    model = _session_model(database, session_id)
    if model:
        yield LogRow({"role": "session_meta", "model": model}, "table sessions")
    query = f"SELECT rowid AS position, * FROM messages WHERE session_id = ? AND {active} ORDER BY rowid"  # noqa: S608
    empty = True
    for row in database.execute(query, (session_id,)):
        empty = False
        yield LogRow(_as_message(row, columns, path), f"messages row {row['position']}")
    if empty:
        raise UserError(f"{path}: no active message of session {session_id!r}; check --session")


def _session_model(database: sqlite3.Connection, session_id: str) -> str:
    names = {row["name"] for row in database.execute("PRAGMA table_info(sessions)")}
    if not {"id", "model"} <= names:
        return ""
    row = database.execute("SELECT model FROM sessions WHERE id = ?", (session_id,)).fetchone()
    return str(row["model"] or "") if row else ""


def _as_message(row: sqlite3.Row, columns: set[str], path: Path) -> dict[str, Any]:
    message: dict[str, Any] = {"role": row["role"], "content": row["content"]}
    place = f"{path}: messages row {row['position']}"
    if isinstance(message["content"], str) and message["content"].startswith(_STRUCTURED):
        message["content"] = _json(message["content"][len(_STRUCTURED) :], f"{place}: content")
    if "tool_call_id" in columns and row["tool_call_id"]:
        message["tool_call_id"] = row["tool_call_id"]
    if "tool_calls" in columns and row["tool_calls"]:
        message["tool_calls"] = _json(row["tool_calls"], f"{place}: tool_calls")
    return message


def _json(text: Any, where: str) -> Any:
    if not isinstance(text, str):  # a column may hold any type, whatever it was declared as
        raise UserError(f"{where}: JSON text was expected, not {type(text).__name__}")
    try:
        return parse_json(text)
    except BadJson as exc:
        raise UserError(f"{where}: broken JSON: {exc}") from None
