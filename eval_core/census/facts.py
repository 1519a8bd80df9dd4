"""A census of what a session says: typed facts with the places where they stand, the telling ones first."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from eval_core.census.extract import CensusKind, Source, extract, json_keys
from eval_core.facts import normalise
from eval_core.messages import Message, call_arguments, call_name, content_text, decoded, tool_calls

__all__ = ["KIND_LIMITS", "CensusFact", "census"]

KIND_LIMITS: dict[CensusKind, int] = {
    "path": 60,
    "url": 20,
    "host": 15,
    "identifier": 60,
    "hash": 25,
    "version": 20,
    "pr": 20,
    "cron": 10,
    "error": 25,
    "test_count": 10,
    "branch": 12,
    "decision": 20,
}
MESSAGE_LIMIT = 16
_UBIQUITOUS = 0.4  # a value in this share of a long session's messages is found in any summary
_LONG_SESSION = 20
_SOURCES: dict[str, Source] = {
    "user": "user",
    "assistant": "assistant",
    "tool": "output",
    "system": "system",
    "developer": "system",
}


@dataclass(frozen=True, slots=True)
class CensusFact:
    """One value that the session holds."""

    value: str
    kind: CensusKind
    messages: tuple[int, ...]
    salience: float


@dataclass(slots=True)
class _Sighting:
    value: str
    messages: list[int] = field(default_factory=list)
    sources: set[Source] = field(default_factory=set)


def _pieces(message: Message) -> Iterator[tuple[Source, str]]:
    text = decoded(content_text(message))
    if text:
        yield _SOURCES.get(str(message.get("role")), "output"), text
    for call in tool_calls(message):
        yield "arguments", decoded(call_arguments(call))


def _fold_paths(sightings: dict[tuple[CensusKind, str], _Sighting]) -> None:
    """Merge the spellings of one file: a longer path into the shorter one that is its end."""
    paths = {key for kind, key in sightings if kind == "path"}
    for key in sorted(paths, key=lambda key: (-key.count("/"), key)):
        parts = key.split("/")
        for start in range(len(parts) - 2, 0, -1):
            shorter = "/".join(parts[start:])
            if shorter in paths and shorter != key:
                longer = sightings.pop(("path", key))
                target = sightings[("path", shorter)]
                target.messages = sorted({*target.messages, *longer.messages})
                target.sources |= longer.sources
                paths.discard(key)
                break
    named = {key.rsplit("/", 1)[-1] for key in paths if "/" in key}
    for key in paths & named:
        # The bare name of a file whose path is known adds nothing of its own.
        del sightings[("path", key)]


def _fold_hashes(sightings: dict[tuple[CensusKind, str], _Sighting]) -> None:
    """Merge the abbreviated and the full form of one hash."""
    hashes = sorted(key for kind, key in sightings if kind == "hash")
    for shorter, longer in pairwise(hashes):
        if longer.startswith(shorter):
            target, other = sightings.pop(("hash", shorter)), sightings[("hash", longer)]
            other.messages = sorted({*target.messages, *other.messages})
            other.sources |= target.sources
            other.value = target.value


def _salience(kind: CensusKind, sighting: _Sighting) -> float:
    score = math.log2(1 + len(sighting.messages))
    score += 2.0 * ("arguments" in sighting.sources) + 2.5 * ("user" in sighting.sources)
    score += 1.0 * ("assistant" in sighting.sources)
    if sighting.messages[-1] - sighting.messages[0] > 2:
        score += 1.0  # referred to again after its own call and answer
    if kind in ("decision", "cron", "branch", "pr"):
        score += 1.0
    if kind == "identifier" and sighting.value.startswith("test_"):
        score -= 1.5  # a test's name is seldom what the work is about
    return round(score, 4)


def _sightings(messages: Sequence[Message]) -> dict[tuple[CensusKind, str], _Sighting]:
    found: dict[tuple[CensusKind, str], _Sighting] = {}
    form = {normalise(call_name(call)) for message in messages for call in tool_calls(message)}
    counts: dict[str, str] = {}
    for index, message in enumerate(messages):
        for source, text in _pieces(message):
            if source in ("arguments", "output"):
                form |= {key.lower() for key in json_keys(text)}
            for kind, value in extract(text, source):
                key = normalise(value).rpartition("://")[2] if kind == "url" else normalise(value)
                sighting = found.setdefault((kind, key), _Sighting(value))
                if not sighting.messages or sighting.messages[-1] != index:
                    sighting.messages.append(index)
                sighting.sources.add(source)
                if kind == "test_count":
                    counts[key.split()[-1]] = key
    for kind, key in list(found):
        single = len(found[kind, key].messages) == 1
        # A field's name, a name read once in some output, or an overtaken test count: not what the session is about.
        if (
            kind == "identifier" and (key in form or (single and found[kind, key].sources <= {"output", "system"}))
        ) or (kind == "test_count" and single and key not in counts.values()):
            del found[kind, key]
    _fold_paths(found)
    _fold_hashes(found)
    return found


def census(messages: Sequence[Message]) -> tuple[CensusFact, ...]:
    """Return the session's facts, most salient first, within the limits per kind and per message."""
    frequent = max(_LONG_SESSION * _UBIQUITOUS, len(messages) * _UBIQUITOUS)
    facts = [
        CensusFact(sighting.value, kind, tuple(sighting.messages), _salience(kind, sighting))
        for (kind, _), sighting in _sightings(messages).items()
        if len(sighting.messages) <= frequent
    ]
    facts.sort(key=lambda fact: (-fact.salience, fact.messages[0], fact.kind, fact.value))
    by_kind: Counter[str] = Counter()
    by_message: defaultdict[int, int] = defaultdict(int)
    chosen = []
    for fact in facts:
        if by_kind[fact.kind] < KIND_LIMITS[fact.kind] and by_message[fact.messages[0]] < MESSAGE_LIMIT:
            by_kind[fact.kind] += 1
            by_message[fact.messages[0]] += 1
            chosen.append(fact)
    return tuple(chosen)
