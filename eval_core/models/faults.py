"""Kinds of failed calls, from an exception of the client library or from the reply itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

from eval_core.domain.call import FailureKind
from eval_core.models.limiter import retry_after
from eval_core.models.settings import redact

__all__ = ["Charge", "Delivered", "Fault", "fault_of", "fault_of_status", "unusable"]

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
_PAGE = re.compile(r"^\s*(?:<!doctype html|<html|<head|<body)", re.IGNORECASE)
_TITLE = re.compile(r"<(title|h1)\b[^>]*>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_UNREADABLE = frozenset(
    {
        "JSONDecodeError",
        "KeyError",
        "IndexError",
        "TypeError",
        "AttributeError",
        "ValidationError",
        "UnicodeDecodeError",
    }
)
_BROKEN_OFF = frozenset(
    {"ReadError", "WriteError", "RemoteProtocolError", "ClientPayloadError", "ServerDisconnectedError",
     "ConnectionResetError", "ClientOSError"}
)  # fmt: skip
# In place of the client library's words, which speak of its own classes.
_BROKEN_CONNECTION = {
    "ClientPayloadError": "the connection broke off in the middle of the reply",
    "ServerDisconnectedError": "the connection was closed before a reply came",
    "ClientResponseError": "what answers there does not speak HTTP",
}


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
    text = text.partition("Traceback (most recent call last)")[0] or text.strip().rpartition("\n")[2]
    start = text.find('{"error"')
    if start >= 0:
        with suppress(ValueError, TypeError, KeyError):
            text = str(json.JSONDecoder().raw_decode(text[start:])[0]["error"]["message"]) or text
    elif _PAGE.match(text):  # of a proxy in front of the provider: its title says it all
        title = _TITLE.search(text)
        text = f"an HTML page, {title[2].strip()!r}" if title else "an HTML page"
    text = _LIBRARY_NOISE.sub("", " ".join(redact(text, secrets).split())).strip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _without_status(exc: BaseException, names: set[str]) -> tuple[FailureKind, Charge]:
    """Name a failure that is not an HTTP status: the library reports these all as 500."""
    if names & {"ConnectError", "ConnectTimeout", "ClientConnectorError", "ConnectionRefusedError"}:
        return "connection", "no"  # nothing was sent
    if "TimeoutError" in names or any(name.endswith("Timeout") for name in names):
        return "timeout", "unsure"
    if names & {"ClientResponseError", "BadStatusLine", "BadHttpMessage"} and not names & _BROKEN_OFF:
        return "connection", "unsure"  # what answers there does not speak HTTP
    if names & _UNREADABLE and not names & _BROKEN_OFF:
        return "malformed", "unsure"  # the reply came; the library wraps its own confusion as a lost connection
    if names & _BROKEN_OFF or "APIConnectionError" in names:
        return "connection", "unsure"
    if _NO_REPLY.search(str(exc)):
        return "malformed", "unsure"
    status = getattr(exc, "status_code", None)
    if isinstance(status, int) and status != 500 and "APIError" not in names:
        return _BY_STATUS.get(status, "server" if status >= 500 else "bad_request"), "no"
    return ("server", "unsure") if isinstance(status, int) and status >= 500 else ("unknown", "unsure")


def _without_money(links: Iterable[BaseException], status: object) -> bool:
    """Tell whether an account is empty: some providers say so with the status of a busy server."""
    if any(vars(link).get("code") in _NO_MONEY for link in links):
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
    if kind == "connection":
        text = next((words for name, words in _BROKEN_CONNECTION.items() if name in names), text)
    after = retry_after(_headers(exc), datetime.now(UTC)) if kind in ("rate_limit", "server", "timeout") else None
    return Fault(kind, shown + _one_line(text, secrets), charge, after)


def _plain_header(headers: Mapping[str, object], name: str) -> str:
    return next((str(value) for key, value in headers.items() if key.lower() == name), "")


def fault_of_status(
    status: int, text: str, headers: Mapping[str, object] = MappingProxyType({}), secrets: Iterable[str] = ()
) -> Fault:
    """Name the failure behind an HTTP status and the body that came with it."""
    kind = _BY_STATUS.get(status, "server" if status >= 500 else "bad_request")
    if status == 429 and any(f'"{code}"' in text for code in _NO_MONEY):
        kind = "payment"
    elif kind == "bad_request" and _TOO_LONG.search(text):
        kind = "context_length"
    elif kind == "bad_request" and ("content_policy_violation" in text or "content_filter" in text):
        kind = "refusal"
    after = retry_after(headers, datetime.now(UTC)) if kind in ("rate_limit", "server", "timeout") else None
    if 300 <= status < 400 and (where := _plain_header(headers, "location")):
        text = f"a redirect to {where}, which is not followed; give that address"
    said = _one_line(text, secrets)
    return Fault(kind, f"HTTP {status}: {said}" if said else f"HTTP {status} without a word", "no", after)


@dataclass(frozen=True)
class Delivered:
    """The parts of a delivered reply that tell whether it is of use."""

    content: object
    finish: str | None
    refusal: object = None
    tool_calls: bool = False
    reasoning: bool = False


def unusable(reply: Delivered | None, max_tokens: int, *, tools_offered: bool = False) -> Fault | None:
    """Name what makes a delivered reply unusable, or None; the reply is paid either way."""
    if reply is None:
        return Fault("malformed", "the reply holds no choice", "yes")
    if reply.refusal:
        return Fault("refusal", f"the model refused: {_one_line(str(reply.refusal), ())}", "yes")
    if reply.finish == "content_filter":
        return Fault("refusal", "the provider's content filter stopped the reply", "yes")
    if reply.finish == "length":
        return Fault("truncated", f"the reply was cut off at max_tokens = {max_tokens}; allow more", "yes")
    if isinstance(reply.content, str) and reply.content.strip():
        return None
    if reply.tool_calls and tools_offered:
        return None
    if reply.tool_calls:
        return Fault("malformed", "the reply is a tool call, though no tool was offered", "yes")
    if reply.content is not None and not isinstance(reply.content, str):
        return Fault("malformed", f"the reply's content is {type(reply.content).__name__}, not text", "yes")
    if reply.reasoning:
        return Fault("empty", "the reply holds only reasoning and no answer", "yes")
    return Fault("empty", "the reply is empty", "yes")
