"""Secrets on command lines and in calls: flags, logins, positional passwords, commands that print a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit, secret_hit, value_hit
from eval_core.suite.scrub.secret_score import shape_of, speaks_of_secrets
from eval_core.suite.scrub.secret_values import (
    HEXED,
    is_mixed,
    is_no_name,
    is_password,
    is_public_before,
    is_secret_value,
    key_strength,
    looks_random,
    password_shape,
    unwordly,
)

__all__ = ["arguments", "beside_logins", "flags", "logins", "positional", "told_by_commands"]

_NAME = r"[A-Za-z_][\w.\-]{0,80}"
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


# A login and, behind a sign, what goes with it; lines of protocols that log in.
_BESIDE_LOGIN = re.compile(
    r"(?<![\w/.])(?P<login>[A-Za-z][\w.-]{1,40}(?:@[\w.-]{3,60})?)[:,%](?P<value>[^\s\"'`/,;:@()<>\[\]{}=]{8,64})"
    r"(?=@|[\s\"'`,;)]|$)"
)
_SLASHED = re.compile(r"(?<![\w/.-])[A-Za-z][\w$#-]{1,30}/(?P<value>[^\s\"'`/@:]{5,64})@(?:/{0,2}[A-Za-z]|//\d|$)")
_LOGS_IN = re.compile(r"(?i)auth|login|user|cred|account|\btry\b|sasl|smtp|imap|relay|\]:\d+[ \t]+\Z")
_CHAP = re.compile(
    r"(?m)^\"?[\w.@-]+\"?[ \t]+(?:(?:\*|[\w.-]+)[ \t]+)?\"(?P<value>[^\"\s]{4,64})\"(?:[ \t]+(?:\*|[\d.]+))?[ \t]*$"
)
# A member of a policy is no login with a password: `user:ann.lee@acme.dev`.
_DSN = re.compile(
    r"[\"'\s=](?!(?:user|group|serviceAccount|domain|mailto|acct|sips?|xmpp):[A-Za-z.+\\_-]+@)"
    r"[A-Za-z][\w.-]{0,40}:(?P<value>[^\s\"'`/:]{4,100}?)@(?:tcp|unix|\[)?[(\w]"
)
_PROTOCOL = re.compile(
    r"(?m)^(?:[-<>*]+[ \t]*|C: ?|\d\d:\S+ )?(?:PASS[ \t]+(?P<a>\S{4,100})"
    r"|\w{1,6}[ \t]+LOGIN[ \t]+\S+[ \t]+(?P<b>\S{4,100})"
    r"|AUTH(?:[ \t]+(?:PLAIN|LOGIN|\w+))?[ \t]+(?P<c>\S{6,200}))[ \t]*\r?$"
)
# A verb that makes or opens an account, a login, and its password by position.
_ACCOUNT_VERB = re.compile(
    r"(?i)(?<!\w)(?:add[_-]?user|user[_-]?add|create[_-]?user|change[_-]?password|set[_-]?password|auth-pass"
    r"|passwd|radtest"
    r"|user:password|user:create|--encrypt|authenticate_user|set[_-]?user|reset[_-]?password|smbpasswd"
    r"|set-?airport-?network|user[ \t]+\S+[ \t]+using|logon|obscure)\b"
    r"(?P<rest>[^\n|;&]{4,160})"
)
_OPTION_VALUE = re.compile(
    r"(?<![\w/-])(?:-{1,2}|/)(?P<name>[A-Za-z][\w-]{0,30})(?:[ \t]+|[:=])[\"']?(?P<value>[^\s\"'`\\"
    r"|<>]{6,128})(?=[\"'\s]|$)"
)
_GLUED = re.compile(r"(?<![\w-])-(?:p|hp|P|w)(?P<value>[^\s\"'`\\,-][^\s\"'`\\,]{6,64})(?=[\"'\s,]|$)")
_ARGUMENTS = re.compile(r"[\"']-{1,2}(?P<name>[A-Za-z][\w-]{0,30})[\"'],\s*[\"'](?P<value>[^\s\"']{4,200})[\"']")
_SECRET_LETTER = frozenset("pPwWkKaAxX")


def beside_logins(text: str, _key: str | None) -> Iterator[Hit]:
    """Find what is paired with a login, follows one by position, or is given to an option."""
    for match in _BESIDE_LOGIN.finditer(text):
        told = "@" in match["login"] or _LOGS_IN.search(text, max(0, match.start() - 30), match.start()) is not None
        formatted = re.fullmatch(r"\w+%\d{1,2}", match["value"]) is not None
        if (
            not formatted
            and unwordly(match["value"], told=told)
            and not re.search(r"(?i)sha\d|md5|base64|https?$|digest", match["login"])
        ):
            yield value_hit(match, "value", "flag", text)
    for match in _DSN.finditer(text) if "@" in text else ():
        if is_secret_value(match["value"], "strong", "password", exact=True):
            yield value_hit(match, "value", "url-password", text)
    for match in _SLASHED.finditer(text) if "@" in text else ():
        if unwordly(match["value"], told=True):
            yield value_hit(match, "value", "url-password", text)
    for match in _CHAP.finditer(text):
        if unwordly(match["value"], told=True):
            yield value_hit(match, "value", "assignment", text)
    for match in _PROTOCOL.finditer(text):
        group = str(match.lastgroup)
        if unwordly(match[group], told=True) or looks_random(match[group]):
            yield value_hit(match, group, "assignment", text)
    for match in _ACCOUNT_VERB.finditer(text):
        for word in re.finditer(r"[^\s\"']{5,64}", match["rest"]):
            if unwordly(word.group(), told=True):
                at = match.start("rest") + word.start()
                yield secret_hit(at, at + len(word.group()), "flag", text)
    for match in _OPTION_VALUE.finditer(text) if "-" in text or "/" in text else ():
        name = match["name"]
        told = (len(name) == 1 and name in _SECRET_LETTER) or name.lower().endswith(
            ("pw", "pass", "pwd", "cookie", "rp", "community")
        )
        told = told or (name == "c" and "snmp" in text[max(0, match.start() - 60) : match.start()])
        if unwordly(match["value"], told=told) or (
            name == "hashes" and re.fullmatch(r"[0-9a-f]{32}:[0-9a-f]{32}", match["value"])
        ):
            yield value_hit(match, "value", "flag", text)
    for match in _GLUED.finditer(text):
        if unwordly(match["value"]):
            yield value_hit(match, "value", "flag", text)
    for match in _ARGUMENTS.finditer(text):
        name = match["name"]
        told = len(name) == 1 and name in _SECRET_LETTER and unwordly(match["value"], told=True)
        if told or is_secret_value(match["value"], key_strength(name), name, exact=True):
            yield value_hit(match, "value", "flag", text)


# A call that opens something takes its password by position; so does a call named for a secret.
_OPENS = re.compile(
    r"\b[\w.:>-]*(?i:connect\w*|mysqli?|database|open\w*|begin|login\w*|log_in|sign_?in|auth\w*|client|session"
    r"|credentials?"
    r"|hmac(?:\.new)?|createhmac|sign|encrypt|decrypt|cipher\w*|fernet|sendline|send_keys|fill|type|pass\w*"
    r"|secret\w*"
    r"|token\w*|\w*pass(?:word)?|\w*secret|\w*token|\w*key|\w*search|\w*client|\w*api|\w*sdk|init\w*|configure"
    r"|setup)\(\s*(?P<arguments>[^\n]{6,300})"
)
_ARGUMENT = re.compile(r"(?P<quote>[\"'`])(?P<value>[^\"'`\n]{1,128})(?P=quote)")


def arguments(text: str, _key: str | None) -> Iterator[Hit]:
    """Find drawn and chosen values among the quoted arguments of such calls."""
    for call in _OPENS.finditer(text) if "(" in text else ():
        for place, one in enumerate(_ARGUMENT.finditer(text, *call.span("arguments"))):
            value = one["value"]
            if " " in value:
                continue
            keyed = place >= 1 or call.group().partition("(")[0].rpartition(".")[2] in (
                "init",
                "load",
                "configure",
                "setup",
            )
            if unwordly(value, told=place >= 1) or (keyed and HEXED.fullmatch(value)):
                yield value_hit(one, "value", "assignment", text)


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
    r"\b(?<!force-)(?:[\w-]*-token|login|auth|authenticate|activate|register|set-token|add-token|add-authtoken|authtoken"
    r"|configure|connect"
    rf"|enroll|unlock|unseal|join)(?:[ \t]+(?:token|key|agent|default|--?[\w-]+))*[ \t]+[\"']?"
    rf"(?P<value>{_DRAWN})(?=[\"'\s]|$)"
)
# A short option that takes a key, with a value that nobody types.
_OPTION = re.compile(
    rf"(?<![\w-])-(?:t|k|T|K|H|a|p|c)[ \t]+[\"']?(?P<value>{_UUID}|[0-9a-f]{{32,128}}"
    rf"|[A-Za-z0-9_-]{{24,}})(?=[\"'\s]|$)"
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
    r"|isakmp key|pre-shared key|wpa-psk|neighbor \S+ password|(?:tacacs|radius)\S*(?:[ \t]+\S+){0,6}?[ \t]+key|key \d+"
    r"|radius_secret|auth_pass|authkey|auth-user-pass|psk)(?:[ \t]+\d)?)[ \t]+[\"']?"
    r"(?P<value>[^\s\"';]{5,100})[\"']?[ \t]*;?[ \t]*(?:(?:RW|RO|rw|ro|address|hostname|role|privilege|level|view"
    r"|use-acl)\b[^\n]*)?[ \t]*$"
)


def logins(text: str, _key: str | None) -> Iterator[Hit]:
    """Find what stands beside a login, or after a verb, an option or a path that lets somebody in."""
    for match in _PAIR.finditer(text):
        if (
            is_mixed(match["value"])
            and is_password(match["value"])
            and not re.fullmatch(r"\d+(?:/\w+)?|\w+:\d+", match["value"])
        ):
            yield value_hit(match, "value", "flag", text)
    for match in _VERB.finditer(text):
        value = match["value"]
        hexed = re.fullmatch(rf"{_UUID}|[0-9a-f]{{32,}}", value)
        if hexed or (looks_random(value) and is_password(value, "token")):
            yield value_hit(match, "value", "flag", text)
    for match in _OPTION.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        hexed = re.fullmatch(rf"{_UUID}|[0-9a-f]{{32,}}", match["value"])
        # Hex after `-t` may be a tag or a task; only a command that talks to a service takes it for a key.
        named = "-" in match["value"]  # nobody tags an image or names a task by a UUID
        if (
            hexed
            and (named or re.search(r"(?i)https?://|upload|login|auth|record|report|deploy|publish|submit|token", line))
        ) or (not hexed and looks_random(match["value"])):
            yield value_hit(match, "value", "flag", text)
    for match in _TYPED.finditer(text):
        if password_shape(match["value"]) and is_password(match["value"]) and is_no_name(match["value"]):
            yield value_hit(match, "value", "flag", text)
    for match in _LINK.finditer(text) if "/" in text else ():
        if looks_random(match["value"]) or re.fullmatch(
            r"[0-9a-f]{32,}|(?=(?:.*\d){2})[a-z0-9]{24,32}", match["value"]
        ):
            yield value_hit(match, "value", "url-token", text)
    for match in _SIGNED.finditer(text):
        if any(map(str.isdigit, match["value"])):
            yield value_hit(match, "value", "header", text)
    for match in _DIRECTIVE.finditer(text):
        value = match["value"]
        chosen = is_mixed(value) and is_password(value)
        if (chosen or unwordly(value, told=True)) and not re.search(r"[(){}\[\]=]", value):
            yield value_hit(match, "value", "assignment", text)


# Calls that take a login and a password by position.
_CALL = re.compile(
    r"\b[\w.:>-]*(?i:connect\w*|PDO|mysqli?|login|log_in|signin|authenticate|auth|getConnection|createClient"
    r"|client|session|basic_?auth"
    r"|credentials?|ftp|smtp|imap\w*|ldap\w*|bind\w*|pymysql|dsn)\(\s*(?P<arguments>[^()\n]{8,300})\)"
)
_QUOTED_ARGUMENT = re.compile(r"[\"'](?P<value>[^\"'\n]{1,120})[\"']")


def positional(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the password that a call takes after a server and a login."""
    for call in _CALL.finditer(text):
        quoted = list(_QUOTED_ARGUMENT.finditer(text, *call.span("arguments")))
        for place, one in enumerate(quoted):
            value = one["value"]
            named = text[: one.start()].rstrip().endswith(("=", ":"))
            if (
                place >= 1
                and not named
                and len(value) >= 6
                and is_mixed(value)
                and is_password(value)
                and is_no_name(value)
            ):
                yield value_hit(one, "value", "assignment", text)


