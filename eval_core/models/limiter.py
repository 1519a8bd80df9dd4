"""Rate limits: concurrency per provider, steered by its response headers and refusals."""

from __future__ import annotations

import asyncio
import heapq
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

# What a provider's response headers say about its rate limits.

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MOMENT = 10**9  # a smaller number is a span and no moment
_RELAYED = "llm_provider-"  # litellm's prefix of headers that it hands through


_TOKEN_LIMITS = (
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
)


@dataclass(frozen=True)
class RateWindow:
    """What is left of the current window; None where the provider does not tell."""

    remaining_requests: int | None = None
    remaining_tokens: int | None = None
    reset_seconds: float | None = None
    """Until whatever ran out is there again."""

    @property
    def spent(self) -> bool:
        """Whether the next request would be refused."""
        return self.remaining_requests == 0 or self.remaining_tokens == 0


def _plain(headers: Mapping[str, object]) -> dict[str, str]:
    return {str(name).lower().removeprefix(_RELAYED): str(value) for name, value in headers.items()}


def _whole(text: str | None) -> int | None:
    try:
        return None if text is None else max(0, int(float(text)))
    except (ValueError, OverflowError):
        return None


def seconds_in(text: str) -> float | None:
    """Read `12`, `1.5s`, `6m0s` or `250ms` as seconds."""
    try:
        value = float(text)
    except ValueError:
        spans = _SPAN.findall(text)
        whole = spans and _SPAN.sub("", text) == ""
        return sum(float(amount) * _UNIT[unit] for amount, unit in spans) if whole else None
    return value if 0 <= value < float("inf") else None


def _seconds(text: str | None, now: datetime) -> float | None:
    """Read a span, an ISO date or an HTTP date as seconds from now."""
    if text is None or not text.strip():
        return None
    text = text.strip()
    if (span := seconds_in(text)) is not None:
        return span
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            at = read(text)
        except (ValueError, TypeError):
            continue
        if at.tzinfo is not None:
            return max(0.0, (at - now).total_seconds())
    return None


def retry_after(headers: Mapping[str, object], now: datetime) -> float | None:
    """Return how many seconds the provider asks to wait, if it does."""
    plain = _plain(headers)
    exact = _seconds(plain.get("retry-after-ms"), now)
    if exact is not None:
        return exact / 1000
    told = _seconds(plain.get("retry-after"), now)
    if told is None:
        told = _seconds(plain.get("x-ratelimit-timeremaining"), now)  # GitHub Models
    return _until(plain.get("x-ratelimit-reset"), now) if told is None else told


def _until(text: str | None, now: datetime) -> float | None:
    """Read the moment at which a limit ends, in seconds or milliseconds since 1970, as OpenRouter gives it."""
    at = _whole(text)
    if at is None or at < _MOMENT:
        return None
    return max(0.0, (at / 1000 if at >= 1000 * _MOMENT else at) - now.timestamp())


def rate_window(headers: Mapping[str, object], now: datetime) -> RateWindow:
    """Read the rate-limit headers in the spellings of the common providers."""
    plain = _plain(headers)

    def first(*names: str) -> str | None:
        return next((plain[name] for name in names if name in plain), None)

    requests = _whole(first("x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining"))
    resets = []
    if requests == 0:
        resets.append(_seconds(first("x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset"), now))
    tokens: int | None = None
    for remaining, reset in _TOKEN_LIMITS:
        left = _whole(plain.get(remaining))
        if left is not None:
            tokens = left if tokens is None else min(tokens, left)
        if left == 0:
            resets.append(_seconds(plain.get(reset), now))
    known = [reset for reset in resets if reset is not None]
    return RateWindow(requests, tokens, max(known) if known else None)


# How many calls a provider gets at once: half when it protests, more again while it copes.

_LONGEST_PAUSE = 120.0  # a header that asks for more says that a quota is used up: the model's health decides then


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
            self._wait_for(retry_after)

    def _heed(self, window: RateWindow) -> None:
        if window.spent and window.reset_seconds:
            self._wait_for(window.reset_seconds)
        elif window.remaining_requests is not None and window.remaining_requests < self.active:
            self.limit = max(1.0, min(self.limit, float(window.remaining_requests)))

    def resume(self) -> None:
        """End a pause: those who wait have to learn that there is nothing left to wait for."""
        self._paused_until = float("-inf")
        self._grant()

    def _wait_for(self, seconds: float) -> None:
        until = self._clock() + seconds
        if seconds > _LONGEST_PAUSE or until <= self._paused_until:
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
