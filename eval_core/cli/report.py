"""`compression-eval report` and `compression-eval compare`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from eval_core.comparing.compare import ReportData

__all__ = [
    "compare",
    "print_data",
    "report",
]

# Printing a report to stdout in the form that was asked for.


def print_data(data: ReportData, form: str) -> None:
    """Print text for people, markdown, JSON for programs, or the HTML page."""
    from eval_core.reporting.view import make_view

    if form == "json":
        from eval_core.base.files import pretty
        from eval_core.reporting.contract import contract

        verdict = data.verdict.model_dump(mode="json") if data.verdict else None
        click.echo(pretty({**contract(data), "verdict": verdict}), nl=False)
    elif form == "md":
        from eval_core.reporting.markdown import render_markdown

        click.echo(render_markdown(make_view(data)), nl=False)
    elif form == "html":
        from eval_core.reporting.html import render_html

        click.echo(render_html(data), nl=False)
    else:
        from eval_core.reporting.terminal import console, print_report

        print_report(make_view(data), console())


# `compression-eval report`.


@click.command()
@click.argument("results", type=click.Path(path_type=Path), default=Path("results/latest"))
@click.option("--format", "form", type=click.Choice(["text", "md", "html", "json"]), default="text", show_default=True)
@click.option(
    "--compare-to", default="auto", show_default=True, help="auto, none, a baseline file or a results folder."
)
@click.option("--config", type=click.Path(path_type=Path), help="Default: .compression-eval.yml")
def report(results: Path, form: str, compare_to: str, config: Path | None) -> None:
    """Render a result again; nothing is measured and no model is called.

    \b
    Examples:
      compression-eval report
      compression-eval report results/before --format html > before.html
    """
    from eval_core.base.config import config_folder, load_config
    from eval_core.measuring.options import Job
    from eval_core.storage.results import read_runs

    measurement = read_runs(results)
    job = Job(load_config(config), config_folder(config), names=tuple(measurement.fixtures), compare_to=compare_to)
    print_data(job.compared(measurement, job.load_cases(), results), form)


# `compression-eval compare`.


@click.command()
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "md", "json", "html"]), default="text", show_default=True)
@click.option(
    "--fail-on",
    type=click.Choice(["never", "regressed", "inconclusive"]),
    default="never",
    show_default=True,
    help="Exit with 1 on this verdict or a worse one, with 3 where it cannot be told.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the permutation test.")
def compare(base: Path, candidate: Path, form: str, fail_on: str, seed: int) -> None:
    """Compare two results folders or baseline files; no model is called.

    \b
    Examples:
      compression-eval compare baselines/offline.json results/latest
      compression-eval compare results/before results/after --fail-on regressed
    """
    from eval_core.base.config import load_config
    from eval_core.comparing.compare import ReportData, compare_measurements
    from eval_core.comparing.headline import undecided
    from eval_core.comparing.verdict import Options, exit_code
    from eval_core.measuring.compared import with_remedy
    from eval_core.storage.baselines import load_side

    before, after = load_side(base), load_side(candidate)
    verdict, part = compare_measurements(before, after, options=Options(seed=seed), accept=load_config(None).accept)
    verdict = with_remedy(verdict, part, str(base), after)
    print_data(ReportData(after, base=part, verdict=verdict, base_path=str(base)), form)
    code = exit_code(verdict, fail_on)  # type: ignore[arg-type]
    if code == 3:
        click.echo(undecided(verdict, fail_on), err=True)
    sys.exit(code)
