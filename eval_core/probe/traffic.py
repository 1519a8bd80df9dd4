"""What a session did, read off its tool traffic: the ground that proposed probes stand on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from eval_core.messages import Message, call_arguments, call_name, content_text, decoded, tool_calls

__all__ = ["Exchange", "changed_files", "exchanges", "exit_code", "refused"]

_WRITES = re.compile(r"write|create|edit|patch|replace|insert|append|save", re.I)
_PATH_FIELDS = ("path", "file_path", "filename", "file", "target_file", "notebook_path")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update) File: (\S{1,200})|^\+\+\+ b/(\S{1,200})", re.M)
_EXIT_FIELDS = ("exit_code", "exitCode", "returncode", "return_code")
_EXIT_TEXT = re.compile(r"\b(?:exit code|exited with(?: code)?|exit status|exit=)[ :]{0,2}(\d{1,3})\b", re.I)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One tool call and its answer."""

    called: int
    answered: int
    name: str
    arguments: dict[str, Any]
    """The decoded arguments; empty where they are not a JSON object."""
    answer: str
    """The answer with JSON unfolded."""
    reply: dict[str, Any]
    """The answer's JSON object, empty where it is none."""

    @property
    def command(self) -> str:
        """The shell command that was run, or an empty text."""
        value = self.arguments.get("command") or self.arguments.get("cmd") or ""
        return value if isinstance(value, str) else " ".join(map(str, value)) if isinstance(value, list) else ""


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def exchanges(messages: Sequence[Message]) -> Iterator[Exchange]:
    """Yield every answered tool call in the order of the answers."""
    calls: dict[str, tuple[int, str, str]] = {}
    for index, message in enumerate(messages):
        for call in tool_calls(message):
            calls[str(call.get("id"))] = (index, call_name(call), call_arguments(call))
        known = calls.pop(str(message.get("tool_call_id")), None) if message.get("role") == "tool" else None
        if known is not None:
            called, name, arguments = known
            text = content_text(message)
            yield Exchange(called, index, name, _object(arguments), decoded(text), _object(text))


def exit_code(exchange: Exchange) -> int | None:
    """Return the status that the tool reports, or None where it reports none."""
    for field in _EXIT_FIELDS:
        value = exchange.reply.get(field)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    match = _EXIT_TEXT.search(exchange.answer)
    return int(match.group(1)) if match else None


def refused(exchange: Exchange) -> bool:
    """Tell whether the tool itself says that it did not do what was asked."""
    return exchange.reply.get("success") is False or bool(exchange.reply.get("error"))


def changed_files(exchange: Exchange) -> list[str]:
    """Return the files that the call wrote, as the call names them."""
    if not _WRITES.search(exchange.name) or refused(exchange):
        return []
    named = [exchange.arguments[field] for field in _PATH_FIELDS if isinstance(exchange.arguments.get(field), str)]
    patch = exchange.arguments.get("patch") or exchange.arguments.get("diff") or ""
    if isinstance(patch, str):
        named += [added or changed for added, changed in _PATCHED.findall(patch)]
    return list(dict.fromkeys(named))
