"""OpenAI chat messages, as an array, under "messages", or one a line."""

from __future__ import annotations

from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.messages import ROLES, Message
from eval_core.suite.importers.imported import ImportedSession, argument_text, flatten_parts


def plain_message(row: dict[str, Any], where: str) -> Message:
    """Return the row with the fields that a provider accepts, and no others."""
    role = row.get("role")
    if role == "function":  # the shape before tools: its answer had a name and no id
        raise UserError(f"{where}: role 'function' is the retired shape; convert function calls to tool calls")
    if role not in ROLES:
        raise UserError(f"{where}: role {role!r} is not one of {', '.join(ROLES)}")
    message: Message = {"role": role, "content": flatten_parts(row.get("content"))}
    if role == "tool":
        if not isinstance(row.get("tool_call_id"), str):
            raise UserError(f"{where}: a tool message needs the tool_call_id that it answers")
        message = {"role": "tool", "tool_call_id": row["tool_call_id"], "content": message["content"]}
    calls = row.get("tool_calls") or []
    if not isinstance(calls, list):
        raise UserError(f"{where}: tool_calls must be a list, not {type(calls).__name__}")
    if calls and role == "assistant":
        message["tool_calls"] = [_plain_call(call, where) for call in calls]
    return message


def _plain_call(call: Any, where: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    identity = (call.get("id") or call.get("call_id")) if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(identity, str):
        raise UserError(f"{where}: each tool call needs an id and a function with a name")
    arguments = argument_text(function.get("arguments", "{}"))
    return {
        "id": identity,
        "type": "function",
        "function": {"name": str(function.get("name", "")), "arguments": arguments},
    }


def add_message(session: ImportedSession, row: dict[str, Any], where: str) -> None:
    message = plain_message(row, where)
    if message["role"] == "assistant" and not message["content"] and not message.get("tool_calls"):
        session.dropped["empty assistant message"] += 1
        return
    session.messages.append(message)
