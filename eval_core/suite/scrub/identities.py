"""Who appears in a session: the list you give, and candidates found where names occur, for you to confirm."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eval_core.base.files import read_text
from eval_core.suite.scrub.detect import context_hits
from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.words import is_common_word, is_generic, is_ordinary


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
        return is_common_word(self.alias) or is_ordinary(self.alias) or self.loose > max(20, 5 * self.marked)


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


class _Harvest:
    """Names found in a session, with where they were found and which of them are one person's."""

    def __init__(self) -> None:
        self.sources: defaultdict[str, set[str]] = defaultdict(set)
        self.marked: Counter[str] = Counter()
        self.spelling: dict[str, str] = {}
        self.links: set[tuple[str, ...]] = set()

    def add(self, alias: str, source: str) -> None:
        """Count a name where only names stand."""
        alias = alias.strip(" .,-'\"")
        if len(alias) >= 2 and not is_generic(alias) and not alias.isdigit():
            self.spelling.setdefault(alias.lower(), alias)
            self.sources[alias.lower()].add(source)
            self.marked[alias.lower()] += 1

    def take(self, text: str, hit: Hit, addresses: list[Hit]) -> None:
        """Take what one hit says about a person."""
        written = text[hit.start : hit.end]
        if hit.rule == "home-folder":
            self.add(written, "home folder")
        elif hit.rule == "email":
            local = local_part(hit.entity)
            self.add(local, "e-mail")
            self.links.add((hit.entity, local))
        elif hit.rule == "author":
            self.add(written, "author")
            self._link_author(written, [one.entity for one in addresses if 0 <= one.start - hit.end <= 3])
        elif hit.rule.startswith(("printed-", "field-")):
            self.add(written, {"user": "account", "host": "host", "name": "full name"}[hit.kind])

    def _link_author(self, name: str, addresses: list[str]) -> None:
        self.links.update((name.lower(), address) for address in addresses)
        parts = [part for part in re.split(r"[ .]", name) if len(part) > 2 and part[0].isupper()]
        for part in (parts[0], parts[-1]) if len(parts) > 1 else ():
            self.add(part, "part of an author's name")
            self.links.add((name.lower(), part.lower()))

    def link_logins(self) -> None:
        """Link logins to the full names that they are made of."""
        logins = [alias for alias in self.sources if " " not in alias and "@" not in alias]
        for name in [alias for alias in self.sources if " " in alias]:
            parts = name.split()
            self.links.update((name, login) for login in logins if _fits(login, parts[0], parts[-1]))


def local_part(address: str) -> str:
    """Return what names somebody in an address: 1234+login@users.noreply..., login+tag@..."""
    return re.sub(r"^\d+\+", "", address.partition("@")[0]).partition("+")[0]


def harvest(pieces: Iterable[tuple[str, str | None]]) -> tuple[list[Candidate], list[tuple[str, ...]]]:
    """Return candidate names and the groups of aliases that belong to one person each.

    `pieces` are the readable pieces of a session with the JSON keys that they stand under.
    """
    found, words = _Harvest(), Counter[str]()
    for text, key in pieces:
        words.update(word.lower() for word in re.findall(r"[\w.\-]+", text))
        hits = context_hits(text, key)
        addresses = [hit for hit in hits if hit.rule == "email"]
        for hit in hits:
            found.take(text, hit, addresses)
    found.link_logins()
    candidates = [
        Candidate(found.spelling[one], tuple(sorted(where)), found.marked[one], max(0, words[one] - found.marked[one]))
        for one, where in sorted(found.sources.items())
    ]
    return candidates, sorted(found.links)


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
