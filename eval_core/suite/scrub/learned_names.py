"""Names learned from the session itself: seen once where only names occur, then removed everywhere."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.words import (
    is_common_word,
    is_foreign_word,
    is_given_name,
    is_ordinary,
    is_surname,
    is_technical,
)

_MIN_LENGTH = 4
_LOOSE, _OFTEN = 20, 5  # a word that stands elsewhere more than 20 times, and 5 times as often as a name, is none
_SENTENCE = re.compile(r"(?:\A|\n|[.!?:] )[ \t\"'(*#>-]*\Z")
_ISSUE = re.compile(r"-\d{1,6}(?!\d)")
# Scripts that set no space between words: a name is found in the middle of a run of letters.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{2,}")


@dataclass(frozen=True)
class _Alias:
    kind: str
    entity: str
    exact: bool = False
    """Whether the spelling matters: "Baker" is a name where "baker" is a trade."""
    rule: str = "learned"


def _plain(word: str) -> str:
    """Return a word as logins spell it, without accents."""
    return unicodedata.normalize("NFKD", word).encode("ascii", "ignore").decode()


def _forms(hit: Hit, spelling: str) -> Iterator[tuple[str, _Alias]]:
    """Yield how one learned name may be written elsewhere."""
    if hit.kind == "name" and " " not in spelling and (is_ordinary(spelling) or is_foreign_word(spelling)):
        # A word that a column of names holds is a name there; elsewhere only one that many people have, as written.
        if is_given_name(spelling) or is_surname(spelling):
            yield spelling, _Alias("name", hit.entity, exact=True, rule=hit.rule)
        return
    yield spelling.lower(), _Alias(hit.kind, hit.entity, rule=hit.rule)
    short = spelling.partition(".")[0].lower()
    if hit.kind == "host" and "." in spelling and not (is_ordinary(short) or is_technical(short)):
        yield short, _Alias("host", hit.entity)  # not every ledger is ledger.acme.dev
    words = spelling.replace(",", " ").split()
    if hit.kind == "name" and len(words) > 1:
        yield from _forms_of_person(hit, [*words[1:], words[0]] if "," in spelling else words)


def _forms_of_person(hit: Hit, words: list[str]) -> Iterator[tuple[str, _Alias]]:
    first, last = words[0], words[-1]
    for form in (f"{first} {last}", f"{last}, {first}", f"{first[0]}. {last}"):
        yield form.lower(), _Alias("name", hit.entity)
    for login in _logins(_plain(first), _plain(last)):
        if not is_ordinary(login):  # D. One is not who is meant by "done"
            yield login.lower(), _Alias("user", hit.entity)
    for part in words:
        short = len(part) == _MIN_LENGTH - 1 or (not part.isascii() and len(part) > 1)
        if len(part) >= _MIN_LENGTH or (short and not is_ordinary(part) and not part.islower()):
            yield part, _Alias("name", hit.entity, exact=True)


def _logins(one: str, two: str) -> Iterator[str]:
    yield from (f"{one}{joint}{two}" for joint in (".", "_", "-", ""))
    yield from (one[:1] + two, two + one[:1], f"{two}.{one}", f"{one}.{two[:1]}", one + two[:1])


def written_from_address(local: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the logins that `first.last`, the local part of an address, stands for, with their kinds."""
    parts = re.fullmatch(r"([a-z]{3,})[._]([a-z]{3,})", local)
    if parts is None:
        return
    first, last = parts[1], parts[2]
    for login in (first[0] + last, last + first[0], first + last[0], first + last):
        if len(login) > _MIN_LENGTH and not is_ordinary(login):
            yield login, "user"
    if not is_ordinary(first) and not is_ordinary(last):
        yield f"{first.capitalize()} {last.capitalize()}", "name"


# Where only people are named; elsewhere an account may be that of a service.
_SURE_RULES = ("home-folder", "email", "author", "mention", "identity", "machine")
# The homes of people and the namespaces of registries are passed over; folders and files of projects are kept.
_FOLDER = re.compile(
    r"(?:^|[\s/\"'])(?:home|Users|users|media|mail|people|staff|profiles?|u)/[\w.-]+|[\w-]\.(?:io|com|org|ht"
    r"|dev)[/:][\w.-]+"
    r"|(?<=[\w.]/)([a-z][a-z0-9-]{2,30})(?=[/.\s\"':,)]|$)"
    r"|(?<![\w@/.~:-])([a-z][a-z0-9-]{2,30})(?=/[\w.-]+\.[a-z]{1,5}\b)",
    re.MULTILINE,
)


