"""An archive of what a compression removed, searched as an agent could: by an index, and by plain text."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from eval_core.base.messages import Message, full_text

PIECE = 1_200
"""Characters of a piece of a message."""
LOOK_UPS = 3
"""What an agent spends on one question."""
_LINES = 20
_WORD = re.compile(r"\w{3,}")
_COMMON = frozenset(
    (
        "the",
        "and",
        "for",
        "with",
        "that",
        "this",
        "from",
        "was",
        "were",
        "are",
        "has",
        "have",
        "not",
        "but",
        "its",
        "into",
    )
)
_CODE = re.compile(r"[\w./#-]*(?:[_/.#\d])[\w./-]*")


def words_of(text: str) -> list[str]:
    """Return the words that a person would search for, the most telling first."""
    found = dict.fromkeys(word.lower() for word in _WORD.findall(text) if word.lower() not in _COMMON)
    return sorted(found, key=lambda word: (-len(word), word))


def _quoted(words: Iterable[str], how: str) -> str:
    return f" {how} ".join(f'"{word}"' for word in words)


class Archive:
    """The removed messages, cut into pieces."""

    def __init__(self, removed: Iterable[Message]) -> None:
        texts = [full_text(message) for message in removed]
        self.pieces = [text[at : at + PIECE] for text in texts for at in range(0, len(text), PIECE)]
        self._low = "\n".join(texts).lower()
        self._index = sqlite3.connect(":memory:")
        self._index.execute("CREATE VIRTUAL TABLE pieces USING fts5(text, tokenize = \"unicode61 tokenchars '_'\")")
        self._index.executemany(
            "INSERT INTO pieces(rowid, text) VALUES (?, ?)", list(enumerate(self.pieces, 1)) if self.pieces else []
        )

    def close(self) -> None:
        """Free the index."""
        self._index.close()

    def _hit(self, query: str) -> str:
        """Return the best piece with its two neighbours."""
        row = self._index.execute(
            "SELECT rowid FROM pieces WHERE pieces MATCH ? ORDER BY rank LIMIT 1", (query,)
        ).fetchone()
        return "" if row is None else "\n".join(self.pieces[max(0, row[0] - 2) : row[0] + 1])

    def search(self, topic: str, summary: Sequence[str]) -> list[str]:
        """Look a topic up: by any of its words, by the names that the summary ties to it, and by all of its words."""
        words = words_of(topic)
        if not words:
            return []
        about = [line for line in summary if sum(word in line.lower() for word in words) >= max(2, len(words) / 2)]
        names = list(dict.fromkeys(name.strip("./-") for line in about for name in _CODE.findall(line)))[:8]
        queries = [_quoted(words, "OR"), _quoted(names, "OR"), _quoted(words, "AND")]
        return [hit for query in queries[:LOOK_UPS] if query and (hit := self._hit(query))]

    def _lines(self, needles: Sequence[str]) -> Iterator[str]:
        """Yield the lines that hold all of some texts."""
        at = self._low.find(needles[0]) if needles else -1
        while at >= 0:
            end = self._low.find("\n", at) % (len(self._low) + 1)
            start = self._low.rfind("\n", 0, at) + 1
            if all(needle in self._low[start:end] for needle in needles):
                yield self._low[start:end]
            at = self._low.find(needles[0], end)

    def grep(self, topic: str) -> list[str]:
        """Look a topic up by plain text: as it is, then by its longest words; the first lines of each are read."""
        words = words_of(topic)
        wanted = [[topic.lower()], words[:2], words[:1]]
        found = ["\n".join(islice(self._lines(needles), _LINES))[: 3 * PIECE] for needles in wanted[:LOOK_UPS]]
        return [text for text in found if text]
