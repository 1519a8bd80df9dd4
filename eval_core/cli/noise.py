"""`compression-eval noise`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("baseline", type=click.Path(path_type=Path))
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the splits.")
def noise(baseline: Path, seed: int) -> None:
    """Compare random parts of a baseline: how large is the noise, and how often does it look like a change?

    \b
    Examples:
      compression-eval noise baselines/offline.json
      compression-eval noise baselines/models.json
    """
    from rich.text import Text

    from eval_core.base.numbers import percent
    from eval_core.comparing.noise import false_alarms, noise_floor, runs_needed
    from eval_core.reporting.terminal import console, print_table
    from eval_core.statistics.arms import make_arm, quarantined
    from eval_core.statistics.hypotheses import row_name
    from eval_core.storage.baselines import load_side

    measurement = load_side(baseline)
    arm = make_arm(measurement, quarantined(measurement))
    alarms = false_alarms(arm, seed=seed)
    low, high = alarms.interval
    out = console()
    out.print(
        Text(
            f"False alarms: {alarms.alarms} of {alarms.splits} random splits ({percent(alarms.rate, 1)}, "
            f"95 % interval {percent(low, 1)} to {percent(high, 1)}); the rule promises 5 %.",
            style="bold",
        )
    )
    floors = noise_floor(arm)
    print_table(
        out,
        "\nRun-to-run noise",
        ("", "standard deviation", "fixtures"),
        [(row_name(floor.name), f"{floor.sd:.3f}", str(floor.fixtures)) for floor in floors],
    )
    overall = next((floor for floor in floors if floor.name == "overall"), None)
    if overall is None or overall.sd < 1e-9:
        out.print(Text("\nAll runs are identical: any change of the scores is real."))
        return
    rows = runs_needed(overall.sd, fixtures=overall.fixtures, baseline_runs=measurement.planned_runs, crit=alarms.crit)
    print_table(
        out,
        "\nRuns needed to detect a change of the overall score",
        ("change", "candidate runs of each fixture"),
        [(f"{row.change:g}", "more than 50" if row.runs is None else str(row.runs)) for row in rows],
    )
