"""Secrets by their own form: tokens of services, keys, hashes of passwords, and characters drawn at random."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from eval_core.suite.scrub.hits import Hit, is_mark, secret_hit, value_hit
from eval_core.suite.scrub.secret_values import (
    PUBLIC_BEFORE,
    PUBLIC_PREFIX,
    ULID,
    is_drawn,
    is_path,
    is_public_before,
    looks_random,
    read_base64,
    words_between_separators,
)
from eval_core.suite.scrub.words import data_text

# The services that agents meet most: a fixed prefix, an alphabet, a length.

_EDGE, _END = r"(?<![A-Za-z0-9_\-])", r"(?![A-Za-z0-9_\-])"


class Provider(NamedTuple):
    """One token shape; `needle` is a literal that every match holds, looked for first because it is cheap."""

    rule: str
    needle: str
    pattern: re.Pattern[str]


def _providers() -> Iterator[Provider]:
    for line in data_text("token_forms").splitlines():
        if not line.startswith("#"):
            rule, needle, body = line.split(maxsplit=2)
            end = "" if rule.endswith("+") else _END
            yield Provider(rule.rstrip("+"), "" if needle == "-" else needle, re.compile(f"{_EDGE}(?:{body}){end}"))


PROVIDERS = tuple(_providers())

# What manuals print in the place of a key.
_SAMPLE = re.compile(r"(?i)example|x{8}|0{12}|1234567890(?:abcdef|1234)|your[-_]|(?<=[-_])\.\.\.")


def provider_tokens(text: str, _key: str | None) -> Iterator[Hit]:
    """Find tokens by their issuer's form."""
    for rule, needle, pattern in PROVIDERS:
        if needle in text:
            for match in pattern.finditer(text):
                token = match.group()
                # Issuers draw digits too; `sk_test_placeholder` is what somebody typed.
                if not _SAMPLE.search(token) and not (token.islower() and not any(map(str.isdigit, token))):
                    yield secret_hit(match.start(), match.end(), rule, text)


# Private keys, whole or cut off at either end.

_BLOCK = re.compile(
    r"-----BEGIN (?P<label>(?:[A-Za-z0-9]+ )*(?:PRIVATE|SECRET|Static|ENCRYPTED) (?:KEY|key)(?: BLOCK| V\d)?)-----"
    r"(?P<body>.*?)(?P<end>-----END (?P=label)-----|\Z|(?=-----BEGIN )|\n[ \t]*\n(?![A-Za-z0-9+/=]{20}|[\w-]+:)"
    r"|(?=[^A-Za-z0-9+/=\s\\:,.\-]))",
    re.DOTALL,
)
_BLOCK_TAIL = re.compile(
    r"(?:[A-Za-z0-9+/=]{16,}(?:\\n|\s)+)*[A-Za-z0-9+/=]{2,}(?:\\n"
    r"|\s)*-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
)
_LEAST_KEY = 16
_PUTTY = re.compile(r"Private-Lines: \d+\s+(?P<value>(?:[A-Za-z0-9+/=]{4,}\s+)*[A-Za-z0-9+/=]{4,})")


def key_blocks(text: str, _key: str | None) -> Iterator[Hit]:
    """Find private keys; code that only names the first line of one holds none."""
    if "PRIVATE KEY-----" in text or "-----BEGIN" in text or "KEY BLOCK-----" in text:
        for match in _BLOCK.finditer(text):
            body = match["body"].strip()
            if not is_mark(body) and sum(map(str.isalnum, body)) >= _LEAST_KEY:
                end = match.start("end") if match["end"].isspace() else match.end()
                yield secret_hit(
                    match.start(), match.start() + len(text[match.start() : end].rstrip()), "private-key", text
                )
        for match in _BLOCK_TAIL.finditer(text):
            yield secret_hit(match.start(), match.end(), "private-key", text)
    for match in _PUTTY.finditer(text) if "Private-Lines" in text else ():
        yield value_hit(match, "value", "private-key", text)


# Hashes of passwords, as systems, directories and frameworks store them.
_HASHED = re.compile(
    r"(?<![\w$])(?P<value>\$[a-z0-9][a-z0-9-]{0,15}\$[\w./+$,=-]{16,}"
    r"|\{S?SHA\d*\}[A-Za-z0-9+/=]{20,}|SCRAM-SHA-\d+\$\d+:[\w+/=]{8,}\$[\w+/=]{20,}(?::[\w+/=]{20,})?"
    r"|\*[0-9A-Z]{40}(?!\w)|(?<=:\d{3}:)[0-9a-f]{32}:[0-9a-f]{32}(?=:::)|(?<=:\d{4}:)[0-9a-f]{32}:[0-9a-f]{32}(?=:::)"
    r"|pbkdf2[_:]sha\d+[$:]\d+[$:][\w+/=$:]{20,}|(?:scrypt|argon2)\$[\w+/=$,]{20,})"
    r"|\{(?:PLAIN|CLEARTEXT|CLEAR|CRYPT|S?MD5|SHA\d+-CRYPT|BLF-CRYPT|ARGON2\w*|PBKDF2\w*)\}(?P<scheme>[^\s:\"']{4,200})"
    r"|\$ANSIBLE_VAULT;[\d.]+;\w+(?:;\w+)?\s+(?P<vault>[0-9a-f]{20,}(?:\s+[0-9a-f]{20,})*)"
)


