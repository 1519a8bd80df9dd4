"""Spellings of one value: counts in words, amounts of money, dates, shares, contractions, pre-releases."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from eval_core.domain.probe import FactKind

WORD = r"[a-z0-9_\u00df-\u024f]"
"""A character that continues a word of normalised text."""
SUFFIX_UNITS = r"(?:ms|us|ns|s|secs?|mins?|m|h|hrs?|d|x|px|kb|mb|gb|tb|kib|mib|gib|th|st|nd|rd)"
"""What may be written right after a number without making it another one."""

COUNT_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
# The same unit in its usual spellings; a value that is given with one of them is found with any of them.
_UNITS = (
    ("ns", "nanosecond", "nanoseconds"),
    ("us", "μs", "microsecond", "microseconds"),
    ("ms", "msec", "msecs", "millisecond", "milliseconds"),
    ("s", "sec", "secs", "second", "seconds"),
    ("min", "mins", "minute", "minutes"),
    ("h", "hr", "hrs", "hour", "hours"),
    ("d", "day", "days"),
    ("w", "week", "weeks"),
    ("month", "months"),
    ("year", "years"),
    ("%", "percent", "per cent"),
    ("kb", "kilobyte", "kilobytes"),
    ("mb", "megabyte", "megabytes"),
    ("gb", "gigabyte", "gigabytes"),
    ("tb", "terabyte", "terabytes"),
    ("$", "usd", "dollar", "dollars"),
    ("€", "eur", "euro", "euros"),
    ("£", "gbp", "pound", "pounds"),
)
SAME_UNIT = {unit: f"(?:{'|'.join(map(re.escape, group))})" for group in _UNITS for unit in group}

_COUNT = re.compile(rf"(?<![\w.,:/#-])(?:(\d|1[0-2])|({'|'.join(COUNT_WORDS)}))(?=[ -][a-z]|$)")
_JOINED_UNIT = re.compile(r"(\d|1[0-2])([a-z%]+)")  # 2h
_CURRENCIES = {name: (group[0], group[1]) for group in _UNITS if group[0] in "$€£" for name in group}
_AMOUNT = re.compile(
    r"(?P<sign>[$€£]|usd |eur |gbp )?(?P<sum>\d+(?:\.\d+)?)"
    rf"(?(sign)| ?(?P<unit>{'|'.join(map(re.escape, _CURRENCIES))}))"
)
_SHARE = re.compile(r"(?<![\w./-])(\d{1,7})(?:/| (?:out )?of (?:the )?)(\d{1,7})(?![\w./-])")
_EXPONENT = re.compile(r"\d(?:\.\d+)?e\+?-?\d\d?")
_PRERELEASE = re.compile(r"(?<=\d)[-._]?(rc|alpha|beta|dev|post|a|b)[-._]?(\d+)$")
_CONTRACTED = {
    "can't": "cannot",
    "won't": "will not",
    "mustn't": "must not",
    "needn't": "need not",
    **{
        f"{verb}n't": f"{verb} not"
        for verb in ("do", "does", "did", "is", "are", "was", "were", "has", "have", "had", "should", "would", "could")
    },
}
_SPELLED_OUT = {full: short for short, full in _CONTRACTED.items()}
_SHORT = re.compile(rf"\b(?:{'|'.join(_CONTRACTED)})(?!\w)")
_FULL = re.compile(rf"\b(?:{'|'.join(_SPELLED_OUT)})(?!\w)")

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_MONTH = rf"(?P<month>{'|'.join(f'{name[:3]}(?:{name[3:]})?' if name[3:] else name for name in _MONTHS)}|sept)\.?"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DATES = tuple(
    map(
        re.compile,
        (
            rf"{_YEAR}[-/](?P<number>0[1-9]|1[0-2])[-/](?P<day>0[1-9]|[12]\d|3[01])",
            rf"{_MONTH} {_DAY}(?:,? {_YEAR})?",
            rf"{_DAY}\.? (?:of )?{_MONTH}(?:,? {_YEAR})?",
        ),
    )
)


def _other_count(match: re.Match[str]) -> str:
    digits, word = match.groups()
    return COUNT_WORDS[int(digits)] if digits else str(COUNT_WORDS.index(word))


def _counts(plain: str) -> Iterator[str]:
    # "One" alone is mostly a pronoun, and a nought is seldom spelled out.
    if plain not in ("0", "1", "one", "zero"):
        yield _COUNT.sub(_other_count, plain)
    if joined := _JOINED_UNIT.fullmatch(plain):
        yield f"{COUNT_WORDS[int(joined[1])]} {joined[2]}"


def _numbers(plain: str) -> Iterator[str]:
    if plain.isdigit() and len(plain) > 6:
        # From a million on, points group digits beyond doubt.
        yield f"{int(plain):,}".replace(",", ".")
    if plain.isdigit() and plain.endswith("000") and plain[0] != "0" and len(plain) < 20:
        head = plain.rstrip("0")
        yield f"{head[0]}{'.' if head[1:] else ''}{head[1:]}e{len(plain) - 1}"
    elif _EXPONENT.fullmatch(plain):
        yield f"{Decimal(plain):f}"
    elif amount := _AMOUNT.fullmatch(plain):
        sign, code = _CURRENCIES[(amount["sign"] or amount["unit"]).strip()]
        yield from (f"{sign}{amount['sum']}", f"{amount['sum']} {code}", f"{code} {amount['sum']}")


def _shares(plain: str) -> Iterator[str]:
    if share := _SHARE.search(plain):
        part, whole = share.groups()
        for said in (f"{part} of {whole}", f"{part} out of {whole}", f"{part}/{whole}", f"{part} of the {whole}"):
            yield f"{plain[: share.start()]}{said}{plain[share.end() :]}"


def _contractions(plain: str) -> Iterator[str]:
    yield _SHORT.sub(lambda match: _CONTRACTED[match.group()], plain)
    yield _FULL.sub(lambda match: _SPELLED_OUT[match.group()], plain)


def _ordinal(day: int) -> str:
    return f"{day}{'th' if 10 < day < 14 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


def _dates(plain: str) -> Iterator[str]:
    """Yield a date with its month in words, in each order; 03/04/2026 is two dates, so it is none."""
    found = next((match for form in _DATES if (match := form.fullmatch(plain))), None)
    if found is None:
        return
    parts = found.groupdict()
    number = parts.get("number")
    month = int(number) if number else 1 + [name[:3] for name in _MONTHS].index(parts["month"][:3])
    day, year = int(parts["day"]), parts["year"]
    name = _MONTHS[month - 1]
    for spelled in dict.fromkeys((name, name[:3])):
        for said in (f"{spelled} {day}", f"{spelled} {_ordinal(day)}"):
            yield from (f"{said}, {year}", f"{said} {year}") if year else (said,)
        for said in (f"{day} {spelled}", f"{_ordinal(day)} {spelled}", f"{_ordinal(day)} of {spelled}"):
            yield f"{said} {year}" if year else said
    if year:
        yield from (f"{year}-{month:02}-{day:02}", f"{year}/{month:02}/{day:02}")


def _prereleases(plain: str) -> Iterator[str]:
    if found := _PRERELEASE.search(plain):
        base = plain[: found.start()]
        label, number = found.groups()
        yield from (f"{base}{label}{number}", f"{base}-{label}{number}", f"{base}-{label}.{number}")


def spellings(plain: str, kind: FactKind) -> Iterator[str]:
    """Yield a normalised value as it is, then as others write the same."""
    yield plain
    others: list[str] = []
    if kind in ("text", "number"):
        others += _counts(plain)
    if kind == "number":
        others += _numbers(plain)
    elif kind == "text":
        others += _contractions(plain)
        others += _dates(plain)
        others += _shares(plain)
    elif kind == "version":
        others += _prereleases(plain)
    elif kind == "error":
        others.append(plain.replace(": ", " ", 1))
    yield from (other for other in dict.fromkeys(others) if other != plain)
