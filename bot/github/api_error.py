"""GitHub API errors: what each means for a person, and which are worth a retry."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from eval_core.base.errors import IncompleteError, UserError


class ApiError(UserError):
    """GitHub said no, and asking again would not help."""

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class NotFound(ApiError):
    """There is no such thing, or the token may not see it."""


class Forbidden(ApiError):
    """The token is unknown or may not do this."""


class Conflict(ApiError):
    """The thing is not as the request supposes (409, 422)."""


class Unavailable(IncompleteError):
    """GitHub did not answer in time, or not sensibly."""

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done
        """The request may have taken effect although no answer came."""


def refusal(what: str, status: int, data: Any) -> ApiError:
    """Put a 4xx answer into words: what was tried, what GitHub said, what to do."""
    reason = _reason(data)
    if status == 401:
        return Forbidden(
            f"{what}: GitHub does not accept the token (401 {reason}); check GITHUB_TOKEN, it may have expired",
            status,
            reason,
        )
    if status == 403 and "locked" in reason.lower():
        return Forbidden(f"{what}: the conversation is locked (403 {reason}); unlock it and run again", status, reason)
    if status == 403:
        return Forbidden(
            f"{what}: the token may not do this (403 {reason}); grant the job the permission it lacks "
            "(contents, pull-requests, checks or actions)",
            status,
            reason,
        )
    if status in (404, 410):
        return NotFound(f"{what}: not found ({status}); it was deleted, or the token may not see it", status, reason)
    if status in (409, 422):
        return Conflict(f"{what}: GitHub refused the request ({status} {reason})", status, reason)
    return ApiError(f"{what}: GitHub returned {status} {reason}", status, reason)


def rate_limit_wait(
    status: int, headers: Mapping[str, Any], data: Any, *, now: float, secondary: float
) -> float | None:
    """Return the seconds to wait if this answer is a rate limit, None if it is anything else."""
    if status not in (403, 429):
        return None
    after = _number(headers.get("retry-after"))
    if after is not None:
        return max(after, 0.0)
    reason = _reason(data).lower()
    if str(headers.get("x-ratelimit-remaining")) == "0" or reason.startswith("api rate limit exceeded"):
        reset = _number(headers.get("x-ratelimit-reset"))
        # One second more: the reset happens somewhere within that second.
        return max(reset - now, 0.0) + 1 if reset is not None else secondary
    if status == 429 or "secondary rate limit" in reason or "abuse detection" in reason:
        return secondary
    return None


def _reason(data: Any) -> str:
    """Return GitHub's own words, made one short line."""
    if not isinstance(data, Mapping):
        return "without a reason"
    words = [str(data.get("message") or "without a reason")]
    errors = data.get("errors")
    for error in errors if isinstance(errors, list) else []:
        words.append(str(error.get("message") or error.get("code") or "") if isinstance(error, Mapping) else str(error))
    return " ".join(": ".join(word for word in words if word).split())[:300]


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
