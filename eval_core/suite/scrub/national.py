"""Numbers by which states and makers know a person or a machine, told by their check digits or by what names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from eval_core.suite.scrub.hits import Hit, is_mark

__all__ = ["national_ids", "said_numbers"]


def _digits(text: str) -> list[int]:
    return [int(char) for char in text if char.isdigit()]


def _spanish(value: str) -> bool:
    number = (
        value.upper().replace("X", "0", 1).replace("Y", "1", 1).replace("Z", "2", 1) if value[0] in "XYZ" else value
    )
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number[:8]) % 23] == value[-1].upper()


def _brazilian(value: str) -> bool:
    digits = _digits(value)
    if len(set(digits)) == 1:
        return False
    for size in (9, 10):
        rest = sum(digit * weight for digit, weight in zip(digits, range(size + 1, 1, -1), strict=False)) % 11
        if digits[size] != (0 if rest < 2 else 11 - rest):
            return False
    return True


def _chinese(value: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return "10X98765432"[sum(int(a) * b for a, b in zip(value, weights, strict=False)) % 11] == value[-1].upper()


def _french(value: str) -> bool:
    digits = "".join(map(str, _digits(value)))
    return 97 - int(digits[:13]) % 97 == int(digits[13:])


def _italian(value: str) -> bool:
    odd = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10,
        22, 25, 24, 23), strict=True))  # fmt: skip
    code = value.upper()
    total = sum(
        odd[char] if place % 2 == 0 else (int(char) if char.isdigit() else ord(char) - 65)
        for place, char in enumerate(code[:15])
    )
    return chr(65 + total % 26) == code[15]


def _swedish(value: str) -> bool:
    digits = _digits(value)[-10:]
    total = sum(sum(divmod(digit * (2 - place % 2), 10)) for place, digit in enumerate(digits))
    return total % 10 == 0


def _polish(value: str) -> bool:
    weights = (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)
    return (10 - sum(a * b for a, b in zip(_digits(value), weights, strict=False)) % 10) % 10 == int(value[-1])


_CHECKED: tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...] = (
    (re.compile(r"(?<![\w-])(?:\d{8}|[XYZ]\d{7})[A-Z](?![\w-])"), _spanish),
    (re.compile(r"(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-])"), _brazilian),
    (re.compile(r"(?<![\w-])[1-9]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])\d{3}[\dXx](?![\w-])"), _chinese),
    (re.compile(r"(?<![\w-])[12] ?\d\d ?(?:0[1-9]|1[0-2]) ?\d\d ?\d{3} ?\d{3} ?\d\d(?![\w-])"), _french),
    (re.compile(r"(?<![\w-])[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z](?![\w-])"), _italian),
    (re.compile(r"(?<![\w.-])(?:19|20)?\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])[-+]\d{4}(?![\w-])"), _swedish),
)
_UK = re.compile(
    r"(?<![\w-])(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D](?![\w-])"
)
_SAID = re.compile(
    r"(?i)\b(?P<what>dni|nif|nie|cpf|cnpj|pesel|bsn|burgerservicenummer|steuer-?id|steueridentifikationsnummer"
    r"|personalausweis(?:nummer|-nr\.?)?|ausweisnummer|reisepass(?:nummer)?|numéro de sécurité sociale|codice fiscale"
    r"|personnummer|fødselsnummer|henkilötunnus|aadhaar|pan(?: card)?|curp|rut|cuit|身份证(?:号)?|护照(?:号)?"
    r"|my ?number|serial (?:number|no\.?)|serialnumber|imei|imsi|iccid|udid|hardware uuid|machine-id|asset tag)"
    r"(?: (?:number|no\.?|card|nr\.?))?(?: \([\w ]{1,20}\))?[\"']?[ \t]*(?:is[ \t]+|ist[ \t]+|[:：#=][ \t]*|[ \t]+)"
    r"[\"']?(?P<value>(?=[\w ./-]{0,24}\d)[A-Z0-9][A-Z0-9./-]*(?: \d[\d./-]*){0,4})"
)
_LOCAL_PHONE = re.compile(
    r"(?i)(?:\b(?:tél(?:éphone)?|portable|appele[zr]|téléphone[zr]?|joindre|rappele[zr]|tel(?:efon)?|erreichbar|anruf\w*"
    r"|rückruf|handy|durchwahl|llam[ae]\w*|teléfono|móvil|celular|telefone|ligue|cellulare|chiam\w+|bel|telefoon|mobiel"
    r"|puhelin|telefonnummer|contact(?: no)?|reach(?:able)?|call|phone|mob(?:ile)?|whatsapp)\b|电话|手机|電話|携帯)"
    r"[^\d\n+]{0,24}(?P<number>\+?\(?\d(?:[ ().\-/]{0,2}\d){7,14})(?![\w-]*\d)"
)


def national_ids(text: str, _key: str | None) -> Iterator[Hit]:
    """Find identity numbers of several states by form and check digit."""
    for pattern, check in _CHECKED:
        for match in pattern.finditer(text):
            if check(match.group()):
                yield Hit(match.start(), match.end(), "national-id", "number", match.group())
    for match in _UK.finditer(text):
        yield Hit(match.start(), match.end(), "national-id", "number", match.group())


def said_numbers(text: str, _key: str | None) -> Iterator[Hit]:
    """Find numbers that a word beside them says to be somebody's."""
    for match in _SAID.finditer(text):
        value = match.group("value").rstrip(" .-/")
        if len(value) >= 6 and not is_mark(value):
            rule = (
                "serial" if match.group("what").lower().startswith(("serial", "asset", "hardware")) else "national-id"
            )
            yield Hit(match.start("value"), match.start("value") + len(value), rule, "number", value)
    for match in _LOCAL_PHONE.finditer(text):
        digits = re.sub(r"\D", "", match.group("number"))
        if 9 <= len(digits) <= 15 and "555-01" not in match.group("number"):
            yield Hit(*match.span("number"), "phone", "phone", digits.lstrip("0"))
