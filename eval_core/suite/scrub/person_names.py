"""Names of people, accounts and machines by their form: home folders, addresses, authors, mentions, machines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.ordinary_words import is_generic

__all__ = [
    "authors",
    "emails",
    "home_folders",
    "is_reserved_domain",
    "machines",
    "mentions",
]

# Names that belong to somebody: home folders, e-mail addresses, authors, mentions, machines.

_NAME = r"[A-Za-z0-9_À-ɏЀ-ӿ一-鿿][\w.\-+]*"
_HOME = re.compile(
    rf"(?P<root>(?:/(?:var/|export/|data/|mnt/)?home/|/Users/|/(?:mnt/)?[a-zA-Z]/Users/|/run/media/|/media/(?!cdrom"
    rf"|usb)|/var/mail/|/afs/[\w.-]+/users?/(?:\w/\w\w/)?|/(?:nfs|net|u|homes?|export)/(?:users?|homes?|staff"
    rf"|people)/|/var/spool/cron/(?:crontabs/)?"
    rf"|%2F(?:home|Users)%2F|(?i:[a-z]:(?:\\{{1,4}}|/)(?:Users|Documents and Settings|DOCUME~\d)(?:\\{{1,4}}"
    rf"|/))))(?P<user>{_NAME})"
)
_TOKEN_BEFORE = re.compile(r"[^\s\"'`<>()\[\]{}|,;=?#]*\Z")
_WEB_PATH = re.compile(
    r"(?:https?|wss?)://.*|(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,14}(?::\d+)?/.*|(?:[A-Za-z0-9-]+\.){1,4}(?:com|org|net"
    r"|io|dev|cn)(?::\d+)?"
)
_SPACED = re.compile(r"(?: [A-Za-z][\w.-]*){1,2}(?=\\|/)")
_DASHED = re.compile(r"(?<![A-Za-z0-9])-(?:Users|home)-(?P<user>[A-Za-z0-9_.]+)(?=-|\b)")
_EMAIL = re.compile(
    r"(?<![\w.+\-@/%])(?P<local>[A-Za-z0-9_À-ɏ](?:[\w.+'\-]{0,62}[\w+])?)(?:@"
    r"|%40)(?P<domain>(?:[^\W_](?:[\w-]*[^\W_])?\.)+[^\W\d_]{2,18})(?![\w@-])"
)
_SPELT_EMAIL = re.compile(
    r"\b(?P<local>[A-Za-z][\w.]{1,40})\s?(?:\(at\)|\[at\]|\{at\}|<at>| AT "
    r"| at )\s?(?P<domain>[A-Za-z0-9-]+(?:\s?(?:\(dot\)|\[dot\]|\{dot\}| DOT | dot )\s?[A-Za-z0-9-]+)+)\b"
)
_RESERVED = re.compile(
    r"(?:.*\.)?(?:example(?:\.(?:com|org|net|edu))?|test|invalid|localhost|local|internal|domain\.com|email\.com"
    r"|yourdomain\.com)",
    re.I,
)
_AUTHOR = re.compile(
    r"(?:^|\n|\b)(?:Author|Commit|Committer|Tagger|Merged-by|[A-Z][a-z]+(?:-[a-z]+)*-by|From|To|Cc|Reply-To"
    r"|Maintainer|author|committer|tagger):?[ \t]+"
    r"(?P<name>[^<>\n\"\\:@/(){}=]{2,60}?)[ \t]*<(?P<email>[^<>\s]*)>"
)
_NAMED = re.compile(
    r"(?<![\w.])(?P<name>[A-ZÀ-Þ][\w'’.-]+(?: [A-ZÀ-Þ][\w'’.-]*){1,3})[ \t]*<(?P<email>[^<>\s@]+@[^<>\s]+)>"
)
_USER_NAME = re.compile(
    r"(?:user\.name[= \t]+|GIT_(?:AUTHOR|COMMITTER)_NAME=)[\"']?(?P<name>[A-ZÀ-Þ][\w'’.-]+(?: [A-ZÀ-Þ][\w'’.-]*){0,3})"
)
_ACCOUNT = re.compile(r"(?m)^[a-z_][\w-]{0,31}:[^:\n]*:[1-9]\d{3,}:\d+:(?P<name>[A-ZÀ-Þ][^:,\n]{1,60})")
_SERVICE_LOCAL = re.compile(
    r"(?:no-?reply|do-?not-?reply|git|actions|github-actions|dependabot|renovate|bot|(?:project|group)_\d+_bot\w*|.*\[bot\]|mailer-daemon)",
    re.I,
)
_MENTION = re.compile(
    r"(?:chat_id|user_id)[\"']?[=:][\"' ]?(?P<e>\d{8,12})(?!\d)|"
    r"<@[!&]?(?P<a>[A-Z0-9]{8,}|\d{15,20})(?:\|[^>]*)?>|<at (?:user_)?id=\\*[\"'](?P<b>[\w-]+)\\*[\"']>"
    r"|tg://user\?id=(?P<c>\d+)"
    r"|(?:https?://)?(?:t\.me|twitter\.com|x\.com|instagram\.com|linkedin\.com/in|facebook\.com|mastodon\.social/@"
    r"|keybase\.io|paypal\.me|venmo\.com|patreon\.com|ko-fi\.com|gravatar\.com|threads\.net/@|tiktok\.com/@"
    r"|youtube\.com/@|bsky\.app/profile|reddit\.com/u(?:ser)?|steamcommunity\.com/id)/(?P<d>(?!share|intent|home"
    r"|hashtag|search|status"
    r"|i/)@?[A-Za-z][\w.-]{2,40})"
)
# In a text that is not English, @ begins a handle more likely than a decorator.
_FOREIGN_MENTION = re.compile(r"(?<![\w@/.])@(?P<a>[A-Za-z]\w{3,31})(?![\w/.(@])")
_CALLED = re.compile(
    r"(?<![\w@/.])(?:venmo|cashapp|cc|thanks|thank you|ping|hi|hey|hello|by|from|ask|with|assignee|reviewer"
    r"|author)[: ]+@(?P<a>[A-Za-z][\w-]{1,38})(?![\w/.(])",
    re.I,
)
_MACHINE = re.compile(
    r"\b(?P<c>(?:MacBook(?:-Pro|-Air)?|iPhone|iPad|iMac)-(?:de|da|do|di|von|van)-[A-ZÀ-Þ]\w+)"
    r"|\b(?P<a>[A-ZÀ-Þ][\w]+s?-(?:MacBook|iMac|Mac-mini|Mac-Studio|iPhone|iPad|MBP|MBA|Laptop|PC|Desktop)(?:-(?:Pro"
    r"|Air|Max|mini|\d+))*)(?:\.(?:local|lan|home|fritz\.box))?"
    r"|\b(?P<b>(?:DESKTOP|LAPTOP|WIN)-[A-Z0-9]{7,})\b"
)


def is_reserved_domain(domain: str) -> bool:
    """Tell the domains that documentation uses, where nobody lives."""
    # A company that somebody called after this manner has people; the domains of manuals have none.
    invented = re.fullmatch(
        r"(?i)(?:[\w-]+\.)*(?!(?:acme|company|corp|domain|host|mail|test|my\w*|your\w*|foo|bar)\.)[\w-]{5,}\.example",
        domain,
    )
    return invented is None and _RESERVED.fullmatch(domain) is not None


_MESSAGE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{13,27}|(?=(?:.*\d){4})[0-9a-f]{20,}")


def _in_web_address(text: str, at: int) -> bool:
    """Tell whether a place lies in the path of a web address, where /home/ is a page and nobody's folder."""
    token = _TOKEN_BEFORE.search(text, max(0, at - 400), at)
    return token is not None and _WEB_PATH.fullmatch(token.group()) is not None


