"""Matching a value of a given kind in a normalised text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from eval_core.domain.probe import FactKind
from eval_core.evidence.fact_spellings import COUNT_WORDS, SAME_UNIT, spellings
from eval_core.evidence.fact_text import HASH_PREFIX, PR_FORM, Haystack, normalise

__all__ = ["spans", "stands"]

Span = tuple[int, int]

WORD = r"[a-z0-9_\u00df-\u024f]"
LETTER = r"[a-z\u00df-\u024f]"
_WORD_CHAR = re.compile(WORD)
_TIME_FIRST = re.compile(r"\d\d:\d\d(?!\d)")
_TIME_LAST = re.compile(r"(?<!\d)\d\d:\d\d$")
_DATE_LAST = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d$")
_SHARE_LAST = re.compile(r"(?<![\d/])\d{1,7}/\d{1,7}$")
_REACH = 64  # how far around the needle a pattern may look
_UNITS = r"(?:ms|us|ns|s|secs?|mins?|m|h|hrs?|d|x|px|kb|mb|gb|tb|kib|mib|gib|th|st|nd|rd)"
_MONTHS = (
    "jan", "january", "feb", "february", "mar", "march", "apr", "april", "may", "jun", "june", "jul", "july", "aug",
    "august", "sep", "sept", "september", "oct", "october", "nov", "november", "dec", "december",
)  # fmt: skip
_AFTER_MONTH = "".join(rf"(?<!\b{month} )" for month in _MONTHS)
# "12 may fail" speaks of twelve things, "12 May 2026" of a day.
_BEFORE_MONTH = rf"(?:st|nd|rd|th)? (?:of )?(?:{'|'.join(set(_MONTHS) - {'may'})}|may(?= \d{{4}}|[,.]|$))(?!{WORD})"
_LIST = r"(?:#?\d{1,7}(?:, and |, | and | & |/)){0,8}"
_PR_LEAD = (
    r"(?:(?<![&\w/])[#!]|(?<=[a-z0-9_.-])#|(?<=\d/)[#!]|[\w.-]{1,40}/[\w.-]{1,40}!"
    rf"|(?<![a-z0-9])(?:prs?|pull requests?|pulls?|issues?|mrs?|merge requests?|merge_requests|tickets?|bugs?|gh)"
    rf"(?: (?:view|merge|checkout|close|comment|edit|diff|checks|review|reopen|ready))?[\s/:#_-]{{0,3}}"
    rf"(?:number |no\.? |id )?#?{_LIST}#?"
    r"|number[\"']?\s?[:=]\s?)"
)
_CODE_CUE = (
    r"(?<![a-z])(?:exit(?:ed|_code|code)?|returncode|return|code|status|rc|errno|error|http)(?![a-z])[^.;]{0,24}?"
)
# What people name by its first number alone; after any other word "18" may be a count.
_BY_MAJOR = (
    "node(?:\\.?js)?|python|java|jdk|openjdk|postgres(?:ql)?|pg|mysql|mariadb|redis|kafka|mongo(?:db)?|elasticsearch|php"
    "|ruby|rails|django|debian|ubuntu|fedora|rhel|alpine|macos|ios|android|windows|react|angular|vue|next(?:\\.?js)?|vite"
    "|webpack|typescript|gcc|clang|llvm|cuda|terraform|gradle|spring boot|\\.net|c\\+\\+"
)
_NEXT_TO = (
    r"(?<![a-z])(?:exit(?:ed)?|code|status|rc|errno|error|http|signal)(?: (?:code|status|with|of|was|is))*[ :=]{1,3}"
)
_PRERELEASE = (
    r"(?![-+._]?(?:rc|alpha|beta|dev|pre|post|a|b)[-.]?\d)(?!-(?:rc|alpha|beta|dev|pre|preview|snapshot"
    r"|nightly|canary|next)(?![a-z]))"
)


# The same few edges belong to thousands of values: compiling them once, apart from the value, is what makes this quick.
_regex = lru_cache(maxsize=16384)(re.compile)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A literal that must be there, what must surround each of its places, and what must lead up to it."""

    needle: str
    before: re.Pattern[str]
    """Looks around where the value begins, and takes nothing."""
    after: re.Pattern[str]
    body: re.Pattern[str] | None = None
    """The value, where it is more than its literal; of the same length wherever it stands."""
    offset: int = 0
    """Where in the value the literal begins."""
    lead: re.Pattern[str] | None = None

    def _end(self, text: str, start: int) -> int | None:
        if start < 0 or self.before.match(text, start) is None:
            return None
        end = start + len(self.needle)
        if self.body is not None:
            found = self.body.match(text, start)
            if found is None:
                return None
            end = found.end()
        match = self.after.match(text, end)
        return None if match is None else match.end()

    def spans(self, text: str) -> Iterator[Span]:
        at = text.find(self.needle)
        while at >= 0:
            start = at - self.offset
            end = self._end(text, start)
            if end is not None:
                if self.lead is None:
                    yield start, end
                elif lead := self.lead.search(text[max(0, start - _REACH) : start]):
                    yield start - len(lead.group()), end
            at = text.find(self.needle, at + 1)


