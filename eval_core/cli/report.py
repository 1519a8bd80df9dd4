"""`compression-eval report`, `compression-eval compare` and `compression-eval trend`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eval_core.base.numbers import percent
from eval_core.cli.completion import complete_results
from eval_core.cli.entry import print_json
from eval_core.cli.options import config_option, details_option, fail_on_option, format_option, stored_option
from eval_core.comparing.compare import ReportData

if TYPE_CHECKING:
    from eval_core.base.config import Config
    from eval_core.domain.case import Case
    from eval_core.domain.measurement import Measurement

# Printing a report to stdout in the form that was asked for.


def print_data(data: ReportData, form: str, *, where: Path | None = None, details: bool | None = False) -> None:
    """Print text for people, markdown, JSON for programs, or the HTML page."""
    from eval_core.reporting.view import make_view

    if form == "json":
        from eval_core.base.files import pretty
        from eval_core.reporting.json_report import json_report

        verdict = data.verdict.model_dump(mode="json") if data.verdict else None
        click.echo(pretty({**json_report(data), "verdict": verdict}), nl=False)
    elif form == "md":
        from eval_core.reporting.markdown import render_markdown

        click.echo(render_markdown(make_view(data)), nl=False)
    elif form == "html":
        from eval_core.reporting.html import render_html

        click.echo(render_html(data), nl=False)
    else:
        from eval_core.reporting.terminal import console, print_report

        shown = str(where) if where is not None and where.exists() else ""
        print_report(make_view(data), console(), where=shown, details=details)


def cases_of(measurement: Measurement, settings: Config, root: Path) -> dict[str, Case]:
    """Return the fixtures and probes at hand that are those of a measurement, to show its sessions and questions."""
    from eval_core.base.errors import UserError
    from eval_core.domain.case import load_suite

    found = {}
    for name, digest in measurement.fingerprint.fixtures.items():
        try:
            case = load_suite(root / settings.fixtures, root / settings.probes, [name])[0]
        except UserError:
            continue  # measured elsewhere: shown without its session
        if case.fixture.digest == digest:
            found[name] = case
    return found


def compare_stored(result: Path | None, config: Path | None, compare_to: str) -> tuple[Path, ReportData]:
    """Compare a result again, the newest one where none is named; return its folder too."""
    from eval_core.base.config import config_folder, load_config
    from eval_core.cli.run import with_a_suite
    from eval_core.measuring.compare_with_base import compare, find_base
    from eval_core.storage.results import read_runs

    root = config_folder(config)
    settings = with_a_suite(load_config(config), root)
    folder = result or root / settings.results / "latest"
    measurement = read_runs(folder)
    base = find_base(measurement, settings, root, compare_to=compare_to, folder=folder)
    return folder, compare(base, measurement, [*cases_of(measurement, settings, root).values()])


def print_side_by_side(folders: Sequence[Path], form: str) -> None:
    """Print several results beside each other; nothing is decided."""
    from rich.text import Text

    from eval_core.base.errors import UserError
    from eval_core.reporting.side_by_side import COLUMNS, side_by_side
    from eval_core.reporting.terminal import console, print_table
    from eval_core.storage.baselines import load_side

    found = side_by_side([load_side(folder) for folder in folders])
    if form == "html":
        from eval_core.reporting.html import render_side_by_side

        click.echo(render_side_by_side(found), nl=False)
        return
    if form != "text":
        raise UserError(f"--format {form}: several results are shown as text or html")
    out = console()
    print_table(out, f"{len(folders)} results side by side", COLUMNS, found.rows)
    facts = [
        (f"{fact.fixture}: {fact.name}", *("-" if kept is None else percent(kept) for kept in fact.kept))
        for fact in found.facts[:12]
    ]
    print_table(out, "\nFacts on which they differ most, kept in", ("", *found.names), facts)
    if len(found.facts) > len(facts):
        out.print(Text(f"and {len(found.facts) - len(facts)} more; --format html shows them"))
    for note in found.notes:
        out.print(Text(f"Note: {note}."))


# `compression-eval report`.


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=Path), shell_complete=complete_results)
@format_option("text", "md", "html", "json")
@stored_option
@details_option
@config_option
def report(results: tuple[Path, ...], form: str, compare_to: str, details: bool, config: Path | None) -> None:
    """Render a result again, or several side by side; nothing is measured and no model is called.

    Without RESULTS, the newest result is shown.

    \b
    Examples:
      compression-eval report
      compression-eval report --details
      compression-eval report results/before --format html > before.html
      compression-eval report results/a results/b results/c --format html > all.html
    """
    if len(results) > 1:
        print_side_by_side(results, form)
        return
    folder, data = compare_stored(results[0] if results else None, config, compare_to)
    print_data(data, form, where=folder / "report.html", details=details)


# `compression-eval trend`.


@click.command()
@click.argument("name", required=False)
@format_option("text", "html", "json")
@config_option
def trend(name: str | None, form: str, config: Path | None) -> None:
    """Show score, facts, size and cost of the stored baselines over time.

    NAME is the name of a baseline; default: the one stored last.

    \b
    Examples:
      compression-eval trend
      compression-eval trend offline --format html > trend.html
    """
    from eval_core.base.config import config_folder, load_config
    from eval_core.base.errors import UserError
    from eval_core.comparing.trend import cumulative_changes
    from eval_core.reporting.html import render_trend
    from eval_core.reporting.html.trends import trends, verdict_mark
    from eval_core.reporting.terminal import console, print_table
    from eval_core.storage.history import read_history

    folder = config_folder(config) / load_config(config).baselines
    lines = read_history(folder)
    if not lines:
        raise UserError(f"{folder}: no history here; `compression-eval baseline update` starts one")
    name = name or lines[-1].baseline
    own = [line for line in lines if line.baseline == name]
    if not own:
        known = ", ".join(sorted({line.baseline for line in lines}))
        raise UserError(f"{folder}: no baseline {name!r} in the history; known: {known}")
    if form == "html":
        click.echo(render_trend(name, own), nl=False)
        return
    if form == "json":
        print_json([asdict(line) for line in own])
        return
    found = trends(own)
    rows = [
        (
            line.date[:16].replace("T", " "),
            line.release or "-",
            f"{mark.sign} {mark.words}" if (mark := verdict_mark(line)) else "-",
            *(item.values[at] for item in found),
        )
        for at, line in enumerate(own)
    ]
    columns = ("date", "release", "against the one before", *(item.name for item in found))
    print_table(console(), f"Baseline {name}", columns, rows)
    for change in cumulative_changes(own):
        click.echo(change.sentence)


# `compression-eval compare`.


@click.command()
@click.argument("base", type=click.Path(path_type=Path), shell_complete=complete_results)
@click.argument("candidate", type=click.Path(path_type=Path), shell_complete=complete_results)
@format_option("text", "md", "json", "html")
@fail_on_option
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the permutation test.")
@details_option
def compare(base: Path, candidate: Path, form: str, fail_on: str, seed: int, details: bool) -> None:
    """Compare two results folders or baseline files; no model is called.

    \b
    Examples:
      compression-eval compare baselines/offline.json results/latest
      compression-eval compare results/before results/after --fail-on regressed
    """
    from eval_core.base.config import config_folder, load_config
    from eval_core.comparing.compare import ReportData, compare_measurements
    from eval_core.comparing.headline import undecided
    from eval_core.comparing.tested import Options
    from eval_core.comparing.verdict import exit_code
    from eval_core.storage.baselines import load_side

    before, after = load_side(base), load_side(candidate)
    settings = load_config(None)
    verdict, part = compare_measurements(before, after, options=Options(seed=seed), accept=settings.accept)
    known = cases_of(after, settings, config_folder(None))
    data = ReportData(
        after, base=part, verdict=verdict, base_path=str(base), cases=known, task=settings.task, accept=settings.accept
    )
    print_data(data, form, details=details)
    code = exit_code(verdict, fail_on)  # type: ignore[arg-type]
    if code == 3:
        click.echo(undecided(verdict, fail_on), err=True)
    sys.exit(code)
