"""Replacing what detectors find: JSON inside strings is decoded, and each entity gets one placeholder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from urllib.parse import quote

from eval_core.suite.scrub.detect import context_hits, is_spared
from eval_core.suite.scrub.hits import Hit, without_overlaps
from eval_core.suite.scrub.identities import Identities, identity_pattern, identity_words, local_part
from eval_core.suite.scrub.learned_names import LearnedNames, written_from_address
from eval_core.suite.scrub.numbers_near_people import numbers_near_people
from eval_core.suite.scrub.people import printed, said_by_commands
from eval_core.suite.scrub.secret_fields import HEADER_KEYS
from eval_core.suite.scrub.secret_tokens import public_tokens
from eval_core.suite.scrub.secret_values import key_strength
from eval_core.suite.scrub.words import (
    is_foreign_word,
    is_generic,
    is_ordinary,
    is_public_domain,
)

# JSON inside strings: each string leaf is shown decoded, and put back so that the document still parses.

# Given a decoded text and the JSON key that it stands under, return what should stand there.
Visit = Callable[[str, str | None], str]

_DEPTH = 8
_TOKEN = re.compile(
    r'(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")|(?P<mark>[{}\[\],:])|(?P<open>"[^"\\]*(?:\\.[^"\\]*)*\\?\Z)|[^\s{}\[\],:"]+',
    re.DOTALL,
)
_EMBEDDED = re.compile(r'\{\s*"[\w .$@/-]{1,80}"\s*:')
_OPENING = re.compile(r'\s*(?:\{\s*(?:"|\})|\[\s*(?:["{\[\]]|-?\d))')
_BROKEN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")
_DECODER = json.JSONDecoder()
# Records that keep a setting's name in one field and its value in another.
_NAMES = ("name", "key", "parameterkey", "optionname", "variable", "setting", "id")
_VALUES = ("value", "parametervalue", "default", "content", "secretstring", "data")


def opens_like_json(text: str) -> bool:
    """Tell whether a text begins as a JSON object or array does."""
    return _OPENING.match(text) is not None


def is_json(text: str) -> bool:
    """Tell whether a text is one whole JSON value."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def rewrite(text: str, visit: Visit, key: str | None = None, depth: int = 0) -> str:
    """Return the text with every readable piece replaced by what the visitor returns for it."""
    if depth < _DEPTH and text[:200].lstrip()[:1] in ("{", "[", '"') and len(text) > 2:
        # A document that was cut off is unfolded as well: its escapes would hide word boundaries otherwise.
        quoted = text.lstrip().startswith('"') and is_json(text)
        if quoted or (opens_like_json(text) and (is_json(text) or text.lstrip()[:2] in ('{"', '["', "[{"))):
            return _document(text, visit, key, depth)
    if depth < _DEPTH and "\\" in text and (pieces := _embedded(text)):
        return _around(text, pieces, visit, key, depth)
    return visit(text, key)


def leaves(text: str) -> list[tuple[str, str | None]]:
    """Return every readable piece with the key it stands under."""
    seen: list[tuple[str, str | None]] = []

    def keep(piece: str, key: str | None) -> str:
        seen.append((piece, key))
        return piece

    rewrite(text, keep)
    return seen


def _embedded(text: str) -> list[tuple[int, int]]:
    """Find whole JSON objects with escapes in running text; those without escapes read the same undecoded."""
    found, at = [], 0
    while match := _EMBEDDED.search(text, at):
        try:
            _, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        if "\\" in text[match.start() : end]:
            found.append((match.start(), end))
        at = end
    return found


def _around(text: str, pieces: list[tuple[int, int]], visit: Visit, key: str | None, depth: int) -> str:
    out, at = [], 0
    for start, end in pieces:
        if start > at:
            out.append(visit(text[at:start], key))
        out.append(_document(text[start:end], visit, key, depth))
        at = end
    if at < len(text):
        out.append(visit(text[at:], key))
    return "".join(out)


def _encode(value: str, like: str) -> str:
    return json.dumps(value, ensure_ascii=like.isascii())


