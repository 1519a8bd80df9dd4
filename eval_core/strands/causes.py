"""Causes: what all lost facts have in common, where they have something, in at most one clause."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from statistics import fmean

from eval_core.base.numbers import listed, ordinal
from eval_core.domain.measurement import Measurement
from eval_core.facts.language import usual_language
from eval_core.statistics.fates import fates
from eval_core.strands.findings import FactChange

FEWEST = 3
"""Fewer lost facts have something in common by chance."""
MOST_FIXTURES = 2


def _of_language(lost: Sequence[FactChange], base: Measurement, candidate: Measurement) -> str:
    texts = [[run.summary for runs in side.fixtures.values() for run in runs if run.ok] for side in (base, candidate)]
    sides = [usual_language(found) for found in texts]
    return f"the summary is in {sides[1]}, before in {sides[0]}" if all(sides) and sides[0] != sides[1] else ""


# When it was lost: from which compression on, or how far back in the session.

_AS_BEFORE, _LESS = 0.97, 0.9


def _held(measurement: Measurement, fixture: str) -> list[float]:
    runs = [run.held for run in measurement.fixtures.get(fixture, []) if run.ok and run.held]
    return [fmean(step) for step in zip(*runs, strict=False)]


def _from_step(base: Measurement, candidate: Measurement, fixture: str) -> int | None:
    """Return the compression from which on less is held than in the base, where it is a later one."""
    shares = [
        now / max(before, 1) for before, now in zip(_held(base, fixture), _held(candidate, fixture), strict=False)
    ]
    first = next((at for at, share in enumerate(shares) if share < _AS_BEFORE), None)
    return first + 1 if first and all(share < _LESS for share in shares[first:]) else None


def _of_step(lost: Sequence[FactChange], base: Measurement, candidate: Measurement) -> str:
    steps = {_from_step(base, candidate, fixture) for fixture in {fact.fixture for fact in lost}}
    step = min((step for step in steps if step is not None), default=None)
    # Where the summary is not passed on, the model is not shown it, and that is told there.
    told = sum(fact.shown == "not passed on" for fact in lost) * 2 > len(lost)
    return (
        f"lost from the {ordinal(step)} compression on" if step is not None and None not in steps and not told else ""
    )


def _older_than(lost: Sequence[FactChange], candidate: Measurement, fixture: str) -> int | None:
    """Return the message before which everything lost was, where what is newer is kept and what is older is not."""
    first = next((run for run in candidate.fixtures[fixture] if run.ok), None)
    edge = 1 + max(max(fact.messages) for fact in lost if fact.fixture == fixture)
    verbatim = set(first.verbatim if first is not None else ())
    kept = [fate.messages for fate in fates(candidate, fixture).values() if all(fate.kept)]
    written = [max(messages) for messages in kept if not verbatim.intersection(messages)]
    newer, older = sum(at >= edge for at in written), sum(at < edge for at in written)
    gone = sum(fact.fixture == fixture for fact in lost)
    return edge if newer >= FEWEST and older <= gone / 2 else None


def _of_age(lost: Sequence[FactChange], base: Measurement, candidate: Measurement) -> str:
    names = list(dict.fromkeys(fact.fixture for fact in lost))
    edges = {name: _older_than(lost, candidate, name) for name in names}
    if None in edges.values():
        return ""
    if len(names) > MOST_FIXTURES:
        return "everything lost is older than what is kept"
    return f"everything lost is older than {listed([f'message {edge} of {name}' for name, edge in edges.items()])}"


# Numbers that are still there, but rounded.

_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
_SHORT = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)\s?(k|m|bn|thousand|million)?\b", re.I)
_TIMES = {"": 1.0, "k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "bn": 1e9}


def _rounded(name: str, said: Sequence[float]) -> bool:
    """Tell whether each longer number of a fact is said with fewer digits."""
    exact = [text.replace(",", "") for text in _NUMBER.findall(name)]
    exact = [text for text in exact if len(text.replace(".", "").strip("0")) >= FEWEST]
    values = [float(text) for text in exact]
    short = [
        {float(f"{value:.{digits}g}") for digits in range(1, len(text.replace(".", "").strip("0")))}
        for text, value in zip(exact, values, strict=True)
    ]
    return bool(values) and all(any(number in forms for number in said) for forms in short)


def _of_rounding(lost: Sequence[FactChange], base: Measurement, candidate: Measurement) -> str:
    def said(fixture: str) -> list[float]:
        text = "\n".join(run.summary for run in candidate.fixtures[fixture] if run.ok)
        return [float(found[1].replace(",", "")) * _TIMES[(found[2] or "").lower()] for found in _SHORT.finditer(text)]

    known = {fixture: said(fixture) for fixture in {fact.fixture for fact in lost}}
    rounded = sum(_rounded(fact.name, known[fact.fixture]) for fact in lost)
    return "numbers are rounded" if rounded >= FEWEST and rounded * 2 > len(lost) else ""


_CAUSES: tuple[Callable[[Sequence[FactChange], Measurement, Measurement], str], ...] = (
    _of_language,
    _of_rounding,
    _of_step,
    _of_age,
)


def cause_of(facts: Sequence[FactChange], base: Measurement, candidate: Measurement) -> str:
    """Return what the facts that are clearly lost have in common, the most telling first; empty where nothing."""
    lost = [fact for fact in facts if fact.clear and fact.change < 0 and min(fact.messages, default=-1) >= 0]
    if len(lost) < FEWEST:
        return ""
    return next((words for cause in _CAUSES if (words := cause(lost, base, candidate))), "")
