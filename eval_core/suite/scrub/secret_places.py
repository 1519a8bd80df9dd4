"""Secrets found by their position: beside a login, after a verb that logs in, in a column, beside their name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Detector, Hit, secret_hit, value_hit
from eval_core.suite.scrub.secret_values import is_secret_value, key_strength, looks_random, password_shape, unwordly

__all__ = ["PLACE_DETECTORS", "inserted", "told_by_commands"]

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DRAWN = rf"(?:{_UUID}|[0-9a-f]{{32,128}}|[A-Za-z0-9_.~+/=-]{{20,400}})"

# `login:password` after an option or a word that says somebody logs in.
_PAIR = re.compile(
    r"(?<![\w-])(?:-[auU]|--?(?:auth|user|login|creds?|credentials?|basic-auth|proxy-user|http-user|account)"
    r"|(?i:auth(?:entication)?|basicauth|basic_auth|htpasswd|userpass|login|credentials?|creds|proxy_auth|web\.auth))"
    r"(?:[ \t]*[=:][ \t]*|[ \t]+)[\"']?(?P<login>[A-Za-z][\w.@+-]{0,60}):(?P<value>[^\s\"'\\:/@][^\s\"'\\@]{4,100})"
)
# A verb that logs in, and what was drawn for it.
_VERB = re.compile(
    r"\b(?:[\w-]*-token|login|auth|authenticate|activate|register|set-token|add-token|add-authtoken|authtoken"
    r"|configure|connect"
    rf"|enroll|unlock|unseal|join)(?:[ \t]+(?:token|key|agent|default|--?[\w-]+))*[ \t]+[\"']?"
    rf"(?P<value>{_DRAWN})(?=[\"'\s]|$)"
)
# A short option that takes a key, with a value that nobody types.
_OPTION = re.compile(
    rf"(?<![\w-])-(?:t|k|T|K|H|a|p)[ \t]+[\"']?(?P<value>{_UUID}|[0-9a-f]{{32,128}}|[A-Za-z0-9_-]{{24,}})(?=[\"'\s]|$)"
)
_TYPED = re.compile(
    r"(?<![\w-])-[a-zA-Z](?:[ \t]+|(?=[^\s\w-]))[\"']?(?P<value>[^\s\"'\\;|&<>-][^\s\"'\\;|&<>]{7,60})(?=[\"'\s]|$)"
)
# Links that let whoever has them in.
_LINK = re.compile(
    r"(?i)/(?:reset|reset-password|password-reset|password/reset|verify|verify-email|confirm|confirmation"
    r"|activate|activation"
    r"|invite|invitation|invites|magic|magic-link|login|signin|unlock|accept|share|shared|s|join|token|callback"
    r"|hooks?|webhooks?|unsubscribe|download|sso)/(?:[\w-]{1,20}/)?(?P<value>[A-Za-z0-9_-]{20,200})(?![\w.])"
)
# Parameters of a digest, an OAuth 1 or a signed header.
_SIGNED = re.compile(
    r"(?i)\b(?:response|cnonce|oauth_signature|oauth_token|oauth_nonce|signature|mac|nc_secret|assertion)=[\"']"
    r"(?P<value>[A-Za-z0-9+/=%_-]{16,})[\"']"
)
# The names that network gear, brokers and directories give a shared secret, with nothing but a space before it.
_DIRECTIVE = re.compile(
    r"(?im)^[ \t]*(?:\w+[ \t]+){0,4}?(?:r[ow]community6?|com2sec[ \t]+\w+[ \t]+\S+|community|enable secret"
    r"(?: \d)?|enable password(?: \d)?"
    r"|(?:pre-shared-key|shared-secret|key-string|secret|passwd|password|bindpw|rootpw|olcRootPW|requirepass|masterauth"
    r"|isakmp key|pre-shared key|wpa-psk|neighbor \S+ password|tacacs-server key|radius-server key|key \d+"
    r"|radius_secret|auth_pass|authkey|auth-user-pass|psk)(?:[ \t]+\d)?)[ \t]+[\"']?"
    r"(?P<value>[^\s\"';]{5,100})[\"']?[ \t]*;?[ \t]*(?:RW|RO|rw|ro|address \S+|hostname \S+)?[ \t]*$"
)


# A line that announces a secret, and the secret alone on the next one; lists of logins for a program that sets them.
_ANNOUNCED = re.compile(
    r"(?im)^[^\n]{0,160}\b(?:password|passphrase|token|secret|api key|access key|private key|kennwort|passwort"
    r"|credential)s?\b[^\n]{0,80}:[ \t]*\n(?:[ \t]*\n)?[ \t]*[\"'`]?(?P<value>[^\s\"'`]{8,400})[\"'`]?[ \t]*$"
)
_FORM_DATA = re.compile(r"form-data; name=\"(?P<name>[\w.-]{2,60})\"\r?\n\r?\n(?P<value>[^\s]{4,200})")
_SET_LIST = re.compile(r"(?i)chpasswd\b[\s\S]{0,60}?\n[ \t]*(?:- )?[a-z_][\w-]{0,31}:(?P<value>\S{5,100})")
_BLOCK = re.compile(r"<auth-user-pass>\s+\S+\s+(?P<value>\S+)\s+</auth-user-pass>")
_ACL = re.compile(r"(?i)\bACL SETUSER \S+[^\n]*?[ \t]>(?P<value>\S{4,100})")
_ATTRIBUTE = re.compile(r"\bname=[\"'](?P<name>[\w.:-]{3,80})[\"'][^<>]{0,80}>\s*(?P<value>[^<>\s]{4,200})\s*</")
_SAID_PAIR = re.compile(
    r"(?i)\b(?:try|use|with|as|login|via|is|using)[ \t]+[\"'`]?[a-z][\w.@-]{1,30}[:/]"
    r"(?P<value>[^\s\"'`/:@]{6,60})(?=[\"'`\s,.]|$)"
)
_PLIST = re.compile(r"<key>(?P<name>[\w.:-]{3,60})</key>\s*<string>(?P<value>[^<>\s]{4,400})</string>")


def announced(text: str, _key: str | None) -> Iterator[Hit]:
    """Find secrets that a line, a tag or a command before them announces."""
    for match in _ANNOUNCED.finditer(text):
        value = match["value"]
        hexed = re.fullmatch(r"[0-9a-f]{16,}", value)
        if hexed or (_mixed(value) and _chosen(value) and _told(value) and not re.search(r"[(){}=:]", value)):
            yield value_hit(match, "value", "prose", text)
    for pattern in (_SET_LIST, _BLOCK, _ACL):
        for match in pattern.finditer(text):
            if _told(match["value"]) and "$" not in match["value"][:2]:
                yield value_hit(match, "value", "assignment", text)
    for pattern in (_ATTRIBUTE, _PLIST, _FORM_DATA) if "</" in text or "form-data" in text else ():
        for match in pattern.finditer(text):
            name = re.split(r"[.:]", match["name"])[-1]
            if is_secret_value(match["value"], key_strength(name), name, exact=True):
                yield value_hit(match, "value", "assignment", text)
    for match in _SAID_PAIR.finditer(text):
        value = match["value"].rstrip(".,")
        if _mixed(value) and _told(value) and (password_shape(value) or looks_random(value)):
            yield secret_hit(match.start("value"), match.start("value") + len(value), "prose", text)


def _told(value: str, name: str = "password") -> bool:
    return is_secret_value(value, "strong", name, exact=True)


def _mixed(value: str) -> bool:
    """Tell what a person chose or a program drew from a word: letters and something else."""
    marked = any(map(str.isdigit, value)) or re.search(r"[!#$%&*?]", value) is not None
    return any(map(str.isalpha, value)) and (marked or unwordly(value))


def logins(text: str, _key: str | None) -> Iterator[Hit]:
    """Find what stands beside a login, or after a verb, an option or a path that lets somebody in."""
    for match in _PAIR.finditer(text):
        if (
            _mixed(match["value"])
            and _told(match["value"])
            and not re.fullmatch(r"\d+(?:/\w+)?|\w+:\d+", match["value"])
        ):
            yield value_hit(match, "value", "flag", text)
    for match in _VERB.finditer(text):
        value = match["value"]
        hexed = re.fullmatch(rf"{_UUID}|[0-9a-f]{{32,}}", value)
        if hexed or (looks_random(value) and _told(value, "token")):
            yield value_hit(match, "value", "flag", text)
    for match in _OPTION.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        hexed = re.fullmatch(rf"{_UUID}|[0-9a-f]{{32,}}", match["value"])
        # Hex after `-t` may be a tag or a task; only a command that talks to a service takes it for a key.
        if (
            hexed and re.search(r"(?i)https?://|upload|login|auth|record|report|deploy|publish|submit|token", line)
        ) or (not hexed and looks_random(match["value"])):
            yield value_hit(match, "value", "flag", text)
    for match in _TYPED.finditer(text):
        if password_shape(match["value"]) and _told(match["value"]) and _chosen(match["value"]):
            yield value_hit(match, "value", "flag", text)
    for match in _LINK.finditer(text) if "/" in text else ():
        if looks_random(match["value"]) or re.fullmatch(r"[0-9a-f]{32,}", match["value"]):
            yield value_hit(match, "value", "url-token", text)
    for match in _SIGNED.finditer(text):
        if any(map(str.isdigit, match["value"])):
            yield value_hit(match, "value", "header", text)
    for match in _DIRECTIVE.finditer(text):
        value = match["value"]
        if _mixed(value) and _told(value) and not re.search(r"[(){}\[\]=]", value):
            yield value_hit(match, "value", "assignment", text)


# Calls that take a login and a password by position.
_CALL = re.compile(
    r"\b[\w.:>-]*(?i:connect\w*|PDO|mysqli?|login|log_in|signin|authenticate|auth|getConnection|createClient"
    r"|client|session|basic_?auth"
    r"|credentials?|ftp|smtp|imap\w*|ldap\w*|bind\w*|pymysql|dsn)\(\s*(?P<arguments>[^()\n]{8,300})\)"
)
_QUOTED = re.compile(r"[\"'](?P<value>[^\"'\n]{1,120})[\"']")


def positional(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the password that a call takes after a server and a login."""
    for call in _CALL.finditer(text):
        quoted = list(_QUOTED.finditer(text, *call.span("arguments")))
        for place, one in enumerate(quoted):
            value = one["value"]
            named = text[: one.start()].rstrip().endswith(("=", ":"))
            if place >= 1 and not named and len(value) >= 6 and _mixed(value) and _told(value) and _chosen(value):
                yield value_hit(one, "value", "assignment", text)


