"""What makes a probe bank measure less than it seems to, each with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from eval_core.facts import Haystack, holds
from eval_core.fixture.schema import Fixture
from eval_core.messages import full_text
from eval_core.probe.commonplace import common_reason, slow_regex
from eval_core.probe.evidence import Places, fill_evidence
from eval_core.probe.hint import did_you_mean
from eval_core.probe.schema import PROBE_TYPES, Fact, Probe, ProbeBank

__all__ = ["EDGE_HEAD", "EDGE_TAIL", "MAX_PROBES", "MIN_PROBES", "Finding", "fill_evidence", "lint"]

EDGE_HEAD, EDGE_TAIL = 3, 5  # what nearly every compressor keeps as it is
MIN_PROBES, MAX_PROBES = 8, 12


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with a bank."""

    level: Literal["error", "warning"]
    probe: str | None
    rule: str
    message: str


@dataclass(frozen=True)
class _Session:
    places: Places
    others: Mapping[str, Haystack]
    verbatim: frozenset[int] | None

    @property
    def length(self) -> int:
        return len(self.places.fixture.messages)

    @property
    def edges(self) -> frozenset[int]:
        return frozenset(range(min(EDGE_HEAD, self.length))) | frozenset(
            range(max(0, self.length - EDGE_TAIL), self.length)
        )


def _numbers(indexes: list[int]) -> str:
    shown = ", ".join(map(str, indexes[:6]))
    return shown + (", ..." if len(indexes) > 6 else "")


def _absence(probe: Probe, fact: Fact, session: _Session) -> Iterator[Finding]:
    for value in session.places.missing(fact):
        if fact.regex is not None:
            advice = "correct the pattern"
        else:
            near = did_you_mean(value, (haystack.source for haystack in session.places.haystacks))
            advice = f"did you mean {near!r}?" if near else "quote a value from a message"
        rule = "superseded-not-in-fixture" if fact.superseded else "not-in-fixture"
        what = "superseded value" if fact.superseded else "fact"
        yield Finding("error", probe.id, rule, f"{what} {value!r} stands in no message of the fixture; {advice}")


def _evidence(probe: Probe, fact: Fact, session: _Session) -> Iterator[Finding]:
    if fact.evidence is None:
        yield Finding(
            "warning", probe.id, "evidence-missing", f"fact {fact.label!r} names no evidence; run lint with --fill"
        )
        return
    outside = [index for index in fact.evidence if not 0 <= index < session.length]
    if outside:
        message = (
            f"fact {fact.label!r}: evidence {_numbers(outside)} is out of range; messages are 0 to {session.length - 1}"
        )
        yield Finding("error", probe.id, "evidence-range", message)
        return
    found = session.places.of(fact)
    wrong = [index for index in fact.evidence if index not in found]
    if found and wrong:
        where = f"it stands in {_numbers(found)}"
        if len(wrong) == len(fact.evidence):
            message = f"fact {fact.label!r} does not stand in its evidence, {_numbers(wrong)}; {where}"
            yield Finding("error", probe.id, "evidence-wrong", message)
        else:
            message = f"fact {fact.label!r} does not stand in message {_numbers(wrong)} of its evidence; {where}"
            yield Finding("warning", probe.id, "evidence-partly-wrong", message)


def _worth(probe: Probe, fact: Fact, session: _Session) -> Iterator[Finding]:
    """Check that stating the fact tells something."""
    if fact.regex is not None and slow_regex(fact.regex):
        message = f"regex {fact.regex!r} repeats a repetition and can take forever; write it without nested + or *"
        yield Finding("error", probe.id, "slow-regex", message)
        return
    reason = common_reason(fact)
    share = len(session.places.of(fact))
    if reason is None and session.length >= 10 and share > session.length / 2:
        reason = f"it stands in {share} of {session.length} messages"
    if reason is not None:
        message = f"fact {fact.label!r} matches almost anything ({reason}); use a longer, rarer value"
        yield Finding("error", probe.id, "too-common", message)
        return
    if holds(fact, Haystack.of(probe.question)):
        message = f"fact {fact.label!r} is given away by the question; ask without naming it"
        yield Finding("error", probe.id, "given-away", message)
    elsewhere = sorted(name for name, haystack in session.others.items() if holds(fact, haystack))
    if elsewhere:
        where = ", ".join(elsewhere)
        message = f"fact {fact.label!r} also stands in fixture {where}; choose one that only this session has"
        yield Finding("error", probe.id, "in-other-fixture", message)


