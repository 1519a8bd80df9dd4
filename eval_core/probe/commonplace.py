"""Values so common, and patterns so loose, that finding them says nothing."""

from __future__ import annotations

import re
import unicodedata

from eval_core.facts import normalise
from eval_core.probe.schema import Fact

__all__ = ["common_reason", "slow_regex"]

_COMMON = re.compile(
    r"(?:yes|no|not|none|null|nil|true|false|correct|incorrect|wrong|right|done|fixed|error|errors|failed|passed|success"
    r"|file|files|test|tests|code|user|name|value|data|the|and|all|new|old|main|master|branch|commit|bug|issue|python"
    r"|git|okay|json|config|src|path|line|function|class|message|session|todo|pending|completed)"
)
_MIN_WIDTH = 3
_EVERYDAY = ("yes", "no", "3", "ok", "it is done", "all tests pass", "see above")
_NESTED_REPEAT = re.compile(r"\((?:[^()\\]|\\.)*[+*}](?:[^()\\]|\\.)*\)(?:[+*]|\{\d*,)")


def _width(value: str) -> int:
    """Return how much a value says; a CJK character says as much as several letters."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in value if not char.isspace())


def _value_reason(value: str) -> str | None:
    plain = normalise(value).strip(" .,:;!?'\"")
    if _width(plain) < _MIN_WIDTH:
        return "it is shorter than three characters"
    return "it is an everyday word" if _COMMON.fullmatch(plain) else None


def common_reason(fact: Fact) -> str | None:
    """Say why a fact is too common to be worth finding, or return None."""
    if fact.regex is not None:
        loose = [text for text in _EVERYDAY if re.search(fact.regex, text, re.IGNORECASE)]
        return f"the pattern matches {loose[0]!r}" if loose else None
    reasons = [_value_reason(value) for value in fact.values]
    if fact.all is not None and not all(reasons):
        return None  # its other parts make it rare
    return next((reason for reason in reasons if reason), None)


def slow_regex(pattern: str) -> bool:
    """Tell whether a pattern repeats something that is itself repeated, which can take exponential time."""
    return _NESTED_REPEAT.search(pattern) is not None
