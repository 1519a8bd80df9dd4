"""People, accounts and machines by form and place: home folders, addresses, mentions, and where tools print them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.people_fields import PERSON, SERVICE_LABEL, WORD
from eval_core.suite.scrub.words import (
    UPPER,
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
    word_list,
)


def _user(match: re.Match[str], group: str, rule: str) -> Iterator[Hit]:
    name = match[group].lstrip("@").rstrip(".-")
    if not is_generic(name):
        start = match.end(group) - len(match[group].lstrip("@"))
        yield Hit(start, start + len(name), rule, "user", name.lower())


# Home folders.

_NAME = r"[A-Za-z0-9_À-ɏЀ-ӿ一-鿿][\w.\-+]*"
_HOME = re.compile(
    rf"(?P<root>(?:/(?:var/|export/|data/|mnt/)?home/|/Users/|/(?:mnt/)?[a-zA-Z]/Users/|/run/media/"
    rf"|/media/(?!cdrom|usb)"
    rf"|/var/mail/|/afs/[\w.-]+/users?/(?:\w/\w\w/)?|/(?:nfs|net|u|homes?|export)/(?:users?|homes?|staff|people)/"
    rf"|/var/spool/cron/(?:crontabs/)?|%2F(?:home|Users)%2F"
    rf"|(?i:[a-z]:(?:\\{{1,4}}|/)(?:Users|Documents and Settings|DOCUME~\d)(?:\\{{1,4}}|/))))(?P<user>{_NAME})"
)
_TOKEN_BEFORE = re.compile(r"[^\s\"'`<>()\[\]{}|,;=?#]*\Z")
_WEB_PATH = re.compile(
    r"(?:https?|wss?)://.*|(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,14}(?::\d+)?/.*|(?:[A-Za-z0-9-]+\.){1,4}(?:com|org|net"
    r"|io|dev|cn)(?::\d+)?"
)
_SPACED = re.compile(r"(?: [A-Za-z][\w.-]*){1,2}(?=\\|/)")
_DASHED = re.compile(r"(?<![A-Za-z0-9])-(?:Users|home)-(?P<user>[A-Za-z0-9_.]+)(?=-|\b)")
_PAGE = re.compile(r".*\.(?:html?|php|js|css|json|md|txt|py|png|svg|lock)|Shared")


def home_folders(text: str, _key: str | None) -> Iterator[Hit]:
    """Find user names in paths."""
    for match in _HOME.finditer(text):
        start, end = match.span("user")
        if match["root"].startswith("/") and _in_web_address(text, match.start()):
            continue
        if "\\" in match["root"] and (spaced := _SPACED.match(text, end)):
            end = spaced.end()
        name = text[start:end].rstrip(".-")
        if not is_generic(name) and not _PAGE.fullmatch(name):
            yield Hit(start, start + len(name), "home-folder", "user", name.lower())
    for match in _DASHED.finditer(text) if "-Users-" in text or "-home-" in text else ():
        yield from _user(match, "user", "home-folder")


def _in_web_address(text: str, at: int) -> bool:
    """Tell whether a place lies in the path of a web address, where /home/ is a page and nobody's folder."""
    token = _TOKEN_BEFORE.search(text, max(0, at - 400), at)
    return token is not None and _WEB_PATH.fullmatch(token.group()) is not None


# E-mail addresses and the names before them.