def _things(texts: Iterable[str]) -> set[str]:
    """Return the words that are folders, files or services in these texts, other than the homes of people."""
    found = (match.groups() for text in texts if "/" in text for match in _FOLDER.finditer(text))
    return {name for names in found for name in names if name}


class LearnedNames:
    """The names of one session and where they stand in any of its texts."""

    def __init__(self, spared: Iterable[str] = ()) -> None:
        self._spared = {word.lower() for word in spared}
        self._marked: Counter[str] = Counter()
        self._seen: dict[str, tuple[Hit, str]] = {}
        self._aliases: dict[str, _Alias] = {}
        self._pattern: re.Pattern[str] | None = None
        self._numbered: re.Pattern[str] | None = None
        self._given: dict[str, str] = {}

    def add(self, hit: Hit, spelling: str) -> None:
        """Remember a name that stands where only names stand."""
        spelling = " ".join(spelling.split())
        if spelling.lower() not in self._spared:
            self._marked[spelling.lower()] += 1
            self._seen.setdefault(spelling.lower(), (hit, spelling))

    def choose(self, pieces: Iterable[str]) -> None:
        """Decide which names are rare enough to be taken out everywhere; the others go only where they were seen."""
        for hit, spelling in self._seen.values():
            self._add_forms(hit, spelling)
        if self._given:
            self._numbered = re.compile(rf"(?<![^\W_])({'|'.join(map(re.escape, self._given))})\d{{1,4}}(?![^\W_])")
        if self._aliases:
            self._drop_things(list(pieces))
        self._pattern = _compiled(self._aliases) if self._aliases else None

    def _add_forms(self, hit: Hit, spelling: str) -> None:
        for form, alias in _forms(hit, spelling):
            long = len(form) >= _MIN_LENGTH - alias.exact or (alias.exact and not form.isascii())
            common = is_common_word(form) and not (alias.exact and len(form) >= _MIN_LENGTH)
            if long and (not common or not form.isascii()) and form.lower() not in self._spared:
                self._aliases.setdefault(form, alias)
        parts = spelling.replace(",", " ").split()
        given = _plain(parts[-1 if "," in spelling else 0]).lower() if hit.kind == "name" and parts else ""
        if len(given) > _MIN_LENGTH and not is_ordinary(given) and given not in self._spared:
            self._given.setdefault(given, hit.entity)

    def _drop_things(self, texts: list[str]) -> None:
        """Forget the accounts of services, called like their folders, and words that occur too often for a name."""
        words, things = _compiled(self._aliases), _things(texts)
        counts = Counter(match.group().lower() for text in texts for match in words.finditer(text))
        for form, alias in list(self._aliases.items()):
            thing = alias.kind == "user" and alias.rule not in _SURE_RULES and form in things
            marked = self._marked[form.lower()]
            if thing or (" " not in form and counts[form.lower()] - marked > max(_LOOSE, _OFTEN * marked)):
                del self._aliases[form]

    def hits(self, text: str) -> Iterator[Hit]:
        """Find the learned names in a text."""
        for match in self._numbered.finditer(text) if self._numbered else ():
            yield Hit(match.start(), match.end(), "learned", "user", self._given[match[1]])
        for match in self._pattern.finditer(text) if self._pattern else ():
            found = " ".join(match.group().split())
            alias = self._aliases.get(found) or self._aliases.get(found.lower())
            if alias is not None and not _is_word_here(text, match, found, alias):
                written = alias.kind == "user" and found[0].isupper() and not found.isupper()
                rule = alias.rule if alias.kind == "number" else "learned"
                yield Hit(match.start(), match.end(), rule, "name" if written else alias.kind, alias.entity)


def _is_word_here(text: str, match: re.Match[str], found: str, alias: _Alias) -> bool:
    """Tell a word that begins a sentence, the key of a project, and the name of a variable: SHOP-911, SHOP_URL."""
    if is_common_word(found) and found.isascii() and _SENTENCE.search(text, max(0, match.start() - 4), match.start()):
        return True  # "Mark the test as slow"
    around = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
    capitals = found.isascii() and found.isupper() and alias.kind != "name"
    return capitals and (_ISSUE.match(text, match.end()) is not None or "_" in around)


def _compiled(aliases: Iterable[str]) -> re.Pattern[str]:
    ordered = sorted(aliases, key=len, reverse=True)
    unspaced = [alias for alias in ordered if _UNSPACED.fullmatch(alias)]
    bodies = "|".join(re.escape(alias).replace(r"\ ", r"\s+") for alias in ordered if alias not in unspaced)
    forms = [rf"(?<![^\W_])(?:{bodies})(?![^\W_])"] * bool(bodies) + list(map(re.escape, unspaced))
    return re.compile("|".join(forms), re.IGNORECASE)
