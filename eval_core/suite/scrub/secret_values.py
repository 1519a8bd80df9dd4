"""Is a value a secret? Decided by the name of its field, its shape and its entropy."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from eval_core.suite.scrub.hits import is_mark
from eval_core.suite.scrub.words import is_ordinary, label_forms, word_list

HEXED = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

# What a setting's name says about its value.

Strength = Literal["strong", "weak", "digits", "phrase", "none"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ACCENTS = str.maketrans(
    "áàâäãåąćčçéèêëęěíìîïłńñóòôöõőøśšúùûüůűýžźżğış", "aaaaaaaccceeeeeeiiiilnnooooooossuuuuuuyzzzgis"
)
# Names that were written as one word: storepass, dbpassword, clientsecret.
_JOINED = re.compile(
    r"\w{2,}(?:password|passwd|passwort|passphrase|secret|apikey|authtoken|accesskey|privatekey|secretkey|userpwd)"
    r"|(?:store|key|db|user|root|admin|smtp|ftp|ssh|sudo|become|ldap|bind|my|pg|sql|mail|vault|trust|sys|auth"
    r"|requir|master)"
    r"(?:pass|pw|pwd)|community"
)
_PHRASE = {"passphrase", "mnemonic", "seedphrase"}
_PHRASE_PAIRS = {("seed", "phrase"), ("seed", "words"), ("recovery", "phrase"), ("pass", "phrase")}
_DIGITS = {"pin", "otp", "passcode", "passkey", "cvv", "cvc", "totp", "mfa"}
_WEAK = {"token", "key", "auth", "authorization", "pat", "jwt", "cookie", "sig", "signature", "license", "bearer",
         "session", "sid", "sessionid", "nonce", "salt", "seed", "code", "hash"}  # fmt: skip
_STRONG_PAIRS = frozenset(tuple(pair.split("_")) for pair in word_list("strong pairs"))
_ORDINARY_BEFORE = {
    word: word_list(f"ordinary before {word}") for word in ("key", "token", "code", "hash", "pass", "seed", "session")
}


def key_words(key: str) -> list[str]:
    """Split a name into its words: AWS_SECRET_KEY, secretKey and secret-key have the same."""
    return [word.lower() for word in _WORD.findall(key if key.isascii() else key.translate(_ACCENTS))]


_FORMS = frozenset(
    {"prod", "dev", "staging", "live", "test", "base", "hex", "b64", "base64", "plain", "plaintext", "enc", "sha"}
)


@lru_cache(maxsize=8192)
def key_strength(key: str) -> Strength:
    """Return how surely a value under this name is a secret."""
    words = key_words(key)
    # A trailing number or environment (token_2, PASSWORD_PROD) says nothing.
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _FORMS):
        words.pop()
    if not words:
        return "none"
    last, pair = words[-1], tuple(words[-2:])
    if last in _PHRASE or pair in _PHRASE_PAIRS:
        return "phrase"
    if words[-3:] == ["private", "key", "id"] or (pair == ("secret", "id") and "aws" not in words):
        return "strong"
    described = last in word_list("described settings") or "public" in words[-3:]
    if described or (len(pair) > 1 and pair[0] in _ORDINARY_BEFORE.get(last, ())):
        return "none"
    return "digits" if last in _DIGITS else _named_strength(words)


def _named_strength(words: list[str]) -> Strength:
    strong = any(word in word_list("strong settings") or _JOINED.fullmatch(word) for word in words[-3:])
    if (strong or set(pairwise(words)) & _STRONG_PAIRS) and words != ["pass"]:
        return "strong"
    return "weak" if words[-1] in _WEAK or words == ["pass"] or words[-2:-1] in (["token"], ["key"]) else "none"


# Characters drawn at random, and what is random by nature and public.

_LONG_WORD = re.compile(r"[A-Z]?[a-z]{3,}")
# Ids that are random by nature and public: ULIDs, and the content ids of IPFS.
ULID = re.compile(r"0[0-9A-Z]{25}|Qm[1-9A-HJ-NP-Za-km-z]{44}|bafy[a-z2-7]{55}")
_NAME_PART = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+|\d+)(?:[-_.]?(?:[A-Z]?[a-z]+|[A-Z]+|\d+)){0,5}")
# Random by nature and meant to be seen: checksums, fingerprints, ids of calls and requests, inline images.
PUBLIC_BEFORE = re.compile(
    r"(?:sha(?:1|224|256|384|512)[-:=]|md5[-:=]|base64,|fingerprint[: ]+|integrity[\"':= ]+|ssh-(?:rsa|dss|ed25519) "
    r"|ecdsa-sha2-nistp\d+ |h1:|etag[\"':= ]+(?:W/\"?)?|(?<!session)(?<!secret)(?<!token)-id(?:-\d)?[\"':= ]+"
    r"|\bbh?=|(?<![\w-])id="
    r"|(?:with|via) \w+ id |digest[\"':= ]+|checksum[\"':= ]+"
    r"|build-?id(?:\[\w+\])?[\"':= ]+"
    r"|(?:public|pub)[ _-]?key[\"':= ]+|peer[\"':= ]+|recipient[\"':= ]+|(?:ray|trace|span|request|correlation"
    r"|transaction"
    r"|version)(?:[ _-]?id)?[\"':= ]+)\Z",
    re.IGNORECASE,
)
# Words after which a short draw is the name of a thing: `job 7fKq...`, `"shareId": "..."`.
_THING = (
    r"(?:ids?|uid|guid|uuid|ref|rev|etag|hash|sha|commit|job|run|task|build|order|video|object|slug|cid|tag|image|pod"
    r"|container|ticket|case|file|chunk|index|cursor|version|revision|snapshot|asset|sku|model|part|lot|batch|match)"
)
_NAMED_THING = re.compile(
    rf"{_THING}[\"'\]]{{0,2}} ?[:=#][ \"'#]{{0,3}}\Z|(?<![\w]){_THING}[\"'\]]{{0,2}} [\"'#]{{0,2}}\Z", re.IGNORECASE
)
PUBLIC_PREFIX = re.compile(
    r"_Z\w|RW[QRS][A-Za-z0-9+/]{53}|MIGfMA0GCSq|MIIBIjANBgkq|SHA\d|(?:call|toolu|chatcmpl|msg|req|resp|run"
    r"|thread|step|asst|file|batch|evt|cus|pay|order|cust|plan|rfnd"
    r"|ch|pi"
    r"|in|sub|price|prod|txn|acct|seti|pm|cs(?=_test)"
    r"|item|fc|rs|ws|cmpl|sha\d+"
    r"|AAAA[BCEI])[_-]?"
    r"|srvtoolu_|age1[a-z0-9]{50}|AAAAB3Nza|AAAAC3Nza|AAAAE2Vj"
)
_LEAST_RANDOM = 16
_ENTROPY, _LONG_ENTROPY = 3.4, 3.7  # bits a character, up to 28 of them and beyond
_SEPARATE_WORDS = 0.5  # more of the characters than this in words: a name
_CHANGES, _FEW_CHANGES, _ALL_CHANGES = 0.4, 0.28, 0.42  # between digits and cases, for each character


def _entropy(text: str) -> float:
    """Return the Shannon entropy of the characters, in bits each."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values()) if total else 0.0


