"""National ids and serial numbers, found by their check digits or by the words beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from eval_core.suite.scrub.hits import Hit, is_mark
from eval_core.suite.scrub.ordinary_words import is_ordinary
from eval_core.suite.scrub.personal_numbers import is_fictional_phone
from eval_core.suite.scrub.secret_values import key_words

__all__ = ["PERSONAL_NUMBER_WORDS", "is_number_label", "national_ids", "number_in_field", "said_numbers"]


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


def _finnish(value: str) -> bool:
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(value[:6] + value[7:10]) % 31] == value[-1].upper()


def _chilean(value: str) -> bool:
    body, _, check = value.replace(".", "").partition("-")
    total = sum(int(char) * (2 + place % 6) for place, char in enumerate(reversed(body)))
    return "0K987654321"[total % 11] == check.upper()


def _belgian(value: str) -> bool:
    digits = "".join(map(str, _digits(value)))
    return any(97 - int(century + digits[:9]) % 97 == int(digits[9:]) for century in ("", "2"))


def _luhn(value: str) -> bool:
    digits = _digits(value)[::-1]
    return sum(sum(divmod(digit * (1 + place % 2), 10)) for place, digit in enumerate(digits)) % 10 == 0


def _vehicle(value: str) -> bool:
    """Check the number of a vehicle; its ninth character is computed from the others."""
    letters = "0123456789.ABCDEFGH..JKLMN.P.R..STUVWXYZ"
    weights = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)
    total = sum(letters.index(char) % 10 * weight for char, weight in zip(value, weights, strict=True))
    return "0123456789X"[total % 11] == value[8] and any(map(str.isdigit, value)) and not value.isdigit()


def _czech(value: str) -> bool:
    return int(value.replace("/", "")) % 11 == 0


_CHECKED: tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...] = (
    (re.compile(r"(?<![\w-])(?:\d{8}|[XYZ]\d{7})[A-Z](?![\w-])"), _spanish),
    (re.compile(r"(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-])"), _brazilian),
    (re.compile(r"(?<![\w-])[1-9]\d{5}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])\d{3}[\dXx](?![\w-])"), _chinese),
    (re.compile(r"(?<![\w-])[12] ?\d\d ?(?:0[1-9]|1[0-2]) ?\d\d ?\d{3} ?\d{3} ?\d\d(?![\w-])"), _french),
    (re.compile(r"(?<![\w-])[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z](?![\w-])"), _italian),
    (re.compile(r"(?<![\w.-])(?:19|20)?\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])[-+]\d{4}(?![\w-])"), _swedish),
    (re.compile(r"(?<![\w-])[0-3]\d[01]\d{3}[-+A]\d{3}[0-9A-Y](?![\w-])"), _finnish),
    (re.compile(r"(?<![\w.-])\d{1,2}\.\d{3}\.\d{3}-[\dkK](?![\w-])"), _chilean),
    (re.compile(r"(?<![\w.-])\d\d\.(?:0\d|1[0-2])\.[0-3]\d-\d{3}\.\d\d(?![\w-])"), _belgian),
    (re.compile(r"(?<![\w./-])\d\d[0-35-8]\d[0-3]\d/\d{4}(?![\w/-])"), _czech),
    (re.compile(r"(?<![\w-])[A-HJ-NPR-Z0-9]{17}(?![\w-])"), _vehicle),
    (re.compile(r"(?<![\w-])0000[0-9A-F]{4}-[0-9A-F]{16}(?![\w-])"), lambda _: True),  # a phone, as Apple numbers them
    (re.compile(r"(?<![\w-])756\.\d{4}\.\d{4}\.\d\d(?![\w-])"), lambda _: True),
)


_UK = re.compile(
    r"(?<![\w-])(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D](?![\w-])"
)
# What people and forms call such a number, in the languages that sessions are written in.
_LABELS = (
    r"dni|nif|nie|cif|cpf|cnpj|rg|pesel|nip|regon|bsn|burgerservicenummer|steuer-?id(?:nummer"
    r"|entifikationsnummer)?|steuernummer"
    r"|idnr\.?|tin|personalausweis(?:nummer|-nr\.?)?|ausweis(?:nummer|-nr\.?)|reisepass(?:nummer)?"
    r"|sozialversicherungs\w*"
    r"|rentenversicherungs\w*|svnr|ahv|avs|(?:numéro de )?sécurité sociale|n° ?sécu\w*|codice fiscale|partita iva"
    r"|personnummer"
    r"|organisationsnummer|samordningsnummer|cpr(?:-nummer)?|fødselsnummer|kennitala|henkilötunnus|hetu"
    r"|aadhaar|aadhar|pan(?: card)?"
    r"|voter id|curp|rfc|rut|run|cuit|cuil|dui|cédula|cedula|tckn|tc kimlik|kimlik|egn|cnp|oib|jmbg|emso"
    r"|rodné číslo|taj szám"
    r"|adóazonosító|inn|инн|снилс|паспорт|身份证|護照|护照|マイナンバー|お客様番号|会員番号|顧客番号|個人番号|주민등록번호|여권번호|rrn|nric|fin"
    r"|hkid|mykad|nik|ktp"
    r"|contribuinte"
    r"|passport|passeport|pasaporte|passaporto|paspoort|pasport"
    r"|sin|social insurance|social security|national insurance|nino|ssn|itin|ein|tfn|tax file|abn|medicare|ihi"
    r"|ird|pps|ppsn|nhs"
    r"|npwp|r\. ?č\.|cnic|cédula de \w+|c\.c\.|health insurance|insurance|insured|tax ?payer|tax|vat|national"
    r"|identity|identification|id card|driving"
    r"|driver'?s?|citizen"
    r"|führerschein\w*|permis de conduire|carnet de conducir|patente|rijbewijs|körkort\w*|employee|staff"
    r"|patient|member|membership"
    r"|(?:personal|matrikel|versicherten|versicherungs|kunden|mitglieds|patienten|mitarbeiter|krankenkassen"
    r"|identifikations|pass)(?:nummer|-?nr\.?)"
    r"|mrn|medical record|student|teudat zehut|תעודת זהות|αφμ|αμκα|afm|amka|dl|driving licence|permis|versichert\w*"
    r"|id(?=[ _-]?(?:number|no|nr|card))|vin|vehicle identification|fahrgestell\w*|rijksregister\w*|registre national"
    r"|my ?number|serial|serialnumber|sarjanumero|seriennummer|numéro de série|número de serie|numero di serie"
    r"|numer seryjny|serienummer|sériové číslo|seri no|серийный номер|s/n|sn|imei2?|imsi|iccid|udid|meid|msisdn"
    r"|hardware uuid|machine[ -]?id|asset tag"
    r"|device id|android id"
    r"|(?:bank )?account|acct|a/c|sort(?: code)?(?: and account)?|routing|aba|kontonummer|kontonr"
    r"|konto(?:nummer)?|bankkonto"
    r"|número de cuenta|cuenta|rekening(?:nummer)?|conta|compte bancaire|conto(?: corrente)?|tilinumero"
    r"|numer konta|rachunek|customer|kunden|client|policy|insurance policy|claim|parcel|tracking|consignment|shipment"
    r"|ת\.ז\."
)
_PERSONAL_WORDS = (
    "badge card pass passport licence license policy member membership patient mrn employee emp "
    "staff student customer "
    "client account acct insurance insured tax ssn ident personal person citizen national social identity "
    "subscriber loyalty chart nhs medicare pesel dni nif nie cpf rut curp cedula cédula rfc cnp "
    "egn oib jmbg emšo bsn "
    "personnummer henkilötunnus hetu fødselsnummer cpr kennitala isikukood personas asmens kodas "
    "rodné číslo taj "
    "kimlik tckn aadhaar pan nric hkid ktp nik mykad cccd cmnd ausweis ausweisnummer "
    "versichertennummer personalnummer "
    "matrikelnummer kundennummer mitgliedsnummer steuernummer svnr sécu matricule adhérent "
    "cliente socio tessera "
    "fiscale contribuinte utente legitymacja dowód паспорт снилс инн полис егн ιδιότητα αμκα αφμ "
    "ταυτότητας 身分證字號 "
    "身份证 护照 証番号 番号 주민등록번호 사번 ת.ז רישיון هوية الهوية بطاقة जन्म आधार บัตรประชาชน "
    "plate iqama emirates badge# "
    "imei serial extension ext cnic bform nss clabe pernr persnr empno empid staffno personalnr mitarbeiternr "
    "empleado empleada employé mitarbeiter dipendente funcionário pracownik medewerker ansatt "
    "anställd werknemer "
    "сотрудник табельный 社員番号 工号 员工号 社保号 계좌번호 여권번호 "
    "kennzeichen patente targa matrícula kenteken udid meid "
    "ewidencyjny ine elector bvn nin sgk sicil abha protokol prot dossier dowodu ahv avs nuip ruc"
)
PERSONAL_NUMBER_WORDS = frozenset(_PERSONAL_WORDS.split())
"""Words that name a number as somebody's: an id, a card, an account, a device."""
# A column or a field that ends like this holds something about the number, or a number of something else.
_NOT_NUMBERS_TEXT = (
    "name names type status state date time url email count total amount role group team title country city "
    "department model version order invoice ticket issue created updated expires valid reader"
)
_NOT_NUMBERS = frozenset(_NOT_NUMBERS_TEXT.split())


