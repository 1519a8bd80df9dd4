"""Matching a value of a given kind in a normalised text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from eval_core.domain.probe import FactKind
from eval_core.facts.denial import denied_before
from eval_core.facts.fact_spellings import COUNT_WORDS, SAME_UNIT, SUFFIX_UNITS, WORD, spellings
from eval_core.facts.fact_text import HASH_PREFIX, PR_FORM, Haystack, normalise
from eval_core.facts.status_codes import (
    LISTED_CODE,
    NAMED_CODE,
    NOT_COUNTED,
    NOT_LISTED,
    NOT_MEASURED,
    NOT_NUMBERED,
)

Span = tuple[int, int]

LETTER = r"[a-z\u00df-\u024f]"
_WORD_CHAR = re.compile(WORD)
_TIME_FIRST = re.compile(r"\d\d:\d\d(?!\d)")
_TIME_LAST = re.compile(r"(?<!\d)\d\d:\d\d$")
_DATE_LAST = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d$")
_SHARE_LAST = re.compile(r"(?<![\d/])\d{1,7}/\d{1,7}$")
_REACH = 64  # how far around the needle a pattern may look
_MONTHS = (
    "jan", "january", "feb", "february", "mar", "march", "apr", "april", "may", "jun", "june", "jul", "july", "aug",
    "august", "sep", "sept", "september", "oct", "october", "nov", "november", "dec", "december",
)  # fmt: skip
# Of equal length each, as looking back demands. "They may. 19 rows" does not name a day.
_MONTHS_BY_LENGTH = ["|".join(month for month in _MONTHS if len(month) == length) for length in range(3, 10)]
_AFTER_MONTH = "".join(rf"(?<!\b(?:{months}) )" for months in _MONTHS_BY_LENGTH)
_AFTER_MONTH += r"(?<!\b(?:jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec)\. )(?<!\bsept\. )"
# "12 may fail" speaks of twelve things, "12 May 2026" of a day.
_BEFORE_MONTH = (
    rf"(?:st|nd|rd|th)?[ -](?:of )?(?:{'|'.join(sorted(set(_MONTHS) - {'may'}))}|may(?=[ -]\d{{4}}|[,.]|$))(?!{WORD})"
)
_LIST = r"(?:#?\d{1,7}(?:, and |, | and | & |/)){0,8}"
_PR_LEAD = (
    r"(?:(?<![&\w/])[#!]|(?<=[a-z0-9_.-])#|(?<=\d/)[#!]|[\w.-]{1,40}/[\w.-]{1,40}!"
    rf"|(?<![a-z0-9])(?:prs?|pull requests?|pulls?|issues?|mrs?|merge requests?|merge_requests|tickets?|bugs?|gh)"
    rf"(?: (?:view|merge|checkout|close|comment|edit|diff|checks|review|reopen|ready))?[\s/:#_-]{{0,3}}"
    rf"(?:number |no\.? |id )?#?{_LIST}#?"
    r"|(?<![a-z] )(?<![a-z])number'?\s?[:=]\s?)"  # of JSON and of `gh pr view`; a line number is another thing
)
# What people name by its first number alone; after any other word "18" may be a count.
_BY_MAJOR = (
    "node(?:\\.?js)?|python|java|jdk|openjdk|postgres(?:ql)?|pg|mysql|mariadb|redis|kafka|mongo(?:db)?|elasticsearch|php"
    "|ruby|rails|django|debian|ubuntu|fedora|rhel|alpine|macos|ios|android|windows|react|angular|vue|next(?:\\.?js)?|vite"
    "|webpack|typescript|gcc|clang|llvm|cuda|terraform|gradle|spring boot|\\.net|c\\+\\+"
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
    barred: re.Pattern[str] | None = None
    """What must not lead up to the value."""

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

    def _is_barred(self, text: str, start: int) -> bool:
        return self.barred is not None and self.barred.search(text, max(0, start - _REACH), start) is not None

    def spans(self, text: str) -> Iterator[Span]:
        at = text.find(self.needle)
        while at >= 0:
            start = at - self.offset
            end = self._end(text, start)
            if end is not None and not self._is_barred(text, start):
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


_PLAIN_VALUE = re.compile(rf"(?:\d|(?:{'|'.join((*COUNT_WORDS, *_MONTHS))})(?!{WORD}))")
"""Begins a count or a date: "not 19 March" still names it."""


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
    body = None if len(words) == 1 else re.compile("[ -]".join(map(re.escape, words)))
    barred = None if _PLAIN_VALUE.match(value) else denied_before(value)
    return _Pattern(longest, before, after, body, offset, barred=barred)


_NUMBER_FORM = re.compile(rf"([-+]?)([$€£]?)(\d+|{'|'.join(COUNT_WORDS)})((?:\.\d+)?)\s?((?:[^\W\d_]|[%$€£°]).*|)")


_NO_MAGNITUDE = rf"(?!\^\d| ?[万萬亿億兆]|[ -](?:hundred|thousand|million|billion|trillion|mio|mrd|bn|mn)(?!{WORD}))"
_DATA_UNITS = frozenset(unit for unit in SAME_UNIT if re.fullmatch(r"[kmgt]b|\w+bytes?", unit))
_NO_RATE = rf"(?!/(?:s|sec|second|min|minute|h|hour|day)(?!{WORD})| per (?:second|minute|hour|day)(?!{WORD}))"


def _number(value: str) -> _Pattern:
    form = _NUMBER_FORM.fullmatch(value)
    if form is None:
        return _text(value)
    sign, money, whole, fraction, unit = form.groups()
    # A fraction may follow a name (python3.11, v1.5); a whole number there belongs to the name.
    before = r"(?<![\d_])" if fraction else rf"(?<!{WORD})"
    before += r"(?<!\d\.)(?<!(?<![\w)\]%°.-])-)(?<!(?<!\.)\.)(?<!\d\^)"
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
    rate = _NO_RATE if unit in _DATA_UNITS else ""
    given = rf"[\s-]?{SAME_UNIT.get(unit, re.escape(unit))}(?!{WORD}){rate}"
    cents = "" if fraction else r"(?:\.00(?!\.?\d))?"
    # "Sixth" and "tens" are other words than the count.
    ends = rf"{SUFFIX_UNITS}?(?!{WORD})" if whole.isdigit() else rf"(?!{WORD})"
    if len(whole) > 1:
        ends = rf"(?:{ends}|(?=x\d\d))"  # 1280x720
    # Nobody counts in thousands of millions: what follows a long number is another line.
    magnitude = "" if whole.isdigit() and len(whole) > 3 else _NO_MAGNITUDE
    after = given if unit else rf"{cents}{ends}(?!\.\d){magnitude}"
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
    if re.fullmatch(r"(?:19|20)\d\d", digits):
        parts += rf"(?!{digits}[-/](?:0[1-9]|1[0-2])(?!\d))(?<!\b0[1-9]-)(?<!\b1[0-2]-)"  # 2026-03, 03-2026
    if len(digits) == 4:
        parts += r"(?<!\b[a-z]{3} \d, )(?<!\b[a-z]{3} \d\d, )"
    if len(digits) <= 2:
        # The time 04:30 and the share 4/5; but 10.0.0.1:80 ends in a port, and queue.py:30:15 names a line.
        parts += r"(?<![a-z]/)(?<!\s/)(?<![^.\d]\d:)(?<![^.\d]\d\d:)(?<!^\d:)(?<!^\d\d:)(?<!\d/)"
        parts += rf"(?!(?<!:){digits}:\d\d(?!\d))(?!{digits}/\d)(?<!\b(?:19|20)\d\d-)"
        parts += rf"(?!{digits} ?(?:[ap]\.m\.|[ap]m(?!{WORD})|o'clock))"
    else:
        # 120/300; but cache:6379/0 has a port, and s/8471/8493/ puts one for the other.
        parts += rf"(?!(?<=\d/){digits}(?!/))(?!(?<![:/]){digits}/\d)"
    return parts


_CODE_WORDS = r"https?|status|error|err|errno|exit|exited|exits|returned|returns|return|returncode|code|rc|signal|with"
# "curl error 28" is a code; "ValueError: unsupported version 3" is a sentence.
_CODE = re.compile(rf"(?:(?:[a-z]++[\s:]++)?(?:(?:{_CODE_WORDS})(?![a-z])[\s:=#_]*)+)?(\d{{1,6}})")
_CODE_START = rf"(?<!{WORD})(?<!\d\.)"
_CODE_END = rf"(?!{WORD})(?!\.\d)"
# What is counted, measured or numbered is no code: 503 rows, 137 MB, line 404. But "503 errors" are, and so is "a 503".
_UNCOUNTED = rf"(?:(?<=\ba \d\d\d)|(?<=\bthe \d\d\d)|{NOT_COUNTED})"


def _error(value: str) -> _Pattern:
    form = _CODE.fullmatch(value)
    if form is None:
        return _text(value)
    code = form.group(1)
    # One or two digits mean nothing alone: "2" is an exit status only beside a word that says so.
    if len(code) <= 2:
        return _pattern(code, _CODE_START, _CODE_END + NOT_LISTED, LISTED_CODE)
    several = "s?" if len(code) == 3 and code[0] in "45" else ""
    return _pattern(code, _CODE_START + NOT_NUMBERED, several + _CODE_END + NOT_MEASURED + _UNCOUNTED)


def _marked_code(value: str) -> _Pattern | None:
    """Return the pattern of a code beside a word that says so, whatever follows: exit code 137 means."""
    form = _CODE.fullmatch(value)
    return None if form is None else _pattern(form.group(1), _CODE_START, _CODE_END + NOT_MEASURED, NAMED_CODE)


_PORTS = r"(?<![a-z])ports?:? (?:\d{2,5}/){0,5}"


def _slashed_code(value: str) -> _Pattern | None:
    """Return the pattern of one of several codes or ports: status 500/502 is no share."""
    if not re.fullmatch(r"\d{3,5}", value):
        return None
    lead = f"(?:{NAMED_CODE}|{_PORTS})" if re.fullmatch(r"[1-5]\d\d", value) else _PORTS
    return _pattern(value, rf"{_CODE_START}(?:(?<=\d/)|(?=\d+/\d))", _CODE_END, lead)


_MEASURES = "|".join(re.escape(unit) for unit in SAME_UNIT if unit[-1].isalpha())
_NO_MEASURE = rf"(?!\s?%|[\s-](?:{_MEASURES}|million|billion)(?!{WORD}))"


def _version(value: str) -> _Pattern:
    bare = value.removeprefix("v")
    if not bare[:1].isdigit():
        return _text(value)
    dotted = "." in bare
    before = r"(?<!\d)(?<!\d[._])(?<!\d,)(?<![$€£])" if dotted else ""
    after = rf"(?!_?\d)(?!{LETTER})(?!\.[0-9x*])" + ("" if re.search(r"[a-z]", bare) else _PRERELEASE)
    if re.fullmatch(r"\d+\.\d+", bare):
        after += _NO_MEASURE  # 1.2 seconds
    lead = None if dotted else rf"(?<!{WORD})(?:v|version:? v?|(?:{_BY_MAJOR})[ :@-]?v?)"
    return _pattern(bare, before, after, lead)


def _pr(value: str) -> _Pattern:
    form = PR_FORM.fullmatch(value) or re.fullmatch(r"(\d{1,7})", value)
    if form is None:
        return _text(value)
    pattern = _pattern(form.group(1), "", rf"(?!{WORD})(?!\.\d|,\d{{3}}(?!\d))", _PR_LEAD)
    repository = re.match(r"[\w.-]+/[\w.-]+(?=[#!])", value)
    if repository is None:
        return pattern
    joint = r"(?:[#!]|/(?:-/)?(?:pulls?|issues|merge_requests)/)"
    another = rf"(?<![\w.-])(?!{re.escape(repository.group())}{joint})[\w.-]{{1,40}}/[\w.-]{{1,40}}{joint}$"
    return replace(pattern, barred=_regex(another))


_PATH_END = rf"(?!{WORD})(?![.-]{WORD})"


_AFTER_FOLDER = "|".join(f"(?<= {word} )|(?<=^{word} )" for word in ("folder", "directory", "dir", "cd", "mkdir"))


_HOME_SIGN = r"(?:~|\$home|\$\{home\}|%userprofile%)/"
_HOME = rf"(?:{_HOME_SIGN}|(?<![\w.~-])(?:[a-z]:)?/(?:home|users)/[^\s/]{{1,40}}/|(?<![\w.~-])/root/)"
_IN_HOME = re.compile(r"(?:~|\$\{?home\}?)/(?=.)")
_HOME_OF = re.compile(r"(?:(?:[a-z]:)?/(?:home|users)/[^\s/]+|/root)/(?=.)")


def _after_path(value: str) -> str:
    return _PATH_END + "(?!~)" + ("" if value.endswith("/") else rf"(?!/{WORD})")


def _home_path(value: str, home: re.Pattern[str], lead: str) -> _Pattern | None:
    found = home.match(value)
    return _pattern(value[found.end() :].rstrip("/"), "", _after_path(value), lead) if found else None


def _shortened_home(value: str) -> _Pattern | None:
    """Return the pattern of a path in somebody's home folder, as they write it themselves."""
    return _home_path(value, _HOME_OF, _HOME_SIGN)


