"""The offline answerer: it quotes the lines of the compressed state that fit the question best."""

from __future__ import annotations

import heapq
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache

from eval_core.base.messages import Message, full_text
from eval_core.domain.call import Draw
from eval_core.domain.grade import Answer, Unscored
from eval_core.domain.probe import Probe

# What a question asks for, and what the line that answers it looks like.

QUESTION_SHAPES = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(given, re.IGNORECASE))
    for asked, given in (
        (r"\bfiles?\b|\bmodule|\bpaths?\b|\bscript", r"[\w-]+\.(?:py|md|ya?ml|json|toml|sql|sh|txt|cfg|ini)\b"),
        (
            r"\berror|\bfail|\bexception|\bwrong|\bbroke|\bcode\b",
            r"error|exception|fail|traceback|denied|^E\s|\b\d{3,6}\b",
        ),
        (r"\bpull request|\bPRs?\b|\bissues?\b|\bticket", r"#\d+|pull/\d+|issues?/\d+"),
        (r"\bcommit|\bhash|\brevert", r"\b[0-9a-f]{7,40}\b"),
        (r"\btests?\b|\bsuite", r"\d+ (?:passed|failed)|test_\w+"),
        (r"\bschedul|\bcron|\bwhen\b|\btimes?\b|\bday|\bweekday", r"(?:[\d*/,-]+ ){4}[\d*/,a-z-]+|\d\d?:\d\d"),
        (
            r"\bdecid|\bdecision|\bchose|\bwhy\b|\breason|\binstead|\bapproach",
            r"decid|because|instead|chose|reason|rather|so that|keep",
        ),
        (
            r"\bnext\b|\bremain|\bopen\b|\bleft\b|\bpending|\bcontinue|\btodo",
            r"next|remain|pending|todo|still|left|follow|in_progress|not yet",
        ),
        (
            r"\bmust not|\bnever|\boff.limits|\bnot allowed|\bconstraint|\brule|\bforbid|\bden",
            r"never|don'?t|do not|must not|off.limits|denied|only",
        ),
        (r"\bbranch", r"branch|checkout|HEAD|\b\w+/[\w.-]+"),
        (r"\bversion|\bport\b|\bsize|\blimit|\bhow many|\bvalue|\bnumber|\bcount", r"\d"),
        (
            r"\bfunction|\bmethod|\bclass\b|\bhelper|\bcolumn|\btable|\bkey\b|\bsetting|\bname",
            r"\b\w+_\w+\b|\bdef |\bclass |\w+\(\)",
        ),
    )
)


# The offline answerer: it quotes the lines of the compressed state that fit the question best.

NOT_IN_CONTEXT = "Not in context."
_MAX_CHARS = 5_000
_MAX_LINES = 70
_SHAPE_SHARE = 0.25
_USER_SHARE = 0.3
_NEAR = ((-2, 0.3), (-1, 0.45), (1, 0.55), (2, 0.4), (3, 0.3), (4, 0.2))
_LINE = 320
_WORD = re.compile(r"[a-z]+|\d+|[^\W\d_a-z]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBERED = re.compile(r"^\s*\d+\s*[|:]\s?")
_STOP = frozenset(
    _WORD.findall(
        "a an and are as at be been but by did do does for from had has have how i if in into is it its of on "
        "or our so that the their then there these they this to under up was we were what when where which "
        "while who whom why will with would you your he she them us my me should could can any each one ones "
        "exactly current currently session "
    )
)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=16_384)  # most lines of a session are in every state that is made of it
def _words(text: str) -> tuple[str, ...]:
    found = _WORD.findall(_CAMEL.sub(" ", text).lower())
    return tuple(_stem(word) for word in found if word not in _STOP and (len(word) > 1 or not word.isascii()))


def _lines(state: list[Message]) -> list[tuple[int, str]]:
    lines: list[tuple[int, str]] = []
    for number, message in enumerate(state):
        if message.get("role") in ("system", "developer"):
            continue  # the system prompt is about the agent, not about the session
        for raw in full_text(message).splitlines():
            text = _NUMBERED.sub("", raw).strip()
            lines.extend((number, text[at : at + _LINE]) for at in range(0, len(text), _LINE))
    return lines


