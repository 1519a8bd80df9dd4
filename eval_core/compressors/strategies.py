"""The strategies by name: the reference, two alternatives and a known-bad control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .context_compressor import SUMMARY_MARK, ContextCompressor, head_length, tail_start
from .summariser import Request, Summariser
from .transcript import events


class Compressor(Protocol):
    """Anything that shortens a message list."""

    def compress(
        self,
        messages: Sequence[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the shortened list."""


class Regenerative(ContextCompressor):
    """Writes the whole summary anew each time, from the old summary's text and the new messages."""

    def compress(
        self,
        messages: Sequence[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
    ) -> list[dict[str, Any]]:
        """Compress as if the earlier summary were one more message."""
        self._summary = None
        plain = [
            {"role": "assistant", "content": str(message["content"]).removeprefix(SUMMARY_MARK)}
            if str(message.get("content") or "").startswith(SUMMARY_MARK)
            else message
            for message in messages
        ]
        return super().compress(plain, current_tokens, focus_topic)


class SlidingWindow:
    """Keeps the newest messages verbatim and forgets the rest."""

    share = 0.30

    def compress(
        self,
        messages: Sequence[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the head and as much of the tail as its share allows."""
        head = head_length(messages)
        sizes = [len(str(message)) for message in messages]
        room = self.share * sum(sizes)
        start = len(messages)
        while start > head and sizes[start - 1] <= room:
            start -= 1
            room -= sizes[start]
        # Rather less than the share than one output that alone is more than it; the last message always stays.
        while start < len(messages) and messages[start].get("role") == "tool":
            start += 1
        keep = max(len(messages) - start, 1)
        return [*messages[:head], *messages[max(tail_start(messages, keep), head) :]]


class Opaque:
    """One dense paragraph without structure, far too short: what a good eval must call bad."""

    share = 0.02

    def __init__(self, summariser: Summariser | None = None) -> None:
        """Squeeze by cutting, or let a model write the paragraph."""
        self._summarise = summariser or _squeeze

    def compress(
        self,
        messages: Sequence[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the head, the paragraph and the last exchange."""
        head = head_length(messages)
        tail = max(tail_start(messages, 1), head)
        middle = messages[head:tail]
        if not middle:
            return list(messages)
        room = int(self.share * sum(len(str(message)) for message in middle))
        text = self._summarise(Request(middle, None, (), max(room, 200), focus_topic))
        return [*messages[:head], {"role": "user", "content": f"{SUMMARY_MARK}\n\n{text}"}, *messages[tail:]]


def _squeeze(request: Request) -> str:
    """Write the beginning of everybody's prose into one paragraph."""
    words: list[str] = []
    room = request.max_chars
    for event in events(request.messages):
        text = " ".join(event.text.split())[:80]
        if text and room > 0:
            words.append(text[:room])
            room -= len(text) + 1
    return " ".join(words)


STRATEGIES: dict[str, Callable[[Summariser | None, int | None], Compressor]] = {
    "anchored": lambda summariser, window: ContextCompressor(summariser=summariser, context_length=window),
    "regenerative": lambda summariser, window: Regenerative(summariser=summariser, context_length=window),
    "sliding-window": lambda summariser, window: SlidingWindow(),
    "opaque": lambda summariser, window: Opaque(summariser),
}

ASK_NOBODY = frozenset({"sliding-window"})
"""Strategies that call no model, though there is one."""


def create(name: str, summariser: Summariser | None = None, window: int | None = None) -> Compressor:
    """Return a new compressor of the named strategy, for an effective window; KeyError for an unknown name."""
    return STRATEGIES[name](summariser, window)
