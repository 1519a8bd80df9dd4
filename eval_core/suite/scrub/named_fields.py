"""Identities in named places: keys, columns and headers whose name says that a person or a machine follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal, cast

from eval_core.suite.scrub.hits import Hit, is_mark
from eval_core.suite.scrub.id_numbers import is_number_label, number_in_field
from eval_core.suite.scrub.ordinary_words import (
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
)
from eval_core.suite.scrub.personal_numbers import is_fictional_phone, keyed_rule
from eval_core.suite.scrub.secret_files import inserted
from eval_core.suite.scrub.secret_values import key_words
from eval_core.suite.scrub.tables import TableCell, rows

__all__ = ["PERSON", "SERVICE_LABEL", "FieldKind", "field_hits", "field_kind", "value_hit_at"]

FieldKind = Literal["account", "owner", "people", "person", "first", "host", "none"]

_WORD = rf"[{UPPER}][\w'’-]*[^\W\d_]"
PERSON = rf"{_WORD}(?: (?:[{UPPER}]\.|van|von|de|del|der|da|di|la|le|el|bin|al|{_WORD})){{0,3}} {_WORD}"
_ACCOUNT_NAMES = (
    "user username usename login logname loginname userid uid account acct runas principal nick "
    "nickname handle "
    "screenname recordname sudouser samaccountname upn sender uploader actor initiator invoker impersonator "
    "identity subscriber oncall benutzer benutzername nutzer utilisateur usuario utente gebruiker användare "
    "brugernavn bruker käyttäjä użytkownik пользователь"
)
_ACCOUNT_WORDS = frozenset(_ACCOUNT_NAMES.split())
_OWNER_NAMES = (
    "owner author authors creator committer maintainer maintainers reviewer reviewers approver "
    "approvers assignee "
    "assignees reporter requester requestor submitter uploader operator contributor contributors "
    "tagger packager "
    "uploaders caller customer patient employee contact contacts manager attendee attendees participant "
    "participants organizer organiser speaker speakers member members chair signatory tenant borrower resident "
    "recipient cardholder beneficiary holder student passenger crew teacher doctor tenant applicant candidate "
    "witness anne baba mère père madre padre mutter vater mother father halter titular "
    "proprietario arbeitnehmer mitarbeiter mieter empleado dipendente besitzer autor autoren "
    "ansprechpartner kunde "
    "kontakt auteur propriétaire dueño github gitlab destinataire expéditeur empfänger absender "
    "destinatario remitente "
    "mittente destinatário remetente ontvanger afzender mottagare avsändare modtager afsender "
    "mottaker vastaanottaja "
    "odbiorca nadawca příjemce odesílatel címzett feladó alıcı gönderen müşteri hasta çalışan "
    "sakinler klient pacjent "
    "pracownik zákazník pacient zaměstnanec ügyfél páciens angajat asiakas potilas työntekijä kund medarbetare "
    "medarbejder ansatt kunde klant medewerker patiënt cliente empleado paciente impiegato paziente funcionário"
    " nasabah pelanggan karyawan asigurat pacientas klientas klients darbinieks"
)
_OWNER_WORDS = frozenset(_OWNER_NAMES.split())
# Fields in which people are written out, while other things stand there as single words.
_PEOPLE_NAMES = "from to cc bcc von an present présents anwesend teilnehmer client displayname"
_PEOPLE_WORDS = frozenset(_PEOPLE_NAMES.split())
_PERSON_NAMES = (
    "fullname realname fn cn gecos imię nom nombre nome naam navn namn nimi název ім'я имя фио "
    "név nume ime jméno "
    "meno isim "
    "soyad soyadı nama vārds vardas tên emri payee payer insured gazdă holder"
)
_PERSON_WORDS = frozenset(_PERSON_NAMES.split())
_FIRST_NAMES = (
    "given family firstname lastname givenname familyname surname middlename maidenname forename sn "
    "vorname nachname prénom "
    "prenom apellido apellidos cognome sobrenome achternaam voornaam förnamn efternamn etunimi "
    "sukunimi nazwisko"
)
_FIRST_WORDS = frozenset(_FIRST_NAMES.split())
_HOST_NAMES = (
    "host hostname hôte värdnamn værtsnavn nodename computername machinename workstation fqdn "
    "devicename rechnername "
    "computer machine rechner "
    "ordinateur ordenador equipo dator komputer počítač bilgisayar компьютер комп'ютер コンピュータ 计算机名 컴퓨터"
)
_HOST_WORDS = frozenset(_HOST_NAMES.split())
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
# What was done, and `by` or `for` or `to` whom.
_DONE_NAMES = (
    "created modified updated changed deleted started triggered deployed requested approved reviewed signed "
    "written assigned reported built launched run executed prepared submitted uploaded merged committed opened "
    "closed owned managed maintained authored logged resolved verified tested acked suggested bill ship billed "
    "shipped sold attn queued initiated invited added removed edited reassigned delegated escalated"
)
_DONE = frozenset(_DONE_NAMES.split())


@lru_cache(maxsize=16_384)
def field_kind(name: str) -> FieldKind:
    """Return what a field of this name holds: an account, an owner of any kind, a person, a part of a name, a host."""
    words = [word for word in key_words(name) if not word.isdigit()] or name.lower().split()
    if not words:
        return "none"
    while len(words) > 1 and words[-1] in (
        "normalized",
        "normalised",
        "raw",
        "lower",
        "snapshot",
        "original",
        "display",
        "registrato",
        "registrado",
        "registrada",
        "registered",
        "enregistré",
        "enregistre",
        "native",
        "local",
        "latin",
        "kana",
        "kanji",
        "en",
        "ar",
        "zh",
        "ja",
        "ko",
        "ru",
        "th",
    ):
        words.pop()
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    joined = before + last
    if last in ("family", "given") and before not in ("", "name", "person"):
        return "none"  # the family of a font or a product
    if last in ("name", "names") and before:
        return _NAME_BEFORE.get(before.rstrip("s"), "none")
    if last in ("by", "for", "to") and before in _DONE:
        return "owner"
    for table, kind in _TABLES:
        if last in table or joined in table:
            return kind
    if last in ("id", "email", "login") and before in _ACCOUNT_WORDS | _OWNER_WORDS:
        return "account" if last == "login" else "none"
    return "none"


_TABLES: tuple[tuple[frozenset[str], FieldKind], ...] = (
    (_FIRST_WORDS, "first"),
    (_PERSON_WORDS, "person"),
    (_ACCOUNT_WORDS, "account"),
    (_HOST_WORDS, "host"),
    (_OWNER_WORDS, "owner"),
    (_PEOPLE_WORDS, "people"),
)

# The shapes that a value may have.
_TURNED = re.compile(rf"{_WORD}(?:-{_WORD})?, ?{_WORD}(?= *(?:[<;(\"']|$))", re.MULTILINE)
_FULL = re.compile(PERSON)
_ONE = re.compile(r"[^\W\d_][\w'’-]*[^\W\d_]")
_LOGIN = re.compile(r"(?:(?P<domain>[A-Za-z][\w.-]{1,30})\\{1,2})?@?(?P<login>[^\W\d][\w.-]{1,40}[^\W_]|[a-z]\d{4,8})")
_MACHINE = re.compile(r"[A-Za-z][\w-]{2,62}(?:\.[A-Za-z0-9][\w-]*)*")
_END = re.compile(r"(?=[\s\"'`<>,;:|&)\]}#/]|$|\\[nt\"]|['’]s\b)")


def _hit(start: int, value: str, kind: str, *, weak: bool = False) -> Hit:
    rule = {"user": "account", "host": "host", "name": "person"}[kind]
    return Hit(start, start + len(value), f"{'weak-' if weak else ''}field-{rule}", kind, value.lower())


# What a provider calls the machines that everybody connects to.
SERVICE_LABEL = re.compile(
    r"(?i)(?:smtp|imap|pop3?|mx\d?|api|www|cdn|ntp|ftp|registry|repo|mirrors?|static|assets|oauth2?|login|ns\d)\.[\w-]+\.[a-z]{2,}"
)


def value_hit_at(text: str, at: int, kind: FieldKind) -> Hit | None:
    """Judge what stands at a place that a field of this kind gives."""
    if kind == "host":
        match = _MACHINE.match(text, at)
        if match is None or not _END.match(text, match.end()):
            return None
        name = match.group()
        plain = name.isalpha() and (name.islower() or is_ordinary(name))
        if is_public_host(name) or SERVICE_LABEL.match(name):
            return None
        if re.match(
            r"(?:args|self|config|cfg|settings|os|opts|options|params|request|req|ctx|env|this|props|process)\.", name
        ):
            return None
        code = name.isidentifier() and not name.isupper() and re.search(r"[a-z][A-Z]|_", name)
        if (
            plain
            or code
            or is_service_host(name)
            or _is_placeholder(name)
            or re.search(r"\.(?:py|js|ts|md|json|example)\b", name)
        ):
            return None
        return _hit(at, name, "host")
    if kind in ("owner", "people", "person", "account", "first"):
        for pattern in (_TURNED, _FULL):
            match = pattern.match(text, at)
            if match and _END.match(text, match.end()) and is_person_name(match.group(), sure=kind == "person"):
                return _hit(at, match.group(), "name")
    if kind in ("first", "person"):
        match = _ONE.match(text, at)
        if (
            match
            and match.group()[0].isupper()
            and _END.match(text, match.end())
            and not _is_placeholder(match.group())
        ):
            first = match.group()
            titled = kind == "person" and re.match(r" [^\W_]", text[match.end() : match.end() + 2])
            if kind == "first" or (not is_ordinary(first) and not titled):
                return _hit(at, first, "name") if not is_role_or_state(first) and not is_generic(first) else None
        return None
    return _account(text, at, kind) if kind != "people" else None


def _account(text: str, at: int, kind: FieldKind) -> Hit | None:
    match = _LOGIN.match(text, at)
    if match is None or not _END.match(text, match.end()):
        return None
    login = match.group("login")
    start = match.start("login")
    if re.fullmatch(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}", login):
        return None  # the id of a thing
    if is_service_account(login) or login.startswith("system:") or is_proper_noun(login) or _is_program(login):
        return None
    if is_generic(login) or is_role_or_state(login) or _is_placeholder(login) or (login.isupper() and "_" in login):
        return None
    # Code follows: a call, an attribute, a type.
    if text[match.end() : match.end() + 1] in ("(", "[") or re.match(
        r"\.\w|::|->", text[match.end() : match.end() + 2]
    ):
        return None
    if login[0].isupper() and login[1:].islower():
        # Written as a name: a first name alone, or the beginning of a title.
        alone = not re.match(r" [^\W\d_]", text[match.end() : match.end() + 2])
        return _hit(start, login, "name") if alone and not is_ordinary(login) else None
    parts = [part for part in re.split(r"[._\-\d]+", login) if part]
    ordinary = all(is_ordinary(part) or is_generic(part) for part in parts)
    initial = re.fullmatch(r"[a-z]{3,}\.[a-z]|[a-z]\.[a-z]{3,}", login) and not is_generic(parts[0])
    camel = re.search(r"[a-z.][A-Z]", login) is not None or is_service_host(login)
    if camel or (
        ordinary
        and not initial
        and not (kind == "account" and re.search(r"[a-z]\d+$", login) and not is_service_host(login))
    ):
        return None
    return _hit(start, login, "user", weak=kind == "owner" and login.isalpha())


def _is_program(login: str) -> bool:
    """Tell an account that is called like a program; a person's name is none."""
    return login.isalpha() and is_technical(login) and not is_given_name(login) and not is_surname(login)


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
        hit = value_hit_at(text, 0, kind)
        if hit is not None and (hit.end == len(text) or hit.kind != "name"):
            yield hit
    for match in _KEY.finditer(text):
        if match["key"] == "AccountName" and match["sep"] == "=":
            continue  # a store in a cloud
        if "|" in match["sep"] and text.rfind("{{", 0, match.start()) > text.rfind("}}", 0, match.start()):
            continue  # a filter in a template
        kind = _kind_of(text, match)
        replaced = match["key"][-1].isdigit() and _is_placeholder(match["key"])
        if kind == "none" or replaced:
            continue
        wide = match.group("sep").isspace() and not match.group("open")
        if wide and kind not in ("account", "host", "person", "owner"):
            continue
        yield from _values(text, match, kind, wide)
    yield from _tables(text)
    yield from _elements(text)
    yield from _options(text)
    yield from _inserted(text)
    yield from _ldif(text)


