"""Names that no rule marks: words that no dictionary has, weighed by the text around them.

Other detectors know where a certain program prints a name. This module knows no program: it takes every word that looks
like a name, an account or a machine and adds up the evidence for and against it (`surroundings.py`). All weights are in
one table. It reads a session that was scrubbed once, so that what the rules found is evidence for the words next to it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.id_numbers import is_number_label
from eval_core.suite.scrub.named_fields import field_kind
from eval_core.suite.scrub.ordinary_words import (
    is_calendar,
    is_generic,
    is_given_name,
    is_ordinary,
    is_proper_noun,
    is_role_or_state,
    is_service_host,
    is_strange,
    is_surname,
    is_technical,
)
from eval_core.suite.scrub.secret_values import SECRET_WORD, key_words
from eval_core.suite.scrub.surroundings import Line, NeighbourLines, Place, evidence, may_stand_under

__all__ = ["WEIGHTS", "Uses", "asks_for_people", "suspects"]

WEIGHTS = {
    # What the word itself is.
    "strange": 2,
    "known as a name": 1,
    "shaped like a login": 1,
    "two names": 3,
    "shaped like a machine": 2,
    "a machine's role and number": 2,
    # What stands directly before or after it.
    "labelled": 3,
    "told": 2,
    "strong word before": 3,
    "weak word before": 2,
    "verb after": 3,
    "weak verb after": 2,
    "mentioned": 3,
    "at a realm": 3,
    "framed": 1,
    "speaks": 3,
    "signs": 3,
    "beside a name": 3,
    "surname and given name": 3,
    "possessive": 1,
    "owns a thing": 2,
    "an id before it": 3,
    "between data": 3,
    "cell": 2,
    "an account before it": 4,
    "a port, a share or a zone": 3,
    "before a program's message": 3,
    # What its line holds.
    "a person on the line": 1,
    "a time or an address on the line": 1,
    "a namespace": 3,
    "a domain before it": 3,
    "opens a row": 1,
    "words of sessions on the line": 1,
    "a capital inside a foreign sentence": 3,
    "called by name": 3,
    # What the lines around it and the rest of the session hold.
    "in line with a person": 3,
    "announced above": 3,
    "seen elsewhere": 1,
    # What speaks against it.
    "code around it": -5,
    "a line of code": -3,
    "used in code elsewhere": -3,
    "often used in code": -3,
    "a command": -3,
    "a word among foreign words": -2,
    "a version after it": -4,
    "quoted as code": -2,
    "a company's name": -4,
    "begins a sentence": -1,
}
_ENOUGH = 5
_LINE_LIMIT = 600
_OFTEN = 3

# The words of a line, and the shapes of those that may be somebody's.
_TOKEN = re.compile(
    r"(?<![\w.@\\$%&-])(?:(?<!\D/)(?<!^/)|(?<=\.io/)|(?<=\.com/)|(?<=\.org/))@?[^\W\d_](?:\w|[.'’-](?=\w))*"
)
_DOMAIN_USER = re.compile(r"(?<![\w\\/.-])[A-Za-z][\w.-]{1,20}\\{1,2}(?P<user>[a-z][\w.-]*\w)(?![\w\\.])")
_MACHINE_TOKEN = re.compile(r"(?<![\w.-])[A-Za-z]{2,}(?:-?\d{1,3}|-[A-Za-z]{2,}(?:-?\d{1,3})?)(?![\w-])")
_PLACEHOLDER = re.compile(r"(?i)(?:user|person|host)\d*|redacted.*")
_NAME = re.compile(
    r"(?:O['’]|D['’]|Mc|Mac|Di|De|Van|Von|Al-|El-|Ben-)?[A-ZÀ-ÞĀ-Ž][a-zà-ÿā-ž]{2,}(?:-[A-ZÀ-ÞĀ-Ž][a-zà-ÿā-ž]{2,})?"
)
_CAPITALS = re.compile(
    r"(?<![\w.-])[A-ZÀ-ÞĀ-Ž]{3,}(?:-[A-ZÀ-Þ]{3,})?(?: [A-ZÀ-ÞĀ-Ž]{3,}(?:-[A-ZÀ-Þ]{3,})?){1,2}(?![\w.(-])"
)
_LOGIN = re.compile(r"[a-z]{3,}\d{0,4}|[a-z]+[.-][a-z]+\d{0,3}|[a-z]{2,3}\d{3,6}")
_ROLE = (
    r"(?:ws|wks|laptop|desktop|pc|srv|mac|mbp|imac|nas|vm|dev|ci|db|build|node|box|host|workstation|pi|tower|server|nb"
    r"|notebook|web|app|gw|fw|ap|sw|print|printer|tablet|phone|kiosk)"
)
_DEVICE = r"(?:thinkpad|macbook|elitebook|latitude|xps|imac|iphone|ipad|pixel|laptop|mbp|mini|nuc|galaxy|notebook|pc)"
_MACHINE = re.compile(
    rf"(?i:(?P<numbered>[a-z]{{3,}})-{_ROLE}-?\d{{1,3}}|{_ROLE}-(?P<after>[a-z]{{3,}})-?\d{{0,3}}"
    rf"|(?P<plain>[a-z]{{4,}})\d{{1,3}}|(?P<owner>[a-z]{{2,}})-{_DEVICE}\d{{0,2}})"
)
_OWN = re.compile(r"(?i)(?:ws|wks|laptop|desktop|pc|mac|mbp|imac|nas|workstation|nb|notebook|tower|tablet|phone)-")
_FILE = re.compile(
    r"\.(?:py|js|ts|rs|go|md|sh|io|com|dev|org|net|txt|log|json|ya?ml|toml|sql|plist|service|conf|cfg|lan|local|html"
    r"|css|cc|cpp|rb|java|xml|csv|exe|dll|so|lock|app|example|test|md5|gz|zip|tar|pdf|png|jpg|svg)\Z"
)
_NO_VALUES = frozenset({"id", "ids", "url", "type", "count", "email", "status", "role", "agent", "state", "path"})


@lru_cache(maxsize=65_536)
def _shape(token: str) -> tuple[str, int] | None:
    """Tell what a word may be by itself (a name, a user), and how much speaks for it."""
    if len(token) < 3 or len(token) > 40 or _PLACEHOLDER.fullmatch(token) or _FILE.search(token):
        return None
    if len(set(token.lower())) < 3:
        return None  # xxxxx
    if is_generic(token) or is_role_or_state(token) or is_proper_noun(token) or is_calendar(token) or _is_label(token):
        return None
    if _NAME.fullmatch(token):
        parts = token.split("-")
        listed = any(_is_listed(part) for part in parts) and not is_technical(token)
        if not listed and not any(map(is_strange, parts)):
            return None
        return "name", WEIGHTS["strange"] + listed * WEIGHTS["known as a name"]
    return _login(token) if _LOGIN.fullmatch(token) else None


def _is_label(word: str) -> bool:
    """Tell a word that forms and translations print for a field: Benutzername, Passwort."""
    return field_kind(word) != "none" or SECRET_WORD.fullmatch(word) is not None or is_number_label(word)


def _is_listed(word: str) -> bool:
    return len(word) > 3 and (is_given_name(word) or is_surname(word)) and not is_ordinary(word)


def _login(token: str) -> tuple[str, int] | None:
    parts = re.findall(r"[a-z]+", token)
    body = max(parts, key=len)
    listed = any(map(_is_listed, parts))
    initial = len(parts) == 1 and len(body) > 5 and (is_surname(body[1:]) or is_surname(body[:-1]))
    if any(is_technical(part) for part in parts if len(part) > 2) or not (listed or any(map(is_strange, parts))):
        return None
    # Between two words a dot or a hyphen is more often that of an attribute or a package.
    if len(parts) > 1 and len(parts[-1]) > 2 and not all(_is_listed(part) or is_strange(part) for part in parts):
        return None
    shaped = re.search(r"[a-z]\d{1,4}\Z|\A[a-z]{3,}\.(?![chdos]\Z)[a-z]+\Z", token) is not None
    if len(parts) > 1 and listed and "." in token and len(parts[-1]) > 2:
        return "user", WEIGHTS["two names"] + WEIGHTS["strange"]
    score = WEIGHTS["strange"] + (listed or initial) * WEIGHTS["known as a name"]
    return "user", score + shaped * WEIGHTS["shaped like a login"] - ("-" in token and not listed)


@lru_cache(maxsize=65_536)
def _machine(token: str) -> int:
    """Return how much a word looks like a machine that somebody gave a name; 0 if it does not."""
    found = _MACHINE.fullmatch(token)
    cased = token.islower() or token.isupper() or token[1:].islower()
    if found is None or not cased or is_service_host(token) or _PLACEHOLDER.fullmatch(token):
        return 0
    if found["owner"]:
        technical = is_technical(found["owner"]) or is_role_or_state(found["owner"]) or is_ordinary(found["owner"])
        return 0 if technical and len(found["owner"]) > 2 else WEIGHTS["shaped like a machine"] + 1
    word = found["numbered"] or found["after"] or found["plain"]
    if is_role_or_state(word) or is_generic(word) or is_technical(token) or (found["after"] and is_technical(word)):
        return 0
    if word.lower() in ("oauth", "http", "ipv", "sha", "utf", "base"):
        return 0
    if is_technical(word) and not found["numbered"]:
        return WEIGHTS["shaped like a machine"] - 1
    owned = bool(found["after"]) and _OWN.match(token) is not None
    return WEIGHTS["shaped like a machine"] + bool(found["numbered"]) * WEIGHTS["a machine's role and number"] + owned


class Uses:
    """Which words a session uses as identifiers: in paths, attributes, calls and names with hyphens."""

    _USED = re.compile(
        r"(?:(?<!\d)/|[_.$#\\]|::|--|\w-)(?P<a>[A-Za-z][a-z0-9]{2,})(?![A-Za-z0-9@])"
        r"|(?<![A-Za-z0-9])(?:(?P<b>[A-Za-z][a-z0-9]{2,})(?=[/_(\[]|::|\.[a-z]{2,}|-[a-z0-9]))"
    )

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._counts: Counter[str] = Counter()
        for text in texts:
            self._counts.update((match["a"] or match["b"]).lower() for match in self._USED.finditer(text))

    def evidence(self, word: str) -> Iterator[str]:
        """Yield how often a word stands where identifiers stand: once may be chance, three times is a thing."""
        if self._counts[word.lower()]:
            yield "used in code elsewhere"
        if self._counts[word.lower()] >= _OFTEN:
            yield "often used in code"


@dataclass(frozen=True, slots=True)
class _Candidate:
    kind: str
    base: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A candidate in its piece of the session, and what it weighs there."""

    piece: int
    start: int
    token: str
    kind: str
    score: int
    placed: bool
    """Whether anything around it speaks for it."""


