"""Secrets on command lines: options, logins and their passwords, directives, and commands that print a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit, value_hit
from eval_core.suite.scrub.secret_values import (
    is_mixed,
    is_password,
    is_secret_value,
    key_strength,
    unwordly,
)

_OPTION = re.compile(
    r"(?<![\w-])--?(?P<name>[A-Za-z_][\w.\-]{0,80})(?:=|[ \t]+(?!-))"
    r"(?:(?P<quote>[\"'])(?P<quoted>[^\n\"']+)(?P=quote)|(?P<bare>[^\s\"'`\\-][^\s\"'`\\]*))"
)
# Programs whose short options take a password.
_SHORT_OPTION = re.compile(
    r"(?:curl|wget|http|aria2c)\b[^\n]{0,300}?[ \t](?:-u|--user|--proxy-user)[ =]?[\"']?[\w.@+-]*:(?P<a>[^\s\"'\\]+)"
    r"|\b(?:mysql|mysqldump|mariadb)\b[^\n]{0,200}?[ \t]-p(?P<b>[^\s\"'\\-][^\s\"'\\]*)"
    r"|\b(?:echo|printf)[ \t]+(?:-n[ \t]+)?[\"']?(?P<f>[^\s\"'\\|]+)[\"']?[ \t]*\|[ \t]*(?:sudo[ \t]+-S|kinit"
    r"|passwd|su\b"
    r"|gpg|openssl|cryptsetup|smbpasswd|[^\n|]{0,80}(?:--password-stdin|--with-token|--stdin|chpasswd|\bsecrets?\b"
    r"|\blogin\b|pass\w*|token|cred|vault))"
    r"|[ \t](?:-[uU]|--?user(?:name)?)[ =]?[\"']?[\w.@\\-]+[\"']?[^\n|;&]{0,80}?[ \t]-[pPwa](?:[ \t]+|(?=[^\s-]))"
    r"[\"']?(?P<h>[^\s\"'\\-][^\s\"'\\]{3,})"
)
# A login and, behind a colon, its password: after an option or a word for logging in, and before a server.
_LOGIN = re.compile(
    r"(?<![\w-])(?:-[auU]|--?(?:auth|user|login|creds?|credentials?|basic-auth|proxy-user|http-user|account)"
    r"|(?i:auth(?:entication)?|basicauth|basic_auth|htpasswd|userpass|login|credentials?|creds|proxy_auth|web\.auth))"
    r"(?:[ \t]*[=:][ \t]*|[ \t]+)[\"']?[A-Za-z][\w.@+-]{0,60}:(?P<value>[^\s\"'\\:/@][^\s\"'\\@]{4,100})"
)
_DSN = re.compile(
    r"[\"'\s=](?!(?:user|group|serviceAccount|domain|mailto|acct|sips?|xmpp):[A-Za-z.+\\_-]+@)"
    r"[A-Za-z][\w.-]{0,40}:(?P<value>[^\s\"'`/:]{4,100}?)@(?:tcp|unix|\[)?[(\w]"
)
_PORT_OR_ID = re.compile(r"\d+(?:/\w+)?|\w+:\d+")
# The names that network gear, brokers and directories give a shared secret, with nothing but a space before it.
_DIRECTIVE = re.compile(
    r"(?im)^[ \t]*(?:\w+[ \t]+){0,4}?(?:r[ow]community6?|com2sec[ \t]+\w+[ \t]+\S+|community|enable secret(?: \d)?"
    r"|enable password(?: \d)?|(?:pre-shared-key|shared-secret|key-string|secret|passwd|password|bindpw|rootpw"
    r"|olcRootPW"
    r"|requirepass|masterauth|isakmp key|pre-shared key|wpa-psk|neighbor \S+ password"
    r"|(?:tacacs|radius)\S*(?:[ \t]+\S+){0,6}?[ \t]+key|key \d+|radius_secret|auth_pass|authkey|auth-user-pass|psk)"
    r"(?:[ \t]+\d)?)[ \t]+[\"']?(?P<value>[^\s\"';]{5,100})[\"']?[ \t]*;?[ \t]*"
    r"(?:(?:RW|RO|rw|ro|address|hostname|role|privilege|level|view|use-acl)\b[^\n]*)?[ \t]*$"
)
_CODE_SIGN = re.compile(r"[(){}\[\]=]")


def command_secrets(text: str, _key: str | None) -> Iterator[Hit]:
    """Find passwords given to options, paired with logins, or set by a directive."""
    yield from _options(text) if "-" in text else ()
    for match in _SHORT_OPTION.finditer(text):
        group = str(match.lastgroup)
        if is_password(match[group]):
            yield value_hit(match, group, "flag", text)
    for match in _LOGIN.finditer(text):
        value = match["value"]
        if is_mixed(value) and is_password(value) and not _PORT_OR_ID.fullmatch(value):
            yield value_hit(match, "value", "flag", text)
    for match in _DSN.finditer(text) if "@" in text else ():
        if is_password(match["value"]):
            yield value_hit(match, "value", "url-password", text)
    for match in _DIRECTIVE.finditer(text):
        value = match["value"]
        chosen = (is_mixed(value) and is_password(value)) or unwordly(value, told=True)
        if chosen and not _CODE_SIGN.search(value):
            yield value_hit(match, "value", "assignment", text)


def _options(text: str) -> Iterator[Hit]:
    for match in _OPTION.finditer(text):
        name, group = match["name"], "quoted" if match["quoted"] is not None else "bare"
        # Nobody passes a flag to count tokens by that name.
        strength = "strong" if name.lower().endswith("token") and key_strength(name) == "weak" else key_strength(name)
        if is_secret_value(match[group], strength, name, exact=True):
            yield value_hit(match, group, "flag", text)