# Commands whose answer is a secret.
_TELLS = re.compile(
    r"(?i)initial-password|initialAdminPassword|get[ -]secrets?\b.*(?:jsonpath|template|base64|value|-o)"
    r"|get-secret-value|get-parameter\b.*decrypt"
    r"|print-(?:access|identity|refresh)-token|auth(?::|[ -])token|get-login-password|\bpass (?:show )?\w"
    r"|\bop read|\bop item get|find-(?:generic|internet)-password"
    r"|vault (?:kv get|read)\b.*-field|openssl rand|\bpwgen|\bapg\b|(?:generate|new|create|reset|rotate)[-_ :]?"
    r"(?:password|token|secret|key)\b|base64 (?:-d|--decode|-D)"
    r"|\b(?:token|secret|key|password|credential|passphrase)s?[ :_-](?:add|new|create|get|show|print|issue|generate"
    r"|reveal|rotate|reset|view)\b|\b(?:add|new|issue|mint|reveal|view|show|fetch|dump|print|reset|rotate|export)[ :_-]"
    r"(?:\w+[ _-]){0,2}(?:password|token|secret|key|credential|passphrase)s?\b"
    r"|secrets (?:get|versions access|show|read)|token (?:create|get|show|print)|terraform output -raw|sops -d"
    r"|ansible-vault (?:view|decrypt)|gpg -d"
    r"|\b(?:cat|type|less|head|tail|more|bat|Get-Content)\b[^|;]*(?:secret|pass|token|cred|auth|\.key|_key"
    r"|api[-_]?key|\.psk)"
    r"|\b(?:bw|gopass|lpass|keepassxc-cli|rbw|chezmoi|doppler|infisical|akeyless|conjur)[ \t]+(?:get|show|read"
    r"|cat|secret|generate)"
    r"|\bgenkey\b|\bgenpsk\b|\bkeygen\b|\bgen-?key\b|/dev/u?random|uuidgen.*token|echo [\"']?\$\{?\w*(?:PASS|TOKEN"
    r"|SECRET|KEY|PWD)|printenv \w*(?:PASS|TOKEN|SECRET|KEY|PWD)"
)


