"""When a failed call is tried again, decided without touching clock or network."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from eval_core.domain.call import FailureKind

__all__ = ["RetryPolicy"]

# How often a kind of failure may be tried again. Kinds that are not named cannot get better by asking again.
# Unusable replies were paid for, so they get few.
_AGAIN: Mapping[FailureKind, int] = MappingProxyType(
    {
        "rate_limit": 12,
        "server": 5,
        "connection": 5,
        "timeout": 2,
        "empty": 2,
        "malformed": 2,
        "truncated": 1,
        "refusal": 1,
        "unknown": 1,
    }
)


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential delays with jitter, the provider's own wish first, and an end to it all."""

    base_seconds: float = 1.0
    longest_seconds: float = 60.0
    deadline_seconds: float = 900.0
    """From the first attempt to the start of the last one."""
    attempt_seconds: float = 180.0
    """One attempt from request to last byte, however slowly the bytes drip."""
    again: Mapping[FailureKind, int] = field(default_factory=lambda: _AGAIN)

    def retryable(self, kind: FailureKind) -> bool:
        """Tell whether asking again could help."""
        return self.again.get(kind, 0) > 0

    def delay(
        self, kind: FailureKind, failures: int, *, elapsed: float, retry_after: float | None, seed: str
    ) -> float | None:
        """Return how long to wait after the n-th failure of this kind, or None to give up.

        The jitter comes from the seed, so that a plan repeats exactly and concurrent calls still spread out.
        """
        if failures > self.again.get(kind, 0):
            return None
        step = min(self.longest_seconds, self.base_seconds * 2.0 ** (failures - 1))
        spread = random.Random(f"{seed}/{kind}/{failures}").random()  # noqa: S311 - jitter, not cryptography
        # Never earlier than asked, and a little apart from the others.
        wait = step * (0.5 + 0.5 * spread) if retry_after is None else retry_after + spread * min(step, 1.0)
        return None if elapsed + wait > self.deadline_seconds else wait
