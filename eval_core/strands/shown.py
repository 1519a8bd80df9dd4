"""Shown: what the compressor puts before its own model at each compression, and which facts no longer reach it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import fmean

from eval_core.base.config import AcceptConfig
from eval_core.base.files import canonical
from eval_core.base.messages import Message, content_text, full_text
from eval_core.base.numbers import counted, ordinal, percent
from eval_core.base.tokens import count_messages
from eval_core.domain.compression import ModelRequest
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Fact
from eval_core.domain.record import ShownRecord
from eval_core.facts.census import CensusFact
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.facts.retention import fact_stands
from eval_core.facts.verbatim import Kept
from eval_core.statistics.fates import Fate, fates
from eval_core.strands.acceptance import covers
from eval_core.strands.findings import Finding, Item, StrandState
from eval_core.strands.form import labels

# What is recorded of a run.

_MOST_HEADINGS = 60


_FEWEST_PAIRS = 4
_MARK = re.compile(r"[^\n\"\\\\]{24,60}")  # what no template and no JSON changes


def _stands(fact: Fact | CensusFact, text: Haystack) -> bool:
    return fact_stands(fact, text) if isinstance(fact, CensusFact) else holds(fact, text)


@dataclass(frozen=True)
class Requests:
    """What one compression put before its own model."""

    requests: Sequence[ModelRequest]
    original: Sequence[Message] = ()
    ends: Sequence[int] = ()
    """Where the segments of the session end."""
    states: Sequence[Sequence[Message]] = ()
    """The state after each step."""

    @cached_property
    def text(self) -> Haystack:
        """Everything that was shown."""
        return _text(self.requests)

    @cached_property
    def _passes(self) -> list[tuple[Haystack, Haystack, Haystack]]:
        """For each step after the first: what only the summary before it says, its requests, and its own state."""
        found = []
        for step, (before, after) in enumerate(pairwise(self.states), 1):
            asked = [request for request in self.requests if request.step == step]
            if asked:
                said = Kept(self.original[: self.ends[step - 1]], before).own
                found.append((said, _text(asked), Haystack.of_messages(after)))
        return found

    def sign(self, fact: Fact | CensusFact) -> str:
        """Return the sign of `ShownRecord.facts`; nothing where no model was asked."""
        if not self.requests:
            return ""
        if not _stands(fact, self.text):
            return "0"
        dropped = (
            _stands(fact, said) and not _stands(fact, asked) and not _stands(fact, after)
            for said, asked, after in self._passes
        )
        return "p" if any(dropped) else "1"

    def _carried(self, facts: Sequence[Fact | CensusFact]) -> Iterator[float | None]:
        for said, asked, _ in self._passes:
            held = [fact for fact in facts if _stands(fact, said)]
            yield round(sum(_stands(fact, asked) for fact in held) / len(held), 4) if held else None

    def _order(self) -> float | None:
        """Compare the places of neighbouring messages in each request, of those that it holds once.

        What is there again, in the summary before or where a message quotes another, has no one place.
        """
        marks = [found.group() for message in self.original if (found := _MARK.search(content_text(message)))]
        marks = [mark for mark, count in Counter(marks).items() if count == 1]
        pairs = ordered = 0
        for request in self.requests:
            text = "\n".join(map(full_text, request.messages))
            places = [at for mark in marks if (at := text.find(mark)) >= 0 and text.find(mark, at + 1) < 0]
            pairs += max(len(places) - 1, 0)
            ordered += sum(first < second for first, second in pairwise(places))
        return round(ordered / pairs, 4) if pairs >= _FEWEST_PAIRS else None

    def record(
        self, asked_for: Sequence[Fact], found: Sequence[CensusFact], session_lines: Collection[str]
    ) -> ShownRecord:
        """Record the requests; `session_lines` are not the compressor's own words."""
        asked = [content_text(message) for request in self.requests for message in request.messages]
        headings = list(dict.fromkeys(label for text in asked for label in labels(text, session_lines)))
        return ShownRecord(
            calls=len(self.requests),
            tokens=sum(count_messages(request.messages) for request in self.requests),
            digest=hashlib.sha256(canonical([list(request.messages) for request in self.requests])).hexdigest()[:16],
            headings=headings[:_MOST_HEADINGS],
            facts="".join(map(self.sign, found)),
            carried=list(self._carried([*asked_for, *found])),
            order=self._order(),
        )


def _text(requests: Sequence[ModelRequest]) -> Haystack:
    return Haystack.of_all(full_text(message) for request in requests for message in request.messages)


# What a difference between two sides means, and its words.

HALVED = 0.5
"""A summary counts as not passed on where at most half of what the base passes on reaches the next request."""
MOST_RUNS = 0.75
"""A fact newly reaches the model, or no longer does, where the share of runs that show it moved by at least this."""
IN_ORDER, OUT_OF_ORDER = 0.9, 0.5
"""Turns were in order if this share of neighbours is, and are not any more if at most that share is."""


def _facts(measurement: Measurement) -> dict[str, dict[str, Fate]]:
    """Return the facts at risk of which it is known whether they were shown, by fixture and key."""
    known = ((name, fates(measurement, name)) for name in measurement.fixtures)
    found = {name: {key: fate for key, fate in every.items() if fate.shown} for name, every in known}
    return {name: every for name, every in found.items() if every}


def shown_finding(measurement: Measurement) -> tuple[int, int] | None:
    """Return how many facts at risk never reach the compressor's own model, of how many; None where it has none."""
    every = [bool(fate.never_shown) for found in _facts(measurement).values() for fate in found.values()]
    return (sum(every), len(every)) if every else None