def _pattern(needle: str, before: str, after: str, lead: str | None = None) -> _Pattern:
    return _Pattern(needle, _regex(before), _regex(after), lead=_regex(f"(?:{lead})$") if lead else None)


def _edges(value: str) -> tuple[str, str]:
    """Return what must surround a value so that it does not begin or end inside a word or a number."""
    before = after = ""
    if _WORD_CHAR.match(value[0]):
        before = rf"(?<!{WORD})"
        if value[0].isdigit():
            before += r"(?<!\d\.)"
        if _TIME_FIRST.match(value):
            before = rf"(?:{before}(?<!\d:)|(?<=\dt))"  # within 2026-03-12T04:30
    if _WORD_CHAR.match(value[-1]):
        after = rf"(?!{WORD})"
        if value[-1].isdigit():
            after += r"(?!\.\d)"
        if _DATE_LAST.search(value):
            after = rf"(?:(?=t\d\d)|{after})"
        elif _TIME_LAST.search(value):
            after = rf"z?{after}"
        elif _SHARE_LAST.search(value):
            after += r"(?!/\d)"  # 2/3/2026
    return before, after


_MAIL = re.compile(r"[^\s@]+@[\w-]+(?:\.[\w-]+)+")


_NOT_DENIED = "".join(rf"(?<!{word} )" for word in (r"\bnot", r"\bnever", r"\bno longer", r"\bwithout", "n't"))
"""Before a decision: "do not use Redis" is another one than "use Redis"."""


def _text(value: str) -> _Pattern:
    if _MAIL.fullmatch(value):
        return _host(value)
    words = re.split(r"(?<=\w)[ -](?=\w)", value)
    longest = max(words, key=len)
    offset = sum(len(word) + 1 for word in words[: words.index(longest)])
    before, after = map(_regex, _edges(value))
    if "-" in value and " " not in value:
        # "dual-write" is "dual write", and a part of no longer name.
        before, after = _regex(before.pattern + rf"(?<!{WORD}-)"), _regex(after.pattern + rf"(?!-{WORD})")
    if " " in value and not re.search(r"\d", value):
        before = _regex(before.pattern + _NOT_DENIED)
    body = None if len(words) == 1 else re.compile("[ -]".join(map(re.escape, words)))
    return _Pattern(longest, before, after, body, offset)


_NUMBER_FORM = re.compile(rf"([-+]?)([$€£]?)(\d+|{'|'.join(COUNT_WORDS)})((?:\.\d+)?)\s?((?:[^\W\d_]|[%$€£°]).*|)")


def _number(value: str) -> _Pattern:
    form = _NUMBER_FORM.fullmatch(value)
    if form is None:
        return _text(value)
    sign, money, whole, fraction, unit = form.groups()
    # A fraction may follow a name (python3.11, v1.5); a whole number there belongs to the name.
    before = r"(?<![\d_])" if fraction else rf"(?<!{WORD})"
    before += r"(?<!\d\.)(?<![\s(=:]-)(?<!^-)(?<!(?<!\.)\.)"
    if sign == "-":
        before = r"(?<![\w-])"
    elif money:
        before = ""
    fraction = fraction.rstrip("0") if fraction.strip(".0") else fraction
    literal = f"{sign.strip('+')}{money}{whole}{fraction}"
    if literal == whole:
        if len(whole) > 1 and whole.isdigit():
            before = before.replace(rf"(?<!{WORD})", rf"(?:(?<!{WORD})|(?<=\d\dx))", 1)  # 1280x720
        before += _alone(whole)
    given = rf"[\s-]?{SAME_UNIT.get(unit, re.escape(unit))}(?!{WORD})"
    cents = "" if fraction else r"(?:\.00(?!\.?\d))?"
    # "Sixth" and "tens" are other words than the count.
    ends = rf"{_UNITS}?(?!{WORD})" if whole.isdigit() else rf"(?!{WORD})"
    if len(whole) > 1:
        ends = rf"(?:{ends}|(?=x\d\d))"  # 1280x720
    after = given if unit else rf"{cents}{ends}(?!\.\d)"
    if fraction:
        after = "0*" + after
    if fraction and literal == f"0{fraction}":
        # The nought before the point may be left out.
        return _pattern(fraction, r"(?:(?<=(?<![\w.-])0)|(?<=(?<=\d-)0)|(?<![\w.]))", after)
    return _pattern(literal, before, after)


