"""A compressor in the manner of Hermes': it prunes tool outputs, shows the middle to its model, keeps head and tail.

`bench/mutants.py` edits this source. The model is whatever `complete` reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Message = dict[str, Any]

PREFACE = "[CONTEXT COMPACTION] Earlier turns were compacted into the summary below. Use it as background."
TEMPLATE = (
    ("Active Task", "the user's latest request, word for word"),
    ("Constraints", "what the user forbade or insisted on"),
    ("Completed Actions", "what was done, with files, commands and results"),
    ("Key Decisions", "each decision and its reason"),
    ("Errors", "error messages with their exact text"),
    ("Relevant Files", "each path that was read or changed"),
    ("Critical Context", "identifiers, versions, hashes, addresses, numbers"),
)
PROTECT_FIRST = 2
PROTECT_LAST = 6
OUTPUT_LIMIT = 4_000
ARGUMENT_LIMIT = 2_000
SUMMARY_CHARS = 9_000


def clip(text: str, limit: int) -> str:
    """Cut a long text in its middle."""
    return text if len(text) <= limit else text[: limit * 2 // 3] + " ... " + text[-limit // 3 :]


def serialise(messages: list[Message]) -> str:
    """Write the turns out for the model."""
    lines = []
    for message in messages:
        text = str(message.get("content") or "")
        if message.get("role") == "tool":
            text = clip(text, OUTPUT_LIMIT)
        lines.append(f"[{message.get('role')}] {text}")
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            lines.append(f"[call] {function.get('name')} {clip(str(function.get('arguments', '')), ARGUMENT_LIMIT)}")
    return "\n".join(lines)


class HermesLike:
    """Compresses with one model call, and extends its own summary when called again."""

    def __init__(self, complete: Callable[[list[Message]], str]) -> None:
        self._complete = complete
        self._previous = ""

    def compress(self, messages: list[Message]) -> list[Message]:
        """Return head, summary and tail."""
        end = len(messages) - PROTECT_LAST
        while end > 0 and messages[end].get("role") == "tool":
            end -= 1
        head, middle, tail = messages[:PROTECT_FIRST], messages[PROTECT_FIRST:end], messages[end:]
        if not middle:
            return messages
        headings = "\n".join(f"## {title}\n<{guidance}>" for title, guidance in TEMPLATE)
        prompt = f"Summarise the turns below. At most {SUMMARY_CHARS} characters.\n\n{headings}\n\n"
        if self._previous:
            prompt += f"PREVIOUS SUMMARY:\n{self._previous}\n\n"
        prompt += f"TURNS:\n{serialise(middle)}"
        summary = self._complete([{"role": "user", "content": prompt}])
        self._previous = summary
        return [*head, {"role": "user", "content": f"{PREFACE}\n\n{summary}"}, *tail]
