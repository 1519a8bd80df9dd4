"""Names that no rule marks: words that no dictionary has, weighed by the text around them.

Other detectors know where a certain program prints a name. This module knows no program: it takes every word that looks
like a name, or an account and adds up the evidence for and against it. All weights are in one table. It reads
a session that was scrubbed once, so that what the rules found is evidence for the words next to it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.people_fields import field_kind
from eval_core.suite.scrub.personal_numbers import is_number_label
from eval_core.suite.scrub.secret_values import SECRET_WORD, key_words
from eval_core.suite.scrub.words import (
    is_calendar,
    is_generic,
    is_given_name,
    is_ordinary,
    is_person_name,
    is_proper_noun,
    is_role_or_state,
    is_strange,
    is_surname,
    is_technical,
    word_list,
)

WEIGHTS = {
    # What the word itself is.
    "strange": 2,
    "known as a name": 1,
    "two names": 3,
    # What stands directly before or after it.
    "labelled": 3,
    "told": 2,
    "strong word before": 3,
    "weak word before": 2,
    "mentioned": 3,
    "possessive": 3,
    "speaks": 3,
    "a namespace": 3,
    # What its line holds.
    "a person on the line": 1,
    "a time or an address on the line": 1,
    "words of sessions on the line": 1,
    "a capital inside a foreign sentence": 3,
    # What the lines around it and the rest of the session hold.
    "in line with a person": 3,
    "announced above": 3,
    "seen elsewhere": 1,
    # What speaks against it.
    "code around it": -5,
    "a line of code": -3,
    "used in code elsewhere": -3,
    "a command": -3,
    "a word among foreign words": -2,
    "a version after it": -4,
    "a company's name": -4,
}
ENOUGH = 5
_SUPPORT = {"name": 1, "user": 2}  # more than this from one piece of evidence speaks for a word
_LINE_LIMIT = 600
_LABELLED_LIMIT = 60

# The words of a line, and the shapes of those that may be somebody's.

_TOKEN = re.compile(
    r"(?<![\w.@\\$%&-])(?:(?<!\D/)(?<!^/)|(?<=\.io/)|(?<=\.com/)|(?<=\.org/))@?[^\W\d_](?:\w|[.'’-](?=\w))*"
)
_PLACEHOLDER = re.compile(r"(?i)(?:user|person|host)\d*|redacted.*")
_NAME = re.compile(
    r"(?:O['’]|D['’]|Mc|Mac|Di|De|Van|Von|Al-|El-|Ben-)?[A-ZÀ-ÞĀ-Ž][a-zà-ÿā-ž]{2,}(?:-[A-ZÀ-ÞĀ-Ž][a-zà-ÿā-ž]{2,})?"
)
_LOGIN = re.compile(r"[a-z]{3,}\d{0,4}|[a-z]+[.-][a-z]+\d{0,3}|[a-z]{2,3}\d{3,6}")
_FILE = re.compile(
    r"\.(?:py|js|ts|rs|go|md|sh|io|com|dev|org|net|txt|log|json|ya?ml|toml|sql|plist|service|conf|cfg|lan|local|html"
    r"|css|cc|cpp|rb|java|xml|csv|exe|dll|so|lock|app|example|test|md5|gz|zip|tar|pdf|png|jpg|svg)\Z"
)


@lru_cache(maxsize=65_536)
def _shape(token: str) -> tuple[str, int] | None:
    """Tell what a word may be by itself (a name, a user), and how much speaks for it."""
    if not 3 <= len(token) <= 40 or len(set(token.lower())) < 3 or _PLACEHOLDER.fullmatch(token) or _FILE.search(token):
        return None
    if any(is_known(token) for is_known in (is_generic, is_role_or_state, is_proper_noun, is_calendar, _is_label)):
        return None
    if not _NAME.fullmatch(token):
        return _login(token) if _LOGIN.fullmatch(token) else None
    parts = token.split("-")
    listed = any(map(_is_listed, parts)) and not is_technical(token)
    if not listed and not any(map(is_strange, parts)):
        return None
    return "name", WEIGHTS["strange"] + listed * WEIGHTS["known as a name"]


def _is_label(word: str) -> bool:
    """Tell a word that forms and translations print for a field: Benutzername, Passwort."""
    return field_kind(word) != "none" or SECRET_WORD.fullmatch(word) is not None or is_number_label(word)


def _is_listed(word: str) -> bool:
    return len(word) > 3 and (is_given_name(word) or is_surname(word)) and not is_ordinary(word)


def _login(token: str) -> tuple[str, int] | None:
    parts = re.findall(r"[a-z]+", token)
    listed = any(map(_is_listed, parts))
    if any(is_technical(part) or is_proper_noun(part) for part in parts if len(part) > 2) or not (
        listed or any(map(is_strange, parts))
    ):
        return None
    if len(parts) > 1 and len(parts[-1]) > 2:
        # Between two words a dot or a hyphen is more often that of an attribute or a package.
        if not all(_is_listed(part) or is_strange(part) for part in parts):
            return None
        if listed and "." in token:
            return "user", WEIGHTS["two names"] + WEIGHTS["strange"]
    body = max(parts, key=len)
    initial = len(parts) == 1 and len(body) > 5 and (is_surname(body[1:]) or is_surname(body[:-1]))
    shaped = re.search(r"[a-z]\d{1,4}\Z|\A[a-z]{3,}\.(?![chdos]\Z)[a-z]+\Z", token) is not None
    return "user", WEIGHTS["strange"] + (listed or initial) + shaped - ("-" in token and not listed)


class Uses:
    """Which words a session uses as identifiers: in paths, attributes, calls and names with hyphens."""

    _USED = re.compile(
        r"(?:(?<!\d)/|[_.$#\\]|::|--|\w-)(?P<a>[A-Za-z][a-z0-9]{2,})(?![A-Za-z0-9@])"
        r"|(?<![A-Za-z0-9])(?:(?P<b>[A-Za-z][a-z0-9]{2,})(?=[/_(\[]|::|\.[a-z]{2,}|-[a-z0-9]))"
    )

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._words = {(one["a"] or one["b"]).lower() for text in texts for one in self._USED.finditer(text)}

    def evidence(self, word: str) -> Iterator[str]:
        """Tell whether a word stands where identifiers do elsewhere in the session."""
        if word.lower() in self._words:
            yield "used in code elsewhere"


# What a line speaks of.

_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}:\d\d(?::\d\d)?(?![\d:])|\b\d{4}-\d\d-\d\d\b|\b\d\d?/[A-Z][a-z]{2}/\d{4}\b")
_SOMEBODY = re.compile(
    r"(?<![\w@/\\.-])(?:Person\d+|user\d+|person\d+@example\.com|host\d+)(?![\w/\\-])|REDACTED-(?:phone|address|birth)"
)
_NETWORK = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])|\+1 \d{3}-555-01\d\d|02:00:00:00:")
_SESSION = re.compile(
    r"(?i)(?<![a-z])(?:log(?:ged|in|on|out|off)\w*|sign(?:ed|s|ing)?[ -](?:in|out|off)|sessions?|auth\w*|joined"
    r"|left|(?:dis)?connect\w*|online|offline|users?|accounts?|members?|attendees?|assigne\w+|review\w*|ticket|invited"
    r"|meeting|call(?:er|ed)?|chat|shift|seat|desk|badge|employee|contact|approv\w+|owner\w*|author\w*|granted|denied"
    r"|accepted|rejected|request(?:ed|er|or)|submitted|printed|checked|booked|borrow\w*|customer|guest|password|sudo"
    r"|uid|gid|tty|pts|ext|sip)(?![a-z])"
)
_CODE_LINE = re.compile(
    r"(?<!;);\s*$|\{\s*$|=>|->|==|!=|\+=|:=|\)\s*:\s*$|\w\(\)|[a-z]\([\w\"']+[,)=]|^\s*(?:def|class|import"
    r"|from \S+ import"
    r"|return|const|let|var|func|fn|public|private|static|if|while|export|raise|assert|elif|else|try|#include|package"
    r"|using|use)\b|^\s*@\w+\(|\(\?[:=!<iP]|\\[bswd]\b|&&|\|\||^\s*(?:[\"']\w+[\"'],\s*){3}"
)
_COMMAND_LINE = re.compile(
    r"^\s*(?:[$#>%❯] )?(?:sudo )?(?:pip3?|npm|npx|yarn|pnpm|apt(?:-get)?|brew|cargo|go|docker|podman|kubectl|helm|git"
    r"|gem|composer|uv|poetry|conda|make|dnf|yum|apk|pacman|snap|terraform|ansible\S*|systemctl|service|python3?|node"
    r"|cd|ls|cat|grep|find|sed|awk|rm|cp|mv|mkdir|echo|export|Collecting|Downloading|Installing|Requirement"
    r"|Successfully|Get:\d+|Fetched|Unpacking|Preparing|Selecting|Setting up|Building|Compiling)\b(?!:)"
)
_WORDS = re.compile(r"(?<![\w./-])[^\W\d_]+(?![\w/(])")
_FOREIGN = word_list("foreign") - frozenset(
    ["on", "for", "so", "die", "van", "ha", "se", "den", "an", "as", "it", "no"]
)


@dataclass(frozen=True, slots=True)
class _Line:
    """A line and what it speaks of, found out once for all its words."""

    text: str
    about: tuple[str, ...]
    """The evidence that it gives to each of its words."""
    code: bool
    command: bool
    foreign: bool

    @classmethod
    def of(cls, text: str) -> _Line:
        words = _WORDS.findall(text)
        foreign = sum(word.lower() in _FOREIGN for word in words)
        english = sum(word.islower() and len(word) > 2 and is_ordinary(word) for word in words)
        about = {
            "a person on the line": _SOMEBODY.search(text),
            "a time or an address on the line": _CLOCK.search(text) or _NETWORK.search(text),
            "words of sessions on the line": _SESSION.search(text),
        }
        return cls(
            text,
            tuple(name for name, found in about.items() if found),
            _CODE_LINE.search(text) is not None,
            _COMMAND_LINE.match(text) is not None,
            foreign >= 2 and foreign + 1 >= english,
        )


# What the neighbouring lines say.

_KNOWN = re.compile(
    r"(?<![\w-])(?:(?P<name>Person)|(?P<user>user)|(?P<host>host)|person)\d+(?:@example\.com)?(?![\w-])"
)
_NEAR = 2  # how many lines up and down are compared
_ROW_LIMIT = 240
_FIELD = re.compile(r"[\w.@:-]*\w|\"[^\"]*\"")
_HEADING_WORD = re.compile(r"[A-ZÀ-Þ]?[a-zà-ÿ]+|[A-ZÀ-Þ]+|[\u0370-\u1fff]+")
_ASKED = re.compile(r"[$#>%❯] \S")
_OPENED = re.compile(r"(?:^\s*|  |\t|[|;,]\s?|[,;|]\")\"?@?\Z")
_CLOSED = re.compile(r"\"?(?:\s*$|  |\t| ?[|;,]|\s+:\s)")
_ID_BEFORE = re.compile(r"(?<![\w.])\d{1,6}[(/] ?\Z|:[x*!]?:\d+:(?:[\w.-]+,)*\Z")


class _Neighbours:
    """The lines of a text, to compare what stands at the same place of neighbouring lines."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._people: dict[int, dict[tuple[str, str], str]] = {}
        self._announced = list(_announced(lines))

    def evidence(self, at: int, start: int, end: int, kind: str) -> Iterator[str]:
        """Yield what neighbouring lines say about the word at a place of one."""
        line = self._lines[at]
        filled = kind == "name" or _fills_a_place(line, start, end)
        if self._announced[at] and filled and not _CODE_LINE.search(line):
            yield "announced above"
        here = _position(line, start, end)
        near = [row for row in range(at - _NEAR, at + _NEAR + 1) if row != at and 0 <= row < len(self._lines)]
        found = [self._known(row)[here] for row in near if here in self._known(row)]
        if not line[:start].rstrip().endswith("=") and any(one != "host" for one in found):
            yield "in line with a person"

    def _known(self, row: int) -> dict[tuple[str, str], str]:
        if row not in self._people:
            line = self._lines[row] if len(self._lines[row]) <= _ROW_LIMIT else ""
            found = {_position(line, *match.span()): match.lastgroup or "user" for match in _KNOWN.finditer(line)}
            self._people[row] = found
        return self._people[row]


