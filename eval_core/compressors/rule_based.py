"""A summariser without a model: it reads tool traffic and prose by rules and keeps what is most telling.

Every candidate line carries a weight. The heaviest lines that fit the room are kept, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .summariser import Request
from .summary import SECTIONS, AnchoredSummary
from .transcript import Call, events

_LINE = 260
_FIRST_REQUEST = 900
_KEY_LINES = 8  # of one tool output: more would let one long listing crowd out the rest

_TELLING = re.compile(
    r"https?://\S+|#\d{2,6}\b|\b[0-9a-f]{7,40}\b|(?:[\w.-]+/)+[\w.-]+|\b\w+\.(?:py|md|ya?ml|json|toml|sql|sh|txt|cfg)\b"
    r"|\b\w+_\w+\b|\bv?\d+\.\d+(?:\.\d+)?\b|\b\d{2,}\b|(?:[\d*/,-]+ ){4}[\d*/,-]+|`[^`]+`|\"[^\"]{3,40}\""
)
_OUTCOME = re.compile(
    r"\b(?:error|exception|fail(?:ed|ure)?|denied|refused|passed|warning|reverted?|merged|created|opened|deployed|"
    r"updated|removed|renamed|deprecated|must|never|only|status|assert\w*|expected)\b|^E\s",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decid\w+|decision|cho(?:se|osing)|going with|go with|will use|use \S+ instead|instead|because|rather than|"
    r"settled|agreed|prefer|never|don'?t|do not|must|stop|revert\w*|keep|switch\w*|moved? to|rename\w*|reason|so that)"
    r"\b",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"\b(?:next|remaining|still (?:to|need|open)|to ?do|left to do|then I|follow-?up|pending|open:)", re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WRITES = re.compile(r"write|patch|edit|create|replace|append", re.IGNORECASE)
_READS = re.compile(r"read|search|list|view|grep|extract|fetch|get", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*\d+\s*[|:]\s?")


@dataclass(frozen=True)
class CandidateLine:
    """A line that a summary could keep."""

    section: str
    text: str
    weight: float
    order: int
    path: str = ""


def _flat(text: str, limit: int = _LINE) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _telling(text: str) -> int:
    return len(_TELLING.findall(text[:400]))


def _subject(call: Call) -> str:
    """Say in one phrase what a call was about."""
    arguments = call.arguments
    for key in ("command", "path", "file_path", "query", "pattern", "url", "urls", "name", "action"):
        if value := arguments.get(key):
            return _flat(f"{call.tool} {value}" if key != "command" else str(value), 170)
    return _flat(call.tool + (" " + str(arguments) if arguments else ""), 170)


def _key_lines(output: str) -> list[str]:
    """Pick the lines of an output that say most, in their order."""
    ranked: list[tuple[float, int, str]] = []
    lines = [_NUMBERED.sub("", line).strip() for line in output.splitlines()]
    for index, line in enumerate(lines):
        if len(line) < 4:
            continue
        weight = min(_telling(line), 4) + (3 if _OUTCOME.search(line) else 0) + (2 if index >= len(lines) - 3 else 0)
        if weight > 1:
            ranked.append((-weight, index, _flat(line, 180)))
    best = sorted(ranked)[:_KEY_LINES]
    return list(dict.fromkeys(text for _, _, text in sorted(best, key=lambda item: item[1])))


def _file_lines(call: Call, order: int) -> Iterator[CandidateLine]:
    arguments = call.arguments
    path = str(arguments.get("path") or arguments.get("file_path") or "")
    if not path or not _WRITES.search(call.tool):
        return
    new = str(arguments.get("new_string") or arguments.get("content") or arguments.get("patch") or "")
    heads = [line.strip() for line in new.splitlines() if _telling(line)]
    change = "failed" if call.failed else "written" if "content" in arguments else "patched"
    detail = _flat(" / ".join(heads[:4]), 200)
    yield CandidateLine("files_modified", f"{change}: {detail}" if detail else change, 60 + order / 1000, order, path)


def _todo_lines(call: Call, order: int) -> Iterator[CandidateLine]:
    items = call.arguments.get("todos") or call.values.get("todos")
    if "todo" not in call.tool or not isinstance(items, list):
        return
    for item in items:
        if isinstance(item, dict) and item.get("status") not in ("completed", "cancelled", "done"):
            yield CandidateLine("next_steps", _flat(str(item.get("content", item))), 70 + order / 100, order)


def _call_lines(call: Call, order: int) -> Iterator[CandidateLine]:
    written = list(_file_lines(call, order))
    yield from written
    yield from _todo_lines(call, order)
    if written and not call.failed:
        return  # the list of modified files says it; saying it twice would only take room
    subject, keys = _subject(call), _key_lines(call.output)
    section = "blockers" if call.failed else "current_state"
    base = 14.0 if call.failed else 4.0 if _READS.search(call.tool) else 9.0
    yield CandidateLine(section, ("failed: " if call.failed else "did: ") + subject, base + _telling(subject), order)
    for key in keys:
        yield CandidateLine(section, key, base + 2 * min(_telling(key), 5) + (4 if _OUTCOME.search(key) else 0), order)
    for name, value in call.arguments.items():
        if name not in ("command", "path", "file_path", "content", "new_string", "old_string", "todos", "patch"):
            yield CandidateLine(section, _flat(f"{name}: {value}"), base + 2 + _telling(str(value)), order)


def _prose_lines(role: str, text: str, order: int, first_request: bool) -> Iterator[CandidateLine]:
    if role == "user":
        limit = _FIRST_REQUEST if first_request else 400
        yield CandidateLine("session_intent", "user: " + _flat(text, limit), 200, order)
    for sentence in _SENTENCE.split(text):
        if len(sentence) < 12:
            continue
        if _DECISION.search(sentence) and role != "user":
            yield CandidateLine("decisions_made", _flat(sentence), 30 + 2 * _telling(sentence), order)
        elif _NEXT.search(sentence):
            yield CandidateLine("next_steps", _flat(sentence), 22 + order / 100, order)
        elif role == "assistant" and _telling(sentence):
            yield CandidateLine("current_state", _flat(sentence), 12 + 2 * _telling(sentence), order)


def candidates(messages: Sequence[dict[str, Any]]) -> Iterator[CandidateLine]:
    """Read every line that a summary could keep, with its weight."""
    asked = False
    for order, event in enumerate(events(messages)):
        if event.call:
            yield from _call_lines(event.call, order)
        elif event.role != "system":
            yield from _prose_lines(event.role, event.text, order, first_request=event.role == "user" and not asked)
            asked = asked or event.role == "user"


@dataclass(frozen=True)
class RuleBasedSummariser:
    """Deterministic, offline, linear in the transcript."""

    read_lines: Callable[[Sequence[dict[str, Any]]], Iterable[CandidateLine]] = candidates
    """Reading the messages is what takes time: whoever wants several summaries of the same ones reads them once."""

    def __call__(self, request: Request) -> str:
        """Summarise by rules and extend the previous summary."""
        titles = {section.field: section.title for section in request.sections}
        summary = self.read(request.messages, request.max_chars, request.focus_topic)
        if request.previous:
            summary = AnchoredSummary.from_markdown(request.previous, titles or SECTIONS).merge(summary)
        if request.total_chars is not None:
            summary = summary.fitted(request.total_chars, titles)
        return summary.to_markdown(titles)

    def read(self, messages: Sequence[dict[str, Any]], max_chars: int, focus_topic: str | None) -> AnchoredSummary:
        """Return the summary of one stretch of transcript."""
        wanted = set((focus_topic or "").lower().split())
        best: dict[tuple[str, str, str], CandidateLine] = {}
        for line in self.read_lines(messages):
            weight = line.weight + (30 if wanted and wanted & set(line.text.lower().split()) else 0)
            # A line said again counts where it was said last: newer state is truer.
            best[(line.section, line.path, line.text)] = replace(line, weight=weight) if wanted else line
        room = max_chars
        kept: list[CandidateLine] = []
        for line in sorted(best.values(), key=lambda item: (-item.weight, -item.order, item.text)):
            cost = len(line.text) + len(line.path) + 3
            if cost <= room or line.section == "session_intent":
                kept.append(line)
                room -= cost
        return _assemble(sorted(kept, key=lambda item: item.order))


def _assemble(lines: list[CandidateLine]) -> AnchoredSummary:
    sections: dict[str, list[str]] = {name: [] for name in SECTIONS}
    files: dict[str, list[str]] = {}
    for line in lines:
        if line.path:
            files.setdefault(line.path, []).append(line.text)
        else:
            sections[line.section].append(line.text)
    return AnchoredSummary.of(sections, files)