def _document(text: str, visit: Visit, key: str | None, depth: int) -> str:
    """Rewrite string literals in place, so that spacing and number forms stay as they were."""
    out: list[str] = []
    at = 0
    stack: list[tuple[bool, str | None]] = []  # (is an object, key it stands under)
    beside: dict[int, str] = {}  # at each depth, what a field called `name` or `key` has said of the value beside it
    current, naming = key, False
    for match in _TOKEN.finditer(text):
        out.append(text[at : match.start()])
        at = match.end()
        lexeme = match.group()
        if match.lastgroup == "mark":
            if lexeme in "{[":
                stack.append((lexeme == "{", current))
                beside.pop(len(stack), None)
                naming = lexeme == "{"
            elif lexeme in "}]":
                current = stack.pop()[1] if stack else key
                naming = False
            elif lexeme == ",":
                inside, owner = stack[-1] if stack else (False, key)
                naming, current = inside, owner
            else:
                naming = False
            out.append(lexeme)
        elif match.lastgroup in ("string", "open"):
            replaced, value = _literal(lexeme, match.lastgroup == "open", visit, None if naming else current, depth)
            if naming:
                owner = stack[-1][1] if stack else None
                # A plain name says as little as its object tells: in {"author": {"name": ...}} it is an author's.
                current = f"{owner}_{value}" if owner and value in ("name", "value") else value
                if value.lower() in _VALUES and (named := beside.get(len(stack))):
                    current = named
            elif (named := _setting_named(current, value)) is not None:
                beside[len(stack)] = named
            out.append(replaced)
        else:
            scalar = visit(lexeme, current) if sum(char.isdigit() for char in lexeme) > 3 else lexeme
            out.append(lexeme if scalar == lexeme else _encode(scalar, scalar))
    out.append(text[at:])
    return "".join(out)


def _setting_named(key: str | None, value: str) -> str | None:
    """Return the name of a secret setting that a field called `name` or `key` gives."""
    named = re.split(r"[/.:]", value)[-1]
    naming = key is not None and key.rpartition("_")[2].lower() in _NAMES
    secret = naming and (key_strength(named) in ("strong", "phrase") or named.lower() in HEADER_KEYS)
    return named if secret else None


def _literal(token: str, unfinished: bool, visit: Visit, key: str | None, depth: int) -> tuple[str, str]:
    """Return a string literal with its content rewritten, and that content before."""
    whole = _BROKEN_ESCAPE.sub("", token) + '"' if unfinished else token
    try:
        value = json.loads(whole, strict=False)
    except ValueError:
        return visit(token, key), token
    changed = rewrite(value, visit, key, depth + 1)
    if changed == value:
        return token, value
    encoded = _encode(changed, token)
    return (encoded[:-1] if unfinished else encoded), value


# One placeholder for one entity, in the shape that its place asks for.

_TAKEN = re.compile(
    r"REDACTED-([a-z0-9-]+?)-(\d+)(?![\w-])|\b(?:user|person|Person)(\d+)\b|\bhost(\d+)\b|\b203\.0\.113\.(\d+)\b"
    r"|555-01(\d\d)\b"
)
_PERSON_KINDS = ("user", "name", "email")