def _class(char: str) -> str:
    if char.isdigit():
        return "d"
    return "u" if char.isupper() else "l" if char.isalpha() else "s"


def looks_random(text: str) -> bool:
    """Tell drawn characters from words: draws change between letters, cases and digits all the time."""
    body = text.rstrip("=")
    letters = [_class(char) for char in body if char.isalnum()]
    if len(letters) < _LEAST_RANDOM or _entropy(body) < (_ENTROPY if len(body) < 28 else _LONG_ENTROPY):
        return False
    digits, upper, lower = letters.count("d"), letters.count("u"), letters.count("l")
    changes = sum(one != two for one, two in pairwise(letters)) / len(letters)
    if upper < 3 or lower < 3:
        # One case only: words with a number in them change seldom, draws of base 36 at two places in five.
        return digits >= 4 and upper + lower >= 4 and changes >= _FEW_CHANGES
    if sum(map(len, _LONG_WORD.findall(body))) > _SEPARATE_WORDS * len(body):
        return False
    if changes < _CHANGES:
        # Draws that change seldom are rare; without a word in them they are still draws.
        return digits > 0 and changes >= _FEW_CHANGES and not any(map(_is_long_word, _PIECE.findall(body)))
    return digits > 0 or changes >= _ALL_CHANGES


