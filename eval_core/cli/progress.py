"""Progress on stderr: a live line on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eval_core.run.record import RunRecord

__all__ = ["show_progress"]


class _Tally:
    def __init__(self, total: int) -> None:
        self.total, self.done, self.calls, self.tokens = total, 0, 0, 0
        self.cost: float | None = 0.0

    def add(self, record: RunRecord) -> None:
        self.done += 1
        for use in record.use.values():
            self.calls += use.calls
            self.tokens += use.input_tokens + use.output_tokens
            self.cost = None if self.cost is None or use.cost_usd is None else self.cost + use.cost_usd

    @property
    def words(self) -> str:
        if not self.tokens:
            return ""
        price = "price unknown" if self.cost is None else f"${self.cost:.2f}"
        return f"{self.calls} calls, {self.tokens:,} tokens, {price}"


@contextmanager
def show_progress(total: int, *, quiet: bool) -> Iterator[Callable[[RunRecord], None]]:
    """Yield a function that is told of each finished fixture-run."""
    tally = _Tally(total)
    if quiet:
        yield tally.add
        return
    if not sys.stderr.isatty():
        shown = 0

        def line(record: RunRecord) -> None:
            nonlocal shown
            tally.add(record)
            share = tally.done * 10 // tally.total
            if share > shown or not record.ok:
                shown = share
                state = "" if record.ok else f" ({record.fixture}: {record.outcome})"
                extra = f", {tally.words}" if tally.words else ""
                print(f"{tally.done} of {tally.total} fixture-runs{extra}{state}", file=sys.stderr, flush=True)

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("fixture-runs"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)

        def bar(record: RunRecord) -> None:
            tally.add(record)
            progress.update(task, completed=tally.done, description=tally.words)

        yield bar