def hashed_passwords(text: str, _key: str | None) -> Iterator[Hit]:
    """Find hashes of passwords and passwords with their scheme before them."""
    for match in _HASHED.finditer(text):
        yield value_hit(match, str(match.lastgroup), "password-hash", text)


# The backstop: stretches that look drawn at random, whoever issued them.

_CANDIDATE = re.compile(
    r"(?:(?<![A-Za-z0-9+/_=.\-])|(?<=[A-Za-z_\]]=))[A-Za-z0-9+/_\-]{20,4000}={0,2}(?![A-Za-z0-9+/_=\-])"
)
_HEX = re.compile(r"[0-9a-fA-F-]+")
# The id of a resource, a key of a cache, a digest with its size: words and one hex number.
_NAMED_HEX = re.compile(
    r"(?!(?:[\w/]+[-_/])*(?:key|token|secret|pat|sk|api|pass|auth)[-_])(?:[a-z]{2,}[-_/])+[0-9a-f]{8,64}"
    r"|[0-9a-f]{32,64}/\d+"
)
_PUBLIC_BLOCK = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY(?: BLOCK)?|SIGNATURE|PGP MESSAGE|X509 CRL)-----"
    r"[A-Za-z0-9+/=\s\\:.,()-]*?(?:-----END|\Z)"
)
_WALLET_BEFORE = re.compile(r"(?i)accounts|priv|key|signer|deployer|wallet|secret")
_PUBLIC_KEYS = ("integrity", "digest", "checksum", "etag", "id", "call_id")


def random_tokens(text: str, key: str | None) -> Iterator[Hit]:
    """Find random stretches that no rule knows by their form."""
    if key is not None and key.lower() in _PUBLIC_KEYS:
        return
    public = [match.span() for match in _PUBLIC_BLOCK.finditer(text)] if "-----BEGIN" in text else []
    for match in _CANDIDATE.finditer(text):
        token, start = match.group(), match.start()
        if not any(map(str.isdigit, token)) or not looks_random(token) or _is_public_token(token, text, start):
            continue
        if not any(begin <= start < end for begin, end in public):
            yield secret_hit(start, match.end(), "random-token", text)


def _is_public_token(token: str, text: str, start: int) -> bool:
    """Tell a checksum, an id, a path or a text in base64, by its form or by what stands before it."""
    if _HEX.fullmatch(token) or ULID.fullmatch(token) or _NAMED_HEX.fullmatch(token):
        return True
    # After 0x an address, a topic or a transaction is more likely than a key.
    if _HEX.fullmatch(token, 2) and not _WALLET_BEFORE.search(text, max(0, start - 80), start):
        return True
    if "EXAMPLE" in token or PUBLIC_PREFIX.match(token) or PUBLIC_BEFORE.search(text, max(0, start - 24), start):
        return True
    if "/nix/store/" in text[max(0, start - 12) : start + len(token)]:
        return True
    return is_path(token) or words_between_separators(token) or read_base64(token) is not None


_CALLED_PUBLIC = re.compile(r"(?i)(?:public|pub)[ _-]?key[\"':= ]{1,4}(?P<value>[A-Za-z0-9+/_-]{20,}={0,2})")


def public_tokens(text: str) -> Iterator[str]:
    """Yield what a text calls a public key."""
    for match in _CALLED_PUBLIC.finditer(text) if "ub" in text else ():
        yield match["value"]


_SHORT = re.compile(
    r"(?<![^\s\"'`=:,(\[>|{])(?P<value>[A-Za-z0-9][A-Za-z0-9!$^&?~#@%*+._-]{8,30}[A-Za-z0-9!$?#*])(?=[\s\"'`,;)\]<|}]|$)"
)
_KEY_OF_THING = re.compile(r"(?i)id\Z|hash|sha|digest|etag|version|revision|cursor|slug")


def short_draws(text: str, key: str | None) -> Iterator[Hit]:
    """Find short draws that nothing names: ten characters or more that change between cases and digits all the time."""
    if key is not None and _KEY_OF_THING.search(key):
        return
    for match in _SHORT.finditer(text):
        value, start = match["value"], match.start()
        if (
            is_drawn(value)
            and not (len(value) > 11 and read_base64(value) is not None)
            and not PUBLIC_PREFIX.match(value)
            and not is_public_before(text, start)
            and "://" not in text[max(0, text.rfind(" ", 0, start)) : start]
        ):
            yield value_hit(match, "value", "random-token", text)
