"""One HTTP call to an OpenAI-compatible server, without a client library.

A call costs half a millisecond of processor time this way and six through litellm, which is what a run at a high
concurrency is made of; and a server that is named by its URL needs no routing.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from eval_core.domain.call import ModelCall, ReplyCall, Usage
from eval_core.models.error_body import error_fields
from eval_core.models.faults import Delivered, Fault, fault_of, fault_of_status, unusable
from eval_core.models.settings import Endpoint
from eval_core.models.transport import Attempt, mark_prefix, served_by, usage_told

_LARGEST_REPLY = 8 * 2**20  # the longest replies of models have a tenth of it; sixteen may be in memory at once
_READ_OF_AN_ERROR = 2**16
_LIMIT, _NEWER_LIMIT = "max_tokens", "max_completion_tokens"  # OpenAI's reasoning models insist on the second
_TEMPERATURE = "temperature"  # which reasoning models choose themselves
_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value"})
_REFUSALS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        _LIMIT: re.compile(r"max_tokens.{0,80}max_completion_tokens", re.DOTALL),
        _TEMPERATURE: re.compile(
            r"""["'`]temperature["'`] (?:does not support|is not supported|is deprecated|is unsupported)""",
            re.IGNORECASE,
        ),
    }
)


class _TooLarge(ValueError):
    """A reply goes on and on."""


