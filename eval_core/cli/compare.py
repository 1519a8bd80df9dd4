"""`compression-eval compare`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

__all__ = ["compare"]


@click.command()
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["text", "md", "json", "html"]), default="text", show_default=True)
@click.option(
    "--fail-on",
    type=click.Choice(["never", "regressed", "inconclusive"]),
    default="never",
    show_default=True,
    help="Exit with 1 on this verdict or a worse one.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the permutation test.")
def compare(base: Path, candidate: Path, form: str, fail_on: str, seed: int) -> None:
    """Compare two results folders or baseline files; no model is called.

    \b
    Examples:
      compression-eval compare baselines/offline.json results/latest
      compression-eval compare results/before results/after --fail-on regressed
    """
    from eval_core.compare.comparison import compare_measurements, load_side
    from eval_core.compare.verdict import Options, exit_code
    from eval_core.report.data import ReportData
    from eval_core.run.regrade import with_remedy

    from .show import print_data

    before, after = load_side(base), load_side(candidate)
    verdict, part = compare_measurements(before, after, options=Options(seed=seed))
    verdict = with_remedy(verdict, part, str(base), after)
    print_data(ReportData(after, base=part, verdict=verdict, base_path=str(base)), form)
    sys.exit(exit_code(verdict, fail_on))  # type: ignore[arg-type]
