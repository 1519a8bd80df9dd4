"""Who appears in a session: the list you give, and candidates found where names occur, for you to confirm."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eval_core.base.files import read_text
from eval_core.suite.scrub.detect import context_hits
from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.ordinary_words import is_common_word, is_generic

__all__ = ["Candidate", "Identities", "harvest", "identity_pattern", "identity_words", "load_identities"]


@dataclass(frozen=True)
class Candidate:
    """A name that may be somebody's, with what speaks for and against it."""

    alias: str
    sources: tuple[str, ...]
    marked: int
    """How often it stands where only names stand."""
    loose: int
    """How often it stands elsewhere, as a word."""

    @property
    def doubtful(self) -> bool:
        """Whether it is more likely an ordinary word or a product: never taken without being confirmed."""
        return is_common_word(self.alias) or self.loose > max(20, 5 * self.marked)


@dataclass
class Identities:
    """The names to take out wherever they stand, grouped by person, and the words to leave alone."""

    groups: list[tuple[str, ...]] = field(default_factory=list)
    spared: set[str] = field(default_factory=set)

    @property
    def aliases(self) -> list[str]:
        """All names, longest first."""
        names = {alias for group in self.groups for alias in group if alias.lower() not in self.spared}
        return sorted(names, key=lambda alias: (-len(alias), alias.lower()))

    def unspared(self, hits: Iterable[Hit], text: str) -> Iterator[Hit]:
        """Leave out words that the user said are no names; a home folder or an address is somebody's all the same."""
        for hit in hits:
            read_off = hit.rule.startswith(("printed-", "field-", "weak-field-"))
            if not read_off or text[hit.start : hit.end].lower() not in self.spared:
                yield hit


def load_identities(path: Path) -> Identities:
    """Read the user's list: one person a line, aliases after commas, `!word` to leave a word alone."""
    known = Identities()
    for line in read_text(path).splitlines():
        line = line.split("#", 1)[0].strip()
        if line.startswith("!"):
            known.spared.update(word.strip().lower() for word in line[1:].split(",") if word.strip())
        elif line:
            known.groups.append(tuple(alias.strip() for alias in line.split(",") if alias.strip()))
    return known


def _fits(login: str, first: str, last: str) -> bool:
    login = re.sub(r"[._\-\d]", "", login.lower())
    first, last = first.lower(), last.lower()
    return login in (first, last, first + last, last + first, first[:1] + last, first + last[:1], last + first[:1])


def harvest(pieces: Iterable[tuple[str, str | None]]) -> tuple[list[Candidate], list[tuple[str, ...]]]:
    """Return candidate names and the groups of aliases that belong to one person each.

    `pieces` are the readable pieces of a session with the JSON keys that they stand under.
    """
    sources: defaultdict[str, set[str]] = defaultdict(set)
    marked: Counter[str] = Counter()
    spelling: dict[str, str] = {}
    links: set[tuple[str, ...]] = set()
    words: Counter[str] = Counter()

    def add(alias: str, source: str) -> None:
        alias = alias.strip(" .,-'\"")
        if len(alias) < 2 or is_generic(alias) or alias.isdigit():
            return
        spelling.setdefault(alias.lower(), alias)
        sources[alias.lower()].add(source)
        marked[alias.lower()] += 1

    for text, key in pieces:
        words.update(word.lower() for word in re.findall(r"[\w.\-]+", text))
        found = context_hits(text, key)
        addresses = [hit for hit in found if hit.rule == "email"]
        for hit in found:
            written = text[hit.start : hit.end]
            if hit.rule == "home-folder":
                add(written, "home folder")
            elif hit.rule == "email":
                local = re.sub(r"^\d+\+", "", hit.entity.partition("@")[0]).partition("+")[
                    0
                ]  # 1234+login@users.noreply
                add(local, "e-mail")
                links.add((hit.entity, local))
            elif hit.rule == "author":
                _author(text, hit, addresses, add, links)
            elif hit.rule.startswith(("printed-", "field-")):
                add(written, {"user": "account", "host": "host", "name": "full name"}[hit.kind])
    names = [alias for alias in sources if " " in alias]
    for name in names:
        parts = name.split()
        for login in [alias for alias in sources if " " not in alias and "@" not in alias]:
            if _fits(login, parts[0], parts[-1]):
                links.add((name, login))
    candidates = [
        Candidate(spelling[key], tuple(sorted(sources[key])), marked[key], max(0, words[key] - marked[key]))
        for key in sorted(sources)
    ]
    return candidates, sorted(links)


def _author(
    text: str, hit: Hit, addresses: list[Hit], add: Callable[[str, str], None], links: set[tuple[str, ...]]
) -> None:
    name = text[hit.start : hit.end]
    add(name, "author")
    for address in addresses:
        if 0 <= address.start - hit.end <= 3:
            links.add((name.lower(), address.entity))
    parts = [part for part in re.split(r"[ .]", name) if len(part) > 2 and part[0].isupper()]
    if len(parts) > 1:
        for part in (parts[0], parts[-1]):
            add(part, "part of an author's name")
            links.add((name.lower(), part.lower()))


def identity_words(text: str, pattern: re.Pattern[str] | None) -> Iterator[Hit]:
    """Find confirmed names where nothing but the list tells that they are names."""
    if pattern is None:
        return
    for match in pattern.finditer(text):
        found = match.group()
        written = " " in found or (found[0].isupper() and not found.isupper())
        kind = "email" if "@" in found else "name" if written else "user"
        yield Hit(match.start(), match.end(), "identity", kind, found.lower())


def identity_pattern(identities: Identities) -> re.Pattern[str] | None:
    """Compile the list; short names need an edge, long ones are found inside words too."""
    parts = []
    for alias in identities.aliases:
        body = r"[\s._\-]?".join(re.escape(word) for word in alias.split())
        if " " in alias or "@" in alias:
            parts.append(rf"(?<![A-Za-z0-9])(?i:{body})(?![A-Za-z0-9])")
        elif alias[0].isupper() and alias.isalpha() and alias.isascii():
            # Written as a name it is matched as a name: "Baker" must not take "baker".
            parts.append(rf"(?<![A-Z])(?:{body}|{re.escape(alias.upper())})(?![a-z])")
        elif len(alias) >= 6 or not alias.isascii():
            parts.append(rf"(?i:{body})")
        else:
            parts.append(rf"(?<![A-Za-z])(?i:{body})(?![a-z])")
    return re.compile("|".join(parts)) if parts else None
