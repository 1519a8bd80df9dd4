"""The journal: every finished call of a run, one JSON line each, so that nothing is paid twice or forgotten.

Lines, by `at`:
  sent  a request is about to leave; `usd` and `tokens` are the most it can cost
  done  it was answered: the result, replayed on resume
  paid  it was answered with something unusable: its usage counts, its text is not replayed
  free  it failed and cost nothing
  lost  it failed and may have been charged: counted at its worst case, as is a `sent` that nothing follows

Of calls that wait in a provider's batch; the key of a batch is a mark of our own, by which the provider can be asked:
  batch      a batch is about to be submitted
  queued     a call is part of it; counted at its worst case until one of the lines above follows
  submitted  the provider took the batch, under this id
  collected  the provider's reply to a queued call, as it came: read when the call is made again
  ended      everything of the batch is collected, or never will be
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from eval_core.base.errors import UserError
from eval_core.base.files import digest
from eval_core.base.numbers import counted
from eval_core.base.sealing import Damaged, SealingKey
from eval_core.base.strict_json import BadJson, parse_json
from eval_core.domain.call import Completion, Failed, ModelCall, ReplyCall, Usage

__all__ = ["Collected", "Journal", "OpenBatch", "Spent", "call_key", "parse_line"]

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


@dataclass(frozen=True)
class OpenBatch:
    """A batch whose replies are still to be collected."""

    mark: str
    """Our own name for it, written down before it is submitted."""
    model: str
    since: int
    """When it was about to be submitted, in seconds since 1970."""
    keys: frozenset[str] = field(default_factory=frozenset)
    """The calls that have no reply yet."""
    id: str | None = None
    """The provider's name for it; None where the process ended before it was known."""
    private: bool = False
    """Whether private probes are among its calls, so that nothing the provider says of it may be repeated."""


@dataclass(frozen=True)
class Collected:
    """What a batch brought for one call."""

    status: int
    body: str


_KINDS = (
    "sent", "done", "paid", "free", "lost", "batch", "queued", "submitted", "collected", "ended",
)  # fmt: skip
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
    if line["at"] in ("sent", "queued") and not (
        _is_amount(line.get("usd"), float) and _is_amount(line.get("tokens"), int)
    ):
        return "usd and tokens are not amounts"
    if line["at"] in ("done", "paid"):
        usage = line.get("usage")
        if not isinstance(usage, dict) or not set(usage) <= set(_USAGE):
            return "usage is not what a call uses"
        for name, value in usage.items():
            if not _is_amount(value, _USAGE[name]) and not (name == "cost_usd" and value is None):
                return f"usage.{name} is not an amount"
    if line["at"] == "done":
        if not isinstance(line.get("text"), str) or not isinstance(line.get("served"), str):
            return "text and served are not text"
        if not _is_amount(line.get("seconds"), float):
            return "seconds is not an amount"
        if not isinstance(line.get("sealed", False), bool):
            return "sealed is neither true nor false"
        calls = line.get("calls", [])
        if not isinstance(calls, list) or not all(map(_is_reply_call, calls)):
            return "calls are not calls of tools"
    return _batch_problem(line)


def _is_reply_call(call: Any) -> bool:
    named = {item.name for item in fields(ReplyCall)}
    return isinstance(call, dict) and set(call) == named and all(isinstance(value, str) for value in call.values())


def _each_word(calls: Iterable[ReplyCall], change: Callable[[str], str]) -> tuple[ReplyCall, ...]:
    """Seal or open calls of tools: their ids and names are a model's words as well."""
    return tuple(ReplyCall(**{name: change(value) for name, value in asdict(call).items()}) for call in calls)


