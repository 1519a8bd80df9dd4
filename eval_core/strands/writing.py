"""Writing: what every text has whatever it is about, and loses only by being rewritten: capitals, words that deny.

No fact notices. A file in lower case is another file, and "do not push" without its "not" is the opposite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from statistics import fmean

from eval_core.facts.denial import denials
from eval_core.facts.language import usual_language

Texts = Mapping[str, Sequence[str]]
_KINDS: dict[str, Callable[[str], int]] = {
    "capital letters": lambda text: sum(char.isupper() for char in text),
    "words such as “not”": denials,
}
FEWEST = 10
"""Fewer of a kind in all fixtures of the base together tell nothing."""
HALF = 0.5


def thinned(base: Texts, candidate: Texts) -> dict[str, float]:
    """Return what is rarer in each text of every fixture than in any of the base's, and less than half of it in all.

    The value is the share that is left, by letters: another length or another language is no such change.
    """
    before, now = (usual_language(list(chain(*side.values()))) for side in (base, candidate))
    found = {kind: _left(base, candidate, count) for kind, count in _KINDS.items()} if before == now else {}
    return {kind: left for kind, left in found.items() if left < HALF}


def _left(base: Texts, candidate: Texts, count: Callable[[str], int]) -> float:
    least = {name: min(map(count, texts)) for name, texts in base.items()}
    names = [name for name, number in least.items() if number]
    if sum(least.values()) < FEWEST:
        return 1.0

    def rates(texts: Sequence[str]) -> list[float]:
        return [count(text) / max(sum(map(str.isalpha, text)), 1) for text in texts]

    sides = [(rates(base[name]), rates(candidate[name])) for name in names]
    apart = all(max(now) < min(before) for before, now in sides)
    return fmean(fmean(now) / fmean(before) for before, now in sides) if apart else 1.0
