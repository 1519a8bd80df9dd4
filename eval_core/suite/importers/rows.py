"""Session logs read piece by piece: JSON lines, or the messages array of one large JSON document."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from eval_core.base.errors import UserError
from eval_core.base.files import open_file

MESSAGE_KEYS = ("messages", "conversation", "history")
_LINE_LIMIT = 32 * 1024 * 1024
_CHUNK = 64 * 1024
_DECODER = json.JSONDecoder()


class LogRow(NamedTuple):
    """One JSON value of a log and where it stands ("line 7" or "messages[3]")."""

    value: Any
    where: str


class Rows:
    """An iterator over the rows of a log that remembers what it had to leave out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.document: dict[str, Any] = {}  # scalar fields beside the messages of a JSON document

    def __iter__(self) -> Iterator[LogRow]:
        try:
            with io.TextIOWrapper(open_file(self.path), encoding="utf-8") as stream:
                first = _first_line(stream)
                stream.seek(0)
                if _is_document(first):
                    yield from self._document(stream)
                else:
                    yield from self._lines(stream)
        except FileNotFoundError:
            raise UserError(f"{self.path}: no such file") from None
        except IsADirectoryError:
            raise UserError(f"{self.path}: is a folder; give one session log") from None
        except UnicodeDecodeError as exc:
            raise UserError(
                f"{self.path}: not UTF-8 text (byte {exc.start} of a block); is this a session log?"
            ) from None
        except OSError as exc:
            raise UserError(f"{self.path}: cannot be read: {exc.strerror}") from None

    def _lines(self, stream: IO[str]) -> Iterator[LogRow]:
        broken: tuple[int, str] | None = None
        number = 0
        while line := stream.readline(_LINE_LIMIT):
            number += 1
            if len(line) == _LINE_LIMIT:
                raise UserError(f"{self.path}: line {number}: longer than {_LINE_LIMIT // 2**20} MB; no message is")
            if not line.strip():
                continue
            if broken is not None:
                raise self._broken(*broken)
            try:
                value = json.loads(line.lstrip("\ufeff"))
            except (ValueError, RecursionError) as exc:
                # Only the last line may be broken: its writer was stopped in the middle of it.
                broken = number, str(exc)
                continue
            yield LogRow(value, f"line {number}")
        if broken is not None:
            if number == 1 or broken[0] == 1:
                raise self._broken(*broken)
            self.notes.append(f"the last line ({broken[0]}) was cut off in the log and is dropped")

    def _broken(self, line: int, why: str) -> UserError:
        known = (
            "; a session log of OpenAI, Hermes, Claude Code or Codex has a JSON object on each line"
            if line == 1
            else ""
        )
        return UserError(f"{self.path}: line {line}: broken JSON: {why}{known}")

    def _document(self, stream: IO[str]) -> Iterator[LogRow]:
        reader = _DocumentReader(self.path, stream)
        if reader.peek() == "[":
            yield from reader.items("messages")
            return
        reader.take("{")
        while reader.peek() != "}":
            key = reader.value("a key")
            reader.take(":")
            if key in MESSAGE_KEYS and reader.peek() == "[":
                yield from reader.items(str(key))
            else:
                value = reader.value(repr(key))
                if isinstance(value, str | int | float):
                    self.document[str(key)] = value
            if reader.peek() == ",":
                reader.take(",")
        reader.take("}")


def _first_line(stream: IO[str]) -> str:
    while line := stream.readline(_LINE_LIMIT):
        if line.strip():
            return line.lstrip("\ufeff").strip()
    return ""


def _is_document(first: str) -> bool:
    """Tell one JSON document from JSON lines by the first line that is not empty."""
    if first.startswith("["):
        return True
    if not first.startswith("{"):
        return False
    try:
        value = json.loads(first)
    except (ValueError, RecursionError):
        # A pretty-printed document, or JSON lines whose first line is broken: only the former opens and stops.
        return first in ("{", "{ ") or len(first) >= _LINE_LIMIT - 2 or first.endswith((",", "[", "{"))
    return isinstance(value, dict) and any(isinstance(value.get(key), list) for key in MESSAGE_KEYS)


class _DocumentReader:
    """A cursor over a JSON document that holds one value in memory at a time."""

    def __init__(self, path: Path, stream: IO[str]) -> None:
        self._path, self._stream, self._buffer, self._at, self._line, self._ended = path, stream, "", 0, 1, False

    def _more(self, size: int = _CHUNK) -> bool:
        chunk = self._stream.read(size)
        self._ended = not chunk
        self._line += self._buffer.count("\n", 0, self._at)
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        return not self._ended

    def _fail(self, wanted: str) -> UserError:
        line = self._line + self._buffer.count("\n", 0, self._at)
        return UserError(f"{self._path}: line {line}: broken JSON: {wanted} was expected")

    def peek(self) -> str:
        """Return the next character that is not white space, without taking it."""
        while True:
            while self._at < len(self._buffer):
                if self._buffer[self._at] not in " \t\r\n\ufeff":
                    return self._buffer[self._at]
                self._at += 1
            if not self._more():
                raise self._fail("more text")

    def take(self, char: str) -> None:
        """Step over one punctuation character."""
        if self.peek() != char:
            raise self._fail(repr(char))
        self._at += 1

    def value(self, what: str) -> Any:
        """Decode and step over the next value."""
        self.peek()
        size = _CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except (ValueError, RecursionError):
                value, end = None, -1
            # A number at the edge of the buffer may go on in the next block.
            if end >= 0 and (end < len(self._buffer) or self._ended):
                self._at = end
                return value
            if self._ended or len(self._buffer) > _LINE_LIMIT:
                raise self._fail(what)
            self._more(size)
            size *= 2

    def items(self, name: str) -> Iterator[LogRow]:
        """Yield the items of the array that starts here."""
        self.take("[")
        index = 0
        while self.peek() != "]":
            yield LogRow(self.value(f"{name}[{index}]"), f"{name}[{index}]")
            index += 1
            if self.peek() == ",":
                self.take(",")
        self.take("]")


def open_rows(path: Path) -> Rows:
    """Return the rows of a log; nothing is read before they are iterated."""
    return Rows(path)
