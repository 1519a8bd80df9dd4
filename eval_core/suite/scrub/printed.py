"""Accounts, hosts and people where tools and systems print them: prompts, listings, logs, headers, configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.generic_names import is_generic
from eval_core.suite.scrub.hits import Hit

__all__ = ["is_person_name", "printed", "printed_in_json"]

_USER = r"[A-Za-z_][\w.-]{1,31}"
_HOST = r"[A-Za-z0-9][\w-]{1,62}(?:\.[A-Za-z0-9][\w-]*)*"
_WORD = r"[A-ZÀ-ÞА-Я][\w'’À-ɏ-]*[^\W\d_]"
_PERSON = rf"{_WORD}(?: (?:[A-ZÀ-Þ]\.|van|von|de|del|der|da|di|la|le|el|bin|al|{_WORD})){{0,3}} {_WORD}"
_STAMP = r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?)"
_DAEMON = (
    r"(?:sshd|sudo|su|systemd|kernel|cron|CRON|crond|dockerd|containerd|kubelet|NetworkManager|dbus-daemon|login|rsyslogd"
    r"|dhclient|audit|auditd|postfix/\w+|dovecot|named|ntpd|chronyd|snapd|polkitd|gdm|launchd|nginx|haproxy)"
)
_COMMAND = r"(?:^|[$>#%❯➜] ?)"

# Each says where one of the groups user, host or name stands; forms of one program stand together.
_PLACES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # Shell prompts, with and without brackets and an environment's name in front.
        rf"^(?:\([^)\n]{{1,40}}\) ?)?\[?(?P<user>{_USER})@(?P<host>{_HOST})(?=[: \]~][^\n]{{0,80}}?[$#%>](?:\s|$))",
        rf"┌──\((?P<user>{_USER})[㉿@💀](?P<host>{_HOST})\)",
        # Commands whose whole output is the name.
        (
            rf"{_COMMAND}(?:whoami|id -un|logname|echo \$(?:USER|LOGNAME)|echo %USERNAME%)\s*\n(?:[\w-]+\\)?"
            rf"(?P<user>{_USER})\r?$"
        ),
        rf"{_COMMAND}(?:hostname(?: -[sf])?|uname -n|echo \$HOSTNAME|echo %COMPUTERNAME%)\s*\n(?P<host>{_HOST})$",
        rf"\b(?:Static|Transient|Pretty) hostname: (?P<host>{_HOST})",
        rf"^(?:Linux|Darwin|FreeBSD|OpenBSD|NetBSD|SunOS) (?P<host>{_HOST}) \d+\.\d",
        # Users and groups of the system.
        rf"\b(?:uid|gid|euid|groups)=\d+\((?P<user>{_USER})\)",
        rf"(?<=\d\()(?P<user>{_USER})\),\d+\(",
        rf"^[-dlbcps][rwxsStT-]{{9}}[.+@]?\s+\d+\s+(?P<user>{_USER})\s+[\w.-]+\s+\d",
        rf"^[-dlbcps][rwxsStT-]{{9}}[.+@]?\s+\d+\s+[\w.-]+\s+(?P<user>{_USER})\s+\d",
        rf"^(?P<user>{_USER}):[x*!]*:(?:[5-9]\d\d|[1-5]?\d{{4}}):\d+:(?P<name>[^:,\n]*)[^:\n]*:/[^:\n]*:/",
        rf"^(?P<user>{_USER})\s+(?:pts/\d+|tty\w+|console|:\d+)\s",
        rf"^{_USER}\s+(?:pts/\d+|tty\w+|console|:\d+)\s[^\n]{{0,60}}\((?P<host>{_HOST})\)",
        rf"^{_USER}\s+(?:pts/\d+|tty\w+)\s+(?P<host>[A-Za-z]{_HOST})\s+[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} ",
        # The table of `ps aux`: five numbers follow the owner, or the header says so.
        rf"^(?P<user>{_USER})\s+\d+\s+\d+\.\d\s+\d+\.\d\s",
        rf"\bLogged in (?:to \S+ )?(?:as|account) (?P<user>{_USER})\b",
        # Commands that name an account, and what they answer.
        rf"\b(?:chown|chgrp)\s+(?:-\w+\s+)*(?P<user>{_USER})(?=[:\s])",
        (
            r"\b(?:sudo -u|su -l?|su|runuser -u|usermod|useradd|userdel|adduser|passwd|chsh|finger|getent passwd"
            rf"|crontab -u|loginctl \S+)\s+(?:-{{1,2}}\w+\s+(?:/?[\w/,]+\s+)??)*(?P<user>{_USER})(?=\s|$)"
        ),
        rf"\b(?:password|crontab|account|mail|home directory) for (?P<user>{_USER})(?=[:.\s]|$)",
        rf"\b(?:[Oo]f|[Ff]or|[Bb]y|[Aa]s) [Uu]ser '?(?P<user>{_USER})|^(?P<user2>{_USER}) is not in the sudoers file",
        rf"[( ]\d{{3,5}}/\s*(?P<user>{_USER})\)|^[-dl][rwxsStT-]{{9}}\s+(?P<user2>{_USER})/[\w.-]+\s+\d",
        rf"^User name\s{{2,}}(?P<user>{_USER})|^Full Name\s{{2,}}(?P<name>{_PERSON})",
        # Names of machines in private zones and in the system's own table.
        (
            r"(?<![\w.@/-])(?P<host>[A-Za-z][\w-]{2,62})\.(?:lan|home|intranet|corp|fritz\.box|home\.arpa|localdomain)"
            r"(?![\w(-]|\.\w)"
        ),
        rf"^(?:\d{{1,3}}\.){{3}}\d{{1,3}}\s+(?:[\w.-]+\s+)??(?P<host>[A-Za-z]{_HOST})(?:\s|$)",
        (
            r"\b(?:[Rr]esolve host(?:name)?|[Cc]onnect to host|PING|nslookup|traceroute to|known host)\s+"
            rf"(?P<host>[A-Za-z]{_HOST})"
        ),
        # The environment.
        rf"\b(?:USER|LOGNAME|USERNAME|SUDO_USER|RUNNER_USER|LC_USER|REMOTE_USER)=[\"']?(?P<user>{_USER})[\"']?\r?$",
        rf"\b(?:HOSTNAME|COMPUTERNAME|HOST|NODENAME|USERDOMAIN)=[\"']?(?P<host>[A-Za-z]{_HOST})[\"']?\r?$",
        rf"\bHOME=(?:/\w+){{0,3}}/(?:home|users|Users)/(?P<user>{_USER})$",
        # Logs of the system.
        rf"^{_STAMP} (?P<host>{_HOST}) {_DAEMON}(?:\[\d+\])?:",
        rf"^[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d (?P<host>{_HOST}) [\w./-]+\[\d+\]:",
        rf"\b(?:Accepted|Failed) \w+ for (?:invalid user )?(?P<user>{_USER}) from\b",
        rf"\bsession (?:opened|closed) for user (?P<user>{_USER})|\bNew session \S+ of user (?P<user2>{_USER})",
        rf"\bsudo(?:\[\d+\])?:\s+(?P<user>{_USER}) : ",
        rf"\bCRON\[\d+\]: \((?P<user>{_USER})\) CMD",
        # Remote shells and copies, and their configuration.
        rf"\b(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id|sshfs)\b[^\n|;&]{{0,80}}?\s(?P<user>{_USER})@(?P<host>{_HOST})\b",
        rf"^Host (?P<host>[A-Za-z]{_HOST})$|^\s+User (?P<user>{_USER})$",
        rf"\bssh://(?P<user>{_USER})@(?P<host>{_HOST})",
        # Version control.
        r"^\^?[0-9a-f]{7,40} (?:\S+ +)?\((?P<name>[^()\n]{2,40}?) +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
        rf"^ +\d+\t(?P<name>{_PERSON})(?: <|$)",
        r"\(\d+ (?:second|minute|hour|day|week|month|year)s? ago\) <(?P<name>[^<>@\n]{2,40})>",
        r"^\[user\]\s*\n(?:\s+\w+ = [^\n]*\n)*?\s+name = (?P<name>[^\n]{2,40})$",
        rf"\buser\.name[= ]+[\"']?(?P<name>{_PERSON})",
        rf"^\s*[A-Z][a-z]+(?:-[a-z]+)*-by: (?P<name>{_PERSON})",
        # A repository's owner is a person or a company; only a fork, and a copy by SSH, tell that it is the former.
        rf"\b(?:github|gitlab|bitbucket|codeberg)\.(?:com|org)/(?P<user>{_USER})/[\w.-]+-fork\b",
        rf"\bgit@[\w.-]+:(?P<user>{_USER})/[\w.-]+\.git\b",
        # Headers of mail, of packages and of issues.
        (
            rf"^(?:From|To|Cc|Bcc|Reply-To|Sender|Maintainer|Uploaders|Packager|Author|Assignee|Reporter|Reviewer|Owner|Creator"
            rf"|Requester|Contact):[ \t]+[\"']?(?P<name>{_PERSON})[\"']?(?=\s*(?:<|$|,|\())"
        ),
        rf"\b(?:assigned|reassigned|delegated|escalated) to (?P<name>{_PERSON})\b",
        rf"\bauthors?\s*=\s*\[?\s*[{{\"']+\s*(?:name\s*=\s*[\"'])?(?P<name>{_PERSON})",
        rf"(?i:copyright|\(c\)|©)(?: \(c\))? \d{{4}}(?:-\d{{4}})?,? (?P<name>{_PERSON})\s*$",
        (
            r"(?im:(?:^|[;,{(#/*\s\"'])(?:[\w.]*\.)?(?:contacts?|attendees?|participants?|present|organi[sz]er|speakers?"
            r"|cn|fn|full[ _]?name|real[ _]?name|display[ _]?name|maintainers?|authors?|written by|created by"
            r"|owner|approver"
            r"|approved by|on[- ]?call|reviewed by|signed|customer|patient|employee|manager|lead|action|todo|assignee)"
            r"\s?[:=(]\s?[\"']?)"
            rf"(?P<name>{_PERSON})(?=[\"',;:)<\s]|$)"
        ),
        rf"(?<![\w.])(?P<name>{_PERSON})[\"']?\s<[^<>\s]+@[^<>\s]+>",
        (
            r"\b(?i:hi|hello|hey|dear|hallo|liebe[r]?|guten tag|bonjour|cher|chère|hola|estimad[oa]|ciao|olá) "
            rf"(?P<name>{_PERSON})\b"
        ),
        rf"^\[?(?:\d{{4}}-\d\d-\d\d )?\d\d?:\d\d(?::\d\d)?\]? <?(?P<name>{_PERSON})>?:",
        rf"^(?P<name>{_PERSON}) +\d\d?:\d\d",
        rf"\b(?P<name>{_PERSON})['’]s? (?:MacBook|iMac|iPhone|iPad|Mac|PC|Laptop|Computer|Desktop)\b",
        # What people call themselves and each other.
        (
            rf"\b(?i:my name is|this is|i am|i'm|ich bin|mein name ist|je m'appelle|je suis|me llamo|soy) "
            rf"(?P<name>{_PERSON})\b"
        ),
        (
            rf"(?i:\b(?:best regards|kind regards|regards|best wishes|best|cheers|thanks|thank you|sincerely"
            rf"|viele grüße|mit freundlichen grüßen|beste grüße|cordialement|saludos|un saludo|atentamente)),?[ \t]*\n+"
            rf"[ \t]*(?P<name>{_PERSON}|{_WORD})[ \t]*$"
        ),
        (
            r"(?<![\w@/.`])@(?P<user>[a-z][a-z0-9]*[._]?[a-z0-9]+)"
            r"(?= (?:can|could|please|will|would|wdyt|fyi|has|is|said|asked)\b)"
        ),
        rf"\b(?:cc|CC|ping|thanks|ask|assignee|reviewer|owner)[: ]+@(?P<user>{_USER})",
        # Accounts in the configuration of clusters and registries.
        rf"^users:\s*\n\s*- name: (?P<user>{_USER})$|\bLogin Succeeded, (?P<user2>{_USER})",
        (
            r"(?im:(?:^\s*|[{,\"']\s*)(?:first|given|last|family)[_ ]?name[\"']?\s*[:=]\s*[\"']?)"
            rf"(?P<name>{_WORD})(?=[\"',\s]|$)"
        ),
    )
)
_ABOUT_A_PERSON = re.compile(
    r"\"(?:login|email|emailAddress|username|user_name|avatar_url|avatar|company|bio|accountId|displayName|full_name"
    r"|given_name|firstName|first_name|author|committer|assignee|reporter|active)\"\s*:"
)
_NAME_FIELD = re.compile(
    r"\"(?:name|displayName|display_name|full_name|fullName|real_name|author|assignee|reporter|owner|creator|reviewer)\""
    rf"\s*:\s*\"(?P<name>{_PERSON})\""
)
_COLUMN_NAME = re.compile(r"[A-Z%][A-Z%_()/+-]*")
_OBJECT = re.compile(r"\{[^{}]{0,2000}\}")
_AUTHOR_OBJECT = re.compile(rf"\"(?:author|authors|maintainer|maintainers|contributors|committer)\"\s*:\s*\[?\s*\{{"
                            rf"[^{{}}]{{0,300}}?\"name\"\s*:\s*\"(?P<name>{_PERSON})\"")  # fmt: skip
_BUSINESS_WORDS = (
    "inc ltd gmbh llc corp corporation company foundation authors contributors team project group labs software "
    "systems technologies services service server bot ci api the and for of open source apache google microsoft amazon "
    "github gitlab linux kernel ubuntu debian python rust java node docker release build test tests main master branch "
    "support admin administrator root user users system unknown none null platform engineering security operations "
    "institute contributor author reviewer maintainer developer someone somebody example "
    "university department office committee community maintainers developers best practices"
)
_NOT_A_PERSON = frozenset(_BUSINESS_WORDS.split())
_SYSTEM_HOSTS = re.compile(
    r"(?:localhost|localdomain|ip6-.*|host\d*|info|debug|warn|warning|error|fatal|trace|notice|server|client|db|web|app|api"
    r"|cache|node|worker|master|primary|replica|runner|build|ci|docker|[a-f0-9]{12}|(?:\d+\.)+\d+|.*\.example(?:\.\w+)?"
    r"|.*\.(?:py|js|ts|go|rs|sh|md|json|ya?ml|toml)|github\.com|gitlab\.com|bitbucket\.org|workgroup|corp|kernel|root)",
    re.I,
)
_SYSTEM_USERS = re.compile(
    r"(?:_\w+|systemd-\S+|[\w-]+-data|messagebus|syslog|sshd|uuidd|tss|kernel|rtkit|polkitd|corp|everyone|here|channel"
    r"|pytest|dataclass|media|types|property|staticmethod|param|return|import|USER|PID|total|admin\w*|kube\S*|system\S*)",
    re.I,
)


def is_person_name(text: str) -> bool:
    """Tell a person's name from a company's, a team's or a title, as far as its words show it."""
    words = [word.strip(".'’").lower() for word in text.split()]
    return not any(word in _NOT_A_PERSON for word in words) and not re.fullmatch(r"Person\d+", text.strip())


