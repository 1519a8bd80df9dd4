"""Fact retention: which facts of a session, authored or census, a compressed state still holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from eval_core.base.messages import Message, full_text
from eval_core.domain.fixture import Fixture
from eval_core.domain.probe import Fact, Probe
from eval_core.domain.record import FactRecord
from eval_core.facts.census import CensusFact, telling_words
from eval_core.facts.fact_spellings import COUNT_WORDS
from eval_core.facts.fact_text import Haystack, infer_kind
from eval_core.facts.haystack import holds, value_in
from eval_core.facts.paraphrase import possibly_paraphrased
from eval_core.facts.verbatim import Kept

# How many of a session's facts survive a compression, counting only those that it put at risk.

_OUTCOMES = {
    "passed": "(?:pass(?:ed|es|ing)?|ok|green|succeed(?:ed)?)",
    "failed": "(?:fail(?:ed|s|ing|ures?)?|red)",
    "error": "(?:errors?|errored)",
}


@dataclass(frozen=True, slots=True)
class KindCount:
    """Facts of one kind that were at risk, and those that were kept."""

    kept: int
    at_risk: int


@dataclass(frozen=True)
class CensusRetention:
    """The outcome of the census for one compression."""

    kinds: dict[str, KindCount]
    retained: tuple[CensusFact, ...]
    lost: tuple[CensusFact, ...]

    @property
    def kept(self) -> int:
        """Facts at risk that the compressed state still states."""
        return len(self.retained)

    @property
    def at_risk(self) -> int:
        """Facts that stood only in what was compressed away."""
        return len(self.retained) + len(self.lost)

    @property
    def share(self) -> float | None:
        """The kept share, or None where nothing was at risk."""
        return self.kept / self.at_risk if self.at_risk else None


def _stands(word: str, haystack: Haystack) -> bool:
    return value_in(word, infer_kind(word), haystack)


def _error_stands(value: str, haystack: Haystack) -> bool:
    if _stands(value, haystack):
        return True
    # Nobody repeats a whole error line; its name and a telling word or two of it are what matters.
    name, colon, detail = value.partition(": ")
    if colon and " " not in name:
        telling = telling_words(detail)
        return value_in(name, "text", haystack) and (not telling or any(_stands(word, haystack) for word in telling))
    telling = telling_words(value) if " " in value else []
    return bool(telling) and sum(_stands(word, haystack) for word in telling) >= min(2, len(telling))


def _count_stands(value: str, haystack: Haystack) -> bool:
    number, outcome = value.split(" ", 1)
    said = [number, *COUNT_WORDS[int(number) : int(number) + 1]]
    if not any(form in haystack.text for form in said):
        return False
    word = _OUTCOMES.get(outcome, re.escape(outcome))
    exact = rf"(?<![\w.])(?:{'|'.join(said)})(?![\w]|\.\d)"
    after = rf"{exact}(?:/\d{{1,6}})?(?: \w{{1,20}}){{0,3}} {word}"
    before = rf"\b{word}:? ?\(?{exact}"
    return re.search(f"{after}|{before}", haystack.text) is not None


def fact_stands(fact: CensusFact, haystack: Haystack) -> bool:
    """Tell whether a text states a fact of the census."""
    if fact.kind == "error":
        return _error_stands(fact.value, haystack)
    if fact.kind == "test_count":
        return _count_stands(fact.value, haystack)
    if fact.kind == "decision":
        return all(_stands(word, haystack) for word in fact.value.split(" | "))
    if fact.kind == "branch":
        return value_in(fact.value, "path" if "/" in fact.value else "identifier", haystack)
    return value_in(fact.value, fact.kind, haystack)


def census_retention(
    facts: Sequence[CensusFact],
    original: Sequence[Message],
    compressed: Sequence[Message],
    kept: Kept | None = None,
) -> CensusRetention:
    """Count, by kind, the facts that the compression put at risk and those that it kept."""
    kept = kept or Kept(original, compressed)
    retained: list[CensusFact] = []
    lost: list[CensusFact] = []
    for fact in facts:
        if kept.indexes.intersection(fact.messages) or fact_stands(fact, kept.haystack):
            continue
        (retained if fact_stands(fact, kept.own) else lost).append(fact)
    kinds: dict[str, KindCount] = {
        kind: KindCount(
            kept=sum(fact.kind == kind for fact in retained),
            at_risk=sum(fact.kind == kind for fact in (*retained, *lost)),
        )
        for kind in sorted({fact.kind for fact in (*retained, *lost)})
    }
    return CensusRetention(kinds, tuple(retained), tuple(lost))


# What became of each expected fact: kept, lost, used, not used or untested.


class FixtureFacts:
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


def probe_in_session(probe: Probe, facts: FixtureFacts) -> Probe:
    """Return the probe without the facts that its session does not hold: they are nobody's to keep.

    A probe of which nothing is left stays as it is; its controls leave it out of the scores.
    """
    held = [fact for fact in probe.expected_facts if fact.superseded or facts.of(fact)]
    if len(held) == len(probe.expected_facts) or all(fact.superseded for fact in held):
        return probe
    return probe.model_copy(update={"expected_facts": held})


@dataclass(frozen=True)
class StateFacts:
    """The facts that a compressed state holds."""

    state: Haystack
    kept_verbatim: Haystack
    evidence: FixtureFacts
    sign: Callable[[Fact], str] = lambda fact: ""
    """Whether the compressor's own model was shown a fact."""

    def probe(self, probe: Probe, answer: str | None) -> list[FactRecord]:
        """Attribute each required fact of a probe."""
        said = None if answer is None else Haystack.of(answer)
        records = []
        for fact in probe.required:
            kept = holds(fact, self.state)
            records.append(
                FactRecord(
                    label=fact.name,
                    kept=kept,
                    at_risk=not holds(fact, self.kept_verbatim),
                    used=None if said is None else holds(fact, said),
                    evidence=self.evidence.of(fact),
                    paraphrased=not kept and possibly_paraphrased(fact, self.state),
                    shown=self.sign(fact),
                )
            )
        return records
