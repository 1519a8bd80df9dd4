"""Messages that the pages quote are those that the program prints."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
import small

# Pydantic's own words, which reach the user as they are.
_FOREIGN = ("Extra inputs are not permitted",)
_GAP = re.compile(r"\.\.\.|\bN\b|\bNAME\b|\bcompress\b|builtin:anchored|[0-9]+")


def _pieces(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "\0" for part in child.values)  # type: ignore[misc]
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child.value


@cache
def _program() -> str:
    """Return every text that the program's source contains."""
    texts = []
    for folder in ("bot", "eval_core"):
        for path in sorted((small.REPOSITORY / folder).rglob("*.py")):
            texts += _pieces(ast.parse(path.read_text(encoding="utf-8")))
        texts += [path.read_text(encoding="utf-8") for path in (small.REPOSITORY / folder).rglob("*.j2")]
    return re.sub(r"\s+", " ", "\n".join(texts)).casefold()


def _first_cells(page: str, after: str = "") -> Iterator[str]:
    text = (small.REPOSITORY / page).read_text(encoding="utf-8")
    for line in text[text.index(after) :].splitlines():
        cell = line.split("|")[1].strip() if line.startswith("| ") else ""
        if cell and not cell.startswith(("message", "the comment says")):
            yield cell


def _quoted() -> Iterator[str]:
    for cell in _first_cells("docs/troubleshooting.md"):
        yield from re.findall(r"`([^`]+)`", cell)
    yield from _first_cells("docs/bot.md", "## Refusals")


@pytest.mark.parametrize("message", sorted(set(_quoted())))
def test_a_quoted_message_is_one_that_the_program_prints(message: str) -> None:
    if message in _FOREIGN:
        return
    parts = [part.strip(" :`").casefold() for part in _GAP.split(message)]
    assert any(parts), message
    missing = [part for part in parts if part and part not in _program()]
    assert not missing, f"{message!r}: {missing} is in no text of the program"
