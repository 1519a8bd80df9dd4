"""Secrets found by the name of a setting: assignments, JSON keys, and names next to their value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit, is_mark, secret_hit, value_hit
from eval_core.suite.scrub.secret_values import is_mixed, is_secret_value, key_strength, looks_random
from eval_core.suite.scrub.secret_web import cookies, headers, pair_inside

__all__ = ["HEADER_KEYS", "among_secrets", "assignments", "named_beside", "under_key"]

_ASSIGNMENT = re.compile(
    r"(?i:pass|pwd|secret|token|key|auth|cred|mnemonic|phrase|cookie|salt|psk|wort|woord|enord|has[łl]o|heslo|kode"
    r"|contrase|senha|salasana|jelsz[oó]|[sş]ifre|parola|lozinka|geslo|kata[_-]?sandi|clave|chiave|пароль|pw\b|"
    r"\bpin|otp|cvv|cvc|\bpat\b|_pat|jwt|hmac|sig|sid|session|bearer|connection|license)[\w\-]{0,40}"
    r"(?:\[\w*\])?(?P<close>\\{0,3}[\"'`]?\]?)[ \t]{0,4}(?::[ \t]?[&\w<>|\[\]]{2,24}[ \t]*(?==))?(?:=>|:=|==?"
    r"|:)(?![=/])[ \t]{0,24}(?:[&!][\w!/-]+[ \t]+|\s{1,8}string\(\d+\)[ \t]+)?(?:b(?=[\"']))?"
    r"(?:(?P<quote>\\{0,3}(?:\"|'|`))(?P<quoted>[^\n\"'`]{3,400}?)(?P=quote)|(?P<bare>[^\s\"'`\\]{3,400}))"
)
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,12}) \Z")
_LEFT = re.compile(r"[\w.\-]{0,80}\Z")
_HEX_KEY = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")
_NEAR_ACCOUNT = re.compile(r"(?i)user|crypt|api|secret|account|login|client")
_LINE_START = re.compile(r"(?:^|\n)[ \t]*(?:[-+>|$#] ?)?(?:export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|- )?[\"']?\Z")
_NARROW = re.compile(r"[^\s\"'`,;&|<>(){}\[\]\\]+")
_AUTH_FIELD = re.compile(r"[A-Za-z0-9+/]{12,}={0,2}")


def assignments(text: str, _key: str | None) -> Iterator[Hit]:
    """Find name = value in configuration, code, shell and JSON."""
    after = 0
    while match := _ASSIGNMENT.search(text, after):
        after = match.end()
        left = _LEFT.search(text, max(0, match.start() - 80), match.start())
        start = left.start() if left else match.start()
        name_end = re.compile(r"[\w.\-]+").match(text, match.start())
        name = text[start : name_end.end() if name_end else match.end()]
        strength = key_strength(name.rsplit(".", 1)[-1] if "." in name else name)
        before = _WORD_BEFORE.search(text, max(0, start - 16), start)
        if before and key_strength(f"{before[1]}_{name}") == "none":
            strength = "none"  # a public key, an exit code
        if strength == "none":
            # A value may be a list of assignments itself: a connection string, a query, an option.
            after = match.start("bare") if match.group("bare") is not None else match.start("quoted")
            continue
        if text[start - 2 : start] == "${" and match["bare"] is not None and match["bare"][:1] == "-":
            # What a shell takes where the variable is not set.
            begin, stop = match.start("bare") + 1, match.start("bare") + len(match["bare"].partition("}")[0])
            if is_mixed(text[begin:stop]) and is_secret_value(text[begin:stop], strength, name, exact=True):
                yield secret_hit(begin, stop, "assignment", text)
            continue
        opened = _LINE_START.search(text, max(0, start - 40), start) is not None
        if match.group("quoted") is not None:
            account = (
                strength == "weak"
                and _HEX_KEY.fullmatch(match["quoted"])
                and _NEAR_ACCOUNT.search(text, max(0, start - 60), start)
            )
            if account or is_secret_value(match.group("quoted"), strength, name, exact=True):
                yield value_hit(match, "quoted", "assignment", text)
            continue
        begin, end = match.span("bare")
        if opened:
            # The rest of the line is the value: a password may hold any punctuation.
            stop = begin + len(text[begin:end].rstrip(",;)}]"))
        else:
            narrow = _NARROW.match(text, begin, end)
            stop = narrow.end() if narrow else begin
            stop = begin + len(text[begin:stop].rstrip(".:"))
        if text[stop : stop + 1] == "(":
            continue  # a call
        environment = name.isupper() and text[begin - 1] == "="
        if is_secret_value(text[begin:stop], strength, name, exact=environment):
            yield secret_hit(begin, stop, "assignment", text)
        else:
            after = max(begin, match.start() + 1)


# A file of settings for an environment: among secrets, a draw under any other name is one more.
_ENVIRONMENT = re.compile(r"(?m)^(?:export )?(?P<name>[A-Z][A-Z0-9_]{2,60})=[\"']?(?P<value>[^\s\"'#]+)")
_DRAWN = re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,64}")
_PUBLIC_NAME = re.compile(
    r"(?:^|_)(?:ID|UID|GUID|UUID|SHA\d*|HASH|COMMIT|REV|REVISION|VERSION|DIGEST|CHECKSUM|FINGERPRINT|PUBLIC|PUB|ARN|TAG"
    r"|ETAG|BUILD|IMAGE|URL|URI|HOST|PATH|FILE|DIR|REGION|ZONE|BUCKET|NAME|ACCOUNT|CLIENT|TENANT|PROJECT)(?:_|$)"
)


def among_secrets(text: str, _key: str | None) -> Iterator[Hit]:
    """Find draws in an environment of which two other settings at least are secrets."""
    lines = list(_ENVIRONMENT.finditer(text)) if "=" in text else []
    if len(lines) < 3:
        return
    secret = sum(is_secret_value(one["value"], key_strength(one["name"]), one["name"], exact=True) for one in lines)
    known = sum("REDACTED-" in one["value"] for one in lines)
    for one in lines if secret + known > 1 else ():
        value = one["value"]
        drawn = _DRAWN.fullmatch(value) or (len(value) >= 16 and looks_random(value))
        if drawn and not _PUBLIC_NAME.search(one["name"]) and not is_mark(value):
            yield value_hit(one, "value", "assignment", text)


HEADER_KEYS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
"""Keys whose value reads as the header of that name does."""


def under_key(text: str, key: str | None) -> Iterator[Hit]:
    """Judge a whole JSON string by the key it stands under."""
    if key is None or not text:
        return
    strength = key_strength(key)
    if (strength != "none" and is_secret_value(text, strength, key, exact=True)) or (
        key.lower() in ("auth", "_auth") and _AUTH_FIELD.fullmatch(text) and pair_inside(text)
    ):
        yield secret_hit(0, len(text), "assignment", text)
    elif key.lower() in HEADER_KEYS:
        prefix = f"{key}: "
        for hit in (*headers(prefix + text, None), *cookies(prefix + text, None)):
            if hit.start >= len(prefix):
                yield secret_hit(hit.start - len(prefix), hit.end - len(prefix), hit.rule, text)


# A name, and beside it under `value`, what it names.
_BESIDE = re.compile(
    r"(?P<mark>[\"']?)\b(?:name|key|Name|Key|ParameterKey|OptionName|variable|setting)"
    r"(?P=mark)[ \t]*[:=][ \t]*[\"']?(?P<name>[\w./:-]{3,120})[\"']?"
    r"[ \t]*(?:,|\n|/?>)?[ \t\n]*(?:[\"']?(?:type|Type|secret|sensitive|encrypted|DataType|namespace"
    r"|Namespace)[\"']?[ \t]*[:=][ \t]*[\"']?\w+[\"']?[ \t]*,?[ \t\n]*)*"
    r"(?P<close>[\"']?)\b(?:value|Value|ParameterValue|default|content)(?P=close)[ \t]*[:=][ \t]*"
    r"(?P<quote>[\"']?)(?P<value>[^\n\"',}]{3,200})"
)
# A constant of a C program.
_DEFINE = re.compile(
    r"(?m)^[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_]\w{2,60})[ \t]+[\"']?(?P<value>[^\s\"'(]{4,200})[\"']?"
)
# A setting that a command stores: `config set db.password ...`, `secret put NAME ...`.
_STORE = re.compile(
    r"(?<![\w-])(?:set|put|add|setx|write|create|update|store|config)[ \t]+(?:--?[\w-]+[ \t]+){0,3}"
    r"(?:[\w/-]+[ \t]+){0,2}?"
    r"[\"']?(?P<name>[A-Za-z][\w./:-]{2,80})[\"']?(?:[ \t]+|=)(?:--?(?:value|body|data|string)[ =]+)?[\"']?"
    r"(?P<value>[^\s\"']{5,200})"
)


def named_beside(text: str, _key: str | None) -> Iterator[Hit]:
    """Find values whose name stands beside them instead of before them."""
    for match in _DEFINE.finditer(text) if "define" in text else ():
        if is_secret_value(match["value"], key_strength(match["name"]), match["name"], exact=True):
            yield value_hit(match, "value", "assignment", text)
    for pattern in (_BESIDE, _STORE):
        for match in pattern.finditer(text):
            name = re.split(r"[/.:]", match["name"])[-1] or match["name"]
            value = match["value"].strip()
            strength = key_strength(name)
            known = strength in ("strong", "phrase") or (
                strength == "weak" and pattern is _BESIDE and looks_random(value)
            )
            if known and is_secret_value(value, strength, name, exact=True):
                if pattern is _STORE and not is_mixed(value):
                    continue
                yield secret_hit(match.start("value"), match.start("value") + len(value), "assignment", text)