# What a directory prints in base64 because it is not ASCII.
_LDIF = re.compile(
    r"(?m)^(?P<name>cn|sn|givenName|displayName|gecos|initials|postalAddress|street|homePostalAddress|l|st|mail)::"
    r" (?P<value>[A-Za-z0-9+/]{4,400}={0,2})$"
)


def _ldif(text: str) -> Iterator[Hit]:
    for match in _LDIF.finditer(text) if ":: " in text else ():
        yield Hit(*match.span("value"), "personal-number", "number", match["value"])


# Options that take an account, a person or a machine.
_OPTION = re.compile(r"(?<![\w-])--(?P<name>[a-z][a-z-]{2,24})(?:=|[ \t]+)[\"']?(?=[^\W\d_])")


def _options(text: str) -> Iterator[Hit]:
    for match in _OPTION.finditer(text) if "--" in text else ():
        kind = field_kind(match["name"]) if match["name"] != "account-name" else "none"  # of a store in a cloud
        if kind in ("account", "owner", "host") and (hit := value_hit_at(text, match.end(), kind)):
            yield hit


# Markup: an element named for a person, and a label in one cell with its value in the next.
_ELEMENT = re.compile(r"<(?P<tag>[A-Za-z][\w.:-]{1,30})(?:\s[^<>]*)?>\s*(?P<value>[^<>\n]{2,60}?)\s*</(?P=tag)>")
_LABELLED = re.compile(
    r"<(?:dt|th|td|label|b|strong|span)(?:\s[^<>]*)?>\s*(?P<label>[^<>:\n]{2,30}?)\s*:?\s*</\w+>\s*:?\s*<(?:dd"
    r"|td|span|div|p|a)(?:\s[^<>]*)?>\s*(?P<value>[^<>\n]{2,60}?)\s*</"
)
_TAGGED = re.compile(
    r"<\w+\s[^<>]*?(?:[Nn]ame|[Kk]ey|id|label)=[\"'](?P<label>[\w "
    r".-]{2,40})[\"'][^<>]*>\s*(?P<value>[^<>\n]{2,60}?)\s*</"
)
_NAMED_ELEMENTS: dict[str, FieldKind] = {
    "given": "first",
    "family": "first",
    "nm": "person",
    "forenames": "first",
    "surname": "first",
}


