"""`compression-eval baseline`: update, show, check."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from eval_core.base.numbers import counted
from eval_core.cli.entry import CommandGroup, as_json, print_json
from eval_core.cli.options import config_option, model_options, run_options
from eval_core.cli.run import (
    end_incomplete,
    execute,
    make_options,
    print_estimate,
    resume_command,
)


@click.group(cls=CommandGroup)
def baseline() -> None:
    """Update, show or check stored baselines.

    \b
    Examples:
      compression-eval baseline update
      compression-eval baseline show baselines/offline.json
      compression-eval baseline check
    """


def _noise_lines(noise: Mapping[str, float]) -> list[str]:
    """Say how much runs differ from each other; rows that never differ are not listed."""
    from eval_core.comparing.noise import NO_NOISE, noise_rows

    lines = [f"  {name}: {sd:.3f}" for name, sd in noise_rows(noise)]
    return ["Run-to-run noise (standard deviation of a run's mean):", *lines] if lines else [NO_NOISE]


@baseline.command()
@click.argument("name", required=False)
@click.option("--from", "source", type=click.Path(path_type=Path), help="Store this results folder instead of running.")
@click.option("--runs", type=click.IntRange(1, 50), help="Graded runs of each fixture.  [default: 10]")
@click.option("--dry-run", is_flag=True, help="Print calls, tokens and cost; send nothing.")
@click.option("--force", is_flag=True, help="Write even where nothing but the date would change.")
@click.option("--accept-failing", is_flag=True, help="Store even a compressor that passes no probe.")
@click.option("--release", help="Release name, for the trend.  [default: the tag of the commit]")
@run_options
@model_options
def update(
    name: str | None,
    source: Path | None,
    runs: int | None,
    dry_run: bool,
    force: bool,
    accept_failing: bool,
    release: str | None,
    label: str | None,
    results: Path | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Measure the compressor and store it as the baseline NAME (default: offline, or models).

    \b
    Examples:
      compression-eval baseline update
      compression-eval baseline update --model anthropic/claude-sonnet-4-5 --budget-usd 10
      compression-eval baseline update --model anthropic/claude-sonnet-4-5 --dry-run
      compression-eval baseline update offline --from results/latest
    """
    from eval_core.comparing.compare import compare_measurements
    from eval_core.comparing.noise import noise_of
    from eval_core.comparing.trend import cumulative_changes
    from eval_core.measuring.plan import make_plan
    from eval_core.reporting.losses import outage
    from eval_core.storage.baselines import current_baseline, load_side, store_baseline, weaknesses
    from eval_core.storage.history import read_history, source_release

    asked = make_options({**options, "compare_to": "none"})
    wanted = runs or asked.settings.baseline_runs
    if source is None:
        plan = make_plan(replace(asked, runs=wanted, every_private_probe=True), results)
        if dry_run:
            print_estimate(plan, label)
            return
        measurement = execute(plan, label, quiet=quiet).candidate
        if reason := measurement.stopped or outage(measurement):
            remedy = f"`{resume_command(measurement.label)}` completes it and stores the baseline"
            end_incomplete(reason, plan.results / measurement.label, remedy)
    else:
        measurement = load_side(source)
    noise = noise_of(measurement)
    folder = asked.baselines
    before = current_baseline(folder / f"{name or measurement.usual_name}.json")
    verdict = compare_measurements(before, measurement)[0] if before else None
    path = store_baseline(
        measurement,
        folder,
        name,
        noise=noise,
        force=force,
        accept_failing=accept_failing,
        verdict=verdict.kind.value if verdict else None,
        release=release or source_release(asked.root, measurement.provenance.source_sha),
    )
    if path is None:
        click.echo("The stored baseline has the same content; nothing written (--force renews its date).")
        return
    runs_of = f"{counted(measurement.planned_runs, 'graded run')} of {counted(len(measurement.fixtures), 'fixture')}"
    click.echo(f"{path}: {runs_of} stored.")
    if verdict is not None:
        click.echo(f"  Against the one it replaces: {verdict.headline}")
    for line in _noise_lines(noise):
        click.echo(f"  {line}")
    for weakness in weaknesses(measurement):
        click.echo(f"  Note: {weakness}.")
    for change in cumulative_changes(read_history(path.parent, path.stem)):
        click.echo(f"  {change.sentence}")
    if measurement.planned_runs < wanted:
        click.echo(f"  Note: {wanted} graded runs are recommended; with fewer, only larger changes can be detected.")


@baseline.command()
@click.argument("path", type=click.Path(path_type=Path))
def show(path: Path) -> None:
    """Print a stored baseline.

    \b
    Example:
      compression-eval baseline show baselines/offline.json
    """
    from rich.text import Text

    from eval_core.base.config import load_config
    from eval_core.comparing.compare import ReportData
    from eval_core.comparing.trend import cumulative_changes
    from eval_core.reporting.terminal import console, print_report
    from eval_core.reporting.view import make_view
    from eval_core.storage.baselines import load_baseline
    from eval_core.storage.history import read_history

    measurement, noise = load_baseline(path)
    out = console()
    data = ReportData(measurement, note="this is a single baseline", task=load_config(None).task)
    print_report(make_view(data), out, details=True)
    out.print(Text("\nNoise", style="bold"))
    for text in _noise_lines(noise):
        out.print(Text(f"  {text}"))
    out.print(Text("\nHistory", style="bold"))
    lines = read_history(path.parent, path.stem)
    for line in lines:
        overall, kept, asked = (line.values.get(name, "?") for name in ("overall", "facts_kept", "expected_kept"))
        facts = f"facts kept {kept}" if asked == "?" else f"facts that probes ask for {asked}"
        sha = (line.source_sha or "unknown")[:12]
        out.print(Text(f"  {line.date[:40]}  overall {overall}  {facts}  {sha}"))
    for change in cumulative_changes(lines):
        out.print(Text(f"  {change.sentence}"))


@baseline.command()
@config_option
@as_json
def check(config: Path | None, as_json: bool) -> None:
    """Check that every stored baseline matches the fixtures, probes and watched files of this tree. Exit 2 if not.

    \b
    Example:
      compression-eval baseline check
    """
    from eval_core.base.config import config_folder, load_config
    from eval_core.base.errors import UserError
    from eval_core.measuring.options import RunOptions
    from eval_core.storage.baselines import list_baselines, stale_fields

    options = RunOptions(settings=load_config(config), root=config_folder(config))
    cases, watched = options.load_cases(), options.digest_of(options.root)
    paths = list_baselines(options.baselines)
    if not paths:
        raise UserError(f"{options.baselines}: no baseline; `compression-eval baseline update` creates one")
    changed = {path: list(stale_fields(path, cases, watched)) for path in paths}
    if as_json:
        print_json([{"path": str(path), "changed": fields} for path, fields in changed.items()])
    for path, fields in changed.items() if not as_json else ():
        update = f"out of date: {', '.join(fields)} changed; `compression-eval baseline update {path.stem}`"
        click.echo(f"{path}: {update if fields else 'matches'}")
    sys.exit(2 if any(changed.values()) else 0)
