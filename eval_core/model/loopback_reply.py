"""What the loopback provider says: short deterministic texts, made from the prompt alone."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache

from eval_core.messages import Message, content_text

__all__ = ["grade", "reply_to"]

_DIMENSIONS = (
    "accuracy", "context_awareness", "artifact_trail", "completeness", "continuity", "instruction_following",
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z0-9_]{3,}")
_HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_ANSWER = re.compile(r"^<<<(\w+)\n(.*?)\n\1>>>", re.MULTILINE | re.DOTALL)
_FACTS = re.compile(r"^Expected facts.*?:\n((?:- .+\n?)+)", re.MULTILINE)
_STALE = re.compile(r"^Superseded values.*?:\n((?:- .+\n?)+)", re.MULTILINE)
_ARTIFACT = re.compile(r"[\w./-]+\.\w{1,5}\b|#\d+|\b[0-9a-f]{7,40}\b|\b\w+_\w+\b|\d{2,}")
_SUMMARY_LINES = 60
_ANSWER_CHARS = 1_200  # what a model makes of "at most 250 words"
_SECTIONS = (
    ("file|artifact|path|change", r"\.\w{1,4}\b|/"),
    ("decision|decided|choice|why", r"decid|because|instead|chose|rather|keep"),
    ("next|open|todo|remain|pending|step", r"next|todo|still|remain|pending|follow"),
    ("error|problem|bug|issue|blocker", r"error|fail|exception|traceback|bug"),
    ("constraint|rule|preference|instruction", r"never|always|must|only|do not|don't"),
)


@lru_cache(maxsize=65_536)
def _words(text: str) -> frozenset[str]:
    """Return the words of a text; the same context is asked about many times."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def _lines(messages: Sequence[Message]) -> list[str]:
    lines = []
    for message in messages:
        lines += [line.strip()[:300] for line in content_text(message).splitlines() if line.strip()]
    return list(dict.fromkeys(lines))


def _entries(pattern: re.Pattern[str], prompt: str) -> list[list[str]]:
    found = pattern.search(prompt)
    return [line[2:].lower().split(" or ") for line in found.group(1).splitlines()] if found else []


def grade(prompt: str) -> str:
    """Grade as the prompt asks, by looking for the expected facts in the answer."""
    between = _ANSWER.search(prompt)
    answer = between.group(2).lower() if between else ""
    facts, stale = _entries(_FACTS, prompt), _entries(_STALE, prompt)
    found = [options for options in facts if any(option.strip('`" ') in answer for option in options)]
    share = len(found) / len(facts) if facts else 0.0
    wrong = any(option.strip('`" ') in answer for options in stale for option in options)
    score = round(5 * share * (0.6 if wrong else 1.0), 1)
    return json.dumps({"reason": f"{len(found)} of {len(facts)} facts", **dict.fromkeys(_DIMENSIONS, score)})


def _quote(messages: Sequence[Message]) -> str:
    question = _words(content_text(messages[-1]))
    scored = []
    for at, line in enumerate(_lines(messages[:-1])):
        overlap = len(question & _words(line))
        if overlap:
            scored.append((-overlap, at, line))
    best, room = [], _ANSWER_CHARS
    for item in sorted(scored)[:8]:
        if len(item[2]) <= room:
            best.append(item)
            room -= len(item[2])
    return "\n".join(line for _, _, line in sorted(best, key=lambda item: item[1])) or "Not in context."


def _summary(messages: Sequence[Message], headings: list[str]) -> str:
    salient = [line for line in _lines(messages[1:] or messages) if _ARTIFACT.search(line)][-_SUMMARY_LINES:]
    if not headings:
        return "\n".join(salient) or "Nothing to keep."
    taken: set[str] = set()
    parts = []
    for at, heading in enumerate(headings):
        wanted = next((given for asked, given in _SECTIONS if re.search(asked, heading, re.IGNORECASE)), ".")
        last = at == len(headings) - 1
        chosen = [s for s in salient if s not in taken and (last or re.search(wanted, s, re.IGNORECASE))]
        chosen = chosen if last else chosen[:15]
        taken.update(chosen)
        parts.append(f"## {heading}\n" + ("\n".join(f"- {line}" for line in chosen) or "(none)"))
    return "\n\n".join(parts)


def reply_to(messages: Sequence[Message]) -> str:
    """Answer a prompt: grades for a rubric, a summary for a summariser's, quotations for a question."""
    prompt = "\n".join(content_text(message) for message in messages)
    if all(name in prompt for name in _DIMENSIONS):
        return grade(prompt)
    if re.search(r"\bquestion\b.*:\s*\n", content_text(messages[-1])[:200], re.IGNORECASE):
        return _quote(messages)  # the instructions may speak of summaries all the same
    first = content_text(messages[0])
    if re.search(r"\b(?:summar|condens|compact|compress)", first[:2_000], re.IGNORECASE):
        return _summary(messages, _HEADING.findall(first))
    return _quote(messages)
