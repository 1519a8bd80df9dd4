"""People, accounts and machines in named places: keys, columns and headers whose name says that one follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal, cast

from eval_core.suite.scrub.hits import Hit, is_mark
from eval_core.suite.scrub.personal_numbers import is_fictional_phone, is_number_label, keyed_rule, number_in_field
from eval_core.suite.scrub.secret_values import key_words
from eval_core.suite.scrub.tables import TableCell, rows
from eval_core.suite.scrub.words import (
    UPPER,
    folded,
    is_generic,
    is_given_name,
    is_ordinary,
    is_person_name,
    is_proper_noun,
    is_public_host,
    is_role_or_state,
    is_service_account,
    is_service_host,
    is_surname,
    is_technical,
    word_list,
)

FieldKind = Literal["account", "owner", "people", "person", "first", "host", "none"]

WORD = rf"[{UPPER}][\w'’-]*[^\W\d_]"
PERSON = rf"{WORD}(?: (?:[{UPPER}]\.|van|von|de|del|der|da|di|la|le|el|bin|al|{WORD})){{0,3}} {WORD}"
_NAME_BEFORE: dict[str, FieldKind] = {
    "full": "person", "real": "person", "display": "people", "legal": "person", "contact": "person", "author": "person",
    "person": "person", "customer": "person", "employee": "person", "patient": "person", "owner": "person",
    "committer": "person", "maintainer": "person", "developer": "person", "assignee": "person", "reporter": "person",
    "creator": "person", "reviewer": "person", "sender": "person", "recipient": "person", "billing": "person",
    "shipping": "person", "cardholder": "person", "organizer": "person", "profile": "person", "member": "person",
    "first": "first", "last": "first", "given": "first", "family": "first", "middle": "first", "maiden": "first",
    "user": "account", "login": "account", "account": "account", "admin": "account", "principal": "account",
    "usr": "person", "student": "person", "passenger": "person", "guest": "person", "crew": "person",
    "viewer": "person",
    "screen": "account", "host": "host", "computer": "host", "machine": "host", "node": "host", "workstation": "host",
    "device": "host", "server": "host", "dns": "host", "nic": "host",
}  # fmt: skip


# What may follow the name of a field without changing what it holds.
_FORMS = word_list("forms of fields")


@lru_cache(maxsize=16_384)
def field_kind(name: str) -> FieldKind:
    """Return what a field of this name holds: an account, an owner of any kind, a person, a part of a name, a host."""
    words = [word for word in key_words(name) if not word.isdigit()] or name.lower().split()
    while len(words) > 1 and words[-1] in _FORMS:
        words.pop()
    if not words:
        return "none"
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in ("family", "given") and before not in ("", "name", "person"):
        return "none"  # the family of a font or a product
    if last in ("name", "names") and before:
        return _NAME_BEFORE.get(before.rstrip("s"), "none")
    if last in ("by", "for", "to") and before in word_list("done by"):
        return "owner"
    for table, kind in _TABLES:
        if last in table or before + last in table:
            return kind
    return "none"


_TABLES: tuple[tuple[frozenset[str], FieldKind], ...] = (
    (word_list("first name fields"), "first"),
    (word_list("person fields"), "person"),
    (word_list("account fields"), "account"),
    (word_list("host fields"), "host"),
    (word_list("owner fields"), "owner"),
    (word_list("people fields"), "people"),
)

# The shapes that a value may have.
_TURNED = re.compile(rf"{WORD}(?:-{WORD})?, ?{WORD}(?= *(?:[<;(\"']|$))", re.MULTILINE)
_FULL = re.compile(PERSON)
_ONE = re.compile(r"[^\W\d_][\w'’-]*[^\W\d_]")
_LOGIN = re.compile(r"(?:(?P<domain>[A-Za-z][\w.-]{1,30})\\{1,2})?@?(?P<login>[^\W\d][\w.-]{1,40}[^\W_]|[a-z]\d{4,8})")
_MACHINE = re.compile(r"[A-Za-z][\w-]{2,62}(?:\.[A-Za-z0-9][\w-]*)*")
_END = re.compile(r"(?=[\s\"'`<>,;:|&)\]}#/]|$|\\[nt\"]|['’]s\b)")


_CODE_BEFORE_DOT = re.compile(
    r"(?:args|self|config|cfg|settings|os|opts|options|params|request|req|ctx|env|this|props|process)\."
)
_FILE = re.compile(r"\.(?:py|js|ts|md|json|example)\b")
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}|[a-z]{2,6}_\d+")
# What a provider calls the machines that everybody connects to.
SERVICE_LABEL = re.compile(
    r"(?i)(?:smtp|imap|pop3?|mx\d?|api|www|cdn|ntp|ftp|registry|repo|mirrors?|static|assets|oauth2?|login|ns\d"
    r"|timestamp)\.[\w-]+\.[a-z]{2,}"
)


def _hit(start: int, value: str, kind: str, *, weak: bool = False) -> Hit:
    rule = {"user": "account", "host": "host", "name": "person"}[kind]
    return Hit(start, start + len(value), f"{'weak-' if weak else ''}field-{rule}", kind, value.lower())


def _value_at(text: str, at: int, kind: FieldKind) -> Hit | None:
    """Judge what stands at a place that a field of this kind gives."""
    if kind == "host":
        return _host(text, at)
    for pattern in (_TURNED, _FULL):
        match = pattern.match(text, at)
        if match and _END.match(text, match.end()) and is_person_name(match.group(), sure=kind == "person"):
            return _hit(at, match.group(), "name")
    if kind in ("first", "person"):
        return _first(text, at, sure=kind == "first")
    return _account(text, at, weak=kind == "owner") if kind != "people" else None


def _host(text: str, at: int) -> Hit | None:
    match = _MACHINE.match(text, at)
    if match is None or not _END.match(text, match.end()):
        return None
    name = match.group()
    if is_public_host(name) or is_service_host(name) or SERVICE_LABEL.match(name) or _is_placeholder(name):
        return None
    plain = name.isalpha() and (name.islower() or is_ordinary(name))
    code = name.isidentifier() and not name.isupper() and re.search(r"[a-z][A-Z]|_", name)
    if plain or code or _FILE.search(name) or _CODE_BEFORE_DOT.match(name):
        return None
    return _hit(at, name, "host")


def _first(text: str, at: int, *, sure: bool) -> Hit | None:
    match = _ONE.match(text, at)
    if match is None or not match.group()[0].isupper() or not _END.match(text, match.end()):
        return None
    name = match.group()
    titled = re.match(r" [^\W_]", text[match.end() : match.end() + 2]) is not None
    if not sure and (is_ordinary(name) or titled):
        return None
    nobody = is_role_or_state(name) or is_generic(name) or _is_placeholder(name)
    return None if nobody else _hit(at, name, "name")


def _account(text: str, at: int, *, weak: bool) -> Hit | None:
    match = _LOGIN.match(text, at)
    if match is None or not _END.match(text, match.end()):
        return None
    login, after = match["login"], text[match.end() : match.end() + 2]
    # Code follows: a call, an attribute, a type.
    if _is_nobodys_login(login) or after[:1] in ("(", "[") or re.match(r"\.\w|::|->", after):
        return None
    if login[0].isupper() and login[1:].islower():
        # Written as a name: a first name alone, or the beginning of a title.
        alone = not re.match(r" [^\W\d_]", after)
        return _hit(match.start("login"), login, "name") if alone and not is_ordinary(login) else None
    if re.search(r"[a-z.][A-Z]", login) or is_service_host(login) or _is_ordinary_login(login, weak=weak):
        return None
    return _hit(match.start("login"), login, "user", weak=weak and login.isalpha())


def _is_nobodys_login(login: str) -> bool:
    """Tell the id of a thing, the account of a service, a program, a role or a product, and a constant."""
    if _ID.fullmatch(login) or is_service_account(login) or login.startswith("system:") or is_proper_noun(login):
        return True
    if login.isalpha() and is_technical(login) and not is_given_name(login) and not is_surname(login):
        return True
    constant = login.isupper() and "_" in login
    return is_generic(login) or is_role_or_state(login) or _is_placeholder(login) or constant


def _is_ordinary_login(login: str, *, weak: bool) -> bool:
    parts = [part for part in re.split(r"[._\-\d]+", login) if part]
    if not all(is_ordinary(part) or is_generic(part) for part in parts):
        return False
    initial = re.fullmatch(r"[a-z]{3,}\.[a-z]|[a-z]\.[a-z]{3,}", login) and not is_generic(parts[0])
    numbered = not weak and re.search(r"[a-z]\d+$", login)
    return not initial and not numbered


def _is_placeholder(value: str) -> bool:
    return is_mark(value) or re.fullmatch(r"(?i)(?:user|person|host)\d*", value) is not None


# `name separator value` in any notation: YAML, INI, environment, logfmt, headers, attributes, calls, wide columns.
_KEY = re.compile(
    r"(?<![\w$-])(?P<key>[^\W\d_][\w-]{1,40})(?P<close>[\"'\])]{0,2})(?P<sep>[ \t]{0,20}(?:=>|:="
    r"|[:=：])(?![=:/\\])|[ ]{0,3}(?: ?\.){2,30} ?:|\t+|[ ]{1,30}\|(?=[ ])|[ ](?=\"[^\W\d_][^\"\n]{1,60}\")|[ ]"
    r"{2,30}(?=[^\W\d_]))[ \t]*(?P<open>[\[({<]?[\"'“]?)"
)
_BEFORE = re.compile(r"[^\W\d_][\w-]*[ ._-]\Z")
_ITEMS = re.compile(r"[ \t]*\r?\n(?P<lines>(?:[ \t]*(?:[-*•][ \t]+)?[^\n]{2,80}(?:\n|\Z)){1,8})")
_ITEM = re.compile(r"(?m)^(?P<indent>[ \t]*)(?P<dash>[-*•][ \t]+)?(?:[\"']?name[\"']?:[ \t]*)?[\"']?(?=[^\W\d_])")
_AND = re.compile(r"(?:,[ \t]*|[ \t]+(?:and|und|et|y|e|og|och|&)[ \t]+|;[ \t]*)(?=[^\W\d_@])")


def field_hits(text: str, key: str | None) -> Iterator[Hit]:
    """Find identities at every named place of a text, and in the text as a whole if its JSON key names one."""
    if key is not None and (kind := field_kind(key)) != "none" and len(text) <= 80:
        hit = _value_at(text, 0, kind)
        if hit is not None and (hit.end == len(text) or hit.kind != "name"):
            yield hit
    for match in _KEY.finditer(text):
        kind = _kind_of(text, match)
        wide = match["sep"].isspace() and not match["open"]
        if kind != "none" and not (wide and kind in ("people", "first")) and not _is_no_field(text, match):
            yield from _values(text, match, kind, wide)
    yield from _tables(text)


def _is_no_field(text: str, match: re.Match[str]) -> bool:
    """Tell a placeholder, a store in a cloud, and a filter in a template."""
    if (match["key"][-1].isdigit() and _is_placeholder(match["key"])) or match["key"] == "AccountName":
        return True
    return "|" in match["sep"] and text.rfind("{{", 0, match.start()) > text.rfind("}}", 0, match.start())


_PLAIN_NAMES = ("name", "names", "by", "for", "to")
_NAMED_VALUE = re.compile(r"name=[\"']([\w.-]{2,30})[\"'][^<>\n]{0,40}\Z")


def _kind_of(text: str, match: re.Match[str]) -> FieldKind:
    name, start = match["key"], match.start()
    lowered, line = name.lower(), text.rfind("\n", 0, start) + 1
    left = text[max(line, start - 40) : start]
    if lowered in _PLAIN_NAMES and (before := _BEFORE.search(left)):
        kind = field_kind(f"{before.group().rstrip(' ._-')}_{name}")
        if kind != "none":
            return kind
    if lowered in ("value", "content") and (named := _NAMED_VALUE.search(left)):
        return field_kind(named[1])
    return _under(text, start, line, name) if lowered in ("name", "id", "value") else field_kind(name)


_PARENT = re.compile(r"([\w-]{2,30})[\"']?\s*[:=]?\s*\[?\s*\Z")
_ELEMENT = re.compile(r"<([\w-]{2,30})")
_BLOCK = re.compile(r"[ \t]*(?:-[ \t]+)?[\"']?([\w-]{2,30})[\"']?:[ \t]*|\[([\w-]{2,30})\][ \t]*")


def _under(text: str, start: int, line: int, name: str) -> FieldKind:
    """Return what a plain `name` means: that of the object, the element or the mapping around it."""
    around = text[max(0, start - 240) : start]
    opened = max(around.rfind("{"), around.rfind("<"), around.rfind("("))
    closed = opened >= 0 and around[opened] == "(" and ")" in around[opened:]
    if opened >= 0 and not closed and "}" not in around[opened:] and "</" not in around[opened:]:
        owner = _ELEMENT.match(around, opened) or _PARENT.search(around[:opened])
        return field_kind(f"{owner[1]}_name") if owner else "none"
    if text[line:start].strip("- \t\"'"):
        return "none"
    for previous in reversed(text[max(0, line - 400) : line].splitlines()):
        block = _BLOCK.fullmatch(previous)
        above = previous.strip() and len(previous) - len(previous.lstrip()) < start - line
        if above or (block and block[2]):
            return field_kind(f"{block[1] or block[2]}_name") if block else "none"
    return "none"


_MOST_VALUES = 12


def _values(text: str, match: re.Match[str], kind: FieldKind, wide: bool) -> Iterator[Hit]:
    at = match.end()
    if at >= len(text) or text[at] in "\r\n":
        yield from _items(text, at, kind) if not wide else ()
        return
    listed = kind in ("owner", "people", "person") and not wide
    for _ in range(_MOST_VALUES):
        hit = _value_at(text, at, kind)
        if hit is None:
            return
        # Where a person's name may stand, a word before prose is more likely a sentence than an account.
        prose = match["sep"].strip() == ":" and re.match(r" [a-z]+ [a-z]+", text[hit.end : hit.end + 24])
        if hit.kind == "user" and prose:
            return
        yield hit
        more = _AND.match(text, hit.end) if listed else None
        if more is None:
            return
        at = more.end()


def _items(text: str, at: int, kind: FieldKind) -> Iterator[Hit]:
    """Yield the values of a list below the name of its field."""
    lines = _ITEMS.match(text, at)
    for item in _ITEM.finditer(text, *lines.span("lines")) if lines else ():
        hit = _value_at(text, item.end(), kind)
        if hit is None or (hit.kind == "user" and not item["dash"] and kind != "account"):
            return
        yield hit
        if not item["dash"]:
            return


# Tables: a header names the columns, the lines below fill them.
_RECORDS = ("national-id", "passport", "birth-date", "address")
_PHONE_LABEL = re.compile(r"(?i)phone|telefon|^tel\.?$|mobile?\b|handy|téléphone|teléfono|celular|whatsapp|hp$|sdt$")


# What columns are called elsewhere, without accents and marks.
_KIND_ABROAD = {
    word: kind for kind in ("person", "birth-date", "phone", "address") for word in word_list(f"abroad {kind}")
}


@lru_cache(maxsize=8_192)
def _column_kind(label: str) -> str:
    """Return what a column of this label holds: a kind of field, `phone`, `number`, a kind of record, or `none`."""
    if abroad := _KIND_ABROAD.get(re.sub(r"[\W_\d]", "", folded(label))):
        return abroad
    kind: str = field_kind(label)
    if kind != "none":
        return kind
    if _PHONE_LABEL.search(label):
        return "phone"
    if (rule := keyed_rule(label)) in _RECORDS:
        return str(rule)
    return "number" if is_number_label(label) else "none"


_OF_PEOPLE = frozenset({"person", "first", "owner", "people", "phone"})


def _tables(text: str) -> Iterator[Hit]:
    for cells in rows(text, lambda label: _column_kind(label) != "none"):
        kinds = [_column_kind(cell.label) for cell in cells]
        about_people = bool(_OF_PEOPLE & set(kinds)) or any(
            cell.label.lower() in word_list("beside names") for cell in cells
        )
        for cell, kind in zip(cells, kinds, strict=True):
            plain = about_people and cell.label.lower() in ("name", "names")
            if not is_mark(cell.text) and (hit := _cell(cell, "person" if plain else kind, about_people=about_people)):
                yield replace(hit, start=cell.start + hit.start, end=cell.start + hit.end)


def _cell(cell: TableCell, kind: str, *, about_people: bool) -> Hit | None:
    """Judge the value of a cell by the kind of its column."""
    value = cell.text
    numbered = kind in ("owner", "account") and not any(map(str.islower, value)) and is_number_label(cell.label)
    if kind == "number" or numbered:
        return number_in_field(cell.label, value, sure=about_people)
    if kind == "phone":
        dialled = re.sub(r"[\s()./+-]", "", value)
        called = dialled.isdigit() and 7 <= len(dialled) <= 15 and not is_fictional_phone(value)
        return Hit(0, len(value), "phone", "phone", dialled.lstrip("0")) if called else None
    if kind in _RECORDS:
        digits = set(filter(str.isdigit, value))
        recorded = 4 <= len(value) <= 120 and (len(digits) > 1 or (digits and kind == "address"))
        return Hit(0, len(value), kind, "number", value) if recorded else None
    if kind == "none":
        return None
    hit = _value_at(value, 0, cast("FieldKind", kind)) or (_value_at(value, 0, "account") if kind == "person" else None)
    return hit if hit is not None and (hit.end == len(value) or cell.aligned) else None