def _records(measurement: Measurement, fixture: str) -> list[ShownRecord]:
    return [run.shown for run in measurement.fixtures.get(fixture, []) if run.ok and run.shown]


def _headings(base: Measurement, candidate: Measurement) -> Iterator[str]:
    asked = [
        {label for name in side.fixtures for record in _records(side, name) for label in record.headings}
        for side in (base, candidate)
    ]
    yield from (f"no longer asked for: {label}" for label in sorted(asked[0] - asked[1]))
    yield from (f"newly asked for: {label}" for label in sorted(asked[1] - asked[0]))


def _carried(records: list[ShownRecord]) -> list[float]:
    """Return for each compression after the first the mean share of the summary before it that was passed on."""
    steps = max((len(record.carried) for record in records), default=0)
    shares = [[record.carried[at] for record in records if at < len(record.carried)] for at in range(steps)]
    return [fmean(known) if (known := [share for share in step if share is not None]) else 0.0 for step in shares]


def _not_passed_on(base: Measurement, candidate: Measurement) -> dict[int, list[str]]:
    """Return the compressions, counted from 1, that no longer get the summary before them, with the fixtures."""
    found: dict[int, list[str]] = {}
    for name in candidate.fixtures:
        sides = _carried(_records(base, name)), _carried(_records(candidate, name))
        for at, (before, now) in enumerate(zip(*sides, strict=False)):
            if before and now <= HALVED * before:
                words = f"{name}: {percent(now)} of the summary's facts are passed on, before {percent(before)}"
                found.setdefault(at + 2, []).append(f"{ordinal(at + 2)} compression of {words}")
    return found


def _reordered(base: Measurement, candidate: Measurement) -> list[str]:
    """Return the fixtures whose turns are no longer shown in their order."""

    def order(side: Measurement, name: str) -> float | None:
        known = [record.order for record in _records(side, name) if record.order is not None]
        return fmean(known) if known else None

    pairs = ((name, order(base, name), order(candidate, name)) for name in candidate.fixtures)
    return [
        name
        for name, before, now in pairs
        if before is not None and now is not None and before >= IN_ORDER and now <= OUT_OF_ORDER
    ]


def _cut(
    before: dict[str, dict[str, Fate]], now: dict[str, dict[str, Fate]]
) -> tuple[list[tuple[Item, str]], int, int]:
    """Return the facts that no longer reach the model, how many newly do, and how many there are."""
    gone, uncovered, total = [], 0, 0
    for name, facts in now.items():
        known = before.get(name, {})
        total += len(facts)
        for key, fact in facts.items():
            was = known[key].hidden if key in known else None
            # A model that passes a fact on in every second run is not a change of what it is shown.
            if was is None or abs(fact.shown_share - known[key].shown_share) < MOST_RUNS:
                continue
            if fact.hidden and not was:
                how = "no longer shown" if fact.never_shown else "no longer passed on"
                gone.append((Item(fact.name, name), f"{how}: {fact.name} ({fact.kind or 'asked for'}, {name})"))
            uncovered += fact.hidden is False and was
    return gone, uncovered, total


def shown_strand(base: Measurement, candidate: Measurement, accept: AcceptConfig) -> Finding:
    """Say what no longer reaches the compressor's own model, and what newly does."""
    if not any(_records(candidate, name) for name in candidate.fixtures):
        return Finding(name="shown", state=StrandState.NOT_RECORDED)
    before, now = _facts(base), _facts(candidate)
    if not now:
        return Finding(name="shown", state=StrandState.SAME, candidate="no model was called")
    sides = [shown_finding(side) or (0, 0) for side in (base, candidate)]
    words = [f"{every - hidden} of {every} facts" for hidden, every in sides]
    if not before:
        return Finding(name="shown", state=StrandState.NOT_RECORDED, candidate=words[1])
    gone, uncovered, total = _cut(before, now)
    meant = [covers(accept.unseen, item) for item, _ in gone]
    details = [f"accepted: {text}" if ok else text for (_, text), ok in zip(gone, meant, strict=True)]
    cut, accepted = ([item for (item, _), ok in zip(gone, meant, strict=True) if ok is side] for side in (False, True))
    lost_steps, reordered = _not_passed_on(base, candidate), _reordered(base, candidate)
    headings = list(_headings(base, candidate))
    says = []
    if len(cut) > uncovered and lost_steps:
        says.append(f"from the {ordinal(min(lost_steps))} compression on, the summary before it is not passed on")
    if len(cut) > uncovered:
        reach = "reaches" if len(cut) == 1 else "reach"
        says.append(f"{counted(len(cut), 'fact')} no longer {reach} the compressor's model")
    if reordered:
        says.append("the turns are shown to the model in another order")
    state = StrandState.WORSE if says else StrandState.BETTER if uncovered > len(cut) else StrandState.SAME
    if state is StrandState.BETTER:
        more = uncovered - len(cut)
        says.append(f"{counted(more, 'more fact')} {'reaches' if more == 1 else 'reach'} the compressor's model")
    elif state is StrandState.SAME and accepted:
        state = StrandState.ACCEPTED
    elif state is StrandState.SAME and (headings or lost_steps):
        state = StrandState.CHANGED
    steps = [text for _, texts in sorted(lost_steps.items()) for text in texts]
    return Finding(
        name="shown",
        state=state,
        base=words[0],
        candidate=words[1],
        says="; ".join(says),
        removed=tuple(cut),
        accepted=tuple(accepted),
        details=(*steps, *(f"turns in another order: {name}" for name in reordered), *details, *headings),
        loss=max(len(cut) / max(total, 1), len(reordered) / len(candidate.fixtures)),
        gain=uncovered / max(total, 1),
    )
