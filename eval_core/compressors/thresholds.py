"""When to compress: thresholds against the effective context window."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

STATIC_WINDOW = 200_000
_EFFECTIVE = 0.8
"""What is left of a model's window after the system's own overhead."""
_ENVIRONMENT = "CLAUDE_EFFECTIVE_CONTEXT"


def effective_window(static: int = STATIC_WINDOW) -> int:
    """Return the usable part of a model's window, which the environment may set."""
    value = os.environ.get(_ENVIRONMENT, "")
    return int(value) if value.isdigit() and int(value) > 0 else int(_EFFECTIVE * static)


class Level(StrEnum):
    """How full the effective window is."""

    FREE = "free"
    DEFER = "defer"
    WARNING = "warning"
    COMPRESS = "compress"
    CRITICAL = "critical"


@dataclass(frozen=True)
class Thresholds:
    """Shares of the effective window at which something happens, and what is left untouched."""

    defer: float = 0.10
    warning: float = 0.60
    trigger: float = 0.70
    critical: float = 0.90
    target: float = 0.50
    """Compress until no more than this share of the window is used."""
    preserve_recent: int = 5
    min_messages: int = 10

    def level(self, tokens: int, window: int) -> Level:
        """Return the highest level that a number of tokens reaches."""
        share = tokens / window
        for level, at in (
            (Level.CRITICAL, self.critical),
            (Level.COMPRESS, self.trigger),
            (Level.WARNING, self.warning),
            (Level.DEFER, self.defer),
        ):
            if share >= at:
                return level
        return Level.FREE
