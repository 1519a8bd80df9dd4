"""What a provider says in the body of an error: its sentence, what it is about, and how long to wait.

Every provider has a shape of its own. The status alone is not enough: an empty account, an unknown model and a wrong
key come as 400 from one provider or another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from eval_core.domain.call import FailureKind
from eval_core.models.limiter import retry_after, seconds_in

__all__ = ["kind_told", "sentence", "wait_told"]

_BY_STATUS: dict[int, FailureKind] = {
    400: "bad_request", 401: "auth", 402: "payment", 403: "auth", 404: "not_found", 405: "bad_request",
    408: "timeout", 409: "server", 413: "context_length", 422: "bad_request", 424: "server", 425: "server",
    429: "rate_limit",
}  # fmt: skip
_NO_MONEY = re.compile(
    r'"(?:insufficient_quota|billing_hard_limit_reached|billing_not_active)"|credit balance is too low', re.IGNORECASE
)
# What a status of 400 or 403 may mean besides a mistake in the request, the first that fits.
_MEANT: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
    ("rate_limit", re.compile(r"ThrottlingException|too many tokens per|too many requests", re.IGNORECASE)),
    (
        "context_length",
        re.compile(
            r"context[_ ]length|maximum context|context window|prompt is too long|input is too long|too many tokens"
            r"|exceeds? the (?:available )?context|reduce the length|exceeds the maximum number of tokens",
            re.IGNORECASE,
        ),
    ),
    ("refusal", re.compile(r"content_policy_violation|content_filter|requires moderation|input was flagged")),
    ("auth", re.compile(r"API_KEY_INVALID|API key not valid|invalid_api_key", re.IGNORECASE)),
    (
        "not_found",
        re.compile(r"unknown_model|model_not_found|not a valid model|model identifier is invalid", re.IGNORECASE),
    ),
)
_UNCLEAR = frozenset({400, 403, 422})
_WAIT = re.compile(
    r"(?:try again|retry|wait)(?: for| in| after)? (?P<span>\d+(?:\.\d+)?(?:ms|s|m|h|d)(?:\d+(?:\.\d+)?(?:ms|s))?)\b"
    r"|(?:try again|retry|wait)(?: for| in| after)? (?P<seconds>\d+(?:\.\d+)?) ?sec",
    re.IGNORECASE,
)
_DELAY = re.compile(r'"retryDelay"\s*:\s*"([\d.]+s)"')
_RESET = re.compile(r'"(X-RateLimit-Reset)"\s*:\s*"?(\d+)', re.IGNORECASE)
# A router that knows the model and no provider of it that takes the parameters: asked with fewer, it may find one.
_PARAMETERS = re.compile(r"no endpoints found that (?:can handle|support)", re.IGNORECASE)
_GENERIC = re.compile(r"^provider returned error\.?$", re.IGNORECASE)  # a router's; the provider's own words are beside


def kind_told(status: int, body: str) -> FailureKind:
    """Name what went wrong, by the status and by what the body says of it."""
    usual: FailureKind = "server" if status >= 500 else "not_found" if 300 <= status < 400 else "bad_request"
    kind = _BY_STATUS.get(status, usual)
    if status in (400, 403, 429) and _NO_MONEY.search(body):
        return "payment"
    if status == 404 and _PARAMETERS.search(body):
        return "bad_request"
    if status in _UNCLEAR:
        return next((meant for meant, words in _MEANT if words.search(body)), kind)
    return kind


def wait_told(body: str, now: datetime) -> float | None:
    """Return how many seconds the body asks to wait, where no header does."""
    if reset := _RESET.search(body):
        return retry_after({reset[1]: reset[2]}, now)
    if found := _DELAY.search(body):
        return seconds_in(found[1])
    if found := _WAIT.search(body):
        return seconds_in(found["span"] or found["seconds"])
    return None


def sentence(body: str) -> str:
    """Return the sentence that is meant for people; the body itself where there is none."""
    start = body.find("{")
    if start < 0:
        return body
    try:
        found = json.JSONDecoder().raw_decode(body[start:])[0]
    except (ValueError, RecursionError):
        return body
    return next(_sentences(found), body)


def _sentences(found: object) -> Iterator[str]:
    if isinstance(found, str):
        if found.strip():
            yield found
    elif isinstance(found, Mapping):
        error = found.get("error")
        if isinstance(error, Mapping | str):
            yield from _sentences(error)
        yield from _worded(found)
    elif isinstance(found, Sequence):
        for item in found:
            yield from _sentences(item)


def _worded(error: Mapping[str, Any]) -> Iterator[str]:
    message = next((error[name] for name in ("message", "msg", "detail") if error.get(name)), None)
    metadata = error.get("metadata")
    inner = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if isinstance(message, str) and _GENERIC.match(message) and isinstance(inner, str) and inner.strip():
        yield f"{message.rstrip('.')}: {sentence(inner)}"
    elif message is not None:
        yield from _sentences(message)
