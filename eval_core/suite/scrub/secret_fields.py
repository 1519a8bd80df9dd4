"""Secrets by the name of their field: settings, JSON keys, elements, headers, cookies, and the parts of URLs."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit, is_mark, secret_hit, value_hit
from eval_core.suite.scrub.secret_values import (
    HEXED,
    Strength,
    is_password,
    is_secret_value,
    key_strength,
    looks_random,
)

_ASSIGNMENT = re.compile(
    r"(?i:pass|pwd|secret|token|key|auth|cred|mnemonic|phrase|cookie|salt|psk|wort|woord|enord|has[łl]o|heslo|kode"
    r"|contrase|senha|salasana|jelsz[oó]|[sş]ifre|parola|lozinka|geslo|kata[_-]?sandi|clave|chiave|пароль|pw\b|"
    r"\bpin|otp|cvv|cvc|\bpat\b|_pat|jwt|hmac|sig|sid|session|bearer|connection|license)[\w\-]{0,40}"
    r"(?:\[\w*\])?\\{0,3}[\"'`]?\]?[ \t]{0,4}(?::[ \t]?[&\w<>|\[\]]{2,24}[ \t]*(?==))?(?:=>|:=|==?"
    r"|:)(?![=/])[ \t]{0,24}(?:[&!][\w!/-]+[ \t]+|\s{1,8}string\(\d+\)[ \t]+)?(?:b(?=[\"']))?"
    r"(?:(?P<quote>\\{0,3}(?:\"|'|`))(?P<quoted>[^\n\"'`]{3,400}?)(?P=quote)|(?P<bare>[^\s\"'`\\]{3,400}))"
)
_WORD_BEFORE = re.compile(r"([A-Za-z]{2,12}) \Z")
_NAME = re.compile(r"[\w.\-]{0,80}\Z")
_NAME_END = re.compile(r"[\w.\-]+")
_NEAR_ACCOUNT = re.compile(r"(?i)user|crypt|api|secret|account|login|client")
_LINE_START = re.compile(r"(?:^|\n)[ \t]*(?:[-+>|$#] ?)?(?:export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|- )?[\"']?\Z")
_NARROW = re.compile(r"[^\s\"'`,;&|<>(){}\[\]\\]+")


def assignments(text: str, _key: str | None) -> Iterator[Hit]:
    """Find name = value in configuration, code, shell and JSON."""
    after = 0
    while match := _ASSIGNMENT.search(text, after):
        group = "bare" if match["quoted"] is None else "quoted"
        start, name, strength = _name_before(text, match)
        if strength == "none":
            # A value may be a list of assignments itself: a connection string, a query, an option.
            after = match.start(group)
            continue
        after = match.end()
        if group == "quoted":
            if _is_quoted_secret(text, start, match["quoted"], strength, name):
                yield value_hit(match, "quoted", "assignment", text)
            continue
        begin, stop = _bare_value(text, start, match)
        exact = text[begin - 1] == "-" or (name.isupper() and text[begin - 1] == "=")
        if text[stop : stop + 1] != "(" and is_secret_value(text[begin:stop], strength, name, exact=exact):
            yield secret_hit(begin, stop, "assignment", text)
        else:
            after = max(begin, match.start() + 1)


def _name_before(text: str, match: re.Match[str]) -> tuple[int, str, Strength]:
    """Return where the whole name of an assignment begins, the name, and what it says about the value."""
    left, end = _NAME.search(text, max(0, match.start() - 80), match.start()), _NAME_END.match(text, match.start())
    start = left.start() if left else match.start()
    name = text[start : end.end() if end else match.end()]
    before = _WORD_BEFORE.search(text, max(0, start - 16), start)
    if before and key_strength(f"{before[1]}_{name}") == "none":
        return start, name, "none"  # a public key, an exit code
    return start, name, key_strength(name.rsplit(".", 1)[-1])


def _is_quoted_secret(text: str, start: int, value: str, strength: Strength, name: str) -> bool:
    near = strength == "weak" and HEXED.fullmatch(value) and _NEAR_ACCOUNT.search(text, max(0, start - 60), start)
    return bool(near) or is_secret_value(value, strength, name, exact=True)


def _bare_value(text: str, start: int, match: re.Match[str]) -> tuple[int, int]:
    """Return where a value without quotes begins and ends."""
    begin, end = match.span("bare")
    if text[start - 2 : start] == "${" and text[begin] == "-":  # what a shell takes where the variable is not set
        return begin + 1, begin + len(match["bare"].partition("}")[0])
    if _LINE_START.search(text, max(0, start - 40), start):
        # The rest of the line is the value: a password may hold any punctuation.
        return begin, begin + len(text[begin:end].rstrip(",;)}]"))
    narrow = _NARROW.match(text, begin, end)
    return begin, begin + len(narrow.group().rstrip(".:")) if narrow else begin


# A file of settings for an environment: among secrets, a draw under any other name is one more.
_ENVIRONMENT = re.compile(r"(?m)^(?:export )?(?P<name>[A-Z][A-Z0-9_]{2,60})=[\"']?(?P<value>[^\s\"'#]+)")
_DRAWN = re.compile(r"(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{16,64}")
_PUBLIC_NAME = re.compile(
    r"(?:^|_)(?:ID|UID|GUID|UUID|SHA\d*|HASH|COMMIT|REV|REVISION|VERSION|DIGEST|CHECKSUM|FINGERPRINT|PUBLIC|PUB|PUBKEY"
    r"|ARN|TAG|ETAG|BUILD|IMAGE|URL|URI|HOST|PATH|FILE|DIR|REGION|ZONE|BUCKET|NAME|ACCOUNT|CLIENT|TENANT"
    r"|PROJECT)(?:_|$)"
)


def among_secrets(text: str, _key: str | None) -> Iterator[Hit]:
    """Find draws in an environment of which two other settings at least are secrets."""
    lines = list(_ENVIRONMENT.finditer(text)) if "=" in text else []
    known = sum(
        "REDACTED-" in one["value"] or is_secret_value(one["value"], key_strength(one["name"]), one["name"], exact=True)
        for one in lines
    )
    for one in lines if len(lines) > 2 and known > 1 else ():
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
    paired = key.lower() in ("auth", "_auth") and len(text) >= 12 and pair_inside(text)
    if paired or is_secret_value(text, key_strength(key), key, exact=True):
        yield secret_hit(0, len(text), "assignment", text)
    elif key.lower() in HEADER_KEYS:
        prefix = f"{key}: "
        for hit in (*headers(prefix + text, None), *cookies(prefix + text, None)):
            if hit.start >= len(prefix):
                yield secret_hit(hit.start - len(prefix), hit.end - len(prefix), hit.rule, text)


# Names that stand beside their value in another notation.
_NAMED = (
    # A record: name: ..., value: ...
    re.compile(
        r"(?P<mark>[\"']?)\b(?:name|key|Name|Key|ParameterKey|OptionName|variable|setting)"
        r"(?P=mark)[ \t]*[:=][ \t]*[\"']?(?P<name>[\w./:-]{3,120})[\"']?"
        r"[ \t]*(?:,|\n|/?>)?[ \t\n]*(?:[\"']?(?:type|Type|secret|sensitive|encrypted|DataType|namespace"
        r"|Namespace)[\"']?[ \t]*[:=][ \t]*[\"']?\w+[\"']?[ \t]*,?[ \t\n]*)*"
        r"(?P<close>[\"']?)\b(?:value|Value|ParameterValue|default|content)(?P=close)[ \t]*[:=][ \t]*"
        r"(?P<quote>[\"']?)(?P<value>[^\n\"',}]{3,200})"
    ),
    # A constant of a C program.
    re.compile(
        r"(?m)^[ \t]*#[ \t]*define[ \t]+(?P<name>[A-Za-z_]\w{2,60})[ \t]+[\"']?(?P<value>[^\s\"'(]{4,200})[\"']?"
    ),
    # Elements and attributes.
    re.compile(
        r"<(?P<name>(?!code|kbd|samp|var)[\w.:-]{2,60})(?: [^<>]*)?>(?:\s*<[Vv]alue>)?(?P<value>[^<>\s]{3,400})</"
    ),
    re.compile(
        r"(?i)\b(?:key|name|id|property)=(?P<q>[\"'])(?P<name>[\w.:-]{2,60})(?P=q)\s+value=(?P<r>[\"'])"
        r"(?P<value>[^\"'\n]{3,400})(?P=r)"
    ),
)
# Places where a password stands without a name.
_PASSWORDS = (
    re.compile(r"\b(?:machine[ \t]+\S+|default)\s+login\s+\S+\s+password\s+(?P<value>\S+)"),
    re.compile(r"(?m)^[\w.*-]+:(?:\d{2,5}|\*):[\w*-]+:[\w*-]+:(?P<value>[^\s:]{4,})$"),
    re.compile(
        r"(?i)\b(?:identified (?:with \w+ )?by|(?:with |encrypted |set )?password(?: for [^=;\n]{1,60}=)?)(?:\s+to)?\s*"
        r"(?:=\s*)?(?:password)?\s*\(?\s*N?['\"](?P<value>[^'\"\n]{4,100})['\"]"
    ),
)


def named_values(text: str, _key: str | None) -> Iterator[Hit]:
    """Find values whose name stands beside them in a notation of its own, and passwords in credential files."""
    for pattern in _NAMED:
        for match in pattern.finditer(text):
            name = re.split(r"[/.:]", match["name"])[-1] or match["name"]
            if is_secret_value(match["value"].strip(), key_strength(name), name, exact=True):
                yield value_hit(match, "value", "assignment", text)
    for pattern in _PASSWORDS:
        for match in pattern.finditer(text):
            if is_password(match["value"]):
                yield value_hit(match, "value", "assignment", text)


# Headers and cookies.

_HEADER = re.compile(
    r"(?i)\b(?P<name>(?:proxy-)?authorization|x-[\w-]*(?:key|token|secret|auth|signature)[\w-]*|private-token"
    r"|api-?key|ocp-apim-subscription-key|circle-token|(?:job|deploy)-token|jenkins-crumb|x-[cx]srf-?token"
    r"|(?:[\w-]+-)?(?:access|api|auth|client|app)-(?:sign|signature|key|token|secret|passphrase))"
    r"\\{0,3}[\"']?[ \t]{0,3}[:=][ \t]{0,3}\\{0,3}[\"']?(?P<scheme>[a-z][\w-]{2,24}[ \t=]+(?=[^\s\"'\\,=]{6}))?"
    r"(?P<value>[^\s\"'\\,]{6,})"
)
_BEARER = re.compile(r"(?<![A-Za-z])(?i:bearer)[ \t]+(?P<value>[A-Za-z0-9._~+/=\-]{12,})")
_BASIC = re.compile(r"(?<![A-Za-z])(?i:basic)[ \t]+(?P<value>[A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9+/=])")
_COOKIE = re.compile(
    r"(?i)(?<![\w-])(?:set-)?cookie2?\\{0,3}[\"']?[ \t]{0,3}[:=][ \t]{0,3}(?P<pairs>[^\n]+)"
    r"|(?:--cookie|curl\b[^\n]*?[ \t]-b)[ =][\"']?(?P<flag>[^\n\"']+)"
)
_COOKIE_PAIR = re.compile(
    r"(?!(?i:path|domain|expires|max-age|samesite|priority|version|comment)=)[\w.$!#%&*+^"
    r"|~-]+=(?P<value>[^;,\s\"'\\]{6,})"
)
_COOKIE_LENGTH = 16
_REFERENCE = "$<{%[*"


def headers(text: str, _key: str | None) -> Iterator[Hit]:
    """Find credentials in HTTP headers."""
    for match in _HEADER.finditer(text):
        value = match["value"]
        told = match["scheme"] or is_secret_value(value, "strong", match["name"], exact=False)
        if told and _is_credential(value):
            yield value_hit(match, "value", "header", text)
    for match in _BEARER.finditer(text):
        if _is_credential(match["value"]):
            yield value_hit(match, "value", "header", text)
    for match in _BASIC.finditer(text):
        if not is_mark(match["value"]) and pair_inside(match["value"]):
            yield value_hit(match, "value", "header", text)


def _is_credential(value: str) -> bool:
    if is_mark(value) or value[0] in _REFERENCE:
        return False
    return any(map(str.isdigit, value)) or looks_random(value) or pair_inside(value)


def pair_inside(value: str) -> bool:
    """Tell whether base64 hides user:password."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def cookies(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the values of cookies; their names and attributes stay."""
    for match in _COOKIE.finditer(text) if "ookie" in text or "-b" in text else ():
        for pair in _COOKIE_PAIR.finditer(text, *match.span(str(match.lastgroup))):
            if any(map(str.isdigit, pair["value"])) or len(pair["value"]) >= _COOKIE_LENGTH:
                yield value_hit(pair, "value", "cookie", text)