def _elements(text: str) -> Iterator[Hit]:
    if "</" not in text:
        return
    for match in _ELEMENT.finditer(text):
        tag = match["tag"].rpartition(":")[2]
        kind = _NAMED_ELEMENTS.get(tag.lower()) or field_kind(tag)
        hit = value_hit_at(match["value"], 0, kind) if kind != "none" else None
        if hit is not None and hit.end == len(match["value"]):
            yield replace(hit, start=match.start("value") + hit.start, end=match.start("value") + hit.end)
    for match in (*_LABELLED.finditer(text), *_TAGGED.finditer(text)):
        kind = field_kind(match["label"])
        hit = value_hit_at(match["value"], 0, kind) if kind != "none" else None
        if hit is not None and hit.end == len(match["value"]):
            yield replace(hit, start=match.start("value") + hit.start, end=match.start("value") + hit.end)


def _inserted(text: str) -> Iterator[Hit]:
    """Judge what an INSERT stores by its columns; a plain `name` beside a person's other columns is a person's."""
    stored = list(inserted(text))
    personal = any(name.lower() in _BESIDE or _column_kind(name) in _OF_PEOPLE for name, _, _ in stored)
    for name, start, value in stored:
        kind = "person" if name.lower() == "name" and personal else _column_kind(name)
        yield from _cell(TableCell(name, start, value, aligned=True), kind, about_people=personal)