def _path(value: str) -> _Pattern:
    if in_home := _home_path(value, _IN_HOME, _HOME):
        return in_home
    bare = re.sub(r"^(?:\./)+", "", value).rstrip("/") or value
    before, lead = "", None
    if bare.startswith("/"):
        # A route stands after a host, a port or a variable; "backup/etc/hosts" is another file than "/etc/hosts".
        lead = r"(?<![\w.~/-])|(?:localhost|://[\w.-]{0,60})(?::\d{1,5})?|:\d{2,5}"
    elif _WORD_CHAR.match(bare[0]) or bare[0] in ".@-":
        before = rf"(?<!{WORD})(?<!{WORD}[.@+-])"
    if value.endswith("/") and "/" not in bare:
        # "the data shows" says nothing of data/.
        before = rf"(?:{before}(?={re.escape(bare)}(?:/| (?:folder|directory|dir)(?![a-z])))|(?<=/)|{_AFTER_FOLDER})"
    return _pattern(bare, before, _after_path(value), lead)


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


_ALSO: dict[FactKind, Callable[[str], _Pattern | None]] = {
    "error": _marked_code,
    "number": _slashed_code,
    "path": _shortened_home,
}
"""What else says the same, by a pattern of its own."""


@lru_cache(maxsize=16384)
def _compiled(value: str, kind: FactKind) -> tuple[_Pattern, ...]:
    plain = normalise(value).strip("\"'") or normalise(value)
    if not plain:
        return ()
    found = [_BUILDERS[kind](spelling) for spelling in spellings(plain, kind)]
    also = _ALSO[kind](plain) if kind in _ALSO else None
    return (*found, also) if also else tuple(found)


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
