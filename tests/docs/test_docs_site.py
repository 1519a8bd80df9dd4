"""The built site: every link inside it leads to a page, a file or a heading that is there."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import small


class _Page(HTMLParser):
    """The links of a page, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {value for value in (found.get("id"), found.get("name")) if value}
        self.links += [value for value in (found.get("href"), found.get("src")) if value]


def _is_dead(link: str, page: Path, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    there = there / "index.html" if there.is_dir() else there
    if not there.is_file():
        return True
    return bool(parts.fragment) and there in pages and unquote(parts.fragment) not in pages[there].places


def test_no_link_of_the_built_site_is_dead(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="pip install -e '.[docs]' builds the site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=small.REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    root = (tmp_path / "site").resolve()
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in root.rglob("*.html") if path.name != "404.html"}
    links = [(page, link) for page, found in pages.items() for link in found.links]
    assert len(links) > 1_000
    assert [(str(page.relative_to(root)), link) for page, link in links if _is_dead(link, page, pages)] == []
