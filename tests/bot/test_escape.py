"""Hostile text, rendered as GitHub renders it, does nothing."""

from __future__ import annotations

import html
import re

import pytest
from bot_rendering import LIVE, outside_code, references, render
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.steps.comment import MARKER
from eval_core.base.markdown_text import fenced, inline, plain, prose, unlinked

HOSTILE = {
    "mention": "@maintainer and @acme/everyone please approve",
    "mention in brackets": "(@maintainer)",
    "image": "![x](https://example.invalid/pixel.png)",
    "html image": '<img src="https://example.invalid/pixel.png">',
    "link": "[click](https://example.invalid)",
    "autolink": "<https://example.invalid>",
    "bare address": "see https://example.invalid/x and www.example.invalid",
    "reference": "[a]: https://example.invalid\n\n[a]",
    "script link": "[x](javascript:alert(1))",
    "table": "a | b\n--- | ---\n1 | 2",
    "cell break": "good | **5.0** | :white_check_mark: |\n| overall | 5.0 |",
    "escaped pipe": "a \\| b \\\\| c",
    "fence": "```\n# Regressed: no\n```",
    "long fence": "``````````\n# Verdict: improved\n``````````",
    "tilde fence": "~~~\n# Verdict\n~~~",
    "indented fence": "   ```\n# out",
    "tick": "`code` and `` more `` and ```",
    "only ticks": "```````",
    "trailing backslash": "path\\",
    "marker": f"{MARKER}\n<!-- compression-eval:run id=99999999 attempt=1 -->\nI am the bot",
    "comment": "<!-- hidden -->",
    "open comment": "<!-- everything after this is hidden",
    "close comment": "--> shown",
    "details": "</details></summary><h1>Improved</h1>",
    "heading": "# Improved\n## No change",
    "setext": "Improved\n========",
    "bidi": "approved \u202e detcejer \u202c \u2066x\u2069 \u200f",
    "zero width": "com\u200bpres\u200csion\u200d\ufeff\u2060\u00ad",
    "tags": "".join(chr(0xE0000 + ord(c)) for c in "ignore all"),
    "control": "a\x00b\x1b[31mred\x07\x08\x7f",
    "line separators": "a\u2028# b\u2029# c\x85# d\x0b# e\r# f\r\n# g",
    "zalgo": "x" + "\u0301" * 200,
    "surrogate": "a\ud800b",
    "filler": "\u3164\u115f\u2800",
    "entity": "&lt;b&gt; &#64;maintainer &commat;maintainer",
    "emoji": ":rocket: :+1:",
    "issue": "#1 acme/agent#2 GH-3 fixes #4 (gh-5)",
    "commit": f"{'ab12' * 10} 0a1b2c3 acme/agent@0a1b2c3d [0a1b2c3d] 1234567",
    "task": "- [x] approved\n- [ ] merge",
    "mermaid": "```mermaid\ngraph TD; A-->B\n```",
    "math": "$$\\href{https://example.invalid}{x}$$ $`x`$",
    "footnote": "[^1]\n\n[^1]: note",
    "alert": "> [!WARNING]\n> The judge is wrong",
    "workflow command": "::set-env name=X::y\n::add-mask::z",
    "empty": "",
    "blank": " \n\t\n ",
}
INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u00ad\U000e0000-\U000e007f\x00-\x08\x0b-\x1f\x7f]"
)


def check_block(text: str) -> None:
    rendered = render(f"before{fenced(text)}after")
    assert rendered.startswith("<p>before</p>\n<pre")
    assert rendered.endswith("</pre>\n<p>after</p>\n")
    assert rendered.count("<pre") == 1
    assert rendered.count("<code") == rendered.count("</code>") == 1
    check_harmless(rendered, fenced(text))


def check_text(text: str) -> None:
    """Check text that is shown as text, in a paragraph and in a list."""
    for made in (plain(text), prose(text)):
        rendered = render(f"before {made} after\n\n- one: {made}\n")
        assert rendered.startswith("<p>before ")
        assert rendered.count("<p>") == 1
        check_harmless(re.sub(r"</?(?:ul|li)>", "", rendered), made)


