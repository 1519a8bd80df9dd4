"""The one door to a model, one for each run: the evaluator's side.

A process of its own reads what the compressor sends (`gateway_process`) and passes on checked requests over a private
socket. Key, budget, journal and retries stay here, behind `complete`; nothing of them is in that process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import eval_core
from eval_core.base.errors import UserError
from eval_core.domain.call import Completion, Draw, Failed, FailureKind, ModelCall
from eval_core.sandbox import gateway_process
from eval_core.sandbox.allowance import Allowance, MeteredCall
from eval_core.sandbox.classify import CallLog, CallRecord
from eval_core.sandbox.gateway_frames import FRAME_OVERHEAD, BadGatewayFrame, frame_of, read_gateway_frame
from eval_core.sandbox.gateway_process import BACKLOG, OUT_OF_MEMORY
from eval_core.sandbox.request import ChatRequest, GatewayLimits, Refusal, read_object, read_request

Complete = Callable[[ModelCall], Awaitable[Completion | Failed]]

SOCKET = "llm.sock"
_LOG = logging.getLogger(__name__)
_ROOT = str(Path(eval_core.__file__).parent.parent)
# Without site-packages and without an environment: what the process may import is the standard library and ours.
_START = f"import sys;sys.path.insert(0,sys.argv.pop(1));from {gateway_process.__name__} import main;main()"
_PER_MESSAGE = 300
"""What a message takes besides its text."""
_PROMPT_S = 5.0
"""In which a healthy process answers a ping, or ends when it is told to."""

# What the compressor is told: a status that its SDK understands and a sentence of ours, never the provider's words.
_ANSWERS: dict[FailureKind, tuple[int, str]] = {
    "rate_limit": (429, "the model is busy"),
    "timeout": (504, "the model did not answer in time"),
    "auth": (402, "the model cannot be used at present"),
    "payment": (402, "the model cannot be used at present"),
    "budget": (402, "the budget of this evaluation is used up"),
    "bad_request": (400, "the model refused the request"),
    "not_found": (404, "the model is not available"),
    "context_length": (400, "the request is longer than the model's context window"),
}


def _refused(number: int, refusal: Refusal) -> dict[str, Any]:
    return {
        "at": "refused", "id": number, "status": refusal.status, "message": refusal.message, "code": refusal.code,
    }  # fmt: skip


def _reply(number: int, result: Completion | Failed) -> dict[str, Any]:
    """Return what the process is told of a finished call."""
    # A provider sends these as a success with little or nothing in it, and so do we: that is what is being tested.
    if isinstance(result, Failed) and result.kind not in ("empty", "refusal", "truncated"):
        status, message = _ANSWERS.get(result.kind, (502, "the model failed"))
        code = "context_length_exceeded" if result.kind == "context_length" else "upstream_failed"
        return _refused(number, Refusal(status, message, code))
    calls = result.calls if isinstance(result, Completion) else ()
    return {
        "at": "reply", "id": number, "text": result.text, "calls": [asdict(call) for call in calls],
        "truncated": isinstance(result, Failed) and result.kind == "truncated",
        "input_tokens": result.usage.input_tokens, "output_tokens": result.usage.output_tokens,
    }  # fmt: skip


def _how_it_ended(code: int) -> str:
    if code == OUT_OF_MEMORY:
        return "ran out of memory"
    with contextlib.suppress(ValueError):
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended in the meantime, as it was asked to
        process.kill()


class Gateway:
    """Serve one run's compressor model to the child, whatever model it asks for."""

    def __init__(
        self,
        *,
        model: str,
        complete: Complete,
        draw: Draw,
        limits: GatewayLimits | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        """Serve within the limits; the allowance is what earlier attempts of the same run have left of them."""
        self.token = f"run-{secrets.token_urlsafe(32)}"
        self.log = CallLog()
        self.trouble = ""
        """What the compressor's requests did to the gateway: overloaded it, or ended its process."""
        self._model, self._complete, self._draw = model, complete, draw
        self._limits = limits or GatewayLimits()
        self._allowance = allowance or Allowance(self._limits)
        self._records: dict[int, CallRecord] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._pings: dict[int, asyncio.Future[None]] = {}
        self._writer: asyncio.StreamWriter | None = None

    @asynccontextmanager
    async def serve(self, folder: Path) -> AsyncIterator[Path]:
        """Listen in the folder until the block ends; a call still under way then stays unfinished."""
        path = folder / SOCKET
        async with contextlib.AsyncExitStack() as stack:
            ours, theirs = socket.socketpair()
            stack.callback(ours.close)
            with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(str(path))
                path.chmod(0o666)  # the child has another uid; the token is what opens the door
                listener.listen(BACKLOG)
                process = await self._spawn(listener, theirs)
            stack.push_async_callback(self._end, process)
            reader, self._writer = await asyncio.open_connection(sock=ours)
            hello = {"token": self.token, "model": self._model, "limits": asdict(self._limits)}
            self._send(hello)
            listening = asyncio.create_task(self._listen(reader, process))
            stack.push_async_callback(self._stop, listening)
            yield path

    async def _spawn(self, listener: socket.socket, control: socket.socket) -> asyncio.subprocess.Process:
        null = asyncio.subprocess.DEVNULL
        numbers = (listener.fileno(), control.fileno())
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", "-B", "-c", _START, _ROOT, *map(str, numbers), pass_fds=numbers,
                stdin=null, stdout=null, stderr=null, env={}, cwd="/", start_new_session=True,
            )  # fmt: skip
        except OSError as exc:
            raise UserError(f"the gateway's process could not be started: {exc.strerror}") from None

    async def _end(self, process: asyncio.subprocess.Process) -> None:
        if self._writer is not None:
            self._writer.close()
        try:
            async with asyncio.timeout(_PROMPT_S):
                await process.wait()
        except TimeoutError:
            _kill(process)
            await process.wait()

    async def _stop(self, listening: asyncio.Task[None]) -> None:
        tasks = [listening, *self._asking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _send(self, frame: dict[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frame_of(frame))

    async def _listen(self, reader: asyncio.StreamReader, process: asyncio.subprocess.Process) -> None:
        """Take the process's frames until it ends, which it should not do before us."""
        # A request grows a little when it is serialized again, and most where it is all tiny messages.
        most = 4 * self._limits.request_bytes + FRAME_OVERHEAD
        try:
            while (frame := await read_gateway_frame(reader, most)) is not None:
                self._heard(frame)
            code = await process.wait()
            self._in_trouble(f"the gateway's process {_how_it_ended(code)}")
        except (BadGatewayFrame, KeyError, TypeError, ValueError) as exc:
            self._in_trouble(f"the gateway's process broke its protocol: {exc}")
            _kill(process)
        finally:
            for ping in self._pings.values():
                if not ping.done():
                    ping.set_result(None)

    def _in_trouble(self, why: str) -> None:
        self.trouble = self.trouble or why

    def _heard(self, frame: dict[str, Any]) -> None:
        at = frame["at"]
        if at == "overload":
            self._in_trouble(f"the compressor overloaded the gateway: {str(frame['why'])[:200]}")
        elif at == "pong":
            if (ping := self._pings.pop(frame["number"], None)) is not None and not ping.done():
                ping.set_result(None)
        elif at == "arrived":
            if frame["id"] != len(self._records) + 1:
                raise BadGatewayFrame("requests are not numbered in order")
            self._records[frame["id"]] = self.log.start()
        elif at == "refused":
            self.log.refuse(self._records[frame["id"]], str(frame["why"])[:500])
        elif at == "left":
            self._records[frame["id"]].left = True
        elif at == "ask":
            record = self._records[frame["id"]]
            record.dropped = tuple(str(name)[:60] for name in frame["dropped"])
            self._ask(frame["id"], record, frame["body"])
        else:
            raise BadGatewayFrame(f"{str(at)[:40]!r} is not a kind of frame")

    def _ask(self, number: int, record: CallRecord, body: Any) -> None:
        """Check once more what is asked, and make the call."""
        try:
            data = json.dumps(body).encode("ascii")
            asked = read_request(read_object(data))
            size = len(data) + _PER_MESSAGE * len(asked.messages)
            self._allowance.admit(size)
        except Refusal as refusal:
            self.log.refuse(record, refusal.message)
            self._send(_refused(number, refusal))
            return
        record.messages, record.settings = asked.messages, asked.settings
        named = () if self._model.endswith(asked.requested_model) else (asked.requested_model,)
        record.asked_for = (*named, *(f"{name} {value}" for name, value in asked.effort.items()))
        record.own_limit = asked.max_tokens is not None and asked.max_tokens <= self._limits.output_tokens
        record.own_stop = bool(asked.params.get("stop"))
        self.log.forward(record)
        task = asyncio.create_task(self._complete_call(number, record, asked, size))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _complete_call(self, number: int, record: CallRecord, asked: ChatRequest, size: int) -> None:
        passage = MeteredCall(record, self._allowance)
        call = ModelCall(
            role="compressor",
            model=self._model,
            messages=asked.messages,
            max_tokens=min(asked.max_tokens or self._limits.output_tokens, self._limits.output_tokens),
            draw=self._draw,
            temperature=asked.temperature,
            response_schema=asked.response_schema,
            params=asked.params,
            # What is asked before any reply is the same in every run of the fixture.
            shared=0 if any(other.ended is not None for other in self.log.records) else len(asked.messages),
            passage=passage,
        )
        if not await passage.again(call):
            self._allowance.give_back(size)
            refusal = self._allowance.no_tokens()
            if self._allowance.tokens.unsure_tokens:
                # Replies that never came count at their worst case, and it was not the compressor who kept them back.
                self.log.finish(record, Failed("budget", retryable=False, message=refusal.message))
            else:
                self.log.refuse(record, refusal.message)
            self._send(_refused(number, refusal))
            return
        result: Completion | Failed
        try:
            result = await self._complete(call)
        except asyncio.CancelledError:
            passage.ended(None)
            raise  # the run is over; the record stays unfinished
        except Exception as exc:
            _LOG.exception("the model client raised")
            result = Failed("unknown", retryable=False, message=f"{type(exc).__name__} in the model client")
        if isinstance(result, Completion):
            record.queued_seconds = time.monotonic() - record.forwarded_at - result.seconds
        passage.ended(result)
        self.log.finish(record, result)
        self._send(_reply(number, result))

    async def finish(self, seconds: float) -> None:
        """Wait until everything that was sent is in the log, and for calls under way until the time is over.

        Who is to blame for a call is decided by what the provider did with it, so it is worth waiting for. It is paid
        for in any case.
        """
        number = len(self._pings) + 1
        if self._writer is not None and not self.trouble:
            heard = self._pings[number] = asyncio.get_running_loop().create_future()
            self._send({"at": "ping", "number": number})
            await asyncio.wait([heard], timeout=_PROMPT_S)
        if self._asking:
            await asyncio.wait(self._asking, timeout=max(0.0, seconds))
