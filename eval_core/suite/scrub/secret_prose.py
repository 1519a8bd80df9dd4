"""Secrets in prose: sentences that tell one, and words weighed by what their line says about credentials.

The other detectors know how particular formats write a secret. `weighed` knows none. Every word gets points for its
shape and for the nearest word of its line, of the line above, of its column or of its JSON key that speaks of
credentials, and loses points for what explains it otherwise. `WEIGHTS` holds all of them, `ENOUGH` the sum that takes
the word out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from eval_core.suite.scrub.hits import Hit, is_mark, secret_hit, value_hit
from eval_core.suite.scrub.secret_values import (
    FOREIGN_SECRETS,
    UUID,
    is_drawn,
    is_ordinary_code,
    is_other_thing,
    is_password,
    is_path,
    is_public_before,
    looks_random,
    unwordly,
)
from eval_core.suite.scrub.words import is_foreign_word, is_ordinary, is_technical, label_forms, word_list

# Sentences: "the password is ...", "log in with app / ...".

# A secret beside a login.
_BESIDE_LOGIN = re.compile(
    r"(?i)\b(?:log(?:ging)?[ -]?(?:in|on)|sign(?:ing)?[ -]?in|login|credentials?|creds|wi-?fi|wlan|vpn|guest"
    r"|account|access|user|hasło|passwor[dt]|mot de passe|contraseña|senha|пароль)\b[^\n.:]{0,24}?[: \t]+"
    r"[\w.@+-]{2,40}[ \t]?(?:/|:|,|and|with)[ \t]?[\"'`]?(?P<value>[^\s\"'`,;/]{6,60})"
    r"|\b(?:try|use|with|as|via|is|using)[ \t]+[\"'`]?[a-z][\w.@-]{1,30}[:/]"
    r"(?P<pair>[^\s\"'`/:@]{6,60})(?=[\"'`\s,.]|$)"
)
_DRAWN_SIGNS = re.compile(r"[^\w/.:-]|[A-Z].*\d|\d[A-Z].*-|_\w*\d|-\w*\d")
# A phrase of plain words in quotes, right after the word for it.
_QUOTED_PHRASE = re.compile(
    rf"(?i:passphrase|password|pass phrase|{FOREIGN_SECRETS})\w*(?: (?:is|was|ist|est|es|è|é|är|er|on"
    rf"|jest))?[ :=]{{1,3}}[\"“„«'`]"
    r"(?P<value>[^\W\dA-Z_]{2,12}(?:[ -](?:[^\W\dA-Z_]{2,12}|\d{1,4})){3,11})[\"”“»'`]"
)


def sentences(text: str, _key: str | None) -> Iterator[Hit]:
    """Find secrets that a sentence tells."""
    for match in _BESIDE_LOGIN.finditer(text):
        group = str(match.lastgroup)
        value = match[group].rstrip(".:!?)")
        drawn = _DRAWN_SIGNS.search(value) if group == "value" else unwordly(value, told=True)
        if drawn and any(map(str.isdigit, value)) and is_password(value):
            yield secret_hit(match.start(group), match.start(group) + len(value), "prose", text)
    for match in _QUOTED_PHRASE.finditer(text):
        if word_list("sentences").isdisjoint(re.split(r"[ -]", match["value"])):
            yield value_hit(match, "value", "prose", text)


# What mail providers hand out for programs: four groups of four letters that are no words.
_APP_PASSWORD = re.compile(r"(?<![\w-])[a-z]{4}(?: [a-z]{4}){3}(?![\w-]| [a-z])")
_FOREIGN_CODE = re.compile(
    r"(?i)(?:vahvistuskood|bekräftelsekod|bekreftelseskod|bestätigungscode|code de (?:vérification|confirmation)"
    r"|código de (?:verificación|confirmación|verificação)|codice di (?:verifica|conferma)|kod weryfikacyjny"
    r"|ověřovací kód|doğrulama kodu|verificatiecode|код подтверждения|код підтвердження|验证码|驗證碼|認証コード"
    r"|인증번호|mã xác (?:minh|nhận)|kode verifikasi|κωδικός επιβεβαίωσης)[^\n\d]{0,40}(?P<value>\d{4,8})(?!\d)"
)


# Codes that let somebody in, and addresses that hold a key in their path.
_NUMBER = r"(?P<code>\d{4,8}|\d{3}[ -]\d{3})"
_CODES = re.compile(
    r"(?i)\b(?:(?:verification|security|confirmation|one[- ]time|2fa|mfa|two[- ]factor|login|auth\w*|sms|access"
    r"|pairing"
    r"|unlock|alarm|door|gate|entry|safe|lock|voicemail|activation|sign-?in|bestätigungs|sicherheits)[ -]?"
    rf"(?:code|pin|passcode|password|number)(?: (?:for|of|to) [\w ]{{1,40}}?)?|otp|2fa|passcode"
    rf"|pin(?: [A-Z]{{2,5}})?)(?: (?:is|was"
    rf"|code|ist|est"
    rf"|es))?[: ]{{1,3}}{_NUMBER}\b"
    r"|(?<![\w-])(?P<before>\d{4,8}) is your [^\n.]{0,40}(?:code|pin|password)\b"
    r"|\b(?:recovery|backup|scratch|2fa|emergency)[ _-](?:codes?|keys?)(?: (?:is|are))?[: \n-]{1,6}"
    r"(?P<codes>(?:[a-z0-9]{4,8}(?:[ -][a-z0-9]{4,8}){0,7}[,\s]{0,6}){1,16})"
    r"|\b(?:code|key)(?: is)?[: ]{1,3}(?P<grouped>[A-Z0-9]{4,5}(?:-[A-Z0-9]{4,5}){1,5})\b"
    r"|(?<![\w-])(?P<licence>(?-i:[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3,4}|[A-Z0-9]{4}(?:-[A-Z0-9]{4}){3,7}"
    r"|\d{6}(?:-\d{6}){7}))(?![\w-])"
)


def codes(text: str, _key: str | None) -> Iterator[Hit]:
    """Find codes that let somebody in."""
    for match in (*_FOREIGN_CODE.finditer(text), *_CODES.finditer(text)):
        group = str(match.lastgroup)
        if group in ("value", "code", "before") or _is_drawn_code(group, match[group]):
            yield value_hit(match, group, "code", text)
    for match in _APP_PASSWORD.finditer(text):
        if sum(is_ordinary(word) or is_foreign_word(word) for word in match.group().split()) < 2:
            yield secret_hit(match.start(), match.end(), "code", text)


def _is_drawn_code(group: str, value: str) -> bool:
    digits, letters = any(map(str.isdigit, value)), any(map(str.isalpha, value))
    if group == "licence":
        return digits and (letters or value.count("-") == 7)
    return (digits or value.count("-") > 1) and not is_ordinary_code(value)


# Words weighed by their line.

ENOUGH = 5
WEIGHTS = {
    # The shape of the word.
    "random": 4,  # 16 characters or more that change between cases and digits all the time
    "drawn": 3,  # the same, shorter
    "chosen": 5,  # a word, a sign and a number, or a word with digits for letters: Walrus!482, wal3rus12!
    "code": 2,  # groups of capitals and digits: 7KQX-99F2-LL0P
    "hex": 2,  # 32 hex digits or more
    "odd": 2,  # what nobody writes as a word, a name or a path
    "numbered": 3,  # a capitalised word and a number: Maple-4711
    "phrase": 1,  # three words or more, joined
    "digits": 1,
    "uuid": 1,
    "short hex": 1,
    "numbered phrase": 1,  # two words and a number, joined
    "wordlike": -1,  # a run of small letters among capitals and digits, as identifiers have
    # What speaks of credentials: "names" are words such as password, "hints" such as login or key.
    "named": 4,  # right before it, or as its column or its key
    "named on the line": 3,
    "named above": 3,  # by the line before, which announces it
    "named after": 2,
    "hinted": 3,
    "hinted on the line": 2,
    "hinted above": 2,
    "hinted after": 2,
    "assigned": 1,  # after a sign that gives a value, where something on the line hints
    # What speaks against it.
    "explained": -4,  # the word before says that it is an id, a checksum, a version, a public key
    "code line": -2,
}

_NAMES = f"{label_forms('secrets')}|{FOREIGN_SECRETS}"
_HINTS = label_forms("hints at secrets")
_CUE = re.compile(rf"(?P<name>(?i:{_NAMES})|(?<=[a-z])(?:Pass|Pwd|Pw)(?![a-z]))|(?P<hint>(?i:{_HINTS}))")
# Words before `key`, `token` and `code` after which they mean something else.
_OTHER_KEY = re.compile(rf"(?i)(?:{label_forms('other keys')})[ _.-]?\Z")
# What may stand between a word and the secret that it names.
_BETWEEN = re.compile(
    r"[\w\])}.]{0,24}[\"'`»”]{0,2}(?:\s?\([^()\n]{1,24}\))?"
    r"(?:[\s:=：>→|,/-]{1,8}|\s{2,40}(?:REG_[A-Z_]+\s+)?|\s+(?:is|was|now|to|are|be|ist|lautet|war|est|es|era|è|é|és"
    r"|är|er|on|je|jest|este|là"
    r"|adalah|это|είναι|هي|هو|है|คือ|van|with|mit|avec|con|com|as|ficou|set to|:=|=>|=)\s+|[是は为為는은])"
    r"[\"'`«“„(\[<]{0,2}"
)
_GIVES = re.compile(r"[=:]\s?\Z|\b(?:is|was|are|to|ist|lautet|est|es|è|é|är|er|jest)\s\Z")
_CLAUSE = re.compile(r"[.;!?]\s|\s[-–—]{1,2}\s")
_CUE_LIMIT = 80
_LONGEST = 400  # a longer line is a document of its own; only what stands right before a word counts there

_LINE = re.compile(r"[^\n]{4,600}")
_WORD = re.compile(
    r"(?P<quote>[\"'`])(?P<quoted>[^\s\"'`]{6,128})(?P=quote)|[«“„](?P<curly>[^\s«»“”„]{6,128})[»”“]"
    r"|(?P<bare>[^\s\"'`<>(){}\[\],;|«»“”„：，、。=]{4,})"
)
# Measured on 14 MB of sources, manuals and logs, only numbers of bugs and escapes in addresses had this shape.
_CHOSEN_BODY = (
    r"(?!(?:Bug|Issue|Ticket|Task|Case|Item|Step|Page|Note|Table|Figure|Section|Build|Closes|Fixes|Job|Pkcs|UTC)[#+]"
    r"|base\d)"
    r"(?:[A-Z][a-z]{2,}(?:[!#$?*^&]\d\d|[%+@]\d{3})\d{0,4}|[a-z]{3,}[!$?*^&]\d{2,6}|[A-Za-z]{3,}\d{2,6}[!?$*])[!#?]?"
    r"|[A-Za-z]{2,4}[@013$][a-z]{1,12}\d{2,4}[!#?]|[A-Za-z]{3,}[!$^*][A-Za-z]{3,}[-_.]?\d{2,6}[!?#]?"
)
_CHOSEN = re.compile(_CHOSEN_BODY)
_CHOSEN_ALONE = re.compile(rf"(?<![^\s\"'`=:,(\[>|{{}}/«“„])(?:{_CHOSEN_BODY})(?=[\s\"'`,;:)\]<|}}@/»”“]|\.?(?:\s|$))")
_NUMBERED = re.compile(r"[A-Z][a-z]{2,}[-_.]\d{3,6}")
_GROUPED_CODE = re.compile(
    r"(?=[A-Z0-9-]*\d)(?=[A-Z0-9-]*[A-Z])[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){1,6}|\d{5}-\d{5}"
    r"|(?=(?:[a-z-]*\d){3})(?=[0-9-]*[a-z])[a-z0-9]{4,6}(?:-[a-z0-9]{4,6}){1,6}"
)
_HEX = re.compile(r"[0-9a-f]{32,128}|[0-9A-F]{32,128}")
_DIGITS = re.compile(r"(?!(\d)\1+\Z)\d{4,10}|\d\d(?:-\d\d){2,3}")
_PHRASE = re.compile(r"[A-Za-z]{3,}(?:[-._][A-Za-z]{3,}){2,7}\d{0,4}[!?]?")
_NUMBERED_PHRASE = re.compile(r"[A-Za-z]{3,}[-._][A-Za-z]{3,}[-._]?\d{2,6}")
_ONLY_NAMED = ("short hex", "numbered phrase")
_BASE64 = re.compile(r"(?!/)[A-Za-z0-9+/]{20,}={0,2}")
_LETTERS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WORDS_ONLY = re.compile(r"[A-Za-z_.-]+")
_MIXED = re.compile(r"[a-z][A-Z]")
_RUN = re.compile(r"[a-z]{4}")
# What no secret holds or ends with: operators, names of licences, packages and their versions.
_NO_VALUE = re.compile(
    r"&&|\?\?|\|\||[A-Za-z][\w.-]*\d\+|[\w-]+@\d[\w.-]*|[a-z]+#\d+|[A-Z]+#\d+|[A-Za-z_$]+(?:\.[A-Za-z_$]+)+"
    r"|[\w.]+\*[\w.]+|\w+[?:]\w*\.\w+|[^ -~].*"
)
_ANNOUNCES = (":", ">", "：", "UGFzc3dvcmQ6")  # the last is how SMTP asks for a password
# A prompt with what was typed, which the next line answers.
_ASKS = re.compile(r"\s*(?:[$#%❯>]|>>>|In \[\d+\]:|(?:PS )?[\w.@:~/\\-]{1,40}(?:\(\w+\))?(?::\d+)*[>$#%]) \S")
_GROUPS = re.compile(r"\w{0,24}\s?[:=]\s?(?P<value>[A-Za-z0-9]{4,6}(?:[ -][A-Za-z0-9]{4,6}){2,9})\s*$")
_CODES_CUE = re.compile(r"(?i)codes?\b|authenticator|2fa|totp|secret|key\b|phrase|mnemonic|seed|recovery")
_CODE_LINE = re.compile(
    r"\s*(?:def|class|import|from|return|if|elif|else|for|while|assert|raise|func|fn|const|let|var|public|private|void"
    r"|case)\b[ (:{]"
)
_CODE_WORDS = re.compile(r"(?i)pin|puk|otp|totp|passcode|keypad|combination|code|pass(?:word)?\Z|pw\Z")


class _Cue(NamedTuple):
    start: int
    end: int
    named: bool
    text: str


def _cues(text: str) -> list[_Cue]:
    found = []
    for match in _CUE.finditer(text):
        if _OTHER_KEY.search(text, max(0, match.start() - 16), match.start()) and match["hint"]:
            continue
        found.append(_Cue(match.start(), match.end(), match["name"] is not None, match.group()))
    return found


# The shape of a word, by the form of it whole; those that need a look at the parts follow in `shape_of`.
_SHORT_HEX = re.compile(r"(?=.*\d)(?=.*[a-fA-F])(?:[0-9a-f]{16,31}|[0-9A-F]{16,31})")
_OPERATOR = re.compile(r"&&|\?\?|\|\|")


@lru_cache(maxsize=32_768)
def shape_of(word: str) -> str | None:
    """Return which of the shapes in `WEIGHTS` a word has, or None for a word, a name, a path, a number."""
    if _DIGITS.fullmatch(word):
        return "digits"
    if UUID.fullmatch(word):
        return "uuid" if 2 * word.count("0") < len(word) else None
    if len(word) < 6:
        return None
    if shape := _plain_shape(word):
        return shape if shape != "hex" or len(set(word)) > 6 else None
    if is_other_thing(word) or _NO_VALUE.fullmatch(word) or _OPERATOR.search(word) or _is_words(word):
        return None
    return _odd_shape(word)


def _plain_shape(word: str) -> str | None:
    if _CHOSEN.fullmatch(word):
        return "chosen"
    if _SHORT_HEX.fullmatch(word):
        return "short hex"
    if _HEX.fullmatch(word):
        return "hex"
    if _GROUPED_CODE.fullmatch(word) and not is_ordinary_code(word):
        return "code"
    return "random" if _BASE64.fullmatch(word) and looks_random(word) and not is_path(word) else None


def _is_words(word: str) -> bool:
    """Tell words run together, as identifiers are; a name of two words has longer pieces than a draw."""
    pieces = _LETTERS.findall(word)
    if not _WORDS_ONLY.fullmatch(word):
        return False
    if word.isalpha() and _MIXED.search(word) and len(word) >= 8 and not any(map(_is_known, pieces)):
        return len(word) >= 4 * len(pieces)
    return word[0] in "_-" or sum(map(len, pieces)) >= 2.9 * len(pieces)


def _odd_shape(word: str) -> str | None:
    if word.isalpha() and _MIXED.search(word) and len(word) >= 8 and not any(map(_is_known, _LETTERS.findall(word))):
        return "odd"
    if _NUMBERED.fullmatch(word):
        return "numbered"
    if looks_random(word) or is_drawn(word):
        return "random" if looks_random(word) else "drawn"
    if unwordly(word, told=True):
        low = word.islower() and word.isalnum() and len(re.findall(r"\d+|[a-z]+", word)) >= 5
        return "drawn" if low or unwordly(word) else "odd"
    if _NUMBERED_PHRASE.fullmatch(word):
        return "numbered phrase"
    plain = _PHRASE.fullmatch(word) and all(map(is_ordinary, re.findall(r"[A-Za-z]+", word)))
    return "phrase" if plain else None


def _is_known(piece: str) -> bool:
    """Tell a piece of a name that somebody made up of words, such as those of getUserToken."""
    return len(piece) > 3 and (is_ordinary(piece) or is_technical(piece))


def _words(line: str) -> Iterator[tuple[int, str, bool]]:
    """Yield every word that may be a value, where it begins, and whether a sign before it gives it as one."""
    for match in _WORD.finditer(line):
        group = str(match.lastgroup)
        if group == "quote":
            group = "quoted"
        word, start = match[group], match.start(group)
        given = group != "bare" or _GIVES.search(line, max(0, start - 12), start) is not None
        if group == "bare":
            cut = word.rfind(":")
            if 0 < cut < len(word) - 4 and "://" not in word:
                word, start, given = word[cut + 1 :], start + cut + 1, True
            word = re.sub(r"(?:\\[rnt])+\Z", "", word).rstrip(".,:")
        yield start, word, given


def weighed(text: str, key: str | None) -> Iterator[Hit]:
    """Find what weighs enough."""
    above = _Above(key) if key is not None and _CUE.search(key) else None
    for match in _LINE.finditer(text):
        line, offset = match.group(), match.start()
        cues = _cues(line)
        for start, end in _heavy(line, cues, above) if cues or above else ():
            yield secret_hit(offset + start, offset + end, "weighed", text)
        above = _Above(line) if cues and _announces(line) else None
    for match in _CHOSEN_ALONE.finditer(text):
        if not is_mark(match.group()):
            yield secret_hit(match.start(), match.end(), "weighed", text)


def _announces(line: str) -> bool:
    return bool(line.rstrip().endswith(_ANNOUNCES) or _CODES_CUE.search(line) or _ASKS.match(line))


def _heavy(line: str, cues: list[_Cue], above: _Above | None) -> Iterator[tuple[int, int]]:
    """Yield where the words of a line begin and end that weigh enough, and codes in groups."""
    whole = len(line) < _LONGEST
    for start, word, given in _words(line):
        if _points(line, start, word, given, cues if whole else _nearest(cues, start), above) >= ENOUGH:
            yield start, start + len(word)
    for cue in cues:
        if cue.named and (groups := _GROUPS.match(line, cue.end)) and any(map(str.isdigit, groups["value"])):
            yield groups.span("value")


def _nearest(cues: list[_Cue], start: int) -> list[_Cue]:
    """Return the cues right before a word: all that counts in a line too long to be one."""
    return [cue for cue in cues if cue.end <= start <= cue.end + 24]


class _Above:
    """A line that announces what the next lines hold."""

    def __init__(self, line: str) -> None:
        self.named = any(cue.named for cue in _cues(line))
        self.announces = line.rstrip().endswith(_ANNOUNCES) or (len(line) < 40 and " " not in line)
        self.asks = _ASKS.match(line) is not None and self.named

    def evidence(self, rest: str) -> str | None:
        """Return what this line says about a word of the next one, which has this rest."""
        if self.announces:
            return "named above" if self.named else "hinted above"
        return "named above" if self.asks and not re.search(r"\w", rest) else None


def _points(line: str, start: int, word: str, given: bool, cues: list[_Cue], above: _Above | None) -> int:
    """Return what a word weighs where it stands."""
    shape, end = shape_of(word), start + len(word)
    if shape is None or line[end : end + 1] == "(":
        return 0
    evidence = _evidence(line, start, end, cues, shape)
    if evidence is None and above is not None and shape != "digits" and len(line.split()) <= 3:
        evidence = above.evidence(line[:start] + line[end:])
    if evidence is None or (shape in _ONLY_NAMED and not evidence.startswith("named")):
        return 0  # an id more likely than a key
    points = WEIGHTS[shape] + WEIGHTS[evidence] + given * WEIGHTS["assigned"]
    return points + _against(line, start, word, shape) if points >= ENOUGH else points


def _against(line: str, start: int, word: str, shape: str) -> int:
    """Return what speaks against a word that weighs enough."""
    camel = shape != "odd" and not word.islower() and word.isalnum() and _RUN.search(word) is not None
    explained, code = is_public_before(line, start), _CODE_LINE.match(line) is not None
    return camel * WEIGHTS["wordlike"] + explained * WEIGHTS["explained"] + code * WEIGHTS["code line"]


def _evidence(line: str, start: int, end: int, cues: list[_Cue], shape: str) -> str | None:
    """Return the strongest thing on the line that speaks of credentials."""
    found = [name for cue in cues if (name := _relation(line, start, end, cue, digits=shape == "digits"))]
    return max(found, key=WEIGHTS.__getitem__, default=None)


def _relation(line: str, start: int, end: int, cue: _Cue, *, digits: bool) -> str | None:
    """Return how a word that speaks of credentials relates to another one on its line."""
    if cue.start < end and cue.end > start:
        return None  # a part of the word itself
    gap = line[cue.end : start] if cue.end <= start else None
    kind = "named" if cue.named else "hinted"
    if gap is not None and len(gap) <= 60 and _BETWEEN.fullmatch(gap):
        return kind if not digits or (cue.named and _CODE_WORDS.search(cue.text)) else None
    if digits or (gap is not None and _CLAUSE.search(gap[-_CUE_LIMIT:])):
        return None
    return f"{kind} after" if gap is None else f"{kind} on the line"
