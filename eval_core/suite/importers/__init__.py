"""Importers: session logs of agent programs, turned into fixtures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from eval_core.base.errors import UserError
from eval_core.base.files import digest, open_file, parse
from eval_core.base.messages import ROLES, Message, content_text
from eval_core.domain.fixture import MIN_MESSAGES, Fixture
from eval_core.suite.importers import codex, hermes, openai
from eval_core.suite.importers.claude_code import ClaudeCode
from eval_core.suite.importers.imported import ImportedSession, mend_pairs
from eval_core.suite.importers.rows import LogRow, open_rows

__all__ = [
    "FORMATS",
    "Format",
    "import_session",
    "is_sqlite",
    "read_session",
    "row_format",
]

# Which program wrote this row? Told by its shape, never by the file's name.

Format = Literal["openai", "hermes", "claude-code", "codex"]
_LOGS: dict[str, str] = {
    "openai": "an OpenAI log",
    "hermes": "a Hermes log",
    "claude-code": "a Claude Code log",
    "codex": "a Codex log",
}
FORMATS: tuple[str, ...] = get_args(Format)
_CLAUDE_MARKS = ("sessionId", "uuid", "leafUuid", "parentUuid", "isSidechain", "messageId")
# Fields that Hermes adds to a message and plain OpenAI logs do not have.
_HERMES_MARKS = ("finish_reason", "reasoning_details", "codex_reasoning_items", "tool_name")


def row_format(row: Any) -> Format | None:
    """Return the format that a row belongs to, or None if it belongs to none."""
    if not isinstance(row, dict):
        return None
    kind = row.get("type")
    if isinstance(kind, str) and isinstance(row.get("payload"), dict):
        return "codex"
    if isinstance(kind, str) and "role" not in row:
        if kind in ("user", "assistant"):
            return "claude-code" if isinstance(row.get("message"), dict) else None
        return "claude-code" if any(mark in row for mark in _CLAUDE_MARKS) else None
    role = row.get("role")
    if role == "session_meta":
        return "hermes"
    if role in ROLES and ("content" in row or "tool_calls" in row):
        return "hermes" if any(mark in row for mark in _HERMES_MARKS) else "openai"
    return None


def is_sqlite(head: bytes) -> bool:
    """Tell an SQLite database by its first bytes."""
    return head.startswith(b"SQLite format 3\x00")


# Session logs of agent programs, turned into fixtures.

_FAMILY = {"hermes": "openai"}  # Hermes rows are OpenAI messages with more fields: one may follow the other


def _family(name: str) -> str:
    return _FAMILY.get(name, name)


def _head(path: Path) -> bytes:
    try:
        with open_file(path) as stream:
            return stream.read(16)
    except IsADirectoryError:
        raise UserError(f"{path}: is a folder; give one session log") from None
    except OSError as exc:
        raise UserError(f"{path}: cannot be read: {exc.strerror}") from None


def read_session(path: Path, wanted: str = "auto", session_id: str | None = None) -> ImportedSession:
    """Read a log row by row; a row of another shape is an error that names it."""
    if is_sqlite(_head(path)):
        return _read_database(path, wanted, session_id)
    rows = open_rows(path)
    session = ImportedSession(wanted)
    add: dict[str, Callable[[dict[str, Any], str], None]] = {
        "claude-code": ClaudeCode(session).add,
        "codex": partial(codex.add_row, session),
        "hermes": partial(hermes.add_row, session),
        "openai": partial(openai.add_message, session),
    }
    first: LogRow | None = None
    for row in rows:
        where = f"{path}: {row.where}"
        found = row_format(row.value)
        if found is None:
            raise UserError(f"{where}: not a row of any known session format ({', '.join(FORMATS)}): {_shape(row)}")
        if session.format == "auto":
            session.format = found
        elif _family(session.format) != _family(found):
            since = f"the rows since {first.where} are" if first else "--format says"
            raise UserError(f"{where}: a {found} row, but {since} {session.format}; split the file by format")
        elif found == "hermes":
            session.format = "hermes"
        add[found](row.value, where)
        first = first or row
    session.notes.extend(rows.notes)
    model = rows.document.get("model")
    if isinstance(model, str) and session.model == "unknown":
        session.model = model
    return session


def _read_database(path: Path, wanted: str, session_id: str | None) -> ImportedSession:
    if wanted not in ("auto", "hermes"):
        raise UserError(f"{path}: is an SQLite database, which only the hermes format reads; got --format {wanted}")
    session = ImportedSession("hermes")
    for row in hermes.database_rows(path, session_id):
        hermes.add_row(session, row.value, f"{path}: {row.where}")
    return session


def _shape(row: LogRow) -> str:
    """Describe a row by its keys alone: values may be secret."""
    if isinstance(row.value, dict):
        return "an object with the keys " + (", ".join(sorted(map(str, row.value))[:8]) or "(none)")
    return f"a {type(row.value).__name__}"


def _renumber(messages: list[Message]) -> list[Message]:
    """Replace the provider's call ids: they lead back to an account's logs and say nothing."""
    names: dict[str, str] = {}
    renamed = []
    for message in messages:
        fresh = dict(message)
        if fresh.get("tool_calls"):
            calls = []
            for call in fresh["tool_calls"]:
                names.setdefault(call["id"], f"call_{len(names) + 1:04d}")
                calls.append({**call, "id": names[call["id"]]})
            fresh["tool_calls"] = calls
        if fresh["role"] == "tool":
            fresh["tool_call_id"] = names[fresh["tool_call_id"]]
        renamed.append(fresh)
    return renamed


def _shorten(messages: list[Message], limit: int) -> int:
    """Return the largest index up to the limit that cuts no call from its answer."""
    end = min(limit, len(messages))
    while 0 < end < len(messages) and messages[end]["role"] == "tool":
        end -= 1
    return end


def import_session(
    path: Path,
    wanted: str = "auto",
    *,
    name: str | None = None,
    truncate_to: int | None = None,
    session_id: str | None = None,
) -> Fixture:
    """Read a log into a fixture. It is not scrubbed: it must not be stored as it is."""
    session = read_session(path, wanted, session_id)
    mended = mend_pairs(session.messages, session.cuts)
    messages, segments = mended.messages, mended.segments
    if not any(message["role"] == "user" and content_text(message).strip() for message in messages):
        raise UserError(f"{path}: no user turn in {len(messages)} messages; a fixture needs a request to continue")
    truncated_to = None
    if truncate_to is not None and truncate_to < len(messages):
        truncated_to = _shorten(messages, truncate_to)
        messages = messages[:truncated_to]
        segments = [cut for cut in segments if cut < truncated_to]
    if len(messages) < MIN_MESSAGES:
        raise UserError(f"{path}: {len(messages)} messages remain; at least {MIN_MESSAGES} are needed to compress")
    notes = [f"Imported from {_LOGS[session.format]}"]
    if session.dropped:
        counted = ", ".join(f"{count} {reason}{'s' if count > 1 else ''}" for reason, count in session.dropped.items())
        notes.append(f"left out: {counted}")
    notes += [*session.notes, *mended.notes]
    if segments:
        notes.append(f"compacted while recorded, before message {', '.join(map(str, segments))}")
    messages = _renumber(messages)
    body = {
        "name": name or f"session-{digest(messages)[:8]}",
        "description": f"A session of {len(messages)} messages imported from {_LOGS[session.format]}.",
        "model": session.model,
        "messages": messages,
        "segments": segments,
        "notes": "; ".join(notes) + ".",
        "truncated_to": truncated_to,
    }
    return parse(Fixture, body, str(path))
