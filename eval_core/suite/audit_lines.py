"""The audit's rules for whole lines: what stands out beside words, placeholders and columns that speak of its kind.

The scrubber must be sure before it takes something out. Here a person decides, so a strange word is enough: one that no
dictionary has, that has none of the harmless shapes (hash, id, version, path, size) and that stands where secrets,
people or machines are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from eval_core.suite.scrub.ordinary_words import is_given_name, is_ordinary, is_proper_noun, is_role_or_state

__all__ = ["Doubt", "line_doubts", "strange"]


@dataclass(frozen=True)
class Doubt:
    """A stretch that may be somebody's, and why."""

    start: int
    end: int
    why: str


_CHUNK = 600  # a line that is longer is looked at in pieces
_NEAR = 50_000  # so much of a text is searched for code that uses a word
_LINE = re.compile(rf"[^\n]{{4,{_CHUNK}}}")

# What a line speaks of.
_SURE = re.compile(
    r"(?i)pass[ _-]?(?:w(?:or)?d|phrase|code|key|hash)|(?<![a-z])(?:pass|pw|otp|psk|pin|creds?)(?![a-z])|pwd|secret"
    r"|credential|kennwort|passwort|contraseña|senha|hasło|heslo|wachtwoord|lösenord|şifre|salasana|parol|пароль"
    r"|密码|密碼|パスワード|비밀번호|รหัสผ่าน|كلمة المرور|סיסמה|mật khẩu|keypad|combination|recovery[ _-]code"
)
_PERHAPS = re.compile(
    r"(?i)(?<![a-z])(?:key|keys|auth|oauth|login|logon|log[ -]in|sign[ -]?in|signing|token|licen[cs]e|seed|voucher"
    r"|gift|invite|unlock|salt|digest|session|sessid|community|kinit|join|dsn|(?:opens?|opened|unlocks?) (?:with|by)"
    r"|new one|access|acesso|acceso|accès|přístup|dostęp|zugang|inlogg\w*|wi-?fi|hotspot|apikey|appkey|api[ _]?key"
    r"|code|ntlm|kdf|pbkdf2)(?![a-z])|[a-z](?:Key|Token|Auth)(?![a-z])|sessid|REDACTED-"
)
_OF_SOMEBODY = re.compile(
    r"(?<![\w@/\\.-])(?:Person\d+|user\d+|host\d+|person\d+@example\.com|203\.0\.113\.\d+|\+1 \d{3}-555-01\d\d)"
    r"(?![\w@/\\-])"
)
_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}:\d\d(?::\d\d)?(?![\d:])")
_LISTING = re.compile(r"\s*[-dlbcps][rwxsStT-]{9}")