@dataclass
class _Index:
    state: list[Message]
    lines: list[tuple[int, str]] = field(default_factory=list)
    postings: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        self.lines = _lines(self.state)
        for at, (_, text) in enumerate(self.lines):
            for word in set(_words(text)):
                self.postings[word].append(at)

    def best(self, question: str) -> list[str]:
        """Return the best lines for a question, in the order in which they stand."""
        rarity = self._rarity(question)
        own: dict[int, set[str]] = defaultdict(set)
        for word in rarity:
            for at in self.postings[word]:
                own[at].add(word)
        base = self._base(question, own, rarity)
        return [self.lines[at][1] for at in sorted(self._pick(base, own, rarity))]

    def _rarity(self, question: str) -> dict[str, float]:
        """Weigh the question's words: rare ones tell more, and those that stand everywhere tell nothing."""
        total = len(self.lines)
        found = {word: len(self.postings.get(word, ())) for word in _words(question)}
        return {word: math.log(1 + total / n) for word, n in found.items() if 0 < n < max(total / 2, 8)}

    def _base(self, question: str, own: dict[int, set[str]], rarity: dict[str, float]) -> dict[int, float]:
        """Weigh lines by what does not change while lines are picked: neighbours, message and shape."""
        overlap = {at: sum(rarity[word] for word in words) for at, words in own.items()}
        by_message: dict[int, float] = defaultdict(float)
        base: dict[int, float] = defaultdict(float)
        for at, weight in overlap.items():
            number = self.lines[at][0]
            by_message[number] = max(by_message[number], weight)
            base[at] += 0.0
            # An answer often stands a line or two beside the words of the question.
            for near, share in _NEAR:
                if 0 <= at + near < len(self.lines) and self.lines[at + near][0] == number:
                    base[at + near] = max(base[at + near], weight * share)
        shapes = [given for asked, given in QUESTION_SHAPES if asked.search(question)]
        typical = max(overlap.values(), default=0.0)
        for at in base:
            number, text = self.lines[at]
            fits = sum(1 for shape in shapes if shape.search(text))
            base[at] += 0.3 * by_message[number] + _SHAPE_SHARE * typical * min(fits, 2)
            if self.state[number].get("role") == "user":
                base[at] += _USER_SHARE * typical  # a user's words are few and weigh more
        return base

    def _pick(self, base: dict[int, float], own: dict[int, set[str]], rarity: dict[str, float]) -> list[int]:
        """Pick greedily; a word that was quoted already counts less, so that every part of a question gets room."""
        fresh = dict(rarity)

        def weight(at: int) -> float:
            words = sum(fresh[word] for word in own.get(at, ()))
            return (words + base[at]) / (1 + len(self.lines[at][1]) / 500)

        heap = [(-weight(at), -at) for at in base]
        heapq.heapify(heap)
        room = _MAX_CHARS
        chosen: list[int] = []
        seen: set[frozenset[str]] = set()
        while heap and len(chosen) < _MAX_LINES:
            old, negative = heapq.heappop(heap)
            at = -negative
            now = -weight(at)
            if heap and now > heap[0][0] and now > old:
                heapq.heappush(heap, (now, negative))  # it lost weight since it was pushed: look again later
                continue
            text = self.lines[at][1]
            said = frozenset(_words(text))
            if len(text) > room or said in seen:
                continue
            seen.add(said)
            chosen.append(at)
            room -= len(text)
            for word in own.get(at, ()):
                fresh[word] *= 0.75
        return chosen


class ExtractiveAnswerer:
    """Answers by quotation, deterministically."""

    deterministic = True

    def __init__(self) -> None:
        """Start with no state indexed."""
        self._index: _Index | None = None

    async def answer(self, state: list[Message], probe: Probe, *, fixture: str, draw: Draw) -> Answer | Unscored:
        """Quote the lines that fit the question, or say that nothing does."""
        if self._index is None or self._index.state is not state:
            self._index = _Index(state)
        lines = self._index.best(probe.question)
        return Answer(text="\n".join(lines) if lines else NOT_IN_CONTEXT)
