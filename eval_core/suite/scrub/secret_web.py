"""Secrets of the web: headers, URLs and cookies."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit, is_mark, secret_hit, value_hit
from eval_core.suite.scrub.secret_values import is_secret_value, key_strength, looks_random

__all__ = ["cookies", "headers", "pair_inside", "urls"]

_HEADER = re.compile(
    r"(?i)\b(?P<name>(?:proxy-)?authorization|x-[\w-]*(?:key|token|secret|auth|signature)[\w-]*|private-token"
    r"|api-key|apikey|"
    r"x-goog-api-key|ocp-apim-subscription-key|dd-api-key|circle-token|job-token|deploy-token|x-vault-token"
    r"|jenkins-crumb|x-csrftoken"
    r"|x-xsrf-token|(?:[\w-]+-)?(?:access|api|auth|client|app)-(?:sign|signature|key|token|secret|passphrase))"
    r"\\{0,3}[\"']?[ \t]{0,3}[:=][ \t]{0,3}\\{0,3}[\"']?(?:(?P<scheme>bearer|basic|token|apikey|api-key|negotiate"
    r"|bot|key|snowflake token|"
    r"digest|splunk|sso-key|genie[kK]ey|discogs|aws4-hmac-sha256)[ \t=]+)?(?P<value>[^\s\"'\\,]{6,})(?P<rest>[^\n\"'"
    r"\\]*)"
)
_ANY_SCHEME = re.compile(
    r"(?i)(?<![\w-])(?:proxy-)?authorization\\{0,3}[\"']?[ \t]{0,3}[:=][ \t]{0,3}\\{0,3}[\"']?[a-z][\w-]{2,24}[ \t]+"
    r"(?P<value>[^\s\"'\\,=]{12,})"
)
_BEARER = re.compile(r"(?<![A-Za-z])(?i:bearer)[ \t]+(?P<value>[A-Za-z0-9._~+/=\-]{12,})")
_BASIC = re.compile(r"(?<![A-Za-z])(?i:basic)[ \t]+(?P<value>[A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9+/=])")
_USERINFO = re.compile(
    r"(?<![A-Za-z0-9+.\-])[A-Za-z][A-Za-z0-9+.\-]{0,30}://(?P<user>[^\s/:@\"'<>`]*):"
    r"(?P<password>[^\s/\"'<>`]+?)@(?=[\w.\-]+(?:[^\w.\-!#*~@]|$)|[\[$%{/])"
)
_LONE_USERINFO = re.compile(
    r"(?<![A-Za-z0-9+.\-])[a-z][a-z0-9+.\-]{0,30}://(?P<value>[^\s/:@\"'<>`]{16,})@(?=[\w.\[\-])"
)
_QUERY = re.compile(r"[?&;#](?P<name>[A-Za-z][\w.\-%]{0,60})=(?P<value>[^\s&#\"'<>`\\;)\]}]+)")
_QUERY_SECRETS = re.compile(
    r"(?i)x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|signature|sig|awsaccesskeyid|"
    r"googleaccessid|(?:[\w-]*_)?(?:token|secret|password|passwd|pwd|apikey|api_key|access_key|auth)|key|app_?id"
    r"|code|auth_key|"
    r"client_secret|sv_token|hmac|policy|key-pair-id|jwt|assertion|id_token_hint|st|skoid_token|session|sid"
    r"|ticket|[jp]\w{0,4}sess(?:ion)?id|sessionid"
)
_SECRET_URLS = re.compile(
    r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/(?P<a>[\w/+-]+)"
    r"|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(?P<b>\d+/[\w-]+)"
    r"|api\.telegram\.org/(?:file/)?bot(?P<c>[\w:-]+)"
    r"|(?:outlook\.office\.com|[\w-]{1,60}\.webhook\.office\.com)/webhook(?:b2)?/(?P<d>[\w@/.-]+)"
    r"|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/v2/hook/(?P<e>[\w-]+)"
    r"|hooks\.zapier\.com/hooks/catch/(?P<f>[\w/]+)"
    r"|maker\.ifttt\.com/trigger/\w+/with/key/(?P<g>[\w-]+)"
    r"|hooks\.[\w.-]{1,80}/(?:services|hooks|catch|in|incoming)/(?P<h>[\w/-]{16,})"
    r"|chat\.googleapis\.com/v1/spaces/(?P<i>[\w-]+/messages)"
)
_COOKIE = re.compile(
    r"(?i)(?<![\w-])(?:set-)?cookie2?\\{0,3}[\"']?[ \t]{0,3}[:=][ \t]{0,3}(?P<pairs>[^\n]+)|(?:--cookie"
    r"|curl\b[^\n]*?[ \t]-b)[ =][\"']?(?P<flag>[^\n\"']+)"
)
_COOKIE_PAIR = re.compile(r"(?P<name>[\w.$!#%&*+^|~-]+)=(?P<value>[^;,\s\"'\\]+)")
_COOKIE_ATTRIBUTES = {"path", "domain", "expires", "max-age", "samesite", "priority", "version", "comment"}


def headers(text: str, _key: str | None) -> Iterator[Hit]:
    """Find credentials in HTTP headers."""
    for match in _HEADER.finditer(text):
        value = match.group("value")
        if match.group("scheme") or is_secret_value(value, "strong", match.group("name"), exact=False):
            if is_mark(value) or value[0] in "$<{%[*" or not _credential_like(value):
                continue
            yield value_hit(match, "value", "header", text)
            if match.group("scheme") and match.group("scheme").lower() in ("digest", "aws4-hmac-sha256"):
                yield value_hit(match, "rest", "header", text)
    for match in _ANY_SCHEME.finditer(text):
        if not is_mark(match["value"]) and match["value"][0] not in "$<{%[*" and _credential_like(match["value"]):
            yield value_hit(match, "value", "header", text)
    for pattern in (_BEARER, _BASIC):
        for match in pattern.finditer(text):
            value = match.group("value")
            if not is_mark(value) and _credential_like(value) and (pattern is _BEARER or pair_inside(value)):
                yield value_hit(match, "value", "header", text)


def _credential_like(value: str) -> bool:
    return any(char.isdigit() for char in value) or looks_random(value) or pair_inside(value)


def pair_inside(value: str) -> bool:
    """Tell whether base64 hides user:password."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def urls(text: str, _key: str | None) -> Iterator[Hit]:
    """Find credentials inside URLs: user information, signed queries, webhooks."""
    if "://" in text:
        for match in _USERINFO.finditer(text):
            if is_secret_value(match.group("password"), "strong", "password", exact=True):
                yield value_hit(match, "password", "url-password", text)
        for match in _LONE_USERINFO.finditer(text):
            if _credential_like(match.group("value")):
                yield value_hit(match, "value", "url-password", text)
    for match in _SECRET_URLS.finditer(text) if "." in text else ():
        if "XXXXXX" in match.group().upper():
            continue  # a sample
        yield value_hit(match, str(match.lastgroup), "webhook-url", text)
    for match in _QUERY.finditer(text):
        name, value = match.group("name"), match.group("value")
        if not _QUERY_SECRETS.fullmatch(name) or is_mark(value) or value[0] in "$<{*":
            continue
        signed = name.lower().startswith(("x-amz-", "x-goog-", "aws", "googleaccess")) or name.lower() in (
            "sig",
            "signature",
        )
        strong = key_strength(name) in ("strong", "digits")
        if signed or (strong and len(value) > 5) or (len(value) >= 12 and any(map(str.isdigit, value))):
            yield value_hit(match, "value", "query-parameter", text)


def cookies(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the values of cookies; their names and attributes stay."""
    if "ookie" not in text and "OOKIE" not in text and "-b" not in text:
        return
    for match in _COOKIE.finditer(text):
        group = "pairs" if match.group("pairs") is not None else "flag"
        offset = match.start(group)
        for pair in _COOKIE_PAIR.finditer(match.group(group)):
            value = pair.group("value")
            if (
                pair.group("name").lower() in _COOKIE_ATTRIBUTES
                or len(value) < 6
                or value.lower() in ("strict", "secure")
            ):
                continue
            if any(char.isdigit() for char in value) or len(value) >= 16:
                yield secret_hit(offset + pair.start("value"), offset + pair.end("value"), "cookie", text)
