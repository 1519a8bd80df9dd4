"""A page of the documentation as data: its blocks of code, links and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import small
from markdown_it import MarkdownIt
from markdown_it.token import Token

__all__ = ["PAGES", "Block", "anchors", "blocks", "links"]

PAGES = sorted(
    path.relative_to(small.REPOSITORY).as_posix()
    for path in (
        *small.REPOSITORY.glob("*.md"),
        *small.REPOSITORY.glob("docs/**/*.md"),
        small.REPOSITORY / "fixtures" / "README.md",
    )
)
_NOTE = re.compile(r"<!-- (?:not run: (?P<reason>\S.*?)|exits (?P<code>\d))\s*-->")


@dataclass(frozen=True)
class Block:
    """One block of code and what the comment above it says."""

    language: str
    text: str
    line: int
    skipped: str | None = None
    """Why it is not run."""
    exits: int = 0


def _tokens(page: str) -> list[Token]:
    parser = MarkdownIt("commonmark").enable("table")
    return parser.parse((small.REPOSITORY / page).read_text(encoding="utf-8"))


def blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    note = None
    for token in _tokens(page):
        if token.type == "fence":
            line = (token.map or [0])[0] + 1
            reason = note["reason"] if note else None
            code = int(note["code"] or 0) if note else 0
            yield Block(token.info.strip(), token.content, line, reason, code)
        note = _NOTE.search(token.content) if token.type == "html_block" else None


def links(page: str) -> Iterator[str]:
    """Yield where the links and pictures of a page lead to."""
    for token in _tokens(page):
        for child in token.children or ():
            target = child.attrGet("href") if child.type == "link_open" else None
            target = child.attrGet("src") if child.type == "image" else target
            if target is not None:
                yield str(target)


def anchors(page: str) -> set[str]:
    """Return the names under which the headings of a page can be linked to."""
    tokens = _tokens(page)
    titles = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
