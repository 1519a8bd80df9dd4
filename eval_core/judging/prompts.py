"""Prompt templates, identified by their hash, and compressed states as chat turns that every provider accepts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from eval_core.base.messages import ROLES, Message, content_text, said, tool_calls

# Prompt templates: files beside this module, identified by the hash of their content.

_FOLDER = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    # No escaping: prompts are text for models. Values are never parsed as templates.
    return Environment(
        loader=FileSystemLoader(_FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,  # noqa: S701
        auto_reload=False,  # or each prompt asks the disk whether its template changed
    )


def render(name: str, **values: Any) -> str:
    """Fill a template in."""
    return _environment().get_template(name).render(**values).strip()


@cache
def template_digest(*names: str) -> str:
    """Return what identifies the wording of these templates."""
    hasher = hashlib.sha256()
    for name in names:
        # Line endings depend on how the repository was checked out; the wording does not.
        hasher.update((_FOLDER / name).read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return hasher.hexdigest()


# A compressed state as turns that every provider accepts: text only, user and assistant in alternation.

_OPENING = "(The session so far.)"
_CLOSING = "(I have read the session so far.)"
_EMPTY = "(no text)"


def _text(message: Message, names: dict[str, str]) -> str:
    """Write a message as text: what it says, and nothing of it that was not counted."""
    role = message.get("role")
    whole = said(message)
    parts = [whole.content]
    if role == "tool":
        # By the name of the call that it answers, which was counted there; a name of its own is counted nowhere.
        parts = [f"[result of {names.get(str(message.get('tool_call_id', ''))) or 'tool'}]\n{whole.content}"]
    elif role not in ("user", "assistant"):
        parts = [f"[{role if role in ROLES else 'message'}]\n{whole.content}"]
    for call, (name, arguments) in zip(tool_calls(message), whole.calls, strict=True):
        names[str(call.get("id", ""))] = name
        parts.append(f"[call of {name}]\n{arguments}")
    return "\n".join(part for part in parts if part.strip()) or _EMPTY


def as_turns(state: Sequence[Message]) -> tuple[str, list[Message]]:
    """Return the leading system text, and the rest as turns that begin with the user and end with the assistant.

    Ending with the assistant keeps the question a turn of its own, so that all questions share their beginning.
    """
    at = 0
    while at < len(state) and state[at].get("role") in ("system", "developer"):
        at += 1
    system = "\n\n".join(content_text(message) for message in state[:at])
    turns: list[Message] = []
    names: dict[str, str] = {}
    for message in state[at:]:
        role = "assistant" if message.get("role") == "assistant" else "user"
        text = _text(message, names)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += "\n\n" + text
        else:
            turns.append({"role": role, "content": text})
    if turns and turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": _OPENING})
    if turns and turns[-1]["role"] == "user":
        turns.append({"role": "assistant", "content": _CLOSING})
    return system, turns
