"""The journal: every finished call of a run, one JSON line each, so that nothing is paid twice or forgotten.

Lines, by `at`:
  sent  a request is about to leave; `usd` and `tokens` are the most it can cost
  done  it was answered: the result, replayed on resume
  paid  it was answered with something unusable: its usage counts, its text is not replayed
  free  it failed and cost nothing
  lost  it failed and may have been charged: counted at its worst case, as is a `sent` that nothing follows

Older versions could submit calls to a provider's batch API, and wrote `batch`, `queued`, `submitted`, `collected` and
`ended` lines. A call that was queued and never finished is paid for elsewhere: such a journal is not continued.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from eval_core.base.errors import UserError
from eval_core.base.files import digest, open_file
from eval_core.base.numbers import counted
from eval_core.base.sealing import Damaged, SealingKey
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.call import Completion, Failed, ModelCall, ReplyCall, Usage

_log = logging.getLogger(__name__)


def call_key(call: ModelCall) -> str:
    """Return what identifies a call: everything that the provider sees, and which draw it is.

    Of a private call only `Journal.key` may be written down: who guesses the question could confirm it by this digest.
    """
    front = {"front": asdict(call.front)} if call.front else {}  # absent from the keys of older journals
    draw = {"draw": call.draw.fields} if call.draw.ambiguous else {}
    return digest(
        {
            **front,
            **draw,
            "model": call.model,
            "messages": list(call.messages),
            "max_tokens": call.max_tokens,
            "temperature": call.temperature,
            "schema": call.response_schema,
            "params": call.params,
            "run": call.draw.number,
        }
    )


@dataclass(frozen=True)
class Spent:
    """What the journal knows to be spent, and what may have been."""

    usd: float = 0.0
    tokens: int = 0
    unsure_usd: float = 0.0
    unsure_tokens: int = 0
    calls: int = 0


_OF_BATCHES = ("batch", "queued", "submitted", "collected", "ended")
_KINDS = ("sent", "done", "paid", "free", "lost", *_OF_BATCHES)
_USAGE = {"input_tokens": int, "cached_tokens": int, "output_tokens": int, "written_tokens": int, "cost_usd": float}
_MARK = re.compile(r"(?:[0-9a-f]{2}){1,64}")
_LARGEST = 1e12
"""Of a number of tokens or dollars: more is damage, and would upset every sum that it gets into."""


def _is_amount(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        return False
    return 0 <= value <= _LARGEST


def _line_problem(line: Any) -> str | None:
    """Return what is wrong with a line's fields, for the kinds that are read again."""
    if not isinstance(line, dict) or line.get("at") not in _KINDS:
        return "not a line of a journal"
    key = line.get("key")
    if not isinstance(key, str) or not _MARK.fullmatch(key):
        return "key is not a digest"
    if line["at"] == "sent" and not (_is_amount(line.get("usd"), float) and _is_amount(line.get("tokens"), int)):
        return "usd and tokens are not amounts"
    problem = _usage_problem(line.get("usage")) if line["at"] in ("done", "paid") else None
    return problem or (_reply_problem(line) if line["at"] == "done" else None)


def _usage_problem(usage: Any) -> str | None:
    if not isinstance(usage, dict) or not set(usage) <= set(_USAGE):
        return "usage is not what a call uses"
    for name, value in usage.items():
        if not _is_amount(value, _USAGE[name]) and not (name == "cost_usd" and value is None):
            return f"usage.{name} is not an amount"
    return None


def _reply_problem(line: dict[str, Any]) -> str | None:
    if not isinstance(line.get("text"), str) or not isinstance(line.get("served"), str):
        return "text and served are not text"
    if not _is_amount(line.get("seconds"), float):
        return "seconds is not an amount"
    if not isinstance(line.get("sealed", False), bool):
        return "sealed is neither true nor false"
    calls = line.get("calls", [])
    if not isinstance(calls, list) or not all(map(_is_reply_call, calls)):
        return "calls are not calls of tools"
    return None


def _is_reply_call(call: Any) -> bool:
    named = {item.name for item in fields(ReplyCall)}
    return isinstance(call, dict) and set(call) == named and all(isinstance(value, str) for value in call.values())


def _each_word(calls: Iterable[ReplyCall], change: Callable[[str], str]) -> tuple[ReplyCall, ...]:
    """Seal or open calls of tools: their ids and names are a model's words as well."""
    return tuple(ReplyCall(**{name: change(value) for name, value in asdict(call).items()}) for call in calls)


