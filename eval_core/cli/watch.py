"""`compression-eval run --watch`: run again whenever a watched file is edited, and tell what that lost and regained."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import click

from eval_core.base.errors import IncompleteError, UserError
from eval_core.base.numbers import counted
from eval_core.statistics.fates import fates

if TYPE_CHECKING:
    from eval_core.domain.measurement import Measurement
    from eval_core.measuring.options import RunOptions

_SECONDS = 0.3


def quick(options: RunOptions) -> RunOptions:
    """Return the options that answer soonest: one run of each fixture unless more were asked for, and no base."""
    from eval_core.domain.target import Builtin

    if isinstance(options.load_target().spec, Builtin) or not options.settings.watch:
        raise UserError("--watch: there is nothing to watch; name your compressor and its files under target and watch")
    runs = options.runs or 1
    return replace(options, runs=runs, compress_runs=options.compress_runs or runs, compare_to="none")


def watch(options: RunOptions, measure: Callable[[], Measurement]) -> NoReturn:
    """Measure now and after every edit; print what changed since the measurement before. Ctrl+C ends it."""
    tree = options.load_target().tree
    globs = ", ".join(options.settings.watch)
    before: Measurement | None = None
    seen: str | None = None
    while True:
        if (now := options.digest_of(tree)) == seen:
            time.sleep(_SECONDS)
            continue
        seen = now
        try:
            after = measure()
        except (UserError, IncompleteError) as exc:
            click.echo(f"Not measured: {exc}")
        else:
            _tell(before or after, after)
            before = after
        click.echo(f"Watching {globs}. Edit, save and look here; Ctrl+C ends.\n")


def _tell(before: Measurement, after: Measurement) -> None:
    """Print what fails, how many facts are kept, and each one that was lost or came back; nothing is tested here."""
    from rich.text import Text

    from eval_core.reporting.terminal import console
    from eval_core.strands.asks import compare_asks

    out = console()
    asks = compare_asks(before, after)
    if asks.changed and after.stood_in:
        click.echo(f"Offline, no model follows a prompt: {asks.strand.says}.\n{_WITH_A_MODEL}")
    failed = {run.outcome.words for runs in after.fixtures.values() for run in runs if not run.ok}
    if failed:
        click.echo(f"The compressor {' and '.join(sorted(failed))}.")
    for fixture in after.fixtures:
        old, new = fates(before, fixture), fates(after, fixture)
        kept = sum(fate.kept_share >= _MOST for fate in new.values())
        click.echo(f"{fixture}: {kept} of {counted(len(new), 'fact')} kept")
        for key, fate in new.items():
            was, now = (side is not None and side.kept_share >= _MOST for side in (old.get(key), fate))
            if was != now:
                sign, colour = ("+", "green") if now else ("-", "red")
                where = f" (message {fate.messages[0]})" if fate.messages else ""
                out.print(Text(f"  {sign} {fate.name}{where}", style=colour))


_MOST = 0.5
"""The share of runs from which on a fact counts as kept."""

_WITH_A_MODEL = "`--compressor-model NAME --judge offline` asks one; each save then costs its compressions."
