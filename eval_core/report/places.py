"""Where in a session something stood, in words."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["places"]


def places(evidence: Sequence[int]) -> str:
    """Name the first few messages that establish a fact."""
    if not evidence:
        return "place unknown"
    shown = ", ".join(str(index) for index in evidence[:3])
    return f"message{'s' if len(evidence) > 1 else ''} {shown}{' …' if len(evidence) > 3 else ''}"
