"""The language of a text, by the words that every text of a language has, or by its script."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

_LEAST_SHARE, _LEAST_WORDS, _AHEAD = 0.03, 20, 1.5
COMMON_WORDS = {
    name: frozenset(words.split())
    for name, words in {
        "English": "the and of to is in for that with was not be",
        "German": "der die und das ist nicht mit ein für den von wird",
        "French": "le les des est une pour dans pas que du sont aux",
        "Spanish": "el los las una por con para que del se está como",
        "Italian": "il che di per una non del sono con gli della è",
        "Portuguese": "os uma não para com que do da em foi dos ao",
        "Dutch": "het een van niet en voor met dat zijn op wordt de",
        "Polish": "nie na się jest do że przez oraz są dla to jako",
        "Turkish": "ve bir için bu ile değil olarak da de olan çok gibi",
    }.items()
}
_SCRIPTS = {
    "Japanese": re.compile(r"[\u3040-\u30ff]"),
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Chinese": re.compile(r"[\u4e00-\u9fff]"),
    "Russian or another Cyrillic language": re.compile(r"[\u0400-\u04ff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff]"),
    "Greek": re.compile(r"[\u0370-\u03ff]"),
    "Hindi": re.compile(r"[\u0900-\u097f]"),
}
_WORD = re.compile(r"[^\W\d_]+")


@lru_cache(maxsize=256)  # many runs write the same
def language(text: str) -> str | None:
    """Return the language that most of a text is written in; None where that is not clear."""
    letters = sum(map(str.isalpha, text))
    for name, script in _SCRIPTS.items() if not text.isascii() else ():
        # A letter of these scripts says more than one of a long Latin name beside it.
        if letters and len(script.findall(text)) > 0.3 * letters:
            return name
    words = Counter(_WORD.findall(text.lower()))
    total = sum(words.values())
    found = sorted(((sum(words[word] for word in common), name) for name, common in COMMON_WORDS.items()), reverse=True)
    (most, name), (second, _) = found[:2]
    return name if total >= _LEAST_WORDS and most >= max(_LEAST_SHARE * total, _AHEAD * second) else None


def usual_language(texts: Sequence[str]) -> str | None:
    """Return the language that more than half of the texts are in."""
    name, count = Counter(map(language, texts)).most_common(1)[0] if texts else (None, 0)
    return name if count * 2 > len(texts) else None