_EMAIL = re.compile(
    r"(?<![\w.+\-@/%])(?P<local>[A-Za-z0-9_À-ɏ](?:[\w.+'\-]{0,62}[\w+])?)(?:@"
    r"|%40)(?P<domain>(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,18})(?![\w@-])"
)
_RESERVED = re.compile(
    r"(?:.*\.)?(?:example(?:\.(?:com|org|net|edu))?|test|invalid|localhost|local|internal|domain\.com|email\.com"
    r"|yourdomain\.com)",
    re.I,
)
# A company that somebody called after this manner has people; the domains of manuals have none.
_INVENTED = re.compile(
    r"(?i)(?:[\w-]+\.)*(?!(?:acme|company|corp|domain|host|mail|test|my\w*|your\w*|foo|bar)\.)[\w-]{5,}\.example"
)
_SERVICE_LOCAL = re.compile(
    r"(?:no-?reply|do-?not-?reply|git|actions|github-actions|dependabot|renovate|bot|abuse|postmaster|hostmaster"
    r"|(?:project|group)_\d+_bot\w*|.*\[bot\]|mailer-daemon)",
    re.I,
)
_MESSAGE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{13,27}|(?=(?:.*\d){4})[0-9a-f]{20,}")
# name@1.2.3, unit@.service, image@sha256, and the algorithms of SSH.
_PACKAGE = re.compile(
    r"(?i).*\.(?:js|ts|json|tgz|py|service|timer|socket|md|gz|xz|bz2|zst|zip|whl|deb|rpm)|openssh\.com|libssh\.org"
)
_AUTHOR = re.compile(
    r"(?:(?:^|\n|\b)(?:Author|Commit|Committer|Tagger|Merged-by|[A-Z][a-z]+(?:-[a-z]+)*-by|From|To|Cc|Reply-To"
    r"|Maintainer|author|committer|tagger):?[ \t]+(?P<a>[^<>\n\"\\:@/(){}=]{2,60}?)"
    rf"|(?<![\w.])(?P<b>{PERSON}))[\"']?[ \t]*<(?P<local>[^<>\s@]*)@(?P<domain>[^<>\s]*)>"
)
_USER_NAME = re.compile(
    rf"(?:user\.name[= \t]+|GIT_(?:AUTHOR|COMMITTER)_NAME=)[\"']?(?P<name>{PERSON}|{WORD})"
    rf"|(?m:^[a-z_][\w-]{{0,31}}:[^:\n]*:[1-9]\d{{3,}}:\d+:(?P<gecos>{PERSON}))"
)


def is_reserved_domain(domain: str) -> bool:
    """Tell the domains that documentation uses, where nobody lives."""
    return _INVENTED.fullmatch(domain) is None and _RESERVED.fullmatch(domain) is not None


def _is_nobodys(local: str, domain: str) -> bool:
    return is_reserved_domain(domain) or _SERVICE_LOCAL.fullmatch(local) is not None


def emails(text: str, _key: str | None) -> Iterator[Hit]:
    """Find e-mail addresses."""
    for match in _EMAIL.finditer(text) if "@" in text or "%40" in text else ():
        local, domain = match["local"], match["domain"]
        # A remote of git, the id of a message.
        other = (text[match.end() : match.end() + 1] == ":" and local in ("git", "hg", "svn")) or _PACKAGE.fullmatch(
            domain
        )
        if not other and not _is_nobodys(local, domain) and not _MESSAGE_ID.fullmatch(local):
            yield Hit(match.start(), match.end(), "email", "email", match.group().replace("%40", "@").lower())


