"""Is the value of a setting a secret? Decided by the setting's name, the value's shape and its entropy."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from eval_core.suite.scrub.hits import Hit, is_mark, secret_hit
from eval_core.suite.scrub.ordinary_words import is_ordinary

__all__ = [
    "FOREIGN_SECRETS",
    "HEXED",
    "SECRET_WORD",
    "Strength",
    "entropy",
    "is_drawn",
    "is_mixed",
    "is_no_name",
    "is_ordinary_code",
    "is_other_thing",
    "is_password",
    "is_path",
    "is_public_before",
    "is_secret_value",
    "key_strength",
    "key_words",
    "looks_random",
    "password_shape",
    "public_tokens",
    "random_tokens",
    "read_base64",
    "short_draws",
    "unwordly",
]

# What a setting's name says about its value.

Strength = Literal["strong", "weak", "digits", "phrase", "none"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ACCENTS = str.maketrans(
    "áàâäãåąćčçéèêëęěíìîïłńñóòôöõőøśšúùûüůűýžźżğış", "aaaaaaaccceeeeeeiiiilnnooooooossuuuuuuyzzzgis"
)
_STRONG = {
    "password", "passwd", "pwd", "pass", "secret", "apikey", "passwort", "kennwort", "contrasena", "senha", "psk",
    "credential", "credentials", "authtoken", "accesstoken", "secretkey", "privatekey", "accesskey", "pgpassword",
    "requirepass", "sharedkey", "clientsecret", "pw", "wachtwoord", "haslo", "losenord", "passord", "adgangskode",
    "salasana", "heslo", "jelszo", "sifre", "parola", "motdepasse", "userpassword", "passwordhash", "pskkey", "lozinka",
    "geslo", "katasandi", "wifipass", "setcookie", "upw", "opw", "hmac", "ntlm", "authtok",
}  # fmt: skip
_STRONG_PAIRS = {
    ("api", "key"), ("access", "key"), ("secret", "key"), ("private", "key"), ("auth", "token"), ("access", "token"),
    ("refresh", "token"), ("id", "token"), ("bearer", "token"), ("session", "token"), ("session", "key"),
    ("signing", "key"), ("encryption", "key"), ("master", "key"), ("account", "key"), ("shared", "key"),
    ("service", "key"), ("deploy", "key"), ("license", "key"), ("security", "token"), ("app", "key"), ("hmac", "key"),
    ("bot", "token"), ("app", "token"), ("user", "token"), ("auth", "key"), ("key", "data"), ("personal", "token"),
    ("storage", "key"), ("subscription", "key"), ("admin", "key"), ("integration", "key"), ("csrf", "token"),
    ("github", "token"), ("gitlab", "token"), ("npm", "token"), ("deploy", "token"), ("private", "token"),
    ("consumer", "key"), ("application", "key"), ("verification", "token"), ("encrypt", "key"), ("ssh", "key"),
    ("aes", "key"), ("jwt", "key"), ("sas", "token"), ("vault", "token"), ("job", "token"), ("registry", "auth"),
    ("network", "key"), ("webhook", "key"), ("server", "key"), ("write", "key"), ("root", "key"), ("device", "key"),
    ("ingest", "key"), ("recovery", "key"), ("backup", "key"), ("cipher", "key"), ("crypto", "key"), ("fernet", "key"),
    ("secure", "key"), ("unseal", "key"), ("publish", "key"), ("push", "key"), ("developer", "key"), ("rest", "key"),
    ("token", "secret"), ("api", "token"), ("kata", "sandi"), ("mot", "passe"), ("join", "key"), ("data", "key"),
    ("key", "material"), ("sec", "key"),
}  # fmt: skip
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
# A name that ends like this describes a secret, or points to where one is kept.
_DESCRIBES = {
    "name", "names", "field", "path", "file", "filename", "url", "uri", "id", "ids", "type", "count", "length", "len",
    "limit", "expiry", "expires", "expired", "expiration", "env", "var", "header", "policy", "prefix", "suffix",
    "manager", "ttl", "arn", "ref", "version", "format", "pattern", "regex", "rule", "error", "status", "valid", "set",
    "enabled", "required", "present", "in", "at", "age", "size", "index", "label", "hint", "reset", "provider", "store",
    "usage", "budget", "cost", "mode", "method", "scope", "scopes", "algorithm", "strength", "min", "max", "rotation",
    "callback", "endpoint", "dir", "folder", "map", "list", "errors", "stdin", "encoding", "class", "func",
    "encryption", "hasher", "hashing", "authentication", "complexity", "history", "validator", "validators", "strategy",
}  # fmt: skip
_ORDINARY_BEFORE = {
    "key": {"public", "primary", "foreign", "sort", "partition", "cache", "hot", "row", "object", "index",
            "idempotency",            "unique", "dict", "map", "group", "host", "short", "config", "lookup",
            "i18n", "translation", "query",
            "return", "enter", "press", "arrow", "registry", "composite", "item", "default", "s3", "dedup"},
    "token": {"pad", "eos", "bos", "unk", "sep", "cls", "mask", "next", "page", "stop", "end", "start", "continuation",
              "max", "min", "num", "per", "input", "output", "total", "prompt", "completion", "new", "first", "last",
              "special", "syntax", "operator", "each", "chat", "image"},
    "code": {"exit", "status", "error", "return", "country", "language", "source", "zip", "postal", "http", "response",
             "currency", "reason", "lang", "area", "byte", "machine", "op", "qr", "bar", "vs"},
    "hash": {"commit", "git", "content", "file", "tree", "sha", "block", "tx", "build", "asset", "object", "blob"},
    "pass": {"by", "first", "second", "test", "tests", "one", "single", "low", "high", "band", "will", "should", "did"},
    "seed": {"random", "torch", "numpy", "np", "rng", "global"},
    "session": {"request", "db", "current"},
}  # fmt: skip


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
    last = words[-1]
    if last in _PHRASE or tuple(words[-2:]) in _PHRASE_PAIRS:
        return "phrase"
    if words[-3:] == ["private", "key", "id"] or words[-2:] == ["secret", "id"]:
        return "strong" if words[-3:-1] != ["aws", "secret"] else "none"
    if last in _DESCRIBES or "public" in words[-3:]:
        return "none"
    if len(words) > 1 and words[-2] in _ORDINARY_BEFORE.get(last, ()):
        return "none"
    pairs = set(pairwise(words))
    if last in _DIGITS:
        return "digits"
    if any(word in _STRONG or _JOINED.fullmatch(word) for word in words[-3:]) or pairs & _STRONG_PAIRS:
        return "strong" if last != "pass" or len(words) > 1 else "weak"
    if last in _WEAK or (len(words) > 1 and words[-2] in ("token", "key")):
        return "weak"
    return "none"


# The backstop: stretches that look drawn at random, whoever issued them.

_CANDIDATE = re.compile(
    r"(?:(?<![A-Za-z0-9+/_=.\-])|(?<=[A-Za-z_\]]=))[A-Za-z0-9+/_\-]{20,4000}={0,2}(?![A-Za-z0-9+/_=\-])"
)
_WORD_entropy = re.compile(r"[A-Z]?[a-z]{3,}")
# Ids that are random by nature and public: ULIDs, and the content ids of IPFS.
_ULID = re.compile(r"0[0-9A-Z]{25}|Qm[1-9A-HJ-NP-Za-km-z]{44}|bafy[a-z2-7]{55}")
_NAME_PART = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+|\d+)(?:[-_.]?(?:[A-Z]?[a-z]+|[A-Z]+|\d+)){0,5}")
_HEX = re.compile(r"[0-9a-fA-F-]+")
# The id of a resource, a key of a cache, a digest with its size: words and one hex number.
_NAMED_HEX = re.compile(
    r"(?!(?:[\w/]+[-_/])*(?:key|token|secret|pat|sk|api|pass|auth)[-_])(?:[a-z]{2,}[-_/])+[0-9a-f]{8,64}|[0-9a-f]{32,64}/\d+"
)
# Random by nature and meant to be seen: checksums, fingerprints, ids of calls and requests, inline images.
_PUBLIC_BEFORE = re.compile(
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
_PUBLIC_PREFIX = re.compile(
    r"_Z\w|RW[QRS][A-Za-z0-9+/]{53}|MIGfMA0GCSq|MIIBIjANBgkq|SHA\d|(?:call|toolu|chatcmpl|msg|req|resp|run|thread|step|asst|file|batch|evt|cus|pay|order|cust|plan|rfnd"
    r"|ch|pi"
    r"|in|sub|price|prod|txn|acct|seti|pm|cs(?=_test)"
    r"|item|fc|rs|ws|cmpl|sha\d+"
    r"|AAAA[BCEI])[_-]?"
    r"|srvtoolu_|age1[a-z0-9]{50}|AAAAB3Nza|AAAAC3Nza|AAAAE2Vj"
)
_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY(?: BLOCK)?|SIGNATURE|PGP MESSAGE|X509 CRL)-----"
    r"[A-Za-z0-9+/=\s\\:.,()-]*?(?:-----END|\Z)"
)


_WALLET_BEFORE = re.compile(r"(?i)accounts|priv|key|signer|deployer|wallet|secret")


def entropy(text: str) -> float:
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
    if len(letters) < 16 or entropy(body) < (3.4 if len(body) < 28 else 3.7):
        return False
    digits, upper, lower = letters.count("d"), letters.count("u"), letters.count("l")
    changes = sum(1 for one, two in pairwise(letters) if one != two) / len(letters)
    if upper >= 3 and lower >= 3:
        if sum(map(len, _WORD_entropy.findall(body))) > 0.5 * len(body):
            return False
        if changes < 0.4:
            # Draws that change seldom are rare; without a word in them they are still draws.
            return digits > 0 and changes >= 0.28 and not any(map(_is_long_word, _UNWORDLY_PIECE.findall(body)))
        return digits > 0 or changes >= 0.42
    # One case only: words with a number in them change seldom, draws of base 36 at two places in five.
    return digits >= 4 and upper + lower >= 4 and changes >= 0.28


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


def random_tokens(text: str, key: str | None) -> Iterator[Hit]:
    """Find random stretches that no rule knows by their form."""
    public = [match.span() for match in _PUBLIC_BLOCK.finditer(text)] if "-----BEGIN" in text else []
    for match in _CANDIDATE.finditer(text):
        token = match.group()
        if _HEX.fullmatch(token) or not any(map(str.isdigit, token)) or not looks_random(token):
            continue
        if _HEX.fullmatch(token, 2) and not _WALLET_BEFORE.search(text, max(0, match.start() - 80), match.start()):
            continue  # an address, a topic or a transaction rather than a key
        if (
            "EXAMPLE" in token
            or _PUBLIC_PREFIX.match(token)
            or _PUBLIC_BEFORE.search(text, max(0, match.start() - 24), match.start())
        ):
            continue
        if any(start <= match.start() < end for start, end in public):
            continue
        if _ULID.fullmatch(token) or "/nix/store/" in text[max(0, match.start() - 12) : match.end()]:
            continue
        if key is not None and key.lower() in ("integrity", "digest", "checksum", "etag", "id", "call_id"):
            continue
        if is_path(token) or _words_between_separators(token) or read_base64(token) is not None:
            continue
        if _NAMED_HEX.fullmatch(token):
            continue
        yield secret_hit(match.start(), match.end(), "random-token", text)


_CALLED_PUBLIC = re.compile(r"(?i)(?:public|pub)[ _-]?key[\"':= ]{1,4}(?P<value>[A-Za-z0-9+/_-]{20,}={0,2})")


def public_tokens(text: str) -> Iterator[str]:
    """Yield what a text calls a public key."""
    for match in _CALLED_PUBLIC.finditer(text) if "ub" in text else ():
        yield match["value"]


_SHORT = re.compile(
    r"(?<![^\s\"'`=:,(\[>|{])(?P<value>[A-Za-z0-9][A-Za-z0-9!$^&?~#@%*+._-]{8,30}[A-Za-z0-9!$?#*])(?=[\s\"'`,;)\]<|}]"
    r"|$)"
)


def short_draws(text: str, key: str | None) -> Iterator[Hit]:
    """Find short draws that nothing names: ten characters or more that change between cases and digits all the time."""
    if key is not None and re.search(r"(?i)id\Z|hash|sha|digest|etag|version|revision|cursor|slug", key):
        return
    for match in _SHORT.finditer(text):
        value = match["value"]
        if (
            not is_drawn(value)
            or (len(value) > 11 and read_base64(value) is not None)
            or _PUBLIC_PREFIX.match(value)
            or _NAMED_THING.search(text, max(0, match.start() - 16), match.start())
            or "://" in text[max(0, text.rfind(" ", 0, match.start())) : match.start()]
        ):
            continue
        yield secret_hit(*match.span("value"), "random-token", text)


def is_drawn(value: str) -> bool:
    """Tell characters drawn one by one from any name: measured on 50 MB of source code, one word in 5 MB passes."""
    digits, upper, lower = (any(map(test, value)) for test in (str.isdigit, str.isupper, str.islower))
    if not digits or not (upper or lower) or is_mark(value) or value.startswith("0x"):
        return False
    if any(len(piece) > 3 and _is_word(piece) for piece in _UNWORDLY_PIECE.findall(value)):
        return False
    if value.isalnum():
        changes = sum(_sort(one) != _sort(two) for one, two in pairwise(value))
        return upper and lower and changes >= 0.4 * (len(value) - 1)
    inside = re.search(r"\w[!$^&?~#@%*]+(?=\w*[A-Za-z])|\w[!$?#*]\Z", value) is not None
    return inside and not re.search(r"#\d+\Z|@\d|%[\dA-Fa-f]{2}|[&?]\w+=|\*\*", value) and unwordly(value)


def _words_between_separators(token: str) -> bool:
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
_ORDINARY_WORDS = (
    "none null nil true false undefined nan yes no on off empty unset default missing invalid incorrect wrong required "
    "optional expired valid string str int integer bool boolean number object array bytes text any optional secret "
    "password passwd pass token key apikey auth basic bearer digest oauth oauth2 jwt user username admin root test "
    "testing guest hidden todo tbd fixme foo bar baz value values field input type name self cls this return await new "
    "get set list dict tuple local localhost prompt stdin file env environment config settings header cookie session "
    "enabled disabled unknown error failed failure success ok denied forbidden unauthorized rejected revoked and or "
    "not "
    "is in for from with the a an postgres mysql redis mongo rabbitmq minioadmin plain md5 sha256 hmac rs256 hs256 "
    "primary private public static dynamic anonymous external internal manual automatic"
)
_ORDINARY = frozenset(_ORDINARY_WORDS.split())
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
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_.\-]*(?:\?|!)?")
# A member of an object: `random_password.main.result`, `exports.TargetFile`.
_DOTTED = re.compile(r"[a-z_$][A-Za-z_$]*(?:\??\.[A-Za-z_$][A-Za-z_$]*)+\??")
# Words run together, as identifiers and names of licences are.
_JOINED_WORDS = re.compile(r"(?:[A-Z]?[a-z]{2,}|[A-Z]{1,5}(?![a-z])|[-_.])+")
_UNWORDLY = re.compile(r"[a-z]-[A-Z]\w*[a-z][A-Z]|-[A-Z]{2,}[a-z]|[a-z][A-Z]{2,}[a-z]+[A-Z]")
_HEX_values = re.compile(r"[0-9a-fA-F]+")
# What mail providers hand out for programs: four groups of four letters.
_APP_PASSWORD = re.compile(r"[a-z]{4}(?:[ -][a-z]{4}){3}")
_VERSION = re.compile(r"[v^~]?\d+(?:\.\d+)+[\w.+-]*|\d{4}-\d\d-\d\d.*|\d+(?:\.\d+)?(?:ms|s|m|h|d|k|kb|mb|gb|%)?", re.I)


_HEX_CONSTANT = re.compile(r"0x[0-9a-fA-F]{1,16}")


def is_secret_value(value: str, strength: Strength, key: str, *, exact: bool) -> bool:
    """Decide for a value found under a name; `exact` says that quotes or the format mark where it ends."""
    if strength == "none" or len(value) < 3 or is_mark(value):
        return False
    if value.lower() in _ORDINARY or value.lower().strip("_-") == key.lower().strip("_-") or _STAND_IN.fullmatch(value):
        return False
    if len(value) >= 8 and (plain := read_base64(value)) and (_STAND_IN.fullmatch(plain) or plain.lower() in _ORDINARY):
        return False  # a stand-in, encoded
    if not value.isascii() and _SAYS_SECRET.search(value) and not any(map(str.isdigit, value)):
        return False  # a label in another language
    if value[0] == "(" or (not exact and _DOTTED.fullmatch(value)) or _HEX_CONSTANT.fullmatch(value):
        return False
    if strength == "digits":
        return (value.isdigit() and 3 <= len(value) <= 8 and len(set(value)) > 1) or _drawn(value)
    if strength == "phrase":
        return len(value) >= 6 and (exact or not _IDENTIFIER.fullmatch(value))
    if strength == "strong" and _APP_PASSWORD.fullmatch(value) and exact:
        return True
    if any(char.isspace() for char in value):
        return False
    if (_CALL if exact else _CODE).fullmatch(value) or _PATH.fullmatch(value) or _URL.fullmatch(value):
        return False
    if strength == "weak":
        return _weak(value, key)
    if _IDENTIFIER.fullmatch(value):
        if not exact and unwordly(value):
            return True
        if not exact and _UNWORDLY.search(value) and not any(sign in value for sign in "._"):
            return True
        return exact and len(value) >= 4 and not _is_name_of(value, key)
    return len(value) >= 4 and not (_VERSION.fullmatch(value) and len(value) < 6)


def _is_name_of(value: str, key: str) -> bool:
    """Tell `password: "db_password"`, which names a setting, from a password."""
    words = set(key_words(value))
    return bool(words & {"password", "secret", "token", "key", "passwd", "credential", "credentials", "auth"})


def _drawn(value: str) -> bool:
    kinds = sum((any(map(str.isdigit, value)), any(map(str.islower, value)), any(map(str.isupper, value))))
    return len(value) >= 16 and kinds >= 2 and entropy(value) >= 3.0


def _weak(value: str, key: str) -> bool:
    last = key_words(key)[-1:]
    if _UUID.fullmatch(value) and last == ["token"]:
        return True
    if _UUID.fullmatch(value) or _VERSION.fullmatch(value):
        return False
    if last == ["pass"]:
        return len(value) >= 8 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    if _HEX_values.fullmatch(value):
        # Bare hex under "key", "hash" or "code" is a checksum more often than not.
        # A name of two words that ends in "key" (routing_key, validationKey) means one in a program's settings too.
        environment = last == ["key"] and len(key_words(key)) > 1 and len(value) >= 32
        return environment or (last in (["token"], ["auth"], ["pat"], ["bearer"], ["salt"]) and len(value) >= 16)
    if _JOINED_WORDS.fullmatch(value) and not looks_random(value):
        return False
    if last in (["code"], ["hash"], ["seed"], ["nonce"], ["signature"], ["sig"], ["session"]) and len(value) < 20:
        return False
    if re.fullmatch(r"[a-z]+(?:[+-][a-z0-9]+)+", value):
        return False  # keys of a keyboard
    return _drawn(value) and not re.fullmatch(r"[a-z0-9]+(?:[-_:./#][a-z0-9]+)+", value)


def _sort(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.isupper() else 2


_DATE_OR_KEYS = re.compile(r"\d{1,2}[-/]?[A-Za-z]{3}[-/]\d{2,4}|(?:Ctrl|Cmd|Alt|Shift|Option|Meta|Super)\+")


def password_shape(value: str) -> bool:
    """Tell what is shaped as no word, path or name is: a password that a person chose or a program drew."""
    if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)) or _DATE_OR_KEYS.match(value):
        return False
    if re.search(r"[!#%$^&*+~?]", value):
        return re.search(r"^[#@$%]?\w+$|%[sdif]|\$\{|^\$|[?&]\w+=", value) is None
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    if mixed and value.isalnum():
        # Draws change between cases and digits all the time; names of things do so at their words.
        changes = sum(_sort(one) != _sort(two) for one, two in pairwise(value))
        return changes >= 5 and changes > 0.46 * len(value)
    return (
        mixed
        and re.search(r"\d{2,}$|[A-Za-z]\d[A-Za-z]", value) is not None
        and re.search(r"[_@.-]", value) is not None
        and (
            re.fullmatch(r"[A-Za-z]+[-_]\d+|[\w-]+\.\w{1,4}|[A-Z][A-Z0-9_-]+|[\w.+-]+@[\w.-]+\.\w+|v?\d+\..*", value)
            is None
        )
    )


_UNWORDLY_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
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
    if not 6 + 2 * (not told) <= len(value) <= 128 or is_mark(value):
        return False
    if _OTHER_FORM.search(value) or _DATE_OR_KEYS.match(value):
        return False
    digits, signs = any(map(str.isdigit, value)), re.search(r"[!#$%^&*+~?@]", value) is not None
    letters = sum(map(str.isalpha, value))
    if letters < 2 or _STAND_IN.fullmatch(value):
        return False
    # An id has a prefix in small letters too: usr_4471.
    chosen = _CHOSEN.fullmatch(value) is not None and not re.fullmatch(r"[a-z]{2,6}[_.-]\d+", value)
    if told and ((digits and signs) or chosen):
        return True
    pieces = _UNWORDLY_PIECE.findall(value)
    if 2 * sum(len(piece) for piece in pieces if len(piece) > 2 and _is_word(piece)) > letters:
        return False
    if digits and signs:
        return True
    sorts = [_sort(char) for char in value if char.isalnum() and char.isascii()]
    changes = sum(one != two for one, two in pairwise(sorts))
    mixed = any(map(str.isupper, value)) and any(map(str.islower, value))
    if told and mixed and signs and re.search(r"\w[!#$%^&*+~?@]+\w", value):
        return True
    if mixed and (digits or signs):
        return changes >= 3 and changes >= (0.2 if told else 0.3) * len(sorts)
    if mixed:
        # A name of two words has longer pieces than a draw.
        short = len(value) < 4 * len(pieces)
        return (changes >= 4 and changes >= 0.33 * len(sorts)) or (told and short and changes >= 2 and len(value) >= 8)
    if value.isupper() and value.isalnum():  # base 32
        return len(value) >= 16 and changes >= 4 and _ULID.fullmatch(value) is None
    return told and digits and value.isalnum() and changes >= 3


# Shared by the detectors.

FOREIGN_SECRETS = (
    "kennwort|passwort|schlüssel|zugangsdaten|geheimnis|mot de passe|code d['’]accès|clé (?:api|secrète|privée)"
    "|identifiants|contraseña|clave|credenciales|senha|chave|parola|credenziali|chiave|wachtwoord|sleutel|lösenord"
    "|passord|adgangskode|kodeord|salasana|salasõna|hasł(?:o|a|em|u)|hesl(?:o|a|em|u)|jelsz(?:ó|av)|şifre|parolă"
    "|lozink[aeu]"
    "|gesl[oau]|slaptažodis"
    "|kata sandi|mật khẩu|парол(?:ь|я|ем|ю|і|у)|секрет|ключ|токен|лозинка|парола|κωδικός|κωδικό|σύνθημα"
    "|كلمة المرور|كلمة السر|كلمه عبور|رمز عبور|סיסמה|סיסמא|पासवर्ड|कूटशब्द|รหัสผ่าน|密码|密碼|密钥|密鑰|金鑰|秘钥|口令"
    "|主要なコンテンツ|关键内容|키 콘텐츠"
    "|contrasenya|contrasinal|pasahitza|cyfrinair|lykilorð|wagwoord|nenosiri|mật mã|құпиясөз|şifrə|пароли|ססמה|lösen"
    "|salalause|凭证|パスワード|暗証番号|秘密鍵|キー|비밀번호|암호|패스워드|인증키"
)
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
HEXED = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")


def is_password(value: str, name: str = "password") -> bool:
    return is_secret_value(value, "strong", name, exact=True)


def is_mixed(value: str) -> bool:
    """Tell what a person chose or a program drew from a word: letters and something else."""
    marked = any(map(str.isdigit, value)) or re.search(r"[!#$%&*?]", value) is not None
    return any(map(str.isalpha, value)) and (marked or unwordly(value))


def is_no_name(value: str) -> bool:
    """Tell a password from a host, a path, a version or an identifier."""
    return (
        re.fullmatch(
            r"[a-z][a-z0-9_-]*|[\w-]+(?:\.[\w-]+)+(?::\d+)?|[\w./-]+/[\w./-]*|v?\d[\d.]*|[\w-]+:\d+|[A-Z0-9_]+", value
        )
        is None
    )


def is_other_thing(value: str) -> bool:
    """Tell what has the form of an address, a path, a version, a date, an id, code or a stand-in."""
    return (
        _OTHER_FORM.search(value) is not None
        or _DATE_OR_KEYS.match(value) is not None
        or _STAND_IN.fullmatch(value) is not None
        or _UUID.fullmatch(value) is not None
        or _ULID.fullmatch(value) is not None
        or _PUBLIC_PREFIX.match(value) is not None
        or is_mark(value)
        or is_path(value)
        or _words_between_separators(value)
    )


# The id of a message after the program that logs it; a branch.
_LOGGED_OR_BRANCH = re.compile(r"\w\[\d+\]: \Z|(?:HEAD:|--head[ =]|origin |branch [\"']?|switch -c |checkout -b )\Z")


def is_public_before(text: str, start: int) -> bool:
    """Tell whether the words before a value say that it is an id, a checksum or another thing meant to be seen."""
    near = max(0, start - 24)
    return any(pattern.search(text, near, start) for pattern in (_PUBLIC_BEFORE, _NAMED_THING, _LOGGED_OR_BRANCH))


def is_ordinary_code(value: str) -> bool:
    """Tell names with a number (`order-4411`, `py311-deps-v4`) from groups that were drawn."""
    return any(len(piece) > 3 and is_ordinary(piece) for piece in re.split(r"[-\d]+", value))
