"""Facts that are gone by their words but may be said in others: a third answer, beside kept and lost.

Words can only make a passage a candidate. Whether it says the same is left to whoever reads it, so a paraphrase never
counts as kept.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise

from eval_core.domain.probe import Fact
from eval_core.facts.denial import FOREIGN_DENIALS
from eval_core.facts.fact_spellings import COUNT_WORDS
from eval_core.facts.fact_text import Haystack, normalise

__all__ = ["possibly_paraphrased"]

_WINDOW = 24  # words that a passage may take
_SHORT_WINDOW = 6  # for a fact of two words, which any long passage holds
_ENOUGH = 3  # words of what a fact is about that need none of what is done with it
_COMMON = 5  # places beyond which two words together say nothing
_SHARE = 0.7  # of a fact's weight that a passage must hold
_VERB = 0.5  # the weight of a word that decisions are told with; what they are about weighs 1
_APART = 5  # words between which the two words of a name such as "batch size" may be torn apart
_NEAR = 4  # words around a passage that can turn it into its opposite

_STOP_WORDS = (
    "a an the and or of to in on at by for from with as is are was were be been being it its this that these those we "
    "i you they he she our their his her will would should shall can could may might must do does did has have had so "
    "than then there here into over under about only also just until till before after off out up every each all any "
    "still instead rather now when while during once which who what if but"
)
_STOP = frozenset(_STOP_WORDS.split())
_NOT = re.compile(
    rf"{FOREIGN_DENIALS}|not|no|never|none|nobody|nothing|without|avoid\w*|\w+n't|cannot|neither|nor|forb[ia]d\w*|refus\w*|stop\w*"
    r"|prohibit\w*|banned|limits"
)
# Words that decisions are told with; those of one line say the same.
_SAME = tuple(
    frozenset(line.split())
    for line in (
        "use adopt choose pick select prefer go take employ switch move migrate chose chosen picked settle opt",
        "keep retain preserve leave maintain stay kept left hold store remain",
        "drop remove delete discard eliminate strip scrap abandon omit",
        "fix repair solve resolve correct mend patch",
        "add introduce create insert append include build",
        "change alter modify edit adjust update touch rewrite replace",
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
        "disable deactivate turn suspend",
        "enable activate",
        "revert undo undid undone roll rolled",
        "rename call called name named",
        "clear empty purge flush wipe clean",
        "write wrote written",
        "send sent deliver post",
        "first earliest initial",
        "customer client user",
        "database db",
        "config configuration setting",
        "directory folder",
        "repository repo",
        "release deploy ship rollout",
    )
)
_ABOUT = ("customer", "database", "config", "directory", "repository", "release", "test", "first", "cause")
_ENDINGS = (
    "ations", "ation", "ments", "ment", "ings", "ing", "ies", "ied", "ers", "er", "ed", "es", "ly", "al", "'s", "s",
    "e", "y",
)  # fmt: skip


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    """Return a word without its endings: deploy, deploys and deployments are one."""
    while True:
        ending = next((one for one in _ENDINGS if word.endswith(one) and len(word) - len(one) >= 3), None)
        if ending is None:
            return word
        word = word[: -len(ending)]
        if ending[0] in "ei" and len(word) > 3 and word[-1] == word[-2] and word[-1] in "bdgmnprt":
            word = word[:-1]  # dropped, running


_GROUPS = tuple(frozenset(map(_stem, line)) for line in _SAME)
_DROPPED = _GROUPS[2]
_TELLING = frozenset(
    stem for line, group in zip(_SAME, _GROUPS, strict=True) if not line.intersection(_ABOUT) for stem in group
)
_COUNTS = {word: str(number) for number, word in enumerate(COUNT_WORDS)}


def _forms(stem: str) -> frozenset[str]:
    """Return the stems that stand for one: itself, and those of the words that say the same."""
    return frozenset({stem}).union(*(group for group in _GROUPS if stem in group))


_TOKEN = re.compile(r"[^\W_][\w'./:-]*[\w]|[^\W_]|[.!?;,]")


def _tokens(text: str) -> list[str]:
    return [_COUNTS.get(token, token) for token in _TOKEN.findall(text)]


class _Words:
    """A text by its words, with the places of each stem."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.places: defaultdict[str, list[int]] = defaultdict(list)
        for place, token in enumerate(self.tokens):
            self.places[_stem(token) if token.isalpha() or "'" in token else token].append(place)