def suspects(pieces: Sequence[tuple[str, str | None]], uses: Uses) -> Iterator[tuple[str, Hit]]:
    """Find what is most likely somebody's, in the pieces of a session that was scrubbed by rules before.

    What a word weighs in one place is supported by the other places where something speaks for it.
    """
    seen: defaultdict[tuple[str, str], list[_Sighting]] = defaultdict(list)
    for number, (text, key) in enumerate(pieces):
        for one in _sightings(number, text, key, uses):
            seen[one.token.lower(), one.kind].append(one)
    for found in seen.values():
        supported = {pieces[one.piece][0][max(0, one.start - 40) : one.start + 60] for one in found if one.placed}
        support = WEIGHTS["seen elsewhere"] * min(2, max(0, len(supported) - 1))
        for one in found:
            if one.score + support * one.placed >= _ENOUGH:
                end = one.start + len(one.token)
                yield one.token, Hit(one.start, end, f"printed-{one.kind}", one.kind, one.token.lower())


# The labels of a table, one after the other.
_HEADER = re.compile(r"[\"']?[^\W\d]\w*[\"']?(?:[,;|\t][\"']?[^\W\d]\w*[\"']?){3,}")


def _sightings(number: int, text: str, key: str | None, uses: Uses) -> Iterator[_Sighting]:
    named = _key_kind(key)
    offset = 0
    lines = text.split("\n")
    block = NeighbourLines(lines)
    for at, line in enumerate(lines):
        if 3 < len(line) <= _LINE_LIMIT and not _HEADER.fullmatch(line) and (found := _candidates(line)):
            known = Line.of(line)
            for one in found:
                token = line[one.start : one.end]
                names = list(evidence(Place(known, one.start, one.end, one.kind)))
                names += block.evidence(at, one.start, one.end, one.kind)
                qualified = "a namespace" in names or "a domain before it" in names
                if one.kind != "host" and not qualified:
                    names += uses.evidence(token)
                if len(line) <= 60 and may_stand_under(one.kind, named):
                    names.append("labelled")
                points = sum(WEIGHTS[name] for name in names)
                placed = any(WEIGHTS[name] > (1 if one.kind == "name" else 2) for name in names)
                yield _Sighting(number, offset + one.start, token, one.kind, one.base + points, placed)
        offset += len(line) + 1


