"""When a session is compressed whose places are not fixed: asked before each call of the agent's model."""

from __future__ import annotations

from collections.abc import Sequence

from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages
from eval_core.domain.compression import Step
from eval_core.domain.fixture import STUCK, TRIGGER, Fixture

_FREED = 0.1
_MOST = 200
"""Compressions of one session; one that has more is compressed after every message."""


def is_stuck(steps: Sequence[Step]) -> bool:
    """Tell whether the last compressions were for nothing, or there is no end of them."""
    last = steps[-STUCK:]
    idle = all(step.tokens_after > (1 - _FREED) * step.tokens_before for step in last)
    return len(steps) >= _MOST or (len(last) == STUCK and idle)


class Due:
    """Goes through a session, from one call of the agent's model to the next."""

    def __init__(self, fixture: Fixture) -> None:
        messages = fixture.messages
        self.window = fixture.context_length
        self.messages = messages
        self._calls = [
            at
            for at in range(1, len(messages) + 1)
            if messages[at - 1].get("role") in ("user", "tool")
            and (at == len(messages) or messages[at].get("role") != "tool")
        ]
        self._sizes = [count_messages([message]) for message in messages]
        self._next = 0
        self._seen = 0
        self.tokens = 0
        """Of the state and what has been said since."""

    def compressed(self, after: int) -> None:
        """Go on from a state of so many tokens."""
        self.tokens = after

    def step(self) -> list[Message] | None:
        """Return what is said until the next call of the model; None at the end of the session."""
        if self._next >= len(self._calls):
            return None
        end = self._calls[self._next]
        news = self.messages[self._seen : end]
        self.tokens += sum(self._sizes[self._seen : end])
        self._next, self._seen = self._next + 1, end
        return news

    @property
    def seen(self) -> int:
        """How many messages have been said."""
        return self._seen

    @property
    def by_window(self) -> bool:
        """Whether the window is nearly full: when a compressor is called that has no word in it."""
        return self.tokens >= TRIGGER * self.window
