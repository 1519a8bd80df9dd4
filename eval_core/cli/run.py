"""`compression-eval run`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eval_core.config import Config
    from eval_core.measurement import Measurement
    from eval_core.report.data import ReportData

__all__ = ["run"]


@click.command()
@click.option("--fixtures", "names", help="Comma-separated fixture names; default: all.")
@click.option("--runs", type=click.IntRange(1, 50), help="Graded runs of each fixture.  [default: 3]")
@click.option("--compress-runs", type=click.IntRange(1, 200), help="Compressions of each fixture.  [default: 10]")
@click.option("--label", help="Folder under the results folder.  [default: the time]")
@click.option("--target", help="builtin:anchored|regenerative|sliding-window|opaque, or a target file.")
@click.option("--focus-topic", help="Passed on to the compressor.")
@click.option(
    "--compare-to", default="auto", show_default=True, help="auto, none, a baseline file or a results folder."
)
@click.option("--config", type=click.Path(path_type=Path), help="Configuration file.  [default: .compression-eval.yml]")
@click.option("--results", type=click.Path(path_type=Path), help="Where results are written.  [default: results]")
@click.option("--resume", is_flag=True, help="Complete an interrupted run of the same label.")
@click.option("--concurrency", type=click.IntRange(1, 256), help="Most model calls at once.  [default: 16]")
@click.option(
    "--stop",
    type=click.Choice(["full", "early"]),
    default="full",
    show_default=True,
    help="early: skip grading where facts alone decide.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["never", "regressed", "inconclusive"]),
    default="never",
    show_default=True,
    help="Exit with 1 on this verdict or a worse one.",
)
@click.option("--format", "form", type=click.Choice(["text", "md", "json"]), default="text", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
def run(
    names: str | None,
    runs: int | None,
    compress_runs: int | None,
    label: str | None,
    target: str | None,
    focus_topic: str | None,
    compare_to: str,
    config: Path | None,
    results: Path | None,
    resume: bool,
    concurrency: int | None,
    stop: str,
    fail_on: str,
    form: str,
    seed: int,
    quiet: bool,
) -> None:
    """Compress recorded sessions, probe the compressed state, grade the answers, compare with the baseline.

    Without a model everything runs offline: rules summarise, quotations answer, facts judge.

    \b
    Examples:
      compression-eval run
      compression-eval run --target builtin:opaque --fixtures debug-session-feishu-id-model
      compression-eval run --compare-to results/before --fail-on regressed
    """
    from eval_core.compare.verdict import exit_code
    from eval_core.config import load_config
    from eval_core.report.files import write_reports
    from eval_core.run.assemble import offline_roles
    from eval_core.run.plan import make_plan
    from eval_core.run.provenance import now
    from eval_core.run.session import Session
    from eval_core.run.store import open_results
    from eval_core.run.suite import load_suite

    from .progress import show_progress
    from .show import print_data

    settings = load_config(config)
    cases = load_suite(Path(settings.fixtures), Path(settings.probes), names.split(",") if names else None)
    roles = offline_roles(target or str(settings.target))
    name = label or now().strftime("%Y-%m-%d_%H-%M-%S")
    graded, compressions = runs or settings.runs, compress_runs or settings.compress_runs
    if not quiet and roles.offline:
        click.echo("Offline: no model is configured; rules compress, quotations answer, facts judge.", err=True)
    with open_results(results or Path(settings.results), name, resume=resume) as folder:
        total = len(make_plan(cases, graded, compressions))
        with show_progress(total, quiet=quiet) as on_record:
            session = Session(
                cases=cases,
                roles=roles,
                folder=folder,
                label=name,
                runs=graded,
                compress_runs=compressions,
                seed=seed,
                focus_topic=focus_topic or settings.focus_topic,
                concurrency=concurrency or settings.concurrency,
                on_record=on_record,
                resume=resume,
            )
            measurement = asyncio.run(session.measure())
        data = compared(measurement, compare_to, settings)
        write_reports(data, folder)
        print_data(data, form)
        if not quiet:
            click.echo(f"Written to {folder.path}: report.md, report.html, summary.json", err=True)
    code = exit_code(data.verdict, fail_on) if data.verdict else 0  # type: ignore[arg-type]
    sys.exit(code)


def compared(measurement: Measurement, compare_to: str, settings: Config) -> ReportData:
    """Compare a measurement with the chosen baseline, or say why not."""
    from eval_core.baseline import find_baseline, read_history
    from eval_core.compare.comparison import compare_measurements, load_side
    from eval_core.report.data import ReportData
    from eval_core.run.suite import load_suite

    folder = Path(settings.baselines)
    names = list(measurement.fixtures)
    cases = {case.fixture.name: case for case in load_suite(Path(settings.fixtures), Path(settings.probes), names)}
    if compare_to == "none":
        return ReportData(measurement, cases=cases, note="none was asked for")
    path: Path | None = Path(compare_to)
    if compare_to == "auto":
        found = find_baseline(folder, measurement.fingerprint)
        path = found[0] if found else None
    if path is None:
        hint = f"no baseline in {folder}; `compression-eval baseline update` makes one"
        return ReportData(measurement, cases=cases, note=hint)
    verdict, base = compare_measurements(load_side(path), measurement)
    return ReportData(
        measurement,
        base=base,
        verdict=verdict,
        base_path=str(path),
        cases=cases,
        history=read_history(folder, path.stem),
    )