# A command that reads or makes something; what it reads must be named as a secret. Searches only mention it.
_READS = re.compile(
    r"(?i)\b(?:show|get|read|view|cat|print|reveal|dump|export|fetch|describe|decrypt|create|new|add|gen\w*|issue"
    r"|rotate"
    r"|reset|mint)\b"
)
_LOOKS_UP = re.compile(r"\b(?:git|grep|rg|ag|find|ls|sed|awk|sha\d+sum|md5sum|diff|pytest|npm|pip|cargo|make|test)\b")
# Words of an answer that are read one by one: cells of a table, values after a name.
_CELL = re.compile(r"[^\s│┃|\"',;]{8,128}")
_VALUE_LABEL = re.compile(r"(?i)(?:value|token|secret|key|password)[\s│┃|:=\"']+\Z")
_ISSUED = ("random", "drawn", "chosen", "hex")


def told_by_commands(command: str, output: str) -> list[str]:
    """Return the words that a command which prints secrets has answered: its one word, or each drawn one."""
    lines = [line.strip() for line in output.strip().splitlines() if line.strip()]
    told_to = _TELLS.search(command) or (
        _READS.search(command) and speaks_of_secrets(command) and not _LOOKS_UP.search(command)
    )
    if len(command) > 300 or not 0 < len(lines) <= 12 or not told_to:
        return []
    if len(lines) == 1 and " " not in lines[0]:
        word = lines[0].strip("\"'")
        issued = re.fullmatch(_UUID, word) is None or "token" in command
        drawn = is_mixed(word) or re.search(r"[a-z][A-Z].*[A-Z]", word) is not None
        return [word] if len(word) >= 8 and drawn and is_password(word) and issued else []
    told = []
    for line in lines:
        for match in _CELL.finditer(line):
            word, alone = match.group().rstrip(".:"), match.group() == line.strip("\"'")
            if re.fullmatch(_UUID, word):
                issued = _VALUE_LABEL.search(line, 0, match.start()) is not None
            elif alone:
                issued = unwordly(word, told=True) or HEXED.fullmatch(word) is not None
            else:
                issued = shape_of(word) in _ISSUED and not is_public_before(line, match.start())
            if issued:
                told.append(word)
    return told
