"""An archive of what a compression removed, searched as an agent could: by an index, and by plain text."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from eval_core.base.messages import Message, full_text

PIECE = 1_200
"""Characters of a piece of a message."""
LOOK_UPS = 3
"""What an agent spends on one question."""
_LINES = 20
_NAMES = 8
_WORD = re.compile(r"\w{3,}")
_COMMON = frozenset((
    "the", "and", "for", "with", "that", "this", "from", "was", "were", "are", "has", "have", "not", "but", "its",
    "into",
))  # fmt: skip
_CODE = re.compile(r"[\w./#-]*(?:[_/.#\d])[\w./-]*")


def words_of(text: str) -> list[str]:
    """Return the words that a person would search for, the most telling first."""
    found = dict.fromkeys(word.lower() for word in _WORD.findall(text) if word.lower() not in _COMMON)
    return sorted(found, key=lambda word: (-len(word), word))


def _quoted(words: Iterable[str], how: str) -> str:
    return f" {how} ".join(f'"{word}"' for word in words)


class _Lines:
    """Lines of a text by the words in them; each word is looked for once, as the same ones come in many topics."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.low = [line.lower() for line in self.lines]
        self._holding: dict[str, list[int]] = {}

    def holding(self, word: str) -> list[int]:
        if word not in self._holding:
            self._holding[word] = [at for at, line in enumerate(self.low) if word in line]
        return self._holding[word]


class Archive:
    """The removed messages, cut into pieces, and the summary, which says what to search for."""

    def __init__(self, removed: Iterable[Message], summary: str = "") -> None:
        texts = [full_text(message) for message in removed]
        self.pieces = [text[at : at + PIECE] for text in texts for at in range(0, len(text), PIECE)]
        self._removed, self._summary = _Lines("\n".join(texts)), _Lines(summary)
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

    def _names(self, words: Sequence[str]) -> list[str]:
        """Return the names of code that the summary ties to a topic."""
        often = Counter(at for word in words for at in self._summary.holding(word))
        about = sorted(at for at, many in often.items() if many >= max(2, len(words) / 2))
        found = dict.fromkeys(name.strip("./-") for at in about for name in _CODE.findall(self._summary.lines[at]))
        return list(found)[:_NAMES]

    def search(self, topic: str) -> list[str]:
        """Look a topic up: by any of its words, by the names that the summary ties to it, and by all of its words."""
        words = words_of(topic)
        queries = [_quoted(words, "OR"), _quoted(self._names(words), "OR"), _quoted(words, "AND")]
        return [hit for query in queries[:LOOK_UPS] if query and (hit := self._hit(query))]

    def queries(self, topic: str) -> list[str]:
        """Return what an agent would ask a search of its own: the topic, the names tied to it, its longest words."""
        words = words_of(topic)
        return [query for query in (topic, " ".join(self._names(words)), " ".join(words[:2])) if query][:LOOK_UPS]

    def grep(self, topic: str) -> list[str]:
        """Look a topic up by plain text: as it is, then by its longest words; the first lines of each are read."""
        words = words_of(topic)
        if not words:
            return []
        lines = [self._removed.low[at] for at in self._removed.holding(words[0])]
        wanted = [topic.lower(), words[:2][-1], words[0]]
        found = [list(islice((line for line in lines if needle in line), _LINES)) for needle in wanted]
        return ["\n".join(read)[: 3 * PIECE] for read in found if read]