def _alone(digits: str) -> str:
    """Return what must not surround a whole number, lest it be a part of something that means another thing."""
    # A name (SHA-256, RELAY-42) and a date or code of three groups; two groups are a range (100-200).
    parts = rf"(?<![a-z]-)(?<!\d-\d-)(?<!\d-\d\d-)(?!(?<=\d-){digits}-\d)(?!{digits}-\d+-\d)"
    parts += r"(?<![a-z]\d-)(?<![a-z]\d\d-)(?<![a-z]\d{3}-)"  # week W07-7, rack B112-4
    parts += r"(?<![a-z]-\d-)(?<![a-z]-\d\d-)(?<![a-z]-\d{3}-)(?<![a-z]-\d{4}-)"  # ISO-8859-9
    parts += rf"(?!{digits}-[a-z](?![a-z]))"  # 5432-A is an order, a 7-day window is seven days
    if len(digits) in (1, 2, 4):
        parts += _AFTER_MONTH + rf"(?!{digits}{_BEFORE_MONTH})"  # June 19, 19 June, May 2026
    if len(digits) == 4:
        parts += r"(?<!\b[a-z]{3} \d, )(?<!\b[a-z]{3} \d\d, )"
    if len(digits) <= 2:
        # The time 04:30 and the share 4/5; but 10.0.0.1:80 ends in a port, and queue.py:30:15 names a line.
        parts += r"(?<![a-z]/)(?<!\s/)(?<![^.\d]\d:)(?<![^.\d]\d\d:)(?<!^\d:)(?<!^\d\d:)(?<!\d/)"
        parts += rf"(?!(?<!:){digits}:\d\d(?!\d))(?!{digits}/\d)"
    return parts


_CODE = re.compile(r"(?:[a-z][a-z\s:=#_]*?[\s:=#]*(?<![a-z]))?(\d{1,6})")
_CODE_START = rf"(?<!{WORD})(?<!\d\.)"
_CODE_END = rf"(?!{WORD})(?!\.\d)"
# What is counted, measured or numbered is no code: 503 rows, 137 MB, line 404. But "503 errors" are, and so is "a 503".
_NO_NUMBER = r"(?<![#$€£])(?<!line )(?<!lines )(?<!port )(?<!page )"
_NO_COUNT = (
    rf"(?!\s?%|[\s-]{_UNITS}(?!{WORD}))"
    rf"(?:(?<=\ba \d\d\d)|(?<=\bthe \d\d\d)|(?! (?!errors|responses|statuses|has|was|is|as)[a-z]+s(?!{WORD})))"
)


def _error(value: str) -> _Pattern:
    form = _CODE.fullmatch(value)
    if form is None:
        return _text(value)
    code = form.group(1)
    # One or two digits mean nothing alone: "2" is an exit status only beside a word that says so.
    if len(code) <= 2:
        return _pattern(code, _CODE_START, _CODE_END, _CODE_CUE)
    several = "s?" if len(code) == 3 and code[0] in "45" else ""
    return _pattern(code, _CODE_START + _NO_NUMBER, several + _CODE_END + _NO_COUNT)


def _marked_error(value: str) -> _Pattern | None:
    """Return the pattern of a code beside a word that says so, whatever follows: exit code 137 means."""
    form = _CODE.fullmatch(value)
    return (
        None if form is None or len(form.group(1)) <= 2 else _pattern(form.group(1), _CODE_START, _CODE_END, _NEXT_TO)
    )


def _version(value: str) -> _Pattern:
    bare = value.removeprefix("v")
    if not bare[:1].isdigit():
        return _text(value)
    dotted = "." in bare
    before = r"(?<!\d)(?<!\d[._])(?<!\d,)" if dotted else ""
    after = rf"(?!_?\d)(?!{LETTER})(?!\.[0-9x*])" + ("" if re.search(r"[a-z]", bare) else _PRERELEASE)
    lead = None if dotted else rf"(?<!{WORD})(?:v|version:? v?|(?:{_BY_MAJOR})[ :@-]?v?)"
    return _pattern(bare, before, after, lead)


def _pr(value: str) -> _Pattern:
    form = PR_FORM.fullmatch(value) or re.fullmatch(r"(\d{1,7})", value)
    if form is None:
        return _text(value)
    number = form.group(1)
    return _pattern(number, "", rf"(?!{WORD})(?!\.\d|,\d{{3}}(?!\d))", _PR_LEAD)


