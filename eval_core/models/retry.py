"""Retry: when a failed call is tried again. Pure decisions, no clock and no network."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from eval_core.domain.call import FailureKind

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
        "truncated": 2,
        "refusal": 2,
        "unknown": 1,
        "auth": 2,
        "payment": 2,
        "not_found": 2,
        "bad_request": 2,
        "context_length": 1,
    }
)
# Errors that name a mistake of ours. Among good replies one of them is an odd one out and costs nothing to try again.
_OUR_MISTAKE = frozenset({"auth", "payment", "not_found", "bad_request", "context_length"})


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential delays with jitter, the provider's own wish first, and an end to it all."""

    base_seconds: float = 1.0
    longest_seconds: float = 60.0
    deadline_seconds: float = 900.0
    """From the first attempt to the start of the last one."""
    attempt_seconds: float | None = None
    """The most for one attempt, from request to last byte, where the endpoint's own limit is too patient."""
    outage_seconds: float = 2.0
    """Between calls to a provider that fails at every call, until it answers or is given up."""
    again: Mapping[FailureKind, int] = field(default_factory=lambda: _AGAIN)

    def retryable(self, kind: FailureKind) -> bool:
        """Tell whether asking again could help."""
        return kind not in _OUR_MISTAKE and self.again.get(kind, 0) > 0

    def delay(
        self,
        kind: FailureKind,
        failures: int,
        *,
        elapsed: float,
        retry_after: float | None,
        seed: str,
        answered: bool = True,
    ) -> float | None:
        """Return how long to wait after the n-th failure of this kind, or None to give up.

        `answered` tells whether the model has answered other calls.

        The jitter comes from the seed, so that a plan repeats exactly and concurrent calls still spread out.
        """
        if failures > self.again.get(kind, 0) or (kind == "bad_request" and not answered):
            return None
        step = min(self.longest_seconds, self.base_seconds * 2.0 ** (failures - 1))
        spread = random.Random(f"{seed}/{kind}/{failures}").random()  # noqa: S311 - jitter, not cryptography
        # Never earlier than asked, and a little apart from the others.
        wait = step * (0.5 + 0.5 * spread) if retry_after is None else retry_after + spread * min(step, 1.0)
        return None if elapsed + wait > self.deadline_seconds else wait