# Words and their neighbours.
_WORD = re.compile(r"[^\s\"'`<>(){}\[\],;|]{4,}")
_WORD_LIMIT = 100
_HARMLESS_LABEL = re.compile(
    r"(?i)(?:sha\d*|md5|digest|e-?tag|(?<!pass)hash|commit|integrity|checksum|(?:^|[^a-z])(?:id|ids|rev|ref|tree|from|parent|at)"
    r"|(?-i:[a-z]Id)|trace|span|uuid|revision|changeset|version|layer|blob|image|fingerprint|public\w*|ray|cursor|nonce"
    r"|index|patch|content|build|tag|node|base|head|merge|model|encoding|sum|cached|event|request|run)[\"'\s:=@/-]{0,4}\Z"
)
_CODE = re.compile(
    r"REDACTED|\.\.\.|\*\*\*|x{4}|X{4}|^[$%&*~./\\-]|://|\\|^0x|^\d+(?:\.\d+)*[a-zA-Z%]{0,3}$|::|->|=>|==|\+=|\$\{|(?:py|js|ts|rs|go|md"
    r"|json|ya?ml|toml|txt|sh|html|css|lock|cfg|ini)(?::\d+)*$|^(?:call|toolu|chatcmpl|cmpl|msg|req|resp|run|rs|fc|"
    r"thread|file|batch|item|step|evt|pi|cus|ch|in|sub|prod|price|acct)[_-]|^v?\d+(?:[.-]\w+)+$|^v?\d+\.\d[\w.+~:-]*$|@|A-Z|a-z|^[a-z_]+\.[A-Za-z_]+$|^[0-9a-f]{7,12}$"
    r"|(?i:^(?:argon2|bcrypt|scrypt|sha|md5|aes|rsa|ed25519|x25519|base64|utf|hs|rs|es)[\d_-]*[a-z]{0,4}$)"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_CHOSEN = re.compile(r"[A-Z]?[a-z]{2,}[!#$%?*+^&]\d{2,6}|[A-Za-z]{2,}[@013$][a-z]{1,12}\d{2,4}[!#?]")
_CHOSEN_PLAIN = re.compile(r"[A-Z][a-z]{2,}[-_.]\d{3,6}")
_CODE_GROUPS = re.compile(r"(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){1,6}")
_LINK = re.compile(r"(?<![\w.])[a-z]{2,6}://[^\s\"'<>)\]]{6,300}")
_BYTES = re.compile(r"(?<![\d.])\d{1,3}(?:, ?\d{1,3}){15,127}(?![\d.])")
_PLACE = re.compile(
    r"(?P<value>\d{4}\.\d{2,},[NS],\d{5}\.\d{2,}),[EW]|(?<![\d.])-?\d{1,2}\.\d{4,}[,;] ?-?\d{1,3}\.\d{4,}(?![\d.])"
)
_NUMBER_OF = re.compile(
    r"(?i)(?<![a-z])(?:plate|parcel|tracking|mrn|customer|member|patient|policy|insurance|claim|employee|staff|student"
    r"|driver'?s? licen[cs]e|kenteken|kennzeichen|personnummer|bsn|pesel|nif|dni|cpf|ssn|sin|aadhaar|passport|serial"
    r"|imei|tail)(?:[ _-]?(?:number|no\.?|nr\.?|id|plate))?(?: \([\w ]{1,20}\))?[ \t]*[:#=]?[ \t]*"
    r"(?-i:(?P<value>(?=[A-Z-]*\d|[A-Z]{10})[A-Z0-9][A-Z0-9-]{4,24}))(?!\w)"
)
_TITLED = re.compile(r"(?<![A-Z])(?P<value>[A-Z]{3,}/[A-Z]{3,})(?= (?:MR|MRS|MS|MISS|DR)\b)")
_FOREIGN_NUMBER = re.compile(r"[\u0370-\u1fff\u3040-\ud7ff][^\n\w]{0,3}[ :：]{0,2}(?P<value>\d{8,13})(?!\d)")
_AFTER = re.compile(
    r"(?i)(?<![\w-])(?:(?:by|for|from|with|as|to|user(?:name)?|agent|login|cc(?: list)?|owner|contact|name"
    r"|address)(?::s)?[ :=\[\"'(]{1,4}@?(?-i:(?P<value>[a-z]{3,}(?:\.[a-z]|\d{1,3})))"
    r"|(?:failed|failure|request|accepted|granted|denied|opened|closed) (?:for|by|as) (?-i:(?P<plain>[a-z]{5,})))"
    r"(?!\w)(?![(/@]|[.-]\w)"
)
_HANDLE = re.compile(r"(?<=[^\w/@.\n`(])@(?P<value>[a-z][\w.-]{3,30})(?![\w/(.])")
_AT_REALM = re.compile(r"(?<![\w.@/+-])(?P<value>[a-z][\w.-]{2,30})@(?:[a-z]{2,12}|[A-Z]{2,12})(?![\w.@/-])")
_NAME_CUE = re.compile(
    r"(?P<before>\b(?:[Aa]sk|[Pp]ing|[Tt]hanks|[Tt]ell|[Cc]all|[Mm]eet|cc|guardian|optional|organi[sz]er|zapytaj|med"
    r"|fråga|frag|mit|avec|con|com|met|Mon|Tue|Wed|Thu|Fri|Sat|Sun|[Pp]at\.|Mr\.?|Mrs\.?|Ms\.?|Dr\.?|[Yy]esterday"
    r"|[Aa]gent)[,:]? |(?<!\S)[+-][12] )?"
    r"(?<![\w./@-])(?P<value>[A-ZÀ-Þ][a-zà-ÿ]{3,}(?:,? [A-ZÀ-Þ][a-zà-ÿ]{2,})?)"
    r"(?P<after>['’]s (?=[a-z])| and I\b|, (?:hon|han|he|she|ella|elle)\b)?"
    r"(?![\w(/])"
)
_NAME_LIST = re.compile(
    r"(?<![\w, ])(?P<value>[A-ZÀ-Þ][a-zà-ÿ]{3,}, [A-ZÀ-Þ][a-zà-ÿ]{2,})(?=\s*(?:[;|\t(]|  |$))", re.M
)
_COLUMN = re.compile(
    r"(?:(?<=  )|(?<=[\t,\[(\"'|<^;=])|^\s{0,4}(?:- )?|(?<=\d/)|(?<=443 ))@?"
    r"(?P<value>[A-Za-z][a-z0-9]*(?:[.-][a-z0-9]+){0,3}|[A-Z][A-Z0-9]+(?:-[A-Z0-9]+)*)(?=  |[\t,\])\"'|>;^ :]|$)"
)
_MACHINE = re.compile(
    r"(?i)(?:ws|laptop|desktop|build|db|nas|dev|ci|node|pc|srv|mac)-[a-z]{3,}\d*|[a-z]{3,}-(?:ws|laptop|desktop|build|db|nas"
    r"|dev|ci|node|pc|srv)\d+|[a-z]{4,}\d{1,2}"
)


def line_doubts(text: str, key: str | None) -> Iterator[Doubt]:
    """Yield what a careful reader would point at, line by line."""
    sure_before = bool(key and _SURE.search(key))
    for match in _LINE.finditer(text):
        line, start = match[0], match.start()
        sure = bool(_SURE.search(line))
        perhaps = sure or bool(_PERHAPS.search(line))
        carried = sure_before and (len(line.split()) <= 3 or "|" in line)
        glued = start > 0 and not text[start - 1].isspace()  # the rest of a word that the piece before began
        for found in _secrets(line, sure or carried, perhaps or carried, glued=glued):
            yield Doubt(start + found.start, start + found.end, found.why)
        for found in _people(line, text):
            yield Doubt(start + found.start, start + found.end, found.why)
        # The header of a table speaks for all its rows, another line for the next.
        sure_before = sure or (carried and "|" in line)


def _secrets(line: str, sure: bool, perhaps: bool, *, glued: bool) -> Iterator[Doubt]:
    for link in _LINK.finditer(line):
        yield from _in_link(link)
    for found in _BYTES.finditer(line):
        numbers = [int(number) for number in found[0].split(",")]
        drawn = max(numbers) in range(128, 256) and len(set(numbers)) > 0.8 * len(numbers)
        if drawn and numbers != sorted(numbers) and sum(n % 10 == 0 for n in numbers) < len(numbers) / 3:
            yield Doubt(*found.span(), "a row of bytes that look drawn at random")
    for found in _WORD.finditer(line):
        word, start = found[0], found.start()
        if (len(word) > _WORD_LIMIT and "://" not in word) or (glued and start == 0):
            continue
        # In `name=value` the value counts.
        cut = max(word.rfind("="), word.rfind(":"))
        label = line[max(0, start - 24) : start]
        if 0 < cut < len(word.rstrip("=")) - 1:
            label, word, start = label + word[: cut + 1], word[cut + 1 :], start + cut + 1
        word = word.rstrip(".,:")
        why = _odd(word, label, sure, perhaps)
        if why:
            yield Doubt(start, start + len(word), why)


def _in_link(link: re.Match[str]) -> Iterator[Doubt]:
    if "base64," in link[0]:
        return
    for part in re.finditer(r"(?<=/)(?!GHSA-|CVE-|[0-9a-f]+\b)[\w-]{10,64}(?=[/?#]|\Z)", link[0]):
        word = part[0]
        mixed = _changes(word) >= 4 or _changes(word.lower()) >= (2 if len(word) < 20 else 4)
        if mixed and _is_drawn(word) and not _UUID.fullmatch(word):
            yield Doubt(link.start() + part.start(), link.start() + part.end(), "a link that may open by itself")


@lru_cache(maxsize=8192)
def _odd(word: str, label: str, sure: bool, perhaps: bool) -> str | None:
    """Tell why a word may be a secret; the surer the line, the less it takes."""
    if len(word) < 6 or _CODE.search(word) or _UUID.fullmatch(word):
        code = (
            sure and re.fullmatch(r"\d{5,12}|\d\d(?:-\d\d){2,3}", word) and _SURE.search(re.split(r"[,;]", label)[-1])
        )
        if not code or _HARMLESS_LABEL.search(label):
            return None
        return "digits on a line that speaks of secrets"
    if _CHOSEN.fullmatch(word):
        return "a word with signs and digits, as people choose passwords"
    if re.fullmatch(r"[0-9a-f]{32,64}", word):
        labelled = re.search(r"[\w.-]{3,}[\"']?\s*[:=,]\s*[\"']?\Z", label) or perhaps
        return "a hex value that nothing explains" if labelled and not _HARMLESS_LABEL.search(label) else None
    if _HARMLESS_LABEL.search(label) or ("/" in word and "+" not in word):
        return None
    if perhaps and _CODE_GROUPS.fullmatch(word):
        return "a code in groups"
    if perhaps and _CHOSEN_PLAIN.fullmatch(word):
        return "a word with digits, as people choose passwords"
    if not re.fullmatch(r"[\w!#$%?*+^&@~=/.-]+", word) or not _is_drawn(word):
        return None
    changes = _changes(word)
    kinds = sum(any(map(is_kind, word)) for is_kind in (str.isdigit, str.islower, str.isupper))
    if kinds == 3 and changes >= 4 and len(word) >= 10:
        return "characters that look drawn at random"
    if (
        perhaps
        and changes >= 3
        and len(word) >= 8
        and not word.isupper()
        and not re.fullmatch(r"[a-z0-9._-]*_[a-z0-9_.-]*", word)
    ):
        return "characters that look drawn at random, near a word for access"
    camel = re.fullmatch(r"[A-Z]?[a-z]{2,}(?:[A-Z][a-z]{2,})*|[A-Z]+|[a-z]+", word)
    if sure and (changes >= 2 or (word.isascii() and word.isalpha() and not camel)):
        return "letters and digits on a line that speaks of secrets"
    return None


def _changes(word: str) -> int:
    """Count the changes between digits, capitals and small letters; a capital before small letters begins a word."""
    kinds = re.sub(
        r"[^0dlu]",
        "",
        "".join("d" if c.isdigit() else "u" if c.isupper() else "l" if c.isalpha() else "0" for c in word),
    )
    return sum(a != b and "0" not in (a, b) and (a, b) != ("u", "l") for a, b in pairwise(kinds))


def _is_drawn(word: str) -> bool:
    """Tell a word that holds no words: identifiers, file names and versions do."""
    pieces = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", word)
    letters = sum(map(len, pieces))
    known = sum(len(piece) for piece in pieces if len(piece) >= 4 and not strange(piece))
    return known < 0.5 * max(1, letters) and not re.fullmatch(r"[\d.,:/+-]+", word)


@lru_cache(maxsize=65_536)
def strange(word: str) -> bool:
    """Tell a word that no dictionary has, nor two words of it joined."""
    word = word.lower()
    if len(word) < 4 or is_ordinary(word) or is_role_or_state(word) or is_proper_noun(word):
        return False
    cuts = range(3, len(word) - 2)
    return not any(len(word[at:]) > 2 and is_ordinary(word[:at]) and is_ordinary(word[at:]) for at in cuts)


@lru_cache(maxsize=4096)
def _is_somebody(value: str, text: str) -> bool:
    """Tell a strange word that is not also a part of the code."""
    if re.fullmatch(r"(?i)(?:person|user|host)\d*", value) or "REDACTED" in value:
        return False
    if not any(strange(piece) for piece in re.findall(r"[A-Za-z\u00c0-\u024f]+", value)):
        return False
    if re.search(r"\.(?:py|js|ts|rs|go|md|sh|io|com|dev|org|net|txt|log|json|ya?ml|toml|sql|plist|service)\Z", value):
        return False
    body = re.escape(value)
    code = rf"(?<!\d)[/_]{body}|{body}(?:[/_(]|\.[a-z]{{2,}}|-[a-z0-9])|[\w)]\.{body}|import {body}"
    at = text.find(value, 0, _NEAR)
    while at >= 0:  # finding the word first is much faster than searching with the pattern
        if re.search(code, text[max(0, at - 8) : at + len(value) + 4]):
            return False
        at = text.find(value, at + 1, _NEAR)
    return True


def _people(line: str, text: str) -> Iterator[Doubt]:
    for pattern, why in (
        (_NUMBER_OF, "a number of somebody"),
        (_FOREIGN_NUMBER, "a number of somebody"),
        (_TITLED, "a traveller's name"),
        (_PLACE, "a place on the map"),
    ):
        for match in pattern.finditer(line):
            yield Doubt(*match.span(), why) if pattern is _PLACE else Doubt(*match.span("value"), why)
    for match in _AFTER.finditer(line):
        group = "value" if match["value"] else "plain"
        if _is_somebody(match[group], text):
            yield Doubt(*match.span(group), "an account where one is named")
    for match in (*_HANDLE.finditer(line), *_AT_REALM.finditer(line)):
        if _is_somebody(match["value"], text):
            yield Doubt(*match.span("value"), "an account where one is named")
    for match in _NAME_LIST.finditer(line):
        if any(map(strange, match["value"].split(", "))):
            yield Doubt(*match.span("value"), "a surname and a given name")
    beside = _OF_SOMEBODY.search(line)
    for match in _NAME_CUE.finditer(line):
        words = re.split(r",? ", match["value"])
        cue = match["before"] or match["after"]
        named = len(words) == 2 and is_given_name(words[0]) and strange(words[1])
        within = beside and re.search(r"Person\d", line) and re.search(r"\w", line[: match.start("value")])
        if (
            (cue or named or within)
            and any(map(strange, words))
            and all(_is_somebody(word, text) for word in words if strange(word))
        ):
            yield Doubt(*match.span("value"), "a capitalised word that no dictionary has, where people are named")
    timed = _CLOCK.search(line) and len(re.findall(r"\S(?:  +|\t|,)(?=\S)", line)) >= 2
    if _LISTING.match(line) or not (beside or timed or re.search(r"\"[\w.-]+\" \d\d:\d\d", line)):
        return
    if beside and (born := re.search(r"(?<!\d)19\d{6}(?!\d)", line)):
        yield Doubt(*born.span(), "a date of birth beside a person")
    for match in _COLUMN.finditer(line):
        value, last = match["value"], not line[match.end() :].strip(" \"')]}")
        begins = match.start() == 0 and value.istitle()  # a sentence, not a column
        if len(value) < 5 or begins or (not beside and (last or line[match.end() :].startswith((": ", " =")))):
            continue
        machine = _MACHINE.fullmatch(value) and not re.fullmatch(r"(?i)(?:user|host|person|node)\d*", value)
        if _is_somebody(value, text) or (machine and value not in text[: match.start()].split("/")):
            yield Doubt(*match.span("value"), "a strange word in a row about people or machines")
