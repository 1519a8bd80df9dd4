"""Numbers that lead to a person: phones, cards, accounts, network addresses, homes, birth dates, ids and serials."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

from eval_core.suite.scrub.hits import Hit, is_mark
from eval_core.suite.scrub.secret_values import UUID, key_words
from eval_core.suite.scrub.words import is_ordinary, label_forms, word_list


def _number(start: int, end: int, rule: str, text: str) -> Hit:
    return Hit(start, end, rule, "number", text[start:end])


# Phones.

_PHONE = re.compile(
    r"(?:(?<![\w.+/\-=#:])|(?<=[\w][=:])(?=\+))(?P<plus>\+|00(?=[1-9]))\d(?:[\s()./\-\u00a0\u2011]{0,2}\d){6,14}(?![\w-]*\d)"
    r"|(?<![\w.+/\-=#:])(?:\(\d{3}\)[ .-]?|\d{3}(?P<gap>[-. ]))\d{3}(?(gap)(?P=gap)|[-. ])\d{4}(?![\w.\-]?\d)"
)
# As people write them at home: 06 12 34 56 78, 070-1234-5678, 0301-1234567.
_HOME_PHONE = re.compile(
    r"(?<![\w.+/\-=#:,])(?<!\d )(?:0[1-9](?:[ .]\d\d){4}|\(0?[1-9]\d\) ?9?\d{4}-\d{4}|0\d{1,4}-\d{2,4}-\d{3,4}"
    r"|0[1-9]\d{2}-\d{7}|0\d-\d{8}|0\d{1,3}-\d{2,3} \d\d \d\d|(?<=[^\d\s] )(?:0\d\d \d{3} \d\d \d\d"
    r"|0\d{1,3} \d{3,4} \d{3,4}|0\d{3,4} \d{6}|0\d{2,4}(?: \d\d){3}))(?![\w-]|[ .:/]\d)"
)
_SAID_PHONE = re.compile(
    rf"(?i)(?:{label_forms('phones')})[^\d\n+]{{0,24}}(?P<number>\+?\(?\d(?:[ ().\-/]{{0,3}}\d){{6,14}})(?![\w-]*\d)"
)
# Our own placeholders, what manuals write without an area, and numbers of zeros.
_FICTION = re.compile(
    r"\+1 \d{3}-555-01\d\d|\D*1?\D*555\D*01\d\d\D*|(?:\D*\d){0,5}(?:\D*0){6,}\D*"
    r"|.*(\d)\1{8,}|\D*(?:\d\D*){0,3}12345678\d?\D*"
)
_PHONE_KEYS = frozenset({"phone", "tel", "telephone", "mobile", "cell", "whatsapp", "fax", "msisdn"})
_LEAST_DIGITS, _MOST_DIGITS = 7, 15


def phones(text: str, key: str | None) -> Iterator[Hit]:
    """Find phone numbers that the numbering plans know, and what is said to be one."""
    for match in _PHONE.finditer(text):
        if _is_dialled(match.group(), plus=match["plus"] is not None):
            yield from _phone(match.start(), match.end(), text)
    for match in _SAID_PHONE.finditer(text):
        yield from _phone(*match.span("number"), text)
    for match in _HOME_PHONE.finditer(text):
        if 9 <= sum(map(str.isdigit, match.group())) <= 12:
            yield from _phone(*match.span(), text)
    if key and not _PHONE_KEYS.isdisjoint(key_words(key)) and re.sub(r"[\s()./+-]", "", text).isdigit():
        yield from _phone(0, len(text), text)


def _is_dialled(number: str, *, plus: bool) -> bool:
    """Ask the numbering plans; plans change and people mistype, so with a plus a possible length will do."""
    import phonenumbers

    if number.startswith("00"):
        if number.isdigit() and number[2] == "1":  # a bar code more likely than a call to America
            return False
        number = "+" + number[2:]
    try:
        parsed = phonenumbers.parse(number, None if plus else "US")
    except phonenumbers.NumberParseException:
        return False
    written = plus and (re.search(r"\d[ ()./\-]\d", number) is not None or sum(map(str.isdigit, number)) > 10)
    return phonenumbers.is_valid_number(parsed) or (written and phonenumbers.is_possible_number(parsed))


def is_fictional_phone(value: str) -> bool:
    """Tell our own placeholders, what manuals print, and numbers of zeros."""
    return _FICTION.fullmatch(value) is not None


def _phone(start: int, end: int, text: str) -> Iterator[Hit]:
    digits = re.sub(r"\D", "", text[start:end])
    if _LEAST_DIGITS <= len(digits) <= _MOST_DIGITS and not is_fictional_phone(text[start:end]):
        yield Hit(start, end, "phone", "phone", digits.lstrip("0"))


# Payment cards and bank accounts, by their check digits.

_CARD = re.compile(
    r"(?<![\w.\-/+=])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}|\d{13,19})(?![\w\-/=]|\.\d)"
)
_CARD_FORM = re.compile(
    r"4\d{12}(?:\d{3}(?:\d{3})?)?|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}"
)
_IBAN = re.compile(r"(?<![\w-])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![\w-])")


def accounts(text: str, _key: str | None) -> Iterator[Hit]:
    """Find payment cards and bank accounts by their check digits."""
    from stdnum import iban, luhn

    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if _CARD_FORM.fullmatch(digits) and len(set(digits)) > 3 and luhn.is_valid(digits):
            yield Hit(match.start(), match.end(), "card", "number", digits)
    for match in _IBAN.finditer(text):
        # The pattern may run into the next word: the check digits say where the account ends.
        parts = re.split(r"(?<=\w)(?=[ -])", match.group())
        whole = next(("".join(parts[:n]) for n in range(len(parts), 0, -1) if iban.is_valid("".join(parts[:n]))), "")
        if whole:
            yield Hit(match.start(), match.start() + len(whole), "iban", "number", re.sub(r"[ -]", "", whole))


# Network addresses.

_IPV4 = re.compile(r"(?<![\w.\-^~])(?:\d{1,3}\.){3}\d{1,3}(?![\w\-]|\.\d)")
_IPV4_DASHED = re.compile(
    r"\b(?:ip|ec2|vps|host|static)-(?P<a>\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\b"
    r"|(?<![\w.-])(?P<b>\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})(?=\.[a-z])"
)
_VERSION_BEFORE = re.compile(
    r"(?:version|ver|release|==|>=|<=|~=|v|rev|build|chrome/|safari/|firmware|driver)[\"':= ]{0,4}\Z", re.I
)
_IPV6 = re.compile(r"(?<![\w:.])[23][0-9a-fA-F]{3}:(?:[0-9a-fA-F]{0,4}:){1,6}[0-9a-fA-F]{0,4}(?![\w:])")
_MAC = re.compile(r"(?:(?<![\w:-])|(?<=\s01:))(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}(?![\w:-])")
_MAC_DOTTED = re.compile(
    r"(?<![\w.])(?=[0-9a-f.]*[a-f])(?=[a-f.]*\d)[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?![\w.])", re.I
)
# Ours, those of groups (broadcast, multicast DNS, spanning trees) and of virtual machines.
_GROUP_MAC = re.compile(
    r"(?i)02|ff|33[:-]33|01[:-](?:00[:-]5e|80[:-]c2|00[:-]0c|1b[:-]19)|00[:-]00[:-]5e[:-]00[:-]01"
    r"|00[:-]15[:-]5d|52[:-]54[:-]00"
)
_NO_MAC_BEFORE = re.compile(r"(?i)(?:serial|fingerprint|sha\d*|md5)[\w ]{0,12}[:=]? ?\Z")
_KNOWN_HOSTS = frozenset({"8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "255.255.255.255", "4.4.4.4"})
_SMALL = 40  # four numbers below this are a version: 1.17.1.0


def addresses(text: str, _key: str | None) -> Iterator[Hit]:
    """Find public network addresses; private and documentation ranges say nothing about anybody."""
    for match in _IPV4.finditer(text):
        if _is_public(match.group()) and not _VERSION_BEFORE.search(text, max(0, match.start() - 14), match.start()):
            yield Hit(match.start(), match.end(), "ip", "ip4", match.group())
    for match in _IPV4_DASHED.finditer(text):
        group = str(match.lastgroup)
        if _is_public(dotted := match[group].replace("-", ".")):
            yield Hit(*match.span(group), "ip", "ip4-dashed", dotted)
    for match in _IPV6.finditer(text):
        if _is_public(match.group()):
            yield Hit(match.start(), match.end(), "ip", "ip6", match.group().lower())
    for match in _MAC_DOTTED.finditer(text):
        yield _number(*match.span(), "mac", text)
    for match in _MAC.finditer(text):
        other = _NO_MAC_BEFORE.search(text, max(0, match.start() - 24), match.start())
        if not other and not _GROUP_MAC.match(match.group()) and len(set(match.group())) > 3:
            yield Hit(match.start(), match.end(), "mac", "mac", match.group().lower().replace("-", ":"))


def _is_public(value: str) -> bool:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    small = address.version == 4 and max(address.packed) < _SMALL
    return value not in _KNOWN_HOSTS and address.is_global and not address.is_multicast and not small


# Homes, places and birth dates.

_STREET = re.compile(
    r"\b\d{1,5}[A-Za-z]?,? (?:[NSEW]\.? )?(?:[A-ZÀ-Þ][\w'’.-]+ ){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive"
    r"|Dr|Boulevard|Blvd|Court|Ct|Way|Square|Terrace|Place|Pl|Crescent)\b\.?"
    r"(?:,? (?:Apt|Apartment|Unit|Suite|Flat|#)\.? ?\w+)?(?:, [A-ZÀ-Þ][\w'’. -]+?)?(?:,? [A-Z]{2} \d{5}(?:-\d{4})?)?"
    r"|\b[A-ZÄÖÜ][\wäöüß-]*(?:straße|strasse|str\.|weg|platz|allee|gasse) \d{1,4}[a-z]?(?:, \d{5} [A-ZÄÖÜ][\wäöüß]+)?"
    r"|\b\d{1,4}(?: ?bis)?,? (?:[Rr]ue|[Aa]venue|[Bb]oulevard|[Pp]lace|[Cc]hemin|[Ii]mpasse|[Qq]uai"
    r"|[Aa]llée) (?:de |du |des |la |le |l')*[A-ZÀ-Þ][\w'’-]+(?:,? \d{5} [A-ZÀ-Þ][\w-]+)?"
)
# Elsewhere the word for a street stands before its name or is a part of it; or a form says that an address follows.
_STREET_ABROAD = re.compile(
    r"\b(?:Via|Viale|Piazza|Corso|Vicolo|Calle|Avenida|Avda\.|Plaza|Paseo|Carrer|Camino|Rua|Travessa"
    r"|Praça|Largo|ul\.|al\.|os\.|pl\.|ulica|ulice|улица|ул\.|проспект|пр\.) (?:de |del |della |dei |do |da |dos |das "
    r"|las |los |la |el )*[A-ZÀ-ÞĄ-ŻА-Я][\w'’.-]+(?: [A-ZÀ-ÞĄ-ŻА-Я][\w'’.-]+){0,2},? (?:n\.?º? ?"
    r"|д\. ?)?\d{1,5}[A-Za-z]?(?:/\d+)?"
    r"|\b[A-ZÀ-Þ][\w'’-]*(?:straat|laan|plein|gracht|kade|dijk|gatan|vägen|gränd|torget|gade|vej|allé|veien|gata"
    r"|katu|kuja|tie|polku|utca|tér|caddesi|sokak) \d{1,4} ?[A-Za-z]?\b"
    r"|\b(?:Am|An der|An den|Auf der|Auf dem|Im|In der|Zum|Zur|Beim|Hinter der"
    r"|Unter den) [A-ZÄÖÜ][a-zäöüß]{3,} \d{1,3}[a-z]?\b(?! ?[%:.]\w)"
    r"|\b(?:[A-ZÇĞİÖŞÜ][\wçğıöşü]+ ){1,3}(?:Mah|Mahallesi|Cad|Caddesi|Sok|Sokak|Sokağı|Bulvarı)\b\.?[^\n\"';|]{0,60}?"
    r"\bNo ?[:.] ?\d+[^\n\"';|,]{0,40}|\bJ(?:l|alan|ln)\b\.? [A-Z][^\n\"';|]{2,50}?\bNo\.? ?\d+[^\n\"';|]{0,40}"
    r"|〒 ?\d{3}-\d{4}|[一-鿿]{2,3}[都道府県][一-鿿ヶケ]{1,6}[市区町村郡][^\s、。,]{0,24}\d[\d丁目番地号の-]*"
    r"|(?:[一-鿿]{2,3}省)?[一-鿿]{2,4}市[一-鿿]{1,6}[区县區縣][一-鿿]{2,10}[路街道巷弄村](?:[一-鿿]{0,4}\d+[号號弄巷室楼樓栋棟-]*)+"
    r"|[가-힣]{2,7}[시도] (?:[가-힣]{1,5}[시군구] ){1,2}[가-힣\d]{1,10}[로길] ?\d+(?:-\d+)?"
)
_SAID_ADDRESS = re.compile(
    label_forms("addresses") + r"[\"']?[ \t]*[:=：|]?[ \t]*[\"']?(?P<value>(?=[^\n\"';|]{0,60}\d)(?=[^\n\"';|"
    r"]{0,60}[A-ZÀ-Þ\u0370-\u1fff一-鿿가-힣])(?![a-zà-ÿ])[^\W_][^\n\"';|<>{}=]{5,90})"
)
_GEO = re.compile(r"(?<![\w.])[-+]?(?:[1-8]?\d|90)\.\d{4,},[ ]?[-+]?(?:1[0-7]\d|\d{1,2})\.\d{4,}(?![\w.]*\d)")
_PLACE = re.compile(
    r"(?i)konum|standort|ubica|posizi|(?<![a-z])(?:loc|coord|gps|geo|lat|lon|lng|center|position|maps?\b|place"
    r"|home|at )|@\Z"
)
# Places told one number at a time, in degrees, and by post.
_DEGREES = re.compile(
    r"(?i)\b(?:lat(?:itude)?|lon(?:gitude)?|lng|long)[\"']?[ \t]*[:=][ \t]*[\"']?(?P<a>[-+]?\d{1,3}\.\d{3,})"
    r"|(?P<b>\d{1,3} ?(?:°|deg) ?\d{1,2} ?['′](?: ?\d{1,2}(?:\.\d+)? ?[\"″])? ?[NSEWO]\b)"
    r"|\bgeo:(?P<c>-?\d{1,2}\.\d{3,},-?\d{1,3}\.\d{3,})|\b(?P<d>\d{1,2}\.\d{3,}° ?[NS],? ?\d{1,3}\.\d{3,}° ?[EW])"
    r"|\\?\"coordinates\\?\": ?\[(?P<e>-?\d{1,3}\.\d{4,}, ?-?\d{1,2}\.\d{4,})"
)
_POST = re.compile(
    r"[\"'](?:postal_?[cC]ode|zip(?:_?[cC]ode)?|post_?code|plz|cep"
    r"|cap)[\"'] ?: ?[\"'](?P<a>[A-Z0-9][A-Z0-9 -]{3,9})[\"']"
    r"|\b(?P<b>(?:P\.? ?O\.? ?Box|Post(?:fach|bus|boks)|Boîte postale|BP|Apartado|Casella postale) \d{1,6})\b"
    r"|(?<![\w-])(?P<c>(?:GIR 0AA|[A-Z]{1,2}\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2}))(?![\w-])"
    r"|(?<![\w-])(?P<d>[ABCEGHJ-NPRSTVXY]\d[A-Z] \d[A-Z]\d)(?![\w-])"
)
_MONTHS = f"(?:{label_forms('months')})"
_BORN = re.compile(
    r"(?i)\b(?:born(?: on| at| in)?|birthday|birth ?date|date of birth|dob|geb\.|geboren|né[e]? le|nat[oa] (?:il|a)"
    r"|nacid[oa] el|nascid[oa] em|född|født|ur\.|geburtsdatum)"
    rf"(?:[^\n\d]{{1,30}}(?P<a>\d{{1,2}}[/.-]\d{{1,2}}[/.-](?:19|20)\d\d|(?:19|20)\d\d[/.-]\d\d[/.-]\d\d)(?!\d)"
    rf"|[a-z :,]{{0,12}}(?P<b>\d{{1,2}}(?:st|nd|rd|th|\.)? (?:de )?{_MONTHS},? (?:de )?(?:19|20)\d\d"
    rf"|{_MONTHS} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}))"
    r"|(?P<era>(?:明治|大正|昭和|平成)\d{1,2}年\d{1,2}月\d{1,2}日)"
)
_SAID_KEYED = re.compile(
    rf"(?i)\b(?P<name>{label_forms('records')}"
    r")(?!\w)[\"'. ]{0,3}(?:is|was|no|number)?(?:[:#= \"']{1,4}|[ \t]{0,20}\|[ \t]+)(?:(?:new )?(?:ISO)?Date\([\"']?)?"
    r"(?P<value>(?=[\w./ -]*\d)[A-Z0-9][\w./-]{4,20})"
)
_BIRTH = re.compile(r"birth|dob|bday|born|née?|na[cst]|geb|fød|född|födel|synty|urodz|рожд")
_SSN = re.compile(r"(?<![\w.-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_ZEROS = re.compile(r"0*\.?0*|(?:0\.0+[, ]*)+")
_RECORDS = (
    (_SSN, "national-id"),
    (_STREET, "address"),
    (_STREET_ABROAD, "address"),
    (_DEGREES, "geo"),
    (_POST, "address"),
    (_BORN, "birth-date"),
)
_KEYED = {
    tuple(label.split()): rule
    for rule, labels in {
        "national-id": "ssn,social security,tax id,national id,driver license,vat id,nino,aadhaar,cpf",
        "passport": "passport",
        "birth-date": "dob,date of birth,birth date,birthday,birthdate,geburtsdatum",
        "address": "street address,home address,street,postal code,zip code,postcode,plz,zip,address line,adress"
        ",adresse,indirizzo,direccion,endereco",
        "geo": "latitude,longitude,lat,lon,lng",
    }.items()
    for label in labels.split(",")
}
_FRACTION = re.compile(r"[-+]?\d{1,3}\.\d{4,}")


def records(text: str, key: str | None) -> Iterator[Hit]:
    """Find homes, places and birth dates."""
    for pattern, rule in _RECORDS:
        for match in pattern.finditer(text):
            group = match.lastgroup or 0
            if not _ZEROS.fullmatch(match[group]):
                yield _number(*match.span(group), rule, text)
    yield from _said_records(text, key)
    if (keyed := keyed_rule(key)) and _is_record(text, keyed):
        yield _number(0, len(text), keyed, text)


def _said_records(text: str, key: str | None) -> Iterator[Hit]:
    """Find homes, places and birth dates that a word before them tells."""
    for match in _SAID_ADDRESS.finditer(text):
        value = match["value"].rstrip(" .,")
        if _is_address(value):
            yield _number(match.start("value"), match.start("value") + len(value), "address", text)
    for match in _GEO.finditer(text):
        # Pairs of fractions stand in every log of numbers; only a word about places makes them a place.
        if _PLACE.search(f"{key or ''} {text[max(0, match.start() - 40) : match.start()]}"):
            yield _number(*match.span(), "geo", text)
    for match in _SAID_KEYED.finditer(text):
        name, value = match["name"].lower(), match["value"].rstrip(".")
        if not is_mark(match["value"]):
            rule = "birth-date" if _BIRTH.search(name) else "passport" if "pass" in name else "national-id"
            yield _number(match.start("value"), match.start("value") + len(value), rule, text)


def _is_address(value: str) -> bool:
    spaced = " " in value or re.search(r"[\u3040-\u9fff\uac00-\ud7a3]", value)
    if "  " in value or not spaced:  # the columns of a table
        return False
    return re.search(r"[^\W\d_]{3}", value) is not None and not re.match(r"0x|[\d.]+:\d|\d+\.\d+\.", value)


def _is_record(text: str, rule: str) -> bool:
    if rule == "geo":  # neither a whole number, nor a zone or a length
        return _FRACTION.fullmatch(text) is not None
    return 4 <= len(text) <= 120 and any(map(str.isdigit, text)) and not is_mark(text)


def keyed_rule(key: str | None) -> str | None:
    """Return what kind of personal record a field of this name holds."""
    words = key_words(key) if key else []
    for label, rule in _KEYED.items():
        numbered = words[-1:] in (["number"], ["no"]) and tuple(words[: len(label)]) == label
        if words and (numbered or tuple(words[-len(label) :]) == label):
            return rule
    return None


# Numbers that states give, by form and check digit.


@cache
def _checked() -> tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...]:
    from stdnum.be import nn
    from stdnum.br import cpf
    from stdnum.cl import rut
    from stdnum.cn import ric
    from stdnum.cz import rc
    from stdnum.es import dni, nie
    from stdnum.fi import hetu
    from stdnum.fr import nir
    from stdnum.it import codicefiscale
    from stdnum.se import personnummer

    forms: tuple[tuple[str, Callable[[str], bool]], ...] = (
        (r"\d{8}[A-Z]", dni.is_valid),
        (r"[XYZ]\d{7}[A-Z]", nie.is_valid),
        (r"\d{3}\.\d{3}\.\d{3}-\d{2}", cpf.is_valid),
        (r"[1-9]\d{5}(?:19|20)\d{9}[\dXx]", ric.is_valid),
        (r"[12] ?\d\d ?\d\d ?\d\d ?\d{3} ?\d{3} ?\d\d", nir.is_valid),
        (r"[A-Z]{6}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]", codicefiscale.is_valid),
        (r"(?:19|20)?\d{6}[-+]\d{4}", personnummer.is_valid),
        (r"\d{6}[-+A]\d{3}[0-9A-Y]", hetu.is_valid),
        (r"\d{1,2}\.\d{3}\.\d{3}-[\dkK]", rut.is_valid),
        (r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", nn.is_valid),
        (r"\d{6}/\d{4}", rc.is_valid),
    )
    return tuple((re.compile(rf"(?<![\w./-]){form}(?![\w/-])"), is_valid) for form, is_valid in forms)


# Those without a check digit: of Britain and Switzerland, Apple's devices, Windows accounts, wallets, travel documents.
_FORMED = re.compile(
    r"(?<![\w-])(?:(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]"
    r"|756\.\d{4}\.\d{4}\.\d\d|0000[0-9A-F]{4}-[0-9A-F]{16}|S-1-5-21-\d{5,10}-\d{5,10}-\d{5,10}(?:-\d+)?"
    r"|0x[0-9a-fA-F]{40}|bc1[ac-hj-np-z02-9]{25,60})(?![\w-])"
    r"|(?<![A-Z0-9<])[PIAC][A-Z<][A-Z<]{3}[^\W\d_a-z]+(?:<[^\W\d_a-z]*){2,}[A-Z0-9<]*"
    r"|(?<![A-Z0-9<])[A-Z0-9<]{9}\d[A-Z<]{3}\d{6,7}[MFX<]\d{6,7}[A-Z0-9<]{2,16}\d{0,2}"
)


def national_ids(text: str, _key: str | None) -> Iterator[Hit]:
    """Find identity numbers of several states by form and check digit."""
    for pattern, is_valid in _checked():
        for match in pattern.finditer(text):
            if is_valid(match.group()):
                yield _number(*match.span(), "national-id", text)
    for match in _FORMED.finditer(text):
        yield _number(*match.span(), "national-id", text)


# Numbers that a word beside them says to be somebody's.

# What people and forms call such a number, in the languages that sessions are written in.
_LABELS = label_forms("numbers of people")


_LABEL = re.compile(rf"(?i)(?:.*[ ])?(?:{_LABELS})(?: (?:number|num|no|nr|card|id|code|numero|número|nummer))*")


def is_number_label(label: str) -> bool:
    """Tell a label under which somebody's number is given."""
    words = key_words(label) if label.isascii() else re.split(r"[\W_]+", label.lower())
    words = [word for word in words if word and not word.isdigit()]
    if not words or words[-1] in word_list("not numbers") or words in (["pass"], ["card"], ["client"], ["customer"]):
        return False
    joined = "".join(words)
    return (
        not word_list("personal numbers").isdisjoint(words)
        or joined in word_list("personal numbers")
        or _LABEL.fullmatch(" ".join(words)) is not None
    )


