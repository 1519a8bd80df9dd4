"""Drafts of probes for people to choose from; what a session did is the source, never a guess."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eval_core.errors import UserError
from eval_core.facts import Haystack, holds, normalise
from eval_core.fixture.schema import Fixture
from eval_core.probe.commonplace import common_reason
from eval_core.probe.drafts import Draft, drafts
from eval_core.probe.evidence import Places, fill_evidence
from eval_core.probe.lint import EDGE_HEAD, EDGE_TAIL
from eval_core.probe.schema import PROBE_TYPES, Fact, Probe, ProbeBank

__all__ = ["propose"]

_MAX_FACTS = 4


def _usable(fact: Fact, places: Places) -> bool:
    found = places.of(fact)
    return bool(found) and common_reason(fact) is None and len(found) <= max(4, len(places.haystacks) // 2)


def _unsaid(facts: Sequence[Fact], question: str) -> list[Fact]:
    """Return the facts that the question does not give away."""
    asked = Haystack.of(question)
    return [fact for fact in facts if not holds(fact, asked)]


def _ranked(found: list[Draft], places: Places) -> list[Draft]:
    """Put the drafts in order of worth; those that no compression puts at risk go, if any other is left."""
    last = len(places.haystacks) - EDGE_TAIL

    def at_risk(draft: Draft) -> bool:
        return any(EDGE_HEAD <= index < last for fact in draft.facts for index in places.of(fact))

    telling = [draft for draft in found if at_risk(draft)]
    return sorted(telling or found, key=lambda draft: (-draft.worth, draft.topic))


def _mixed(probes: list[Probe], limit: int) -> list[Probe]:
    """Take the types in turn, so that none crowds out the others."""
    waiting = {kind: [probe for probe in probes if probe.type == kind] for kind in PROBE_TYPES}
    taken: list[Probe] = []
    while len(taken) < limit and any(waiting.values()):
        for queue in waiting.values():
            if queue and len(taken) < limit:
                taken.append(queue.pop(0))
    return sorted(taken, key=lambda probe: (PROBE_TYPES.index(probe.type), probe.id))


def _name(draft: Draft, taken: set[str]) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", draft.topic.lower()).strip("-")
    base = f"{draft.type}-{slug.removeprefix(f'{draft.type}-')}"[:60].rstrip("-")
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def propose(fixture: Fixture, limit: int = 24) -> ProbeBank:
    """Return a bank of drafts from what the session's tools did and its user decided, evidence filled in."""
    places = Places(fixture)
    probes: list[Probe] = []
    used: set[str] = set()
    asked: set[str] = set()
    names: set[str] = set()
    for draft in _ranked(list(drafts(fixture.messages)), places):
        fresh = [fact for fact in draft.facts if normalise(fact.label) not in used and _usable(fact, places)]
        for question in filter(None, (draft.question, draft.fallback)):
            facts = _unsaid(fresh, question)[:_MAX_FACTS]
            if any(not fact.superseded for fact in facts) and question not in asked:
                asked.add(question)
                used.update(normalise(fact.label) for fact in facts)
                name = _name(draft, names)
                probes.append(Probe(id=name, type=draft.type, question=question, expected_facts=facts, draft=True))
                break
    chosen = _mixed(probes, limit)
    if not chosen:
        raise UserError(
            f"fixture {fixture.name}: nothing to propose: no files written, commits, test runs or decisions found; "
            "write the probes by hand"
        )
    return fill_evidence(ProbeBank(fixture=fixture.name, probes=chosen), fixture)