def _kind_of(text: str, match: re.Match[str]) -> FieldKind:
    name = match.group("key")
    lowered = name.lower()
    start = match.start()
    if lowered in ("name", "names", "by", "for", "to", "login", "value", "owner", "user", "host", "id", "content"):
        line = text.rfind("\n", 0, start) + 1
        left = text[max(line, start - 40) : start]
        before = _BEFORE.search(left) if lowered in ("name", "names", "by", "for", "to") else None
        kind = field_kind(f"{before.group().rstrip(' ._-')}_{name}") if before else "none"
        if kind != "none":
            return kind
        if lowered in ("value", "content") and (
            named := re.search(r"name=[\"']([\w.-]{2,30})[\"'][^<>\n]{0,40}\Z", left)
        ):
            return field_kind(named.group(1))
        if lowered in ("name", "id", "value"):
            return _under(text, start, line, left, name)
    return field_kind(name)


def _under(text: str, start: int, line: int, left: str, name: str) -> FieldKind:
    """Return what a plain `name` means: that of the object, the element or the mapping around it."""
    around = text[max(0, start - 240) : start]
    opened = max(around.rfind("{"), around.rfind("<"), around.rfind("("))
    if opened >= 0 and around[opened] == "(" and ")" in around[opened:]:
        opened = -1
    if opened >= 0 and "}" not in around[opened:] and "</" not in around[opened:]:
        parent = re.search(r"([\w-]{2,30})[\"']?\s*[:=]?\s*\[?\s*\Z", around[:opened])
        element = re.match(r"<([\w-]{2,30})", around[opened:])
        owner = element.group(1) if element else parent.group(1) if parent else ""
        return field_kind(f"{owner}_name") if owner else "none"
    if not left.strip("- \t\"'"):
        indent = start - line
        above = text[max(0, line - 400) : line].splitlines()
        for previous in reversed(above):
            if previous.strip() and len(previous) - len(previous.lstrip()) < indent:
                parent = re.fullmatch(r"[ \t]*(?:-[ \t]+)?[\"']?([\w-]{2,30})[\"']?:[ \t]*", previous)
                ini = re.fullmatch(r"\[([\w-]{2,30})\]", previous.strip())
                found = parent or ini
                return field_kind(f"{found.group(1)}_name") if found else "none"
            if ini := re.fullmatch(r"\[([\w-]{2,30})\]", previous.strip()):
                return field_kind(f"{ini.group(1)}_name")
    return "none"


