"""Acceptance: what was removed on purpose is taken out of both sides, and what it takes to accept a removal.

An item is accepted by its key: a section by its label, a fact by its fixture and its value in normal form. Nothing else
is covered, so any further loss counts as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from eval_core.base.config import AcceptConfig
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import PRIVATE_PLACE, CensusEntry, FactRecord, RunRecord
from eval_core.facts.haystack import fact_key
from eval_core.strands.fact_changes import LONGEST_NAME
from eval_core.strands.findings import FactChange, Item, StrandState, Verdict


@cache
def _key(name: str) -> str:
    return fact_key(name[:LONGEST_NAME])


def covers(items: Mapping[str, Sequence[str]], item: Item) -> bool:
    """Tell whether a list of the configuration names a fact."""
    return any(_key(item.name) == _key(name) for name in items.get(item.fixture, ()))


def _is_accepted(accept: AcceptConfig, fixture: str, fact: FactRecord | CensusEntry) -> bool:
    name, places = (fact.label, fact.evidence) if isinstance(fact, FactRecord) else (fact.value, fact.messages)
    return PRIVATE_PLACE not in places and covers(accept.facts, Item(name, fixture))


def touched_probes(measurement: Measurement, accept: AcceptConfig) -> set[tuple[str, str]]:
    """Return the probes that ask for an accepted fact: their answers cannot be as good as they were."""
    return {
        (fixture, probe)
        for fixture in accept.facts
        for run in measurement.fixtures.get(fixture, [])
        for probe, record in run.probes.items()
        if any(_is_accepted(accept, fixture, fact) for fact in record.facts)
    }


def without_accepted(measurement: Measurement, accept: AcceptConfig) -> Measurement:
    """Return the measurement as if nothing had ever asked for the accepted facts."""
    if not accept.facts:
        return measurement
    fixtures = {
        name: [_without(run, measurement, accept) for run in runs] for name, runs in measurement.fixtures.items()
    }
    return measurement.model_copy(update={"fixtures": fixtures})


def _without(run: RunRecord, measurement: Measurement, accept: AcceptConfig) -> RunRecord:
    probes = {
        name: record.model_copy(
            update={"facts": [fact for fact in record.facts if not _is_accepted(accept, run.fixture, fact)]}
        )
        for name, record in run.probes.items()
    }
    entries, fates = measurement.census.get(run.fixture, []), run.census.fates
    gone = [at for at, entry in enumerate(entries) if _is_accepted(accept, run.fixture, entry)]
    if len(fates) != len(entries) or not gone:
        return run.model_copy(update={"probes": probes})

    def less(counts: Mapping[str, int], of: Callable[[str], bool]) -> dict[str, int]:
        out = Counter(entries[at].kind for at in gone if of(fates[at]))
        return {kind: count - out[kind] for kind, count in counts.items()}

    census = run.census.model_copy(
        update={
            "total": less(run.census.total, lambda fate: True),
            "at_risk": less(run.census.at_risk, lambda fate: fate != "-"),
            "lost": less(run.census.lost, lambda fate: fate == "0"),
            "fates": "".join("-" if at in gone else fate for at, fate in enumerate(fates)),
        }
    )
    return run.model_copy(update={"probes": probes, "census": census})


def accepted_losses(changes: Iterable[FactChange], accept: AcceptConfig) -> tuple[FactChange, ...]:
    return tuple(fact for fact in changes if _can_be_accepted(fact) and covers(accept.facts, _item(fact)))


# What it takes to accept a removal.


def _by_fixture(items: Iterable[Item]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in items:
        if item.name not in found.setdefault(item.fixture, []):
            found[item.fixture].append(item.name)
    return found


def removal(verdict: Verdict) -> AcceptConfig:
    """Return what a verdict says was removed: sections, facts that the model is not shown, clear losses."""
    sections, unseen = (
        strand.removed if (strand := verdict.strand(name)) is not None and strand.state is StrandState.WORSE else ()
        for name in ("form", "shown")
    )
    facts = _by_fixture(_item(fact) for fact in verdict.facts if fact.clear and _can_be_accepted(fact))
    # A fact that need not be kept need not be shown either.
    rest = _by_fixture(item for item in unseen if not covers(facts, item))
    return AcceptConfig(sections=[item.name for item in sections], facts=facts, unseen=rest)


def _item(fact: FactChange) -> Item:
    return Item(fact.name, fact.fixture)


def _can_be_accepted(fact: FactChange) -> bool:
    return fact.change < 0 and PRIVATE_PLACE not in fact.messages


def together(one: AcceptConfig, other: AcceptConfig) -> AcceptConfig:
    """Return what either accepts."""

    def items(config: AcceptConfig, field: str) -> list[Item]:
        return [Item(name, fixture) for fixture, names in getattr(config, field).items() for name in names]

    return AcceptConfig(
        sections=list(dict.fromkeys([*one.sections, *other.sections])),
        **{field: _by_fixture([*items(one, field), *items(other, field)]) for field in ("facts", "unseen")},
    )


@dataclass(frozen=True)
class Offer:
    """What accepts a removal, beside what is accepted already."""

    added: AcceptConfig
    verdict: Verdict
    """What the same result is found to be when that is accepted."""

    @property
    def suffices(self) -> bool:
        """Whether nothing else speaks against the change."""
        return not self.verdict.harmful


def offer(verdict: Verdict, again: Callable[[AcceptConfig], Verdict], accept: AcceptConfig) -> Offer | None:
    """Return what accepts the removal that a verdict found; None where there is nothing to accept.

    `again` compares the same two sides under another configuration.
    """
    if not verdict.harmful:
        return None
    found = Offer(removal(verdict), verdict)
    if found.added != AcceptConfig():
        found = Offer(found.added, again(together(accept, found.added)))
    return _with_spread(found, again, accept) or (found if found.added != AcceptConfig() else None)


def _with_spread(found: Offer, again: Callable[[AcceptConfig], Verdict], accept: AcceptConfig) -> Offer | None:
    """Accept the largest losses too, as few as it takes, where a loss is spread over facts of which none is clear."""
    facts = found.verdict.strand("facts")
    if facts is None or facts.state not in (StrandState.WORSE, StrandState.BOTH):
        return None
    spread = [
        _item(fact) for fact in sorted(found.verdict.facts, key=lambda fact: fact.change) if _can_be_accepted(fact)
    ]
    low, high, best = 0, len(spread), None
    while low < high:
        middle = (low + high) // 2
        added = together(found.added, AcceptConfig(facts=_by_fixture(spread[: middle + 1])))
        tried = Offer(added, again(together(accept, added)))
        if tried.suffices:
            high, best = middle, tried
        else:
            low = middle + 1
    return best
