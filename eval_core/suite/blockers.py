"""What stopped a session: errors that its tools report and obstacles that its people name."""

from __future__ import annotations

import builtins
import re

from eval_core.evidence.census import errors, subject_words, telling_words
from eval_core.suite.propose import ToolExchange, exit_code, refused

__all__ = ["reported", "stated_blockers"]

_MOST = 3
_FAILED_TEST = re.compile(
    # An output's first line follows the name of its JSON field.
    r"^(?:[a-z_]{2,20}: )?(?:(?:FAILED|ERROR) \S*?::(?P<pytest>[\w\[\]-]{4,80})|\s*--- FAIL: (?P<go>\w{4,80})"
    r"|test (?P<rust>[\w:]{4,80}) \.\.\. FAILED|\s*(?:✕|✗|×|not ok \d+ -) (?P<js>[^\n(]{6,80}))",
    re.M,
)
_REFUSED_BY_SYSTEM = re.compile(
    r"(?P<command>[\w./-]{2,60}): (?:command )?not found\b|(?P<denied>[\w./~-]{4,120}): [Pp]ermission denied"
    r"|(?P<absent>[\w./~-]{4,120}): No such file or directory"
    r"|[Cc]onnection refused\)?:? ?(?P<refused>[\w.-]+:\d{2,5})|(?P<timeout>timed out after [\d.]+ ?\w+)"
)
# Reading code or a log shows many errors that this session never met.
_READS = re.compile(r"^\s*(?:cat|head|tail|less|more|grep|rg|ag|sed -n|git (?:log|show|diff|grep|blame)|jq|awk|find)\b")
_READERS = re.compile(r"read|search|grep|view|fetch|extract|open", re.I)
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)|^\s*thread '.*' panicked at|^Caused by:", re.M)
_OBSTACLE = re.compile(
    r"\b(?:blocked (?:by|on|until)|waiting (?:for|on)|waits? (?:for|on)|still (?:fails?|failing|red|broken|missing)"
    r"|can(?:not|'t) \w+[^.]{0,60} (?:until|because|without)|depends on|on hold|stuck (?:on|at)|denied|refused|rejected"
    r"|out of quota|needs? (?:approval|access|permission|a review|sign-off)|rate.limited"
    r"|is down|unreachable|expired|missing)\b",
    re.I,
)


def _met(exchange: ToolExchange) -> bool:
    """Tell whether the call itself failed, be it told by a status or by a trace of its own."""
    if refused(exchange) or exit_code(exchange):
        return True
    if exit_code(exchange) == 0 or _READS.search(exchange.command) or _READERS.search(exchange.name):
        return False
    return bool(_TRACEBACK.search(exchange.answer) or _FAILED_TEST.search(exchange.answer))


def _first_group(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).strip()


def reported(exchange: ToolExchange) -> list[str]:
    """Return what names the errors that a failed call reports."""
    if not _met(exchange):
        return []
    said = exchange.reply.get("error")
    text = f"error: {said}\n{exchange.answer}" if isinstance(said, str) else exchange.answer
    named: dict[str, None] = {}
    for error in errors(text):
        name, colon, detail = error.partition(": ")
        # An exception's class alone is too common; what it complains about is telling.
        telling = [word for word in telling_words(detail if colon else error) if len(word) > 3 and "\\" not in word]
        own_name = [name] if colon and " " not in name and not hasattr(builtins, name) else []
        named.update(dict.fromkeys(own_name + telling[:1]))
    for pattern in (_FAILED_TEST, _REFUSED_BY_SYSTEM):
        named.update(dict.fromkeys(_first_group(match) for match in pattern.finditer(text)))
    return list(named)[:_MOST]


def stated_blockers(sentence: str) -> list[str]:
    """Return what a sentence names as holding the work up, if it says that something does."""
    if len(sentence) > 400 or sentence.rstrip().endswith("?") or not _OBSTACLE.search(sentence):
        return []
    return [word for word in subject_words(sentence) if not (word.isalpha() and word.istitle())]