def home_folders(text: str, _key: str | None) -> Iterator[Hit]:
    """Find user names in paths."""
    for match in _HOME.finditer(text):
        if match.group("root").startswith("/") and _in_web_address(text, match.start()):
            continue
        start, end = match.span("user")
        if "\\" in match.group("root") and (spaced := _SPACED.match(text, end)):
            end = spaced.end()
        name = text[start:end].rstrip(".-")
        # A percent sign or a file at this place is no folder of a person (/home/index.html).
        if (
            is_generic(name)
            or re.search(r"\.(?:html?|php|js|css|json|md|txt|py|png|svg|lock)$", name)
            or name == "Shared"
        ):
            continue
        yield Hit(start, start + len(name), "home-folder", "user", name.lower())
    for match in _DASHED.finditer(text) if "-Users-" in text or "-home-" in text else ():
        name = match.group("user").rstrip(".")
        if not is_generic(name):
            yield Hit(match.start("user"), match.start("user") + len(name), "home-folder", "user", name.lower())


def emails(text: str, _key: str | None) -> Iterator[Hit]:
    """Find e-mail addresses, also spelt out."""
    if "@" in text or "%40" in text:
        for match in _EMAIL.finditer(text):
            local, domain = match.group("local"), match.group("domain")
            service = _SERVICE_LOCAL.fullmatch(local) is not None
            if is_reserved_domain(domain) or service or _is_package(match, text):
                continue
            if _MESSAGE_ID.fullmatch(local):
                continue  # of a message, not of a person
            if text[match.end() : match.end() + 1] == ":" and local in ("git", "hg", "svn"):
                continue
            yield Hit(match.start(), match.end(), "email", "email", match.group().replace("%40", "@").lower())
    for match in _SPELT_EMAIL.finditer(text) if " dot " in text.lower() or "dot]" in text or "dot)" in text else ():
        domain = re.sub(r"\s?[(\[{]?\bdot\b[)\]}]?\s?", ".", match.group("domain"), flags=re.I)
        if not is_reserved_domain(domain):
            yield Hit(match.start(), match.end(), "email", "email", f"{match.group('local')}@{domain}".lower())


