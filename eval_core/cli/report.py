"""`compression-eval report`."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["report"]


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
    from eval_core.config import load_config
    from eval_core.job import Job
    from eval_core.run.store import read_runs

    from .show import print_data

    measurement = read_runs(results)
    job = Job(load_config(config), names=tuple(measurement.fixtures), compare_to=compare_to)
    print_data(job.compared(measurement, job.load_cases(), results), form)
