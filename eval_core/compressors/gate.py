"""A gate for summaries: questions that the transcript itself answers, asked of the summary before it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .transcript import Call, events

_WRITES = re.compile(r"write|patch|edit|create|replace|append", re.IGNORECASE)
_ERROR = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Mismatch|Timeout|Failure))\b")
_ASKED = re.compile(r"#\d{2,6}\b|\b[A-Z]{2,10}-\d+\b|\bv\d+\.\d+(?:\.\d+)?\b|(?:[\w.-]+/)+[\w.-]+\.\w{1,5}\b")


@dataclass(frozen=True)
class SelfProbe:
    """One question with the text that an answer must hold."""

    kind: Literal["artifact", "error", "request"]
    question: str
    expected: str


@dataclass(frozen=True)
class GateResult:
    """What a summary came to."""

    asked: int
    failed: tuple[SelfProbe, ...]
    passed: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """What the summary should have named."""
        return tuple(probe.expected for probe in self.failed)


def _path(call: Call) -> str:
    return str(call.arguments.get("path") or call.arguments.get("file_path") or "")


def _of_call(call: Call) -> Iterator[SelfProbe]:
    if _WRITES.search(call.tool) and not call.failed and (path := _path(call)):
        yield SelfProbe("artifact", "Which files were changed?", path)
    if call.failed and (error := _ERROR.search(call.output)):
        yield SelfProbe("error", "Which errors came up?", error[1])


@dataclass(frozen=True)
class ProbeGate:
    """Rejects a summary that cannot answer what an agent must know to go on: changed files, errors, what was asked."""

    min_share: float = 0.8
    """The share of the probes that must be answered."""
    limit: int = 40
    """The most probes; the newest are asked."""

    def probes(self, messages: Sequence[dict[str, Any]]) -> tuple[SelfProbe, ...]:
        """Find the questions that a stretch of transcript answers."""
        found: list[SelfProbe] = []
        for event in events(messages):
            if event.call:
                found += _of_call(event.call)
            elif event.role == "user":
                found += [SelfProbe("request", "What did the user name?", name) for name in _ASKED.findall(event.text)]
        return tuple(dict.fromkeys(found))[-self.limit :]

    def check(self, summary: str, probes: Sequence[SelfProbe]) -> GateResult:
        """Ask the summary; a text answers a probe by holding what is expected."""
        text = summary.lower()
        failed = tuple(probe for probe in probes if probe.expected.lower() not in text)
        answered = len(probes) - len(failed)
        return GateResult(len(probes), failed, not probes or answered / len(probes) >= self.min_share)