def _values(text: str, match: re.Match[str], kind: FieldKind, wide: bool) -> Iterator[Hit]:
    at = match.end()
    if at < len(text) and text[at] not in "\r\n":
        for _ in range(12):
            hit = value_hit_at(text, at, kind)
            if hit is None:
                return
            # Where a person's name may stand, a word before prose is more likely a sentence than an account.
            if (
                hit.kind == "user"
                and match.group("sep").strip() == ":"
                and re.match(r" [a-z]+ [a-z]+", text[hit.end : hit.end + 24])
            ):
                return
            yield hit
            more = _AND.match(text, hit.end) if kind in ("owner", "people", "person") and not wide else None
            if more is None:
                return
            at = more.end()
    elif not wide and (lines := _ITEMS.match(text, at)):
        for item in _ITEM.finditer(text, *lines.span("lines")):
            hit = value_hit_at(text, item.end(), kind)
            if hit is None or (hit.kind == "user" and not item.group("dash") and kind != "account"):
                return
            yield hit
            if not item.group("dash"):
                return


# Tables: a header names the columns, the lines below fill them.
_RECORDS = ("national-id", "passport", "birth-date", "address")
_PHONE_LABEL = re.compile(r"(?i)phone|telefon|^tel\.?$|mobile?\b|handy|téléphone|teléfono|celular|whatsapp|hp$|sdt$")