def read_base64(text: str) -> str | None:
    """Return what base64 says, if that is plain text."""
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
        plain = raw.decode("utf-8")
    except (binascii.Error, ValueError):
        return None
    printable = sum(char.isprintable() or char in "\r\n\t" for char in plain)
    return plain if plain and printable == len(plain) else None


def is_path(text: str) -> bool:
    """Tell folders and files from base64, which has a slash here and there and no words."""
    if "+" in text or "=" in text or "/" not in text:
        return False
    parts = [part for part in text.split("/") if part]
    wordy = [part for part in parts if _NAME_PART.fullmatch(part)]
    return len(wordy) >= len(parts) - 1 and not any(looks_random(part) for part in parts)


def is_drawn(value: str) -> bool:
    """Tell characters drawn one by one from any name: measured on 50 MB of source code, one word in 5 MB passes."""
    digits, upper, lower = (any(map(test, value)) for test in (str.isdigit, str.isupper, str.islower))
    if not digits or not (upper or lower) or is_mark(value) or value.startswith("0x"):
        return False
    if any(len(piece) > 3 and _is_word(piece) for piece in _PIECE.findall(value)):
        return False
    if value.isalnum():
        changes = sum(_sort(one) != _sort(two) for one, two in pairwise(value))
        return upper and lower and changes >= 0.4 * (len(value) - 1)
    inside = re.search(r"\w[!$^&?~#@%*]+(?=\w*[A-Za-z])|\w[!$?#*]\Z", value) is not None
    return inside and not re.search(r"#\d+\Z|@\d|%[\dA-Fa-f]{2}|[&?]\w+=|\*\*", value) and unwordly(value)


def words_between_separators(token: str) -> bool:
    """Tell names made of parts (a-b-c, x_y_z) from draws that happen to hold a separator."""
    parts = [part for part in re.split(r"[-_/+]", token) if part]
    if len(parts) < 3:
        return False
    random_part = max(parts, key=len)
    if looks_random(random_part):
        return False
    plain = [part for part in parts if part.isdigit() or part.islower() or part.isupper() or part.istitle()]
    return len(plain) == len(parts)


# Is this value of a setting a secret, or a stand-in, a reference, or code?

_STAND_IN = re.compile(
    r"[*.•x_#-]{3,}|[xX*]+|<.*|\$\{?.*|%[\w.(): -]+%|(?:[a-z]+[_-])*(?:test|local|fake|mock|sample"
    r"|dev)(?:[_-][a-z]+)*|\{\{?.*\}\}?|\[.*\]|.*\.\.\.|.*…|#(?:[0-9a-f]{3,8}\b)?[^!$%*?\d]*"
    r"|#\d+|@[\w./-]+|(?:password|secret|letmein|hunter)\d{1,4}|"
    r"(?:your|my|the|some|a|an|insert|enter|replace|put|add|use)[-_ ].*|changeit|changez-moi|[a-z]+_x{3,}"
    r"|.*(?:placeholder|redacted|masked"
    r"|change[-_]?me|replace[-_]?(?:me|this)|"
    r"example|dummy|goes[-_]here|xxxx|\*\*\*).*|"
    r"(?:op|vault|ssm|secretsmanager|keyring|env|file|gcp|azure|sops|arn|secret|hash|btree|lmdb|texthash|proxy)[:/].*",
    re.IGNORECASE | re.DOTALL,
)
_CODE = re.compile(
    r"[A-Za-z_][\w.]*[(\[].*|(?:os|sys|self|cls|process|config|settings|ctx|args|req|request|env|secrets|state|options|"
    r"opts|cfg|event|data|params|props|this|app|client|response|resp|result|row|user|body|kwargs|payload|message|msg)"
    r"[.\[?].*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|f?[\"'].*|.*[({]\Z|[A-Z][A-Za-z]+(?:\[.*|\.[A-Za-z_].*)|\w+::.*|&\w+"
    r"|lambda.*"
)
# What quotes or a flag set apart is data unless it calls or looks something up.
_CALL = re.compile(
    r"[A-Za-z_][\w.]*[(\[].*|(?:os|process|self|config|settings|secrets)\.[a-zA-Z_.]+|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
)
_PATH = re.compile(r"(?:~|\.{1,2})?/[\w.@/ -]*|[A-Za-z]:[\\/].*|[\w.-]+(?:/[\w.-]+)+\.\w{1,5}|[\w-]+\.(?:py|js|ts"
                   r"|json|ya?ml|toml|txt|"
                   r"pem|key|crt|env|md|cfg|ini|go|rs|rb|sh|lock)")  # fmt: skip
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s@]*", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.\-]*(?:\?|!)?")
# A member of an object: `random_password.main.result`, `exports.TargetFile`.
_DOTTED = re.compile(r"[a-z_$][A-Za-z_$]*(?:\??\.[A-Za-z_$][A-Za-z_$]*)+\??")
# Words run together, as identifiers and names of licences are.
_JOINED_WORDS = re.compile(r"(?:[A-Z]?[a-z]{2,}|[A-Z]{1,5}(?![a-z])|[-_.])+")
_UNWORDLY = re.compile(r"[a-z]-[A-Z]\w*[a-z][A-Z]|-[A-Z]{2,}[a-z]|[a-z][A-Z]{2,}[a-z]+[A-Z]")
# What mail providers hand out for programs: four groups of four letters.
_APP_PASSWORD = re.compile(r"[a-z]{4}(?:[ -][a-z]{4}){3}")
_VERSION = re.compile(r"[v^~]?\d+(?:\.\d+)+[\w.+-]*|\d{4}-\d\d-\d\d.*|\d+(?:\.\d+)?(?:ms|s|m|h|d|k|kb|mb|gb|%)?", re.I)


