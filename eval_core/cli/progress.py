"""Progress on stderr: a live line on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from eval_core.domain.record import RunRecord

if TYPE_CHECKING:
    from eval_core.measuring.wiring import Traffic

_PLAIN_SECONDS = 30.0
_LIVE_SECONDS = 0.25
_SILENT_SECONDS = 2.0
"""Nothing takes longer than this without a word."""


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 90 else f"{round(whole / 60)} min" if whole < 5400 else f"{whole / 3600:.1f} h"


class Progress:
    """What is done, what is under way, what it cost and how long the rest may take."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now."""
        self.total, self.done = total, 0
        self.last = ""
        """What went wrong with the newest record, if anything."""
        self._clock, self._began = clock, clock()
        self._traffic: Callable[[], Traffic | None] = lambda: None
        self._on_change: Callable[[Progress], None] = lambda progress: None

    def record(self, record: RunRecord) -> None:
        """Note a finished fixture-run."""
        self.done += 1
        self.last = "" if record.ok else f"{record.fixture}: {record.outcome}"
        self._on_change(self)

    def watch(self, traffic: Callable[[], Traffic | None]) -> None:
        """Learn where the traffic with models can be seen."""
        self._traffic = traffic

    @property
    def left(self) -> str:
        """Return how long the rest may take; nothing before the first is done and after the last."""
        if not 0 < self.done < self.total:
            return ""
        return f"about {_duration((self._clock() - self._began) / self.done * (self.total - self.done))} left"

    @property
    def line(self) -> str:
        parts = [f"{self.done} of {self.total} fixture-runs"]
        traffic = self._traffic()
        if traffic is not None:
            price = "price unknown" if traffic.usd is None else f"${traffic.usd:.2f}"
            parts += [f"{traffic.in_flight} calls in flight, {traffic.sent} sent", f"{traffic.tokens:,} tokens", price]
        if not self.done and (waited := self._clock() - self._began) >= _SILENT_SECONDS:
            parts.append(f"started {_duration(waited)} ago")
        if left := self.left:
            parts.append(left)
        return ", ".join(parts) + (f" ({self.last})" if self.last else "")


@contextmanager
def _repeated(seconds: float, act: Callable[[], None]) -> Iterator[None]:
    """Act again and again until the block ends."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(seconds):
            act()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def show_progress(total: int, *, quiet: bool) -> Iterator[Progress]:
    """Show the progress of so many fixture-runs."""
    progress = Progress(total)
    if quiet:
        yield progress
    elif sys.stderr.isatty():
        with _live(progress):
            yield progress
    else:
        with _plain(progress):
            yield progress


@contextmanager
def show_waiting(what: str) -> Iterator[None]:
    """Say what is under way if it takes longer than a moment; for work without steps to count."""
    began = time.monotonic()
    if sys.stderr.isatty():
        from rich.text import Text

        from eval_core.reporting.terminal import console

        with console(sys.stderr).status("") as status:
            status.stop()

            def tick() -> None:
                if (waited := time.monotonic() - began) >= _SILENT_SECONDS:
                    status.start()
                    status.update(Text(f"{what}, {_duration(waited)}"))

            with _repeated(_LIVE_SECONDS, tick):
                yield
        return
    late = threading.Timer(_SILENT_SECONDS, lambda: print(f"{what} ...", file=sys.stderr, flush=True))
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


@contextmanager
def _plain(progress: Progress) -> Iterator[None]:
    """Print a line at every tenth, at every failure, and when nothing was said for a while."""
    shown, said = 0, ""

    def say() -> None:
        nonlocal said
        if progress.line != said:
            said = progress.line
            print(said, file=sys.stderr, flush=True)

    def changed(progress: Progress) -> None:
        nonlocal shown
        share = progress.done * 10 // max(progress.total, 1)
        if share > shown or progress.last:
            shown = share
            say()

    def first() -> None:
        if not progress.done:
            say()

    progress._on_change = changed
    early = threading.Timer(_SILENT_SECONDS, first)
    early.daemon = True
    early.start()
    try:
        with _repeated(_PLAIN_SECONDS, say):
            yield
    finally:
        early.cancel()


@contextmanager
def _live(progress: Progress) -> Iterator[None]:
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    from eval_core.reporting.terminal import console

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=progress.total)

        def refresh() -> None:
            bar.update(task, completed=progress.done, description=progress.line)

        with _repeated(_LIVE_SECONDS, refresh):
            yield
