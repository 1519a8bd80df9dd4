"""Annotations: the changed lines of the pull request that a loss can be traced to, beside the diff."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from bot.github.resources import ChangedFile
from eval_core.base.screen import STEERING

MOST = 10
_MOST_SAID = 5
_FEWEST_LETTERS = 8
_ONLY = "This is all that the pull request changes of what is measured."
_LONGEST = 300
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_PIECES = re.compile(r"\"{1,3}|'{1,3}|`|\\n|\$?\{[^{}]*\}")
"""Where the text of a line of code ends and code begins: quotes, line ends written out, values that are filled in."""
_WORD = re.compile(r"[^\W_]+")


class Clue(BaseModel):
    """What a changed line would have to hold to be where a loss comes from."""

    kind: Literal["name", "text"]
    """A name of which each word is in the line, as they follow; or a line of a prompt, as the model was sent it."""
    sign: Literal["-", "+"]
    """Whether the line is gone or new."""
    text: str
    says: str
    """What became of it, in a sentence."""


@dataclass(frozen=True)
class _Changed:
    path: str
    line: int
    """The line of the pull request's own version that shows it: for what is gone, the one that took its place."""
    sign: str
    text: str
    hunk: int


def annotate(clues: Sequence[Clue], files: Sequence[ChangedFile], result: str) -> tuple[dict[str, Any], ...]:
    """Return at most ten annotations for a check run: a line of the diff each, and what was lost with it.

    Where no clue fits and the whole pull request is one change in one place, it is that place.
    """
    changed = [line for file in files for line in _changed(file)]
    found: dict[tuple[str, int], dict[str, None]] = {}
    for clue in clues:
        for line in changed:
            if line.sign == clue.sign and _fits(clue, line.text):
                found.setdefault((line.path, line.line), {}).setdefault(clue.says)
    if not found and len({(line.path, line.hunk) for line in changed}) == 1 and _all_shown(files):
        found[changed[0].path, changed[0].line] = {_ONLY: None}
    return tuple(_annotation(place, list(says), result) for place, says in list(found.items())[:MOST])


def _annotation(place: tuple[str, int], says: Sequence[str], result: str) -> dict[str, Any]:
    more = [f"And {len(says) - _MOST_SAID} more."] if len(says) > _MOST_SAID else []
    message = "\n".join([*says[:_MOST_SAID], *more, f"Result: {result}"])
    return {
        "path": place[0],
        "start_line": place[1],
        "end_line": place[1],
        "annotation_level": "warning",
        "title": "Compression eval",
        "message": STEERING.sub("\ufffd", message),
    }


def _all_shown(files: Sequence[ChangedFile]) -> bool:
    """Tell whether GitHub shows all that changed; it leaves out what is large or binary."""
    return all(file.patch and file.status != "removed" for file in files)


def _changed(file: ChangedFile) -> Iterator[_Changed]:
    """Yield the changed lines of a file; one that is gone altogether has no line to show anything at."""
    if file.status == "removed":
        return
    line = hunk = 0
    rows = (file.patch or "").split("\n")
    for at, row in enumerate(rows):
        if start := _HUNK.match(row):
            line, hunk = int(start[1]), hunk + 1
        elif row.startswith("-"):
            follows = next((later[:1] for later in rows[at + 1 :] if later[:1] not in ("-", "\\")), "@")
            yield _Changed(file.path, max(1, line if follows in (" ", "+") else line - 1), "-", row[1:], hunk)
        elif row.startswith("+"):
            yield _Changed(file.path, line, "+", row[1:], hunk)
            line += 1
        elif row.startswith(" "):
            line += 1


def _fits(clue: Clue, line: str) -> bool:
    if clue.kind == "name":
        return f" {_words(clue.text)} " in f" {_words(line)} " if _words(clue.text) else False
    asked, written = _spaced(clue.text), _spaced(line)
    pieces = [_spaced(piece) for piece in _PIECES.split(line)]
    said = max(pieces, key=len)
    return (len(said) >= _FEWEST_LETTERS and said in asked) or (len(asked) >= _FEWEST_LETTERS and asked in written)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text[:_LONGEST].casefold()))


def _spaced(text: str) -> str:
    return " ".join(text.split())
