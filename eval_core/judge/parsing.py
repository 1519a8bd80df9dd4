"""A judge's reply read as scores: tolerant of dress, strict about content."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from eval_core.judge.grade import DIMENSIONS

__all__ = ["GRADE_SCHEMA", "Scores", "Unusable", "parse_grade"]

_STEPS = [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]
GRADE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "reason": {"type": "string", "description": "At most 40 words."},
        # Spelt out, not as a range: not every provider takes a minimum and a maximum in a schema.
        **{name: {"type": "number", "enum": _STEPS} for name in DIMENSIONS},
    },
    "required": ["reason", *DIMENSIONS],
    "additionalProperties": False,
}
_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:/\s*5(?:\.0)?)?\s*")
_LONGEST_REASON = 600


@dataclass(frozen=True)
class Scores:
    """Six scores and the reason."""

    values: dict[str, float]
    reason: str


@dataclass(frozen=True)
class Unusable:
    """Why a reply cannot be used."""

    problem: str


def _objects(text: str) -> list[str]:
    """Return the outermost {...} stretches, heeding strings; the last may be unclosed."""
    found, depth, start, quoted, escaped = [], 0, 0, False, False
    for at, char in enumerate(text):
        if escaped:
            escaped = False
        elif quoted:
            escaped = char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = depth > 0  # outside of an object a quotation mark is prose
        elif char == "{":
            start = at if depth == 0 else start
            depth += 1
        elif char == "}" and depth:
            depth -= 1
            if depth == 0:
                found.append(text[start : at + 1])
    if depth:
        found.append(text[start:])
    return found


def _loads(text: str) -> Any:
    """Read JSON; commas before a closing bracket are forgiven, outside of strings."""
    try:
        return json.loads(text)
    except ValueError:
        pieces = re.split(r'("(?:[^"\\]|\\.)*")', text)
        pieces[::2] = [_TRAILING_COMMA.sub(r"\1", piece) for piece in pieces[::2]]
        return json.loads("".join(pieces))


def _score(name: str, value: Any) -> float | str:
    """Return the score, or what is wrong with it."""
    if isinstance(value, dict) and "score" in value:
        value = value["score"]
    if isinstance(value, str) and (form := _NUMBER.fullmatch(value)):
        value = float(form.group(1))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{name} is {json.dumps(value)[:40]}, not a number"
    if not math.isfinite(value) or not 0 <= value <= 5:
        return f"{name} is {value}, outside of 0 to 5"
    return float(value)


def _scores(found: dict[str, Any]) -> Scores | Unusable:
    named = {str(name).strip().lower().replace(" ", "_").replace("-", "_"): value for name, value in found.items()}
    inner = named.get("scores")
    if isinstance(inner, dict):
        named = {**named, **{str(name).strip().lower(): value for name, value in inner.items()}}
    missing = [name for name in DIMENSIONS if name not in named]
    if missing:
        return Unusable(f"the JSON lacks {', '.join(missing)}")
    values: dict[str, float] = {}
    for name in DIMENSIONS:
        score = _score(name, named[name])
        if isinstance(score, str):
            return Unusable(score)
        values[name] = score
    reason = next((named[name] for name in ("reason", "rationale", "explanation") if name in named), "")
    return Scores(values, str(reason)[:_LONGEST_REASON])


def parse_grade(text: str) -> Scores | Unusable:
    """Find the grade in a reply: in fences, amid prose, after thinking aloud; never guess a missing part."""
    text = _THINKING.sub("", text)
    stretches = _objects(text)
    if not stretches:
        return Unusable("it holds no JSON object")
    problem: Unusable | None = None
    usable: list[Scores] = []
    for stretch in stretches:
        try:
            found = _loads(stretch)
        except (ValueError, RecursionError) as exc:
            cut = not stretch.rstrip().endswith("}")
            problem = Unusable("the JSON is cut off" if cut else f"broken JSON: {str(exc)[:80]}")
            continue
        result = _scores(found) if isinstance(found, dict) else Unusable("it holds no JSON object")
        if isinstance(result, Scores):
            usable.append(result)
        else:
            problem = result
    if not usable:
        return problem or Unusable("it holds no JSON object")
    if any(grade.values != usable[0].values for grade in usable):
        return Unusable("it holds several different grades")
    return usable[-1]
