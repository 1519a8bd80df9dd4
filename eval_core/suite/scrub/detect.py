"""All detectors together: what they find in one readable piece of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from eval_core.suite.scrub.hits import Detector, Hit, secret_hit
from eval_core.suite.scrub.other_scripts import other_scripts
from eval_core.suite.scrub.people import authors, emails, home_folders, mentions, printed, two_names
from eval_core.suite.scrub.people_fields import field_hits
from eval_core.suite.scrub.personal_numbers import accounts, addresses, national_ids, phones, records, said_numbers
from eval_core.suite.scrub.secret_commands import command_secrets
from eval_core.suite.scrub.secret_fields import (
    among_secrets,
    assignments,
    cookies,
    headers,
    named_values,
    under_key,
    urls,
)
from eval_core.suite.scrub.secret_prose import codes, sentences, weighed
from eval_core.suite.scrub.secret_tokens import (
    hashed_passwords,
    key_blocks,
    provider_tokens,
    random_tokens,
    short_draws,
)
from eval_core.suite.scrub.secret_values import read_base64

_ENCODED = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{20,8000}={0,2}(?![\w+/=-])")


def encoded(text: str, _key: str | None) -> Iterator[Hit]:
    """Find base64 that says a secret when it is read: a connection string, a header, a key, a file of settings."""
    for match in _ENCODED.finditer(text):
        plain = read_base64(match.group())
        look = (key_blocks, provider_tokens, hashed_passwords, urls, headers, assignments)
        if plain is not None and any(hit.kind == "secret" for detector in look for hit in detector(plain, None)):
            yield secret_hit(match.start(), match.end(), "encoded", text)


# In the order in which they win where two find the same stretch.
DETECTORS: tuple[Detector, ...] = (
    key_blocks,
    provider_tokens,
    hashed_passwords,
    encoded,
    under_key,
    urls,
    headers,
    cookies,
    assignments,
    among_secrets,
    named_values,
    command_secrets,
    sentences,
    codes,
    random_tokens,
    short_draws,
    weighed,
    emails,
    authors,
    home_folders,
    mentions,
    printed,
    two_names,
    field_hits,
    other_scripts,
    accounts,
    addresses,
    records,
    phones,
    national_ids,
    said_numbers,
)

_PLACEHOLDER = re.compile(r"(?:Person|user|host)\d+")
# What tests and manuals put where a number is asked for.
_NOTHING = re.compile(r"[A-Z\W]{0,8}0(?:\D?0){5,}[\d\D]?|\d* ?(?i:Example|Sample|Test) (?:Road|Street|Ave(?:nue)?)")
_RULE_NAME = re.compile(r"(?<=REDACTED-)[a-z0-9]+(?:-[a-z0-9]+)*?(?=-\d+(?![\w-]))")
# A checksum says what it is, whatever the line around it speaks of.
_DIGEST = re.compile(r"(?i:sha256)[:-](?:[A-Za-z0-9+/]{43}=?|[0-9a-f]{64})")


# A session is looked at several times: names are gathered, then learned, then replaced, then audited. Most pieces are
# the same each time, and the patterns are what a scrub's time goes into.
@lru_cache(maxsize=50_000)
def context_hits(text: str, key: str | None) -> tuple[Hit, ...]:
    """Run every detector that judges by form and place."""
    text = without_rule_names(text)
    return tuple(hit for detector in DETECTORS for hit in detector(text, key) if not is_spared(hit, text))


def without_rule_names(text: str) -> str:
    """Hide the name of the rule in a placeholder (`random-token`), which must not be read as a word of the text."""
    return _RULE_NAME.sub(lambda match: "x" * len(match[0]), text) if "REDACTED-" in text else text


def is_spared(hit: Hit, text: str) -> bool:
    """Tell a placeholder, a number of zeros and a checksum, which stay whatever finds them."""
    if hit.kind in ("number", "phone"):
        return _NOTHING.fullmatch(text, hit.start, hit.end) is not None
    if hit.kind == "secret":
        return _DIGEST.fullmatch(text, max(0, hit.start - 7), hit.end) is not None
    return _PLACEHOLDER.fullmatch(text, hit.start, hit.end) is not None