_FIELD_NUMBER = re.compile(r"(?=(?:.*\d){3})[A-Z0-9À-Þ][A-Z0-9À-Þ]*(?:[ ./-][A-Z0-9]+){0,6}")
_DATED = re.compile(r"(?:19|20)\d\d[-/.]\d\d[-/.]\d\d.*|\d\d[-/.]\d\d[-/.](?:19|20)?\d\d|\d+[.,]\d\d?")


def number_in_field(label: str, value: str, *, sure: bool) -> Hit | None:
    """Judge the value of a field whose label names a number of somebody; `sure` says that a person is beside it."""
    if hit := next(_under_label(label, value), None):
        return hit
    formed = 4 < len(value) <= 40 and len(set(value)) > 1 and _FIELD_NUMBER.fullmatch(value)
    if sure and formed and not _DATED.fullmatch(value):
        return Hit(0, len(value), "personal-number", "number", value)
    return None


def _under_label(label: str, value: str) -> Iterator[Hit]:
    prefix = f"{' '.join(key_words(label)) if label.isascii() else label}: "
    for hit in _labelled(prefix + value):
        if hit.start >= len(prefix):
            yield replace(hit, start=hit.start - len(prefix), end=hit.end - len(prefix))


_SAID = re.compile(
    rf"(?i)(?:(?<![^\W_])|(?<=[\u3040-\u9fff]))(?P<what>{_LABELS})"
    r"(?P<more>[ _-]?(?:(?:numbers?|num|no|nr|card|id|code|licen[cs]e|#|号|番号|numero|número|numéro"
    r"|nummer)\.?[ _-]?){0,3})"
    r"(?: \([\w ]{1,20}\))?[\"']?[ \t]*(?P<said>is[ \t]+|ist[ \t]+|[:：#=>|][ \t]*|[ \t]+)"
    r"[\"']?(?P<value>(?=[\w ./-]{0,24}\d|[A-Z]{7})[A-Z0-9А-ЯІЇЄ][A-Z0-9А-ЯІЇЄ./-]*"
    r"(?: (?:\d[\d./-]*|[A-Z]\d[\w-]*)){0,4}"
    r"(?:\(\d\))?(?: ?№ ?\d{4,})?)"
)
_THINGS = frozenset({"tracking", "client", "customer", "account", "policy", "claim", "run", "device id"})
_DRAWN = frozenset(
    {"s/n", "sn", "serial", "serialnumber", "parcel", "tracking", "consignment", "shipment", "imei", "udid"}
)
_SERIALS = ("serial", "asset", "hardware", "device", "machine")
_ACCOUNTS = ("account", "acct", "konto", "conta", "conto", "cuenta", "routing", "aba")
_CERTIFICATE = re.compile(r"(?=\d*[A-F])[0-9A-F]{16,40}|[0-9A-F]{2}(?::[0-9A-F]{2}){6,}")
_PROCESS = re.compile(r"[0-9a-f-]{16,}")
_PLAIN = re.compile(r"\d{4}-\d\d-\d\d.*|\d+\.\d+(?:\.\d+)*|1[67]\d{8}(?:\d{3})?")
_LEAST_TOLD, _LEAST_DRAWN = 7, 10
_PLATE = re.compile(
    r"(?i)\b(?:number ?plate|licen[cs]e plate|plates?(?: no\.?| number)?|vehicle reg(?:istration)?|rego|kennzeichen"
    r"|immatriculation|targa|matrícula|kenteken|registreringsnummer|nr rej\.?|placa(?: do veículo)?|plaka"
    r"|rekisterinumero|spz)[\"']?[ \t]*(?:is|[:=#])?[ \t]*[\"']?"
    r"(?-i:(?P<a>(?=[A-Z -]*\d)[A-Z0-9]{1,4}(?:[ -]?[A-Z0-9]{1,5}){1,3}))\b"
    r"|\b(?:reg(?:istration)?|vehicle|car|van)\b[^\n\d]{0,16}?(?-i:(?P<b>[A-Z]{2}\d\d ?[A-Z]{3}))(?![\w-])"
)
_ADB = re.compile(r"(?m)^(?P<value>[A-Z0-9]{8,20})\s+device (?:usb|product):")
_CLOUD_ACCOUNT = re.compile(
    r"(?i)(?:tenant|subscription|directory|organization|organisation"
    r"|billing[ _-]?account)[ _-]?(?:id)?[\"']?[ \t]*[:=/]"
    r"[ \t]*[\"']?(?P<a>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9A-F]{6}(?:-[0-9A-F]{6}){2})"
    r"|\barn:aws[\w-]*:[\w-]+:[\w-]*:(?P<b>\d{12}):|\baccount(?:[ _-]?id)?[\"']?[ \t]*[:=][ \t]*[\"']?(?P<c>\d{12})\b"
    r"|\b(?P<d>\d{12})\.dkr\.ecr\."
)
_SAMPLE_ACCOUNTS = frozenset(
    {"000000000000", "123456789012", "111111111111", "111122223333", "012345678901", "012345678910"}
)
_TOLD_FORMS = ((_PLATE, "plate"), (_ADB, "serial"), (_CLOUD_ACCOUNT, "cloud-account"))


