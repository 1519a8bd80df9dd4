"""What a provider's response headers say about its rate limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

__all__ = ["RateWindow", "rate_window", "retry_after"]

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_RELAYED = "llm_provider-"  # litellm's prefix of headers that it hands through


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


def _seconds(text: str | None, now: datetime) -> float | None:
    """Read `12`, `1.5s`, `6m0s`, `250ms`, an ISO date or an HTTP date as seconds from now."""
    if text is None or not text.strip():
        return None
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        pass
    else:
        return value if 0 <= value < float("inf") else None
    spans = _SPAN.findall(text)
    if spans and _SPAN.sub("", text) == "":
        return sum(float(amount) * _UNIT[unit] for amount, unit in spans)
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
    return exact / 1000 if exact is not None else _seconds(plain.get("retry-after"), now)


def rate_window(headers: Mapping[str, object], now: datetime) -> RateWindow:
    """Read the rate-limit headers in the spellings of the common providers."""
    plain = _plain(headers)

    def first(*names: str) -> str | None:
        return next((plain[name] for name in names if name in plain), None)

    requests = _whole(first("x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining"))
    tokens = _whole(first("x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-remaining"))
    resets = []
    if requests == 0:
        resets.append(_seconds(first("x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset"), now))
    if tokens == 0:
        resets.append(_seconds(first("x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset"), now))
    known = [reset for reset in resets if reset is not None]
    return RateWindow(requests, tokens, max(known) if known else None)
