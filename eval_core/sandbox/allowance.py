"""What one fixture-run may ask of its model, all its attempts together, and where each of its calls is."""

from __future__ import annotations

import time

from eval_core.domain.call import Completion, Failed, FailureKind, ModelCall, Usage
from eval_core.models.budget import Budget, Reservation, count_ahead
from eval_core.sandbox.classify import CallRecord
from eval_core.sandbox.request import GatewayLimits, Refusal

_OF_THE_PROVIDER: frozenset[FailureKind] = frozenset(
    {"rate_limit", "server", "connection", "timeout", "auth", "payment", "not_found", "unknown"}
)
_NOTHING = Reservation(0.0, 0)


class Allowance:
    """The caps of one fixture-run; a compression that is begun again gets what is left of them.

    The tokens of a call are reserved at their worst case while it is under way, or calls sent at once would all be
    measured against what the first of them has not spent yet.
    """

    def __init__(self, limits: GatewayLimits) -> None:
        self.limits = limits
        self.tokens = Budget(None, limits.total_tokens)
        self.turned_away = False
        """Whether a request was more than what was left."""
        self._calls = self._bytes = 0

    def _no(self, what: str, code: str) -> Refusal:
        self.turned_away = True
        return Refusal(429, f"the run's {what} are used up", code)

    def admit(self, size: int) -> None:
        """Count a request of that many bytes, or raise Refusal."""
        if self._calls >= self.limits.requests:
            raise self._no(f"{self.limits.requests} requests", "too_many_requests")
        if self._bytes + size > self.limits.run_bytes:
            raise self._no(f"{self.limits.run_bytes:,} bytes of requests", "too_many_bytes")
        self._calls += 1
        self._bytes += size

    def give_back(self, size: int = 0) -> None:
        """Uncount a request: one that cost nothing, or, with its size, one that was not made."""
        self._calls -= 1
        self._bytes -= size

    async def reserve(self, call: ModelCall) -> Reservation | None:
        """Reserve a call's worst case, behind calls under way if need be; None where it is more than is left."""
        await count_ahead(call)
        reserved = await self.tokens.reserve(call, None)
        return reserved if isinstance(reserved, Reservation) else None

    def no_tokens(self) -> Refusal:
        """Return the refusal of a call whose worst case is more than is left."""
        return self._no(f"{self.limits.total_tokens:,} tokens", "too_many_tokens")


class MeteredCall:
    """One call on its way through the model client: see `eval_core.domain.call.Passage`."""

    def __init__(self, record: CallRecord, allowance: Allowance) -> None:
        self._record, self._allowance = record, allowance
        self._held: Reservation | None = None
        self._told = False
        """Whether the client tells of its requests."""

    async def again(self, call: ModelCall) -> bool:
        """Reserve the worst case of the next request."""
        self._held = await self._allowance.reserve(call)
        return self._held is not None

    def left(self) -> None:
        """Note the moment: what came before was our own queue."""
        self._told = True
        now = time.monotonic()
        self._record.out_since = now
        if self._record.held_since is None:
            self._record.held_since = now

    def returned(self, usage: Usage | None, failed: FailureKind | None, *, lost: bool) -> None:
        """Count what a request used, or its worst case where nobody knows."""
        record = self._record
        if record.out_since is not None:
            record.exchanges.append((record.out_since, time.monotonic()))
        record.out_since = None
        if failed not in _OF_THE_PROVIDER or failed == "rate_limit":
            # Whoever sends many at once is told to wait for them: from here on that is the queue again.
            record.held_since = None
        held, self._held = self._held or _NOTHING, None
        if lost:
            self._allowance.tokens.lose(held)
        else:
            self._allowance.tokens.charge(held, usage)

    def ended(self, result: Completion | Failed | None) -> None:
        """Release what is still reserved; without a result, nobody waits for the call any longer."""
        free = isinstance(result, Completion) and result.cached
        if free:
            self._allowance.give_back()
        if self._record.out_since is None and self._held is not None:
            held, self._held = self._held, None
            used = result.usage if result is not None and not free and not self._told else None
            self._allowance.tokens.charge(held, used)