def authors(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the names that stand before an e-mail address, and those of accounts."""
    for match in _AUTHOR.finditer(text) if "<" in text else ():
        group = "a" if match["a"] else "b"
        name = match[group].strip()
        if not _is_nobodys(match["local"], match["domain"]) and "[bot]" not in name and not is_generic(name):
            start = match.start(group) + match[group].index(name)
            yield Hit(start, start + len(name), "author", "name", name.lower())
    for match in _USER_NAME.finditer(text):
        group = str(match.lastgroup)
        if is_person_name(match[group]) and not is_generic(match[group]):
            yield Hit(*match.span(group), "author", "name", match[group].lower())


# What platforms mark as an account.

_MENTION = re.compile(
    r"(?:chat_id|user_id)[\"']?[=:][\"' ]?(?P<e>\d{8,12})(?!\d)"
    r"|<@[!&]?(?P<a>[A-Z0-9]{8,}|\d{15,20})(?:\|[^>]*)?>|<at (?:user_)?id=\\*[\"'](?P<b>[\w-]+)\\*[\"']>"
    r"|tg://user\?id=(?P<c>\d+)"
    r"|(?:https?://)?(?:t\.me|twitter\.com|x\.com|instagram\.com|linkedin\.com/in|facebook\.com|mastodon\.social/@"
    r"|keybase\.io|paypal\.me|threads\.net/@|tiktok\.com/@|youtube\.com/@|bsky\.app/profile|reddit\.com/u(?:ser)?)/"
    r"(?P<d>(?!share|intent|home|hashtag|search|status|i/)@?[A-Za-z][\w.-]{2,40})"
    r"|(?<![\w.+@/%-])(?P<at>[a-z][a-z0-9._-]{1,31})@(?=\d{1,3}(?:\.\d{1,3}){3}(?![\w.]))"
    r"|(?<![\w@/.])(?i:venmo|cashapp|cc|thanks|thank you|ping|hi|hey|hello|by|from|ask|with|assignee|reviewer|author)"
    r"[: ]+@(?P<called>[A-Za-z][\w-]{1,38})(?![\w/.(])"
)
# In a text that is not English, @ begins a handle more likely than a decorator.
_FOREIGN_MENTION = re.compile(r"(?<![\w@/.])@(?P<a>[A-Za-z]\w{3,31})(?![\w/.(@])")


def mentions(text: str, _key: str | None) -> Iterator[Hit]:
    """Find accounts that platforms mark as such."""
    for match in _MENTION.finditer(text):
        yield from _user(match, str(match.lastgroup), "mention")
    for match in _FOREIGN_MENTION.finditer(text) if "@" in text and not text.isascii() else ():
        if _is_foreign_line(text, match.start()):
            yield from _user(match, "a", "mention")


def _is_foreign_line(text: str, at: int) -> bool:
    """Tell a line of which a third at least is written in letters that English lacks."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    letters = [char for char in text[start : end if end >= 0 else len(text)] if char.isalpha()]
    return 3 * sum(not char.isascii() for char in letters) >= len(letters)


# The places where tools print accounts, machines and people.

_USER = r"[A-Za-z_][\w.-]{1,31}"
_HOST = r"[A-Za-z0-9][\w-]{1,62}(?:\.[A-Za-z0-9][\w-]*)*"
_COMMAND = r"(?:^|[$>#%❯➜] ?)"
_DAEMON = r"(?:sudo|su|systemd|kernel|CRON|crond?|dockerd|dhclient|auditd?|login|gdm|launchd)"
_STAMP = (
    r"(?:[A-Za-zà-ÿ]{3,5}\.? {1,2}\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*(?:Z|[+-]\d\d:?\d\d)?)"
)
# The name of a group says what stands there: a user, a host, a name; `maybe` a name, `given` a first name, `login` a
# user and `machine` a host only if the word is no ordinary one.
_PLACES = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        # Shell prompts, with and without brackets and an environment's name in front.
        rf"^(?:\([^)\n]{{1,40}}\) ?)?\[?(?P<user>{_USER})@(?P<host>{_HOST})(?=[: \]~][^\n]{{0,80}}?[$#%>](?:\s|$))",
        # Commands whose whole output is the name.
        (
            rf"{_COMMAND}(?:(?:[\w-]+ ){{0,2}}whoami|id -un|logname|(?:echo|printenv) [\"']?\$?%?(?:USER|LOGNAME"
            rf"|USERNAME)%?"
            rf"[\"']?)\s*\n(?:[\w.-]+\\)?(?P<user>{_USER})\r?$"
        ),
        (
            rf"{_COMMAND}(?:hostname(?: -\w+)*|uname -n|(?:echo|printenv) [\"']?\$?%?(?:HOSTNAME|HOST|COMPUTERNAME)%?"
            rf"[\"']?|scutil --get \w+)\s*\n(?P<host>{_HOST})$"
        ),
        # Users of the system.
        rf"^[-dlbcps][rwxsStT-]{{9}}[.+@]?\s+\d+\s+(?P<user>{_USER})\s+[\w.-]+\s+\d",
        rf"^(?P<user>{_USER}):[x*!]*:(?:[5-9]\d\d|[1-5]?\d{{4}}):\d+:[^\n]*:/[^:\n]*:/(?![^\n]*(?:nologin|/false)\b)",
        rf"\bLogged in (?:to \S+ )?(?:as|account) (?P<user>{_USER})\b",
        (
            rf"\b(?:sudo -u|su -l?|useradd|userdel|adduser|passwd|getent passwd|crontab -u)\s+(?:-{{1,2}}\w+\s+)*"
            rf"(?P<user>{_USER})(?=\s|$)"
        ),
        rf"\b(?i:user|role|login|account|as|username)(?: name)? [\"'‘“](?P<user>{_USER})[\"'’”]",
        (
            rf"(?<![\w\\:/.$-])(?<!NT )(?!BUILTIN)[A-Z][A-Z0-9-]{{1,14}}\\{{1,2}}"
            rf"(?P<user>[A-Za-z]{_USER})(?=[:\s\"',;)]|$)"
        ),
        rf"\b(?:TODO|FIXME|XXX|HACK|NOTE)\((?P<login>{_USER})\)|://(?P<login2>{_USER}):[^@/\s]{{6,200}}@",
        # Machines in private zones, in logs, and those that somebody connects to.
        (
            r"(?<![\w.@/-])(?P<host>[A-Za-z][\w-]{2,62})(?:\.[A-Za-z][\w-]{1,30})?"
            r"(?<!docker)(?<!google)(?<!compute)(?<!cluster)(?<!svc)"
            r"\.(?:lan|local|internal|home|intranet|corp|fritz\.box|home\.arpa|localdomain)(?![\w(-]|\.\w)"
        ),
        rf"^{_STAMP} (?P<host>{_HOST}) (?:[\w./-]+\[\d+\]|{_DAEMON}):",
        (
            rf"\b(?:ssh|scp|sftp|rsync|mosh|ssh-copy-id|sshfs)\b[^\n"
            rf"|;&]{{0,80}}?[\s/](?P<user>{_USER})@(?P<host>{_HOST})\b"
        ),
        rf"^Host (?P<host>[A-Za-z]{_HOST})$|^\s+User (?P<user>{_USER})$|^\s+HostName (?P<host2>[A-Za-z]{_HOST})$",
        rf"^Received: from (?P<host>{_HOST})|\b(?:EHLO|HELO|helo=|ehlo=)[ <]?(?P<host2>{_HOST})",
        (
            r"(?<![\w.@/+:-])(?P<login>[a-z][\w.-]{2,31})@(?P<machine>(?!latest\b|next\b|beta\b|alpha\b|canary\b|sha\d"
            r"|stable\b|v?\d|localhost\b|workspace\b|npm\b|file\b|HEAD\b)[a-zA-Z][\w-]{2,62})(?=[:\s,;)\"']|$)"
        ),
        (
            r"(?<![\w.-])(?P<host>[\w-]+(?:\.[\w-]+){0,3}\.(?:(?:rds|cache|redshift)\.amazonaws\.com"
            r"|database\.windows\.net"
            r"|servicebus\.windows\.net|vault\.azure\.net|redis\.cache\.windows\.net|mongodb\.net"
            r"|snowflakecomputing\.com"
            r"|ondigitalocean\.com|upstash\.io|neon\.tech|supabase\.co))(?![\w.-])"
        ),
        # Computers that carry their owner's name or a serial.
        (
            r"\b(?P<device>(?:MacBook(?:-Pro|-Air)?|iPhone|iPad|iMac)-(?:de|da|do|di|von|van)-[A-ZÀ-Þ]\w+"
            r"|[A-ZÀ-Þ][\w]+s?-(?:MacBook|iMac|Mac-mini|Mac-Studio|iPhone|iPad|MBP|MBA|Laptop|PC|Desktop)"
            r"(?:-(?:Pro|Air|Max|mini|\d+))*|(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{7,})\b"
        ),
        # What people are called.
        (
            rf"\b(?i:Dr|Prof|Mr|Mrs|Ms|Mx|Herrn?|Frau|Mme|Mlle|Monsieur|Madame|Señora?|Sra?|Signora?|Sig|Hr|Fr"
            rf"|Pan|Pani|Fru"
            rf"|Mevr|Dhr)\.? (?P<maybe>{PERSON}|{WORD})\b"
        ),
        (
            r"\b(?i:ping|ask|asked|tell|told|poke|remind|cc|email|mail|message|dm|call|thank|thanks|with|to|from"
            r"|by|for|and"
            rf"|let|invite|on|per|waiting for|says|said|meet|met|know|knows|is|was) (?P<given>{WORD})(?=[\s,.;:!?)]"
            rf"|['’]s\b|$)"
        ),
    )
)
_KINDS = {
    "maybe": "name",
    "given": "name",
    "machine": "host",
    "device": "host",
    "login": "user",
}
_CREDITS = re.compile(r"(?: [A-ZÀ-Þ][\w'-]+){0,2} and (?:contributors|others)\b")
_SYSTEM_HOSTS = re.compile(
    r"(?:oauth2|x-access-token|gitlab-ci-token|localhost|localdomain|ip6-.*|host\d*|info|debug|warn|warning|error|fatal"
    r"|trace|notice|[a-f0-9]{12}|(?:\d+\.)+\d+|.*\.example(?:\.\w+)?|.*\.(?:py|js|ts|go|rs|sh|md|json|ya?ml|toml)"
    r"|github\.com|gitlab\.com|bitbucket\.org|workgroup|corp|kernel|root)",
    re.I,
)
_SYSTEM_USERS = re.compile(
    r"(?:_\w+|systemd-\S+|[\w-]+-data|messagebus|syslog|sshd|uuidd|tss|kernel|rtkit|polkitd|corp|everyone|here|channel"
    r"|pytest|dataclass|media|types|property|staticmethod|param|return|import|USER|PID|total|admin\w*|kube\S*"
    r"|system\S*)",
    re.I,
)
_FILE = re.compile(
    r"\.(?:py|js|ts|tsx|jsx|go|rs|rb|java|html?|json|ya?ml|md|txt|css|sql|sh|toml|c|h|cpp|php|db|sqlite|bak|log|env|cfg"
    r"|conf|ini|lock|zip|gz)$"
)


