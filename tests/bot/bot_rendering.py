"""Markdown as GitHub renders it, and what of it would act."""

from __future__ import annotations

import html
import re

import cmarkgfm
from cmarkgfm.cmark import Options

LIVE = re.compile(r"<(?!/?(?:pre|code|p|table|thead|tbody|tr|th|td)\b)[a-zA-Z!/]", re.IGNORECASE)


def render(markdown: str) -> str:
    # With raw HTML switched on, so that anything which escapes is seen.
    return str(cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE))


def outside_code(rendered: str) -> str:
    return re.sub(r"<code[^>]*>.*?</code>", "", rendered, flags=re.DOTALL)


_REFERENCE = re.compile(r"@\w|#\d|\bgh-\d|(?<![\w/=.#-])[0-9a-f]{7,40}(?![\w/=-])", re.IGNORECASE)


def references(rendered: str) -> list[str]:
    """Return what GitHub would make links or mentions of: it looks in the text, outside of code and links."""
    shown = re.sub(r"<a\b.*?</a>", "", outside_code(rendered), flags=re.DOTALL)
    return _REFERENCE.findall(html.unescape(re.sub(r"<[^>]*>", "", shown)))
