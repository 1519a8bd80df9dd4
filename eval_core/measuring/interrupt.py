"""Interrupting a run: on SIGTERM or SIGINT nothing new is sent, open calls are awaited, everything is written."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

GRACE = 8.0
"""Seconds for calls under way: a cancelled job of GitHub Actions is killed ten seconds after its first signal."""
INTERRUPTED = "interrupted by"
"""How the reason begins for which a measurement was ended by a signal."""
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
    handlers = _Handlers(state, stop, abandon)
    try:
        yield state
    finally:
        handlers.end()


class _Handlers:
    """Our handlers of the signals, in place of those from before, until they are ended."""

    def __init__(self, state: Interruption, stop: Callable[[str], None], abandon: Callable[[], None]) -> None:
        self._state, self._stop, self._abandon = state, stop, abandon
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._before = {number: signal.getsignal(number) for number in _SIGNALS}
        for number in _SIGNALS:
            self._loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: signal.Signals) -> None:
        if self._state.why is None:
            self._state.why = f"{INTERRUPTED} {number.name}"
            self._stop(self._state.why)
            self._timer = self._loop.call_later(GRACE, self._cut)
        else:
            self._cut()

    def _cut(self) -> None:
        if not self._state.cut.is_set():
            self._abandon()
            self._state.cut.set()
            self._release()  # whoever signals a third time means it

    def _release(self) -> None:
        for number, handler in self._before.items():
            if self._loop.remove_signal_handler(number):
                signal.signal(number, handler)  # the loop would leave the system's own, which ends without a word

    def end(self) -> None:
        """Put the handlers from before back."""
        if self._timer is not None:
            self._timer.cancel()
        self._release()
