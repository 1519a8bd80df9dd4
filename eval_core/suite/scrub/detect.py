"""All detectors together: what they find in one readable piece of a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from eval_core.suite.scrub.hits import Detector, Hit, secret_hit
from eval_core.suite.scrub.id_numbers import national_ids, said_numbers
from eval_core.suite.scrub.named_fields import field_hits
from eval_core.suite.scrub.other_scripts import other_scripts
from eval_core.suite.scrub.person_names import authors, emails, home_folders, machines, mentions
from eval_core.suite.scrub.personal_numbers import accounts, addresses, phones, records
from eval_core.suite.scrub.secret_commands import arguments, beside_logins, flags, logins, positional
from eval_core.suite.scrub.secret_files import columns, files, inserted_secrets, key_blocks
from eval_core.suite.scrub.secret_prose import after_hints, announced, codes_and_links, on_the_line, prose
from eval_core.suite.scrub.secret_score import weighed
from eval_core.suite.scrub.secret_settings import among_secrets, assignments, named_beside, under_key
from eval_core.suite.scrub.secret_values import random_tokens, read_base64, short_draws
from eval_core.suite.scrub.secret_web import cookies, headers, urls
from eval_core.suite.scrub.token_patterns import provider_tokens
from eval_core.suite.scrub.tool_output import printed

__all__ = ["DETECTORS", "context_hits"]

# In the order in which they win where two find the same stretch.
_ENCODED = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{20,8000}={0,2}(?![\w+/=-])")


def encoded(text: str, _key: str | None) -> Iterator[Hit]:
    """Find base64 that says a secret when it is read: a connection string, a header, a key, a file of settings."""
    for match in _ENCODED.finditer(text):
        plain = read_base64(match.group())
        if plain is not None and any(
            hit.kind == "secret"
            for look in (key_blocks, provider_tokens, urls, headers, assignments)
            for hit in look(plain, None)
        ):
            yield secret_hit(match.start(), match.end(), "encoded", text)


DETECTORS: tuple[Detector, ...] = (
    key_blocks,
    provider_tokens,
    encoded,
    under_key,
    urls,
    headers,
    cookies,
    assignments,
    among_secrets,
    flags,
    files,
    prose,
    on_the_line,
    after_hints,
    beside_logins,
    arguments,
    codes_and_links,
    logins,
    announced,
    positional,
    named_beside,
    columns,
    inserted_secrets,
    random_tokens,
    short_draws,
    weighed,
    emails,
    authors,
    home_folders,
    mentions,
    machines,
    printed,
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
_NOTHING = re.compile(r"[\D]{0,3}0(?:\D?0){5,}[\d\D]?|\d* ?(?i:Example|Sample|Test) (?:Road|Street|Ave(?:nue)?)")
_RULE_NAME = re.compile(r"(?<=REDACTED-)[a-z0-9]+(?:-[a-z0-9]+)*?(?=-\d+(?![\w-]))")
# A checksum says what it is, whatever the line around it speaks of.
_DIGEST = re.compile(r"(?i:sha256)[:-](?:[A-Za-z0-9+/]{43}=?|[0-9a-f]{64})")


# A session is looked at several times: names are gathered, then learned, then replaced, then audited. Most pieces are
# the same each time, and the patterns are what a scrub's time goes into.
@lru_cache(maxsize=50_000)
def context_hits(text: str, key: str | None) -> tuple[Hit, ...]:
    """Run every detector that judges by form and place."""
    # The name of the rule in a placeholder (`random-token`) must not be read as a word of the text.
    text = _RULE_NAME.sub(lambda match: "x" * len(match[0]), text) if "REDACTED-" in text else text
    return tuple(
        hit
        for detector in DETECTORS
        for hit in detector(text, key)
        if not _PLACEHOLDER.fullmatch(text, hit.start, hit.end)
        and (hit.kind not in ("number", "phone") or not _NOTHING.fullmatch(text, hit.start, hit.end))
        and (hit.kind != "secret" or not _DIGEST.fullmatch(text, max(0, hit.start - 7), hit.end))
    )
