"""Facts that are gone by their words but may be said in others: a third answer, beside kept and lost.

Words can only make a passage a candidate. Whether it says the same is left to whoever reads it, so a paraphrase never
counts as kept.
"""

from __future__ import annotations

import re
from functools import lru_cache

from eval_core.domain.probe import Fact
from eval_core.facts.denial import denials
from eval_core.facts.fact_spellings import COUNT_WORDS
from eval_core.facts.fact_text import Haystack, normalise

_SHARE = 0.7  # of a fact's words that two neighbouring sentences must hold
_STEM = 4  # letters that forms of one word share: approve, approval
_STOP_WORDS = (
    "a an the and or of to in on at by for from with as is are was were be been it its this that not no never none i "
    "you they we our their will would should can could may might must do does did have has had so than then there "
    "without here into over under about only also until till before after off out up every each all any"
)
_STOP = frozenset(_STOP_WORDS.split())
_WORD = re.compile(r"[^\W_][\w'./:-]*\w|[^\W_]")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")
_COUNTS = {word: str(number) for number, word in enumerate(COUNT_WORDS)}


def _words(text: str) -> frozenset[str]:
    found = (_COUNTS.get(word, word) for word in _WORD.findall(text))
    return frozenset(
        word[:_STEM].rstrip("es") or word if word.isalpha() else word for word in found if word not in _STOP
    )


@lru_cache(maxsize=2)
def _passages(text: str) -> list[tuple[frozenset[str], bool]]:
    """Return the words of each sentence, alone and with the next, and whether they deny."""
    sentences = [part for part in _SENTENCE_END.split(text) if part.strip()]
    return [
        (_words(both), denials(both) % 2 == 1)
        for one in range(len(sentences))
        for both in (sentences[one], " ".join(sentences[one : one + 2]))
    ]


def _close(value: str, haystack: Haystack) -> bool:
    told = normalise(value)
    words = _words(told)
    exact = {word for word in words if not word.isalpha()}
    # A number, a path or a name is the same or another; only what is told in words can be told in others.
    if len(words) < 2 or words == exact:
        return False
    negative = denials(told) % 2 == 1
    return any(
        exact <= found and len(words & found) >= max(2, _SHARE * len(words)) and negative == denied
        for found, denied in _passages(haystack.text)
    )


def possibly_paraphrased(fact: Fact, haystack: Haystack) -> bool:
    """Tell whether a passage holds most of the words of a lost fact, and denies them if the fact does."""
    if fact.regex or fact.superseded:
        return False
    close = [_close(value, haystack) for value in fact.values]
    return bool(close) and (all(close) if fact.all else any(close))
