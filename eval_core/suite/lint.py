"""Lint for probe banks: facts that are missing, too common, given away or answered by the verbatim tail."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from eval_core.base.messages import full_text
from eval_core.base.numbers import counted
from eval_core.domain.fixture import Fixture
from eval_core.domain.obey_probe import ActionProbe, session_tools
from eval_core.domain.probe import PROBE_TYPES, Fact, Probe, ProbeBank
from eval_core.facts.fact_text import Haystack, normalise
from eval_core.facts.haystack import holds

# Where in a fixture a fact stands.

_MAX_EVIDENCE = 12  # a value named in half the session is not better established by listing it all


@dataclass(frozen=True)
class Places:
    """A fixture's messages, prepared once for looking facts up."""

    fixture: Fixture

    @cached_property
    def haystacks(self) -> Sequence[Haystack]:
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


# Values so common, and patterns so loose, that finding them says nothing.

_COMMON = re.compile(
    r"(?:yes|no|not|none|null|nil|true|false|correct|incorrect|wrong|right|done|fixed|error|errors|failed|passed|success"
    r"|file|files|test|tests|code|user|name|value|data|the|and|all|new|old|main|master|branch|commit|bug|issue|python"
    r"|git|okay|json|config|src|path|line|function|class|message|session|todo|pending|completed)"
)
_MIN_WIDTH = 3
_EVERYDAY = ("yes", "no", "3", "ok", "it is done", "all tests pass", "see above")
_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*[+*}](?:[^()\\]|\\.)*\)(?:[+*]|\{\d*,)")


def _width(value: str) -> int:
    """Return how much a value says; a CJK character says as much as several letters."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in value if not char.isspace())


def _value_reason(value: str) -> str | None:
    plain = normalise(value).strip(" .,:;!?'\"")
    if _width(plain) < _MIN_WIDTH:
        return "it is shorter than three characters"
    return "it is an everyday word" if _COMMON.fullmatch(plain) else None


def common_reason(fact: Fact) -> str | None:
    """Say why a fact is too common to be worth finding, or return None."""
    if fact.regex is not None:
        loose = [text for text in _EVERYDAY if re.search(fact.regex, text, re.IGNORECASE)]
        return f"the pattern matches {loose[0]!r}" if loose else None
    reasons = [_value_reason(value) for value in fact.values]
    if fact.all is not None and not all(reasons):
        return None  # its other parts make it rare
    return next((reason for reason in reasons if reason), None)


def slow_regex(pattern: str) -> bool:
    """Tell whether a pattern repeats something that is itself repeated, which can take exponential time."""
    return _NESTED_REPEAT.search(pattern) is not None


# What an author may have meant by a value that stands nowhere in the session.

_TOKEN = re.compile(r"[^\s\"'`,;()\[\]{}<>|=]{3,80}")
_CLOSE = 0.72


def _trigrams(word: str) -> set[str]:
    return {word[at : at + 3] for at in range(len(word) - 2)}


def _candidates(value: str, texts: Iterable[str]) -> list[str]:
    words = len(value.split())
    found: dict[str, None] = {}
    for text in texts:
        tokens = [token.rstrip(".:!?") for token in _TOKEN.findall(text)]
        if words == 1:
            found.update(dict.fromkeys(tokens))
        else:
            found.update(dict.fromkeys(" ".join(tokens[at : at + words]) for at in range(len(tokens) - words + 1)))
    return list(found)


def did_you_mean(value: str, texts: Iterable[str]) -> str | None:
    """Return the nearest thing that the texts do say, or None; only a hint for people, never a match."""
    wanted = _trigrams(value.lower())
    near = [
        candidate
        for candidate in _candidates(value, texts)
        if abs(len(candidate) - len(value)) <= max(3, len(value) // 2)
        and len(wanted & _trigrams(candidate.lower())) * 3 >= len(wanted)
    ]
    # What reads the same would only tell the author to write what is written already.
    by_lower = {candidate.lower(): candidate for candidate in near if normalise(candidate) != normalise(value)}
    best = difflib.get_close_matches(value.lower(), list(by_lower), n=1, cutoff=_CLOSE)
    return by_lower[best[0]] if best else None


# The list of all probes, so that one taken away shows up in review.


def manifest(banks: Iterable[ProbeBank]) -> list[str]:
    """Return every probe as "fixture/probe", sorted."""
    return sorted(f"{bank.fixture}/{probe.id}" for bank in banks for probe in bank.probes)


# What makes a probe bank measure less than it seems to, each with what to do about it.

EDGE_HEAD, EDGE_TAIL = 3, 5  # what nearly every compressor keeps as it is
MIN_PROBES, MAX_PROBES = 8, 12
_LEVELS = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One thing to be said of a bank."""

    level: Literal["error", "warning", "note"]
    """An error makes the bank measure something wrong, a warning less than it could; a note changes nothing."""
    probe: str | None
    rule: str
    message: str


def grouped(findings: Iterable[LintFinding], where: str, most: int | None) -> Iterator[str]:
    """Yield the lines that tell findings by rule; of a rule with many only the first few, unless all are wanted."""
    by_rule: dict[tuple[str, str], list[LintFinding]] = {}
    for finding in findings:
        by_rule.setdefault((finding.level, finding.rule), []).append(finding)
    for (level, rule), group in sorted(by_rule.items(), key=lambda item: _LEVELS.index(item[0][0])):
        lead = "" if level == "error" else f"{level}: "
        if most is None or len(group) <= most:
            for finding in group:
                place = f"{where}: {finding.probe}" if finding.probe else where
                yield f"{place}: {lead}{finding.message} [{rule}]"
        else:
            probes = len({finding.probe for finding in group})
            yield f"{where}: {lead}{len(group)} findings in {counted(probes, 'probe')} [{rule}], among them:"
            yield from (f"  {finding.probe}: {finding.message}" for finding in group[:most])
            yield f"  and {len(group) - most} more; --all lists them"


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


def _absence(probe: Probe, fact: Fact, session: _Session) -> Iterator[LintFinding]:
    for value in session.places.missing(fact):
        if fact.regex is not None:
            advice = "correct the pattern"
        else:
            near = did_you_mean(value, (haystack.source for haystack in session.places.haystacks))
            within = any(normalise(value) in haystack.text for haystack in session.places.haystacks)
            advice = (
                f"did you mean {near!r}?"
                if near
                else "it only appears inside something longer; quote all of that"
                if within
                else "quote a value from a message"
            )
        rule = "superseded-not-in-fixture" if fact.superseded else "not-in-fixture"
        what = "superseded value" if fact.superseded else "fact"
        yield LintFinding("error", probe.id, rule, f"{what} {value!r} is in no message of the fixture; {advice}")


def _evidence(probe: Probe, fact: Fact, session: _Session) -> Iterator[LintFinding]:
    if fact.evidence is None:
        yield LintFinding(
            "warning", probe.id, "evidence-missing", f"fact {fact.label!r} names no evidence; run lint with --fill"
        )
        return
    outside = [index for index in fact.evidence if not 0 <= index < session.length]
    if outside:
        message = (
            f"fact {fact.label!r}: evidence {_numbers(outside)} is out of range; messages are 0 to {session.length - 1}"
        )
        yield LintFinding("error", probe.id, "evidence-range", message)
        return
    found = session.places.of(fact)
    wrong = [index for index in fact.evidence if index not in found]
    if found and wrong:
        where = f"it is in {_numbers(found)}"
        if len(wrong) == len(fact.evidence):
            message = f"fact {fact.label!r} is not in its evidence, {_numbers(wrong)}; {where}"
            yield LintFinding("error", probe.id, "evidence-wrong", message)
        else:
            message = f"fact {fact.label!r} is not in message {_numbers(wrong)} of its evidence; {where}"
            yield LintFinding("warning", probe.id, "evidence-partly-wrong", message)


def _worth(probe: Probe, fact: Fact, session: _Session) -> Iterator[LintFinding]:
    """Check that stating the fact tells something."""
    if fact.regex is not None and slow_regex(fact.regex):
        message = f"regex {fact.regex!r} repeats a repetition and can take forever; write it without nested + or *"
        yield LintFinding("error", probe.id, "slow-regex", message)
        return
    reason = common_reason(fact)
    share = len(session.places.of(fact))
    if reason is None and session.length >= 10 and share > session.length / 2:
        reason = f"it is in {share} of {session.length} messages"
    if reason is not None:
        message = f"fact {fact.label!r} matches almost anything ({reason}); use a longer, rarer value"
        yield LintFinding("error", probe.id, "too-common", message)
        return
    if holds(fact, Haystack.of(probe.question)):
        message = f"fact {fact.label!r} is given away by the question; ask without naming it"
        yield LintFinding("error", probe.id, "given-away", message)
    elsewhere = sorted(name for name, haystack in session.others.items() if holds(fact, haystack))
    if elsewhere:
        where = ", ".join(elsewhere)
        message = f"fact {fact.label!r} is also in fixture {where}, so it does not tell the two sessions apart"
        yield LintFinding("note", probe.id, "in-other-fixture", message)


def _region(probe: Probe, session: _Session) -> Iterator[LintFinding]:
    """Check that the probe's facts lie where a compression puts them at risk."""
    stands = [session.places.of(fact) for fact in probe.required]
    if not all(stands):
        return
    at_edge = all(session.edges.issuperset(indexes) for indexes in stands)
    if at_edge and probe.kept_verbatim is None:
        message = (
            f"its facts are only in the first {EDGE_HEAD} or last {EDGE_TAIL} messages, which compressors keep "
            "as they are; ask about the middle, or say in kept_verbatim why this is wanted"
        )
        yield LintFinding("error", probe.id, "edge-only", message)
    if not at_edge and probe.kept_verbatim is not None:
        message = "kept_verbatim is given, but its facts are in the middle of the session; remove the field"
        yield LintFinding("warning", probe.id, "kept-verbatim-needless", message)
    if session.verbatim and probe.kept_verbatim is None and all(session.verbatim & set(places) for places in stands):
        message = "all its facts are in messages that the compressor under test keeps verbatim; it measures nothing"
        yield LintFinding("warning", probe.id, "kept-by-target", message)


def _supersession(probe: Probe, session: _Session) -> Iterator[LintFinding]:
    for fact in probe.superseded:
        before = session.places.of(fact)
        firsts = [places[0] for required in probe.required if (places := session.places.of(required))]
        if before and firsts and max(firsts) < before[0]:
            message = (
                f"superseded value {fact.not_!r} first appears in message {before[0]}, after what should replace it "
                f"({max(firsts)}); check which of them is current"
            )
            yield LintFinding("warning", probe.id, "superseded-order", message)


def _bank(bank: ProbeBank, fixture: Fixture) -> Iterator[LintFinding]:
    if bank.fixture != fixture.name:
        message = (
            f'the bank is for fixture {bank.fixture!r}, but was checked against {fixture.name!r}; correct "fixture"'
        )
        yield LintFinding("error", None, "wrong-fixture", message)
    for kind in PROBE_TYPES:
        if all(probe.type != kind for probe in bank.probes):
            yield LintFinding("error", None, "type-missing", f"no probe of type {kind!r}; add one")
    if not MIN_PROBES <= len(bank.probes) <= MAX_PROBES:
        message = f"{len(bank.probes)} probes; between {MIN_PROBES} and {MAX_PROBES} measure well at a fair price"
        yield LintFinding("warning", None, "probe-count", message)
    kept = [probe.id for probe in bank.probes if probe.kept_verbatim is not None]
    if len(kept) > 1:
        message = f"kept_verbatim is used by {', '.join(kept)}; one such probe a bank is enough"
        yield LintFinding("error", None, "kept-verbatim-twice", message)


def _actions(bank: ProbeBank, fixture: Fixture) -> Iterator[LintFinding]:
    """Check that an action can be made, and that only the session tells which."""
    tools = session_tools(fixture.messages)
    for probe in bank.obeys:
        if not isinstance(probe, ActionProbe):
            continue
        for tool in probe.tools:
            if tool not in tools:
                message = f"the session calls no tool {tool!r}; name one of {', '.join(tools)}"
                yield LintFinding("error", probe.id, "unknown-tool", message)
        for pattern in (*probe.must, *probe.must_not):
            if slow_regex(pattern):
                message = (
                    f"pattern {pattern!r} repeats a repetition and can take forever; write it without nested + or *"
                )
                yield LintFinding("error", probe.id, "slow-regex", message)
        if probe.must and all(re.search(pattern, probe.instruction, re.IGNORECASE) for pattern in probe.must):
            message = "the instruction gives away all that the call must hold; ask without naming it"
            yield LintFinding("error", probe.id, "given-away", message)


def lint(
    bank: ProbeBank,
    fixture: Fixture,
    *,
    others: Mapping[str, Fixture] | None = None,
    verbatim: frozenset[int] | None = None,
) -> list[LintFinding]:
    """Return everything to be said of a bank, in its order; `others` are fixtures whose facts it may share."""
    texts = {
        name: Haystack.of_messages(other.messages) for name, other in (others or {}).items() if name != fixture.name
    }
    session = _Session(Places(fixture), texts, verbatim)
    findings = list(_bank(bank, fixture))
    for probe in bank.probes:
        if probe.draft:
            message = 'is a draft; read it, correct it and remove "draft"'
            findings.append(LintFinding("error", probe.id, "draft", message))
        for fact in probe.expected_facts:
            findings.extend(_absence(probe, fact, session))
            findings.extend(_evidence(probe, fact, session))
            if not fact.superseded:
                findings.extend(_worth(probe, fact, session))
        findings.extend(_region(probe, session))
        findings.extend(_supersession(probe, session))
    return [*findings, *_actions(bank, fixture)]
