"""Kinds of failed calls, from an exception of the client library or from the reply itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Literal

from eval_core.domain.call import FailureKind
from eval_core.models.error_body import Told, kind_told, sentence, wait_told
from eval_core.models.limiter import retry_after
from eval_core.models.settings import redact

Charge = Literal["no", "yes", "unsure"]
"""Whether the provider bills the attempt; unsure where it may have worked on it and we never saw the end."""

_NO_REPLY = re.compile(r"invalid response|not a list|received: '|no 'choices'", re.IGNORECASE)
_LIBRARY_NOISE = re.compile(r"^(?:(?:litellm\.)?\w+(?:Error|Exception|Timeout)\b(?:: | - | )?)+")
_LONGEST = 300
_READ = 10_000  # characters of an error; the sentence for people is in them, and a page without end takes no time
_WAITED_FOR = frozenset({"rate_limit", "server", "timeout"})
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
_NEVER_CONNECTED = frozenset(
    {"ConnectError", "ConnectTimeout", "ConnectionRefusedError", "ClientConnectorError", "ClientConnectorDNSError",
     "ClientConnectorSSLError", "ClientConnectorCertificateError", "ClientProxyConnectionError", "ClientHttpProxyError",
     "InvalidUrlClientError", "NonHttpUrlClientError"}
)  # fmt: skip
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
    unproven: bool = False
    """It blames the provider or the account, and a request could have brought the same about."""


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
    text = text[:_READ]
    if _PAGE.match(text):  # of a proxy in front of the provider: its title says it all
        title = _TITLE.search(text)
        text = f"an HTML page, {title[2].strip()!r}" if title else "an HTML page"
    text = _LIBRARY_NOISE.sub("", " ".join(redact(sentence(text), secrets).split())).strip()
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


# Where exceptions come from that a library raises while it turns a request into a provider's protocol.
_OF_THE_PROGRAM = frozenset({"builtins", "json", "pydantic", "pydantic_core", "litellm"})


def _cannot_be_written(links: Iterable[BaseException]) -> bool:
    """Tell whether an exception from before anything was sent is about the request: not a login, nor a connection."""
    return all(
        type(link).__module__.partition(".")[0] in _OF_THE_PROGRAM and not isinstance(link, OSError) for link in links
    )


def _without_status(exc: BaseException, names: set[str]) -> tuple[Told, Charge]:
    """Name a failure that is not an HTTP status: the library reports these all as 500."""
    if names & _NEVER_CONNECTED:
        return Told("connection"), "no"  # nothing was sent
    if "TimeoutError" in names or any(name.endswith("Timeout") for name in names):
        return Told("timeout"), "unsure"
    if names & {"ClientResponseError", "BadStatusLine", "BadHttpMessage"} and not names & _BROKEN_OFF:
        return Told("connection"), "unsure"  # what answers there does not speak HTTP
    if names & _UNREADABLE and not names & _BROKEN_OFF:
        return Told("malformed"), "unsure"  # the reply came; the library wraps its own confusion as a lost connection
    if names & _BROKEN_OFF or "APIConnectionError" in names:
        return Told("connection"), "unsure"
    if _NO_REPLY.search(str(exc)):
        return Told("malformed"), "unsure"
    status = getattr(exc, "status_code", None)
    if isinstance(status, int) and status != 500 and "APIError" not in names:
        return kind_told(status, str(exc)), "no"
    return Told("server" if isinstance(status, int) and status >= 500 else "unknown"), "unsure"


def _answered(links: Iterable[BaseException]) -> tuple[int, str] | None:
    """Return the status and the body of the reply behind an exception, where there was one."""
    for link in links:
        response = getattr(link, "response", None)
        status = getattr(response, "status_code", None)
        if type(link).__name__ == "HTTPStatusError" and isinstance(status, int):
            try:
                return status, str(getattr(response, "text", ""))
            except Exception:  # a body that was not read to its end is no part of the reason
                return status, ""
    return None


def fault_of(exc: BaseException, secrets: Iterable[str] = (), *, left: bool = True) -> Fault:
    """Name the failure behind an exception, by the reply where there was one; `left` tells if anything was sent."""
    links = list(_chain(exc))
    names = {type(link).__name__ for link in links}
    text = str(exc) or type(exc).__name__
    named: FailureKind | None = None
    if "ContextWindowExceededError" in names:
        named = "context_length"
    elif "ContentPolicyViolationError" in names:
        named = "refusal"
    if (answered := _answered(links)) is not None:
        fault = fault_of_status(answered[0], answered[1] or text, _headers(exc), secrets)
        return replace(fault, kind=named) if named and fault.kind == "bad_request" else fault
    charge: Charge = "no"
    if named is not None:
        told = Told(named)
    elif "PaymentRequiredError" in names:
        told = Told("payment", unproven=True)  # the library, too, goes by the words
    elif "AuthenticationError" in names:  # raised before anything is sent when there is no key
        told = Told("auth", unproven=True)
    elif not left and _cannot_be_written(links):
        told = Told("bad_request", unproven=True)  # a library has many ways to miss a login or a setting, too
    elif names & {"UnsupportedParamsError", "LiteLLMUnknownProvider"} or type(exc).__name__ == "BadRequestError":
        told = kind_told(400, text)
    else:
        told, charge = _without_status(exc, names)
    if told.kind == "connection":
        text = next((words for name, words in _BROKEN_CONNECTION.items() if name in names), text)
    after = retry_after(_headers(exc), datetime.now(UTC)) if told.kind in _WAITED_FOR else None
    return Fault(told.kind, _one_line(text, secrets), charge, after, told.unproven)


def _plain_header(headers: Mapping[str, object], name: str) -> str:
    return next((str(value) for key, value in headers.items() if key.lower() == name), "")


def fault_of_status(
    status: int, text: str, headers: Mapping[str, object] = MappingProxyType({}), secrets: Iterable[str] = ()
) -> Fault:
    """Name the failure behind an HTTP status and the body that came with it."""
    told = kind_told(status, text, _plain_header(headers, "x-amzn-errortype"))
    after = None
    if told.kind in _WAITED_FOR:
        now = datetime.now(UTC)
        after = retry_after(headers, now)
        after = wait_told(text, now) if after is None else after
    if 300 <= status < 400 and (where := _plain_header(headers, "location")):
        text = f"a redirect to {where}, which is not followed; give that address"
    said = _one_line(text, secrets)
    said = f"HTTP {status}: {said}" if said else f"HTTP {status} without a word"
    return Fault(told.kind, said, "no", after, told.unproven)


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
