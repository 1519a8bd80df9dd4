"""When a compressor starts compressing by itself: the number of tokens at which it first would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from eval_core.domain.fixture import Fixture


@dataclass(frozen=True)
class Trigger:
    """What a compressor says when it is asked at growing numbers of tokens."""

    asked_up_to: int
    at: int | None
    """The smallest number at which it would compress, to a hundredth of it; None: at none that it was asked about."""


@runtime_checkable
class TriesTrigger(Protocol):
    """A subject that can be asked when it compresses."""

    async def first_trigger(self, fixture: Fixture) -> Trigger | None:
        """Ask with the messages of a fixture and growing numbers of tokens; None where it has no answer."""
