"""`compression-eval judge`: calibrate."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eval_core.cli.entry import CommandGroup
from eval_core.cli.options import config_option, model_options, quiet_option, results_option
from eval_core.cli.run import make_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from eval_core.domain.judge_record import JudgeRecord
    from eval_core.measuring.options import RunOptions
    from eval_core.measuring.wiring import Live


@click.group(cls=CommandGroup)
def judge() -> None:
    """Calibrate the judge."""


@asynccontextmanager
async def _live(options: RunOptions, journal: Path) -> AsyncIterator[Live]:
    from eval_core.domain.target import Builtin
    from eval_core.measuring.interrupt import interruptible
    from eval_core.measuring.wiring import make_live
    from eval_core.sandbox.targets import Target

    async with AsyncExitStack() as stack:
        # Nothing is compressed here, so no target of the user's is started.
        target = Target(Builtin("anchored"), options.root, Builtin("anchored"))
        live = await make_live(stack, options, target, journal, options.budget)
        with interruptible(live.stop, live.abandon):
            yield live


def _print_examination(options: RunOptions, root: Path, *, again: bool) -> None:
    from eval_core.cli.run import print_rows
    from eval_core.measuring.cost import estimate_examination

    found = estimate_examination(options, root, again=again)
    if found is None:
        click.echo("Offline: grades are rule-based, no model call, no cost.")
    elif not found.rows:
        click.echo("Nothing to pay for: the calibration is known (--again calibrates it again).")
    else:
        print_rows(found)


@judge.command()
@click.option("--again", is_flag=True, help="Calibrate again, even if the result is known.")
@click.option("--dry-run", is_flag=True, help="Print calls, tokens and cost; send nothing.")
@quiet_option
@results_option
@config_option
@model_options
def calibrate(again: bool, dry_run: bool, results: Path | None, quiet: bool, **given: Any) -> None:
    """Audit the judge on answers with an obvious order and on labelled ones. Exit 1 if it should not be used.

    \b
    Examples:
      compression-eval judge calibrate
      compression-eval judge calibrate --judge-model openai/gpt-4.1 --budget-usd 1
    """
    import asyncio

    from eval_core.judging.calibration import CALIBRATION

    options = make_options({"names": None, "targets": (), **given})
    root = results or options.results
    journal = root / CALIBRATION / "journal.jsonl"
    if dry_run:
        _print_examination(options, root, again=again)
        return
    if again:
        journal.unlink(missing_ok=True)

    name, record = asyncio.run(_examine(options, root, journal, again=again))
    _print_record(name, record)
    if record.reasons:
        click.echo(f"This judge should not be used: {'; '.join(record.reasons)}.")
        sys.exit(1)
    click.echo("This judge may be used.")


async def _examine(options: RunOptions, root: Path, journal: Path, *, again: bool) -> tuple[str, JudgeRecord]:
    """Return the judge's name and its record, known or made now."""
    from eval_core.base.errors import IncompleteError, UserError
    from eval_core.judging.calibration import calibration_key, examine, find_record, keep_record
    from eval_core.judging.judge_audit import audit

    async with _live(options, journal) as live:
        judged = live.roles.judge
        found = None if again else find_record(calibration_key(judged.identity), root, ())
        record = found or await examine(judged, live.served_judge)
        if record.audit is None:
            record = record.model_copy(update={"audit": await audit(judged)})
        if (mistake := live.mistake()) is not None:
            raise UserError(mistake)
        if live.roles.judged:
            keep_record(root, record)
        if stopped := live.stopped():
            raise IncompleteError(f"{stopped}; the grades so far are kept in {journal.parent}; run it again")
        return judged.identity["model"], record


def _print_record(name: str, record: JudgeRecord) -> None:
    result = record.calibration
    agreement = "unknown" if result.agreement is None else f"{result.agreement:.1%}"
    click.echo(f"{name}: {agreement} of {result.pairs} pairs ranked correctly.")
    click.echo(f"Measured {record.date[:10]} on {record.served or name}.")
    click.echo(f"Gross misrankings: {len(result.gross)}")
    for miss in result.gross:
        click.echo(f"  {miss}")
    if result.unscored:
        click.echo(f"Not graded: {len(result.unscored)}; the first: {result.unscored[0]}")
    assert record.audit is not None
    for line in (*record.audit.lines(), record.audit.sensitivity):
        click.echo(line)