# What columns are called elsewhere, without accents and marks.
_ABROAD = {
    "person": "hoten ten hovaten adsoyad adisoyadi jmeno jmenoaprijmeni imienazwisko imieinazwisko nimi nombrecompleto "
    "nomcomplet nomecompleto nomeecognome namalengkap onoma",
    "birth-date": "ngaysinh tanggallahir tgllahir fechanacimiento fechanac fechadenacimiento datanascimento datanasc "
    "datenaissance datedenaissance geburtsdatum gebdatum dataurodzenia dogumtarihi syntymaaika "
    "fodelsedatum fodselsdato "
    "geboortedatum datumnarozeni datanascita datadinascita szuletesidatum gbdat",
    "phone": "dienthoai sodienthoai telepon nohp notelp nomorhp puhelin telefono telefone tlf ceptelefonu movil mobil "
    "tyopuhelin omapuhelin telefonszam",
    "address": "diachi alamat direccion endereco indirizzo osoite kotiosoite adresse adres adresa lakcim "
    "domicilio adress",
}
_KIND_ABROAD = {word: kind for kind, words in _ABROAD.items() for word in words.split()}


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
        labels = [cell.label.lower() for cell in cells]
        kinds = [_column_kind(cell.label) for cell in cells]
        about_people = any(label in _BESIDE for label in labels) or bool(_OF_PEOPLE & set(kinds))
        for cell, kind in zip(cells, kinds, strict=True):
            plain = cell.label.lower() in ("name", "names")
            yield from _cell(cell, "person" if plain and about_people else kind, about_people=about_people)


def _cell(cell: TableCell, kind: str, *, about_people: bool) -> Iterator[Hit]:
    start, value = cell.start, cell.text
    if kind == "none" or is_mark(value):
        return
    if kind in ("owner", "account") and not any(map(str.islower, value)) and is_number_label(cell.label):
        kind = "number"
    if kind == "phone":
        dialled = re.sub(r"[\s()./+-]", "", value)
        if dialled.isdigit() and 7 <= len(dialled) <= 15 and not is_fictional_phone(value):
            yield Hit(start, start + len(value), "phone", "phone", dialled.lstrip("0"))
    elif kind in _RECORDS:
        digits = set(filter(str.isdigit, value))
        if 4 <= len(value) <= 120 and (len(digits) > 1 or kind == "address") and digits:
            yield Hit(start, start + len(value), kind, "number", value)
    elif kind == "number":
        if hit := number_in_field(cell.label, value, sure=about_people):
            yield replace(hit, start=start + hit.start, end=start + hit.end)
    else:
        hit = value_hit_at(value, 0, cast("FieldKind", kind)) or (
            value_hit_at(value, 0, "account") if kind == "person" else None
        )
        if hit is not None and (hit.end == len(value) or cell.aligned):
            yield replace(hit, start=start + hit.start, end=start + hit.end)


_BESIDE_NAMES = (
    "email e-mail mail phone tel mobile birthday dob address enabled title department role salary first_name "
    "telefon téléphone teléfono city ort ville"
)
_BESIDE = frozenset(_BESIDE_NAMES.split())
