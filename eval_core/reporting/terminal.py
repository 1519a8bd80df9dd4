"""The report for a terminal: a verdict in a few lines, tables on demand, plain when piped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from eval_core.base.numbers import counted, percent
from eval_core.base.screen import STEERING, Inert
from eval_core.reporting.losses import LostFact, places
from eval_core.reporting.view import COLUMNS, MARKS, STEP_NOTE, ReportView
from eval_core.strands.findings import Kind

_STYLES = {
    Kind.BROKEN: "bold red",
    Kind.REGRESSED: "bold red",
    Kind.IMPROVED: "bold green",
    Kind.TRADE: "bold yellow",
    Kind.MIXED: "bold yellow",
    Kind.NO_DETECTABLE_CHANGE: "bold cyan",
}
_WORST = 3
_ASKS = 8
_ONE_LINE = 70  # columns in which a lost fact can be told with its runs and its message
_LONGEST_ERROR = 1_000  # characters of an error; the report has all of it
_PIPED_WIDTH = 160  # a pipe has no width; wide enough that no row breaks


class _Printer(Console):
    """A console that no text can steer, and that leaves a closed pipe to the command, which knows how to end."""

    def on_broken_pipe(self) -> None:
        raise

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render; a result that somebody else made may hold control characters anywhere."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(STEERING.sub("\ufffd", segment.text), segment.style)


def console(stream: TextIO | None = None) -> Console:
    """Return a console that respects NO_COLOR and the terminal's width."""
    target = stream or sys.stdout
    if isinstance(target, Inert):
        target = target.stream
    width = None if target.isatty() else _PIPED_WIDTH
    # Without markup and emoji: "[unknown]" and ":warning:" are what we or a session wrote, not orders to rich.
    return _Printer(file=target, width=width, highlight=False, markup=False, emoji=False)