def _region(probe: Probe, session: _Session) -> Iterator[Finding]:
    """Check that the probe's facts lie where a compression puts them at risk."""
    stands = [session.places.of(fact) for fact in probe.required]
    if not all(stands):
        return
    at_edge = all(session.edges.issuperset(indexes) for indexes in stands)
    if at_edge and probe.kept_verbatim is None:
        message = (
            f"its facts stand only in the first {EDGE_HEAD} or last {EDGE_TAIL} messages, which compressors keep "
            "as they are; ask about the middle, or say in kept_verbatim why this is wanted"
        )
        yield Finding("error", probe.id, "edge-only", message)
    if not at_edge and probe.kept_verbatim is not None:
        message = "kept_verbatim is given, but its facts stand in the middle of the session; remove the field"
        yield Finding("warning", probe.id, "kept-verbatim-needless", message)
    if session.verbatim and probe.kept_verbatim is None and all(session.verbatim & set(places) for places in stands):
        message = "all its facts stand in messages that the compressor under test keeps verbatim; it measures nothing"
        yield Finding("warning", probe.id, "kept-by-target", message)


def _supersession(probe: Probe, session: _Session) -> Iterator[Finding]:
    for fact in probe.superseded:
        before = session.places.of(fact)
        firsts = [places[0] for required in probe.required if (places := session.places.of(required))]
        if before and firsts and max(firsts) < before[0]:
            message = (
                f"superseded value {fact.not_!r} first stands in message {before[0]}, after what is said to replace it "
                f"({max(firsts)}); check which of them is current"
            )
            yield Finding("warning", probe.id, "superseded-order", message)


def _bank(bank: ProbeBank, fixture: Fixture) -> Iterator[Finding]:
    if bank.fixture != fixture.name:
        message = (
            f'the bank is for fixture {bank.fixture!r}, but was checked against {fixture.name!r}; correct "fixture"'
        )
        yield Finding("error", None, "wrong-fixture", message)
    for kind in PROBE_TYPES:
        if all(probe.type != kind for probe in bank.probes):
            yield Finding("error", None, "type-missing", f"no probe of type {kind!r}; add one")
    if not MIN_PROBES <= len(bank.probes) <= MAX_PROBES:
        message = f"{len(bank.probes)} probes; between {MIN_PROBES} and {MAX_PROBES} measure well at a fair price"
        yield Finding("warning", None, "probe-count", message)
    kept = [probe.id for probe in bank.probes if probe.kept_verbatim is not None]
    if len(kept) > 1:
        message = f"kept_verbatim is used by {', '.join(kept)}; one such probe a bank is enough"
        yield Finding("error", None, "kept-verbatim-twice", message)


def lint(
    bank: ProbeBank,
    fixture: Fixture,
    *,
    others: Mapping[str, Fixture] | None = None,
    verbatim: frozenset[int] | None = None,
) -> list[Finding]:
    """Return everything wrong with a bank, in its order; `others` are the fixtures its facts must not match."""
    texts = {
        name: Haystack.of_all(full_text(message) for message in other.messages)
        for name, other in (others or {}).items()
        if name != fixture.name
    }
    session = _Session(Places(fixture), texts, verbatim)
    findings = list(_bank(bank, fixture))
    for probe in bank.probes:
        if probe.draft:
            message = 'is a draft; read it, correct it and remove "draft"'
            findings.append(Finding("error", probe.id, "draft", message))
        for fact in probe.expected_facts:
            findings.extend(_absence(probe, fact, session))
            findings.extend(_evidence(probe, fact, session))
            if not fact.superseded:
                findings.extend(_worth(probe, fact, session))
        findings.extend(_region(probe, session))
        findings.extend(_supersession(probe, session))
    return findings
