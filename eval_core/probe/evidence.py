"""Where in a fixture a fact stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from eval_core.facts import Haystack, holds
from eval_core.fixture.schema import Fixture
from eval_core.messages import full_text
from eval_core.probe.schema import Fact, ProbeBank

__all__ = ["Places", "fill_evidence"]

_MAX_EVIDENCE = 12  # a value named in half the session is not better established by listing it all


@dataclass(frozen=True)
class Places:
    """A fixture's messages, prepared once for looking facts up."""

    fixture: Fixture

    @cached_property
    def haystacks(self) -> Sequence[Haystack]:
        """One haystack a message."""
        return tuple(Haystack.of(full_text(message)) for message in self.fixture.messages)

    def of(self, fact: Fact) -> list[int]:
        """Return the messages that state the fact or, of a fact with several parts, any of them."""
        parts = self._parts(fact)
        return [index for index, text in enumerate(self.haystacks) if any(holds(part, text) for part in parts)]

    def has(self, fact: Fact) -> bool:
        """Tell whether the session states the whole fact, be it in several messages."""
        return not self.missing(fact)

    def missing(self, fact: Fact) -> list[str]:
        """Return the values that stand nowhere in the session and should."""
        lost = [part.values[0] for part in self._parts(fact) if not any(holds(part, text) for text in self.haystacks)]
        if fact.any is not None:
            return lost if len(lost) == len(fact.any) else []
        return lost

    @staticmethod
    def _parts(fact: Fact) -> list[Fact]:
        if fact.all is None and fact.any is None:
            return [fact]
        return [Fact(fact=value, kind=fact.kind) for value in fact.values]


def fill_evidence(bank: ProbeBank, fixture: Fixture) -> ProbeBank:
    """Return the bank with the evidence of every fact that lacks it; what an author wrote stays."""
    places = Places(fixture)

    def filled(fact: Fact) -> Fact:
        if fact.evidence is not None:
            return fact
        found = places.of(fact)[:_MAX_EVIDENCE]
        return fact.model_copy(update={"evidence": found}) if found else fact

    probes = [
        probe.model_copy(update={"expected_facts": [filled(fact) for fact in probe.expected_facts]})
        for probe in bank.probes
    ]
    return bank.model_copy(update={"probes": probes})
