"""Interrupting a run: on SIGTERM or SIGINT nothing new is sent, open calls are awaited, everything is written."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["GRACE", "Interruption", "interruptible"]

GRACE = 8.0
"""Seconds for calls under way: a cancelled job of GitHub Actions is killed ten seconds after its first signal."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass
class Interruption:
    """Whether a signal came, and whether the time that was left after it is over."""

    why: str | None = None
    cut: asyncio.Event = field(default_factory=asyncio.Event)


@contextmanager
def interruptible(stop: Callable[[str], None], abandon: Callable[[], None]) -> Iterator[Interruption]:
    """Call `stop` at the first signal, and `abandon` when the grace is over or a second signal comes."""
    state = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield state  # signals reach the main thread only
        return
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def release() -> None:
        for number, handler in before.items():
            if loop.remove_signal_handler(number):
                signal.signal(number, handler)  # the loop would leave the system's own, which ends without a word

    def cut() -> None:
        if not state.cut.is_set():
            abandon()
            state.cut.set()
            release()  # whoever signals a third time means it

    def signalled(number: signal.Signals) -> None:
        if state.why is None:
            state.why = f"interrupted by {number.name}"
            stop(state.why)
            timers.append(loop.call_later(GRACE, cut))
        else:
            cut()

    for number in _SIGNALS:
        loop.add_signal_handler(number, signalled, number)
    try:
        yield state
    finally:
        for timer in timers:
            timer.cancel()
        release()