class DirectConnections:
    """The open connections to OpenAI-compatible servers."""

    def __init__(self) -> None:
        """Connect to nobody yet."""
        self._session: aiohttp.ClientSession | None = None
        self._refused: dict[tuple[str, str], frozenset[str]] = {}
        self._proxies: dict[str, str | None] = {}

    async def aclose(self) -> None:
        """Close them all."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
            # The limit of time is the caller's.
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        return self._session

    def _proxy(self, url: str) -> str | None:
        """Return the proxy that the environment names for a URL; looked up once, not in two threads for each call."""
        if url not in self._proxies:
            parts = urlsplit(url)
            # A server on this machine is reached directly: what is kept here must not pass through somebody's proxy.
            direct = _is_loopback(parts.hostname or "") or any(map(proxy_bypass, (parts.netloc, parts.hostname or "")))
            self._proxies[url] = None if direct else _http_proxy(getproxies().get(parts.scheme))
        return self._proxies[url]

    async def send(self, call: ModelCall, endpoint: Endpoint, seconds: float, secrets: Iterable[str] = ()) -> Attempt:
        """Send the call once and wait at most so long for the last byte of the reply."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                left_out = self.known(endpoint)
                status, headers, raw = await self._post(call, endpoint)
                # What is learned holds for everybody, so a compressor, whose words may be quoted here, teaches nothing.
                while (
                    status == 400
                    and not call.by_compressor
                    and self.learn(endpoint, raw)
                    and left_out != self.known(endpoint)
                ):
                    left_out = self.known(endpoint)
                    status, headers, raw = await self._post(call, endpoint)
        except TimeoutError:
            fault = Fault("timeout", f"no complete reply within {seconds:g} s", "unsure")
            return Attempt("", "", None, time.monotonic() - began, fault)
        except _TooLarge as exc:
            return Attempt("", "", None, time.monotonic() - began, Fault("malformed", str(exc), "unsure"))
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            return Attempt("", "", None, time.monotonic() - began, fault_of(exc, secrets))
        took = time.monotonic() - began
        if status != 200:
            text = _text_of(raw)
            fault = fault_of_status(status, text, headers, secrets)
            if status == 400 and call.by_compressor and _refused_parameters(text):
                fault = replace(fault, unproven=True)
            return Attempt("", "", None, took, fault, headers)
        return read_reply(call, raw, took, headers, secrets)

    async def _post(self, call: ModelCall, endpoint: Endpoint) -> tuple[int, dict[str, str], bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if endpoint.key is not None:
            headers["Authorization"] = f"Bearer {endpoint.key.reveal()}"
        body = json.dumps(self.body(call, endpoint)).encode()
        return await self.request("POST", f"{endpoint.api_base}/chat/completions", headers, body)

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        data: bytes | aiohttp.FormData | None = None,
        *,
        largest: int = _LARGEST_REPLY,
    ) -> tuple[int, dict[str, str], bytes]:
        """Make one request and return the status, the headers and the body of its reply."""
        # No redirects: the key and the session's text go to the configured address only.
        proxy = self._proxy(url)
        async with self._open().request(
            method, url, data=data, headers=headers, allow_redirects=False, proxy=proxy
        ) as response:
            parts, size = [], 0
            async for part in response.content.iter_chunked(2**16):
                parts.append(part)
                size += len(part)
                if size > largest:
                    raise _TooLarge(f"the reply is larger than {largest:,} bytes")
            return response.status, {name.lower(): value for name, value in response.headers.items()}, b"".join(parts)

    def body(self, call: ModelCall, endpoint: Endpoint) -> dict[str, Any]:
        messages = mark_prefix(call.messages, endpoint.model, call.shared)
        refused = self.known(endpoint)
        body: dict[str, Any] = {
            **call.params,
            "model": endpoint.model,
            "messages": messages,
            _NEWER_LIMIT if _LIMIT in refused else _LIMIT: call.max_tokens,
            "stream": False,
        }
        if call.temperature is not None and _TEMPERATURE not in refused:
            body[_TEMPERATURE] = call.temperature
        if call.response_schema is not None:
            schema = {"name": "reply", "schema": call.response_schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        return body

    def learn(self, endpoint: Endpoint, raw: bytes) -> bool:
        """Note what a model does not take: its limit by the older name, or a temperature; true where it says so."""
        found = _refused_parameters(_text_of(raw))
        which = (endpoint.api_base or "", endpoint.model)
        self._refused[which] = self._refused.get(which, frozenset()) | found
        return bool(found)

    def known(self, endpoint: Endpoint) -> frozenset[str]:
        """Return the parameters that a model is known not to take."""
        return self._refused.get((endpoint.api_base or "", endpoint.model), frozenset())


def _text_of(raw: bytes) -> str:
    return raw[:_READ_OF_AN_ERROR].decode("utf-8", "replace")


def _refused_parameters(text: str) -> frozenset[str]:
    """Return which of the parameters that can be left out an error is about: by its fields, and else by its words."""
    for error in error_fields(text):
        about, code = error.get("param"), error.get("code")
        if code in _UNSUPPORTED and about in _REFUSALS:
            return frozenset({str(about)})
        if isinstance(about, str) and about and about not in _REFUSALS:
            return frozenset()
    return frozenset(name for name, words in _REFUSALS.items() if words.search(text))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _http_proxy(named: str | None) -> str | None:
    """Return a proxy's URL; people write it without http://, as curl takes it."""
    if not named:
        return None
    url = named if "://" in named else f"http://{named}"
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        said = "is named as the proxy in the environment, and is not the address of an HTTP proxy"
        raise aiohttp.InvalidUrlClientError(url.rpartition("@")[2], said)
    return url


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _usage(reply: Mapping[str, Any], call: ModelCall, text: str) -> Usage:
    usage = _mapping(reply.get("usage"))
    details = _mapping(usage.get("prompt_tokens_details"))
    written = usage.get("cache_creation_input_tokens") or details.get("cache_creation_tokens")
    return usage_told(
        usage.get("prompt_tokens"), usage.get("completion_tokens"), details.get("cached_tokens"), written, call, text
    )


def _calls(message: Mapping[str, Any]) -> tuple[ReplyCall, ...]:
    """Read the tool calls of a reply."""
    found = message.get("tool_calls")
    functions = [
        (_mapping(item).get("id"), _mapping(_mapping(item).get("function")))
        for item in (found if isinstance(found, list) else ())
    ]
    return tuple(
        ReplyCall(str(known or ""), str(function["name"]), str(function.get("arguments") or "{}"))
        for known, function in functions
        if "name" in function
    )


def _told_of(error: Mapping[str, Any], took: float, headers: Mapping[str, str], secrets: Iterable[str]) -> Attempt:
    """Read an error that came with status 200: its own status is the code."""
    code = error.get("code")
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    fault = fault_of_status(status, json.dumps({"error": error}), headers, secrets)
    return Attempt("", "", None, took, fault, headers)


def read_reply(call: ModelCall, raw: bytes, took: float, headers: Mapping[str, str], secrets: Iterable[str]) -> Attempt:
    """Read the reply to a call, which came with status 200."""
    try:
        reply = json.loads(raw)
    except (ValueError, RecursionError):
        fault = Fault("malformed", "the reply is not JSON; is this the base URL of an OpenAI-compatible API?", "unsure")
        return Attempt("", "", None, took, fault, headers)
    if not isinstance(reply, dict):
        return Attempt("", "", None, took, Fault("malformed", "the reply is no JSON object", "unsure"), headers)
    if reply.get("error") and not reply.get("choices"):
        error = reply["error"]
        return _told_of(error if isinstance(error, dict) else {"message": str(error)}, took, headers, secrets)
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Attempt("", "", None, took, Fault("malformed", "the reply holds no choice", "unsure"), headers)
    choice = choices[0]
    if broken := _mapping(choice.get("error")):  # a router's word for a provider that failed half-way
        return _told_of(broken, took, headers, secrets)
    message = _mapping(choice.get("message"))
    content, finish = message.get("content"), choice.get("finish_reason")
    text = content if isinstance(content, str) else ""
    delivered = Delivered(
        content,
        finish if isinstance(finish, str) else None,
        message.get("refusal"),
        bool(message.get("tool_calls")),
        bool(message.get("reasoning_content") or message.get("reasoning")),
    )
    return Attempt(
        text,
        served_by(str(reply.get("model") or "")),
        _usage(reply, call, text),
        took,
        unusable(delivered, call.max_tokens, tools_offered=bool(call.params.get("tools"))),
        headers,
        _calls(message),
    )