_HEX_CONSTANT = re.compile(r"0x[0-9a-fA-F]{1,16}")
_HEX = re.compile(r"[0-9a-fA-F]+")
_NAMES_A_SETTING = frozenset({"password", "secret", "token", "key", "passwd", "credential", "credentials", "auth"})


def is_secret_value(value: str, strength: Strength, key: str, *, exact: bool) -> bool:
    """Decide for a value found under a name; `exact` says that quotes or the format mark where it ends."""
    if strength == "none" or len(value) < 3 or is_mark(value) or _is_stand_in(value, key):
        return False
    if value[0] == "(" or (not exact and _DOTTED.fullmatch(value)) or _HEX_CONSTANT.fullmatch(value):
        return False
    if strength == "digits":
        return (value.isdigit() and 3 <= len(value) <= 8 and len(set(value)) > 1) or _has_kinds(value)
    if strength == "phrase":
        return len(value) >= 6 and (exact or not _IDENTIFIER.fullmatch(value))
    if strength == "strong" and exact and _APP_PASSWORD.fullmatch(value):
        return True
    if any(map(str.isspace, value)) or _is_code_or_path(value, exact=exact):
        return False
    return _is_weak_secret(value, key) if strength == "weak" else _is_strong_secret(value, exact=exact)


def is_password(value: str) -> bool:
    """Decide for a value that stands where only a password does."""
    return is_secret_value(value, "strong", "password", exact=True)


def _is_stand_in(value: str, key: str) -> bool:
    ordinary = word_list("ordinary values")
    if value.lower() in ordinary or value.lower().strip("_-") == key.lower().strip("_-") or _STAND_IN.fullmatch(value):
        return True
    plain = read_base64(value) if len(value) >= 8 else None
    if plain and (_STAND_IN.fullmatch(plain) or plain.lower() in ordinary):
        return True
    # A label in another language.
    return not value.isascii() and _SAYS_SECRET.search(value) is not None and not any(map(str.isdigit, value))


def _is_code_or_path(value: str, *, exact: bool) -> bool:
    return any(form.fullmatch(value) for form in (_CALL if exact else _CODE, _PATH, _URL))


def _is_strong_secret(value: str, *, exact: bool) -> bool:
    if not _IDENTIFIER.fullmatch(value):
        return len(value) >= 4 and not (_VERSION.fullmatch(value) and len(value) < 6)
    if exact:  # `password: "db_password"` names a setting
        return len(value) >= 4 and _NAMES_A_SETTING.isdisjoint(key_words(value))
    return unwordly(value) or (_UNWORDLY.search(value) is not None and not any(sign in value for sign in "._"))


def _has_kinds(value: str) -> bool:
    kinds = sum(any(map(kind, value)) for kind in (str.isdigit, str.islower, str.isupper))
    return len(value) >= _LEAST_RANDOM and kinds >= 2 and _entropy(value) >= 3.0


