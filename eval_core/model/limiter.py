"""How many calls a provider gets at once: half when it protests, more again while it copes."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from eval_core.model.rate_headers import RateWindow

__all__ = ["Limiter"]

_LONGEST_PAUSE = 120.0  # a header that asks for more is left to the retry policy's deadline


class Limiter:
    """Slots for calls to one provider, handed out by priority, then in order of arrival."""

    def __init__(
        self,
        ceiling: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Begin at the ceiling, which is the user's own number: most providers never protest, and one round of
        calls at less would be paid by every run."""
        self.ceiling = ceiling
        self.limit = float(ceiling)
        self.active = 0
        self._clock, self._sleep = clock, sleep
        self._halved_at = float("-inf")
        self._paused_until = float("-inf")
        self._pause: asyncio.Task[None] | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._arrivals = 0

    @asynccontextmanager
    async def slot(self, priority: int = 0) -> AsyncIterator[float]:
        """Hold a slot; the value is the moment at which it was granted, for `throttled`."""
        await self._acquire(priority)
        try:
            yield self._clock()
        finally:
            self.active -= 1
            self._grant()

    async def _acquire(self, priority: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (priority, self._arrivals, turn))
        self._arrivals += 1
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # granted in the very moment of the cancellation
                self.active -= 1
                self._grant()
            raise

    def _grant(self) -> None:
        if self._clock() < self._paused_until:
            return
        while self._waiting and self.active < int(self.limit):
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                self.active += 1
                turn.set_result(None)

    def succeeded(self, window: RateWindow | None = None) -> None:
        """Grow by one for each full round, up to the ceiling."""
        self.limit = min(float(self.ceiling), self.limit + 1.0 / self.limit)
        if window is not None:
            self._heed(window)
        self._grant()

    def throttled(self, granted_at: float, retry_after: float | None = None) -> None:
        """Halve, but once for a burst: calls that were under way already say nothing new."""
        if granted_at >= self._halved_at:
            self.limit = max(1.0, self.limit / 2)
            self._halved_at = self._clock()
        if retry_after:
            self._hold(retry_after)

    def _heed(self, window: RateWindow) -> None:
        if window.spent and window.reset_seconds:
            self._hold(window.reset_seconds)
        elif window.remaining_requests is not None and window.remaining_requests < self.active:
            self.limit = max(1.0, min(self.limit, float(window.remaining_requests)))

    def _hold(self, seconds: float) -> None:
        until = self._clock() + min(seconds, _LONGEST_PAUSE)
        if until <= self._paused_until:
            return
        self._paused_until = until
        if self._pause is None or self._pause.done():
            self._pause = asyncio.get_running_loop().create_task(self._wait_out())

    async def _wait_out(self) -> None:
        while (left := self._paused_until - self._clock()) > 0:
            await self._sleep(left)
        self._grant()

    def close(self) -> None:
        """Stop waiting for a pause to end."""
        if self._pause is not None:
            self._pause.cancel()
