"""Tables in a text: the rows below a header, each cell with the label of its column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_LONGEST, _ROWS = 600, 200
_RULE = re.compile(r"[-+=:|│┼─ \t]{3,}")
_LABEL = re.compile(r"[^\W\d][\w %()/#.'’°º&-]{0,40}|%[\w %]{1,20}")
_ALIGNED = "  "
_JOINTS = ("\t", "|", "│", ";", ",", _ALIGNED)
_CELLS = {
    "\t": re.compile(r"[^\t\n]+"),
    "|": re.compile(r"(?<=\|)[^|\n]+|^[^|\n]+(?=\|)"),
    "│": re.compile(r"(?<=│)[^│\n]+|^[^│\n]+(?=│)"),
    ",": re.compile(r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^,\n]*)(?:,|$)"),
    ";": re.compile(r"(?:\"[^\"\n]*\"|[^;\n]*)(?:;|$)"),
    _ALIGNED: re.compile(r"\S+(?: \S+)*"),
}


@dataclass(frozen=True, slots=True)
class TableCell:
    """A value in a table, where it begins in the text, and the label of its column."""

    label: str
    start: int
    text: str
    aligned: bool
    """Whether only spaces set the columns apart, so that the end of the cell is a guess."""


def rows(text: str, is_known: Callable[[str], bool]) -> Iterator[list[TableCell]]:
    """Yield the rows of every table with a column whose label is known; empty cells are left out."""
    offset = count = 0
    joint, header = "", list[tuple[int, str]]()
    for line in text.split("\n"):
        here, offset = offset, offset + len(line) + 1
        if len(line) > _LONGEST:
            header = []
            continue
        if header:
            if _RULE.fullmatch(line):
                continue
            cells = _cells(line, joint)
            if line.strip() and count < _ROWS and (joint == _ALIGNED or len(cells) == len(header)):
                count += 1
                yield _row(header, cells, joint, here)
                continue
            header = []
        if any(joint in line for joint in _JOINTS):
            joint, header = _header(line, is_known)
            count = 0


def _row(header: list[tuple[int, str]], cells: list[tuple[int, str]], joint: str, here: int) -> list[TableCell]:
    if joint != _ALIGNED:
        return [
            TableCell(label, here + at, value, aligned=False)
            for (_, label), (at, value) in zip(header, cells, strict=True)
            if value
        ]
    found = []
    for place, label in header:
        # The cell that begins nearest to the label's place, to either side.
        for at, value in cells:
            if at <= place + 3 and at + len(value) >= place - 1:
                found.append(TableCell(label, here + at, value, aligned=True))
                break
    return found


def _cells(line: str, joint: str) -> list[tuple[int, str]]:
    found = []
    for cell in _CELLS[joint].finditer(line):
        value = cell.group().rstrip(joint) if joint in (",", ";") else cell.group()
        bare = value.strip(" \ufeff\"'>*()[]")
        found.append((cell.start() + (value.index(bare) if bare else 0), bare))
        if joint in (",", ";") and cell.end() == len(line) and not cell.group().endswith(joint):
            break
    return found


def _header(line: str, is_known: Callable[[str], bool]) -> tuple[str, list[tuple[int, str]]]:
    for joint in _JOINTS:
        if joint not in line:
            continue
        cells = _cells(line, joint)
        if len(cells) < (3 if joint == _ALIGNED else 2):
            continue
        if all(_LABEL.fullmatch(label) for _, label in cells if label) and any(is_known(label) for _, label in cells):
            return joint, cells
    return "", []
