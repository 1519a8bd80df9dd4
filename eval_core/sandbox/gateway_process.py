"""The gateway's own process: a stranger's connections on one side, checked frames to the evaluator on the other.

It holds the run's token and the name of the model, and nothing else: no key, no environment, no file, none of the
evaluator's memory. Whatever a compressor does to it, it does to this process. Standard library only, since the
interpreter is started without site-packages.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import hmac
import json
import os
import resource
import socket
import sys
from dataclasses import dataclass
from typing import Any

from eval_core.domain.call import ReplyCall
from eval_core.sandbox.gateway_frames import BadGatewayFrame, frame_of, read_gateway_frame
from eval_core.sandbox.gateway_http import ClientGone, RequestHead, WireAnswer, read_body, read_head, response
from eval_core.sandbox.protocol.dialect import ChatBody, Dialect, ModelReply, event_bytes
from eval_core.sandbox.protocol.openai_chat import OpenAIChat
from eval_core.sandbox.protocol.route import SERVED, counted, model_list, route
from eval_core.sandbox.request import GatewayLimits, Refusal, read_object, read_request

BACKLOG = 16
"""Connections that wait to be accepted; beyond it a client waits in its own `connect`."""
MEMORY = 1024 * 1024 * 1024
OUT_OF_MEMORY = 71
FAULT = 70
NOBODY = 65534
_REPLY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class _Failure:
    """The evaluator's no to a call."""

    refusal: Refusal


def _json(value: dict[str, Any]) -> WireAnswer:
    return WireAnswer("application/json", json.dumps(value).encode("ascii"))


def _refuse(dialect: Dialect, refusal: Refusal) -> WireAnswer:
    return _json(dialect.error(refusal.status, refusal.message, refusal.code))


def _answer(dialect: Dialect, reply: ModelReply, given: ChatBody) -> WireAnswer:
    """Write the reply as it was asked for; a stream is its events one after another."""
    if not given.stream:
        return _json(dialect.answer(reply))
    return WireAnswer("text/event-stream", b"".join(event_bytes(event) for event in dialect.events(reply, given)))


class _Room:
    """The bytes that all requests together may hold."""

    def __init__(self, most: int) -> None:
        self.left = most


class _Hold:
    """The part of the room that one request holds, from its first byte to its answer."""

    def __init__(self, room: _Room, most: int) -> None:
        self._room, self._most, self._held = room, most, 0

    def take(self, size: int) -> None:
        if self._held + size > self._most:
            raise Refusal(413, f"the body is longer than {self._most:,} bytes", "too_large")
        if size > self._room.left:
            raise Refusal(503, "the requests under way hold all the memory there is for them", "too_large")
        self._held += size
        self._room.left -= size

    def release(self) -> None:
        self._room.left += self._held
        self._held = 0


