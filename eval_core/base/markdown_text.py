"""Text that others wrote, made inert for markdown: shown as it is, and acting on nothing.

The one place that knows what GitHub and markdown act on: markup, HTML, mentions, addresses, references to issues and
commits, and characters that nobody sees.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~!&]|(?<=:)/(?=/))")
_LINE_ENDS = re.compile("\r\n|[\r\u2028\u2029\x85\x0b\x0c]")
_MARKS_IN_A_ROW = 4
# Only one tick on either side: of a longer run, markdown may make something else than a span that ends here.
_CODE = re.compile(r"((?<!`)`[^`\n]+`(?!`))")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_WEB = re.compile(r"(?<=www)\.", re.IGNORECASE)
_ISSUE = re.compile(r"#(?=\d)")
_OLD_ISSUE = re.compile(r"(?<=\bgh)-(?=\d)", re.IGNORECASE)
_COMMIT = re.compile(r"(?<![\w/=.#-])[0-9a-f]{7,40}(?![\w/=-])(?!\.\w)", re.IGNORECASE)
# Look-alikes, because an escaped sign is the sign again in the rendered text, which is where GitHub looks for mentions,
# references and addresses. Without the sign, "mailto:" and "xmpp:" are no addresses either.
_AT, _NUMBER, _DOT, _HYPHEN, _TICK, _PIPE = "\uff20", "\uff03", "\u2024", "\u2011", "\u02cb", "\u2223"


def fenced(text: str, limit: int = 4_000, language: str = "text") -> str:
    """Return a code block, with the blank lines it needs, that the text cannot break out of."""
    body = _visible(_cut(text, limit))
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n\n{fence}{language}\n{body}\n{fence}\n\n"


def inline(text: str, limit: int = 200) -> str:
    """Return a code span that stays one cell of a table and one line."""
    body = " ".join(_visible(_cut(text, limit)).split()).replace("`", _TICK).replace("|", _PIPE)
    return f"`{body}`" if body else "`(empty)`"


def plain(text: str, most: int = 400) -> str:
    """Return text from a session or a model as text: on one line, with nothing that markdown would act on."""
    return _escaped(_visible(" ".join(text.split()))[:most])


def prose(text: str) -> str:
    """Return a sentence with code spans, of which nothing else acts; for what was our own, if nobody forged it."""
    return _outside_code(_visible(" ".join(text.split())), _escaped)


def unlinked(text: str) -> str:
    """Return markdown without mentions, references and the addresses that GitHub turns into links."""
    return _outside_code(text, lambda piece: _commits_in_code(_unlinked(_ENTITY.sub("&amp;", piece))))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    pieces = _CODE.split(text)
    pieces[::2] = [change(piece) for piece in pieces[::2]]
    return "".join(pieces)


def _escaped(text: str) -> str:
    return _commits_in_code(_SPECIAL.sub(r"\\\1", _unlinked(_visible(text))))


def _unlinked(text: str) -> str:
    text = _OLD_ISSUE.sub(_HYPHEN, _ISSUE.sub(_NUMBER, _WEB.sub(_DOT, text)))
    return text.replace("@", _AT)


def _commits_in_code(text: str) -> str:
    """Return text in which nothing that may be a commit's id is a link: any letter of it may be copied."""
    return _COMMIT.sub(r"`\g<0>`", text)


def _visible(text: str) -> str:
    """Return text with the characters that nobody sees named, instead of obeyed."""
    shown: list[str] = []
    marks = 0
    for char in _LINE_ENDS.sub("\n", text):
        category = unicodedata.category(char)
        if category in ("Mn", "Me"):
            # Piled-up accents paint over the lines around them; variation selectors show nothing at all.
            marks += 1
            if marks <= _MARKS_IN_A_ROW and not _selects_variant(char):
                shown.append(char)
            continue
        marks = 0
        if char not in "\n\t" and (category[0] == "C" or _blank(char)):
            # Controls, bidi overrides, zero-width and unassigned characters.
            shown.append(f"[U+{ord(char):04X}]")
        else:
            shown.append(char)
    # A comment marker or a mention must not even be found by a search in the raw text.
    return "".join(shown).replace("@", _AT).replace("<!--", "<! --").replace("-->", "-- >")


def _selects_variant(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _blank(char: str) -> bool:
    """Tell whether a letter is drawn as nothing (fillers that stand for absent jamo, the braille blank)."""
    return char in "\u115f\u1160\u3164\uffa0\u2800"
