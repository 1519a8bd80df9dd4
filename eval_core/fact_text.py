"""The one form of text in which facts are looked up: what the eye reads as the same becomes the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

__all__ = ["Haystack", "normalise"]

_INVISIBLE = dict.fromkeys([0x00AD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0x2122, 0xFEFF])
_INVISIBLE.update(dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), *range(0xFE00, 0xFE10)]))
_LOOKALIKES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′ʼ", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−⁃", "-"),
        **dict.fromkeys("→⇒⟶➜➔", "->"),
        **dict.fromkeys("•◦▪", " "),
        "⁄": "/",
        "、": ",",
    }
)
_NARROW_GROUP = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")
_BACKSLASH = re.compile(r"\\\\+|\\([_*`#\"'\[\]~|<>$&nrt])|\\")
_STARS = re.compile(r"\*{2,}")
_COMMA_GROUPS = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\w,])")
_OTHER_GROUPS = re.compile(r"(?<![\w.'])\d{1,3}(?:[_']\d{3})+(?![\w'])")
_SPACE = re.compile(r"\s+")
_HEX_TOKEN = re.compile(r"(?:(?<![0-9a-z_])|(?<=-g))[0-9a-f]{7,64}(?![0-9a-z_])")
HASH_PREFIX = 7


def _slash(match: re.Match[str]) -> str:
    escaped = match.group(1)
    if escaped is None:
        return "/"
    # A file name may begin with n, r or t after a Windows separator; only broken JSON leaves these escapes behind.
    return f"/{escaped}" if escaped in "nrt" else escaped


def _unescape(match: re.Match[str]) -> str:
    escaped = match.group(1)
    return " " if escaped is not None and escaped in "nrt" else _slash(match)


def _ungroup(match: re.Match[str]) -> str:
    groups = match.group().split(",")
    # "401,403" is a list of status codes, not four hundred thousand.
    if all(len(group) == 3 and "100" <= group <= "599" for group in groups):
        return match.group()
    return "".join(groups)


def _unbold(match: re.Match[str]) -> str:
    """Take pairs of stars away where they open or close; "2**10" stays, and so does a cron field's own star."""
    text, run = match.string, match.group()
    before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
    odd = len(run) % 2 == 1
    opens = not _is_word(before) and (odd or bool(after.strip()))
    closes = not _is_word(after) and (odd or bool(before.strip()))
    return run[: len(run) % 2] if opens or closes else run


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _marks(text: str) -> str:
    """Take away the marks that only dress a text: escapes, backticks, bold, grouping of digits."""
    if "\\" in text:
        json_like = '": ' in text or '":"' in text or '\\"' in text
        text = _BACKSLASH.sub(_unescape if json_like else _slash, text)
    if "`" in text:
        text = text.replace("`", "")
    if "**" in text:
        text = _STARS.sub(_unbold, text)
    if "," in text:
        text = _COMMA_GROUPS.sub(_ungroup, text)
    if "_" in text or "'" in text:
        text = _OTHER_GROUPS.sub(lambda match: match.group().replace("_", "").replace("'", ""), text)
    return text


def normalise(text: str) -> str:
    """Return the comparable form: NFKC, plain quotes and dashes, no invisible marks or markdown, lower case."""
    plain = text.isascii()
    if not plain:
        text = _NARROW_GROUP.sub("", text.translate(_INVISIBLE))
        text = unicodedata.normalize("NFKC", text).translate(_LOOKALIKES)
    text = _SPACE.sub(" ", _marks(text.lower())).strip()
    # Taking marks away may bring a letter and its accent together.
    return text if plain else unicodedata.normalize("NFKC", text)


@dataclass(frozen=True)
class Haystack:
    """A text prepared once for many lookups."""

    source: str = field(repr=False)
    text: str

    @classmethod
    def of(cls, text: str) -> Haystack:
        """Prepare one text."""
        return cls(source=text, text=normalise(text))

    @classmethod
    def of_all(cls, texts: Iterable[str]) -> Haystack:
        """Prepare several texts as one in which no value is found across two of them."""
        parts = list(texts)
        return cls(source="\n\n".join(parts), text=" \0 ".join(map(normalise, parts)))

    @cached_property
    def hashes(self) -> dict[str, tuple[str, ...]]:
        """The hexadecimal words of the text by their first seven digits."""
        found: dict[str, dict[str, None]] = {}
        for match in _HEX_TOKEN.finditer(self.text):
            found.setdefault(match.group()[:HASH_PREFIX], {})[match.group()] = None
        return {prefix: tuple(words) for prefix, words in found.items()}
