"""The next turn: what an agent really sends after a compaction, beside the state that its adapter reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from eval_core.base.messages import Message, said
from eval_core.domain.fixture import Fixture
from eval_core.domain.session_text import SessionText

TURN = "Before you go on, say in one sentence what is left to do."
_APART = ("system", "developer")


@dataclass(frozen=True)
class NextTurn:
    """The session's lines in which the reported state and the next request differ."""

    not_sent: tuple[str, ...]
    """Reported, and the agent does not send them."""
    not_reported: tuple[str, ...]
    """Sent, and not in the state that was reported."""
    instructed: bool
    """Whether the request for the summary ends with an instruction, not with the session."""


@runtime_checkable
class TakesTurn(Protocol):
    """A subject that can go on after a compaction."""

    async def next_turn(self, fixture: Fixture) -> NextTurn | None:
        """Compress a fixture, take one turn and say what was sent; None where it cannot be seen."""


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if message.get("role") not in _APART:
            yield from said(message).texts


def _lacking(known: SessionText, texts: Iterable[str]) -> list[str]:
    return [part.text for text in texts for part in known.parts(text) if not part.session]


def compared(
    state: Sequence[Message], asked: Sequence[Message], sent: Sequence[Message], session: SessionText
) -> NextTurn:
    """Compare a reported state with the request after it; `asked` is the request for the summary."""
    in_request, in_state = SessionText(sent), SessionText(state)
    in_state.add([TURN])
    # Whole texts are looked for: a short line is known by its neighbours.
    more = _lacking(in_state, _texts(sent))
    ends = [part.session for text in said(asked[-1]).texts for part in session.parts(text)] if asked else []
    return NextTurn(
        not_sent=tuple(_lacking(in_request, _texts(state))),
        not_reported=tuple(part.text for text in more for part in session.parts(text) if part.session),
        instructed=not (ends and ends[-1]),
    )
