"""What went wrong with a call, named: from an exception of the client library or from the reply itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from eval_core.domain.call import FailureKind
from eval_core.models.limiter import retry_after
from eval_core.models.settings import redact

__all__ = ["Charge", "Fault", "fault_of", "unusable"]

Charge = Literal["no", "yes", "unsure"]
"""Whether the provider bills the attempt; unsure where it may have worked on it and we never saw the end."""

_BY_STATUS: dict[int, FailureKind] = {
    400: "bad_request", 401: "auth", 402: "payment", 403: "auth", 404: "not_found", 405: "bad_request",
    408: "timeout", 409: "server", 413: "context_length", 422: "bad_request", 425: "server", 429: "rate_limit",
}  # fmt: skip
_TOO_LONG = re.compile(
    r"context[_ ]length|maximum context|context window|prompt is too long|input is too long|too many tokens"
    r"|exceeds? the (?:available )?context|reduce the length",
    re.IGNORECASE,
)
_NO_REPLY = re.compile(r"invalid response|not a list|received: '|no 'choices'", re.IGNORECASE)
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_LIBRARY_NOISE = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)\b(?:: | - )?)+")
_LONGEST = 300


@dataclass(frozen=True)
class Fault:
    """A failed attempt."""

    kind: FailureKind
    message: str
    charge: Charge
    retry_after: float | None = None


def _chain(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _headers(exc: BaseException) -> Mapping[str, object]:
    for link in _chain(exc):
        for holder in (getattr(link, "litellm_response_headers", None), getattr(link, "headers", None)):
            if holder:
                return dict(holder)
        found = getattr(getattr(link, "response", None), "headers", None)
        if found:
            return dict(found)
    return {}


def _one_line(text: str, secrets: Iterable[str]) -> str:
    start = text.find('{"error"')
    if start >= 0:
        with suppress(ValueError, TypeError, KeyError):
            text = str(json.JSONDecoder().raw_decode(text[start:])[0]["error"]["message"]) or text
    text = _LIBRARY_NOISE.sub("", " ".join(redact(text, secrets).split())).strip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _without_status(exc: BaseException, names: set[str]) -> tuple[FailureKind, Charge]:
    """Name a failure that is not an HTTP status: the library reports these all as 500."""
    if names & {"ConnectError", "ConnectTimeout", "ClientConnectorError", "ConnectionRefusedError"}:
        return "connection", "no"  # nothing was sent
    if "TimeoutError" in names or any(name.endswith("Timeout") for name in names):
        return "timeout", "unsure"
    if names & {"ReadError", "WriteError", "RemoteProtocolError", "ClientPayloadError", "ServerDisconnectedError",
                "ConnectionResetError", "APIConnectionError", "ClientOSError"}:  # fmt: skip
        return "connection", "unsure"
    if "JSONDecodeError" in names or _NO_REPLY.search(str(exc)):
        return "malformed", "unsure"
    status = getattr(exc, "status_code", None)
    if isinstance(status, int) and status != 500 and "APIError" not in names:
        return _BY_STATUS.get(status, "server" if status >= 500 else "bad_request"), "no"
    if "KeyError" in names or "TypeError" in names or "AttributeError" in names or "ValidationError" in names:
        return "malformed", "unsure"
    return ("server", "unsure") if isinstance(status, int) and status >= 500 else ("unknown", "unsure")


def _without_money(links: Iterable[BaseException], status: object) -> bool:
    """Tell whether an account is empty: some providers say so with the status of a busy server."""
    if any(getattr(link, "code", None) in _NO_MONEY for link in links):
        return True
    return status == 429 and any(f'"{code}"' in str(link) for link in links for code in _NO_MONEY)


def fault_of(exc: BaseException, secrets: Iterable[str] = ()) -> Fault:
    """Name the failure behind an exception, by the HTTP status where there was one."""
    links = list(_chain(exc))
    names = {type(link).__name__ for link in links}
    text = str(exc) or type(exc).__name__
    answered = next((link for link in links if type(link).__name__ == "HTTPStatusError"), None)
    status = getattr(getattr(answered, "response", None), "status_code", None) or getattr(exc, "status_code", None)
    kind: FailureKind
    charge: Charge = "no"
    if "ContextWindowExceededError" in names:
        kind = "context_length"
    elif "ContentPolicyViolationError" in names:
        kind = "refusal"
    elif "PaymentRequiredError" in names or _without_money(links, status):
        kind = "payment"
    elif answered is not None and isinstance(status, int):
        kind = _BY_STATUS.get(status, "server" if status >= 500 else "bad_request")
    elif "AuthenticationError" in names:  # raised before anything is sent when there is no key
        kind = "auth"
    elif names & {"UnsupportedParamsError", "LiteLLMUnknownProvider"} or type(exc).__name__ == "BadRequestError":
        kind = "bad_request"
    else:
        kind, charge = _without_status(exc, names)
    if kind == "bad_request" and _TOO_LONG.search(text):
        kind = "context_length"
    shown = f"HTTP {status}: " if answered is not None else ""
    after = retry_after(_headers(exc), datetime.now(UTC)) if kind in ("rate_limit", "server", "timeout") else None
    return Fault(kind, shown + _one_line(text, secrets), charge, after)


def unusable(choice: Any | None, max_tokens: int, *, tools_offered: bool = False) -> Fault | None:
    """Name what makes a delivered reply unusable, or None; the reply is paid either way."""
    if choice is None:
        return Fault("malformed", "the reply holds no choice", "yes")
    message = choice.message
    text = message.content
    finish = choice.finish_reason
    refusal = getattr(message, "refusal", None) or (getattr(message, "provider_specific_fields", None) or {}).get(
        "refusal"
    )
    if refusal:
        return Fault("refusal", f"the model refused: {_one_line(str(refusal), ())}", "yes")
    if finish == "content_filter":
        return Fault("refusal", "the provider's content filter stopped the reply", "yes")
    if finish == "length":
        return Fault("truncated", f"the reply was cut off at max_tokens = {max_tokens}; allow more", "yes")
    if isinstance(text, str) and text.strip():
        return None
    if getattr(message, "tool_calls", None) and tools_offered:
        return None
    if getattr(message, "tool_calls", None):
        return Fault("malformed", "the reply is a tool call, though no tool was offered", "yes")
    if text is not None and not isinstance(text, str):
        return Fault("malformed", f"the reply's content is {type(text).__name__}, not text", "yes")
    if getattr(message, "reasoning_content", None):
        return Fault("empty", "the reply holds only reasoning and no answer", "yes")
    return Fault("empty", "the reply is empty", "yes")
