"""Writing: what every text has whatever it is about, and loses only by being rewritten: capitals, words that deny.

No fact notices. A file in lower case is another file, and "do not push" without its "not" is the opposite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from statistics import fmean

from eval_core.facts.denial import denials
from eval_core.facts.language import usual_language

Texts = Mapping[str, Sequence[str]]
_KINDS = ("capital letters", "words such as “not”")
FEWEST = 10
"""Fewer of a kind in all fixtures of the base together tell nothing."""
HALF = 0.5


def thinned(base: Texts, candidate: Texts) -> dict[str, float]:
    """Return what each text of every fixture has fewer and less densely than any of the base, less than half in all.

    The value is the share that is left, by letters: another length or another language is no such change, and what is
    only written beside the same text takes nothing from it.
    """
    before, now = (usual_language(list(chain(*side.values()))) for side in (base, candidate))
    found = {kind: _left(base, candidate, at) for at, kind in enumerate(_KINDS)} if before == now else {}
    return {kind: left for kind, left in found.items() if left < HALF}


@lru_cache(maxsize=256)  # many runs write the same
def _counts(text: str) -> tuple[int, int, int]:
    """Count what is in a text: its capital letters, the words that deny, and all its letters."""
    return sum(map(str.isupper, text)), denials(text), sum(map(str.isalpha, text))


def _left(base: Texts, candidate: Texts, kind: int) -> float:
    least = {name: min(_counts(text)[kind] for text in texts) for name, texts in base.items()}
    names = [name for name, number in least.items() if number]
    if sum(least.values()) < FEWEST:
        return 1.0

    if any(_counts(text)[kind] >= least[name] for name in names for text in candidate[name]):
        return 1.0

    def rates(texts: Sequence[str]) -> list[float]:
        return [_counts(text)[kind] / max(_counts(text)[-1], 1) for text in texts]

    sides = [(rates(base[name]), rates(candidate[name])) for name in names]
    apart = all(max(now) < min(before) for before, now in sides)
    return fmean(fmean(now) / fmean(before) for before, now in sides) if apart else 1.0
