"""`compression-eval run` with several targets: one plan, one results folder for each, verdicts against the first."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eval_core.base.errors import UserError
from eval_core.cli.run import execute

if TYPE_CHECKING:
    from eval_core.comparing.compare import ReportData
    from eval_core.measuring.options import RunOptions


def target_labels(label: str, targets: Sequence[str]) -> list[str]:
    """Return the folder of each target below the results: the label and the target's own name."""
    stems = [
        target.removeprefix("builtin:") if target.startswith("builtin:") else Path(target).stem for target in targets
    ]
    names = [re.sub(r"[^\w.-]+", "-", stem).strip("-.") or "target" for stem in stems]
    twice = {name for name in names if names.count(name) > 1}
    return [
        f"{label}-{name}-{number}" if name in twice else f"{label}-{name}" for number, name in enumerate(names, start=1)
    ]


def _left(options: RunOptions, done: Sequence[ReportData], began: float) -> RunOptions:
    """Return the options with what the targets before have left of the money and the time."""
    costs = [use.cost_usd or 0.0 for data in done for use in data.candidate.use.values()]
    budget = options.budget - sum(costs)
    if budget <= 0:
        raise UserError(
            f"the budget of ${options.budget:g} was used up by {len(done)} of the targets; "
            "their results are kept, and --resume with the same label and a larger --budget-usd continues the run"
        )
    minutes = options.deadline_minutes or options.settings.deadline_minutes
    passed = (time.monotonic() - began) / 60
    left = None if minutes is None else max(minutes - passed, 1 / 600)
    return replace(options, budget_usd=budget, deadline_minutes=left)


def run_several(
    options: RunOptions, targets: Sequence[str], label: str | None, results: Path | None, *, quiet: bool, fail_on: Any
) -> None:
    """Measure every target on the same suite and compare each with the first; controls are measured once."""
    from eval_core.comparing.verdict import exit_code
    from eval_core.measuring.plan import make_plan
    from eval_core.measuring.provenance import now
    from eval_core.sandbox.isolation import detect
    from eval_core.storage.results import free_label

    if options.compare_to != "auto":
        raise UserError("--compare-to: with several targets each is compared with the first one named")
    if options.baseline == "rerun" or options.shard is not None:
        raise UserError("--compare-to rerun and --shard take one target; run several targets without them")
    several = [replace(options, target=target) for target in targets]
    for one in several:  # a mistake in the last must not come out after the first is paid for
        one.load_target()
    detect(options.sandbox)
    root = results or options.results
    names = target_labels(label or free_label(root, now().strftime("%Y-%m-%d_%H-%M-%S")), targets)
    began = time.monotonic()
    done: list[ReportData] = []
    for one, name in zip(several, names, strict=True):
        # A label that was not begun yet has nothing to resume.
        begun = one.resume and (root / name).is_dir()
        against = str(root / names[0]) if done else "none"
        if not quiet:
            click.echo(f"{name}: {one.target}", err=True)
        one = replace(_left(one, done, began), resume=begun, compare_to=against)
        done.append(execute(make_plan(one, root), name, quiet=quiet))
        if done[-1].candidate.stopped:
            break
    _print(done, [root / name for name in names])
    stopped = next((data.candidate.stopped for data in done if data.candidate.stopped), None)
    if stopped:
        click.echo(
            f"Incomplete: {stopped}. Everything paid for is kept; run the same command with --resume to continue.",
            err=True,
        )
        sys.exit(3)
    codes = [exit_code(data.verdict, fail_on) for data in done[1:] if data.verdict]
    sys.exit(1 if 1 in codes else max(codes, default=0))


def _print(done: Sequence[ReportData], folders: Sequence[Path]) -> None:
    """Print what the results have in common, and what each comparison with the first came to."""
    from rich.text import Text

    from eval_core.cli.report import print_side_by_side
    from eval_core.reporting.terminal import console

    first, *others = done
    print_side_by_side(folders[: len(done)], "text")
    out = console()
    for data in others:
        if data.verdict:
            out.print(Text(f"{data.candidate.label} against {first.candidate.label}: {data.verdict.headline}"))
    for folder in folders[1 : len(done)]:
        out.print(Text(f"The whole comparison: compression-eval compare {folders[0]} {folder}"))
    shown = " ".join(str(folder) for folder in folders[: len(done)])
    out.print(Text(f"With the picture of size and facts: compression-eval report {shown} --format html > targets.html"))