def _batch_problem(line: dict[str, Any]) -> str | None:
    texts: dict[str, tuple[str, ...]] = {
        "batch": ("model",), "queued": ("batch",), "submitted": ("id",), "collected": ("body",),
    }  # fmt: skip
    for name in texts.get(line["at"], ()):
        if not isinstance(line.get(name), str):
            return f"{name} is not text"
    if line["at"] == "queued" and not _MARK.fullmatch(line["batch"]):
        return "batch is not a mark"
    for kind, name in (("batch", "since"), ("collected", "status")):
        if line["at"] == kind and not _is_amount(line.get(name), int):
            return f"{name} is not a whole number"
    for name in ("sealed", "private"):
        if not isinstance(line.get(name, False), bool):
            return f"{name} is neither true nor false"
    return None


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
        self._batches: dict[bytes, OpenBatch] = {}
        self._queued: dict[bytes, tuple[bytes, bool]] = {}
        self._collected: dict[bytes, tuple[int, int]] = {}
        self._usd, self._tokens, self._unsure_usd, self._unsure_tokens, self._calls = 0.0, 0, 0.0, 0, 0
        self._unsynced: list[asyncio.Future[None]] = []
        self._syncer: asyncio.Task[None] | None = None
        # A thread of its own: calls wait for it, and the shared ones may be busy reading texts.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
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

    def __enter__(self) -> Self:
        """Use the journal; leaving gives up the lock."""
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        """Close."""
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
        known = (self._index, self._collected, self._queued)
        found = (mark for mark in (*marks, plain) if any(bytes.fromhex(mark) in index for index in known))
        return next(found, marks[0])

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

    @property
    def open_batches(self) -> list[OpenBatch]:
        """The batches whose replies are still to be collected, in the order of their submission."""
        keys: dict[bytes, list[str]] = {mark: [] for mark in self._batches}
        for key, (mark, _) in self._queued.items():
            if mark in keys:
                keys[mark].append(key.hex())
        return [replace(batch, keys=frozenset(keys[mark])) for mark, batch in self._batches.items()]

    def collected(self, key: str) -> tuple[Collected, float, int] | None:
        """Return the reply that a batch brought for a call that is not finished, and what was set aside for it."""
        where = self._collected.get(bytes.fromhex(key))
        if where is None:
            return None
        line = parse_line(os.pread(self._file, where[1], where[0]))
        body = line["body"]
        usd, tokens = self._open.get(bytes.fromhex(key), (0.0, 0))
        if line.get("sealed"):
            try:
                body = self._sealing.open(body) if self._sealing is not None else ""
            except Damaged:
                body = ""
        return Collected(line["status"], body), usd, tokens

    async def queue(self, batch: OpenBatch, calls: Mapping[str, tuple[float, int, bool]]) -> None:
        """Note that a batch is about to be submitted: for each key the most it can cost, and whether it is private."""
        self._write({"at": "batch", "key": batch.mark, "model": batch.model, "since": batch.since})
        for key, (usd, tokens, private) in calls.items():
            hidden = {"private": True} if private else {}
            self._write({"at": "queued", "key": key, "batch": batch.mark, "usd": usd, "tokens": tokens, **hidden})
        await self._synced()

    async def submitted(self, mark: str, id: str) -> None:
        """Note how the provider calls a batch."""
        await self._append({"at": "submitted", "key": mark, "id": id})

    def collect(self, key: str, reply: Collected) -> None:
        """Keep what a batch brought for a call; `ended` syncs the disk."""
        body: dict[str, Any] = {"body": reply.body}
        if self._queued.get(bytes.fromhex(key), (b"", False))[1]:
            if self._sealing is None:
                raise UserError(
                    f"{self.path}: a reply to a private probe was collected, and the key to seal it is not set; "
                    "set it as when the batch was submitted"
                )
            body = {"body": self._sealing.seal(reply.body), "sealed": True}
        self._write({"at": "collected", "key": key, "status": reply.status, **body})

    async def ended(self, batch: OpenBatch, why: str, lost: Collection[str] = ()) -> None:
        """Note that a batch is over; calls without a reply can be made again, and cost nothing unless they are lost."""
        for key in next((found.keys for found in self.open_batches if found.mark == batch.mark), ()):
            self._write({"at": "lost" if key in lost else "free", "key": key, "kind": "queued", "reason": why})
        await self._append({"at": "ended", "key": batch.mark})

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
        if at in ("batch", "submitted", "ended"):
            self._note_batch(key, line)
            return
        if at == "collected":
            self._queued.pop(key, None)
            self._collected[key] = (offset, length)
            return
        self._queued.pop(key, None)
        self._collected.pop(key, None)
        usd, tokens = self._open.pop(key, (0.0, 0))
        if at == "queued":
            mark, private = bytes.fromhex(line["batch"]), line.get("private", False)
            self._queued[key] = mark, private
            if private and mark in self._batches:
                self._batches[mark] = replace(self._batches[mark], private=True)
        if at in ("sent", "queued"):
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

    def _note_batch(self, mark: bytes, line: dict[str, Any]) -> None:
        if line["at"] == "batch":
            self._batches[mark] = OpenBatch(mark.hex(), line["model"], line["since"])
        elif line["at"] == "submitted" and mark in self._batches:
            self._batches[mark] = replace(self._batches[mark], id=line["id"])
        elif line["at"] == "ended":
            self._batches.pop(mark, None)

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
