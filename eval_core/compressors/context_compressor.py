"""The reference compressor: anchored iterative summarisation of everything but the head and the tail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from .gate import GateResult, ProbeGate
from .rule_based import RuleBasedSummariser
from .summariser import Request, Section, Summariser
from .thresholds import Level, Thresholds, effective_window
from .transcript import message_text

SUMMARY_MARK = "[Summary of the earlier session]"
_CHARS_PER_TOKEN = 4
_LEAST_TOKENS = 500
"""Room that a summary has however full the window is."""


def _estimate(messages: Sequence[dict[str, Any]]) -> int:
    return sum(_size(message) for message in messages) // _CHARS_PER_TOKEN


def _size(message: dict[str, Any]) -> int:
    calls = message.get("tool_calls") or ()
    return len(message_text(message)) + sum(len(str(call.get("function", ""))) for call in calls)


def head_length(messages: Sequence[dict[str, Any]]) -> int:
    """Return how many leading messages are system prompts, which are never compressed."""
    count = 0
    while count < len(messages) and messages[count].get("role") in ("system", "developer"):
        count += 1
    return count


def tail_start(messages: Sequence[dict[str, Any]], preserve: int) -> int:
    """Return where the verbatim tail begins, so that no tool answer is cut from its call."""
    start = max(len(messages) - preserve, 0)
    while 0 < start < len(messages) and messages[start].get("role") == "tool":
        start -= 1
    return start


class ContextCompressor:
    """Folds the middle of a conversation into one summary that later compressions extend."""

    _template_sections: ClassVar[tuple[Section, ...]] = (
        Section("session_intent", "Session Intent", "what the user wants, every request and constraint in their words"),
        Section("files_modified", "Files Modified", "each path that was created or changed, and how"),
        Section("decisions_made", "Decisions Made", "each decision with its reason, and what it replaced"),
        Section("current_state", "Current State", "where the work stands: results, ids, versions, counts"),
        Section("blockers", "Blockers", "errors and failures with their exact text, and what is refused or open"),
        Section("next_steps", "Next Steps", "what comes next, in order"),
    )
    _summary_share: ClassVar[float] = 0.28
    """The room of a summary, as a share of what it replaces."""

    def __init__(
        self,
        model: str = "",
        *,
        summariser: Summariser | None = None,
        context_length: int | None = None,
        thresholds: Thresholds | None = None,
        count_tokens: Callable[[Sequence[dict[str, Any]]], int] = _estimate,
        gate: ProbeGate | None = None,
    ) -> None:
        """Prepare a compressor for one session; `context_length` overrides the effective window."""
        self.model = model
        self.thresholds = thresholds or Thresholds()
        self.window = context_length or effective_window()
        self._summarise = summariser or RuleBasedSummariser()
        self._count = count_tokens
        self._gate = gate
        self._summary: str | None = None
        self.rejected: GateResult | None = None
        """What the gate found missing from the last summary, where that was too much; the messages stayed then."""

    def level(self, messages: Sequence[dict[str, Any]], current_tokens: int | None = None) -> Level:
        """Return how full the window is."""
        return self.thresholds.level(self._count(messages) if current_tokens is None else current_tokens, self.window)

    def should_compress(self, messages: Sequence[dict[str, Any]], current_tokens: int | None = None) -> bool:
        """Say whether the window is full enough, and the session long enough, to compress."""
        if len(messages) < self.thresholds.min_messages:
            return False
        return self.level(messages, current_tokens) in (Level.COMPRESS, Level.CRITICAL)

    def compress(
        self,
        messages: Sequence[dict[str, Any]],
        current_tokens: int | None = None,
        focus_topic: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return head, summary and tail; the input is left as it is."""
        head = head_length(messages)
        tail = max(tail_start(messages, self.thresholds.preserve_recent), head)
        middle = list(messages[head:tail])
        if len(middle) < 2:
            return list(messages)
        if middle and message_text(middle[0]).startswith(SUMMARY_MARK):
            # A fresh process finds the summary in the messages; a living instance has it already.
            self._summary = self._summary or message_text(middle[0]).removeprefix(SUMMARY_MARK).strip()
            middle = middle[1:]
        total = self._count(messages) if current_tokens is None else current_tokens
        most = self._most(messages, [*messages[:head], *messages[tail:]], total)
        request = Request(
            messages=middle,
            previous=self._previous(),
            sections=self._template_sections,
            max_chars=self._room(middle, most),
            focus_topic=focus_topic,
            total_chars=most,
        )
        text = self._checked(request)
        if text is None:
            return list(messages)
        self._summary = text
        summary = {"role": "user", "content": f"{SUMMARY_MARK}\n\n{self._summary}"}
        return [*messages[:head], summary, *messages[tail:]]

    def _checked(self, request: Request) -> str | None:
        """Summarise; a summary that fails its own probes is asked for once more with what it lacked, then refused."""
        self.rejected = None
        text = self._summarise(request)
        if self._gate is None:
            return text
        probes = self._gate.probes(request.messages)
        result = self._gate.check(text, probes)
        if not result.passed:
            text = self._summarise(replace(request, missing=result.missing))
            result = self._gate.check(text, probes)
        if result.passed:
            return text
        self.rejected = result
        return None

    def _previous(self) -> str | None:
        return self._summary

    def _room(self, middle: Sequence[dict[str, Any]], most: int) -> int:
        """Return the characters a summary may take: its share, or less where the window's target demands it."""
        size = sum(map(_size, middle))
        return min(int(size * self._summary_share), most)

    def _most(self, messages: Sequence[dict[str, Any]], kept: Sequence[dict[str, Any]], total: int) -> int:
        """Return the characters that the window's target leaves for the whole summary beside what is kept.

        All in characters, as many to a token as this session has: its own count and an estimate do not mix.
        """
        size = sum(map(_size, messages))
        per_token = size / total if total else _CHARS_PER_TOKEN
        room = self.thresholds.target * self.window * per_token - sum(map(_size, kept))
        return max(int(room), _LEAST_TOKENS * _CHARS_PER_TOKEN)
