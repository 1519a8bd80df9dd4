"""What a provider says in the body of an error: its sentence, what it is about, and how long to wait.

Every provider has a shape of its own. The status alone is not enough: an empty account, an unknown model and a wrong
key come as 400 from one provider or another. A code that the provider chose goes before its prose, which may quote the
request, and with it whatever a compressor under test has written there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from eval_core.domain.call import FailureKind
from eval_core.models.limiter import retry_after, seconds_in

_BY_STATUS: dict[int, FailureKind] = {
    400: "bad_request", 401: "auth", 402: "payment", 403: "auth", 404: "not_found", 405: "bad_request",
    408: "timeout", 409: "server", 413: "context_length", 422: "bad_request", 424: "server", 425: "server",
    429: "rate_limit",
}  # fmt: skip
_BY_CODE: dict[str, FailureKind] = {
    "insufficient_quota": "payment", "billing_hard_limit_reached": "payment", "billing_not_active": "payment",
    "billing_error": "payment", "invalid_api_key": "auth", "api_key_invalid": "auth", "authentication_error": "auth",
    "permission_error": "auth", "permission_denied": "auth", "unauthenticated": "auth", "model_not_found": "not_found",
    "unknown_model": "not_found", "not_found_error": "not_found", "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit", "throttlingexception": "rate_limit", "resource_exhausted": "rate_limit",
    "context_length_exceeded": "context_length", "tokens_limit_reached": "context_length",
    "request_too_large": "context_length", "content_policy_violation": "refusal", "content_filter": "refusal",
}  # fmt: skip
# Codes of a mistake in the request, such as `invalid_json_schema`. `invalid_request_error` is what every 400 is called.
_MISTAKE = re.compile(
    r"^(?:invalid|unsupported|unknown|missing|string|array|integer|decimal|object|empty)_(?!request)", re.IGNORECASE
)
# What a status of 400 or 403 may mean besides a mistake in the request, the first that fits.
_MEANT: tuple[tuple[FailureKind, re.Pattern[str]], ...] = (
    ("payment", re.compile(r"credit balance is too low", re.IGNORECASE)),
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
_OF_THE_REQUEST = frozenset({"bad_request", "context_length", "refusal"})
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


@dataclass(frozen=True)
class Told:
    """What an error is about."""

    kind: FailureKind
    unproven: bool = False
    """It blames the provider or the account, and all that says so is prose or a status that a request can cause."""


def kind_told(status: int, body: str, error_type: str = "") -> Told:
    """Name what went wrong: by the status, then by the codes in the body or in a header, and last by its prose."""
    usual: FailureKind = "server" if status >= 500 else "not_found" if 300 <= status < 400 else "bad_request"
    kind = _BY_STATUS.get(status, usual)
    if status == 404 and _PARAMETERS.search(body):
        return Told("bad_request")
    if status not in _UNCLEAR and status != 429:
        return Told(kind)
    codes = [error_type.partition(":")[0], *_codes(body)]
    coded = next((_BY_CODE[code.lower()] for code in codes if code.lower() in _BY_CODE), None)
    if status == 429:
        return Told("payment" if coded == "payment" else kind)
    if coded is not None:
        return Told(coded)
    if any(map(_MISTAKE.match, codes)):
        return Told("bad_request")
    kind = next((meant for meant, words in _MEANT if words.search(body)), kind)
    return Told(kind, unproven=kind not in _OF_THE_REQUEST)


def wait_told(body: str, now: datetime) -> float | None:
    """Return how many seconds the body asks to wait, where no header does."""
    if reset := _RESET.search(body):
        return retry_after({reset[1]: reset[2]}, now)
    if found := _DELAY.search(body):
        return seconds_in(found[1])
    if found := _WAIT.search(body):
        return seconds_in(found["span"] or found["seconds"])
    return None


def _parsed(body: str) -> object:
    """Return the first JSON object in a text; None where there is none."""
    start = body.find("{")
    if start < 0:
        return None
    try:
        return json.JSONDecoder().raw_decode(body[start:])[0]
    except (ValueError, RecursionError):
        return None


def error_fields(body: str) -> tuple[Mapping[str, Any], ...]:
    """Return the objects of an error whose fields the provider fills in itself, the innermost first.

    A router hands on the error of the provider behind it. JSON in the middle of a text may be a quotation.
    """
    found = _parsed(body) if body.lstrip()[:1] in ("{", "[") else None
    if not isinstance(found, Mapping):
        return ()
    error = found.get("error")
    inner = error if isinstance(error, Mapping) else found
    metadata = inner.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    behind = _parsed(raw) if isinstance(raw, str) else None
    behind = behind.get("error", behind) if isinstance(behind, Mapping) else None
    return tuple(level for level in (behind, inner) if isinstance(level, Mapping))


def _codes(body: str) -> Iterator[str]:
    for error in error_fields(body):
        details = error.get("details")
        more = [item for item in details if isinstance(item, Mapping)] if isinstance(details, list) else []
        named = [error.get(name) for name in ("code", "type", "status")] + [item.get("reason") for item in more]
        yield from (code for code in named if isinstance(code, str))


def sentence(body: str) -> str:
    """Return the sentence that is meant for people; the body itself where there is none."""
    return next(_sentences(_parsed(body)), body)


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