def _hit(match: re.Match[str], group: str) -> Hit | None:
    kind = group.rstrip("2")
    value = match.group(group)
    bare = value.strip().rstrip(".-,")
    start = match.start(group) + value.index(bare) if bare else match.start(group)
    if len(bare) < 2 or is_generic(bare):
        return None
    if kind == "name" and not is_person_name(bare):
        return None
    if kind == "host" and (_SYSTEM_HOSTS.fullmatch(bare) or len(bare) < 3):
        return None
    if kind == "user" and (_SYSTEM_USERS.fullmatch(bare) or bare.isdigit()):
        return None
    return Hit(start, start + len(bare), f"printed-{kind}", kind, bare.lower())


def _column(text: str) -> Iterator[Hit]:
    """Find accounts in tables whose header, all in capitals, names a column for them."""
    offset, at = 0, None
    for line in text.splitlines(keepends=True):
        words = list(re.finditer(r"\S+", line))
        names = [word.group() for word in words]
        if len(names) > 2 and all(_COLUMN_NAME.fullmatch(name) for name in names):
            at = next((names.index(name) for name in ("USER", "OWNER") if name in names), None)
        elif at is not None and len(words) > at:
            if hit := _account(words[at], offset):
                yield hit
        else:
            at = None
        offset += len(line)


def _account(word: re.Match[str], offset: int) -> Hit | None:
    name = word.group()
    if not re.fullmatch(_USER, name) or is_generic(name) or _SYSTEM_USERS.fullmatch(name):
        return None
    return Hit(offset + word.start(), offset + word.end(), "printed-user", "user", name.lower())


def printed(text: str, _key: str | None) -> Iterator[Hit]:
    """Find accounts, hosts and people at the places where programs print them."""
    yield from _column(text)
    for pattern in _PLACES:
        for match in pattern.finditer(text):
            for group, value in match.groupdict().items():
                if value and (hit := _hit(match, group)):
                    yield hit


def printed_in_json(text: str) -> Iterator[Hit]:
    """Find people in JSON records about persons; their places are those of the record, not of a readable piece."""
    for match in _AUTHOR_OBJECT.finditer(text):
        if hit := _hit(match, "name"):
            yield hit
    for record in _OBJECT.finditer(text) if '"' in text else ():
        if _ABOUT_A_PERSON.search(record.group()):
            for match in _NAME_FIELD.finditer(text, record.start(), record.end()):
                if hit := _hit(match, "name"):
                    yield hit
