"""Lines that carry more than their text: decisions with a reason, values that replace others, resolved blockers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

_MARKS = re.compile(r"\s*\((?P<marks>(?:because|replaces): [^\n]*)\)\s*$")
_MARK = re.compile(r"(?:^|; )(?P<name>because|replaces): (?P<value>.*?)(?=; (?:because|replaces): |$)")
_WORD = re.compile(r"\w+")
_NAMED = re.compile(r"^(?P<name>[^:\n]{1,60}): (?P<value>\S.*)$", re.DOTALL)
_RESOLVED = re.compile(r"^(?:resolved|fixed|done)\s*:\s*", re.IGNORECASE)
_EVENTS = ("did", "failed", "user", "note")
"""What looks like a name and tells of something that happened."""
_ENOUGH = 0.6
"""The share of the shorter text's words that must be in the longer one for both to speak of the same thing."""


@dataclass(frozen=True)
class Decision:
    """What was decided, why, and what it took the place of."""

    what: str
    rationale: str = ""
    replaces: str = ""

    @classmethod
    def parse(cls, line: str) -> Decision:
        """Read `what (because: why; replaces: old)`; a line without marks is all what."""
        found = _MARKS.search(line)
        if not found or not line[: found.start()].strip():
            return cls(line)
        marks = {mark["name"]: mark["value"].strip() for mark in _MARK.finditer(found["marks"])}
        return cls(line[: found.start()], marks.get("because", ""), marks.get("replaces", ""))

    def line(self) -> str:
        """Write it as it is read."""
        marks = [f"because: {self.rationale}"] * bool(self.rationale) + [f"replaces: {self.replaces}"] * bool(
            self.replaces
        )
        return f"{self.what} ({'; '.join(marks)})" if marks else self.what


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def same_subject(one: str, other: str) -> bool:
    """Say whether two texts speak of the same thing: most words of the shorter are in the longer."""
    shorter, longer = sorted((_words(one), _words(other)), key=len)
    return bool(shorter) and len(shorter & longer) / len(shorter) >= _ENOUGH


def _replaced(old: str, replaces: str) -> bool:
    return bool(replaces) and same_subject(old, replaces)


def extend_decisions(old: list[Decision], news: list[Decision]) -> list[Decision]:
    """Add decisions; one that names what it replaces takes its place, one said again keeps its first reason."""
    kept = list(old)
    for decision in news:
        again = next((item for item in kept if item.what == decision.what), None)
        if again is not None:
            reason = decision.rationale or again.rationale
            kept[kept.index(again)] = replace(decision, rationale=reason, replaces=decision.replaces or again.replaces)
            continue
        kept = [item for item in kept if not _replaced(item.what, decision.replaces)]
        kept.append(decision)
    return kept


def _name(line: str) -> str:
    """Return the name of a `name: value` line in lower case, or nothing."""
    found = _NAMED.match(line)
    name = found["name"].strip().lower() if found else ""
    return "" if name in _EVENTS else name


def extend_values(old: list[str], news: list[str]) -> list[str]:
    """Add lines of state; `name: value` takes the place of that name's earlier value, and a mark of what it names."""
    kept = list(old)
    # A name that is used for several lines at once names no single value.
    counts = [Counter(map(_name, lines)) for lines in (old, news)]
    for line in news:
        marked, name = Decision.parse(line), _name(line)
        if name and all(count[name] <= 1 for count in counts):
            kept = [item for item in kept if _name(item) != name]
        kept = [item for item in kept if item != line and not _replaced(item, marked.replaces)]
        kept.append(line)
    return kept


def extend_blockers(old: list[str], news: list[str]) -> list[str]:
    """Add blockers; `resolved: text` takes the one that it speaks of away."""
    kept = list(old)
    for line in news:
        if _RESOLVED.match(line):
            gone = _RESOLVED.sub("", line)
            kept = [item for item in kept if not same_subject(item, gone)]
        elif line not in kept:
            kept.append(line)
    return kept