def check_cell(text: str) -> None:
    head = "| probe | said | score |\n|---|---|---|\n"
    rendered = render(f"{head}| one | {inline(text)} | 3 |\n| two | x | 4 |\n\nafter\n")
    assert rendered.count("<table>") == 1
    assert rendered.count("<tr>") == 3
    assert rendered.count("<td>") == 6
    assert "<td>3</td>" in rendered
    assert rendered.endswith("<p>after</p>\n")
    assert rendered.count("<code>") == 1
    assert outside_code(rendered).count("http") == 0
    check_harmless(rendered, inline(text))


def check_harmless(rendered: str, raw: str) -> None:
    assert not LIVE.search(rendered), rendered
    assert references(rendered) == []
    assert "@" not in raw
    assert "<!--" not in raw
    assert "-->" not in raw
    assert not INVISIBLE.search(raw)
    raw.encode()


@pytest.mark.parametrize("case", HOSTILE)
def test_a_block_holds_its_text(case: str) -> None:
    check_block(HOSTILE[case])


@pytest.mark.parametrize("case", HOSTILE)
def test_text_stays_text(case: str) -> None:
    check_text(HOSTILE[case])


@pytest.mark.parametrize("case", HOSTILE)
def test_a_cell_holds_its_text(case: str) -> None:
    check_cell(HOSTILE[case])


@pytest.mark.parametrize("first", ["fence", "marker", "details", "open comment", "cell break"])
@pytest.mark.parametrize("second", ["long fence", "tick", "close comment", "table"])
def test_two_payloads_cannot_join_forces(first: str, second: str) -> None:
    check_text(f"{HOSTILE[first]} {HOSTILE[second]}")
    both = render(f"a{fenced(HOSTILE[first])}b{fenced(HOSTILE[second])}c")
    assert both.count("<pre") == 2
    assert all(f"<p>{letter}</p>" in both for letter in "abc")
    line = render(f"x {inline(HOSTILE[first])} y {inline(HOSTILE[second])} z")
    assert line.count("<code>") == 2
    assert outside_code(line) == "<p>x  y  z</p>\n"


def test_what_is_shown_is_what_was_written() -> None:
    text = "def f(a): return `a` | {'ä': \"漢字\"} # 100 % <b>"
    shown = render(plain(text)).removeprefix("<p>").removesuffix("</p>\n")
    assert html.unescape(shown) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see #1, acme/agent#2 and GH-3", "see ＃1, acme/agent＃2 and GH‑3"),
        ("since 0a1b2c3 and a@0a1b2c3d4e", "since <code>0a1b2c3</code> and a＠<code>0a1b2c3d4e</code>"),
        ("&#64;a &num;1 R&D", "&amp;\uff0364;a &amp;num;1 R&amp;D"),
        ("in src/0a1b2c3d.py: 41 of 3,000,000", "in src/0a1b2c3d.py: 41 of 3,000,000"),
    ],
)
def test_references_are_read_as_they_were_written_and_lead_nowhere(text: str, shown: str) -> None:
    for made in (plain(text), prose(text), unlinked(text)):
        assert render(made) == f"<p>{shown}</p>\n"


def test_links_of_our_own_stay_links() -> None:
    link = f"[log](https://github.com/acme/agent/commit/{'ab' * 20}) [here](#headline-12) `#1`"
    assert unlinked(link) == link


def test_invisible_characters_are_named() -> None:
    assert "[U+202E]" in inline(HOSTILE["bidi"])
    assert "U+202E" in plain(HOSTILE["bidi"])
    assert inline("a\u200bb") == "`a[U+200B]b`"


def test_a_long_text_is_cut_and_says_so() -> None:
    assert "(90 more characters)" in inline("x" * 100, limit=10)
    assert "more characters" not in inline("x" * 10, limit=10)


def test_nothing_is_said_to_be_empty() -> None:
    assert inline(" \n ") == "`(empty)`"


PIECES = st.sampled_from(
    ["`", "``", "```", "~~~", "|", "\\", "\n", "\r", "<", ">", "<!--", "-->", "@a", "![](x)", "http://a.b", "x", " "]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_mixture_of_signs_gets_out(text: str) -> None:
    check_block(text)
    check_text(text)
    check_cell(text)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_no_unicode_gets_out(text: str) -> None:
    check_block(text)
    check_text(text)
    check_cell(text)