def _is_package(match: re.Match[str], text: str) -> bool:
    """Tell name@1.2.3 and image@sha256 apart from an address."""
    return match.group("domain").rsplit(".", 1)[-1] in (
        "js",
        "ts",
        "json",
        "tgz",
        "py",
        "service",
        "timer",
        "socket",
        "md",
        "gz",
        "xz",
        "bz2",
        "zst",
        "zip",
        "whl",
        "deb",
        "rpm",
    ) or match.group("domain").lower() in ("openssh.com", "libssh.org")


def authors(text: str, _key: str | None) -> Iterator[Hit]:
    """Find the names that stand before an e-mail address."""
    if "<" in text:
        for pattern in (_AUTHOR, _NAMED):
            for match in pattern.finditer(text):
                local, _, domain = match.group("email").partition("@")
                name = match.group("name").strip()
                invented = is_reserved_domain(domain) or _SERVICE_LOCAL.fullmatch(local) is not None
                if invented or re.fullmatch(r"Person\d+", name) or "[bot]" in name or is_generic(name):
                    continue
                start = match.start("name") + match.group("name").index(name)
                yield Hit(start, start + len(name), "author", "name", name.lower())
    for match in (*_USER_NAME.finditer(text), *_ACCOUNT.finditer(text)):
        name = match.group("name")
        if not re.fullmatch(
            r"Person\d+|(?i:(?:your|my|full) (?:full )?name|(?:john|jane) doe)", name
        ) and not is_generic(name):
            yield Hit(match.start("name"), match.end("name"), "author", "name", name.lower())


_AT_ADDRESS = re.compile(r"(?<![\w.+@/%-])(?P<user>[a-z][a-z0-9._-]{1,31})@(?=\d{1,3}(?:\.\d{1,3}){3}(?![\w.]))")


def mentions(text: str, _key: str | None) -> Iterator[Hit]:
    """Find accounts that platforms mark as such."""
    for match in _MENTION.finditer(text):
        group = str(match.lastgroup)
        name = match.group(group).lstrip("@")
        if not is_generic(name):
            start = match.end(group) - len(name)
            yield Hit(start, match.end(group), "mention", "user", name.lower())
    for match in _AT_ADDRESS.finditer(text) if "@" in text else ():
        if not is_generic(match["user"]):
            yield Hit(match.start("user"), match.end("user"), "mention", "user", match["user"])
    called = [*_CALLED.finditer(text)] if "@" in text else []
    if "@" in text and not text.isascii():
        called += [match for match in _FOREIGN_MENTION.finditer(text) if _is_foreign_line(text, match.start())]
    for match in called:
        if not is_generic(match["a"]):
            yield Hit(match.start("a"), match.end("a"), "mention", "user", match["a"].lower())


def _is_foreign_line(text: str, at: int) -> bool:
    """Tell a line of which a third at least is written in letters that English lacks."""
    start, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
    line = text[start : end if end >= 0 else len(text)]
    letters = [char for char in line if char.isalpha()]
    return 3 * sum(not char.isascii() for char in letters) >= len(letters)


def machines(text: str, _key: str | None) -> Iterator[Hit]:
    """Find computers that carry their owner's name or a serial."""
    for match in _MACHINE.finditer(text):
        group = str(match.lastgroup)
        yield Hit(match.start(group), match.end(group), "machine", "host", match.group(group).lower())