class _Server:
    """All connections of one run."""

    def __init__(self, token: str, model: str, limits: GatewayLimits, control: asyncio.StreamWriter) -> None:
        self._token, self._model, self._limits, self._control = token.encode(), model, limits, control
        self._room = _Room(limits.bytes_at_once)
        self._open = self._arrivals = self._ids = self._asked = 0
        self._told: set[str] = set()
        self._waiting: dict[int, asyncio.Future[ModelReply | _Failure]] = {}
        self._closed = False

    def _tell(self, at: str, **values: Any) -> None:
        self._control.write(frame_of({"at": at, **values}))

    def _overload(self, why: str) -> None:
        if why not in self._told:
            self._told.add(why)
            self._tell("overload", why=why)

    def _arrived(self) -> bool:
        """Count a connection or a request; false when there were too many."""
        self._arrivals += 1
        if self._arrivals > self._limits.arrivals:
            self._closed = True
            self._overload(f"more than {self._limits.arrivals:,} connections and requests in one run")
        return not self._closed

    def heard(self, frame: dict[str, Any]) -> None:
        """Take one frame of the evaluator's."""
        if frame.get("at") == "ping":
            self._tell("pong", number=frame["number"])
            return
        waiting = self._waiting.pop(frame["id"], None)
        if waiting is None or waiting.done():
            return
        if frame["at"] == "refused":
            waiting.set_result(_Failure(Refusal(frame["status"], frame["message"], frame["code"])))
        else:
            calls = tuple(ReplyCall(**call) for call in frame["calls"])
            tokens = {name: frame[name] for name in ("input_tokens", "output_tokens")}
            reply = ModelReply(self._model, frame["text"], calls, truncated=frame["truncated"], **tokens)
            waiting.set_result(reply)

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection to its end."""
        if not self._arrived():
            writer.transport.abort()
            return
        if self._open >= self._limits.connections:
            self._overload(f"more than {self._limits.connections} connections at once")
            writer.transport.abort()
            return
        self._open += 1
        try:
            while await self._exchange(reader, writer):
                pass
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except (ClientGone, OSError, TimeoutError):
            pass
        except Exception:
            # A fault of ours that a request has found: to go on as if nothing were would leave a call without an end.
            os._exit(FAULT)
        finally:
            self._open -= 1
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serve one request; return whether another may follow."""
        async with asyncio.timeout(self._limits.idle_seconds):
            first = await reader.read(1)
        if not first or not self._arrived():
            return False
        hold = _Hold(self._room, self._limits.request_bytes)
        keep = False
        try:
            try:
                async with asyncio.timeout(self._limits.request_seconds):
                    head = await read_head(reader, first)
            except TimeoutError:
                raise Refusal(408, "the request did not arrive in time", "timeout") from None
            status, answer, keep = await self._serve(head, reader, writer, hold)
        except Refusal as refusal:
            status, answer, keep = refusal.status, _refuse(OpenAIChat(), refusal), False
        finally:
            hold.release()
        async with asyncio.timeout(self._limits.request_seconds):
            writer.write(response(status, answer, keep_alive=keep))
            await writer.drain()
            if not keep:
                await self._linger(reader, writer)
        return keep

    async def _linger(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Let the client read the answer before the connection goes: closing over unread bytes would reset it."""
        writer.write_eof()
        unread = self._limits.request_bytes
        while unread > 0 and (part := await reader.read(65536)):
            unread -= len(part)

    async def _serve(
        self, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hold: _Hold
    ) -> tuple[int, WireAnswer, bool]:
        """Find out what is asked for, and answer in its protocol."""
        found = route(head.method, head.path)
        if found is not None and found.kind == "hello":
            # Some clients look whether anybody is there, without a token.
            return 200, _json({"status": "ok"}), head.keep_alive and head.length == 0
        dialect = found.dialect if found else OpenAIChat()
        try:
            if not hmac.compare_digest(head.token.encode("utf-8", "replace"), self._token):
                raise Refusal(401, "the token is not this run's", "invalid_api_key")
            if found is None:
                raise Refusal(404, f"{head.method[:10]} {head.path[:100]}: {SERVED}", "not_found")
            if found.kind == "models":
                return 200, _json(model_list(self._model, found.model)), head.keep_alive and head.length == 0
            if found.kind == "count":
                body = await self._read(head, reader, writer, hold)
                return 200, _json(counted(dialect.to_chat(read_object(body)), dialect)), head.keep_alive
        except Refusal as refusal:
            return refusal.status, _refuse(dialect, refusal), False
        return await self._call(dialect, head, reader, writer, hold)

    async def _call(
        self,
        dialect: Dialect,
        head: RequestHead,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        hold: _Hold,
    ) -> tuple[int, WireAnswer, bool]:
        """Read a model call, pass it on, wait for its answer."""
        self._ids += 1
        number = self._ids
        self._tell("arrived", id=number)
        try:
            if self._asked >= self._limits.requests:
                # The evaluator would say so too, after it has read the request.
                raise Refusal(429, f"the run's {self._limits.requests} requests are used up", "too_many_requests")
            given = dialect.to_chat(read_object(await self._read(head, reader, writer, hold)))
            asked = read_request(given.body)
        except Refusal as refusal:
            self._tell("refused", id=number, why=refusal.message)
            return refusal.status, _refuse(dialect, refusal), False
        except ClientGone:
            self._tell("refused", id=number, why="the connection was closed before the request was complete")
            raise
        self._asked += 1
        self._tell("ask", id=number, dropped=[*given.dropped, *asked.dropped], body=asked.body())
        await self._control.drain()
        result, alone = await self._result(number, reader)
        if isinstance(result, _Failure):
            return result.refusal.status, _refuse(dialect, result.refusal), head.keep_alive and alone
        return 200, _answer(dialect, result, given), head.keep_alive and alone

    async def _read(
        self, head: RequestHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hold: _Hold
    ) -> bytes:
        if head.headers.get("expect", "").lower() == "100-continue":
            hold.take(head.length or 0)
            hold.release()
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            async with asyncio.timeout(self._limits.request_seconds):
                return await read_body(reader, head, hold.take)
        except TimeoutError:
            seconds = self._limits.request_seconds
            raise Refusal(408, f"the request was not complete after {seconds:g} s", "timeout") from None

    async def _result(self, number: int, reader: asyncio.StreamReader) -> tuple[ModelReply | _Failure, bool]:
        """Wait for the evaluator, and tell it when the client does not wait any longer."""
        answer = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        more = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((answer, more), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                with contextlib.suppress(OSError):
                    if not more.result():
                        self._tell("left", id=number)
            return await answer, not more.done()
        finally:
            if not more.done():
                more.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError):
                    await more


async def _serve(listener: socket.socket, control: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=control)
    hello = await read_gateway_frame(reader, _REPLY_BYTES)
    if hello is None:
        return
    limits = GatewayLimits(**hello["limits"])
    descriptors = limits.connections + BACKLOG + 32
    for kind, value in (("CORE", 0), ("FSIZE", 0), ("NOFILE", descriptors), ("AS", MEMORY)):
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (value, value))
    server = _Server(hello["token"], hello["model"], limits, writer)
    # Python 3.13 looks at the socket's path, to remove it in the end. Nobody may not.
    keep: dict[str, Any] = {"cleanup_socket": False} if sys.version_info >= (3, 13) else {}
    async with await asyncio.start_unix_server(
        server.connection, sock=listener, limit=limits.header_bytes, backlog=BACKLOG, **keep
    ):
        with contextlib.suppress(BadGatewayFrame):
            while (frame := await read_gateway_frame(reader, _REPLY_BYTES)) is not None:
                server.heard(frame)


def main() -> None:
    """Serve until the evaluator closes its end; the end is sudden, for nothing here is worth keeping."""
    listener, control = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    # Nobody may not read the standard library where that lies in a home: what is needed of it has to be here by now.
    for name in ("ascii", "latin-1", "utf-8"):
        codecs.lookup(name)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    code = 0
    try:
        asyncio.run(_serve(listener, control))
    except MemoryError:
        code = OUT_OF_MEMORY
    except BaseException:
        code = FAULT
    os._exit(code)
