"""The report for a terminal: verdict first, then the tables, plain when piped."""

from __future__ import annotations

import sys
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from eval_core.base.numbers import percent
from eval_core.comparing.findings import Kind
from eval_core.reporting.losses import places
from eval_core.reporting.view import COLUMNS, STEP_NOTE, ReportView

__all__ = ["console", "plain_table", "print_report"]

_STYLES = {
    Kind.BROKEN: "bold red",
    Kind.REGRESSED: "bold red",
    Kind.IMPROVED: "bold green",
    Kind.TRADE: "bold yellow",
    Kind.MIXED: "bold yellow",
    Kind.NO_DETECTABLE_CHANGE: "bold cyan",
}
_PIPED_WIDTH = 160  # a pipe has no width; wide enough that no row breaks


class _Printer(Console):
    """A console that leaves a closed pipe to the command, which knows how to end."""

    def on_broken_pipe(self) -> None:
        raise


def console(stream: TextIO | None = None) -> Console:
    """Return a console that respects NO_COLOR and the terminal's width."""
    target = stream or sys.stdout
    width = None if target.isatty() else _PIPED_WIDTH
    # Without markup and emoji: "[unknown]" and ":warning:" are what we or a session wrote, not orders to rich.
    return _Printer(file=target, width=width, highlight=False, markup=False, emoji=False)


def plain_table(title: str, *columns: str) -> Table:
    """Return an aligned table without lines; the first column is text, the others are numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
    return table


def print_report(view: ReportView, out: Console) -> None:
    """Print the compact report."""
    out.print(Text(view.headline, style=_STYLES.get(view.kind, "bold") if view.kind else "bold"))
    if view.next_step:
        out.print(Text(view.next_step))
    for warning in view.data.warnings:
        out.print(Text(f"Warning: {warning}", style="yellow"))
    if view.offline_note:
        out.print(Text(f"({view.offline_note})", style="dim"))
    if view.accept:
        out.print(Text(f"If that was intended, add this to .compression-eval.yml: {view.accept}"))
    if view.strands:
        strands = plain_table("\nEvidence", "", "base", "this run", "says")
        for strand in view.strands:
            strands.add_row(strand.name, strand.base or "-", strand.candidate or "-", strand.verdict)
        out.print(strands)
        for strand in view.strands:
            for detail in strand.details[:6] if strand.name != "Size" else ():
                out.print(Text("  ") + _line(f"{strand.name}: {detail}"))
    for line in (view.size_line, view.shown_line):
        if line:
            out.print(Text(f"{line}."))
    if view.table:
        compared = plain_table("\nCompared with the baseline", "", "base", "this run", "delta", "interval", "verdict")
        for row in view.table:
            compared.add_row(row.name, row.base, row.candidate, row.delta, row.interval, row.verdict)
        out.print(compared)
    medians = plain_table("\nMedians by fixture", "fixture", *COLUMNS.values())
    for fixture in view.fixtures:
        cells = [
            f"{cell} ({delta})" if delta else cell
            for cell, delta in zip(fixture.cells, fixture.deltas or [""] * len(fixture.cells), strict=True)
        ]
        medians.add_row(fixture.fixture, *cells)
    out.print(medians)
    if any(fixture.marked for fixture in view.fixtures):
        out.print(Text(STEP_NOTE, style="dim"))
    for fixture in view.fixtures:
        if fixture.note:
            out.print(Text(f"  {fixture.fixture}: {fixture.note}"))
    _print_lists(view, out)
    targets = plain_table("\nTargets", "", "measured", "target", "")
    for metric in view.metrics:
        targets.add_row(metric.name, metric.value, metric.target, metric.status)
    out.print(targets)
    if view.tokens:
        out.print(
            Text(
                f"Tokens per task over {view.tokens.turns:.0f} further turns, in full-price input tokens: "
                f"{view.tokens.uncompressed:,.0f} uncompressed; {view.tokens.retained:,.0f} retained, "
                f"{view.tokens.call:,.0f} for compressing, {view.tokens.reread:,.0f} for reading again what was lost: "
                f"net {view.tokens.net:,.0f}"
                + (f", pays after {view.tokens.pays_after} turns" if view.tokens.pays_after else ", never pays")
            )
        )
    out.print(Text(f"Cost: {view.cost}"))


def _line(text: str) -> Text:
    """Return text of a session or a compressor as one line that cannot steer the terminal."""
    return Text("".join(char if char.isprintable() else "�" for char in " ".join(text.split())))


def _print_lists(view: ReportView, out: Console) -> None:
    if view.lost:
        out.print(Text("\nFacts lost, worst first", style="bold"))
        for fact in view.lost[:12]:
            before = "" if fact.base_kept is None else f", baseline {percent(fact.base_kept)}"
            where = f"{fact.fixture} / {fact.probe}, {places(fact.evidence)}"
            why = f", {fact.why}" if fact.why else ""
            out.print(Text("  ") + _line(f"{fact.fact}: {where}, kept {percent(fact.kept)}{before}{why}"))
        if len(view.lost) > 12:
            out.print(Text(f"  and {len(view.lost) - 12} more"))
    if view.chance:
        out.print(Text(f"{view.chance} more facts moved by no more than chance."))
    for title, lines in (
        ("Not scored (missing is never zero)", [f"{count} x {reason}" for reason, count in view.unscored.items()]),
        ("Judge and facts disagree", [f"{line} ({count} x)" for line, count in view.doubts.items()]),
        ("Answered by another model than asked", view.other_models),
        ("Hardly tested", view.untested),
        ("Probes left out of the scores", view.quarantined),
        ("Structure checks that fail", view.broken_structure),
    ):
        if lines:
            out.print(Text(f"\n{title}", style="bold"))
            for line in lines[:12]:
                out.print(Text("  ") + _line(line))