def parse_line(raw: bytes) -> dict[str, Any]:
    """Return one line of a journal, checked, or raise BadJson: a file can be damaged in any way."""
    line = parse_json(raw)
    if problem := _line_problem(line):
        raise BadJson(problem)
    checked: dict[str, Any] = line
    return checked


class Journal:
    """An append-only file that one process holds at a time; only an index of it is kept in memory."""

    def __init__(self, path: Path, sealing: SealingKey | None = None) -> None:
        """Open, lock and read the file; a line torn by a crash is cut off. Private replies are sealed with the key."""
        self.path = path
        self._sealing = sealing
        self.broken_lines = 0
        self._index: dict[bytes, tuple[int, int]] = {}
        self._wasted: dict[bytes, Usage] = {}
        self._open: dict[bytes, tuple[float, int]] = {}
        self._queued: set[bytes] = set()
        self._usd, self._tokens, self._unsure_usd, self._unsure_tokens, self._calls = 0.0, 0, 0.0, 0, 0
        self._unsynced: list[asyncio.Future[None]] = []
        self._syncer: asyncio.Task[None] | None = None
        # A thread of its own: calls wait for it, and the shared ones may be busy reading texts.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                open_file(path).close()  # a pipe in its place would be written to, and never read back
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as exc:
            raise UserError(f"{path}: cannot be opened: {exc.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise UserError(
                f"{path.parent}: another run is writing to this label; wait for it, or choose another --label"
            ) from None
        self._end = self._load()
        if self.broken_lines:
            _log.warning(
                "%s: %s skipped; what was paid for there may be paid again",
                path,
                counted(self.broken_lines, "damaged line"),
            )
        if self._queued:
            self.close()
            raise UserError(
                f"{path}: {counted(len(self._queued), 'call')} of this run went to a provider's batch API, which was "
                "removed; complete the run with the version that submitted them, or start again with another --label"
            )

    def __enter__(self) -> Self:
        """Use the journal; leaving gives up the lock."""
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Release the file and its lock."""
        self._thread.shutdown()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def key(self, call: ModelCall) -> str:
        """Return what a call is filed under; for a private one, a digest that only the holder of the key can make."""
        plain = call_key(call)
        if not call.private:
            return plain
        if self._sealing is None:
            raise ValueError("a private call and no key to file it under")
        marks = self._sealing.marks(bytes.fromhex(plain))
        # Under an older key, or plainly as older versions did: what was paid for is found all the same.
        return next((mark for mark in (*marks, plain) if bytes.fromhex(mark) in self._index), marks[0])

    def __contains__(self, key: str) -> bool:
        """Tell whether a call is finished."""
        return bytes.fromhex(key) in self._index

    @property
    def finished(self) -> int:
        """The number of finished calls."""
        return len(self._index)

    @property
    def spent(self) -> Spent:
        """The spend of every process that ever wrote to this journal."""
        unsure_usd = self._unsure_usd + sum(usd for usd, _ in self._open.values())
        unsure_tokens = self._unsure_tokens + sum(tokens for _, tokens in self._open.values())
        return Spent(self._usd, self._tokens, unsure_usd, unsure_tokens, self._calls)

    def lookup(self, key: str) -> Completion | None:
        """Return the finished call, with the usage of its unusable attempts included."""
        where = self._index.get(bytes.fromhex(key))
        if where is None:
            return None
        offset, length = where
        line = parse_line(os.pread(self._file, length, offset))
        usage = Usage(**line["usage"]).plus(self.wasted(key))
        text = line["text"]
        calls = tuple(ReplyCall(**call) for call in line.get("calls", ()))
        if line.get("sealed"):
            if self._sealing is None:
                return None
            try:
                text, calls = self._sealing.open(text), _each_word(calls, self._sealing.open)
            except Damaged:
                return None  # sealed with a key that is gone: asked again
        return Completion(text, usage, line["served"], line["seconds"], cached=True, calls=calls)

    def wasted(self, key: str) -> Usage:
        """Return what unusable replies to this call have used so far."""
        return self._wasted.get(bytes.fromhex(key), Usage())

    def sent(self, key: str, usd: float, tokens: int) -> None:
        """Note that a request is about to leave. Not synced: surviving a crash of the process is enough here."""
        self._write({"at": "sent", "key": key, "usd": usd, "tokens": tokens})

    async def done(
        self,
        key: str,
        call: ModelCall,
        text: str,
        served: str,
        usage: Usage,
        seconds: float,
        calls: tuple[ReplyCall, ...] = (),
    ) -> None:
        """Keep an answer for good."""
        body = {"role": call.role, "model": call.model, **call.draw.fields, "served": served}
        usage_line: dict[str, Any] = {"usage": {**vars(usage)}, "seconds": round(seconds, 3), "text": text}
        if call.private:
            if self._sealing is None:
                raise ValueError("a private reply and no key to seal it with")
            usage_line |= {"text": self._sealing.seal(text), "sealed": True}
            calls = _each_word(calls, self._sealing.seal)
        asked = {"calls": [asdict(item) for item in calls]} if calls else {}
        await self._append({"at": "done", "key": key, **body, **usage_line, **asked})

    async def failed(self, key: str, call: ModelCall, failed: Failed, charge: str) -> None:
        """Keep why a call failed, and what it cost."""
        at = {"yes": "paid", "no": "free", "unsure": "lost"}[charge]
        reason = "private" if call.private else failed.message
        body = {"role": call.role, "model": call.model, **call.draw.fields, "kind": failed.kind, "reason": reason}
        await self._append(
            {"at": at, "key": key, **body, **({"usage": {**vars(failed.usage)}} if at == "paid" else {})}
        )

    async def _append(self, line: dict[str, Any]) -> None:
        """Write a line at once, so that a killed process loses nothing that was answered; then sync the disk."""
        self._write(line)
        await self._synced()

    async def _synced(self) -> None:
        synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._unsynced.append(synced)
        if self._syncer is None or self._syncer.done():
            self._syncer = asyncio.create_task(self._sync())
        await asyncio.shield(synced)

    async def _sync(self) -> None:
        """Sync for all lines that have gathered: it takes as long for one as for twenty."""
        loop = asyncio.get_running_loop()
        while self._unsynced:
            batch, self._unsynced = self._unsynced, []
            try:
                await loop.run_in_executor(self._thread, os.fsync, self._file)
            except OSError as exc:
                for synced in batch:
                    synced.set_exception(self._unwritable(exc))
                continue
            for synced in batch:
                synced.set_result(None)

    async def drain(self) -> None:
        """Wait until every line is on disk."""
        if self._syncer is not None:
            await asyncio.gather(self._syncer, return_exceptions=True)

    def _write(self, line: dict[str, Any]) -> None:
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        began = self._end
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as exc:
            with suppress(OSError):
                os.ftruncate(self._file, began)  # no half line before the next one
            raise self._unwritable(exc) from None
        self._end += len(data)
        self._note(line, began, len(data))

    def _unwritable(self, exc: OSError) -> UserError:
        return UserError(f"{self.path}: cannot be written: {exc.strerror}; what was paid so far is kept")

    def _note(self, line: dict[str, Any], offset: int, length: int) -> None:
        key = bytes.fromhex(line["key"])
        at = line["at"]
        if at in _OF_BATCHES:
            if at == "queued":
                self._queued.add(key)
            return
        self._queued.discard(key)
        usd, tokens = self._open.pop(key, (0.0, 0))
        if at == "sent":
            self._unsure_usd += usd  # an earlier request of this call never came back
            self._unsure_tokens += tokens
            self._open[key] = (float(line["usd"]), int(line["tokens"]))
        elif at == "lost":
            self._unsure_usd += usd
            self._unsure_tokens += tokens
        elif at in ("done", "paid"):
            usage = Usage(**line["usage"])
            self._usd += usage.cost_usd or 0.0
            self._tokens += usage.tokens
            self._calls += 1
            if at == "done":
                self._index[key] = (offset, length)
            else:
                self._wasted[key] = self._wasted.get(key, Usage()).plus(usage)

    def _load(self) -> int:
        """Index the file and return the offset at which whole lines end."""
        end = 0
        with os.fdopen(os.dup(self._file), "rb") as stream:
            for raw in stream:
                if not raw.endswith(b"\n"):
                    break
                try:
                    self._note(parse_line(raw), end, len(raw))
                except BadJson:
                    self.broken_lines += 1  # a bad block in the middle costs its own line only
                end += len(raw)
        os.ftruncate(self._file, end)
        return end