def is_number_label(label: str) -> bool:
    """Tell a label under which somebody's number is given."""
    words = key_words(label) if label.isascii() else re.split(r"[\W_]+", label.lower())
    words = [word for word in words if word and not word.isdigit()]
    if not words or words[-1] in _NOT_NUMBERS or words in (["pass"], ["card"], ["client"], ["customer"]):
        return False
    joined = "".join(words)
    return (
        any(word in PERSONAL_NUMBER_WORDS for word in words)
        or joined in PERSONAL_NUMBER_WORDS
        or _LABEL.fullmatch(" ".join(words)) is not None
    )


_FIELD_NUMBER = re.compile(r"(?=(?:.*\d){3})[A-Z0-9À-Þ][A-Z0-9À-Þ]*(?:[ ./-][A-Z0-9]+){0,6}")


def number_in_field(label: str, value: str, *, sure: bool) -> Hit | None:
    """Judge the value of a field whose label names a number of somebody; `sure` says that a person is beside it."""
    prefix = f"{' '.join(key_words(label)) if label.isascii() else label}: "
    for hit in _labelled(prefix + value):
        if hit.start >= len(prefix):
            return replace(hit, start=hit.start - len(prefix), end=hit.end - len(prefix))
    if (
        sure
        and 4 < len(value) <= 40
        and len(set(value)) > 1
        and _FIELD_NUMBER.fullmatch(value)
        and not _DATED.fullmatch(value)
    ):
        return Hit(0, len(value), "personal-number", "number", value)
    return None


