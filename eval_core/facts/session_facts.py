"""Size: what a session's facts cost in tokens, and what plain ways of being that small would keep.

Keeping the last messages is the yardstick: a compressor that keeps more facts only because it keeps more tokens has no
lift over it. A second one cuts every message to the same share. Both follow from the session alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from eval_core.base.messages import Message, content_text, render, tool_calls
from eval_core.base.tokens import count_messages
from eval_core.compressors.context_compressor import ContextCompressor, head_length
from eval_core.compressors.rule_based import CandidateLine, RuleBasedSummariser, candidates
from eval_core.compressors.strategies import Opaque, SlidingWindow
from eval_core.domain.case import Case
from eval_core.domain.probe import Fact
from eval_core.domain.record import AT_BUDGETS, CensusEntry, FrontierPoint
from eval_core.domain.session_text import SessionText
from eval_core.facts.census import CensusFact, census
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import fact_key, holds
from eval_core.facts.retention import FixtureFacts, fact_stands

_SHARES = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8)
_SUMMARY_SHARES = (0.1, 0.28, 0.5)
_WINDOW_SHARES = (0.15, 0.3, 0.5)


def _cut(message: Message, share: float) -> Message:
    """Return the message with only the first part of its text and of its calls' arguments."""
    text = content_text(message)
    shortened: Message = {**message, "content": text[: int(len(text) * share)]}
    calls = []
    for call in tool_calls(message):
        function = call.get("function") or {}
        arguments = str(function.get("arguments", ""))
        calls.append({**call, "function": {**function, "arguments": arguments[: int(len(arguments) * share)]}})
    return {**shortened, "tool_calls": calls} if calls else shortened


