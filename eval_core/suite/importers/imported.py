"""What every importer builds: messages in order with whole tool-call pairs, the cuts, and what was dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from eval_core.base.messages import Message, tool_calls
from eval_core.base.numbers import counted

# Tool calls and their answers: made whole again after a log lost one side.

NO_ANSWER = "[no output was recorded for this call]"


@dataclass
class _Turn:
    """One message that is no tool answer, with the answers to the calls it makes."""

    message: Message
    answers: dict[str, Message] = field(default_factory=dict)


@dataclass(frozen=True)
class Mended:
    """A message list whose calls and answers pair up, and what that took."""

    messages: list[Message]
    segments: list[int]
    unanswered: int
    orphans: int

    @property
    def notes(self) -> list[str]:
        """Say in words what was changed."""
        notes = []
        if self.unanswered:
            notes.append(
                f"{counted(self.unanswered, 'tool call')} without an answer: given the placeholder {NO_ANSWER!r}"
            )
        if self.orphans:
            notes.append(f"{counted(self.orphans, 'tool answer')} without a call: dropped")
        return notes


def mend_pairs(messages: Iterable[Message], segments: Iterable[int] = ()) -> Mended:
    """Put every answer right after its call, drop orphans, and answer what was never answered."""
    cuts = set(segments)
    turns: list[_Turn] = []
    callers: dict[str, _Turn] = {}
    starts: list[int] = []  # indexes into turns at which a new segment begins
    orphans = 0
    pending_cut = False
    for index, message in enumerate(messages):
        pending_cut = pending_cut or index in cuts
        if message.get("role") == "tool":
            turn = callers.get(str(message.get("tool_call_id")))
            if turn is None or str(message["tool_call_id"]) in turn.answers:
                orphans += 1
            else:
                turn.answers[str(message["tool_call_id"])] = message
            continue
        if pending_cut:
            starts.append(len(turns))
            pending_cut = False
        turn = _Turn(message)
        turns.append(turn)
        for call in tool_calls(message):
            # An id that is used again (a resumed log) belongs to its latest call.
            callers[str(call["id"])] = turn
    whole: list[Message] = []
    new_segments: list[int] = []
    unanswered = 0
    for position, turn in enumerate(turns):
        if position in starts and whole:
            new_segments.append(len(whole))
        whole.append(turn.message)
        for call in tool_calls(turn.message):
            answer = turn.answers.get(str(call["id"]))
            if answer is None:
                unanswered += 1
                answer = {"role": "tool", "tool_call_id": call["id"], "content": NO_ANSWER}
            whole.append(answer)
    return Mended(whole, new_segments, unanswered, orphans)


# What every importer builds: messages in order, the cuts between them, and what was left out.


@dataclass
class ImportedSession:
    """A session while it is read; `dropped` counts what was left out, by reason."""

    format: str
    model: str = "unknown"
    context_length: int | None = None
    messages: list[Message] = field(default_factory=list)
    cuts: list[int] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def take_out_summary(self) -> bool:
        """Cut where the agent compacted, and leave its summary out: it repeats what stands before it.

        Where nothing stands before it, it is all there is of the earlier session, and stays.
        """
        self.cut()
        if not self.messages:
            return False
        self.dropped["compaction summary message"] += 1
        return True

    def cut(self) -> None:
        """Mark that the log was compacted before the next message."""
        if self.messages and (not self.cuts or self.cuts[-1] != len(self.messages)):
            self.cuts.append(len(self.messages))


def flatten_parts(content: Any) -> str:
    """Return content as text; a part that is no text leaves a placeholder naming its type."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return argument_text(content)
    texts = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part, dict):
            texts.append(f"[{_part_noun(str(part.get('type', 'part')))}]")
    return "\n".join(text for text in texts if text)


def _part_noun(kind: str) -> str:
    for noun in ("image", "audio", "video", "document", "file"):
        if noun in kind:
            return noun
    return kind


def argument_text(value: Any) -> str:
    """Return tool arguments as the JSON text that messages carry."""
    import json

    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