_words_of = lru_cache(maxsize=2)(_Words)


def _is_negative(tokens: Sequence[str]) -> bool:
    """Tell whether a passage denies. What is no longer kept is dropped, and what is not dropped is kept."""
    denied = any(_NOT.fullmatch(token) for token in tokens)
    return denied != any(_stem(token) in _DROPPED for token in tokens if token.isalpha())


def _clause(tokens: Sequence[str], start: int, end: int) -> Sequence[str]:
    """Return a passage with the few words around it that belong to its sentence."""
    first = start
    while first > 0 and start - first < _NEAR and tokens[first - 1] not in (".", "!", "?", ";"):
        first -= 1
    last = end
    while last < len(tokens) and last - end < _NEAR and tokens[last] not in (".", "!", "?", ";", ","):
        last += 1
    return tokens[first:last]


class _Told:
    """What a fact says, word by word, to be looked for in other words."""

    def __init__(self, value: str) -> None:
        tokens = _tokens(normalise(value))
        told = [
            (place, token)
            for place, token in enumerate(tokens)
            if token not in _STOP and len(token.strip(".!?;,")) and not _NOT.fullmatch(token)
        ]
        plainly = [(place, _stem(token)) for place, token in told if token.isalpha()]
        # A number, a path or a name is the same or another; only what is told in words can be told in others.
        self.exact = {token for _, token in told if not token.isalpha()}
        self.stems = list(dict.fromkeys(stem for _, stem in plainly))
        self.verbs = {stem for stem in self.stems if stem in _TELLING}
        self.subjects = self.exact.union(stem for stem in self.stems if stem not in self.verbs)
        self.enough = bool(plainly and self.subjects) and len(plainly) + len(self.exact) >= 2
        self.weights = {stem: _VERB if stem in self.verbs else 1.0 for stem in (*self.stems, *self.exact)}
        names = [(at, stem) for at, stem in plainly if stem not in self.verbs]
        self.pairs = [(one, two) for (at, one), (then, two) in pairwise(names) if then == at + 1]
        self.negative = _is_negative(tokens)
        self.named = any(not token[0].isdigit() for token in self.exact)
        self.window = _WINDOW if self.named or len(self.weights) > 2 else _SHORT_WINDOW

    def hits(self, words: _Words) -> list[tuple[int, str]]:
        """Return where its words are in a text."""
        return sorted(
            {
                *((at, stem) for stem in self.stems for form in _forms(stem) for at in words.places.get(form, ())),
                *((at, token) for token in self.exact for at in words.places[token]),
            }
        )

    def is_said_by(self, found: Mapping[str, int], common: Set[str]) -> bool:
        """Tell whether the words found in a passage, with their places, are enough of it; a denial is not looked at."""
        if not self.exact.issubset(found) or len(found) < 2:
            return False
        if sum(self.weights[stem] for stem in found) < _SHARE * sum(self.weights.values()):
            return False
        if len(found) == 2 and not self.named and not common.isdisjoint(found):
            return False
        about = len(self.subjects.intersection(found))
        if about == 0 or (about < _ENOUGH and self.verbs and not self.exact and self.verbs.isdisjoint(found)):
            return False
        return not any(
            one in found and two in found and abs(found[one] - found[two]) > _APART for one, two in self.pairs
        )


def _close(value: str, haystack: Haystack) -> bool:
    told = _Told(value)
    if not told.enough:
        return False
    words = _words_of(haystack.text)
    if not all(token in words.places for token in told.exact):
        return False
    hits = told.hits(words)
    common = {stem for stem, count in Counter(stem for _, stem in hits).items() if count > _COMMON}
    for index, (start, _) in enumerate(hits):
        found: dict[str, int] = {}
        for place, stem in hits[index : index + 2 * told.window]:
            if place - start >= told.window:
                break
            found.setdefault(stem, place)
        if told.is_said_by(found, common):
            passage = _clause(words.tokens, start, max(found.values()) + 1)
            if _is_negative(passage) == told.negative:
                return True
    return False


def possibly_paraphrased(fact: Fact, haystack: Haystack) -> bool:
    """Tell whether a passage holds most of the words of a lost fact, near each other and with the same polarity."""
    if fact.regex or fact.superseded:
        return False
    close = [_close(value, haystack) for value in fact.values]
    return bool(close) and (all(close) if fact.all else any(close))
