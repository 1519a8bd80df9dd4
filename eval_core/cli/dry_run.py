"""`compression-eval run --dry-run`: what a run would cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eval_core.job import Job

__all__ = ["print_estimate"]


def _money(value: float | None) -> str:
    return "unknown" if value is None else f"${value:.4f}" if value < 1 else f"${value:.2f}"


def print_estimate(job: Job, results: Path | None = None) -> None:
    """Print calls, tokens and cost by role; send nothing."""
    from rich.text import Text

    from eval_core.quote import quote
    from eval_core.report.terminal import console, plain_table

    found = quote(job, results)
    if found is None:
        cases = job.load_cases()
        click.echo(
            f"Offline: {job.size(cases)} fixture-runs of {len(cases)} fixtures, no model call, no cost. "
            "Name a model with --model to see what that costs."
        )
        return
    out = console()
    columns = ("role", "model", "calls", "input tokens", "output tokens", "cost", "with prompt caching")
    table = plain_table("Estimate; nothing was sent", *columns)
    for row in (*found.rows, found.total):
        table.add_row(
            row.role,
            row.model,
            f"{row.calls:,}",
            f"{row.input_tokens:,}",
            f"{row.output_tokens:,}",
            _money(row.cost_usd),
            _money(row.cached_cost_usd),
        )
    out.print(table)
    out.print(Text("Calls: " + ", ".join(f"{calls:,} {purpose}" for purpose, calls in found.purposes)))
    cost = found.total.cost_usd
    if job.stop == "early":
        out.print(Text("With --stop early, answers and grades are left out where facts alone decide."))
    if cost is None:
        out.print(Text("A price is unknown: give it with --price MODEL=IN,OUT (dollars per million tokens)."))
    elif cost > found.budget_usd:
        out.print(
            Text(f"The budget of ${found.budget_usd:g} is less than that: the run would stop and could be resumed.")
        )
    else:
        out.print(Text(f"The budget of ${found.budget_usd:g} covers it."))
