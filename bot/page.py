"""A comment as a page: near enough to how GitHub shows it to be looked at."""

from __future__ import annotations

from html import escape

__all__ = ["comment_page"]

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d1d9e0, #3d444d); --soft: light-dark(#f6f8fa, #151b23);
  --text: light-dark(#1f2328, #f0f6fc); --page: light-dark(#fff, #0d1117); --link: light-dark(#0969da, #4493f8); }
body { margin: 2rem auto; max-width: 58rem; padding: 0 1rem; background: var(--page); color: var(--text);
  font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
article { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; }
header { background: var(--soft); border-bottom: 1px solid var(--line); padding: .5rem 1rem; }
main { padding: 1rem; overflow-wrap: break-word; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 0 0 1rem; }
th, td { border: 1px solid var(--line); padding: 6px 13px; }
tr:nth-child(2n) { background: var(--soft); }
code { background: var(--soft); border-radius: 6px; padding: .2em .4em; font-size: 85%; }
pre { background: var(--soft); border-radius: 6px; padding: 1rem; overflow: auto; } pre code { padding: 0; }
blockquote { border-left: .25em solid var(--line); margin: 0 0 1rem; padding: 0 1em; }
details { margin: 0 0 .6rem; } summary { cursor: pointer; } a { color: var(--link); }
"""


def comment_page(body: str, title: str) -> str:
    """Render a comment's markdown. The body is ours: what came from others is neutral in it already."""
    from markdown_it import MarkdownIt

    text = MarkdownIt("commonmark").enable("table").render(body)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>{escape(title)}</h1><article><header><b>github-actions</b> bot commented</header>"
        f"<main>{text}</main></article></html>\n"
    )
