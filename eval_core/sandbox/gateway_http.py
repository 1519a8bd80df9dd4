"""HTTP/1.1 as a hostile client speaks it: every size is known before anything is read, every wait ends.

A server written for this: of the general ones none limits the time in which a request must arrive, and all bring an
interpreter's worth of imports into a process that should hold nothing. Standard library only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl

from eval_core.sandbox.request import Refusal

MAX_HEADERS = 100


@dataclass(frozen=True)
class WireAnswer:
    """The body of a response."""

    content_type: str
    body: bytes


class ClientGone(Exception):
    """The client closed the connection in the middle of a request."""


@dataclass(frozen=True)
class RequestHead:
    """The first line and the headers, names in lower case."""

    method: str
    path: str
    query: str
    headers: dict[str, str]

    @property
    def length(self) -> int | None:
        """The announced size of the body; None where it comes in chunks."""
        coding = self.headers.get("transfer-encoding", "").lower()
        if coding == "chunked" and "content-length" not in self.headers:
            return None
        text = self.headers.get("content-length", "0")
        # Two lengths, or a length and a coding, are how requests are smuggled; nobody honest sends them.
        if coding or not text.isascii() or not text.isdigit() or len(text) > 12:
            raise Refusal(400, "the length of the body is not given in one plain way", "invalid_request")
        return int(text)

    @property
    def token(self) -> str:
        """The credential, wherever the SDKs of the providers put it."""
        given = self.headers.get("authorization", "")
        if given[:7].lower() == "bearer ":
            return given[7:].strip()
        named = self.headers.get("x-api-key") or self.headers.get("x-goog-api-key")
        return named or dict(parse_qsl(self.query)).get("key", "")

    @property
    def keep_alive(self) -> bool:
        """Whether another request may follow on this connection."""
        return self.headers.get("connection", "").lower() != "close"


def _parse_head(data: bytes) -> RequestHead:
    bad = Refusal(400, "this is not an HTTP/1.1 request", "invalid_request")
    lines = data.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        raise bad
    fields = [line for line in lines[1:] if line]
    if len(fields) > MAX_HEADERS:
        raise Refusal(431, f"more than {MAX_HEADERS} headers", "too_large")
    headers: dict[str, str] = {}
    for line in fields:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip() or (name == "content-length" and name in headers):
            raise bad
        headers[name] = value.strip()
    path, _, query = words[1].partition("?")
    if query.count("&") >= MAX_HEADERS:
        raise Refusal(431, f"more than {MAX_HEADERS} values in the address", "too_large")
    return RequestHead(words[0], path, query, headers)


async def read_head(reader: asyncio.StreamReader, first: bytes) -> RequestHead:
    """Read from after the first byte up to the empty line; the reader's own limit is the limit of the size."""
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        raise ClientGone from None
    except asyncio.LimitOverrunError:
        raise Refusal(431, "the headers are too long", "too_large") from None
    except OSError:
        raise ClientGone from None
    return _parse_head((first + data[:-4]).lstrip(b"\r\n"))


async def _chunks(reader: asyncio.StreamReader, take: Callable[[int], None]) -> bytes:
    body = bytearray()
    while True:
        line = (await reader.readuntil(b"\r\n"))[:-2].partition(b";")[0].strip()
        if not line or len(line) > 8 or line.strip(b"0123456789abcdefABCDEF"):
            raise Refusal(400, "the body is not in chunks as announced", "invalid_request")
        size = int(line, 16)
        take(size)
        if size:
            body += await reader.readexactly(size)
        if await reader.readexactly(2) != b"\r\n":
            raise Refusal(400, "the body is not in chunks as announced", "invalid_request")
        if not size:
            return bytes(body)


async def read_body(reader: asyncio.StreamReader, head: RequestHead, take: Callable[[int], None]) -> bytes:
    """Read the body; `take` is told each size before it is read, and raises Refusal where there is no room."""
    length = head.length
    try:
        if length is None:
            return await _chunks(reader, take)
        take(length)
        return await reader.readexactly(length)
    except (asyncio.IncompleteReadError, OSError):
        raise ClientGone from None
    except asyncio.LimitOverrunError:
        raise Refusal(400, "the body is not in chunks as announced", "invalid_request") from None


def response(status: int, answer: WireAnswer, *, keep_alive: bool) -> bytes:
    headers = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        f"Connection: {'keep-alive' if keep_alive else 'close'}",
    ]
    if status >= 400:
        # The client behind the gateway has retried already; without the header SDKs would do so for minutes.
        headers.append("x-should-retry: false")
    return "\r\n".join([*headers, "", ""]).encode("ascii") + answer.body
