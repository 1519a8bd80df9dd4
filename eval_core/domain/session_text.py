"""Session text: which parts of a request come from the session, in whatever form the compressor wrote them out.

A compressor cuts the session, labels its turns, writes them as JSON or sends them as messages. Its words stay in
their order, so a run of words that the session holds too is the session's, and all else is the compressor's own.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from eval_core.base.messages import Message, full_text, said

_RUN = 4
"""Words in a row that a session is known by."""
_CERTAIN = 8
"""So many in a row are the session's in any line; fewer only where they are most of it, for they may be chance."""
_OWN = 4
"""A shorter piece within a line of the session is a label or punctuation, not an instruction."""
_WORD = re.compile(r"[\u3040-\u9fff\uac00-\ud7af]|[^\W\u3040-\u9fff\uac00-\ud7af]+")
_ESCAPE = re.compile(r"\\+[nrtbf\"/]?")
_UNICODE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_JSON_NAME = re.compile(r"\\*\"[\w-]*\\*\"\s*:?")
_LABEL = re.compile(r"^\W*[\w .#-]{1,40}[\]:>)]+\s*")
_QUOTES = "\"'{}[],:"


@dataclass(frozen=True)
class Part:
    """A stretch of one line."""

    text: str
    line: int
    session: bool


@dataclass(frozen=True)
class _Word:
    text: str
    start: int
    end: int


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def _plain(line: str) -> str:
    """Blank out what is JSON in a line: names and single tokens of that say nothing by themselves."""
    plain = _JSON_NAME.sub(_blank, line) if line.count('":') > 1 else line
    return _ESCAPE.sub(_blank, plain) if "\\" in plain else plain


def _words(line: str) -> list[_Word]:
    return [_Word(found[0], found.start(), found.end()) for found in _WORD.finditer(_plain(line))]


def _runs(words: Sequence[str]) -> Iterator[int]:
    return map(hash, zip(*(words[at:] for at in range(_RUN)), strict=False))


class SessionText:
    """The texts that a request may repeat: the session, and what was made of it on the way."""

    def __init__(self, messages: Iterable[Message] = (), others: SessionText | None = None) -> None:
        """Know the texts of some messages and those of another, which stays as it is."""
        self._others = [*others._all] if others is not None else []
        self._known: set[int] = set()
        self._short: set[tuple[str, ...]] = set()
        self.add(text for message in messages for text in (*said(message).texts, full_text(message)))

    @property
    def _all(self) -> list[SessionText]:
        return [*self._others, self]

    def add(self, texts: Iterable[str]) -> None:
        """Know these texts as well."""
        for text in texts:
            words: list[str] = []
            headings = bytearray()
            for line in text.split("\n"):
                found = _WORD.findall(_plain(line))
                words += found
                headings += bytes([line.startswith("#")]) * len(found)
            # Empty sections of a summary, one below the other, are the list of headings that it was asked for.
            telling = (sum(headings[at : at + _RUN]) < _RUN for at in range(len(words)))
            self._known.update(itertools.compress(_runs(words), telling))
            if 0 < len(words) < _RUN:
                self._short.add(tuple(words))

    def parts(self, text: str) -> list[Part]:
        """Take a text apart, line by line, into what comes from the session and what does not."""
        lines = _UNICODE.sub(lambda found: chr(int(found[1], 16)), text).split("\n")
        found = [_words(line) for line in lines]
        # Runs go on over the ends of lines: a short line is known by its neighbours.
        known = self._covered([word.text for words in found for word in words])
        parts: list[Part] = []
        at = 0
        for number, (line, words) in enumerate(zip(lines, found, strict=True)):
            if words:
                parts += self._line(line, number, words, known[at : at + len(words)])
            at += len(words)
        return parts

    def _covered(self, words: Sequence[str]) -> bytearray:
        known = bytearray(len(words))
        every = [text._known for text in self._all]
        for at, run in enumerate(_runs(words)):
            if any(run in some for some in every):
                known[at : at + _RUN] = b"\1" * _RUN
        return known

    def _line(self, line: str, number: int, words: Sequence[_Word], known: bytearray) -> Iterator[Part]:
        """Return the parts of one line; words that are known by chance stay with those around them."""
        if self._is_short(line, words):
            known = bytearray(b"\1" * len(words))
        mostly = 2 * sum(known) >= len(words)
        stretches = _stretches(known)
        own = [(first, last, bool(ours) and (mostly or last - first >= _CERTAIN)) for first, last, ours in stretches]
        joined: list[tuple[int, int, bool]] = []
        for first, last, ours in own:
            ours = ours or (mostly and last - first < _OWN)
            if joined and joined[-1][2] == ours:
                joined[-1] = (joined[-1][0], last, ours)
            else:
                joined.append((first, last, ours))
        for at, (first, last, ours) in enumerate(joined):
            if not ours:
                start = words[first].start if at else 0
                end = words[last - 1].end if at + 1 < len(joined) else len(line)
                yield Part(line[start:end].strip(), number, session=False)
                continue
            inner = [place for place in range(first, last) if known[place]] or [first]
            yield Part(_cut(line, words[inner[0]].start, words[inner[-1]].end), number, session=True)

    def _is_short(self, line: str, words: Sequence[_Word]) -> bool:
        """Tell whether a line is a whole message of a word or three, with or without a label."""
        if self._holds(tuple(word.text for word in words)):
            return True
        label = _LABEL.match(line)
        rest = tuple(word.text for word in words if label is not None and word.start >= label.end())
        return self._holds(rest)

    def _holds(self, words: tuple[str, ...]) -> bool:
        return 0 < len(words) < _RUN and any(words in text._short for text in self._all)


def _stretches(known: bytearray) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for at, ours in enumerate(known):
        if found and found[-1][2] == ours:
            found[-1] = (found[-1][0], at + 1, ours)
        else:
            found.append((at, at + 1, ours))
    return found


def _cut(line: str, start: int, end: int) -> str:
    """Return a stretch with the signs that touch it: a path begins with its slash."""
    while start > 0 and not line[start - 1].isspace() and not line[start - 1].isalnum():
        start -= 1
    while end < len(line) and not line[end].isspace() and not line[end].isalnum():
        end += 1
    return line[start:end].strip(_QUOTES)