def _chosen(value: str) -> bool:
    """Tell a password from a host, a path, a version or an identifier."""
    return (
        re.fullmatch(
            r"[a-z][a-z0-9_-]*|[\w-]+(?:\.[\w-]+)+(?::\d+)?|[\w./-]+/[\w./-]*|v?\d[\d.]*|[\w-]+:\d+|[A-Z0-9_]+", value
        )
        is None
    )


# A name, and beside it under `value`, what it names.
_BESIDE = re.compile(
    r"(?P<mark>[\"']?)\b(?:name|key|Name|Key|ParameterKey|OptionName|variable|setting)"
    r"(?P=mark)[ \t]*[:=][ \t]*[\"']?(?P<name>[\w./:-]{3,120})[\"']?"
    r"[ \t]*(?:,|\n|/?>)?[ \t\n]*(?:[\"']?(?:type|Type|secret|sensitive|encrypted|DataType|namespace"
    r"|Namespace)[\"']?[ \t]*[:=][ \t]*[\"']?\w+[\"']?[ \t]*,?[ \t\n]*)*"
    r"(?P<close>[\"']?)\b(?:value|Value|ParameterValue|default|content)(?P=close)[ \t]*[:=][ \t]*"
    r"(?P<quote>[\"']?)(?P<value>[^\n\"',}]{3,200})"
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
    for pattern in (_BESIDE, _STORE):
        for match in pattern.finditer(text):
            name = re.split(r"[/.:]", match["name"])[-1] or match["name"]
            value = match["value"].strip()
            strength = key_strength(name)
            known = strength in ("strong", "phrase") or (
                strength == "weak" and pattern is _BESIDE and looks_random(value)
            )
            if known and is_secret_value(value, strength, name, exact=True):
                if pattern is _STORE and not _mixed(value):
                    continue
                yield secret_hit(match.start("value"), match.start("value") + len(value), "assignment", text)


# Tables: a header that names a column of secrets.
_SECRET_HEADER = re.compile(r"(?i)pass|pwd|secret|token|key|kennwort|contrase|senha|credential")


def columns(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the cells of a column whose header names a secret, in Markdown, CSV and aligned tables."""
    if _SECRET_HEADER.search(text) is None:
        return
    offset, wanted, joint, width = 0, list[int](), "", 0
    for line in text.split("\n"):
        here, offset = offset, offset + len(line) + 1
        cells = _cells(line, joint) if wanted else []
        if wanted and re.fullmatch(r"[-+=:| \t]{3,}", line):
            continue
        if wanted and line.strip() and len(cells) == width:
            for number in wanted:
                start, value = cells[number]
                if is_secret_value(value, "strong", "password", exact=True) and _mixed(value):
                    yield secret_hit(here + start, here + start + len(value), "assignment", text)
            continue
        wanted = []
        if len(line) < 400 and _SECRET_HEADER.search(line):
            joint, wanted, width = _header(line)


def _cells(line: str, joint: str) -> list[tuple[int, str]]:
    pattern = r"\S+(?: \S+)*" if joint == "  " else rf"[^{re.escape(joint)}]+"
    found = []
    for cell in re.finditer(pattern, line):
        bare = cell.group().strip(" \"'`")
        if bare:
            found.append((cell.start() + cell.group().index(bare), bare))
    return found


def _header(line: str) -> tuple[str, list[int], int]:
    for joint in ("|", "\t", ";", ",", "  "):
        cells = _cells(line, joint)
        if joint not in line or len(cells) < 2:
            continue
        if not all(re.fullmatch(r"[A-Za-z_][\w /()#.-]{0,30}", value) for _, value in cells):
            continue
        wanted = [
            number for number, (_, value) in enumerate(cells) if key_strength(value.replace(" ", "_")) == "strong"
        ]
        if wanted:
            return joint, wanted, len(cells)
    return "", [], 0


# SQL that names its columns before their values.
_INSERT = re.compile(
    r"(?i)\binsert\s+into\s+[\w.\"`\[\]]+\s*\((?P<names>[^()]{2,400})\)\s*values\s*(?P<rows>"
    r"(?:\([^()]*\)\s*,?\s*){1,50})"
)
_FIELD = re.compile(r"\s*(?:E?'(?P<text>(?:[^']|'')*)'|[^,']+)\s*(?:,|$)")


def inserted(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield every text that an INSERT stores: its column, where it begins, and the text."""
    for match in _INSERT.finditer(text):
        names = [name.strip(' "`[]\n\t') for name in match["names"].split(",")]
        for row in re.finditer(r"\(([^()]*)\)", match["rows"]):
            start = match.start("rows") + row.start(1)
            for name, value in zip(names, _FIELD.finditer(row[1]), strict=False):
                if value["text"]:
                    yield name, start + value.start("text"), value["text"]


def inserted_secrets(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the secrets among what an INSERT stores."""
    for name, start, value in inserted(text):
        if is_secret_value(value, key_strength(name), name, exact=True):
            yield secret_hit(start, start + len(value), "assignment", text)


# Commands whose answer is a secret.
_TELLS = re.compile(
    r"(?i)initial-password|initialAdminPassword|get[ -]secrets?\b.*(?:jsonpath|template|base64|value|-o)"
    r"|get-secret-value|get-parameter\b.*decrypt"
    r"|print-(?:access|identity|refresh)-token|auth(?::|[ -])token|get-login-password|\bpass (?:show )?\w"
    r"|\bop read|\bop item get|find-(?:generic|internet)-password"
    r"|vault (?:kv get|read)\b.*-field|openssl rand|\bpwgen|\bapg\b|(?:generate|new|create|reset|rotate)[-_ :]?"
    r"(?:password|token|secret|key)\b|base64 (?:-d|--decode|-D)"
    r"|secrets (?:get|versions access|show|read)|token (?:create|get|show|print)|terraform output -raw|sops -d"
    r"|ansible-vault (?:view|decrypt)|gpg -d"
    r"|\bcat\b[^|;]*(?:secret|passw|token|credential|\.key|_key|api[-_]?key)|echo [\"']?\$\{?\w*(?:PASS|TOKEN"
    r"|SECRET|KEY|PWD)|printenv \w*(?:PASS|TOKEN|SECRET|KEY|PWD)"
)


def told_by_commands(command: str, output: str) -> str | None:
    """Return the one word that a command which prints a secret has answered."""
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    if len(command) > 300 or len(lines) != 1 or not _TELLS.search(command):
        return None
    value = lines[0].strip("\"'")
    return value if len(value) >= 8 and _mixed(value) and _told(value) else None


PLACE_DETECTORS: tuple[Detector, ...] = (logins, announced, positional, named_beside, columns, inserted_secrets)