def printed(text: str, _key: str | None) -> Iterator[Hit]:
    """Find accounts, hosts and people at the places where programs print them."""
    for pattern in _PLACES:
        for match in pattern.finditer(text):
            for group, value in match.groupdict().items():
                if value and (hit := _judged(match, group)):
                    yield hit


def _judged(match: re.Match[str], group: str) -> Hit | None:
    """Judge what stands at a place by the name of its group."""
    place = group.rstrip("2")
    kind = _KINDS.get(place, place)
    name = match[group].strip().rstrip(".-,")
    if len(name) < 2 or is_generic(name) or not _IS[kind](place, name):
        return None
    if kind == "name" and _CREDITS.match(match.string, match.end(group)):
        return None  # who wrote the program that prints its banner
    start = match.start(group) + match[group].index(name)
    return Hit(start, start + len(name), f"printed-{kind}", kind, name.lower())


def _is_user(place: str, name: str) -> bool:
    if _FILE.search(name) or _SYSTEM_USERS.fullmatch(name) or name.isdigit() or is_role_or_state(name):
        return False
    if len(name) <= 4 and is_ordinary(name):
        return False
    if name.isalpha() and (is_technical(name) or is_proper_noun(name)) and not is_given_name(name):
        return False  # the account of a program
    return place != "login" or _is_login(name)


