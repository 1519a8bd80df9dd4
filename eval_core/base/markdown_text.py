"""Text that others wrote, made inert for markdown: shown as it is, and acting on nothing."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["plain", "prose", "unlinked"]

_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~!]|(?<=:)/(?=/))")
_INVISIBLE = re.compile("[\u0000-\u0008\u000b-\u001f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ud800-\udfff\ufeff]")
_WEB = re.compile(r"(?<=www)\.", re.IGNORECASE)
# Only one tick on either side: of a longer run, markdown may make something else than a span that ends here.
_CODE = re.compile(r"((?<!`)`[^`\n]+`(?!`))")
# Look-alikes, because an escaped sign is the sign again in the rendered text, which is where GitHub looks for mentions
# and addresses. Without the sign, "mailto:" and "xmpp:" are no addresses either.
_AT = "\uff20"
_DOT = "\u2024"


def plain(text: str, most: int = 400) -> str:
    """Return text from a session or a model as text: on one line, with nothing that markdown would act on."""
    return _escaped(" ".join(text.split())[:most])


def prose(text: str) -> str:
    """Return a sentence with code spans, of which nothing else acts; for what was our own, if nobody forged it."""
    return _outside_code(" ".join(text.split()), _escaped)


def unlinked(text: str) -> str:
    """Return markdown without mentions and without the addresses that GitHub turns into links."""
    return _outside_code(text, _unlinked)


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    pieces = _CODE.split(text)
    pieces[::2] = [change(piece) for piece in pieces[::2]]
    return "".join(pieces)


def _escaped(text: str) -> str:
    return _unlinked(_SPECIAL.sub(r"\\\1", _INVISIBLE.sub("", text)))


def _unlinked(text: str) -> str:
    return _WEB.sub(_DOT, text).replace("@", _AT)
