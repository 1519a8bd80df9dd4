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

__all__ = [
    "PROVIDERS",
    "hashed_passwords",
    "key_blocks",
    "provider_tokens",
    "public_tokens",
    "random_tokens",
    "short_draws",
]

# The services that agents meet most: a fixed prefix, an alphabet, a length.

_EDGE = r"(?<![A-Za-z0-9_\-])"
_END = r"(?![A-Za-z0-9_\-])"


class Provider(NamedTuple):
    """One token shape; `needle` is a literal that every match holds, looked for first because it is cheap."""

    rule: str
    needle: str
    pattern: re.Pattern[str]


def _shape(rule: str, needle: str, body: str, end: str = _END) -> Provider:
    return Provider(rule, needle, re.compile(f"{_EDGE}(?:{body}){end}"))


PROVIDERS: tuple[Provider, ...] = (
    _shape("aws-access-key", "A", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}"),
    _shape("github-token", "gh", r"gh[pousr]_[A-Za-z0-9]{20,255}"),
    _shape("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{20,255}"),
    _shape("gitlab-token", "gl", r"gl(?:pat|dt|ptt|ft|rt|imt|agent|oas|cbt|soat|ffct)-[\w.-]{18,}"),
    _shape("gitlab-token", "GR1348941", r"GR1348941[\w-]{18,}"),
    _shape("slack-token", "xox", r"xox[abcdeoprs](?:\.xox[bp])?-[\w-]{8,}"),
    _shape("slack-token", "xapp-", r"xapp-\d-[\w-]{10,}"),
    _shape("stripe-key", "_", r"(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,}"),
    _shape("live-key", "_", r"[a-z]{2,16}_(?:live|prod)_[A-Za-z0-9]{20,}"),
    _shape("webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/=]{16,}"),
    _shape("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{16,}"),
    _shape("openrouter-key", "sk-or-", r"sk-or-(?:v\d-)?[\w-]{16,}"),
    _shape("openai-key", "sk-", r"sk-(?:proj-|svcacct-|admin-|None-|lf-)?[A-Za-z0-9][\w-]{18,}"),
    _shape("openai-key", "sess-", r"sess-[A-Za-z0-9]{30,}"),
    _shape("google-api-key", "AIza", r"AIza[\w-]{30,40}"),
    _shape("google-oauth", "ya29.", r"ya29\.[\w.-]{20,}"),
    _shape("google-oauth", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    _shape("google-oauth", "1//0", r"1//0[\w-]{30,}"),
    _shape("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{28,}"),
    _shape("huggingface-token", "api_org_", r"api_org_[A-Za-z0-9]{28,}"),
    _shape("twilio-key", "", r"(?:SK|AC)[0-9a-f]{32}"),
    _shape("sendgrid-key", "SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _shape("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    _shape("mailchimp-key", "-us", r"[0-9a-f]{32}-us\d{1,2}"),
    _shape("brevo-key", "xkeysib-", r"xkeysib-[0-9a-f]{32,}-[A-Za-z0-9]+"),
    _shape("resend-key", "re_", r"re_[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}"),
    _shape("npm-token", "npm_", r"npm_[A-Za-z0-9]{30,}"),
    _shape("pypi-token", "pypi-", r"pypi-[\w-]{40,}"),
    _shape("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{40,}"),
    _shape("crates-token", "cio", r"cio[A-Za-z0-9]{32}"),
    _shape("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    _shape("docker-token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    _shape("digitalocean-token", "_v1_", r"do[opr]_v1_[0-9a-f]{40,}"),
    _shape("heroku-key", "HRKU-", r"HRKU-[\w-]{30,}"),
    _shape("shopify-token", "shp", r"shp(?:at|ca|pa|ss|tka)_[0-9a-fA-F]{24,}"),
    _shape("square-token", "sq0", r"sq0(?:atp|csp|idp)-[\w-]{20,}"),
    _shape("square-token", "EAAA", r"EAAA[\w-]{50,}"),
    _shape("facebook-token", "EAA", r"EAA[A-Za-z0-9]{60,}"),
    _shape("telegram-token", ":", r"(?:bot)?\d{8,10}:[A-Za-z0-9_-]{32,46}"),
    _shape("discord-token", ".", r"[MNO][\w-]{22,28}\.[\w-]{6,7}\.[\w-]{27,}"),
    _shape("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _shape("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}"),
    _shape("grafana-token", "gl", r"gl(?:sa|c)_[A-Za-z0-9+/_=]{20,}", end=""),
    _shape("vault-token", "hv", r"hv[sbr]\.[\w-]{20,}"),
    _shape("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{10,18}\.atlasv1\.[\w-]{40,}"),
    _shape("linear-key", "lin_", r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}"),
    _shape("notion-token", "ntn_", r"ntn_[A-Za-z0-9]{30,}"),
    _shape("notion-token", "secret_", r"secret_[A-Za-z0-9]{40,}"),
    _shape("postman-key", "PMAK-", r"PMAK-[0-9a-f]{20,}-[0-9a-f]{30,}"),
    _shape("newrelic-key", "NR", r"NR(?:AK|JS|II|RA)-[A-Za-z0-9_-]{16,}"),
    _shape("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{30,}", end=""),
    _shape("figma-token", "fig", r"fig(?:d|u)_[\w-]{20,}"),
    _shape("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}"),
    _shape("atlassian-token", "AT", r"AT(?:ATT3|CTT3|BB)[\w=-]{20,}", end=""),
    _shape("cloudflare-key", "v1.0-", r"v1\.0-[0-9a-f]{20,}-[0-9a-f]{60,}"),
    _shape("supabase-key", "sb", r"sb(?:p_[0-9a-f]{36,}|_secret_[\w-]{16,})"),
    _shape("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w=.-]{20,}", end=""),
    _shape("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{30,}"),
    _shape("replicate-token", "r8_", r"r8_[A-Za-z0-9]{30,}"),
    _shape("xai-key", "xai-", r"xai-[A-Za-z0-9]{40,}"),
    _shape("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{30,}"),
    _shape("fireworks-key", "fw_", r"fw_[A-Za-z0-9]{20,}"),
    _shape("tavily-key", "tvly-", r"tvly-[\w-]{20,}"),
    _shape("firecrawl-key", "fc-", r"fc-[0-9a-f]{32}"),
    _shape("nvidia-key", "nvapi-", r"nvapi-[\w-]{40,}"),
    _shape("langsmith-key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f_]{30,}"),
    _shape("elevenlabs-key", "sk_", r"sk_[0-9a-f]{40,}"),
    _shape("dropbox-token", "sl.", r"sl\.[\w-]{60,}"),
    _shape("azure-secret", "8Q~", r"[\w.~-]{3}8Q~[\w.~-]{30,40}"),
    _shape("alibaba-key", "LTAI", r"LTAI[A-Za-z0-9]{12,26}"),
    _shape("tencent-key", "AKID", r"AKID[A-Za-z0-9]{24,40}"),
    _shape("jwt", "eyJ", r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?", end=""),
    _shape("mapbox-token", ".eyJ", r"[ps]k\.eyJ[\w-]{20,}(?:\.[\w-]+)?"),
    _shape("onepassword-token", "ops_eyJ", r"ops_eyJ[\w=-]{60,}", end=""),
    _shape("onepassword-key", "A3-", r"A3-[A-Z0-9]{6}-[A-Z0-9]{6,11}(?:-[A-Z0-9]{5}){3,4}"),
    _shape("tailscale-key", "tskey-", r"tskey-(?:auth|api|client|scim|webhook)-[\w-]{12,}"),
    _shape("sonar-token", "sq", r"sq[pau]_[0-9a-f]{40}"),
    _shape("artifactory-key", "AKC", r"AKC[a-zA-Z0-9]{10,}p[a-zA-Z0-9]{30,}"),
    _shape("artifactory-key", "cmVmdGtuOj", r"cmVmdGtuOj[A-Za-z0-9]{40,}"),
    _shape("pulumi-token", "pul-", r"pul-[0-9a-f]{40}"),
    _shape("fly-token", "fm", r"(?:FlyV1 )?fm[12][ar]?_[A-Za-z0-9+/=_,-]{40,}", end=""),
    _shape("vercel-token", "vc", r"vc[pkiar]_[A-Za-z0-9]{24,}"),
    _shape("netlify-token", "nfp_", r"nfp_[A-Za-z0-9]{36,}"),
    _shape("render-key", "rnd_", r"rnd_[A-Za-z0-9]{24,}"),
    _shape("typeform-token", "tfp_", r"tfp_[\w-]{40,}"),
    _shape("contentful-token", "CFPAT-", r"CFPAT-[\w-]{30,}"),
    _shape("dynatrace-token", "dt0", r"dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{50,}"),
    _shape(
        "prefixed-uuid",
        "-",
        r"(?:pat|access|secret|sk|key|token|api|sdk|mob|private|refresh|sandbox)(?:-[a-z0-9]{2,12}){0,3}"
        r"-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    _shape("dotted-key", ".", r"[0-9a-f]{32}\.[A-Za-z0-9]{16}"),
    _shape("swarm-token", "SWMTKN-", r"SWMTKN-1-[a-z0-9-]{40,}"),
    _shape("asana-token", "/", r"[012]/\d{12,18}(?:/\d+)?:[0-9a-f]{32}"),
    _shape("age-key", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    _shape("wallet-key", "prv", r"[xyz]prv[1-9A-HJ-NP-Za-km-z]{90,}"),
    _shape("encoded-private-key", "LS0tLS1CRUdJTi", r"LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[A-Za-z0-9+/=]{20,}", end=""),
)

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
