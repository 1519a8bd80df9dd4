"""Calls that share the beginning of their prompt: one goes ahead, so that the others find it in the cache."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from eval_core.messages import Message

__all__ = ["PrefixGate", "mark_prefix", "wants_marks"]

# Claude, however it is reached, caches only what is marked; the other providers find shared beginnings by themselves.
_MARKED = re.compile(r"^(?:claude|anthropic/|(?:bedrock|vertex_ai|azure_ai|openrouter)/.*(?:anthropic|claude))")


class PrefixGate:
    """Lets the first call of each prefix through alone."""

    def __init__(self) -> None:
        """Begin with no prefix seen."""
        self._opened: dict[str, asyncio.Event] = {}

    def leads(self, prefix: str | None) -> bool:
        """Tell whether a call with this prefix would be the first."""
        return prefix is not None and prefix not in self._opened

    @asynccontextmanager
    async def enter(self, prefix: str | None) -> AsyncIterator[bool]:
        """Go ahead as the first of a prefix (true), or wait until the first has finished, however it ended."""
        if prefix is None:
            yield False
            return
        if not self.leads(prefix):
            await self._opened[prefix].wait()
            yield False
            return
        opened = self._opened[prefix] = asyncio.Event()
        try:
            yield True
        finally:
            opened.set()


def wants_marks(model: str) -> bool:
    """Tell whether the provider caches only prompts that are marked."""
    return bool(_MARKED.search(model))


def mark_prefix(messages: Sequence[Message], model: str) -> list[Message]:
    """Mark the end of the shared beginning, which is everything but the last message."""
    marked = list(messages)
    if len(marked) < 2 or not wants_marks(model):
        return marked
    last = dict(marked[-2])
    content = last.get("content")
    parts: list[Message] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [dict(part) for part in content or ()]
    )
    if not parts or not parts[-1].get("text"):
        return marked
    parts[-1]["cache_control"] = {"type": "ephemeral"}
    marked[-2] = {**last, "content": parts}
    return marked