def _fills_a_place(line: str, start: int, end: int) -> bool:
    before, after = line[:start], line[end:]
    if _OPENED.search(before):
        return _CLOSED.match(after) is not None or (not before.strip() and len(after.split()) <= 3 and after[:1] == " ")
    return _ID_BEFORE.search(before) is not None


def _position(line: str, start: int, end: int) -> tuple[str, str]:
    """Return the place of a word in its line: the marks before it, with every other word alike, and what follows."""
    before = _FIELD.sub("w", re.sub(r"\s+", " ", line[max(0, start - 80) : start]))
    return before, line[end : end + 1].strip()


@cache
def _is_for_people(word: str) -> bool:
    return word in word_list("headings of people") or field_kind(word.rstrip("s")) in ("account", "owner", "people")


def _announced(lines: Sequence[str]) -> Iterator[bool]:
    """Tell of each line whether the heading of its paragraph speaks of people."""
    announced = filled = False
    for line in lines:
        bare = line.strip()
        if bare:
            filled = filled or (announced and any(map(str.isalpha, bare)))
        elif filled:
            announced = filled = False
        yield announced
        announced = announced or _is_heading(bare)


def _is_heading(line: str) -> bool:
    if not line or len(line) > 80 or _CODE_LINE.search(line):
        return False
    words, asked = [word.lower() for word in _HEADING_WORD.findall(line)], _ASKED.match(line) is not None
    if len(words) > 4 and not line.endswith(":") and not asked:
        return False
    return any(map(_is_for_people, words)) or (asked and "%u" in line.lower())