def said_numbers(text: str, key: str | None) -> Iterator[Hit]:
    """Find numbers that a word beside them, or the JSON key above them, says to be somebody's."""
    yield from _labelled(text)
    if key is not None and len(text) <= 60:
        yield from _under_label(key, text)
    for pattern, rule in _TOLD_FORMS:
        for match in pattern.finditer(text):
            value = match[str(match.lastgroup)]
            if not is_mark(value) and len(set(value)) >= 5 and value not in _SAMPLE_ACCOUNTS:
                yield Hit(*match.span(str(match.lastgroup)), rule, "number", value)


def _labelled(text: str) -> Iterator[Hit]:
    for match in _SAID.finditer(text):
        value, what = match["value"].rstrip(" .-/"), match["what"].lower()
        told = bool(match["said"].strip() or match["more"].strip(" _-"))
        if not _is_of_nobody(what, value, text, match.start("value")) and _is_somebodys(what, value, told=told):
            rule = "serial" if what.startswith(_SERIALS) else "national-id"
            yield Hit(match.start("value"), match.start("value") + len(value), rule, "number", value)


def _is_of_nobody(what: str, value: str, text: str, start: int) -> bool:
    """Tell what manuals print, 00000000, and the number of a process, a request or a certificate."""
    digits = [char for char in value if char.isdigit()]
    if is_mark(value) or value in _SAMPLE_ACCOUNTS or (len(digits) > 3 and len(set(digits)) == 1):
        return True
    if what == "run" and _PROCESS.fullmatch(value):
        return True
    if what in _THINGS and UUID.match(text, start):
        return True
    return what.startswith("serial") and _CERTIFICATE.fullmatch(value) is not None


def _is_somebodys(what: str, value: str, *, told: bool) -> bool:
    digits = sum(map(str.isdigit, value))
    # Serial numbers and parcels' are drawn from letters and digits; an id's digits outweigh its letters.
    drawn = what in _DRAWN and len(value) >= (_LEAST_TOLD if told else _LEAST_DRAWN) and not is_ordinary(value)
    drawn = drawn and value.isascii() and value.isalnum() and value.upper() == value
    if digits < 4 or len(value) < 6:
        return drawn
    if what not in word_list("loose numbers"):
        return True
    # These words have other uses: only a number of some length, told by a mark or by `number`, is somebody's.
    if digits < 11 and _PLAIN.fullmatch(value):
        return False
    return drawn or (told and (digits >= 6 or len(value) >= 9)) or (digits >= 8 and what in _ACCOUNTS)
