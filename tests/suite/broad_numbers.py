"""Broad kinds of numbers and places that lead to a person: phones, identity numbers, accounts and homes by country."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.suite.broad_people import PLACES, drawn_person
from tests.suite.corpus import DIGITS, HEX, Kind, Planted, draw

__all__ = ["BROAD_NUMBERS"]


def _number(name: str, value: Callable[[random.Random], str], *frames: str) -> Kind:
    def make(rng: random.Random) -> Planted:
        text = value(rng)
        return Planted(rng.choice(frames).replace("%s", text), (text,))

    return Kind(name, "personal", make, held_out=True)


def _shape(pattern: str) -> Callable[[random.Random], str]:
    """Draw digits for 9 (0 to 9), 8 (2 to 8), and capitals for A."""
    return lambda rng: "".join(
        rng.choice(DIGITS)
        if c == "9"
        else rng.choice("2345678")
        if c == "8"
        else rng.choice("BCDFGHJKLMNPRSTVWXZ")
        if c == "A"
        else c
        for c in pattern
    )


def _weighted(rng: random.Random, weights: tuple[int, ...], modulus: int, finish: Callable[[int], int | None]) -> str:
    while True:
        digits = [rng.randrange(1, 10), *(rng.randrange(10) for _ in weights[1:])]
        check = finish(sum(a * b for a, b in zip(digits, weights, strict=True)) % modulus)
        if check is not None:
            return "".join(map(str, [*digits, check]))


def _portuguese(rng: random.Random) -> str:
    return _weighted(rng, (9, 8, 7, 6, 5, 4, 3, 2), 11, lambda rest: 0 if rest < 2 else 11 - rest)


def _nhs(rng: random.Random) -> str:
    plain = _weighted(rng, (10, 9, 8, 7, 6, 5, 4, 3, 2), 11, lambda r: None if r == 1 else (11 - r) % 11)
    return f"{plain[:3]} {plain[3:6]} {plain[6:]}"


def _turkish(rng: random.Random) -> str:
    digits = [rng.randrange(1, 10), *(rng.randrange(10) for _ in range(8))]
    digits.append((7 * sum(digits[0:9:2]) - sum(digits[1:8:2])) % 10)
    digits.append(sum(digits) % 10)
    return "".join(map(str, digits))


def _luhn_number(size: int, joint: str = "", group: int = 0) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        digits = [rng.randrange(1, 10), *(rng.randrange(10) for _ in range(size - 2))]
        total = 0
        for place, digit in enumerate(reversed(digits)):
            doubled = digit * 2 if place % 2 == 0 else digit
            total += doubled - 9 if doubled > 9 else doubled
        text = "".join(map(str, [*digits, -total % 10]))
        return joint.join(text[at : at + group] for at in range(0, size, group)) if group else text

    return make


def _finnish(rng: random.Random) -> str:
    birth, serial = (
        f"{rng.randrange(1, 29):02d}{rng.randrange(1, 13):02d}{rng.randrange(50, 99)}",
        rng.randrange(2, 899),
    )
    return f"{birth}-{serial:03d}{'0123456789ABCDEFHJKLMNPRSTUVWXY'[int(f'{birth}{serial:03d}') % 31]}"


def _chilean(rng: random.Random) -> str:
    number = rng.randrange(5_000_000, 24_000_000)
    total = sum(int(c) * w for c, w in zip(reversed(str(number)), (2, 3, 4, 5, 6, 7, 2, 3), strict=False))
    check = 11 - total % 11
    return f"{number:,}".replace(",", ".") + "-" + {10: "K", 11: "0"}.get(check, str(check))


def _sid(rng: random.Random) -> str:
    return (
        "S-1-5-21-" + "-".join(str(rng.randrange(10**8, 4 * 10**9)) for _ in range(3)) + f"-{rng.randrange(1001, 9999)}"
    )


def _uuid(rng: random.Random) -> str:
    body = draw(rng, HEX, 32)
    return f"{body[:8]}-{body[8:12]}-4{body[13:16]}-a{body[17:20]}-{body[20:]}"


BROAD_NUMBERS: tuple[Kind, ...] = (
    _number("azure tenant", _uuid, '{"tenantId": "%s", "state": "Enabled"}', "Tenant ID: %s", "AZURE_TENANT_ID=%s"),
    _number(
        "aws account",
        _shape("899999999999"),
        '{"Account": "%s"}',
        "arn:aws:s3control:eu-west-1:%s:accesspoint/logs",
        "AWS_ACCOUNT_ID=%s",
    ),
    _number("windows sid", _sid, "SID: %s", "whoami /user: corp %s", "HKEY_USERS\\%s\\Software"),
    _number("japanese mobile", _shape("090-8999-9999"), "電話番号: %s", "call %s", "TEL %s"),
    _number("brazilian mobile", _shape("(11) 98999-9999"), "celular: %s", "ligue para %s", "Telefone %s"),
    _number("australian mobile", _shape("0412 899 999"), "Mobile: %s", "phone %s", "ring %s"),
    _number("indian mobile", _shape("+91 98999 99999"), "contact %s", "WhatsApp %s"),
    _number("polish mobile", _shape("+48 508 999 999"), "tel. %s", "numer: %s"),
    _number("italian mobile", _shape("+39 347 8999999"), "cell. %s", "chiamami al %s"),
    _number("swedish phone", _shape("070-899 99 99"), "Mobil: %s", "ring mig på %s"),
    _number(
        "phone in json",
        _shape("0178 8999999"),
        '{"name": "x", "phone": "%s"}',
        '{"phoneNumber": "%s", "ok": true}',
        '{"mobile_no": "%s"}',
    ),
    _number("canadian insurance number", _luhn_number(9, "-", 3), "SIN: %s", "social insurance number %s"),
    _number("australian tax file", _shape("899 999 999"), "TFN: %s", "tax file number %s"),
    _number("korean resident", _shape("880101-1999999"), "주민등록번호: %s", "RRN %s"),
    _number("mexican curp", _shape("GAAA880101HDFAAA09"), "CURP: %s", "curp=%s"),
    _number("chilean rut", _chilean, "RUT %s", "rut: %s", "cliente %s"),
    _number("finnish identity", _finnish, "henkilötunnus: %s", "HETU %s", "asiakas %s"),
    _number("turkish identity", _turkish, "TC Kimlik No: %s", '{"tckn": "%s"}', "kimlik: %s"),
    _number("portuguese tax", _portuguese, "NIF: %s", "contribuinte %s", '{"nif": "%s"}'),
    _number("nhs number", _nhs, "NHS number: %s", "NHS No %s"),
    _number("german tax", _shape("88 999 999 999"), "Steuer-ID: %s", "IdNr. %s", "Steuernummer: %s"),
    _number("indian pan", _shape("AAAPA9999A"), "PAN: %s", '{"pan_number": "%s"}'),
    _number("us employer or itin", _shape("988-78-9999"), "ITIN: %s", "taxpayer id %s", '{"tax_id": "%s"}'),
    _number(
        "us bank account",
        _shape("8999999999"),
        "Account number: %s",
        "acct no. %s, routing 021000021",
        '{"account_number": "%s"}',
    ),
    _number("uk bank account", _shape("20-89-99 89999999"), "Sort code and account: %s", "sort code %s"),
    _number("norwegian account", _shape("1503.40.89999"), "kontonummer: %s", "konto %s"),
    _number(
        "driving licence",
        _shape("AAAAA899999AA9AA"),
        "Driving licence: %s",
        '{"driver_license": "%s"}',
        "licence no %s",
    ),
    _number(
        "machine-readable passport",
        lambda r: f"P<SWE{drawn_person(r)['%u'].replace('.', '').replace('_', '').upper()}<<ANNA<<<<<<<<<<<<<<<",
        "%s",
        "MRZ: %s",
    ),
    _number(
        "birth date abroad",
        lambda r: f"{r.randrange(10, 28)}/{r.randrange(10, 12)}/19{r.randrange(50, 99)}",
        "né le %s",
        "fecha de nacimiento: %s",
        "Geburtsdatum: %s",
        "data di nascita %s",
        '{"birthDate": "%s"}',
    ),
    _number(
        "british address",
        lambda r: f"{r.randrange(2, 99)} {r.choice(PLACES).title()} Road",
        "Lives at %s, Leeds LS6 2AB",
        '{"address_line_1": "%s"}',
    ),
    _number(
        "italian address",
        lambda r: f"Via {r.choice(PLACES).title()} {r.randrange(2, 99)}",
        "Indirizzo: %s, 20121 Milano",
        "abita in %s",
    ),
    _number(
        "spanish address",
        lambda r: f"Calle de {r.choice(PLACES).title()} {r.randrange(2, 99)}",
        "Dirección: %s, 28014 Madrid",
        "vive en %s",
    ),
    _number(
        "dutch address",
        lambda r: f"{r.choice(PLACES).title()}straat {r.randrange(2, 99)}",
        "Adres: %s, 1012 AB Amsterdam",
        "woont aan de %s",
    ),
    _number(
        "polish address",
        lambda r: f"ul. {r.choice(PLACES).title()}a {r.randrange(2, 99)}/4",
        "Adres: %s, 00-950 Warszawa",
        "mieszka: %s",
    ),
    _number("imei", _luhn_number(15), "IMEI: %s", '{"imei": "%s"}', "device imei %s"),
    _number(
        "wireless network",
        lambda r: f"{drawn_person(r)['%L']}-Family-5G",
        "SSID: %s\nBSSID: 02:00:00:00:00:01",
        "ssid=%s",
        "Connected to wifi %s",
    ),
    _number("number plate", _shape("AA99 AAA"), "Number plate: %s", "licence plate %s", "vehicle reg %s"),
)