# What stands directly around a word.

_LABEL = re.compile(
    r"(?P<words>(?:[^\W\d_][\w-]*[ _]){0,2}[^\W\d_][\w-]*)"
    r"(?P<sep>[\"'\])]{0,2}(?::s)?\s*(?:[:=>#|]|\.|\s-)?\s*[\"'\[(<{‘“]{0,2}@?|\s+)\Z"
)
_POSSESSIVE = re.compile(r"['’]s? [A-Za-z]")
_SPEAKS = re.compile(r"[\"'*_]{0,2}(?::(?=\s\S|$)|>(?= ?\S))")
_TIME_BEFORE = re.compile(r"\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?Z?[\])]?[ \t>)*•·|,—–-]{0,4}[<@(*~+]{0,2}\Z")
_NAMESPACE = re.compile(
    r"(?:(?:github|gitlab|bitbucket|codeberg|sr)\.(?:com|org|ht)[:/]~?|(?:docker|ghcr|quay)\.io/)\Z"
)
_PUBLISHED = re.compile(r"(?i)\b(?:push\w*|pull\w*|origin|fork\w*|clone\w*|remote|upstream|fetch)\b|^To ")
_VERSION_AFTER = re.compile(
    r"[ \t]*(?:[=~<>!]=|@|/|-|:| \(?v?)\d+(?:\.\d+)+(?!\.\d+\.\d)|[ \t]+v?\d+\.\d+\.\d+(?![\d:]|\.\d)|[ \t]+\(\d+\.\d"
)
_CODE_AFTER = re.compile(r"\s+[-+*/|]?=\s|[/_(\\{]|::|\[|\.[a-z]{2,}\b|=(?!=)|-[a-z0-9]|->")
_CODE_BEFORE = re.compile(r"[_$\\.]\Z|\D/\Z|--?\Z|::\Z|import \Z|\w-\Z|<!?/?\Z(?<=</)")
_FRAMED_BEFORE = re.compile(r"(?:TODO|FIXME|XXX|HACK|\d)\(\Z")
_CAPITALS_BEFORE = re.compile(r"(?:[A-Z][\w-]* ){1,2}\Z")
_CAPITALS_AFTER = re.compile(r"(?: [A-Z][\w-]*){1,2}")
_CREDITS = re.compile(r"(?: [A-Z][\w-]*){0,2} and contributors")
_SENTENCE = re.compile(r"(?:\A|[.!?:]\s|^\s*(?:[-*>#]+|\d+[.)])\s)\s*[\"'(]*\Z")
_NOUNS_ARE_CAPITALS = re.compile(
    r"(?i)\b(?:der|die|das|und|ist|nicht|ich|mit|von|auf|für|wir|ein|eine|bitte|beim|zum|zur)\b"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A word in its line."""

    line: _Line
    kind: str
    token: str
    before: str
    after: str


def _is_of_people(label: str) -> bool:
    """Tell whether a field of this kind may hold a name or an account."""
    return label in ("account", "owner", "people", "person", "first")


def _evidence(place: _Place) -> Iterator[str]:
    """Yield the names of what speaks for and against a word, as the table of weights knows them."""
    yield from place.line.about
    if label := _LABEL.search(place.before):
        yield from _words_before(place, label)
    yield from _code_around(place)
    yield from _of_people(place)
    if place.kind == "name":
        yield from _of_names(place)
    if _VERSION_AFTER.match(place.after):
        yield "a version after it"


def _words_before(place: _Place, label: re.Match[str]) -> Iterator[str]:
    words = label["words"].lower().replace("_", " ").split()
    last, marked = words[-1], bool(label["sep"].strip(" ."))
    kinds = [field_kind(last), field_kind(" ".join(words[-2:]))]
    kinds += [field_kind(words[-2])] if marked and len(words) > 1 else []
    if last not in word_list("not people") and any(map(_is_of_people, kinds)):
        yield "labelled" if marked else "told"
    elif last in word_list("before people"):
        yield "strong word before"
    elif last in word_list("often before people") and not marked:
        yield "weak word before"


def _code_around(place: _Place) -> Iterator[str]:
    line, before, after = place.line, place.before, place.after
    framed = _FRAMED_BEFORE.search(before) is not None and after.startswith(")")
    qualified = framed or _NAMESPACE.search(before)
    if not qualified and (_CODE_AFTER.match(after) or _CODE_BEFORE.search(before)):
        yield "code around it"
    quoted = place.kind == "name" and before[-1:] in ("'", '"') and after[:1] == before[-1:]
    if line.code and not framed and not quoted:
        yield "a line of code"
    if line.command:
        yield "a command"


def _of_people(place: _Place) -> Iterator[str]:
    line, before, after = place.line, place.before, place.after
    if before.endswith("@") and (before.strip("@ \t") or after.strip()):
        yield "mentioned"
    if _SPEAKS.match(after) and (
        _TIME_BEFORE.search(before) or (place.kind == "name" and not before.strip(" \t[<(*@-"))
    ):
        yield "speaks"
    if place.kind != "user":
        return
    if _NAMESPACE.search(before) and after[:1] == "/" and _PUBLISHED.search(line.text):
        yield "a namespace"
    if place.token.isalpha() and (line.foreign or not line.text.isascii()):
        yield "a word among foreign words"


def _of_names(place: _Place) -> Iterator[str]:
    line, before, after = place.line, place.before, place.after
    if _POSSESSIVE.match(after):
        yield "possessive"
    if line.foreign and not _SENTENCE.search(before) and not _NOUNS_ARE_CAPITALS.search(line.text):
        yield "a capital inside a foreign sentence"
    above, below = _CAPITALS_BEFORE.search(before), _CAPITALS_AFTER.match(after)
    whole = f"{above[0] if above else ''}{place.token}{below[0] if below else ''}"
    if not is_person_name(whole) or _CREDITS.match(after):
        yield "a company's name"


# All words of a session together.


@dataclass(frozen=True, slots=True)
class _Sighting:
    """A word in its piece of the session, and what it weighs there."""

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
            if one.score + support * one.placed >= ENOUGH:
                end = one.start + len(one.token)
                yield one.token, Hit(one.start, end, f"printed-{one.kind}", one.kind, one.token.lower())


# The labels of a table, one after the other.
_HEADER = re.compile(r"[\"']?[^\W\d]\w*[\"']?(?:[,;|\t][\"']?[^\W\d]\w*[\"']?){3,}")


def _sightings(number: int, text: str, key: str | None, uses: Uses) -> Iterator[_Sighting]:
    named, offset, lines = _key_kind(key), 0, text.split("\n")
    block = _Neighbours(lines)
    for at, line in enumerate(lines):
        if 3 < len(line) <= _LINE_LIMIT and not _HEADER.fullmatch(line) and (found := _candidates(line)):
            known = _Line.of(line)
            for kind, base, start, end in found:
                place = _Place(known, kind, line[start:end], line[max(0, start - 60) : start], line[end : end + 80])
                names = [*_evidence(place), *block.evidence(at, start, end, kind)]
                if "a namespace" not in names:
                    names += uses.evidence(place.token)
                if len(line) <= _LABELLED_LIMIT and _is_of_people(named):
                    names.append("labelled")
                placed = any(WEIGHTS[name] > _SUPPORT[kind] for name in names)
                points = base + sum(WEIGHTS[name] for name in names)
                yield _Sighting(number, offset + start, place.token, kind, points, placed)
        offset += len(line) + 1


_ASKS = re.compile(
    r"(?:[^\n]*[\s/])?(?:home|Users|users|passwd|group|who|whoami|w|last|owners?|roles|accounts|logins)(?:[\s/;|]|$)"
    r"|[^\n]*%[uU]\b"
)


def asks_for_people(command: str) -> bool:
    """Tell a command whose output lists accounts: `ls /home`, `find -printf %u`, `cut -f1 /etc/passwd`."""
    return len(command) <= 200 and _ASKS.match(command) is not None


_NO_VALUES = frozenset({"id", "ids", "url", "type", "count", "email", "status", "role", "agent", "state", "path"})


def _key_kind(key: str | None) -> str:
    """Return what any word of a JSON key says about the value."""
    if key is None:
        return "none"
    whole, words = field_kind(key), key_words(key)
    if whole != "none" or not words or words[-1] in _NO_VALUES:
        return whole
    return next((kind for word in words if (kind := field_kind(word)) != "none"), "none")


@lru_cache(maxsize=4_096)
def _candidates(line: str) -> tuple[tuple[str, int, int, int], ...]:
    return tuple(_found(line))


def _found(line: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield what may be somebody's: its kind, what it weighs by itself, where it begins and ends."""
    for match in _TOKEN.finditer(line):
        start = match.start() + match[0].startswith("@")
        token = re.sub(r"['’]s\Z", "", line[start : match.end()])
        if shape := _shape(token):
            yield *shape, start, start + len(token)