def _is_login(name: str) -> bool:
    """Tell an account from a word, a program and an identifier."""
    tools, parts = word_list("tools"), [part for part in re.split(r"[._\-\d]+", name) if part]
    known = all(is_ordinary(part) or is_foreign_word(part) or is_generic(part) or part in tools for part in parts)
    return "_" not in name and not known and tools.isdisjoint((name, parts[0]))


def _is_host(place: str, name: str) -> bool:
    if len(name) < 3 or SERVICE_LABEL.match(name) or _SYSTEM_HOSTS.fullmatch(name) or is_service_host(name):
        return False
    return place != "machine" or not (is_ordinary(name) or name.isalpha())


def _is_name(place: str, name: str) -> bool:
    if place == "given":
        known = is_ordinary(name) or is_proper_noun(name) or name.lower() in word_list("tools")
        return len(name) > 3 and name[1:].islower() and is_given_name(name) and not known
    return is_person_name(name, sure=False) and not is_role_or_state(name)


_IS = {"user": _is_user, "host": _is_host, "name": _is_name}

# Two capitalised words in running text.

_TWO_NAMES = re.compile(
    rf"(?<![\w.@/#$-])(?P<first>{WORD}) (?:(?:[{UPPER}]\.? |van |von |de |del |der |da |di |bin "
    rf"|al-)*(?:{WORD} )?)"
    rf"{WORD}(?![\w(/@]|\.\w|-[a-z\d])"
)