_PATH_END = rf"(?!{WORD})(?![.-]{WORD})"


_AFTER_FOLDER = "|".join(f"(?<= {word} )|(?<=^{word} )" for word in ("folder", "directory", "dir", "cd", "mkdir"))


def _path(value: str) -> _Pattern:
    directory = value.endswith("/")
    bare = re.sub(r"^(?:~/|\$\{?home\}?/|(?:\./)+)", "", value).rstrip("/") or value
    before, lead = "", None
    if bare.startswith("/"):
        # A route stands after a host, a port or a variable; "backup/etc/hosts" is another file than "/etc/hosts".
        lead = r"(?<![\w.~/-])|(?:localhost|://[\w.-]{1,60})(?::\d{1,5})?|:\d{2,5}"
    elif _WORD_CHAR.match(bare[0]) or bare[0] in ".@-":
        before = rf"(?<!{WORD})(?<!{WORD}[.@+-])"
    after = _PATH_END + "(?!~)" + ("" if directory else rf"(?!/{WORD})")
    if directory and "/" not in bare:
        # "the data shows" says nothing of data/.
        before = rf"(?:{before}(?={re.escape(bare)}(?:/| (?:folder|directory|dir)(?![a-z])))|(?<=/)|{_AFTER_FOLDER})"
    return _pattern(bare, before, after, lead)


def _host(value: str) -> _Pattern:
    return _pattern(value, r"(?<![a-z0-9_.-])", r"(?![a-z0-9_])(?![.-][a-z0-9])")


def _url(value: str) -> _Pattern:
    scheme, separator, rest = value.rpartition("://")
    rest = rest.rstrip("/") or rest
    lead = rf"(?<!{WORD}){re.escape(scheme)}://|(?<![a-z0-9_.@/-])" if separator else r"(?<![a-z0-9_.-])"
    # A longer address below this one still names it.
    return _pattern(rest, "", _PATH_END, lead)


def _identifier(value: str) -> _Pattern:
    bare = value.removesuffix("()") or value
    before, after = rf"(?<!{WORD})", rf"(?!{WORD})"
    if not _WORD_CHAR.match(bare[0]):
        before = ""
    elif "-" in bare:
        before += rf"(?<!{WORD}-)"
    if "-" in bare:
        after += rf"(?!-{WORD})"
    if "." in bare:
        after += r"(?!\.[a-z0-9_]++(?!\())"
    return _pattern(bare, before, after)


def _cron(value: str) -> _Pattern:
    if value.startswith("@"):
        return _text(value)
    before = r"(?<![\w*/,])(?<!\d )"
    return _pattern(value, before, r"(?![\w*/-])(?!,[\w*])(?! [\d*][\d*/,-]*(?:\s|$))")


_BUILDERS = {
    "text": _text,
    "number": _number,
    "error": _error,
    "version": _version,
    "pr": _pr,
    "path": _path,
    "host": _host,
    "url": _url,
    "identifier": _identifier,
    "cron": _cron,
    "hash": _identifier,
}


@lru_cache(maxsize=16384)
def _compiled(value: str, kind: FactKind) -> tuple[_Pattern, ...]:
    plain = normalise(value).strip("\"'") or normalise(value)
    if not plain:
        return ()
    found = [_BUILDERS[kind](spelling) for spelling in spellings(plain, kind)]
    if kind == "error" and (marked := _marked_error(plain)):
        found.append(marked)
    return tuple(found)


def _hash_words(value: str, haystack: Haystack) -> list[str]:
    plain = normalise(value)
    return [
        word
        for word in haystack.hashes.get(plain[:HASH_PREFIX], ())
        if word.startswith(plain) or plain.startswith(word)
    ]


def spans(value: str, kind: FactKind, haystack: Haystack) -> Iterator[Span]:
    """Yield the places in the normalised text at which the value stands."""
    if kind == "hash" and len(normalise(value)) >= HASH_PREFIX:
        for word in _hash_words(value, haystack):
            yield from _pattern(word, r"(?<![0-9a-f])", r"(?![0-9a-f])").spans(haystack.text)
        return
    for pattern in _compiled(value, kind):
        yield from pattern.spans(haystack.text)


def stands(value: str, kind: FactKind, haystack: Haystack) -> bool:
    """Tell whether the value stands anywhere in the text."""
    if kind == "hash" and len(normalise(value)) >= HASH_PREFIX:
        return bool(_hash_words(value, haystack))
    return next(spans(value, kind, haystack), None) is not None
