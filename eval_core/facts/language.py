"""The language of a text, by py3langid, whose model is in its wheel; None where that is not clear."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

_CERTAIN, _FEWEST_LETTERS, _ENOUGH = 0.75, 20, 20_000
_NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese",
    "zh": "Chinese",
}  # fmt: skip
_PROSE = re.compile(r"(?<![\w./:#@=-])[^\W\d_]+(?:['’][^\W\d_]+)?(?![\w/=-]|\.\w)")
"""Words that are no part of a path, an address or a name with digits: these are in no language."""


@cache
def _identifier() -> Any:
    # Its model takes most of a second to load, so only those pay for it who ask.
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True, min_confidence=_CERTAIN)


def language(text: str) -> str | None:
    """Return the language that most of a text is written in, by its English name or else its code."""
    prose = " ".join(_PROSE.findall(text[:_ENOUGH]))
    if len(prose) < _FEWEST_LETTERS:
        return None
    code, _ = _identifier().classify(prose)
    return None if code == "und" else _NAMES.get(code, code)


def usual_language(texts: Sequence[str]) -> str | None:
    """Return the language that more than half of the texts are in."""
    name, count = Counter(map(language, texts)).most_common(1)[0] if texts else (None, 0)
    return name if count * 2 > len(texts) else None