def print_table(out: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print an aligned table; where the terminal is too narrow for it, each row becomes a block of lines."""
    if not rows:
        return
    widths = [max(cell_len(row[at]) for row in (columns, *rows)) for at in range(len(columns))]
    if sum(widths) + len(widths) - 1 <= out.width:
        table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
        for number, column in enumerate(columns):
            table.add_column(column, justify="left" if number == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*row)
        out.print(table)
        return
    out.print(Text(title, style="bold"))
    for row in rows:
        out.print(Text(row[0]))
        for name, cell in zip(columns[1:], row[1:], strict=True):
            if cell.strip() and cell != "-":
                out.print(Text(f"  {name}: {cell}" if name else f"  {cell}"))


def print_report(view: ReportView, out: Console, *, where: str = "", details: bool | None = False) -> None:
    """Print the verdict, the size, the worst losses and where the report is; everything else on demand.

    `details` is None where there is no option to ask for them with.
    """
    _print_summary(view, out)
    if view.asks:
        _print_asks(view.asks, out, whole=bool(details))
    if details:
        _print_details(view, out)
    else:
        _print_worst(view, out)
    if view.accept:
        out.print(Text("If you removed it on purpose: compression-eval accept"))
    out.print(Text(f"Cost: {view.cost}"))
    if where:
        hint = " (`report --details` prints the tables)" if details is False else ""
        out.print(Text(f"Report: {where}{hint}"))
    elif details is False:
        out.print(Text("Tables: --details. The page with both summaries: --format html > report.html"))


def _print_summary(view: ReportView, out: Console) -> None:
    mark = MARKS[view.kind] if view.kind else "•"
    out.print(Text(f"{mark} {view.headline}", style=_STYLES.get(view.kind, "bold") if view.kind else "bold"))
    for sentence in filter(None, (view.size_line, view.shown_line)):
        out.print(Text(f"{sentence}."))
    if view.next_step:
        out.print(Text(f"Next step: {view.next_step}"))
    for remark in view.remarks:
        out.print(Text(remark))
    for warning in (*view.data.warnings, *view.other_models):
        out.print(Text(f"Warning: {warning}", style="yellow"))
    if view.offline_note:
        out.print(Text(f"({view.offline_note})", style="dim"))


def _print_asks(asks: Sequence[str], out: Console, *, whole: bool) -> None:
    most = len(asks) if whole else _ASKS
    out.print(Text("What it asks of its model:", style="bold"))
    for line in asks[:most]:
        out.print(Text("  ") + _line(line), no_wrap=not whole, overflow="fold" if whole else "ellipsis")
    if len(asks) > most:
        out.print(Text(f"  and {len(asks) - most} more lines"))


def _fact_line(fact: LostFact) -> str:
    """Say what was lost, how often and where, in this order: a narrow terminal shows the beginning."""
    before = "" if fact.base_kept is None else f" (baseline kept it in {percent(fact.base_kept)})"
    gone = round((1 - fact.kept) * fact.runs)
    fate = f"gone in {gone} of {fact.runs} runs" if fact.runs else f"kept {percent(fact.kept)}"
    why = f", {fact.why}" if fact.why else ""
    return f"{fact.fact}: {fate}, {places(fact.evidence)} of {fact.fixture} / {fact.probe}{before}{why}"


def _print_worst(view: ReportView, out: Console) -> None:
    """Print the three worst losses and what kept anything from being measured, a line each."""
    if view.lost:
        out.print(Text(f"Lost: {counted(len(view.lost), 'fact')}, the worst:", style="bold"))
        # Where a line would be cut before it has told the message, it may go on in the next.
        short = out.width < _ONE_LINE
        for fact in _worst(view.lost):
            out.print(Text("  ") + _line(_fact_line(fact)), no_wrap=not short, overflow="fold" if short else "ellipsis")
    for title, lines in (
        (
            "Stated and should not be",
            [item.words for item in view.data.verdict.false_values] if view.data.verdict else [],
        ),
        ("Failed", [f"{fixture.fixture}: {fixture.note}" for fixture in view.fixtures if fixture.note]),
        ("Not scored (excluded, not counted as 0)", [f"{count} x {reason}" for reason, count in view.unscored.items()]),
        ("The compressor printed", [view.printed] if view.printed else []),
        ("Structure checks that fail", view.broken_structure),
    ):
        if lines:
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            # Of a compressor that is broken the error is all there is to know, so it is not cut at the edge.
            whole = view.kind is Kind.BROKEN
            line = _line(f"{title}: {lines[0][:_LONGEST_ERROR]}{more}")
            out.print(line, no_wrap=not whole, overflow="fold" if whole else "ellipsis")


def _worst(lost: Sequence[LostFact]) -> list[LostFact]:
    """Return three losses: what probes ask for before what was only found."""
    return sorted(lost, key=lambda item: item.probe.startswith("census"))[:_WORST]


def _print_details(view: ReportView, out: Console) -> None:
    strands = [(row.name, row.base or "-", row.candidate or "-", row.verdict) for row in view.strands]
    print_table(out, "\nEvidence", ("", "base", "this run", "says"), strands)
    for strand in view.strands:
        for detail in strand.first(6) if strand.name != "Size" else ():
            out.print(Text("  ") + _line(f"{strand.name}: {detail}"))
    print_table(
        out,
        "\nCompared with the baseline",
        ("", "base", "this run", "delta", "interval", "verdict"),
        [(row.name, row.base, row.candidate, row.delta, row.interval, row.verdict) for row in view.table],
    )
    print_table(
        out,
        "\nMedians by fixture",
        ("fixture", *COLUMNS.values()),
        [
            (
                fixture.fixture,
                *(
                    f"{cell} ({delta})" if delta else cell
                    for cell, delta in zip(fixture.cells, fixture.deltas or [""] * len(fixture.cells), strict=True)
                ),
            )
            for fixture in view.fixtures
        ],
    )
    if any(fixture.marked for fixture in view.fixtures):
        out.print(Text(STEP_NOTE, style="dim"))
    for fixture in view.fixtures:
        if fixture.note:
            out.print(Text(f"  {fixture.fixture}: {fixture.note}"))
    _print_lists(view, out)
    out.print(Text(view.not_looked_at))
    targets = [(metric.name, metric.value, metric.target, metric.status) for metric in view.metrics]
    print_table(out, "\nTargets", ("", "measured", "target", "status"), targets)
    if view.tokens:
        out.print(
            Text(
                f"Tokens per task over {view.tokens.turns:.0f} further turns, in full-price input tokens: "
                f"{view.tokens.uncompressed:,.0f} uncompressed; {view.tokens.retained:,.0f} retained, "
                f"{view.tokens.call:,.0f} for compressing, {view.tokens.reread:,.0f} for re-reading what was lost: "
                f"net {view.tokens.net:,.0f}"
                + (f", pays off after {view.tokens.pays_after} turns" if view.tokens.pays_after else ", never pays off")
            )
        )


def _line(text: str) -> Text:
    """Return text of a session or a compressor as one line that cannot steer the terminal."""
    return Text("".join(char if char.isprintable() else "�" for char in " ".join(text.split())))


def _print_lists(view: ReportView, out: Console) -> None:
    if view.lost:
        out.print(Text("\nFacts lost, worst first", style="bold"))
        for fact in view.lost[:12]:
            out.print(Text("  ") + _line(_fact_line(fact)))
        if len(view.lost) > 12:
            out.print(Text(f"  and {len(view.lost) - 12} more"))
    if view.chance:
        out.print(Text(f"{view.chance} more facts changed, no more than chance explains."))
    for title, lines in (
        ("Not scored (excluded, not counted as 0)", [f"{count} x {reason}" for reason, count in view.unscored.items()]),
        ("Judge and facts disagree", [f"{line} ({count} x)" for line, count in view.doubts.items()]),
        ("Hardly tested", view.untested),
        ("Probes left out of the scores", view.quarantined),
        ("Structure checks that fail", view.broken_structure),
    ):
        if lines:
            out.print(Text(f"\n{title}", style="bold"))
            for line in lines[:12]:
                out.print(Text("  ") + _line(line))
