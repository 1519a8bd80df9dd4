"""Strict parsing of JSON that somebody else wrote: one error type, whatever is wrong with it.

The standard parser accepts NaN, integers of thousands of digits and any nesting that the stack holds; each of these
fails much later, in arithmetic or when it is written again. Standard library only: the gateway's process uses it too.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

MAX_DEPTH = 64
MAX_DIGITS = 20
"""Of an integer: as many as 64 bits can hold, which is where identifiers end."""


class BadJson(ValueError):
    """The text is not JSON that can be used; the message says why, without quoting more than a few characters."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem, self.place = problem, place


def _constant(name: str) -> Any:
    raise BadJson(f"{name} is not a number that JSON knows")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise BadJson(f"the number {text[:20]} is not finite")
    return value


def _int(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise BadJson(f"a number has {len(text.lstrip('-')):,} digits")
    return int(text)


_SURROGATE = re.compile("[\ud800-\udfff]")
_decoder = json.JSONDecoder(parse_constant=_constant, parse_float=_float, parse_int=_int)


def _check_size(value: Any, most: int, values: float) -> None:
    """Walk without recursion: the nesting is the sender's choice."""
    level, depth = [value], 0
    while level:
        if depth > most:
            raise BadJson(f"nested deeper than {most} levels")
        values -= sum(len(item) for item in level if isinstance(item, dict | list))
        if values < 0:
            raise BadJson("more values than anybody needs")
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += [part for part in item.values() if isinstance(part, dict | list)]
            elif isinstance(item, list):
                inner += [part for part in item if isinstance(part, dict | list)]
        level, depth = inner, depth + 1


def parse_json(data: str | bytes, *, depth: int = MAX_DEPTH, values: float = math.inf) -> Any:
    """Return the value, or raise BadJson: for broken text, NaN, numbers of many digits, deep nesting, no UTF-8.

    `values` is the most that all objects and lists may hold together: an empty one is two bytes, and sixty in memory.
    """
    try:
        text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
        value = _decoder.decode(text)
    except BadJson:
        raise
    except json.JSONDecodeError as exc:
        raise BadJson(exc.msg, f"line {exc.lineno}, column {exc.colno}") from None
    except UnicodeDecodeError as exc:
        raise BadJson(f"not UTF-8 (byte {exc.start})") from None
    except RecursionError:
        raise BadJson(f"nested deeper than {depth} levels") from None
    _check_size(value, depth, values)
    return value


def without_surrogates(value: Any) -> Any:
    """Return a parsed value that can be written as UTF-8: halves of surrogate pairs become U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_surrogates(inner) for inner in value]
    return value
