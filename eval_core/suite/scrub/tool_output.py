"""Names of accounts, hosts and people in the output of tools: prompts, listings, logs, headers, configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.named_fields import PERSON, SERVICE_LABEL
from eval_core.suite.scrub.ordinary_words import (
    UPPER,
    is_calendar,
    is_foreign_word,
    is_generic,
    is_given_name,
    is_ordinary,
    is_person_name,
    is_proper_noun,
    is_role_or_state,
    is_service_host,
    is_surname,
    is_technical,
)

__all__ = ["formatted_names", "printed", "printed_in_json", "said_by_commands"]

_USER = r"[A-Za-z_][\w.-]{1,31}"
_HOST = r"[A-Za-z0-9][\w-]{1,62}(?:\.[A-Za-z0-9][\w-]*)*"
_WORD = rf"[{UPPER}][\w'’-]*[^\W\d_]"
_PERSON = PERSON
_STAMP = (
    r"(?:[A-Za-zà-ÿ]{3,5}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?)"
)
_DAEMON = (
    r"(?:sshd|sudo|su|systemd|kernel|cron|CRON|crond|dockerd|containerd|kubelet|NetworkManager|dbus-daemon|login"
    r"|rsyslogd"
    r"|dhclient|audit|auditd|postfix/\w+|dovecot|named|ntpd|chronyd|snapd|polkitd|gdm|launchd|nginx|haproxy)"
)
_COMMAND = r"(?:^|[$>#%❯➜] ?)"

# Each says where one of the groups user, host or name stands; forms of one program stand together.
_PLACES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # Shell prompts, with and without brackets and an environment's name in front.
        rf"^(?:\([^)\n]{{1,40}}\) ?)?\[?(?P<user>{_USER})@(?P<host>{_HOST})(?=[: \]~][^\n]{{0,80}}?[$#%>](?:\s|$))",
        # Commands whose whole output is the name.
        (
            rf"{_COMMAND}(?:(?:[\w-]+ ){{0,2}}whoami|id -un|logname|(?:echo|printenv) [\"']?\$?%?(?:USER|LOGNAME"
            rf"|USERNAME)%?[\"']?)\s*\n(?:[\w.-]+\\)?"
            rf"(?P<user>{_USER})\r?$"
        ),
        (
            rf"{_COMMAND}(?:hostname(?: -\w+)*|uname -n|(?:echo|printenv) [\"']?\$?%?(?:HOSTNAME|HOST"
            rf"|COMPUTERNAME)%?[\"']?"
            rf"|scutil --get \w+)\s*\n(?P<host>{_HOST})$"
        ),
        rf"^(?:Linux|Darwin|FreeBSD|OpenBSD|NetBSD|SunOS) (?!version )(?P<host>{_HOST}) \d+\.\d",
        # Users and groups of the system.
        rf"^[-dlbcps][rwxsStT-]{{9}}[.+@]?\s+\d+\s+(?P<user>{_USER})\s+[\w.-]+\s+\d",
        (
            rf"^(?P<user>{_USER}):[x*!]*:(?:[5-9]\d\d|[1-5]?\d{{4}}):\d+:(?P<name>[^:,\n]*)[^:\n]*:/[^:\n]*:/"
            r"(?![^\n]*(?:nologin|/false)\b)"
        ),
        rf"^(?P<user>{_USER})\s+(?:pts/\d+|tty\w+|console|:\d+)\s",
        # The table of `ps aux`: five numbers follow the owner, or the header says so.
        rf"\bLogged in (?:to \S+ )?(?:as|account) (?P<user>{_USER})\b",
        # Commands that name an account, and what they answer.
        rf"\b(?:chown|chgrp)\s+(?:-\w+\s+)*(?P<user>{_USER})(?=[:\s])",
        (
            r"\b(?:sudo -u|su -l?|su|runuser -u|usermod|useradd|userdel|adduser|passwd|chsh|finger|getent passwd"
            rf"|crontab -u|loginctl \S+)\s+(?:-{{1,2}}\w+\s+(?:/?[\w/,]+\s+)??)*(?P<user>{_USER})(?=\s|$)"
        ),
        rf"\b(?:[Oo]f|[Ff]or|[Bb]y|[Aa]s) [Uu]ser '?(?P<user>{_USER})|^(?P<user2>{_USER}) is not in the sudoers file",
        rf"[( ]\d{{3,5}}/\s*(?P<user>{_USER})\)|^[-dl][rwxsStT-]{{9}}\s+(?P<user2>{_USER})/[\w.-]+\s+\d",
        # Names of machines in private zones and in the system's own table.
        (
            r"(?<![\w.@/-])(?P<host>[A-Za-z][\w-]{2,62})(?:\.[A-Za-z][\w-]{1,30})?(?<!docker)(?<!google)(?<!compute)(?<!cluster)(?<!svc)\.(?:lan|local|internal|home|intranet|corp|fritz\.box|home\.arpa"
            r"|localdomain)"
            r"(?![\w(-]|\.\w)"
        ),
        rf"^(?:\d{{1,3}}\.){{3}}\d{{1,3}}\s+(?:[\w.-]+\s+)??(?P<host>[A-Za-z]{_HOST})(?:\s|$)",
        (
            r"\b(?:[Rr]esolve host(?:name)?|[Cc]onnect to host|PING|nslookup|traceroute to|known host)\s+"
            rf"(?P<host>[A-Za-z]{_HOST})"
        ),
        # Logs of the system.
        rf"^{_STAMP} (?P<host>{_HOST}) {_DAEMON}(?:\[\d+\])?:",
        rf"^[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d (?P<host>{_HOST}) [\w./-]+\[\d+\]:",
        rf"\bsudo(?:\[\d+\])?:\s+(?P<user>{_USER}) : ",
        rf"\bCRON\[\d+\]: \((?P<user>{_USER})\) CMD",
        # Remote shells and copies, and their configuration.
        rf"\b(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id|sshfs)\b[^\n|;&]{{0,80}}?\s(?P<user>{_USER})@(?P<host>{_HOST})\b",
        rf"^Host (?P<host>[A-Za-z]{_HOST})$|^\s+User (?P<user>{_USER})$|^\s+HostName (?P<host2>[A-Za-z]{_HOST})$",
        (
            r"(?<![\w.-])(?P<host>[a-z][\w-]{2,62})\.(?:duckdns\.org|dyndns\.\w+|ddns\.net|no-ip\.\w+|myds\.me|synology\.me"
            r"|myfritz\.net|hopto\.org|zapto\.org)\b"
        ),
        # Databases and stores that a cloud calls by their owner's name for them.
        (
            r"(?<![\w.-])(?P<host>[\w-]+(?:\.[\w-]+){0,3}\.(?:rds\.amazonaws\.com|cache\.amazonaws\.com"
            r"|redshift\.amazonaws\.com|database\.windows\.net|servicebus\.windows\.net|blob\.core\.windows\.net"
            r"|vault\.azure\.net|redis\.cache\.windows\.net|azurecr\.io|mongodb\.net|snowflakecomputing\.com"
            r"|ondigitalocean\.com|upstash\.io|neon\.tech|supabase\.co))(?![\w.-])"
        ),
        # The branch of somebody in a list of pull requests.
        r"[ \t]{2,}(?P<branch>[a-z][a-z0-9._-]{2,31})/[\w.-]+[ \t]{2,}",
        rf"\bssh://(?P<user>{_USER})@(?P<host>{_HOST})",
        # A repository's owner is a person or a company; only a fork, and a copy by SSH, tell that it is the former.
        rf"\bgit@[\w.-]+:(?P<user>{_USER})/[\w.-]+\.git\b",
        # Headers of mail, of packages and of issues.
        (
            r"(?im:(?:^|[;,{(#/*\s\"'])(?:[\w.]*\.)?(?:contacts?|attendees?|participants?|present|organi[sz]er"
            r"|speakers?"
            r"|cn|fn|full[ _]?name|real[ _]?name|display[ _]?name|maintainers?|authors?|written by|created by"
            r"|owner|approver"
            r"|approved by|on[- ]?call|reviewed by|signed|customer|patient|employee|manager|lead|action|todo|assignee)"
            r"\s?[:=(]\s?[\"']?)"
            rf"(?P<maybe>{_PERSON})(?=[\"',;:)<\s]|$)"
        ),
        rf"(?<![\w.])(?P<name>{_PERSON})[\"']?\s<[^<>\s]+@[^<>\s]+>",
        # What people call themselves and each other.
        (
            rf"(?i:\b(?:best regards|kind regards|regards|best wishes|best|cheers|thanks|thank you|sincerely"
            rf"|viele grüße|mit freundlichen grüßen|beste grüße|cordialement|saludos|un saludo|atentamente)),?[ \t]*\n+"
            rf"[ \t]*(?P<name>{_PERSON}|{_WORD})[ \t]*$"
        ),
        # What people say of each other, with and without a title.
        (
            r"\b(?i:Dr|Prof|Mr|Mrs|Ms|Mx|Herr|Frau|Mme|Monsieur|Madame|Señor|Señora|Sra?|Sig|Hr|Fr|Pan|Pani)\.? "
            rf"(?P<maybe>{_PERSON}|{_WORD})\b"
        ),
        (
            rf"(?<![\w.-])(?P<maybe>{_PERSON}) (?:asked|said|says|told|agreed|wrote|mentioned|suggested"
            rf"|approved|reported"
            r"|confirmed|requested|wants|wanted|thinks|knows|replied|commented|noticed|called|emailed|joined"
            r"|left|decided"
            r"|reviewed|merged|committed|pushed|promised|complained|prefers|insists|schrieb|sagt|hat|écrit|dit"
            r"|escribió)\b"
        ),
        (
            r"(?im:^(?:hi|hello|hey|dear|hallo|hej|hei|liebe[r]?|guten tag|bonjour|salut|cher|chère|hola"
            r"|estimad[oa]|querid[oa]"
            r"|ciao|gentile|olá|oi|prezad[oa]|kære|kjære|bästa|beste|drogi|droga|witaj|ahoj|moi|merhaba|sayın|szia)) "
            rf"(?P<maybe>{_PERSON}|{_WORD})(?=[,:!]|\.$|$)"
        ),
        (
            r"\b(?i:my name is|i am|i'm|ich bin|ich heiße|mein name ist|je m'appelle|je suis|me llamo|soy"
            r"|mi chiamo|jag heter"
            r"|jeg heter|jeg hedder|mijn naam is|ik ben|nazywam się|meu nome é|me chamo|olen|benim adım) "
            rf"(?P<maybe>{_PERSON}|{_WORD})\b"
        ),
        # Lines of mail, chat and change logs that begin or end with their writer.
        (
            rf"^(?:\[?\d\d:\d\d(?::\d\d)?\]? )?<[@+~ ]?(?P<user>{_USER})> |(?:-!-|\*\*\*"
            rf"|-->) (?P<user2>{_USER}) (?:\[|\(|has |is )"
        ),
        rf"^(?P<user>{_USER}) [—–-] (?:Today|Yesterday|\d\d?[/.]\d\d?[/.]\d{{2,4}}) ",
        rf"[@\\]author:? +(?P<name>{_PERSON})|\b(?:TODO|FIXME|XXX|HACK|NOTE)\((?P<login>{_USER})\)",
        rf"^\[?(?:\d{{4}}-\d\d-\d\d )?\d\d?:\d\d(?::\d\d)?\]? <?(?P<name>{_PERSON})>?:",
        (
            r"\b(?i:according to|asked|ask|told|tell|ping|contact|thanks to|thank|approved by|reported by"
            r"|reviewed by|owned by"
            r"|written by|started by|created by|triggered by|requested by|deployed by|by user|sent by"
            r"|signed by|merged by"
            rf"|on behalf of|instead of|introduced by|handed to|from|by) (?:user )?(?P<maybe>{_PERSON})\b"
        ),
        rf"^Received: from (?P<host>{_HOST})|\b(?:EHLO|HELO|helo=|ehlo=)[ <]?(?P<host2>{_HOST})",
        # Accounts in quotes, in domains, in resource names and in links to profiles.
        (
            rf"\b(?i:user|role|login|account|as|username)(?: name)? [\"'‘“"
            rf"](?P<user>{_USER})[\"'’”](?:@[\"'](?P<host>{_HOST})[\"'])?"
        ),
        (
            rf"(?<![\w\\:/.$-])(?<!NT )(?!BUILTIN)[A-Z][A-Z0-9-]{{1,14}}\\{{1,2}}"
            rf"(?P<user>[A-Za-z]{_USER})(?=[:\s\"',;)]|$)"
        ),
        rf"\barn:aws[\w-]*:(?:iam|sts)::\d*:(?:user|assumed-role/[\w+=,.@-]+)/(?:[\w-]+/)*(?P<user>{_USER})",
        rf"(?:/users/|\\(?:home\$?|profiles\$?|users\$?)\\{{1,2}})(?P<user>[A-Za-z]{_USER})(?=[/\\\s\"']|$)",
        rf"(?<![\w/~])~(?P<user>[a-z]{_USER})(?=/)",
        rf"(?:^|[\s\"']|origin/)(?:users|people|personal)/(?P<user>[a-z]{_USER})/(?=[\w-])",
        (
            r"(?<![\w.@/+-])(?P<user>[a-z][\w.]{2,31})@(?P<host>[a-zA-Z][a-z0-9]*(?:-[a-z0-9]+)+|[a-zA-Z]{3,}\d{2,})"
            r"(?![\w@-]|\.\w)"
        ),
        # Machines as the system, scanners and clients name them.
        rf"^(?P<machine>{_HOST})(?=[ \t]+(?:ansible_\w+|[a-z_]+_host)=)",
        (
            rf"\b(?P<maybe>{_PERSON}|{_WORD})['’]s? (?:MacBook|iMac|iPhone|iPad|Mac|PC|Laptop|Computer|Desktop"
            rf"|AirPods|Pixel|Galaxy"
            r"|Watch|Kindle|Phone|Tablet|ThinkPad|Surface)\b"
        ),
        (
            rf"\b(?:iPhone|iPad|MacBook(?: (?:Pro|Air))?|iMac|Galaxy(?: [A-Z]?\d+\w*)?|Pixel(?: \d\w*)?|AirPods|Xperia"
            rf"|Redmi(?: \w+)?)[ -](?:de|da|do|di|van|von|af|av|od|de la)[ -](?P<strange>{_WORD})"
        ),
        rf"://(?P<login>{_USER}):[^@/\s]{{6,200}}@",
        # Handles of messengers and networks.
        (
            r"(?i:\b(?:signal|telegram|skype|discord|wechat|weixin|line id|kakao(?:talk)?|viber|threema|instagram|insta"
            r"|snapchat|tiktok|mastodon|matrix|twitter|github|gitlab|xing)(?: (?:id|handle|name|user(?:name)?"
            r"|account|nick))?"
            r"(?: is|[:：=]| (?=@))|微信号?[:：]|(?:라인|카톡)(?: ?아이디)?[:：]) ?@?(?P<handle>[A-Za-z][\w.-]{3,31}\w)"
        ),
        # Logs and mail of servers, with the machine or the account that they speak of.
        rf"^<\d{{1,3}}>\d? ?{_STAMP} (?P<host>{_HOST}) \S",
        r"(?<![\w\\])\\\\{1,3}(?P<host>[A-Za-z][\w-]{2,62})\\{1,2}(?=[\w$])",
        (
            rf"\bssh-remote(?:\+|%2[Bb])(?P<host>{_HOST})|\b(?:nfs|smb|cifs|vnc|rdp|sftp|afp)://(?:{_USER}@)?"
            rf"(?P<host2>[A-Za-z]{_HOST})"
        ),
        # Commands that make or name an account.
        (
            rf"\b(?:useradd|adduser|usermod)\b[^\n]*?(?:-c|--comment|--gecos)[ =][\"']"
            rf"(?P<name>{_PERSON})[\"'][^\n]*?(?P<user>{_USER})$"
        ),
        # Branches that carry their owner's name.
        (
            r"(?:\b[Bb]ranch(?:es)? ['\"]?|\borigin/|\bcheckout (?:-b )?|\bswitch (?:-c )?|\bfrom |\binto "
            r"|refs/heads/|^[*+ ] )"
            r"(?P<branch>[a-z][a-z0-9._-]{2,31})/(?=[\w-]+)"
        ),
        # Who did it, in the words of forges and deployers; people and accounts alike.
        (
            r"\b(?i:deployed|approved|merged|reviewed|triggered|requested|reported|assigned|authored|uploaded"
            r"|signed|committed|reverted"
            r"|started|submitted|opened|closed|resolved|escalated|acknowledged|initiated|pushed|edited|invited|locked)"
            r" (?i:by|to)[: ](?:user )?@?(?P<login>[a-z][a-z0-9]*[._-]?[a-z0-9]+)(?=[\s,.;:)\"']|$)"
        ),
        # Accounts and machines in the output of more tools.
        rf"^\s*(?:\d+\s+){{1,3}}[-dlbcps][rwxsStT-]{{9}}[.+@]?\s+\d+\s+(?P<user>{_USER})\s+(?P<user2>{_USER})\s+\d",
        (
            rf"^(?:root|postmaster|abuse|webmaster|hostmaster|security|mailer-daemon|operator|www|ftp): +"
            rf"(?P<login>[a-z]{_USER})$"
        ),
        rf"^\[?(?P<host>[A-Za-z]{_HOST})\]?(?::\d+)?(?:,\S+)? (?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\S+) AAAA",
        rf"\b(?:DHCP[A-Z]+|lease|leased)\b[^\n]*?\((?P<host>[A-Za-z]{_HOST})\)",
        r"(?<![\w/#.])(?P<login>[a-z][\w.]{2,31})#\d{4}(?!\d)",
        r"^\s*(?P<host>[A-Z][A-Z0-9-]{2,14})\s+<[0-9A-F]{2}>\s+(?:UNIQUE|GROUP)",
        (
            rf"\b(?:Welcome to|[Rr]emotely on|scan report for|Connection to|Connected to|Connecting to"
            rf"|Logged in(?:to)?(?: on)?|Host|Resolved"
            rf"|Reconnecting to) (?P<machine>{_HOST})(?= (?:\(|closed|as|to)|[.!,]?$)"
        ),
        (
            r"(?<![\w.@/+:-])(?P<login>[a-z][\w.-]{2,31})@(?P<machine>(?!latest\b|next\b|beta\b|alpha\b|canary\b"
            r"|sha\d|stable\b|v?\d|localhost\b|workspace\b|npm\b|file\b|HEAD\b)[a-zA-Z][\w-]{2,62})(?=[:\s,;)\"']|$)"
        ),
        (
            rf"^(?P<host>[A-Za-z]{_HOST}):/\S* on /|^//(?P<host2>[A-Za-z]{_HOST})/\S+\s+[\d.]+[KMGT]?\s|\b(?:scp"
            rf"|rsync|sshfs|mount)\b[^\n|;&]*?\s(?P<machine>[A-Za-z]{_HOST}):/"
        ),
        r"/(?:u|user|users|profile|profiles|people|members|accounts|~)/(?P<login>[a-z][\w.-]{2,31})(?=[/\s\"'?)]|$)",
        r"\b(?:WIP on|On|index on) (?P<branch>[a-z][a-z0-9._-]{2,31})/[\w-]+:",
        (
            r"\b[Uu]ser(?:name)?:? [\"'`]?(?P<login>[a-z][\w.-]{2,31})[\"'`]?(?= (?:logged|signed|created"
            r"|deleted|updated|has|is|was|not|failed"
            r"|joined|connected|from|with|on|does|cannot|can't|authenticated|disconnected|left|exists|already"
            r"|does|requested|via)\b)"
        ),
        rf"^(?P<user>{_USER})\s+ALL\s?=\s?\(|\bUserInfo\{{\d+:(?P<name>[^:{{}}\n]{{2,40}}):",
        r"(?<![A-Z/])(?P<name>[A-Z]{2,}/[A-Z]{2,}) (?:MR|MRS|MS|MSTR|MISS|DR)\b",
        # One name alone, known as a given name, where people are spoken of.
        (
            r"\b(?i:ping|ask|asked|tell|told|poke|remind|cc|email|mail|message|dm|call|thank|thanks|with|to|from"
            r"|by|for|and|let"
            rf"|invite|on|per|waiting for|says|said|meet|met|know|knows|is|was) (?P<given>{_WORD})(?=[\s,.;:!?)]"
            rf"|['’]s\b|$)"
        ),
        (
            rf"(?<![\w./-])(?P<given>{_WORD})(?:['’]s (?=[a-z])| (?=(?:to|will|can|should|said|says|asked|has|had"
            rf"|wants|thinks|knows"
            r"|mentioned|confirmed|approved|wrote|would|could|needs|already|agreed|and I|went|left|joined|works"
            r"|told|is|was"
            r"|left|promised|suggested|reviewed|merged|pushed|broke|fixed|found|prefers|signed|owns|runs)\b))"
        ),
        # Tables of processes, sessions and machines.
        rf"^\S{{1,16}}\s+\d+\s+(?P<user>{_USER})\s+(?:cwd|rtd|txt|mem|DEL|\d+[urwW-])\s",
        rf"\b\d+\.(?:pts|tty)\S*?\.(?P<host>[A-Za-z]{_HOST})\b",
        # Sessions and services that set the account apart by signs.
        rf"^>?(?P<user>{_USER})\s+(?:rdp-tcp\S*|console)\s+\d+\s",
        rf"\b[Uu]ser <(?P<user>{_USER})>|^[^\n]{{0,60}}\[(?P<user2>{_USER})\] (?:OK|FAIL) LOGIN\b",
        (
            r"(?<![\w/])u/(?P<login>[A-Za-z][\w-]{2,30})\b|^(?P<login2>[a-z][\w.-]{2,30}) \d+ (?:minute|hour"
            r"|day)s? ago\b"
        ),
        rf"\|(?P<name>{_WORD})\^(?P<name2>{_WORD})\|",
        # Machines in addresses without a domain, told from services by a number at the end.
        r"(?:://|(?<![\w:/])//)(?P<machine>[a-z][a-z-]*[a-z]\d{1,3})(?=[:/\s\"']|$)",
        # Accounts of forges and registries, where the rest says that they are a person's.
        (
            r"\b(?:github|gitlab|codeberg|bitbucket)\.(?:com|org)[/:](?P<login>[A-Za-z][\w.-]{2,38})"
            r"/(?:dotfiles|\.?config|nvim|resume|cv|blog|notes|homelab)\b"
        ),
        r"\bdocker (?:push|tag \S+) (?P<login>[a-z][\w.-]{2,38})/[\w.-]+",
        (
            r"(?<![\w./:@-])(?P<login>[a-z][\w.-]{2,38}):(?:fix|feat|feature|patch|bugfix|hotfix|chore|docs"
            r"|wip)[/-][\w./-]+"
        ),
        # A writer and a colon, after the time.
        (
            rf"\b(?i:herrn|frau|señor(?:a|ita)?|signor[ae]?|signora|monsieur|madame|mlle|doktor|dra?|ing|mag|sir"
            rf"|lady|pana|panią|hra?|fru|dott(?:\.ssa)?|mevrouw|meneer|dhr|mevr)\.? (?P<maybe>{_PERSON}|{_WORD})\b"
        ),
        (
            rf"(?<![\w.])(?P<strange>{_WORD})['’]s? (?:Backup|Drive|Disk|Documents|Library|Time Machine|Files|Home"
            rf"|Stuff|Album|Calendar|Notebook|Workstation|Printer|Car|Hotspot|Wi-?Fi|Network|TV|Echo|Speaker)\b"
        ),
    )
)
# Two capitalised words in running text, with a particle or an initial between them or not.
_STRANGERS = re.compile(
    r"(?<![\w.@/#$-])(?P<first>[A-ZÀ-ÞĀ-Ž][a-zà-ÿā-ž]{1,20}(?:-[A-ZÀ-Þ][a-zà-ÿ]+)?) (?P<between>(?:[A-Z]\.? "
    r"|van |von |de |del |der |da |di |la |le |el |bin |al-)*)"
    r"(?P<last>(?:O'|Mc|Mac|D')?[A-ZÀ-ÞĀ-Ž][a-zà-ÿā-ž]{1,24}(?:-[A-ZÀ-Þ][a-zà-ÿ]+)?)(?![\w(/@]|\.\w|-[a-z\d])"
)
_CREDITS = re.compile(r"(?: [A-ZÀ-Þ][\w'-]+){0,2} and (?:contributors|others)\b")
_GIVEN_BEFORE = re.compile(r"(?<![\w.])([A-ZÀ-Þ][a-zà-ÿ]{2,20}) \Z")
_SENTENCE_WORD = re.compile(r"(?:[.!?:]\s+|\A|\n\s*(?:[-*>#]+ )?)\Z")


_TITLE_WORDS = "mr mrs ms mx dr prof herr herrn frau mme mlle monsieur madame señor señora sra sig hi hello dear hey"
_TITLES = frozenset(_TITLE_WORDS.split())


def _speaks_english(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 200) : start] + " " + text[end : end + 200]
    words = re.findall(r"(?<![\w./_-])[^\W\d_A-ZÀ-Þ]{3,}(?![\w(/_-])", around)
    return len(words) < 4 or sum(map(is_ordinary, words)) >= 0.5 * len(words)


def strangers(text: str, _key: str | None) -> Iterator[Hit]:
    """Find people in running text: a given name that many have, or two words that no dictionary has."""
    at = 0
    while match := _STRANGERS.search(text, at):
        first, last = match["first"], match["last"]
        at = match.end("first") + 1
        if (
            first.lower() in _TITLES
            or is_proper_noun(first)
            or is_proper_noun(last)
            or is_calendar(first)
            or is_calendar(last)
            or not is_person_name(match.group(), sure=True)
        ):
            continue
        plain = tuple(is_ordinary(word) or is_foreign_word(word) for word in (first, last))
        named = is_given_name(first), is_surname(last)
        person = (not any(plain) and len(first) > 2 and len(last) > 2) or (named[0] and not plain[1])
        person = person or (named[0] and named[1] and not all(plain)) or (named[1] and not plain[0] and not plain[1])
        if _CREDITS.match(text, match.end()):
            continue  # who wrote the program that prints its banner
        # The first word of a sentence is written like a name; of two names there only a given one counts.
        if person and not named[0] and _SENTENCE_WORD.search(text, max(0, match.start() - 6), match.start()):
            person = not plain[0]
        if person and not named[0] and not _speaks_english(text, match.start(), match.end()):
            continue  # the dictionary would find every noun strange
        if person:
            before = _GIVEN_BEFORE.search(text, max(0, match.start() - 24), match.start())
            start = before.start(1) if before and is_given_name(before[1]) else match.start()
            yield Hit(start, match.end(), "printed-name", "name", text[start : match.end()].lower())
            at = match.end()


# Half of the places need a name of two words; most texts of programs hold none, which one look tells.
_TWO_WORDS = re.compile(PERSON)
_WITHOUT_PEOPLE = tuple(
    place
    for place in _PLACES
    if PERSON not in place.pattern or f"{PERSON}|" in place.pattern or not set(place.groupindex) <= {"name", "maybe"}
)
_ABOUT_A_PERSON = re.compile(
    r"\"(?:login|email|emailAddress|username|user_name|avatar_url|avatar|company|bio|accountId|full_name"
    r"|given_name|firstName|first_name|author|committer|assignee|reporter|active)\"\s*:"
)
_NAME_FIELD = re.compile(
    r"\"(?:name|displayName|display_name|full_name|fullName|real_name|author|assignee|reporter|owner|creator"
    r"|reviewer)\""
    rf"\s*:\s*\"(?P<maybe>{_PERSON})\""
)
_COLUMN_NAME = re.compile(r"[A-Z%][A-Z%_()/+-]*")
_OBJECT = re.compile(r"\{[^{}]{0,2000}\}")
_AUTHOR_OBJECT = re.compile(rf"\"(?:author|authors|maintainer|maintainers|contributors|committer)\"\s*:\s*\[?\s*\{{"
                            rf"[^{{}}]{{0,300}}?\"name\"\s*:\s*\"(?P<name>{_PERSON})\"")  # fmt: skip
_SYSTEM_HOSTS = re.compile(
    r"(?:oauth2|x-access-token|gitlab-ci-token|localhost|localdomain|ip6-.*|host\d*|info|debug|warn|warning|error|fatal|trace|notice|server|client|db"
    r"|web|app|api"
    r"|cache|node|worker|master|primary|replica|runner|build|ci|docker|[a-f0-9]{12}|(?:\d+\.)+\d+|.*\.example(?:\.\w+)?"
    r"|.*\.(?:py|js|ts|go|rs|sh|md|json|ya?ml|toml)|github\.com|gitlab\.com|bitbucket\.org|workgroup|corp|kernel|root)",
    re.I,
)
_SYSTEM_USERS = re.compile(
    r"(?:_\w+|systemd-\S+|[\w-]+-data|messagebus|syslog|sshd|uuidd|tss|kernel|rtkit|polkitd|corp|everyone|here|channel"
    r"|pytest|dataclass|media|types|property|staticmethod|param|return|import|USER|PID|total|admin\w*|kube\S*"
    r"|system\S*)",
    re.I,
)


_TOOL_NAMES = (
    "dependabot renovate copilot codex claude cursor devin snyk argocd argo helm flux fluxcd tekton bazel gradle "
    "maven github gitlab jenkins buildkite circleci travis terraform pulumi ansible puppet chef kubelet kubectl "
    "systemd cron crond certbot eslint prettier webpack rollup vite babel protoc swagger openapi sphinx doxygen "
    "pytest mypy ruff black isort tox nox upstream origin feature features feat fix fixes bugfix hotfix chore "
    "docs doc refactor perf style tests release releases rel wip spike exp experiment experiments revert backport "
    "staging production main master develop dev users heads tags remotes stable nightly canary pull merge gh "
    "pages bash sh python python3 perl php ruby node nice flock timeout env curl wget rsync"
)
_TOOLS = frozenset(_TOOL_NAMES.split())


_FILE = re.compile(
    r"\.(?:py|js|ts|tsx|jsx|go|rs|rb|java|html?|json|ya?ml|md|txt|css|sql|sh|toml|c|h|cpp|php|db|sqlite|bak|log|env|cfg|conf|ini|lock|zip|gz)$"
)


def _is_login(name: str) -> bool:
    """Tell an account from a word, a program and the first half of a branch."""
    parts = [part for part in re.split(r"[._\-\d]+", name) if part]
    known = all(is_ordinary(part) or is_foreign_word(part) or is_generic(part) or part in _TOOLS for part in parts)
    if "_" in name:
        return False  # an identifier
    return name not in _TOOLS and parts != [] and parts[0] not in _TOOLS and not known


def _is_given(word: str) -> bool:
    """Tell a given name that is neither a word, a place nor a product."""
    return (
        len(word) > 3
        and word[1:].islower()
        and is_given_name(word)
        and not is_ordinary(word)
        and not is_proper_noun(word)
        and word.lower() not in _TOOLS
    )


def _hit(match: re.Match[str], group: str) -> Hit | None:
    place = group.rstrip("2")
    kind = {
        "maybe": "name",
        "strange": "name",
        "given": "name",
        "machine": "host",
        "login": "user",
        "handle": "user",
        "branch": "user",
    }.get(place, place)
    value = match.group(group)
    bare = value.strip().rstrip(".-,")
    start = match.start(group) + value.index(bare) if bare else match.start(group)
    if len(bare) < 2 or is_generic(bare) or (kind == "user" and _FILE.search(bare)):
        return None
    if kind == "name" and (not is_person_name(bare, sure=place == "name") or is_role_or_state(bare)):
        return None
    if kind == "name" and _CREDITS.match(match.string, match.end(group)):
        return None
    if kind == "host" and SERVICE_LABEL.match(bare):
        return None
    if kind == "host" and (_SYSTEM_HOSTS.fullmatch(bare) or len(bare) < 3 or is_service_host(bare)):
        return None
    if place == "strange" and (is_ordinary(bare) or is_proper_noun(bare)):
        return None
    if place == "given" and not _is_given(bare):
        return None
    if place in ("login", "branch") and not _is_login(bare):
        return None
    if place == "handle" and (is_ordinary(bare) or bare in _TOOLS or (bare.islower() and _FILE.search(bare))):
        return None
    if place == "machine" and (is_ordinary(bare) or bare.isalpha()):
        return None
    if kind == "user" and len(bare) <= 4 and is_ordinary(bare):
        return None
    known = is_technical(bare) or is_proper_noun(bare)
    if place in ("user", "login") and bare.isalpha() and known and not is_given_name(bare):
        return None  # the account of a program
    if kind == "user" and (_SYSTEM_USERS.fullmatch(bare) or bare.isdigit() or is_role_or_state(bare)):
        return None
    return Hit(start, start + len(bare), f"printed-{kind}", kind, bare.lower())


def _column(text: str) -> Iterator[Hit]:
    """Find accounts in tables whose header, all in capitals, names a column for them."""
    offset, at, width = 0, None, 0
    for line in text.splitlines(keepends=True):
        words = list(re.finditer(r"\S+", line))
        names = [word.group() for word in words]
        if len(names) > 2 and all(_COLUMN_NAME.fullmatch(name) for name in names):
            at = next((names.index(name) for name in ("USER", "OWNER") if name in names), None)
            width = len(names)
        elif at is not None and len(words) > at and len(words) >= width - 1:
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


_JOINTS = re.compile(r"\s*(?:&&|;|\n)\s*")
_TELLING = re.compile(
    r"(?:sudo |command |/usr/bin/|/bin/)*(?:(?:[\w-]+ ){0,2}whoami|logname|id(?: -\w+)*|hostname(?: -\w+)*"
    r"|hostnamectl\b.*|uname -n"
    r"|echo [\"']?[$%](?:\w+)%?[\"']?|scutil --get \w+|git config\b.* user\.name|printenv \w+|getent passwd.*"
    r"|who am i|finger.*)"
)


_FORMAT = re.compile(
    r"\bgit (?:log|show|for-each-ref|shortlog)\b.*?--(?:pretty=)?(?:format[:=]|pretty=)[\"']?(?:t?format:)?"
    r"(?P<format>[^\"'\n]+)"
)
_FORMATTED = re.compile(r"%\(?(?:a[nN]|c[nN]|authorname|committername)\)?")


def formatted_names(command: str, output: str) -> Iterator[tuple[int, int]]:
    """Yield where a log, printed in the format that its command gives, names authors."""
    asked = _FORMAT.search(command)
    if asked is None or not _FORMATTED.search(asked["format"]):
        return
    parts = re.split(r"(%(?:\(\w+\)|C\w+|C\([^)]*\)|[acG]?[a-zA-Z]))", asked["format"].strip())
    body = ""
    for part in parts:
        if part.startswith("%C"):
            continue
        if _FORMATTED.fullmatch(part):
            body += r"(Person\d+|[^\W\d_][\w'’.-]*(?: (?:van|von|de|del|der|da|di|la|le))*(?: [^\W\d_][\w'’.-]*)?)"
        elif part.startswith("%") and len(part) > 1:
            body += r".*?" if part not in ("%h", "%H") else r"[0-9a-f]{7,40}"
        else:
            body += re.escape(part)
    for line in re.finditer(rf"(?m)^{body}$", output[:20_000]):
        yield from (line.span(group) for group in range(1, line.re.groups + 1))


def said_by_commands(command: str, output: str) -> Iterator[str]:
    """Yield each command that asks for a name together with the lines that answered it, as a terminal shows them."""
    commands = [part for part in _JOINTS.split(command.strip()) if part]
    if not commands or len(command) > 300 or len(output) > 4000:
        return
    lines = output.strip().splitlines()
    pairs = [(commands[0], output.strip())] if len(commands) == 1 else zip(commands, lines, strict=False)
    if len(commands) > 1 and len(commands) != len(lines):
        return
    for one, said in pairs:
        if _TELLING.fullmatch(one):
            yield f"$ {one}\n{said}"


def printed(text: str, _key: str | None) -> Iterator[Hit]:
    """Find accounts, hosts and people at the places where programs print them."""
    yield from _column(text)
    yield from strangers(text, _key)
    places = _PLACES if _TWO_WORDS.search(text) else _WITHOUT_PEOPLE
    for pattern in places:
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
                if hit := _hit(match, "maybe"):
                    yield hit
