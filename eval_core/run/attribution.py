"""What became of each expected fact: kept, lost, used, not used or untested."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from eval_core.facts import Haystack, holds
from eval_core.fixture.schema import Fixture
from eval_core.messages import full_text
from eval_core.probe.schema import Fact, Probe
from eval_core.run.record import FactRecord
from eval_core.tokens import count_messages

__all__ = ["Evidence", "StateFacts"]


class Evidence:
    """Where each fact of a fixture stands; read once for all runs."""

    def __init__(self, fixture: Fixture) -> None:
        """Prepare for one fixture; messages are normalised when first needed."""
        self._messages = fixture.messages
        self._found: dict[str, list[int]] = {}

    @cached_property
    def _texts(self) -> list[Haystack]:
        return [Haystack.of(full_text(message)) for message in self._messages]

    def of(self, fact: Fact) -> list[int]:
        """Return the messages that establish a fact, as its author says or else as the text shows."""
        if fact.evidence is not None:
            return fact.evidence
        key = fact.model_dump_json()
        if key not in self._found:
            self._found[key] = [index for index, text in enumerate(self._texts) if holds(fact, text)]
        return self._found[key]

    def refetch_tokens(self, lost: Collection[FactRecord]) -> int:
        """Count the tokens of the messages to be read again for lost facts: the first evidence of each, once."""
        indexes = {fact.evidence[0] for fact in lost if fact.evidence}
        return count_messages(self._messages[index] for index in indexes)


@dataclass(frozen=True)
class StateFacts:
    """The facts that a compressed state holds."""

    state: Haystack
    kept_verbatim: Haystack
    evidence: Evidence

    def probe(self, probe: Probe, answer: str | None) -> list[FactRecord]:
        """Attribute each required fact of a probe."""
        said = None if answer is None else Haystack.of(answer)
        return [
            FactRecord(
                label=fact.label,
                kept=holds(fact, self.state),
                at_risk=not holds(fact, self.kept_verbatim),
                used=None if said is None else holds(fact, said),
                evidence=self.evidence.of(fact),
            )
            for fact in probe.required
        ]