@dataclass
class SessionFacts:
    """What is read of a case once, for all its runs; only ever by the one thread that computes."""

    case: Case

    @property
    def messages(self) -> list[Message]:
        return self.case.fixture.messages

    @cached_property
    def evidence(self) -> FixtureFacts:
        """Where each authored fact stands."""
        return FixtureFacts(self.case.fixture)

    @cached_property
    def census(self) -> tuple[CensusFact, ...]:
        """The facts found in the session that no probe asks for: one fact is counted once."""
        asked = {fact_key(value) for fact, _ in self.authored if fact.all is None for value in fact.values}
        found: dict[str, CensusFact] = {}
        for fact in census(self.messages):
            found.setdefault(fact_key(fact.value), fact)
        return tuple(fact for key, fact in found.items() if key not in asked)

    @property
    def entries(self) -> list[CensusEntry]:
        """The same as a measurement stores them."""
        return [CensusEntry(value=fact.value, kind=fact.kind, messages=list(fact.messages)) for fact in self.census]

    @cached_property
    def authored(self) -> list[tuple[Fact, list[int]]]:
        """The facts that probes ask for and the session holds, each once, with the messages that establish them."""
        required = {fact_key(fact.name): fact for probe in self.case.bank.probes for fact in probe.required}
        return [(fact, places) for fact in required.values() if (places := self.evidence.of(fact))]

    @cached_property
    def total(self) -> int:
        """All facts, those that probes ask for and the others."""
        return len(self.authored) + len(self.census)

    @cached_property
    def text(self) -> Haystack:
        """The whole session."""
        return Haystack.of_messages(self.messages)

    @cached_property
    def said(self) -> SessionText:
        """The session's words, to know them again in a request."""
        return SessionText(self.messages)

    @cached_property
    def lines(self) -> frozenset[str]:
        """Every line of the session: what a text may repeat without it being its own."""
        return frozenset(line.strip() for line in render(self.messages).splitlines())

    @cached_property
    def tokens(self) -> list[int]:
        """The tokens of each message."""
        return [count_messages([message]) for message in self.messages]

    @property
    def turns_ahead(self) -> int:
        """The turns of the model in the second half of the session: so long does the work go on."""
        later = self.messages[len(self.messages) // 2 :]
        return max(1, len([message for message in later if message.get("role") == "assistant"]))

    def had_again(self, places: Sequence[int]) -> int | None:
        """Return the first of these messages that a tool could show again; what was only said is gone with it."""
        told = (self.messages[at] for at in places)
        shown = (message.get("role") == "tool" or bool(tool_calls(message)) for message in told)
        return next((at for at, again in zip(places, shown, strict=True) if again), None)

    @cached_property
    def _last_places(self) -> list[int]:
        """For each fact, the last message that holds it; facts of the system prompt are always there."""
        head = head_length(self.messages)
        every = [places for _, places in self.authored] + [list(fact.messages) for fact in self.census]
        return sorted(len(self.messages) if min(places) < head else max(places) for places in every)

    def recency(self, tokens: int) -> float:
        """Count the facts that the system prompt and the newest messages of so many tokens hold."""
        head = head_length(self.messages)
        room = tokens - sum(self.tokens[:head])
        start = len(self.messages)
        while start > head and self.tokens[start - 1] <= room:
            start -= 1
            room -= self.tokens[start]
        places = self._last_places
        kept = float(len(places) - bisect_left(places, start))
        if start > head and room > 0:
            # A part of the message at the edge would fit: the same part of its facts.
            edge = bisect_left(places, start) - bisect_left(places, start - 1)
            kept += edge * room / self.tokens[start - 1]
        return kept

    @cached_property
    def cuts(self) -> list[FrontierPoint]:
        """What is left when every message is cut to the same share, for some shares."""
        points = [FrontierPoint(name="proportional", tokens=0, kept=0.0)]
        for share in _SHARES:
            head = head_length(self.messages)
            cut = [*self.messages[:head], *(_cut(message, share) for message in self.messages[head:])]
            points.append(self._point("proportional", cut))
        points.append(FrontierPoint(name="proportional", tokens=sum(self.tokens), kept=float(self.total)))
        return points

    def proportional(self, tokens: int) -> float:
        """Count the facts left if every message were cut to the same share, for so many tokens in all."""
        points = self.cuts
        at = min(max(bisect_left([point.tokens for point in points], tokens), 1), len(points) - 1)
        low, high = points[at - 1], points[at]
        part = min(1.0, (tokens - low.tokens) / max(high.tokens - low.tokens, 1))
        return low.kept + part * (high.kept - low.kept)

    def kept_by(self, state: Sequence[Message]) -> int:
        """Count the facts that a list of messages holds."""
        return self.held_by(Haystack.of_messages(state))

    def held_by(self, text: Haystack) -> int:
        """Count the facts that a text holds."""
        return sum(holds(fact, text) for fact, _ in self.authored) + sum(
            fact_stands(fact, text) for fact in self.census
        )

    def _point(self, name: str, state: Sequence[Message]) -> FrontierPoint:
        return FrontierPoint(name=name, tokens=count_messages(state), kept=float(self.kept_by(state)))

    def at_budget(self, state: Sequence[Message]) -> FrontierPoint:
        """Return what the compressor under test keeps at another budget, as a share of all facts."""
        point = self._point(AT_BUDGETS, state)
        return point.model_copy(update={"kept": round(point.kept / max(self.total, 1), 4)})

    @cached_property
    def frontier(self) -> list[FrontierPoint]:
        """The plain ways to be small, as shares of all facts: two curves and the references at some budgets."""
        whole = sum(self.tokens)
        points = [
            FrontierPoint(name="recency", tokens=round(share * whole), kept=self.recency(round(share * whole)))
            for share in _SHARES
        ]
        points += self.cuts[1:-1]
        read: dict[int, list[CandidateLine]] = {}

        def lines(messages: Sequence[Message]) -> list[CandidateLine]:
            # The stretch between head and tail is the same whatever the room; its length tells it from any other.
            if len(messages) not in read:
                read[len(messages)] = list(candidates(messages))
            return read[len(messages)]

        for share in _SUMMARY_SHARES:
            anchored = ContextCompressor(summariser=RuleBasedSummariser(lines))
            anchored._summary_share = share  # type: ignore[misc]  # one budget of several, of this instance alone
            points.append(self._point("builtin:anchored", anchored.compress(self.messages)))
        for share in _WINDOW_SHARES:
            window = SlidingWindow()
            window.share = share
            points.append(self._point("builtin:sliding-window", window.compress(self.messages)))
        points.append(self._point("builtin:opaque", Opaque().compress(self.messages)))
        total = max(self.total, 1)
        return [point.model_copy(update={"kept": round(point.kept / total, 4)}) for point in points]
