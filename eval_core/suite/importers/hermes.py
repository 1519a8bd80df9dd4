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

_STRUCTURED = "\x00json:"  # how the store marks content that is a list of parts
_CONTINUED, _REPEATED = "\x00continued", "\x00repeated"
"""Marks on rows of a session that goes on after a compaction of another one."""
_SUMMARY_MARKS = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]", "[PREVIOUS CONTEXT]")


def add_row(session: ImportedSession, row: dict[str, Any], where: str) -> None:
    """Append one row; the session's own description is no message."""
    if row.get("role") == "session_meta":
        session.dropped["session_meta row"] += 1
        if isinstance(row.get("model"), str) and row["model"]:
            session.model = row["model"]
        return
    if row.get("role") == _REPEATED:
        session.dropped["repeated message"] += 1
        return
    if row.get("role") == _CONTINUED:
        session.cut()
        return
    content = row.get("content")
    if isinstance(content, str) and content.lstrip().startswith(_SUMMARY_MARKS):
        if row.get(_CONTINUED) and session.take_out_summary():
            return
        session.cut()
    add_message(session, {name: value for name, value in row.items() if name != _CONTINUED}, where)


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
    lineage = _lineage(database, path, session_id)
    model = _session_model(database, session_id)
    if model:
        yield LogRow({"role": "session_meta", "model": model}, "table sessions")
    before: list[dict[str, Any]] = []
    for number, identity in enumerate(lineage):
        query = f"SELECT rowid AS position, * FROM messages WHERE session_id = ? AND {active} ORDER BY rowid"  # noqa: S608
        rows = [(_as_message(row, columns, path), row["position"]) for row in database.execute(query, (identity,))]
        if not rows:
            missing_parent = f"{path}: session {lineage[-1]!r} goes on from {identity!r}, which has no active message"
            raise UserError(
                f"{path}: no active message of session {session_id!r}; check --session"
                if identity == session_id
                else f"{missing_parent}; import the part that is there from a copy without parent_session_id"
            )
        if number:
            yield LogRow({"role": _CONTINUED}, "table sessions")
        yield from _continued(rows, before, first=not number)
        before = [message for message, _ in rows]


def _continued(
    rows: list[tuple[dict[str, Any], int]], before: list[dict[str, Any]], *, first: bool
) -> Iterator[LogRow]:
    """Yield the rows of a session; of one that goes on, what it repeats of the session before is marked."""
    leading = not first
    for message, position in rows:
        where, content = f"messages row {position}", message.get("content")
        summary = not first and isinstance(content, str) and content.lstrip().startswith(_SUMMARY_MARKS)
        # Only what opens the session is a repetition: later on, somebody may well say the same again.
        leading = leading and (summary or message in before)
        if summary:
            yield LogRow({**message, _CONTINUED: True}, where)
        else:
            yield LogRow({"role": _REPEATED} if leading else message, where)


def _lineage(database: sqlite3.Connection, path: Path, session_id: str) -> list[str]:
    """Return the sessions that a session goes on from, oldest first: a compaction begins a new one."""
    names = {row["name"] for row in database.execute("PRAGMA table_info(sessions)")}
    found = [session_id]
    while {"id", "parent_session_id"} <= names:
        row = database.execute("SELECT parent_session_id FROM sessions WHERE id = ?", (found[0],)).fetchone()
        if row is None and found[0] != session_id:
            raise UserError(
                f"{path}: session {found[1]!r} goes on from {found[0]!r}, which is not in table sessions; "
                "import from a database that has it"
            )
        parent = row["parent_session_id"] if row is not None else None
        if not parent:
            break
        if str(parent) in found:
            raise UserError(f"{path}: session {session_id!r} goes on from itself (parent_session_id {parent!r} again)")
        found.insert(0, str(parent))
    return found


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
