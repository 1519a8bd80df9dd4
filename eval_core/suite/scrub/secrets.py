"""Secret detectors: assignments, flags, headers, URLs, cookies, key files and secrets told in prose."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Detector, Hit, is_mark, secret_hit, value_hit
from eval_core.suite.scrub.secret_clues import CLUE_DETECTORS, SECRET_WORD
from eval_core.suite.scrub.secret_places import PLACE_DETECTORS
from eval_core.suite.scrub.secret_values import is_secret_value, key_strength, looks_random, random_tokens
from eval_core.suite.scrub.token_patterns import provider_tokens

__all__ = [
    "SECRET_DETECTORS",
    "cookies",
    "files",
    "headers",
    "key_blocks",
    "pair_inside",
    "prose",
    "under_key",
    "urls",
]

# Secrets that people tell each other in sentences.

_ODD_CASE = re.compile(r"(?=.*[._@-])(?=.*[a-z][A-Z])(?=.*[A-Z]{2}).+|.*[a-z][A-Z][a-z]?[A-Z].*")
_PROSE = re.compile(
    r"(?i)(?:\b(?P<name>password|passwort|passphrase|passwd|pass|pwd|pin|token|secret|api[ -]?key|access key"
    r"|secret key|key|credentials?|mot de passe|contraseña|clave|senha|hasło|hasła|wachtwoord|lösenord(?:et)?"
    r"|passord(?:et)?|adgangskode"
    r"|kodeord|salasana|heslo|jelszó|şifre|parola|pw|пароль)\b|(?P<cjk>密码|密碼|口令|パスワード|비밀번호))"
    r"[^\n.:=\"'`]{0,30}?(?:[ \t]+(?:is|was|ist|lautet|are|est|es|é|är|er|on|to|of|now|это)[ \t]+"
    r"|[ \t]*[：:=是は][ \t]*"
    r"|[ \t]+)(?P<quote>[\"'`«“]?)(?P<value>[^\s\"'`»”,;]{4,100})"
)
# The secret may come first ("use ... as the password"), or beside a login ("log in with app / ...").
_TURNED = re.compile(
    r"(?i)(?:\b(?:use|try|take|enter|type|set)[ \t]+[\"'`]?(?P<a>[^\s\"'`,;]{6,60})[\"'`]?[ \t]+(?:as|for)"
    r"[ \t]+(?:the[ \t]+|your[ \t]+|my[ \t]+)?(?:\w+[ \t]+){0,2}(?:password|passphrase|pin|pass|token|secret)\b"
    r"|\b(?:log(?:ging)?[ -]?(?:in|on)|sign(?:ing)?[ -]?in|login|credentials?|creds|wi-?fi|wlan|vpn|guest"
    r"|account|access)\b[^\n.:]{0,24}?[: \t]+"
    r"[\w.@+-]{2,40}[ \t]?(?:/|:|,|and|with)[ \t]?[\"'`]?(?P<b>[^\s\"'`,;/]{6,60}))"
)
# After "token" or "key" a version, a name with a number or a path is more likely than a secret.
_ORDINARY_WORD = re.compile(
    r"[a-z]+(?:\+[a-z0-9]+)+|v?\d[\d.,:/-]*\w{0,3}|[A-Za-z]+[-_.]?\d{1,3}|[\w./-]+/[\w./-]+|#\d+"
)
_CHECKSUM = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")
_SAID = (
    "password",
    "passwort",
    "passphrase",
    "pin",
    "mot de passe",
    "contraseña",
    "senha",
    "пароль",
    "密码",
    "パスワード",
)


def prose(text: str, _key: str | None) -> Iterator[Hit]:
    """Find "the password is ..." in sentences."""
    for match in _TURNED.finditer(text):
        group = str(match.lastgroup)
        value = match.group(group).rstrip(".:!?)")
        drawn = any(map(str.isdigit, value)) and re.search(r"[^\w/.:-]|[A-Z].*\d|_\w*\d|-\w*\d", value)
        if drawn and is_secret_value(value, "strong", "password", exact=True):
            yield secret_hit(match.start(group), match.start(group) + len(value), "prose", text)
    for match in _PROSE.finditer(text):
        start = match.start("value")
        name = (match.group("name") or "password").lower()
        value = match.group("value").rstrip(".:!?)")
        odd = re.search(r"\d|\w[!#%$^&*+]\w", value) or _ODD_CASE.fullmatch(value)
        pin = name == "pin" and value.isdigit() and 4 <= len(value) <= 8
        grouped = name not in ("key", "token") and re.fullmatch(r"[a-z]{4}(?:-[a-z]{4}){3}", value)
        if not pin and not grouped and (len(value) < 4 or not odd or not re.search(r"[^\W\d]", value)):
            continue
        told = re.search(
            r"[：:=是は]|\b(?:is|was|ist|lautet|are|est|es|é|är|er|on|to|now)\s*[\"'`«“]?\Z",
            text[match.start() : start],
        )
        kinds = len({("d" if c.isdigit() else "a" if c.isalpha() else "s") for c in value})
        if not told and not (kinds == 3 and len(value) >= 8):
            continue
        before = re.search(r"[\w-]+(?=[ _-]?\Z)", text[max(0, match.start() - 24) : match.start()])
        if name in ("key", "token") and before and key_strength(f"{before[0].rstrip('-_')}_{name}") == "none":
            continue  # an idempotency key, a partition key
        ordinary = name not in _SAID and (_ORDINARY_WORD.fullmatch(value) or _CHECKSUM.fullmatch(value))
        if pin or (not ordinary and is_secret_value(value, "strong", "password", exact=True)):
            yield secret_hit(start, start + len(value), "prose", text)


# Secrets of files: key blocks, credential files, XML settings and seed phrases.

_BLOCK = re.compile(
    r"-----BEGIN (?P<label>(?:[A-Za-z0-9]+ )*(?:PRIVATE|SECRET|Static|ENCRYPTED) (?:KEY|key)(?: BLOCK"
    r"| V\d)?)-----(?P<body>.*?)(?P<end>-----END (?P=label)-----"
    r"|\Z|(?=-----BEGIN )|\n[ \t]*\n(?![A-Za-z0-9+/=]{20}|[\w-]+:)|(?=[^A-Za-z0-9+/=\s\\:,.\-]))",
    re.DOTALL,
)
_BLOCK_TAIL = re.compile(
    r"(?:[A-Za-z0-9+/=]{16,}(?:\\n|\s)+)*[A-Za-z0-9+/=]{2,}(?:\\n"
    r"|\s)*-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
)
_PUTTY = re.compile(r"Private-Lines: \d+\s+(?P<value>(?:[A-Za-z0-9+/=]{4,}\s+)+)(?:Private-MAC: (?P<mac>[0-9a-f]+))?")
_NETRC = re.compile(r"\b(?:machine[ \t]+\S+|default)\s+login\s+\S+\s+password\s+(?P<value>\S+)")
_PGPASS = re.compile(r"(?m)^[\w.*-]+:(?:\d{2,5}|\*):[\w*-]+:[\w*-]+:(?P<value>[^\s:]{4,})$")
_ELEMENT = re.compile(r"<(?P<name>[\w.:-]{2,60})(?: [^<>]*)?>(?P<value>[^<>\s]{3,400})</(?P=name)>")
_SETTING = re.compile(
    r"(?i)\b(?:key|name|id|property)=(?P<q>[\"'])(?P<name>[\w.:-]{2,60})(?P=q)\s+value=(?P<r>[\"'])(?P<value>[^\"'\n"
    r"]{3,400})(?P=r)"
)
_VAULT_BLOCK = re.compile(r"\$ANSIBLE_VAULT;[\d.]+;\w+(?:;\w+)?\s+(?P<value>[0-9a-f]{20,}(?:\s+[0-9a-f]{20,})*)")
# Hashes of passwords, as systems and frameworks store them.
_HASHED = re.compile(
    r"(?<![\w$])(?P<value>\$(?:[1256]|2[abxy]|apr1|y|gy|sha1|argon2(?:id|i|d)|scrypt|7)\$[\w./+$,=-]{16,}"
    r"|\{S?SHA\d*\}[A-Za-z0-9+/=]{20,}|SCRAM-SHA-\d+\$\d+:[\w+/=]{8,}\$[\w+/=]{20,}(?::[\w+/=]{20,})?"
    r"|\*[0-9A-Z]{40}(?!\w)|(?<=:\d{3}:)[0-9a-f]{32}:[0-9a-f]{32}(?=:::)|(?<=:\d{4}:)[0-9a-f]{32}:[0-9a-f]{32}(?=:::)"
    r"|pbkdf2[_:]sha\d+[$:]\d+[$:][\w+/=$:]{20,}|(?:scrypt|argon2)\$[\w+/=$,]{20,})"
)
# A block or an element whose name says secret, and the value one level below it.
_BELOW = re.compile(
    r"<(?P<tag>[\w.:-]{2,60})(?: [^<>]*)?>\s*<[Vv]alue(?: [^<>]*)?>(?P<value>[^<>\s]{3,200})</"
    r"|(?:variable|output|parameter|secret|setting)\s+\"(?P<block>[\w.-]{2,60})\"\s*\{[^{}]{0,200}?\b(?:default"
    r"|value)\s*=\s*\"(?P<value2>[^\"\n]{3,200})\""
)
# A quoted name and, after a comma, its quoted value; a call that logs in with a name and a password.
_LISTED = re.compile(r"[\"'](?P<name>[\w.-]{3,60})[\"']\s*,\s*[\"'](?P<value>[^\"'\n]{4,200})[\"']")
_LOGIN_CALL = re.compile(
    r"(?i)\b(?:auth|basicauth|httpbasicauth|login|log_in|signin|sign_in|authenticate|credentials?"
    r"|passwordauthentication|networkcredential|usernamepassword\w*)"
    r"\s*[=(:]\s*[\[(]?\s*[\"'][^\"'\n]{1,60}[\"']\s*,\s*[\"'](?P<value>[^\"'\n]{4,100})[\"']"
)
_STATEMENT = re.compile(
    r"(?i)\b(?:identified (?:with \w+ )?by|(?:with |encrypted |set )?"
    r"password(?: for [^=;\n]{1,60}=)?)(?:\s+to)?\s*(?:=\s*)?(?:password)?\s*\(?\s*N?['\"](?P<a>[^'\"\n]{4,100})['\"]"
    r"|(?m:^(?:[\w.:]+> ?)?AUTH(?: \w+)? (?P<b>\S{4,100})$)|\brequirepass[ \t]+[\"']?(?P<c>[^\s\"']{4,100})"
    r"|\bWIFI:(?:[STH]:[^;]*;)*P:(?P<d>[^;\n]{4,63});|\bwpa_passphrase[ \t]+\S+[ \t]+(?P<e>\S{8,63})"
    r"|[ \t]/p(?:ass(?:word)?)?:(?P<f>[^\s\"']{4,100})|\bsend(?: --)?"
    r"[ \t]+[\"'](?P<g>[^\"'\n]{4,100}?)(?:\\+[rn])+[\"']"
)
_PHRASE = re.compile(
    r"(?i)\b(?:seed|recovery|mnemonic|backup|secret)[ _-]?(?:phrase|words"
    r"|mnemonic)?[\"' ]*[:=]+[\"' ]*(?P<value>[a-z]{3,8}(?:[ ,]+[a-z]{3,8}){11,23})\b"
)


def key_blocks(text: str, _key: str | None) -> Iterator[Hit]:
    """Find private keys, whole or cut off at either end."""
    if "-----BEGIN" in text or "PRIVATE KEY-----" in text or "KEY BLOCK-----" in text:
        for match in _BLOCK.finditer(text):
            if not is_mark(match.group("body").strip()):
                end = match.end() if not match.group("end").isspace() else match.start("end")
                body = text[match.start() : end].rstrip()
                yield secret_hit(match.start(), match.start() + len(body), "private-key", text)
        for match in _BLOCK_TAIL.finditer(text):
            yield secret_hit(match.start(), match.end(), "private-key", text)
    if "Private-Lines" in text:
        for match in _PUTTY.finditer(text):
            start, end = match.span("value")
            yield secret_hit(start, start + len(text[start:end].rstrip()), "private-key", text)
            if match.group("mac"):
                yield value_hit(match, "mac", "private-key", text)


def files(text: str, _key: str | None) -> Iterator[Hit]:
    """Find passwords in the files that programs keep them in."""
    for pattern in (_NETRC, _PGPASS):
        for match in pattern.finditer(text):
            if is_secret_value(match.group("value"), "strong", "password", exact=True):
                yield value_hit(match, "value", "assignment", text)
    for pattern in (_ELEMENT, _SETTING) if "<" in text else ():
        for match in pattern.finditer(text):
            if is_secret_value(match.group("value"), key_strength(match["name"]), match["name"], exact=True):
                yield value_hit(match, "value", "assignment", text)
    for match in _BELOW.finditer(text):
        name = match.group("tag") or match.group("block")
        group = "value" if match.group("tag") else "value2"
        if is_secret_value(match.group(group), key_strength(name), name, exact=True):
            yield value_hit(match, group, "assignment", text)
    for match in _LISTED.finditer(text):
        if key_strength(match["name"]) == "strong" and is_secret_value(
            match["value"], "strong", match["name"], exact=True
        ):
            yield value_hit(match, "value", "assignment", text)
    for match in _LOGIN_CALL.finditer(text):
        if is_secret_value(match["value"], "strong", "password", exact=True):
            yield value_hit(match, "value", "assignment", text)
    for match in _STATEMENT.finditer(text):
        group = str(match.lastgroup)
        sent = (
            group == "g"
            and not SECRET_WORD.search(text, max(0, match.start() - 200), match.start())
            and ("assword" not in text[max(0, match.start() - 200) : match.start()])
        )
        if not sent and is_secret_value(match.group(group), "strong", "password", exact=True):
            yield value_hit(match, group, "assignment", text)
    for pattern in (_VAULT_BLOCK, _PHRASE, _HASHED):
        for match in pattern.finditer(text):
            yield value_hit(match, "value", "assignment", text)


# Secrets of the web: headers, URLs and cookies.

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
_BEARER = re.compile(r"(?<![A-Za-z])(?i:bearer)[ \t]+(?P<value>[A-Za-z0-9._~+/=\-]{12,})")
_BASIC = re.compile(r"(?<![A-Za-z])(?i:basic)[ \t]+(?P<value>[A-Za-z0-9+/]{8,}={0,2})(?![A-Za-z0-9+/=])")
_USERINFO = re.compile(
    r"(?<![A-Za-z0-9+.\-])[A-Za-z][A-Za-z0-9+.\-]{0,30}://(?P<user>[^\s/:@\"'<>`]*):"
    r"(?P<password>[^\s/\"'<>`]+?)@(?=[\w.\-]+(?:[^\w.\-!#*~@]|$)|[\[$%{])"
)
_LONE_USERINFO = re.compile(
    r"(?<![A-Za-z0-9+.\-])[a-z][a-z0-9+.\-]{0,30}://(?P<value>[^\s/:@\"'<>`]{16,})@(?=[\w.\[\-])"
)
_QUERY = re.compile(r"[?&;#](?P<name>[A-Za-z][\w.\-%]{0,60})=(?P<value>[^\s&#\"'<>`\\;)\]}]+)")
_QUERY_SECRETS = re.compile(
    r"(?i)x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|signature|sig|awsaccesskeyid|"
    r"googleaccessid|(?:[\w-]*_)?(?:token|secret|password|passwd|pwd|apikey|api_key|access_key|auth)|key|app_?id|code|auth_key|"
    r"client_secret|sv_token|hmac|policy|key-pair-id|jwt|assertion|id_token_hint|st|skoid_token|session|sid|ticket|[jp]\w{0,4}sess(?:ion)?id|sessionid"
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


# Secrets told by where they stand: assignments, flags and keys; and the list of all secret detectors.

_NAME = r"[A-Za-z_][\w.\-]{0,80}"
_ASSIGNMENT = re.compile(
    r"(?i:pass|pwd|secret|token|key|auth|cred|mnemonic|phrase|cookie|salt|psk|wort|woord|enord|hasło|heslo|kode"
    r"|contrase|senha|pw\b|"
    r"\bpin|otp|cvv|cvc|\bpat\b|_pat|jwt|hmac|sig|sid|session|bearer|connection|license)[\w\-]{0,40}"
    r"(?:\[\w*\])?(?P<close>\\{0,3}[\"'`]?\]?)[ \t]{0,4}(?::[ \t]?[&\w<>|\[\]]{2,24}[ \t]*(?==))?(?:=>|:=|==?"
    r"|:)(?![=/])[ \t]{0,24}(?:[&!][\w!/-]+[ \t]+|\s{1,8}string\(\d+\)[ \t]+)?(?:b(?=[\"']))?"
    r"(?:(?P<quote>\\{0,3}(?:\"|'|`))(?P<quoted>[^\n\"'`]{3,400}?)(?P=quote)|(?P<bare>[^\s\"'`\\]{3,400}))"
)
_LEFT = re.compile(r"[\w.\-]{0,80}\Z")
_HEX_KEY = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}")
_ACCOUNT = re.compile(r"(?i)user|crypt|api|secret|account|login|client")
_LINE_START = re.compile(r"(?:^|\n)[ \t]*(?:[-+>|$#] ?)?(?:export[ \t]+|set[ \t]+|ENV[ \t]+|ARG[ \t]+|- )?[\"']?\Z")
_NARROW = re.compile(r"[^\s\"'`,;&|<>(){}\[\]\\]+")
_FLAG = re.compile(
    rf"(?<![\w-])--?(?P<name>{_NAME})(?:=|[ \t]+(?!-))(?:(?P<quote>[\"'])(?P<quoted>[^\n\"']+)(?P=quote)"
    rf"|(?P<bare>[^\s\"'`\\]+))"
)
_LOGIN_FLAG = re.compile(
    r"(?:(?:curl|wget|http|aria2c)\b[^\n]{0,300}?[ \t](?:-u|--user"
    r"|--proxy-user)[ =]?[\"']?(?P<login>[\w.@+-]*):(?P<a>[^\s\"'\\]+)"
    r"|\b(?:mysql|mysqldump|mariadb)\b[^\n]{0,200}?[ \t]-p(?P<b>[^\s\"'\\-][^\s\"'\\]*)"
    r"|\bsshpass[ \t]+-p[ \t]*[\"']?(?P<c>[^\s\"'\\]+)"
    r"|\bredis-cli\b[^\n]{0,200}?[ \t]-a[ \t]+[\"']?(?P<d>[^\s\"'\\]+)"
    r"|\b(?:docker|podman|helm|oras|skopeo)\b[^\n]{0,100}?\blogin\b[^\n]{0,200}?[ \t]-p[ \t]+[\"']?(?P<e>[^\s\"'\\]+)"
    r"|\b(?:echo|printf)[ \t]+(?:-n[ \t]+)?[\"']?(?P<f>[^\s\"'\\|]+)[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+-S|kinit"
    r"|passwd|su\b|gpg|openssl|cryptsetup|smbpasswd|[^\n"
    r"|]{0,80}(?:--password-stdin|--with-token|--stdin|chpasswd|\bsecrets?\b|\blogin\b|pass\w*|token|cred|vault))"
    r"|\bssh-keygen\b[^\n]{0,120}?[ \t]-[NP][ \t]+[\"']?(?P<p>[^\s\"'\\]{4,})"
    r"|\becho[ \t]+(?:-n[ \t]+)?[\"']?(?P<q>[^\s\"'\\|>]{6,})[\"']?[ \t]*>{1,2}[ \t]*\S*(?:pass|secret|token"
    r"|cred|key)\w*"
    r"|\bhtpasswd\b[^\n]*?[ \t]-\w*b\w*[ \t]+\S+[ \t]+\S+[ \t]+[\"']?(?P<h>[^\s\"'\\]+)"
    r"|\b(?:ldap\w+|ipmitool|influx|cadaver)\b[^\n]{0,200}?[ \t]-[wP][ \t]+[\"']?(?P<i>[^\s\"'\\]+)"
    r"|\b(?:smbclient|rpcclient|mount\.cifs|net)\b[^\n]{0,200}?[ \t]-U[ \t]*[\"']?[\w.\\-]+%(?P<j>[^\s\"'\\]+)"
    r"|[ \t](?:-[uU]|--?user(?:name)?)[ =]?[\"']?[\w.@\\-]+[\"']?[^\n|;&]{0,80}?[ \t]-[pPwa](?:[ \t]+"
    r"|(?=[^\s-]))[\"']?(?P<o>[^\s\"'\\-][^\s\"'\\]{3,})"
    r"|\bsqlplus\b[^\n]{0,60}?[ \t][\w.-]+/(?P<n>[^\s\"'@/\\]+)@"
    r"|\bnet[ \t]+use(?:[ \t]+\S+)?[ \t]+\\{2,4}\S+[ \t]+(?P<m>[^\s/\"'\\][^\s\"'\\]*)[ \t]+/user"
    r"|\bnet[ \t]+user[ \t]+\S+[ \t]+(?P<k>[^\s/\"'\\][^\s\"'\\]*)"
    r"|(?i:ConvertTo-SecureString)[ \t]+(?:-String[ \t]+)?[\"'](?P<l>[^\"']+)"
    r"|\b(?:7z|zip|unzip|unrar|rar)\b[^\n]{0,120}?[ \t]-[pP][ \t]?[\"']?(?P<g>[^\s\"'\\-][^\s\"'\\]*))"
)
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
        if strength == "none":
            # A value may be a list of assignments itself: a connection string, a query, an option.
            after = match.start("bare") if match.group("bare") is not None else match.start("quoted")
            continue
        opened = _LINE_START.search(text, max(0, start - 40), start) is not None
        if match.group("quoted") is not None:
            account = (
                strength == "weak"
                and _HEX_KEY.fullmatch(match["quoted"])
                and _ACCOUNT.search(text, max(0, start - 60), start)
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


def flags(text: str, _key: str | None) -> Iterator[Hit]:
    """Find --password value and the short options of common programs."""
    for match in _FLAG.finditer(text) if "-" in text else ():
        strength = key_strength(match.group("name"))
        if strength == "weak" and match.group("name").lower().endswith("token"):
            strength = "strong"  # nobody passes a flag to count tokens by that name
        group = "quoted" if match.group("quoted") is not None else "bare"
        value = match.group(group)
        if (
            strength != "none"
            and not value.startswith("-")
            and is_secret_value(value, strength, match["name"], exact=True)
        ):
            yield value_hit(match, group, "flag", text)
    for match in _LOGIN_FLAG.finditer(text):
        group = str(match.lastgroup)
        if match.group("login") and is_secret_value(match.group("login"), "weak", "token", exact=True):
            yield value_hit(match, "login", "flag", text)
        if is_secret_value(match.group(group), "strong", "password", exact=True):
            yield value_hit(match, group, "flag", text)


def under_key(text: str, key: str | None) -> Iterator[Hit]:
    """Judge a whole JSON string by the key it stands under."""
    if key is None or not text:
        return
    strength = key_strength(key)
    if (strength != "none" and is_secret_value(text, strength, key, exact=True)) or (
        key.lower() in ("auth", "_auth") and _AUTH_FIELD.fullmatch(text) and pair_inside(text)
    ):
        yield secret_hit(0, len(text), "assignment", text)
    elif key.lower() in ("authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"):
        prefix = f"{key}: "
        for hit in (*headers(prefix + text, None), *cookies(prefix + text, None)):
            if hit.start >= len(prefix):
                yield secret_hit(hit.start - len(prefix), hit.end - len(prefix), hit.rule, text)


SECRET_DETECTORS: tuple[Detector, ...] = (
    key_blocks,
    provider_tokens,
    under_key,
    urls,
    headers,
    cookies,
    assignments,
    flags,
    files,
    prose,
    *CLUE_DETECTORS,
    *PLACE_DETECTORS,
    random_tokens,
)