# The parts of URLs.

_USERINFO = re.compile(
    r"(?<![A-Za-z0-9+.\-])[A-Za-z][A-Za-z0-9+.\-]{0,30}://[^\s/:@\"'<>`]*:"
    r"(?P<value>[^\s/\"'<>`]+?)@(?=[\w.\-]+(?:[^\w.\-!#*~@]|$)|[\[$%{/])"
)
_LONE_USERINFO = re.compile(
    r"(?<![A-Za-z0-9+.\-])[a-z][a-z0-9+.\-]{0,30}://(?P<value>[^\s/:@\"'<>`]{16,})@(?=[\w.\[\-])"
)
_QUERY = re.compile(r"[?&;#](?P<name>[A-Za-z][\w.\-%]{0,60})=(?P<value>[^\s&#\"'<>`\\;)\]}]+)")
_SIGNED_QUERY = re.compile(r"(?i)(?:x-amz-|x-goog-|awsaccesskeyid|googleaccessid).*|sig|signature")
_QUERY_SECRETS = re.compile(
    r"(?i)(?:[\w-]*_)?(?:token|secret|password|passwd|pwd|apikey|api_key|access_key|auth)|key|app_?id|code|auth_key"
    r"|client_secret|sv_token|hmac|policy|key-pair-id|jwt|assertion|id_token_hint|st|skoid_token|session|sid"
    r"|ticket|[jp]\w{0,4}sess(?:ion)?id|sessionid"
)
_WEBHOOK = re.compile(
    r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/(?P<a>[\w/+-]+)"
    r"|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<b>\d+/[\w-]+)|api\.telegram\.org/(?:file/)?bot(?P<c>[\w:-]+)"
    r"|(?:outlook\.office\.com|[\w-]{1,60}\.webhook\.office\.com)/webhook(?:b2)?/(?P<d>[\w@/.-]+)"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/(?P<e>[\w-]+)"
    r"|hooks\.zapier\.com/hooks/catch/(?P<f>[\w/]+)"
    r"|maker\.ifttt\.com/trigger/\w+/with/key/(?P<g>[\w-]+)|chat\.googleapis\.com/v1/spaces/(?P<h>[\w-]+/messages)"
    r"|hooks\.[\w.-]{1,80}/(?:services|hooks|catch|in|incoming)/(?P<i>[\w/-]{16,})"
    r"|://[\w.-]*(?:ping|hook|push)[\w.-]*/(?P<j>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)
# Links that let in whoever has them.
_LINK = re.compile(
    r"(?i)/(?:reset|reset-password|password-reset|password/reset|verify|verify-email|confirm|confirmation|activate"
    r"|activation|invite|invitation|invites|magic|magic-link|login|signin|unlock|accept|share|shared|s|join|token"
    r"|callback|hooks?|webhooks?|unsubscribe|download|sso|rpc|ws|bot|key|push)/(?:[\w-]{1,20}/)?"
    r"(?P<value>[A-Za-z0-9_-]{20,200})(?![\w.])"
)
_LINKED = re.compile(r"[0-9a-f]{32,}|(?=(?:.*\d){2})[a-z0-9]{24,32}")


def urls(text: str, _key: str | None) -> Iterator[Hit]:
    """Find credentials inside URLs: user information, signed queries, webhooks, links that open by themselves."""
    for pattern, judge in ((_USERINFO, is_password), (_LONE_USERINFO, _is_credential)):
        for match in pattern.finditer(text) if "://" in text else ():
            if judge(match["value"]):
                yield value_hit(match, "value", "url-password", text)
    for match in _WEBHOOK.finditer(text) if "." in text else ():
        if "XXXXXX" not in match.group().upper():
            yield value_hit(match, str(match.lastgroup), "webhook-url", text)
    for match in _QUERY.finditer(text):
        if _is_query_secret(match["name"], match["value"]):
            yield value_hit(match, "value", "query-parameter", text)
    for match in _LINK.finditer(text) if "/" in text else ():
        if looks_random(match["value"]) or _LINKED.fullmatch(match["value"]):
            yield value_hit(match, "value", "url-token", text)


def _is_query_secret(name: str, value: str) -> bool:
    if is_mark(value) or value[0] in _REFERENCE:
        return False
    if _SIGNED_QUERY.fullmatch(name):
        return True
    strong = key_strength(name) in ("strong", "digits") and len(value) > 5
    drawn = len(value) >= 12 and any(map(str.isdigit, value))
    return _QUERY_SECRETS.fullmatch(name) is not None and (strong or drawn)