_DATED = re.compile(r"(?:19|20)\d\d[-/.]\d\d[-/.]\d\d.*|\d\d[-/.]\d\d[-/.](?:19|20)?\d\d|\d+[.,]\d\d?")
_LABEL = re.compile(rf"(?i)(?:.*[ ])?(?:{_LABELS})(?: (?:number|num|no|nr|card|id|code|numero|número|nummer))*")
_SAID = re.compile(
    rf"(?i)(?:(?<![^\W_])|(?<=[\u3040-\u9fff]))(?P<what>{_LABELS})"
    r"(?P<more>[ _-]?(?:(?:numbers?|num|no|nr|card|id|code|licen[cs]e|#|号|番号|numero|número|numéro"
    r"|nummer)\.?[ _-]?){0,3})"
    r"(?: \([\w ]{1,20}\))?[\"']?[ \t]*(?P<said>is[ \t]+|ist[ \t]+|[:：#=>|][ \t]*|[ \t]+)"
    r"[\"']?(?P<value>(?=[\w ./-]{0,24}\d|[A-Z]{7})[A-Z0-9А-ЯІЇЄ][A-Z0-9А-ЯІЇЄ./-]*"
    r"(?: (?:\d[\d./-]*|[A-Z]\d[\w-]*)){0,4}"
    r"(?:\(\d\))?(?: ?№ ?\d{4,})?)"
)
# These words have other uses: only a number of some length, told by a mark or by `number`, is somebody's.
_LOOSE_LABELS_TEXT = (
    "sn s/n sort account acct konto conta conto cuenta insurance insured tax national identity "
    "identification member "
    "membership staff employee patient driving driver drivers serial fin run rg inn sin pan tin "
    "nie rut patente "
    "citizen abn ein nik nip cif routing aba vat customer kunden client policy claim "
    "parcel tracking consignment shipment"
)
_THINGS = frozenset({"tracking", "client", "customer", "account", "policy", "claim", "run", "device id"})
_UUID = re.compile(r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-")
# Devices have shorter ones.
_CERTIFICATE = re.compile(r"(?=\d*[A-F])[0-9A-F]{16,40}|[0-9A-F]{2}(?::[0-9A-F]{2}){6,}")
_DRAWN = frozenset(
    {"s/n", "sn", "serial", "serialnumber", "parcel", "tracking", "consignment", "shipment", "imei", "udid"}
)
_LOOSE_LABELS = frozenset(_LOOSE_LABELS_TEXT.split())
_PLATE = re.compile(
    r"(?i)\b(?:number ?plate|licen[cs]e plate|plate(?: no\.?| number)|vehicle reg(?:istration)?|rego|kennzeichen"
    r"|immatriculation|targa"
    r"|matrícula|kenteken|registreringsnummer|nr rej\.?|placa(?: do veículo)?|plaka|rekisterinumero"
    r"|spz)[\"']?[ \t]*(?:is"
    r"|[:=#])?[ \t]*[\"']?(?P<value>(?=[A-Z -]*\d)[A-Z0-9]{1,4}"
    r"(?:[ -]?[A-Z0-9]{1,5}){1,3})\b"
    r"|\bplates?[: ]+(?-i:(?P<value2>[A-Z]{1,3}[ -][A-Z0-9]{1,3}[ -]?\d{2,4}"
    r"|[A-Z0-9]{2,3}-[A-Z0-9]{2,3}-[A-Z0-9]{1,4}))\b"
)
_BRITISH_PLATE = re.compile(
    r"\b(?i:reg(?:istration)?|vehicle|plate|car|van)\b[^\n\d]{0,16}?(?P<value>[A-Z]{2}\d\d ?[A-Z]{3}"
    r"|[A-Z]\d{1,3} ?[A-Z]{3})(?![\w-])"
)
_NETWORK = re.compile(
    r"(?i)\b(?:ssid|essid|wifi|wi-fi|wlan)(?: name| network)?[\"']?[ \t]*[:= ][ \t]*[\"']?(?P<value>[\w.'’-]{4,32})"
)
_WALLET = re.compile(r"(?<![\w])0x[0-9a-fA-F]{40}(?!\w)|(?<!\w)bc1[ac-hj-np-z02-9]{25,60}(?!\w)")
_MACHINE_READABLE = re.compile(
    r"(?<![A-Z0-9<])(?:[PIAC][A-Z<][A-Z<]{3}[^\W\d_a-z]+(?:<[^\W\d_a-z]*){2,}[A-Z0-9<]*"
    r"|[A-Z0-9<]{9}\d[A-Z<]{3}\d{6,7}[MFX<]\d{6,7}[A-Z0-9<]{2,16}\d{0,2})"
)
# A passenger's passport and birth date, as airlines exchange them.
_PASSENGER = re.compile(r"\b[PIAC]/[A-Z]{3}/(?P<value>[A-Z0-9]{6,12}/[A-Z]{3}/\d\d[A-Z]{3}\d\d)/[MFX]")
_ADB = re.compile(r"(?m)^(?P<value>[A-Z0-9]{8,20})\s+device (?:usb|product):")
_SID = re.compile(r"\bS-1-5-21-\d{5,10}-\d{5,10}-\d{5,10}(?:-\d+)?\b")
_TENANT = re.compile(
    r"(?i)(?:tenant|subscription|directory|organization|organisation|"
    r"billing[ _-]?account)[ _-]?(?:id)?[\"']?[ \t]*[:=/][ \t]*[\"']?"
    r"(?P<value>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9A-F]{6}(?:-[0-9A-F]{6}){2})"
)
_CLOUD_ACCOUNT = re.compile(
    r"(?i)\barn:aws[\w-]*:[\w-]+:[\w-]*:(?P<value>\d{12}):|\baccount("
    r"?:[ _-]?id)?[\"']?[ \t]*[:=][ \t]*[\"']?(?P<value2>\d{12})\b"
    r"|\b(?P<value3>\d{12})\.dkr\.ecr\."
)
_SAMPLE_ACCOUNTS = frozenset(
    {"000000000000", "123456789012", "111111111111", "111122223333", "012345678901", "012345678910"}
)
_LOCAL_PHONE = re.compile(
    r"(?i)(?:\b(?:tél(?:éphone)?|portable|appele[zr]|téléphone[zr]?|joindre|rappele[zr]|tel(?:efon)?|erreichbar"
    r"|anruf\w*"
    r"|rückruf|handy|durchwahl|llam[ae]\w*|teléfono|móvil|celular|telefone|ligue|cellulare|chiam\w+|bel|telefoon|mobiel"
    r"|puhelin|telefonnummer|numer|dzwoń(?: na)?|zadzwoń|ring(?: mig på)?|contact(?: no)?|reach(?:able)?|call"
    r"|phone(?:number)?"
    r"|mob(?:ile)?(?: no)?|whatsapp|cell?|fax|puh|matkapuhelin|gsm|cep(?: tel\w*)?|hp|tlf|tlm|natel|mobil\w*"
    r"|telefon\w*|komórka"
    r"|kom|mobitel|telefonas|tālrunis|hape|no\. hp|sđt|điện thoại|di động|sími|gsm-?nr|rufnummer|telefono|portátil"
    r"|móvel)\b"
    r"|电话|手机|電話|携帯|핸드폰|전화|휴대폰|연락처|телефон|тел\.|моб\.?|сот\.?|τηλ|κιν|هاتف|جوال|موبايل|تلفن|همراه"
    r"|טלפון|נייד|טל'|โทร|เบอร์|मोबाइल|फ़?ोन)"
    r"[^\d\n+]{0,24}(?P<number>\+?\(?\d(?:[ ().\-/]{0,3}\d){6,14})(?![\w-]*\d)"
)


def national_ids(text: str, _key: str | None) -> Iterator[Hit]:
    """Find identity numbers of several states by form and check digit."""
    for pattern, check in _CHECKED:
        for match in pattern.finditer(text):
            if check(match.group()):
                yield Hit(match.start(), match.end(), "national-id", "number", match.group())
    for match in _UK.finditer(text):
        yield Hit(match.start(), match.end(), "national-id", "number", match.group())


def said_numbers(text: str, key: str | None) -> Iterator[Hit]:
    """Find numbers that a word beside them, or the JSON key above them, says to be somebody's."""
    yield from _labelled(text)
    if key is not None and len(text) <= 60:
        prefix = f"{' '.join(key_words(key))}: "
        for hit in _labelled(prefix + text):
            if hit.start >= len(prefix):
                yield replace(hit, start=hit.start - len(prefix), end=hit.end - len(prefix))


def _said_account(what: str, digits: int) -> bool:
    """Tell that a long number right after a word for an account is its number; after `run` it is a run's."""
    return digits >= 8 and what in ("account", "acct", "konto", "conta", "conto", "cuenta", "routing", "aba")


def _labelled(text: str) -> Iterator[Hit]:
    for match in _SAID.finditer(text):
        value = match.group("value").rstrip(" .-/")
        what = match.group("what").lower()
        digits = sum(map(str.isdigit, value))
        if what == "run" and re.fullmatch(r"[0-9a-f-]{16,}", value):
            continue  # that of a process
        if value in _SAMPLE_ACCOUNTS or (digits > 3 and len(set(filter(str.isdigit, value))) == 1):
            continue  # what manuals print, and 00000000
        if what in _THINGS and _UUID.match(text, match.start("value")):
            continue  # that of a request
        if what.startswith("serial") and _CERTIFICATE.fullmatch(value):
            continue
        told = match.group("said").strip() or match.group("more").strip(" _-")
        # Serial numbers and parcels' are drawn from letters and digits; an id's digits outweigh its letters.
        least = 7 if told else 10
        drawn = what in _DRAWN and len(value) >= least and re.fullmatch(r"[A-Z0-9]+", value) and not is_ordinary(value)
        if drawn and digits < 4:
            rule = "serial" if what.startswith("serial") else "national-id"
            yield Hit(match.start("value"), match.start("value") + len(value), rule, "number", value)
            continue
        if (
            is_mark(value)
            or len(value) < 6
            or digits < 4
            or (
                what in _LOOSE_LABELS
                and not (told and (digits >= 6 or len(value) >= 9))
                and not _said_account(what, digits)
                and not (what == "sin" and re.fullmatch(r"\d{3} \d{3} \d{3}", value) and _luhn(value))
                and not drawn
            )
        ):
            continue
        if (
            what in _LOOSE_LABELS
            and digits < 11
            and re.fullmatch(r"\d{4}-\d\d-\d\d.*|\d+\.\d+(?:\.\d+)*|1[67]\d{8}(?:\d{3})?", value)
        ):
            continue
        rule = "serial" if what.startswith(("serial", "asset", "hardware", "device", "machine")) else "national-id"
        yield Hit(match.start("value"), match.start("value") + len(value), rule, "number", value)
    for pattern, rule in (
        (_PLATE, "plate"),
        (_BRITISH_PLATE, "plate"),
        (_NETWORK, "network"),
        (_PASSENGER, "passport"),
        (_ADB, "serial"),
        (_TENANT, "cloud-account"),
        (_CLOUD_ACCOUNT, "cloud-account"),
    ):
        for match in pattern.finditer(text):
            group = str(match.lastgroup)
            value = match.group(group)
            if (
                is_mark(value)
                or len(set(value)) < 5
                or value in _SAMPLE_ACCOUNTS
                or (rule == "network" and all(map(is_ordinary, key_words(value))))
            ):
                continue
            yield Hit(*match.span(group), rule, "number", value)
    for pattern in (_MACHINE_READABLE, _SID, _WALLET):
        for match in pattern.finditer(text):
            yield Hit(*match.span(), "national-id", "number", match.group())
    for match in _LOCAL_PHONE.finditer(text):
        dialled = re.sub(r"\D", "", match.group("number"))
        if 7 <= len(dialled) <= 15 and not is_fictional_phone(match["number"]):
            yield Hit(*match.span("number"), "phone", "phone", dialled.lstrip("0"))