def two_names(text: str, _key: str | None) -> Iterator[Hit]:
    """Find people in running text: a given name, and a word after it that no dictionary has."""
    at = 0
    while match := _TWO_NAMES.search(text, at):
        at = match.end("first") + 1
        if _are_names(match.group().split()) and is_person_name(match.group()):
            at = match.end()
            if not _CREDITS.match(text, at):
                yield Hit(*match.span(), "printed-name", "name", match.group().lower())


def _are_names(words: list[str]) -> bool:
    """Tell a given name and a word that no dictionary has after it."""
    first, last = words[0], words[-1]
    if first.lower() in word_list("titles") or is_proper_noun(first) or is_proper_noun(last):
        return False
    listed = is_given_name(first) or (is_surname(first) and is_given_name(last) and not is_ordinary(first))
    return listed and not all(is_ordinary(word) or is_foreign_word(word) for word in words[1:] if word[0].isupper())


# Commands that ask for a name, with what answered them.

_JOINTS = re.compile(r"\s*(?:&&|;|\n)\s*")
_TELLING = re.compile(
    r"(?:sudo |command |/usr/bin/|/bin/)*(?:(?:[\w-]+ ){0,2}whoami|logname|id(?: -\w+)*|hostname(?: -\w+)*|uname -n"
    r"|hostnamectl\b.*|echo [\"']?[$%](?:\w+)%?[\"']?|scutil --get \w+|git config\b.* user\.name|printenv \w+"
    r"|getent passwd.*|who am i|finger.*)"
)
_LONGEST_COMMAND, _LONGEST_ANSWER = 300, 4_000


def said_by_commands(command: str, output: str) -> Iterator[str]:
    """Yield each command that asks for a name together with the lines that answered it, as a terminal shows them."""
    commands = [part for part in _JOINTS.split(command.strip()) if part]
    if len(command) > _LONGEST_COMMAND or len(output) > _LONGEST_ANSWER:
        return
    answers = [output.strip()] if len(commands) == 1 else output.strip().splitlines()
    for one, said in zip(commands, answers, strict=True) if len(commands) == len(answers) else ():
        if _TELLING.fullmatch(one):
            yield f"$ {one}\n{said}"
