"""Numbers, dates and addresses that only the people beside them tell to be somebody's.

A number with a label such as "Policy no." may count invoices. On a line that names a person it is most likely that
person's. So this module reads a session that was scrubbed once, and weighs what stands beside the placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from eval_core.suite.scrub.hits import Hit
from eval_core.suite.scrub.personal_numbers import is_number_label
from eval_core.suite.scrub.tables import rows
from eval_core.suite.scrub.words import word_list

WEIGHTS = {
    "a person on the line": 2,
    "a person on the line before or after": 1,
    "right after a person": 2,
    "a field of a form about a person": 4,
    "another personal number on the line": 1,
    "a word for somebody's number before it": 3,
    "an abbreviation before it": 2,
    "a word for any number before it": 2,
    "fills a cell": 1,
    "eight digits or more": 1,
    "letters and digits": 1,
    # What speaks against it.
    "a word for something else before it": -4,
    "a count, a time, a version or an address": -5,
    "a line of code": -4,
    "shaped like the number of a document": -4,
}
_ENOUGH, _MANY_DIGITS = 5, 8

_SOMEBODY = re.compile(r"(?<![\w@/\\.-])(?:Person\d+|person\d+@example\.com)(?![\w/\\-])")
_MARKED = re.compile(
    r"REDACTED-(?:national-id|phone|address|birth-date|passport|account|iban|card|serial|personal)|\+1 \d{3}-555-01\d\d"
)
# What is a number but nobody's: our placeholders, times with their dates, ids of things, numbers of processes.
_NOBODYS = re.compile(
    r"\+1 \d{3}-555-01\d\d|\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*|\d\d:\d\d:\d\d[.,\d]*(?: \d{1,7}){1,2}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
_NUMBER = re.compile(
    r"(?<![\w.+/@:#-])(?=[\w./ -]{0,24}\d)(?P<value>(?:[A-Z]{1,6}"
    r"|[A-Z]{1,4}[ -])?\d[\dA-Z]*(?:[ ./-](?=[A-Z]*\d)[\dA-Z]{1,8}){0,5})(?![\w@]"
    r"|[.:/-]\w)"
)
_LABEL = re.compile(r"(?P<word>[^\W\d_][\w.'’-]*\.?)(?P<sep>[\"'\])]{0,2}\s*[:：=#|]?\s*(?:[\"'\[(<]|is |ist |: )?)\Z")
_ANY_NUMBER = re.compile(
    r"(?i)(?:.*(?:nummer|number|numarası|número|numero|numéro|номер|číslo|numer|szám|번호|番号|号码|號碼|id|nr|no"
    r"|num)|n[°º])\.?"
)
_ABBREVIATION = re.compile(r"(?:[^\W\d_a-zà-ÿа-я]\.?){3,6}|(?:[^\W\d_a-zà-ÿа-я]\.){2}")
_PLAIN = re.compile(
    r"\d{1,5}|(?!\d{1,3}(?:\.\d{3}){2,}\Z)\d+\.\d+(?:\.\d+)*|(?:[0-9A-F]{2}[ :-]){3,}[0-9A-F]{2}"
    r"|\d{1,3}(?:\.\d{1,3}){3}/\d{1,2}|1[5-9]\d{8}(?:\d{3}){0,3}|(?:19|20)\d\d(?:[-/.]\d\d?){1,2}(?!\d).*"
    r"|\d\d?[./-]\d\d?[./-](?:19"
    r"|20)?\d\d"
)
# Orders, invoices and tickets: ORD-250611-0617, T-2025-004417.
_DOCUMENT = re.compile(r"[A-Z]{1,6}-\d+(?:-\d+)*")
_CODE = re.compile(
    r"[;{]\s*$|=>|->|==|\w\(\)|^\s*(?:def|class|import|return|const|let|var|func|if|for|while)\b|^[+-]{3} |^@@ "
)
# Dates on which people of today were born, and clocks, which such a line does not hold.
_DATE = re.compile(
    r"(?<![\w./:-])(?:(?:19[2-9]\d|200\d|201[0-5])(?P<a>[-/.]?)(?:0[1-9]|1[0-2])(?P=a)(?:0[1-9]|[12]\d|3[01])"
    r"|(?:0?[1-9]|[12]\d|3[01])(?P<b>[-/. ]\s?)(?:0?[1-9]|1[0-2])(?P=b)(?:19[2-9]\d|200\d|201[0-5]))(?![\w/:-]|\.\d)"
)
_RECENT = re.compile(r"200[6-9]|201\d")
_CLOCK = re.compile(r"\d\d?:\d\d")
_DATE_FRAME = re.compile(
    r"[|,;\t*(\[^\"']\s*\Z|  \Z|[:=]\s*\Z|(?i:birth|born|dob|geb\w*|né[e]?|nat[oa]|nacid[oa]|född|født"
    r"|ur\.|b\.|\*)\S*[ :]+\Z"
)
# Forms: fields one below the other, of which one at least is a person's.
_FIELD = re.compile(
    r"\s*[-*•]?\s*(?P<label>[^\W\d_][^:：=\n|{}()\"]{0,40}?)\s*[:：=][ \t]*(?P<value>\S[^\n]{0,70}?)\s*$"
)
_POST_LABEL = re.compile(
    r"(?i)(?:post(?:al)?[ _-]?(?:code|nummer|inumero)|code postal|código postal|plz|zip(?:[ _-]?code)?|cep|cap"
    r"|eircode|psč"
    r"|irányítószám|pin ?code|kod pocztowy|posta kodu|kode pos|(?:почтовый )?индекс|邮编|郵便番号|우편번호|מיקוד"
    r"|الرمز البريدي)"
)
_NAME_LABEL = re.compile(
    r"(?i)(?:(?:full|account|legal|patient|customer|client)[ _-]?)?(?:name|surname|payee|payer|holder)|.*(?:\bnom\b"
    r"|nombre|\bnome\b"
    r"|\bnaam\b|\bnavn\b|\bnamn\b|\bnimi\b|\bnév\b|\bnume\b|\bime\b|jméno|\btên\b|\bnama\b|ad[ıi]? soyad[ıi]?|imię"
    r"|nazwisko|vārds"
    r"|vardas).*"
)
_WORDS = re.compile(
    r"(?:[^\W\d_a-zà-ÿ][\w'’.-]*|van|von|de|der|da|la|bin|al)(?: (?:[^\W\d_a-zà-ÿ][\w'’.-]*|van|von|de|der|da|la|bin"
    r"|al)){0,4}"
)


def numbers_near_people(text: str) -> Iterator[Hit]:
    """Find numbers, dates of birth and addresses beside the people of a text that was scrubbed before."""
    if not _SOMEBODY.search(text) and not _MARKED.search(text):
        return
    lines = text.split("\n")
    yield from _forms(text, lines)
    labels = _labels(text)
    people = [len(line) <= 400 and _SOMEBODY.search(line) is not None for line in lines]
    offset = 0
    for at, line in enumerate(lines):
        near = any(people[max(0, at - 1) : at + 2])
        if near and 5 < len(line) <= 400 and not _CODE.search(line):
            for start, end in _numbers(line, on_line=people[at], labels=labels.get(offset)):
                yield _hit(offset + start, offset + end, "personal-number", text)
            if people[at]:
                timed = _CLOCK.search(line) is not None
                for match in _DATE.finditer(line):
                    # A line with a clock may tell when something happened, but not that long ago.
                    if _DATE_FRAME.search(line[: match.start()]) and not (timed and _RECENT.search(match.group())):
                        yield _hit(offset + match.start(), offset + match.end(), "birth-date", text)
        offset += len(line) + 1


def _forms(text: str, lines: Sequence[str]) -> Iterator[Hit]:
    """Find names, numbers and postcodes in forms that tell something about a person elsewhere."""
    fields: list[tuple[int, re.Match[str]]] = []
    offset = 0
    for line in (*lines, ""):
        match = _FIELD.match(line) if 3 < len(line) <= 120 and not _CODE.search(line) else None
        if match is not None:
            fields.append((offset, match))
        else:
            if len(fields) > 1 and any(_SOMEBODY.search(one[0]) or _MARKED.search(one[0]) for _, one in fields):
                for at, one in fields:
                    yield from _field(text, at, one)
            fields = []
        offset += len(line) + 1


def _field(text: str, at: int, match: re.Match[str]) -> Iterator[Hit]:
    label, value, start = match["label"], match["value"], at + match.start("value")
    if _POST_LABEL.fullmatch(label) and len(value) <= 12 and any(map(str.isdigit, value)):
        yield _hit(start, start + len(value), "address", text)
    elif _NAME_LABEL.fullmatch(label) and _WORDS.fullmatch(value) and not _SOMEBODY.search(value):
        yield Hit(start, start + len(value), "printed-name", "name", value.lower())
    else:
        for one, two in _numbers(match[0], form=True):
            yield _hit(at + one, at + two, "personal-number", text)


def _hit(start: int, end: int, rule: str, text: str) -> Hit:
    return Hit(start, end, rule, "number", text[start:end])


_Labels = list[tuple[int, int, str]]


def _labels(text: str) -> dict[int, _Labels]:
    """Return, by where its line begins, the cells of every row of a table: where each begins and ends, its label."""
    found: dict[int, _Labels] = {}
    ruled = "|" in text or "\t" in text  # commas are in every sentence
    for cells in rows(text, lambda label: ruled or is_number_label(label) or _NAME_LABEL.fullmatch(label) is not None):
        line = text.rfind("\n", 0, cells[0].start) + 1 if cells else 0
        found[line] = [(cell.start - line, cell.start - line + len(cell.text), cell.label) for cell in cells]
    return found


def _numbers(
    line: str, *, on_line: bool = False, form: bool = False, labels: _Labels | None = None
) -> Iterator[tuple[int, int]]:
    masked = _NOBODYS.sub(lambda match: "+" * len(match[0]), line)
    for match in _NUMBER.finditer(masked):
        value = match["value"].rstrip(" .-/")
        digits = sum(map(str.isdigit, value))
        if digits < 5 or len(value) < 6:
            continue
        label = next((label for start, end, label in labels or () if start <= match.start() < end), None)
        before = line[max(0, match.start() - 40) : match.start()] if label is None else f"{label}: "
        names = list(_evidence(line, before, value, digits, column=label is not None))
        if form:
            names.append("a field of a form about a person" if _is_form_of_words(line) else "a person on the line")
        else:
            names.append("a person on the line" if on_line else "a person on the line before or after")
        if re.search(r"Person\d+,? \Z", before):
            names.append("right after a person")
        if sum(WEIGHTS[name] for name in names) >= _ENOUGH:
            yield match.start(), match.start() + len(value)


def _is_form_of_words(line: str) -> bool:
    """Tell the label of a form that people read from the name of a setting."""
    label = re.split(r"[:：=]", line, maxsplit=1)[0].strip(" -*•\"'")
    return not re.search(r"[_.]\w|[a-z][A-Z]|^[A-Z0-9]{6,}$", label)


def _evidence(line: str, before: str, value: str, digits: int, *, column: bool) -> Iterator[str]:
    if _PLAIN.fullmatch(value):
        yield "a count, a time, a version or an address"
    if _DOCUMENT.fullmatch(value):
        yield "shaped like the number of a document"
    if _MARKED.search(line):
        yield "another personal number on the line"
    if digits >= _MANY_DIGITS:
        yield "eight digits or more"
    if any(map(str.isalpha, value)):
        yield "letters and digits"
    label = _LABEL.search(before)
    if column or (label is None and (not before.strip() or before.rstrip(" \"'")[-1:] in "|,;\t")):
        yield "fills a cell"
    if label is not None and (name := _label_evidence(label["word"], before)):
        yield name


def _label_evidence(word: str, before: str) -> str | None:
    """Return what the word before a number, and the one before that, say about it."""
    words = {part for part in re.split(r"[\W_]+", word.lower()) if part}
    words |= {part.strip(".:") for part in [one for one in re.split(r"[^\w.°º]+", before.lower()) if one][-2:]}
    if not word_list("other numbers").isdisjoint(words):
        return "a word for something else before it"
    if not word_list("personal numbers").isdisjoint(words):
        return "a word for somebody's number before it"
    if _ABBREVIATION.fullmatch(word):
        return "an abbreviation before it"
    any_number = _ANY_NUMBER.fullmatch(word) and word.lower() not in ("id", "no")
    return "a word for any number before it" if any_number else None
