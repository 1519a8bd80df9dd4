"""Numbers that lead to a person: phones, cards, accounts, addresses of machines and homes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit, is_mark
from eval_core.suite.scrub.secret_values import key_words

__all__ = ["accounts", "addresses", "is_fictional_phone", "keyed_rule", "phones", "records"]

_PHONE = re.compile(
    r"(?:(?<![\w.+/\-=#:])|(?<=[\w][=:])(?=\+))(?P<plus>\+|00(?=[1-9]))\d(?:[\s()./\-\u00a0\u2011]{0,2}\d){6,14}(?![\w-]*\d)"
    r"|(?<![\w.+/\-=#:])(?:\(\d{3}\)[ .-]?|\d{3}(?P<gap>[-. ]))\d{3}(?(gap)(?P=gap)|[-. ])\d{4}(?![\w.\-]?\d)"
)
# As people write them at home: 06 12 34 56 78, 070-1234-5678, 0301-1234567.
_HOME_PHONE = re.compile(
    r"(?<![\w.+/\-=#:,])(?<!\d )(?:0[1-9](?:[ .]\d\d){4}|\(0?[1-9]\d\) ?9?\d{4}-\d{4}"
    r"|0\d{1,4}-\d{2,4}-\d{3,4}|0[1-9]\d{2}-\d{7}|0\d-\d{8}"
    r"|0\d{1,3}-\d{2,3} \d\d \d\d"
    r"|(?<=[^\d\s] )(?:0\d\d \d{3} \d\d \d\d|0\d{1,3} \d{3,4} \d{3,4}|0\d{3,4} \d{6}"
    r"|0\d{2,4}(?: \d\d){3}))(?![\w-]|[ .:/]\d)"
)
_SAID_PHONE = re.compile(
    r"(?i)(?:(?<![^\W_])(?:phone|tel|telephone|telefon|mobile|mobil|cell|handy|whatsapp|fax|sms|call me (?:at|on)"
    r"|text me (?:at|on)|ring me (?:at|on)|reach me (?:at|on))\b|电话|手机|電話)"
    r"[\w .]{0,16}?[\"':=： ]{1,5}(?P<number>\+?\(?\d(?:[\s()./\-]{0,2}\d){6,14})(?![\w.-]*\d)"
)
# Our own placeholders, what manuals write without an area, and numbers of zeros.
_FICTION = re.compile(r"\+1 \d{3}-555-01\d\d|\D*1?\D*555\D*01\d\d\D*|(?:\D*\d){0,5}(?:\D*0){6,}\D*")
# Whom a message goes to.
_ADDRESSEE = re.compile(
    r"[\"'](?:to|from|recipient|msisdn|caller|callee|dest\w*)[\"'] ?[:=] ?[\"'](?P<number>\d{10,13})[\"']"
)
_CARD = re.compile(
    r"(?<![\w.\-/+=])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{1,7}|\d{4}([ -])\d{6}\2\d{4,5}|\d{13,19})(?![\w\-/=]|\.\d)"
)
_CARD_FORM = re.compile(
    r"4\d{12}(?:\d{3}(?:\d{3})?)?|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14,17}"
)
_IBAN = re.compile(r"(?<![\w-])[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![\w-])")
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AT": 20, "BE": 16, "BG": 22, "BR": 29, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18,
    "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GR": 27, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IS": 26,
    "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31, "NL": 18, "NO": 15, "PL": 28, "PT": 25,
    "RO": 24, "RS": 22, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "TR": 26, "UA": 29,
}  # fmt: skip
_IPV4 = re.compile(r"(?<![\w.\-^~])(?:\d{1,3}\.){3}\d{1,3}(?![\w\-]|\.\d)")
_IPV4_DASHED = re.compile(
    r"\b(?:ip|ec2|vps|host|static)-(?P<value>\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})\b"
    r"|(?<![\w.-])(?P<value2>\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3})(?=\.[a-z])"
)
_VERSION_BEFORE = re.compile(
    r"(?:version|ver|release|==|>=|<=|~=|v|rev|build|chrome/|safari/|firmware|driver)[\"':= ]{0,4}\Z", re.I
)
_IPV6 = re.compile(r"(?<![\w:.])[23][0-9a-fA-F]{3}:(?:[0-9a-fA-F]{0,4}:){1,6}[0-9a-fA-F]{0,4}(?![\w:])")
_MAC = re.compile(r"(?:(?<![\w:-])|(?<=\s01:))(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}(?![\w:-])")
# Ours, and those of groups: broadcast, multicast DNS, spanning trees.
_GROUP_MAC = re.compile(r"(?i)02|ff|33[:-]33|01[:-](?:00[:-]5e|80[:-]c2|00[:-]0c|1b[:-]19)|00[:-]00[:-]5e[:-]00[:-]01")
_MAC_DOTTED = re.compile(
    r"(?<![\w.])(?=[0-9a-f.]*[a-f])(?=[a-f.]*\d)[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?![\w.])", re.I
)
_SSN = re.compile(r"(?<![\w.-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_STREET = re.compile(
    r"\b\d{1,5}[A-Za-z]?,? (?:[NSEW]\.? )?(?:[A-ZÀ-Þ][\w'’.-]+ ){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive"
    r"|Dr|Boulevard|Blvd|Court|Ct|Way|Square|Terrace|Place|Pl|Crescent)\b\.?"
    r"(?:,? (?:Apt|Apartment|Unit|Suite|Flat|#)\.? ?\w+)?(?:, [A-ZÀ-Þ][\w'’. -]+?)?(?:,? [A-Z]{2} \d{5}(?:-\d{4})?)?"
    r"|\b[A-ZÄÖÜ][\wäöüß-]*(?:straße|strasse|str\.|weg|platz|allee|gasse) \d{1,4}[a-z]?(?:, \d{5} [A-ZÄÖÜ][\wäöüß]+)?"
    r"|\b\d{1,4}(?: ?bis)?,? (?:[Rr]ue|[Aa]venue|[Bb]oulevard|[Pp]lace|[Cc]hemin|[Ii]mpasse|[Qq]uai"
    r"|[Aa]llée) (?:de |du |des |la |le "
    r"|l')*[A-ZÀ-Þ][\w'’-]+(?:,? \d{5} [A-ZÀ-Þ][\w-]+)?"
)
# Elsewhere the word for a street stands before its name or is a part of it; or a form says that an address follows.
_STREET_ABROAD = re.compile(
    r"\b(?:Via|Viale|Piazza|Corso|Vicolo|Calle|Avenida|Avda\.|Plaza|Paseo|Carrer|Camino|Rua|Avenida|Travessa"
    r"|Praça|Largo|ul\.|al\."
    r"|os\.|pl\.|ulica|ulice|улица|ул\.|проспект|пр\.) (?:de |del |della |dei |do |da |dos |das |las |los |la "
    r"|el )*[A-ZÀ-ÞĄ-ŻА-Я][\w'’.-]+"
    r"(?: [A-ZÀ-ÞĄ-ŻА-Я][\w'’.-]+){0,2},? (?:n\.?º? ?|д\. ?)?\d{1,5}[A-Za-z]?(?:/\d+)?"
    r"|\b[A-ZÀ-Þ][\w'’-]*(?:straat|laan|plein|gracht|kade|dijk|gatan|vägen|gränd|torget|gade|vej|allé|veien|gata"
    r"|katu|kuja|tie|polku"
    r"|utca|tér|caddesi|sokak) \d{1,4} ?[A-Za-z]?\b"
    r"|\b(?:Am|An der|An den|Auf der|Auf dem|Im|In der|Zum|Zur|Beim|Hinter der"
    r"|Unter den) [A-ZÄÖÜ][a-zäöüß]{3,} \d{1,3}[a-z]?\b(?! ?[%:.]\w)"
    r"|\b(?:[A-ZÇĞİÖŞÜ][\wçğıöşü]+ ){1,3}(?:Mah|Mahallesi|Cad|Caddesi|Sok|Sokak|Sokağı|Bulvarı)\b\.?[^\n\"';|]{0,60}?"
    r"\bNo ?[:.] ?\d+[^\n\"';|,]{0,40}"
    r"|\bJ(?:l|alan|ln)\b\.? [A-Z][^\n\"';|]{2,50}?\bNo\.? ?\d+[^\n\"';|]{0,40}"
    r"|〒 ?\d{3}-\d{4}"
    r"|[一-鿿]{2,3}[都道府県][一-鿿ヶケ]{1,6}[市区町村郡][^\s、。,]{0,24}\d[\d丁目番地号の-]*"
    r"|(?:[一-鿿]{2,3}省)?[一-鿿]{2,4}市[一-鿿]{1,6}[区县區縣][一-鿿]{2,10}[路街道巷弄村](?:[一-鿿]{0,4}\d+[号號弄巷室楼樓栋棟-]*)+"
    r"|[가-힣]{2,7}[시도] (?:[가-힣]{1,5}[시군구] ){1,2}[가-힣\d]{1,10}[로길] ?\d+(?:-\d+)?"
)
_SAID_ADDRESS = re.compile(
    r"(?i:\b(?:(?:home|postal|street|mailing|billing|shipping|delivery)[ _-]?address"
    r"|address(?:[ _-]?line[ _-]?\d)?|adresse|adres|indirizzo"
    r"|dirección|direccion|endere[çc]o|adresi?|adress|osoite|lakcím|cím|adresă|alamat|địa chỉ|lives at|lives in"
    r"|wohnhaft|wohnt|habite|vive en|abita in|mieszka|woont"
    r"|bor på|domicilio)\b"
    r"|住所|地址|ที่อยู่|адрес|διεύθυνση|כתובת|العنوان|पता)"
    r"[\"']?[ \t]*[:=：|]?[ \t]*[\"']?(?P<value>(?=[^\n\"';|]{0,60}\d)(?=[^\n\"';"
    r"|]{0,60}[A-ZÀ-Þ\u0370-\u1fff一-鿿가-힣])(?![a-zà-ÿ])[^\W_][^\n\"';|<>{}=]{5,90})"
)
_GEO = re.compile(r"(?<![\w.])[-+]?(?:[1-8]?\d|90)\.\d{4,},[ ]?[-+]?(?:1[0-7]\d|\d{1,2})\.\d{4,}(?![\w.]*\d)")
# Places told one number at a time, in degrees, and by post.
_DEGREES = re.compile(
    r"(?i)\b(?:lat(?:itude)?|lon(?:gitude)?|lng|long)[\"']?[ \t]*[:=][ \t]*[\"']?(?P<value>[-+]?\d{1,3}\.\d{3,})"
    r"|(?P<value2>\d{1,3} ?(?:°|deg) ?\d{1,2} ?['′](?: ?\d{1,2}(?:\.\d+)? ?[\"″])? ?[NSEWO]\b)"
    r"|\bgeo:(?P<value3>-?\d{1,2}\.\d{3,},-?\d{1,3}\.\d{3,})|\b"
    r"(?P<value4>\d{1,2}\.\d{3,}° ?[NS],? ?\d{1,3}\.\d{3,}° ?[EW])"
    r"|\\?\"coordinates\\?\": ?\[(?P<value5>-?\d{1,3}\.\d{4,}, ?-?\d{1,2}\.\d{4,})"
)
_POST = re.compile(
    r"[\"'](?:postal_?[cC]ode|zip(?:_?[cC]ode)?|post_?code|plz|cep"
    r"|cap)[\"'] ?: ?[\"'](?P<value0>[A-Z0-9][A-Z0-9 -]{3,9})[\"']"
    r"|\b(?P<value>(?:P\.? ?O\.? ?Box|Post(?:fach|bus|boks)|Boîte postale|BP|Apartado|Casella postale) \d{1,6})\b"
    r"|(?<![\w-])(?P<value2>(?:GIR 0AA|[A-Z]{1,2}\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2}))(?![\w-])"
    r"|(?<![\w-])(?P<value3>[ABCEGHJ-NPRSTVXY]\d[A-Z] \d[A-Z]\d)(?![\w-])"
)
_EXPIRY = re.compile(
    r"(?i)\b(?:exp(?:iry|ires|iration)?(?: date)?|valid (?:thru|until|to)|gültig bis)[.: ]{1,3}(?P<value>"
    r"(?:0[1-9]|1[0-2]) ?/ ?(?:20)?[2-4]\d)(?![\d/])"
)
_BANK = re.compile(
    r"(?i)\b(?:bic|swift(?:[ /-]?(?:bic|code))?)[ \"']*[:= ][ \"']*(?P<value>[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)\b"
    r"|\bwa\.me/(?P<value2>\d{8,15})|\b(?:api\.)?whatsapp\.com/send\?phone=(?P<value3>\d{8,15})"
)
_PLACE = re.compile(
    r"(?i)konum|standort|ubica|posizi|loc|coord|gps|geo|lat|lon|lng|center|position|maps?\b|place|home|@\Z|\bat "
)
_KEYED = {
    ("ssn",): "national-id", ("social", "security"): "national-id", ("passport",): "passport",
    ("tax", "id"): "national-id",
    ("national", "id"): "national-id", ("driver", "license"): "national-id", ("dob",): "birth-date",
    ("date", "of", "birth"): "birth-date", ("birth", "date"): "birth-date", ("birthday",): "birth-date",
    ("birthdate",): "birth-date", ("geburtsdatum",): "birth-date", ("street", "address"): "address",
    ("home", "address"): "address", ("street",): "address", ("postal", "code"): "address", ("zip", "code"): "address",
    ("postcode",): "address", ("plz",): "address", ("zip",): "address", ("latitude",): "geo", ("longitude",): "geo",
    ("lat",): "geo", ("lon",): "geo", ("lng",): "geo",
    ("full", "name"): "name", ("first", "name"): "name", ("last", "name"): "name", ("surname",): "name",
    ("vat", "id"): "national-id", ("nino",): "national-id", ("aadhaar",): "national-id", ("cpf",): "national-id",
    ("address", "line"): "address", ("adress",): "address", ("adresse",): "address", ("indirizzo",): "address",
    ("direccion",): "address", ("endereco",): "address",
    ("maiden", "name"): "name", ("given", "name"): "name", ("family", "name"): "name", ("real", "name"): "name",
}  # fmt: skip
_SAID_KEYED = re.compile(
    r"(?i)\b(?P<name>national insurance(?: (?:no|number))?|nino|passport(?:[ _](?:no|number))?|date[ _-]of[ _-]birth"
    r"|birth[ _-]?date|née? le|date de naissance|fecha de nacimiento|nacid[oa] el|geburtsdatum|geboren(?: am)?"
    r"|geb\.|data di nascita"
    r"|nat[oa] il|data de nascimento|nascid[oa] em|geboortedatum|födelsedatum|född|fødselsdato|født"
    r"|syntymäaika|data urodzenia"
    r"|дата рождения|data nașterii|doğum tarihi|születési|datum rođenja|datum narození|rojstva|ημερομηνία γέννησης"
    r"|born(?: on)?|birthday|dob|ssn|social security(?: number)?|national id|tax id|"
    r"driver'?s? licen[cs]e(?: (?:no|number))?|bday)(?!\w)[\"'. ]{0,3}(?:is|was|no"
    r"|number)?(?:[:#= \"']{1,4}"
    r"|[ \t]{0,20}\|[ \t]+)(?:(?:new )?(?:ISO)?Date\([\"']?)?(?P<value>(?=[\w./ -]*\d)[A-Z0-9][\w./-]{4,20})"
)
_MONTHS = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_MONTHS_ABROAD = (
    r"(?:januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december|januar|februar|märz|mai"
    r"|august|dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|enero|febrero"
    r"|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|gennaio|febbraio|aprile|maggio|giugno"
    r"|luglio|settembre|ottobre|dicembre|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro)"
)
_BORN_LATER = re.compile(
    r"(?i)(?P<era>(?:明治|大正|昭和|平成)\d{1,2}年\d{1,2}月\d{1,2}日)|"
    r"\b(?:dob|date of birth|born|birthday)\b[^\n\d]{1,30}(?P<value>\d{1,2}[/.-]\d{1,2}[/.-](?:19|20)\d\d"
    r"|(?:19|20)\d\d[/.-]\d\d[/.-]\d\d)(?!\d)"
)
_BORN_ABROAD = re.compile(
    rf"(?i:\b(?:geb\.|geboren|né[e]? le|nat[oa] (?:il|a)|nacid[oa] el|nascid[oa] em|född|født|ur\.|geburtsdatum"
    rf"|born)[a-z :]{{0,12}})"
    rf"(?P<value>\d{{1,2}}\.? (?:de )?(?i:{_MONTHS_ABROAD}) (?:de )?(?:19|20)\d\d)"
)
_BORN = re.compile(
    rf"(?i:\b(?:born(?: on)?|birthday(?: is)?|birth ?date|date of birth|dob))[:,]? (?:is )?(?P<value>\d{{1,2}}"
    rf"(?:st|nd|rd|th)? {_MONTHS},? \d{{4}}|{_MONTHS} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}})"
)
_BIRTH = re.compile(r"birth|dob|born|née?|na[cst]|geb|fød|född|födel|synty|urodz|рожд")
_KNOWN_HOSTS = {"8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "255.255.255.255", "4.4.4.4"}


def phones(text: str, key: str | None) -> Iterator[Hit]:
    """Find phone numbers that the numbering plans know, and what is said to be one."""
    import phonenumbers

    for match in _PHONE.finditer(text):
        number = match.group()
        national = match.group("plus") is None
        if number.startswith("00"):
            if number.isdigit() and number[2] == "1":  # a bar code more likely than a call to America
                continue
            number = "+" + number[2:]
        try:
            parsed = phonenumbers.parse(number, "US" if national else None)
        except phonenumbers.NumberParseException:
            continue
        # Plans change, and people mistype: with a plus, a number of a possible length is one.
        dialled = match.group().startswith("+") and sum(map(str.isdigit, number)) > 10
        grouped = not national and re.search(r"\d[ ()./\-]\d", number) is not None
        if phonenumbers.is_valid_number(parsed) or ((grouped or dialled) and phonenumbers.is_possible_number(parsed)):
            yield from _phone(match.start(), match.end(), text)
    for match in _SAID_PHONE.finditer(text):
        yield from _phone(*match.span("number"), text)
    for match in _HOME_PHONE.finditer(text):
        if 9 <= sum(map(str.isdigit, match.group())) <= 12:
            yield from _phone(*match.span(), text)
    for match in _ADDRESSEE.finditer(text):
        try:
            parsed = phonenumbers.parse("+" + match["number"])
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(parsed):
            yield from _phone(*match.span("number"), text)
    words = key_words(key) if key else []
    if {"phone", "tel", "telephone", "mobile", "cell", "whatsapp", "fax", "msisdn"} & set(words):
        stripped = re.sub(r"[\s()./+-]", "", text)
        if stripped.isdigit() and 7 <= len(stripped) <= 15:
            yield from _phone(0, len(text), text)


def is_fictional_phone(value: str) -> bool:
    """Tell our own placeholders, what manuals print, and numbers of zeros."""
    return _FICTION.fullmatch(value) is not None


def _phone(start: int, end: int, text: str) -> Iterator[Hit]:
    value = text[start:end]
    if not is_fictional_phone(value):
        yield Hit(start, end, "phone", "phone", re.sub(r"\D", "", value).lstrip("0"))


def _luhn(digits: str) -> bool:
    total = 0
    for position, char in enumerate(reversed(digits)):
        value = int(char) * (2 if position % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def accounts(text: str, _key: str | None) -> Iterator[Hit]:
    """Find payment cards and bank accounts by their check digits."""
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match.group())
        if _CARD_FORM.fullmatch(digits) and _luhn(digits) and len(set(digits)) > 3:
            yield Hit(match.start(), match.end(), "card", "number", digits)
    for match in _IBAN.finditer(text):
        plain = re.sub(r"[ -]", "", match.group())
        wanted = _IBAN_LENGTHS.get(plain[:2])
        if wanted is None or len(plain) < wanted:
            continue
        # The pattern may run into the next word; the country says where the account ends.
        end, seen = match.start(), 0
        while seen < wanted:
            seen += text[end] not in " -"
            end += 1
        plain = plain[:wanted]
        if int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1:
            yield Hit(match.start(), end, "iban", "number", plain)


def addresses(text: str, _key: str | None) -> Iterator[Hit]:
    """Find public network addresses; private and documentation ranges say nothing about anybody."""
    for match in _IPV4.finditer(text):
        if _public(match.group()) and not _VERSION_BEFORE.search(text, max(0, match.start() - 14), match.start()):
            yield Hit(match.start(), match.end(), "ip", "ip4", match.group())
    for match in _IPV4_DASHED.finditer(text):
        group = str(match.lastgroup)
        dotted = match[group].replace("-", ".")
        if _public(dotted):
            yield Hit(*match.span(group), "ip", "ip4-dashed", dotted)
    for match in _IPV6.finditer(text):
        if _public(match.group()):
            yield Hit(match.start(), match.end(), "ip", "ip6", match.group().lower())
    for match in _MAC_DOTTED.finditer(text):
        yield Hit(match.start(), match.end(), "mac", "number", match.group().lower())
    for match in _MAC.finditer(text):
        if re.search(
            r"(?i)(?:serial|fingerprint|sha\d*|md5)[\w ]{0,12}[:=]? ?\Z",
            text[max(0, match.start() - 24) : match.start()],
        ):
            continue
        if not _GROUP_MAC.match(match.group()) and len(set(match.group())) > 3:
            yield Hit(match.start(), match.end(), "mac", "mac", match.group().lower().replace("-", ":"))


def _public(value: str) -> bool:
    if value in _KNOWN_HOSTS:
        return False
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    # Four small numbers are a version: 1.17.1.0.
    small = address.version == 4 and max(address.packed) < 40
    return address.is_global and not address.is_multicast and not small


def records(text: str, key: str | None) -> Iterator[Hit]:
    """Find national ids, homes, places and birth dates."""
    for match in _SSN.finditer(text):
        yield Hit(match.start(), match.end(), "national-id", "number", match.group())
    for match in _STREET.finditer(text):
        yield Hit(match.start(), match.end(), "address", "number", match.group().lower())
    for match in _STREET_ABROAD.finditer(text):
        yield Hit(match.start(), match.end(), "address", "number", match.group().lower())
    for match in _SAID_ADDRESS.finditer(text):
        value = match.group("value").rstrip(" .,")
        if "  " in value:  # the columns of a table
            continue
        spaced = " " in value or re.search(r"[\u3040-\u9fff\uac00-\ud7a3]", value)
        if spaced and re.search(r"[^\W\d_]{3}", value) and not re.match(r"0x|[\d.]+:\d|\d+\.\d+\.", value):
            yield Hit(match.start("value"), match.start("value") + len(value), "address", "number", value.lower())
    for pattern, rule in (
        (_DEGREES, "geo"),
        (_POST, "address"),
        (_EXPIRY, "card"),
        (_BANK, "account"),
        (_BORN, "birth-date"),
        (_BORN_ABROAD, "birth-date"),
        (_BORN_LATER, "birth-date"),
    ):
        for match in pattern.finditer(text):
            group = str(match.lastgroup)
            if not re.fullmatch(r"0*\.?0*|(?:0\.0+[, ]*)+", match.group(group)):
                yield Hit(*match.span(group), rule, "number", match.group(group).lower())
    for match in _GEO.finditer(text):
        # Pairs of fractions stand in every log of numbers; only a word about places makes them a place.
        if not _PLACE.search(f"{key or ''} {text[max(0, match.start() - 40) : match.start()]}"):
            continue
        yield Hit(match.start(), match.end(), "geo", "number", match.group())
    for match in _SAID_KEYED.finditer(text):
        name, value = match.group("name").lower(), match.group("value")
        if not is_mark(value):
            rule = "birth-date" if _BIRTH.search(name) else "passport" if "pass" in name else "national-id"
            yield Hit(match.start("value"), match.start("value") + len(value.rstrip(".")), rule, "number", value)
    keyed = keyed_rule(key)
    if keyed == "name":
        if re.fullmatch(r"[A-ZÀ-Þ][\w'’.-]*(?: [A-ZÀ-Þ][\w'’.-]*){0,3}", text) and not re.fullmatch(r"Person\d+", text):
            yield Hit(0, len(text), "author", "name", text.lower())
    elif keyed == "geo" and not re.fullmatch(r"[-+]?\d{1,3}\.\d{4,}", text):
        return  # a whole number, a zone, a length
    elif keyed is not None and 4 <= len(text) <= 120 and any(char.isdigit() for char in text) and not is_mark(text):
        yield Hit(0, len(text), keyed, "number", text)


def keyed_rule(key: str | None) -> str | None:
    """Return what kind of personal record a field of this name holds."""
    if key is None:
        return None
    words = key_words(key)
    for pattern, rule in _KEYED.items():
        if tuple(words[-len(pattern) :]) == pattern or (
            words and tuple(words[: len(pattern)]) == pattern and words[-1] in ("number", "no")
        ):
            return rule
    return None
