"""A compressed state that only the provider can read.

Where compaction stays at the provider, the state is what must be sent back in front of the next turn. What it holds
can be asked, through the same provider, and not seen: facts, census and structure have nothing to look at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["OpaqueState"]


@dataclass(frozen=True)
class OpaqueState:
    """Items of an API's input, sent back as they are, in this order."""

    protocol: Literal["openai-responses", "anthropic-messages"]
    """The API whose input the items are."""
    items: list[dict[str, Any]]

    def __post_init__(self) -> None:
        """Refuse a state that holds nothing."""
        if not self.items:
            raise ValueError("items: a state needs at least one")