class Pseudonyms:
    """Hand out placeholders; a person keeps one number across name, login and e-mail."""

    def __init__(self) -> None:
        self._people: dict[str, str] = {}  # alias -> the alias that leads its group
        self._numbers: dict[tuple[str, str], int] = {}  # (counter, entity) -> number
        self._next: dict[str, int] = {}

    def reserve(self, texts: Iterable[str]) -> None:
        """Leave out the numbers that placeholders in these texts already use."""
        for text in texts:
            for match in _TAKEN.finditer(text):
                secret, number, person, host, ip, phone = match.groups()
                for counter, value in (
                    (secret, number),
                    ("person", person),
                    ("host", host),
                    ("ip4", ip),
                    ("phone", phone),
                ):
                    if counter is not None and value is not None and len(value) < 6:
                        self._next[counter] = max(self._next.get(counter, 0), int(value))

    def link(self, *aliases: str) -> None:
        """Say that these names are one person."""
        leaders = [self._leader(alias.lower()) for alias in aliases if alias]
        for other in leaders[1:]:
            if other != leaders[0]:
                self._people[other] = leaders[0]

    def _leader(self, alias: str) -> str:
        leader = self._people.setdefault(alias, alias)
        while leader != self._people[leader]:
            leader = self._people[leader]
        return leader

    def person(self, alias: str) -> int:
        """Return the number of the person with this name, login or address."""
        return self._number("person", self._leader(alias.lower()))

    def _number(self, counter: str, entity: str) -> int:
        if (counter, entity) not in self._numbers:
            self._next[counter] = self._next.get(counter, 0) + 1
            self._numbers[counter, entity] = self._next[counter]
        return self._numbers[counter, entity]

    def placeholder(self, hit: Hit) -> str:
        """Return what stands in for a hit."""
        if hit.kind in _PERSON_KINDS:
            number = self.person(hit.entity)
            return {"user": f"user{number}", "name": f"Person{number}"}.get(hit.kind, f"person{number}@example.com")
        if hit.kind == "host":
            return f"host{self._number('host', hit.entity)}"
        if hit.kind == "phone":
            number = self._number("phone", hit.entity)
            return f"+1 {202 + number // 100}-555-01{number % 100:02d}"
        if hit.kind in ("ip4", "ip4-dashed"):
            dotted = self._network(self._number("ip4", hit.entity))
            return dotted if hit.kind == "ip4" else dotted.replace(".", "-")
        if hit.kind == "ip6":
            return f"2001:db8::{self._number('ip6', hit.entity):x}"
        if hit.kind == "mac":
            number = self._number("mac", hit.entity)
            return f"02:00:00:00:{number >> 8 & 255:02x}:{number & 255:02x}"
        return f"REDACTED-{hit.rule}-{self._number(hit.rule, hit.entity)}"

    @staticmethod
    def _network(number: int) -> str:
        """Return an address of the three ranges that are kept for documentation."""
        block = ("203.0.113", "198.51.100", "192.0.2")[min((number - 1) // 254, 2)]
        return f"{block}.{(number - 1) % 254 + 1}"


# Detectors at work: find what must go in each readable piece and put its placeholder there.

_ROUNDS = 4
Note = Callable[[Hit, str], None]


# The number of a person or a device, without spaces; a date is a date elsewhere.
_NUMBER = re.compile(r"(?!(?:19|20)\d\d[-/.]?\d\d[-/.]?\d\d\Z)[A-Z0-9][A-Z0-9-]{8,40}")


_USERINFO = re.compile(r"://[^\s/@]{0,200}@\Z")


_LONG_PHONE, _MANY_DIGITS, _LONG_SECRET = 9, 8, 8


def _is_rare(secret: str) -> bool:
    """Tell whether a secret is rare enough to be taken out wherever it stands."""
    plain = secret.isalpha() and (secret.islower() or secret.istitle())
    return len(secret) >= _LONG_SECRET and not plain and not secret.isdigit()


def _squash(alias: str) -> str:
    """Return a name without what stands between its words: Ann_Lee and ann lee are one."""
    return re.sub(r"[\s._\-]", "", alias.lower())


class Replacer:
    """Knows the secrets and people of one session and replaces them in any text of it."""

    def __init__(self, identities: Identities | None = None) -> None:
        self.pseudonyms = Pseudonyms()
        self._identities = identities or Identities()
        for group in self._identities.groups:
            self.pseudonyms.link(*group)
        self._people = identity_pattern(self._identities)
        self._spelling = {_squash(alias): alias.lower() for alias in self._identities.aliases}
        self._names = LearnedNames(self._identities.spared)
        self._known: dict[str, Hit] = {}
        self._sweep: re.Pattern[str] | None = None
        self._originals: dict[str, str] = {}
        self._domains: set[str] = set()
        self._public: set[str] = set()
        self._hosts: re.Pattern[str] | None = None

    def learn(self, texts: Sequence[str]) -> None:
        """Look at everything once, so that a secret or a name seen once is known everywhere."""
        pieces = [leaf for text in texts for leaf in leaves(text)]
        for piece, key in pieces:
            for hit in without_overlaps(self._hits(piece, key), piece):
                placeholder = self.pseudonyms.placeholder(hit)
                self._originals.setdefault(piece[hit.start : hit.end].lower(), placeholder)
                self._learn_name(hit, piece[hit.start : hit.end])
                self._learn_value(hit, piece[hit.start : hit.end])
        self._names.choose(piece for piece, _ in pieces)
        for token in {token for piece, _ in pieces for token in public_tokens(piece)}:
            self._known.pop(token, None)
            self._public.add(token)
        if self._domains:
            below = "|".join(map(re.escape, sorted(self._domains)))
            self._hosts = re.compile(rf"(?i)(?<![\w.-])(?!www\.)(?:[a-z0-9_][\w-]*\.){{1,4}}(?:{below})(?![\w-]|\.\w)")
        if self._known:
            ordered = sorted(self._known, key=len, reverse=True)
            self._sweep = re.compile("|".join(re.escape(value) for value in ordered))

    def _learn_value(self, hit: Hit, written: str) -> None:
        """Remember a secret, a number or a company's domain, to find it wherever it stands."""
        if hit.kind == "email" and not is_public_domain(domain := hit.entity.partition("@")[2]):
            self._domains.add(domain)
        elif hit.kind == "phone" and len(hit.entity) > _LONG_PHONE:
            self._known.setdefault(hit.entity, hit)
        elif hit.kind == "number" and _NUMBER.fullmatch(written) and sum(map(str.isdigit, written)) >= _MANY_DIGITS:
            self._known.setdefault(written, hit)
        elif hit.kind == "secret" and _is_rare(hit.entity):
            for form in (hit.entity, quote(hit.entity, safe="")):
                self._known.setdefault(form, hit)

    def _learn_name(self, hit: Hit, spelling: str) -> None:
        if hit.kind in ("user", "host", "name") and not hit.rule.startswith("weak-"):
            # An ordinary word may be somebody's account or machine; elsewhere in the session it is the word.
            word = hit.kind != "name" and (is_ordinary(spelling) or is_foreign_word(spelling))
            if hit.rule == "home-folder" or not word:
                self._names.add(hit, spelling)
        elif hit.kind == "email":
            local = local_part(hit.entity)
            if not is_generic(local) and not is_ordinary(local) and not is_foreign_word(local):
                self.pseudonyms.link(hit.entity, local)
                self._names.add(replace(hit, kind="user", entity=local), local)
                for form, kind in written_from_address(local):
                    self._names.add(replace(hit, kind=kind, entity=local), form)

    def learn_calls(self, calls: Iterable[tuple[str, str]]) -> None:
        """Look at commands and their answers: only the command tells that the word `whoami` prints is an account."""
        for command, output in calls:
            for joined in said_by_commands(command, output):
                start = joined.index("\n") + 1
                for hit in printed(joined, None):
                    if hit.start >= start:
                        self._learn_name(hit, joined[hit.start : hit.end])

    def learn_numbers(self, texts: Sequence[str]) -> bool:
        """Look at a scrubbed session again for numbers beside those who were found; tell whether there were any."""
        pieces = [piece for text in texts for piece, _ in leaves(text)]
        found = [(hit, piece) for piece in pieces for hit in numbers_near_people(piece) if not is_spared(hit, piece)]
        for hit, piece in found:
            self._names.add(hit, piece[hit.start : hit.end])
        if found:
            self._names.choose(pieces)
        return bool(found)

    def _hits(self, text: str, key: str | None) -> Iterator[Hit]:
        for hit in self._identities.unspared(context_hits(text, key), text):
            if hit.rule != "random-token" or hit.entity not in self._public:
                yield hit
        if self._sweep is not None:
            for match in self._sweep.finditer(text):
                known = self._known[match.group()]
                edges = text[match.start() - 1 : match.start()] + text[match.end() : match.end() + 1]
                if known.kind == "secret" or not any(map(str.isalnum, edges)):
                    yield Hit(match.start(), match.end(), known.rule, known.kind, known.entity)
        for match in self._hosts.finditer(text) if self._hosts is not None else ():
            if text[match.start() - 1 : match.start()] == "@" and not _USERINFO.search(text, 0, match.start()):
                continue  # the end of an address
            yield Hit(match.start(), match.end(), "company-host", "host", match.group().lower())
        for hit in identity_words(text, self._people):
            yield replace(hit, entity=self._spelling.get(_squash(hit.entity), hit.entity))
        yield from self._names.hits(text)

    def _piece(self, text: str, key: str | None, note: Note | None) -> str:
        out, at = [], 0
        for hit in without_overlaps(self._hits(text, key), text):
            placeholder = self.pseudonyms.placeholder(hit)
            self._originals.setdefault(text[hit.start : hit.end].lower(), placeholder)
            if note is not None:
                note(hit, placeholder)
            out += [text[at : hit.start], placeholder]
            at = hit.end
        return "".join([*out, text[at:]]) if out else text

    def text(self, text: str, note: Note | None = None) -> str:
        """Return the text with placeholders, repeated until nothing more is found."""
        for _ in range(_ROUNDS):
            changed = rewrite(text, lambda piece, key: self._piece(piece, key, note))
            if changed == text:
                break
            text = changed
        return text

    def fact(self, value: str) -> str:
        """Return a probe's value as the scrubbed session says it."""
        return self._originals.get(value.strip().lower()) or self.text(value)
