"""The audit's own rules for names, machines and secrets, independent of the scrubber's.

The scrubber takes out what it recognises. This module asks the opposite question: what stands at a place where people,
machines or secrets are named, or has their shape, and is neither a placeholder nor an ordinary word? It shares no rule
with the scrubber, so that a gap in one is not a gap in both.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Iterator

from eval_core.suite.audit_lines import Doubt, line_doubts
from eval_core.suite.scrub.ordinary_words import is_ordinary, is_role_or_state

__all__ = ["CANNOT_KNOW", "Doubt", "doubts"]

CANNOT_KNOW = (
    "The audit cannot know: names in running text that nothing marks as names, names that are ordinary words, "
    "nicknames, what an image or an attachment shows, and what only your company would recognise. "
    "Read a new fixture before you share it, and list the people in it with --identities."
)


_PLACEHOLDER = re.compile(
    r"(?i)REDACTED-[a-z0-9-]+|(?:user|person|host)\d*|person\d+@example\.com|\+1 \d{3}-555-01\d\d|02(?::[0-9a-f]{2}){5}"
    r"|2001:db8::.*|(?:203\.0\.113|198\.51\.100|192\.0\.2)\.\d+"
)
_STEMS = re.compile(
    r"(?i)(?:^|[^a-z])(?:user(?:_?name)?|login|log_?name|account(?:_?name)?|owner|author|assignee|reviewer"
    r"|reporter|committer"
    r"|maintainer|creator|(?:created|modified|updated|started|approved|deployed|triggered|requested)[ _-]?by"
    r"|host(?:[ _-]?name)?"
    r"|computer(?:[ _-]?name)?|machine(?:[ _-]?name)?|workstation|node_?name|contact|customer|employee|patient"
    r"|attendees?"
    r"|(?:full|real|first|last|given|family|display)[ _-]?name|e-?mail|phone|mobile|tel(?:ephone)?|fax|street"
    r"|birth\w*|dob"
    r"|passport|ssn|tax[ _-]?id|iban|acct)\Z"
)
_PAIR = re.compile(
    r"(?P<key>[A-Za-z][\w. -]{1,40}?)[\"'\]]{0,2}[ \t]*(?::=|=>|[:=])"
    r"[ \t]*[\"'“\[{(]{0,2}(?P<value>[^\s\"'“”,;<>{}\[\]()|&\\][^\"'“”,;<>{}\[\]()|&\\\n]{0,60})"
)
_ADDRESS = re.compile(r"(?<![\w.+@-])[A-Za-z0-9][\w.+-]*@(?P<domain>[\w-]+(?:\.[\w-]+)+)")
_ACCOUNT_AT = re.compile(r"(?<![\w.@/+-])(?P<value>[a-z][\w.-]{2,30}@[a-z][\w]*(?:-\w+)+)(?![\w.@])")
_HOME = re.compile(r"(?i)(?:[/\\]+(?:home|users|documents and settings)[/\\]+)(?P<value>[^\s/\\\"'`:;,)<>|*?]{2,40})")
_GROUPS = re.compile(r"(?<![\w.,:/#-])(?P<value>\+?\(?\d{2,5}\)?(?:[ -]\d{2,5}){2,5})(?![\w.:/-])")
_DIALLED = re.compile(r"(?<![\w.+-])(?P<value>\+\d[\d ()/.-]{7,18}\d)(?!\w)")
_NETWORK = re.compile(r"(?<![\w.-])(?P<value>\d{1,3}(?:\.\d{1,3}){3})(?![\w.-])")
_TOKEN = re.compile(r"(?<![\w+/=.-])(?P<value>[\w+/-]{24,120}={0,2})(?![\w+/=-])")
_TWO_NAMES = re.compile(
    r"(?<![\w.])(?P<value>[A-ZÀ-Þ][a-zà-ÿ]{2,}(?:-[A-ZÀ-Þ][a-zà-ÿ]+)? [A-ZÀ-Þ][a-zà-ÿ]{2,}(?:[A-Z][a-z]+)?)(?![\w(])"
)
_OF_USER = re.compile(r"(?i)\b(?:for|by|as|of) (?:user|account|role|member) [\"'‘]?(?P<value>[\w.-]{3,30})")
# A line that speaks of secrets, and the words on it that are neither words nor names of settings.
_ABOUT_SECRETS = re.compile(
    r"(?im)^[^\n]{0,400}?\b(?:pass(?:word|wd|phrase|code)?|pw|pwd|secret|token|credentials?|creds|wi-?fi"
    r"|api[ -]?key|pin|kennwort|passwort|mot de passe|contraseña|senha|hasło|heslo|wachtwoord|пароль|密码|パスワード)\b"
    r"[^\n]{0,400}$"
)
_ODD_WORD = re.compile(
    r"(?<![\w/.@<$%{-])(?P<value>(?=[^\s\"'`]*\d)(?=[^\s\"'`]*[A-Za-z])[A-Za-z0-9!#%^&*+?~_.@$-]{8,64})(?![\w/(\[=:-])"
)
_BY = re.compile(r"(?m)\bby @?(?P<value>[a-z][a-z0-9._-]{4,30})[.]?$")
_LABELLED_ID = re.compile(
    r"(?i)\b(?:serial|asset|device|imei|imsi|vin|licen[cs]e|passport|policy|member(?:ship)?|insurance|patient"
    r"|customer)[ _-]?"
    r"(?:number|no\.?|nr\.?|id|tag|plate)?(?: \([\w ]{1,20}\))?[ \t]*[:#=]?[ \t]+(?-i:"
    r"(?P<value>[A-Z0-9][A-Z0-9-]{6,24}))(?!\w)"
)
_HARMLESS = re.compile(
    r"(?i)[\d.,:%/ -]{0,9}|[-*#_.…]+|true|false|null|none|[a-z_][\w.]*\(.*|[$%@&~*<].*|/.*|\.{1,2}/.*"
    r"|https?:.*|[\w-]+\.[a-z]{1,4}"
    r"|(?:self|this|ctx|req|request|args|config|os|process|event|data|row|obj|settings|options)[.\[].*"
    r"|.*\bexample\b.*|.*[=+*].*"
    r"|localhost.*|127\..*|10\..*|192\.168\..*|172\..*|0\..*|::.*"
)


def doubts(text: str, key: str | None) -> Iterator[Doubt]:
    """Yield what has the place or the shape of people, machines or secrets and is not known to be harmless."""
    if key is not None and _STEMS.search(_spread(key)) and len(text) <= 60 and not _harmless(text):
        yield Doubt(0, len(text), f"a value under the key {key!r}")
    for match in _PAIR.finditer(text):
        if _STEMS.search(_spread(match.group("key"))):
            value = match.group("value").rstrip(" .")
            value = value if "  " not in value else value[: value.index("  ")]
            if not _harmless(value):
                start = match.start("value")
                yield Doubt(start, start + len(value), "a value whose field names a person or a machine")
    for pattern, why, keep in _SHAPES:
        if pattern is _TWO_NAMES and not _is_english(text):
            continue  # the dictionary would find every noun strange
        for match in pattern.finditer(text):
            value = match.group("value")
            if not _PLACEHOLDER.fullmatch(value) and keep(value):
                yield Doubt(*match.span("value"), why)
    for line in _ABOUT_SECRETS.finditer(text):
        for match in _ODD_WORD.finditer(text, *line.span()):
            if _is_odd(match["value"]):
                yield Doubt(*match.span("value"), "letters and digits on a line that speaks of secrets")
    yield from line_doubts(text, key)
    for match in _ADDRESS.finditer(text):
        domain = match.group("domain").lower()
        known = domain.endswith(
            (".example", ".test", ".invalid", ".local", "example.com", "example.org", "example.net")
        )
        local = match.group().partition("@")[0]
        if (
            not known
            and not _PLACEHOLDER.fullmatch(local)  # a URL whose password went
            and local not in ("git", "hg", "noreply", "npm")
            and re.fullmatch(r"[a-z]{2,18}", domain.rsplit(".", 1)[-1])
        ):
            yield Doubt(*match.span(), "an e-mail address")


def _is_english(text: str) -> bool:
    words = re.findall(r"(?<![\w.])[a-z]{3,}(?![\w(])", text[:20_000])
    return len(words) < 6 or sum(map(is_ordinary, words)) >= 0.5 * len(words)


def _spread(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).strip()


def _harmless(value: str) -> bool:
    value = value.strip()
    if _PLACEHOLDER.fullmatch(value) or _HARMLESS.fullmatch(value):
        return True
    words = [word for word in re.split(r"[^\w]+|_|\d+", value) if word]
    # One strange word is enough to look twice; camel case is code.
    return all(is_ordinary(word) or is_role_or_state(word) or re.search(r"[a-z][A-Z]", word) for word in words)


def _is_phone_like(value: str) -> bool:
    digits = re.sub(r"\D", "", value)
    if re.search(r"555-01\d\d$", value):
        return False
    dated = re.match(r"(?:19|20)\d\d[ -][01]\d[ -][0-3]\d|\d\d-\d\d-(?:19|20)\d\d", value)
    sizes = all(group.endswith("0") for group in re.findall(r"\d+", value))
    return 9 <= len(digits) <= 16 and len(set(digits)) > 2 and not dated and not sizes


def _is_public(value: str) -> bool:
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    return (
        address.is_global
        and value not in ("8.8.8.8", "1.1.1.1", "8.8.4.4", "1.0.0.1")
        and not value.startswith(("0.", "1.", "2."))
    )


def _is_drawn(value: str) -> bool:
    body = value.rstrip("=")
    kinds = sum((any(map(str.isdigit, body)), any(map(str.islower, body)), any(map(str.isupper, body))))
    if kinds < 3 or ("/" in body and "." not in body and body.count("/") > 1):
        return False
    if re.match(
        r"(?:call|toolu|chatcmpl|cmpl|msg|req|resp|run|item|step|thread|file|batch|fc|rs|ws|sha\d+|AAAA)[_A-Z-]", body
    ) or re.search(r"[a-z]{5,}", body):
        return False
    counts = Counter(body)
    entropy = -sum(count / len(body) * math.log2(count / len(body)) for count in counts.values())
    return entropy >= 4.0


def _is_odd(value: str) -> bool:
    """Tell what is neither a placeholder, a version, a date, a size, an identifier nor words with a number."""
    if _PLACEHOLDER.fullmatch(value) or re.search(r"REDACTED-|example|xxxx|\*\*\*|\.\.\.|^argon2", value, re.I):
        return False
    if re.fullmatch(r"[a-z]+\d+[a-z]+\d*[a-z]*", value) and not re.fullmatch(r"[0-9a-f]+", value):
        return not any(len(word) > 2 and is_ordinary(word) for word in re.findall(r"[a-z]+", value))
    if re.fullmatch(
        r"[0-9a-f-]+|v?\d[\w.+-]*|[A-Z0-9_]+|[a-z0-9_]+|[a-z0-9]+(?:[-.][a-z0-9]+)+|[\w-]+\.\w{1,5}|[\w.-]+@[\w.-]+",
        value,
    ):
        return False
    words = [word for word in re.split(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])", value) if word]
    return not all(len(word) > 1 and is_ordinary(word) for word in words)


def _is_folder_of_somebody(value: str) -> bool:
    return not _harmless(value.strip(".$")) and "." not in value.lstrip(".")


def _are_names(value: str) -> bool:
    return not any(is_ordinary(word) for word in re.split(r"[ -]", value))


_SHAPES = (
    (_ACCOUNT_AT, "an account at a host", lambda value: not _harmless(value.replace("@", " "))),
    (_HOME, "a home folder", _is_folder_of_somebody),
    (_DIALLED, "digits grouped like a phone number", _is_phone_like),
    (_GROUPS, "digits grouped like a phone or identity number", _is_phone_like),
    (_NETWORK, "a public network address", _is_public),
    (_TOKEN, "characters that look drawn at random", _is_drawn),
    (_TWO_NAMES, "two capitalised words that no dictionary has", _are_names),
    (_BY, "a strange word after `by`", lambda value: not _harmless(value)),
    (
        _LABELLED_ID,
        "letters and digits after a word for a number of somebody",
        lambda value: not value.isalpha() or len(value) > 8,
    ),
    (_OF_USER, "a word after `user`", lambda value: not _harmless(value)),
)