_ASKS = re.compile(
    r"(?:[^\n]*[\s/])?(?:home|Users|users|passwd|group|who|whoami|w|last|owners?|roles|accounts|logins)(?:[\s/;|]|$)"
    r"|[^\n]*%[uU]\b"
)


def asks_for_people(command: str) -> bool:
    """Tell a command whose output lists accounts: `ls /home`, `find -printf %u`, `cut -f1 /etc/passwd`."""
    return len(command) <= 200 and _ASKS.match(command) is not None


def _key_kind(key: str | None) -> str:
    """Return what any word of a JSON key says about the value."""
    if key is None:
        return "none"
    whole = field_kind(key)
    words = key_words(key)
    if whole != "none" or not words or words[-1] in _NO_VALUES:
        return whole
    return next((kind for word in words if (kind := field_kind(word)) != "none"), "none")


@lru_cache(maxsize=4_096)
def _candidates(line: str) -> tuple[_Candidate, ...]:
    return tuple(_found(line))


def _found(line: str) -> Iterator[_Candidate]:
    for match in _TOKEN.finditer(line):
        token, start = match[0], match.start()
        if token[0] == "@":
            token, start = token[1:], start + 1
        token = re.sub(r"['’]s\Z", "", token)
        if shape := _shape(token):
            yield _Candidate(*shape, start, start + len(token))
    for match in _DOMAIN_USER.finditer(line) if "\\" in line else ():
        escaped = match["user"][0] in "nrt" and not is_strange(match["user"][1:])  # the end of a line in a string
        if not escaped and (shape := _shape(match["user"])):
            yield _Candidate(*shape, *match.span("user"))
    for match in _CAPITALS.finditer(line):
        if all(is_strange(word) for word in match[0].split()):
            yield from (
                _Candidate("name", WEIGHTS["strange"], match.start() + part.start(), match.start() + part.end())
                for part in re.finditer(r"\S+", match[0])
            )
    for match in _MACHINE_TOKEN.finditer(line):
        if base := _machine(match[0]):
            yield _Candidate("host", base, *match.span())
