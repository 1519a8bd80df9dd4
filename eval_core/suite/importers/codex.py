"""Codex rollouts: rows of {timestamp, type, payload}; the response items are the session."""

from __future__ import annotations

import json
from typing import Any

from eval_core.base.errors import UserError
from eval_core.suite.importers.imported import ImportedSession, argument_text, flatten_parts

_INJECTED = ("<environment_context>", "<user_instructions>", "<permissions instructions>", "# AGENTS.md instructions")
_ROLES = ("system", "developer", "user", "assistant")


def add_row(session: ImportedSession, row: dict[str, Any], where: str) -> None:
    """Append one row; events repeat what the response items already say."""
    kind, payload = row["type"], row["payload"]
    if kind == "compacted":
        said = isinstance(payload.get("message"), str) and bool(payload["message"].strip())
        if said and not session.take_out_summary():
            session.messages.append({"role": "user", "content": payload["message"]})
        elif not said:
            session.cut()
        return
    if kind in ("turn_context", "session_meta") and isinstance(payload.get("model"), str) and payload["model"]:
        session.model = payload["model"]
    if kind != "response_item":
        session.dropped[f"{kind} row"] += 1
        return
    _add_item(session, payload, where)


def _add_item(session: ImportedSession, item: dict[str, Any], where: str) -> None:
    kind = item.get("type")
    if kind == "message":
        _add_message(session, item, where)
    elif kind in ("function_call", "custom_tool_call", "local_shell_call"):
        _add_call(session, item, where)
    elif kind in ("function_call_output", "custom_tool_call_output", "local_shell_call_output"):
        answer = {"role": "tool", "tool_call_id": str(item.get("call_id"))}
        session.messages.append({**answer, "content": _output_text(item.get("output"))})
    elif isinstance(kind, str):
        session.dropped[f"{kind} item"] += 1
    else:
        raise UserError(f"{where}: a response_item without a type")


def _add_message(session: ImportedSession, item: dict[str, Any], where: str) -> None:
    role, text = item.get("role"), flatten_parts(item.get("content"))
    if role not in _ROLES:
        raise UserError(f"{where}: role {role!r} is not one of {', '.join(_ROLES)}")
    if role == "user" and text.lstrip().startswith(_INJECTED):
        session.dropped["injected context message"] += 1
        return
    if not text.strip():
        session.dropped["empty message"] += 1
        return
    session.messages.append({"role": role, "content": text})


def _add_call(session: ImportedSession, item: dict[str, Any], where: str) -> None:
    identity = item.get("call_id") or item.get("id")
    if not isinstance(identity, str):
        raise UserError(f"{where}: a {item['type']} without call_id")
    if item["type"] == "custom_tool_call":
        # Free-form input is no JSON; arguments must be.
        arguments = json.dumps({"input": item.get("input", "")}, ensure_ascii=False)
    elif item["type"] == "local_shell_call":
        arguments = argument_text(item.get("action") or {})
    else:
        arguments = argument_text(item.get("arguments", "{}"))
    name = str(item.get("name") or "shell")
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
    last = session.messages[-1] if session.messages else None
    # Calls that follow one another, and the words before them, are one turn of the model.
    if last is not None and last["role"] == "assistant" and not _cut_here(session):
        last.setdefault("tool_calls", []).append(call)
    else:
        session.messages.append({"role": "assistant", "content": "", "tool_calls": [call]})


def _cut_here(session: ImportedSession) -> bool:
    return bool(session.cuts) and session.cuts[-1] == len(session.messages)


def _output_text(output: Any) -> str:
    if isinstance(output, dict) and isinstance(output.get("content"), str | list):
        return flatten_parts(output["content"])
    return flatten_parts(output)