def _is_weak_secret(value: str, key: str) -> bool:
    words = key_words(key)
    last = words[-1] if words else ""
    if UUID.fullmatch(value):
        return last == "token"
    if last == "pass":
        return len(value) >= 8 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if _HEX.fullmatch(value):
        # Bare hex under "key", "hash" or "code" is a checksum more often than not. A name of two words that ends in
        # "key" (routing_key, validationKey) means one in a program's settings too.
        named = last == "key" and len(words) > 1 and len(value) >= 32
        return named or (last in ("token", "auth", "pat", "bearer", "salt") and len(value) >= _LEAST_RANDOM)
    if _VERSION.fullmatch(value) or (_JOINED_WORDS.fullmatch(value) and not looks_random(value)):
        return False
    short = last in ("code", "hash", "seed", "nonce", "signature", "sig", "session") and len(value) < 20
    return not short and _has_kinds(value) and not _LOWER_PARTS.fullmatch(value)


_LOWER_PARTS = re.compile(r"[a-z0-9]+(?:[-_:./#+][a-z0-9]+)+")


def _sort(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2


# Words, and what nobody writes as one.

_DATE_OR_KEYS = re.compile(r"\d{1,2}[-/]?[A-Za-z]{3}[-/]\d{2,4}|(?:Ctrl|Cmd|Alt|Shift|Option|Meta|Super)\+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIGN = re.compile(r"[!#$%^&*+~?@]")
_SIGN_INSIDE = re.compile(r"\w[!#$%^&*+~?@]+\w")
_ID = re.compile(r"[a-z]{2,6}[_.-]\d+")
_CHOSEN = re.compile(r"[A-Za-z]{3,}[!#$%?*_.+@&-]{1,2}\d{2,6}[!#$?*]?|[A-Za-z]{3,}\d{2,6}[!#$?*]{1,2}")
# Addresses, paths, versions, formats, stand-ins, constants and code.
_OTHER_FORM = re.compile(
    r"://|^[\w.+-]+@[\w-]+\.[a-z]|%[sdifr]\b|[$%]?\{|\$\(|[<>()\[\]|;\\]|^[$@~/.-]|^\*|\*\.|\.\.|[\w-]=|::|->"
    r"|^[vV]?\d+(?:[.:/-]\d+)+|^[A-Z][A-Z0-9]*(?:[_.-][A-Z0-9]+)+$|^[0-9a-fA-F:-]+$|^[\w-]*(?:\.[\w-]+)*\.[a-z]{1,5}$"
    r"|^_Z[A-Z]|\w@+[A-Z][A-Z0-9]*_[\d.]|^[\w.-]+/|^[a-z0-9.]+(?:[+-][a-z0-9.]+)+$|^[A-Za-z]\+\+\d+$|^0x|^#\d+$"
    r"|^[A-Za-z]+:|\w/\w+/|^[a-z]\w*\.[a-z]\w*$"
    r"|^@?[\w./-]+@[\^~]?\d+(?:\.\d+)+[\w.-]*$"
    r"|^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|[smhdw]))+$|^\d+(?:\.\d+)?[kKMGTP]?(?:Hz|i?B|bps|bit|px|fps)$"
)


def _is_long_word(piece: str) -> bool:
    return len(piece) > 3 and _is_word(piece)


def _is_word(piece: str) -> bool:
    return is_ordinary(piece) or (len(piece) > 4 and is_ordinary(re.sub(r"(?:e?[rd]|ing|e?s|able)$", "", piece)))


@lru_cache(maxsize=16_384)
def unwordly(value: str, *, told: bool = False) -> bool:
    """Tell what nobody writes as a word, a name or a path from what people do.

    Where the text has `told` that a secret is here, a word with a number and a sign (`Maple-4711`) counts as one.
    """
    if not (6 if told else 8) <= len(value) <= 128 or is_mark(value) or _STAND_IN.fullmatch(value):
        return False
    letters = sum(map(str.isalpha, value))
    if letters < 2 or _OTHER_FORM.search(value) or _DATE_OR_KEYS.match(value):
        return False
    marked = any(map(str.isdigit, value)) and _SIGN.search(value) is not None
    # An id has a prefix in small letters too: usr_4471.
    if told and (marked or (_CHOSEN.fullmatch(value) is not None and not _ID.fullmatch(value))):
        return True
    if 2 * sum(len(piece) for piece in _PIECE.findall(value) if len(piece) > 2 and _is_word(piece)) > letters:
        return False
    return marked or _changes_like_a_draw(value, told=told)


def _changes_like_a_draw(value: str, *, told: bool) -> bool:
    digits, signs = any(map(str.isdigit, value)), _SIGN.search(value) is not None
    sorts = [_sort(char) for char in value if char.isalnum() and char.isascii()]
    changes = sum(one != two for one, two in pairwise(sorts))
    if any(map(str.isupper, value)) and any(map(str.islower, value)):
        if told and signs and _SIGN_INSIDE.search(value):
            return True
        if digits or signs:
            return changes >= 3 and changes >= (0.2 if told else 0.3) * len(sorts)
        # A name of two words has longer pieces than a draw.
        short = told and len(value) < 4 * len(_PIECE.findall(value)) and changes >= 2 and len(value) >= 8
        return (changes >= 4 and changes >= 0.33 * len(sorts)) or short
    if value.isupper() and value.isalnum():  # base 32
        return len(value) >= _LEAST_RANDOM and changes >= 4 and ULID.fullmatch(value) is None
    return told and digits and value.isalnum() and changes >= 3


# Shared by the detectors.

FOREIGN_SECRETS = label_forms("secrets in other languages")
_SAYS_SECRET = re.compile(FOREIGN_SECRETS, re.IGNORECASE)
# In a name as well as in a sentence: setPassword, WIFI_PASS, auth-pass, "the password".
SECRET_WORD = re.compile(
    rf"(?i:passw(?:or)?d|passphrase|passcode|secret|credential|api[ _-]?key|private[ _-]?key|access[ _-]?key"
    rf"|auth[ _-]?key"
    rf"|auth[ _-]?token|access[ _-]?token|{FOREIGN_SECRETS}|(?<![a-z])(?:pwd|pw|pass|creds?|psk|totp|otp)(?![a-z])"
    rf"|log(?:ged|ging)?[ _-]?(?:in|on)\b|sign(?:ed|ing)?[ _-]?in\b|\bwi-?fi\b|\bwlan\b|\bssid\b"
    rf"|\b[a-z]{{2,8}}pw\b|key[ _-]?material"
    rf"|\bverification\b|\bapp[ _-]?id\b|\b(?:key|token)(?=[ \t]+[\"']))"
    rf"|(?<=[a-z])(?:Pass|Pwd)(?![a-z])|\b(?i:bearer|token)(?= (?:is|was|to|of|for)\b|[:=])"
)


def is_mixed(value: str) -> bool:
    """Tell what a person chose or a program drew from a word: letters and something else."""
    marked = any(map(str.isdigit, value)) or re.search(r"[!#$%&*?]", value) is not None
    return any(map(str.isalpha, value)) and (marked or unwordly(value))


def is_other_thing(value: str) -> bool:
    """Tell what has the form of an address, a path, a version, a date, an id, code or a stand-in."""
    return (
        _OTHER_FORM.search(value) is not None
        or _DATE_OR_KEYS.match(value) is not None
        or _STAND_IN.fullmatch(value) is not None
        or UUID.fullmatch(value) is not None
        or ULID.fullmatch(value) is not None
        or PUBLIC_PREFIX.match(value) is not None
        or is_mark(value)
        or is_path(value)
        or words_between_separators(value)
    )


# The id of a message after the program that logs it; a branch.
_LOGGED_OR_BRANCH = re.compile(
    r"\w\[\d+\]: \Z|queued as \Z|(?:HEAD:|--head[ =]|origin |branch [\"']?|switch -c |checkout -b )\Z"
)


def is_public_before(text: str, start: int) -> bool:
    """Tell whether the words before a value say that it is an id, a checksum or another thing meant to be seen."""
    near = max(0, start - 24)
    return any(pattern.search(text, near, start) for pattern in (PUBLIC_BEFORE, _NAMED_THING, _LOGGED_OR_BRANCH))


def is_ordinary_code(value: str) -> bool:
    """Tell names with a number (`order-4411`, `py311-deps-v4`) from groups that were drawn."""
    return any(len(piece) > 3 and is_ordinary(piece) for piece in re.split(r"[-\d]+", value))
