"""Facts that are gone by their words but may be said in others: a third answer, beside kept and lost.

Words can only make a passage a candidate. Whether it says the same is left to whoever reads it, so a paraphrase never
counts as kept.
"""

from __future__ import annotations

import re
from functools import lru_cache

from eval_core.domain.probe import Fact
from eval_core.evidence.fact_text import Haystack, normalise

__all__ = ["possibly_paraphrased"]

_WINDOW = 24
_STOP_WORDS = (
    "a an the and or of to in on at by for from with as is are was were be been being it its this that "
    "these those we i you they he she our their his her will would should shall can could may might must "
    "do does did has have had so than then there here into over under about only also just"
)
_STOP = frozenset(_STOP_WORDS.split())
_NOT = re.compile(
    r"\b(?:not|no|never|none|without|avoid\w*|don't|doesn't|won't|can't|cannot|isn't|neither|nor|forbid\w*|refus\w*|stop\w*)\b"
)
# Words that decisions are told with; those of one line stand for each other.
_SAME = tuple(
    frozenset(line.split())
    for line in (
        "use adopt choose pick select prefer go take employ switch move migrate chose chosen picked",
        "keep retain preserve leave maintain stay kept left hold",
        "drop remove delete discard eliminate strip scrap abandon omit",
        "fix repair solve resolve correct mend patch",
        "add introduce create insert append include build",
        "change alter modify edit adjust update touch rewrite",
        "increase raise grow bump extend enlarge higher larger",
        "decrease lower reduce cut shrink shorten smaller",
        "wait block pend hold postpone defer delay",
        "ask request require need want demand",
        "fail break crash error broke broken",
        "test check verify validate confirm prove",
        "cause reason due because why root",
        "start begin launch run execute trigger",
        "end finish complete stop close conclude done",
        "approve accept agree permit allow sign",
        "reject refuse deny decline forbid",
        "customer client user",
        "database db store",
        "config configuration setting",
        "directory folder",
        "repository repo",
    )
)  # fmt: skip


_ENDINGS = (
    "ations",
    "ation",
    "ments",
    "ment",
    "ings",
    "ing",
    "ies",
    "ied",
    "ers",
    "er",
    "ed",
    "es",
    "ly",
    "al",
    "s",
    "e",
    "y",
)


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=4_096)
def _forms(word: str) -> frozenset[str]:
    """Return the stems that stand for a word: its own, and those of the words that say the same."""
    own = _stem(word)
    alike = {other for line in _SAME for other in line if own in {_stem(one) for one in line}}
    return frozenset({own, *map(_stem, alike)})


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_][\w'./:-]*[^\W_]|[^\W_]", text)


def _close(value: str, haystack: Haystack) -> bool:
    plain = normalise(value)
    content = [word for word in dict.fromkeys(_words(plain)) if word not in _STOP and not _NOT.fullmatch(word)]
    plainly = [word for word in content if word.isalpha()]
    # A number, a path or a name is the same or another; only what is told in words can be told in others.
    exact = [word for word in content if not word.isalpha()]
    if len(plainly) < 2:
        return False
    wanted = [_forms(word) for word in plainly]
    words = _words(haystack.text)
    stems = [_stem(word) for word in words]
    negative = _NOT.search(plain) is not None
    anchors = set().union(*wanted)
    needed = len(wanted) if len(wanted) <= 3 else -(-len(wanted) * 3 // 4)
    for start, stem in enumerate(stems):
        if stem not in anchors:
            continue
        seen = set(stems[start : start + _WINDOW])
        if sum(not forms.isdisjoint(seen) for forms in wanted) < needed:
            continue
        passage = words[start : start + _WINDOW]
        around = " ".join(words[max(0, start - 4) : start + _WINDOW])
        if (
            all(word in passage or word in around.split() for word in exact)
            and (_NOT.search(around) is not None) == negative
        ):
            return True
    return False


def possibly_paraphrased(fact: Fact, haystack: Haystack) -> bool:
    """Tell whether a passage holds most of the words of a lost fact, near each other and with the same polarity."""
    if fact.regex or fact.superseded:
        return False
    close = [_close(value, haystack) for value in fact.values]
    return bool(close) and (all(close) if fact.all else any(close))
