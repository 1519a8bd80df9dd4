"""Options that several commands have, each with one spelling and one help text."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from eval_core.cli.completion import complete_fixtures, complete_labels, complete_targets


def together(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add options to a command, in this order."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def format_option(*forms: str) -> Callable[[Any], Any]:
    """Choose how a result is printed; the first form is the default."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], show_default=True)


config_option = click.option("--config", type=click.Path(path_type=Path), help="Default: .compression-eval.yml")
results_option = click.option("--results", type=click.Path(path_type=Path), help="Default: results")
quiet_option = click.option("--quiet", is_flag=True, help="No progress and no notices on stderr.")
details_option = click.option("--details", is_flag=True, help="Print the tables as well.")
stored_option = click.option(
    "--compare-to", default="auto", show_default=True, help="auto, none, a baseline file or a results folder."
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["never", "regressed", "inconclusive"]),
    default="never",
    show_default=True,
    help="Exit with 1 on this verdict or a worse one, and with 3 if there is no verdict.",
)
run_options = together(
    click.option(
        "--fixtures",
        "names",
        help="Comma-separated fixture names; default: all.",
        shell_complete=complete_fixtures,
    ),
    click.option(
        "--target",
        "targets",
        multiple=True,
        help="builtin:NAME or a target file; `run` compares several with the first.  [default: the configured one]",
        shell_complete=complete_targets,
    ),
    click.option(
        "--tree",
        type=click.Path(path_type=Path),
        help="The code under test.  [default: the configuration's folder]",
    ),
    config_option,
    results_option,
    click.option(
        "--label",
        help="Folder under the results folder; default: the current time.",
        shell_complete=complete_labels,
    ),
    click.option("--resume", is_flag=True, help="Complete an interrupted run of the same label."),
    click.option("--focus-topic", help="Passed on to the compressor."),
    click.option(
        "--suite",
        type=click.Choice(["quick", "rounds", "long", "full", "adversarial"]),
        help="Beside the fixtures, play generated sessions of this size in rounds; adversarial: two sessions "
        "with an injection instead.  [default: as configured]",
    ),
    click.option(
        "--sandbox",
        type=click.Choice(["auto", "bwrap", "docker", "none"]),
        default="auto",
        show_default=True,
        help="Sandbox for your own target; none runs it with your permissions.",
    ),
    click.option("--tasks", is_flag=True, help="Let an agent finish the tasks, from the states of both sides."),
    quiet_option,
)
"""What every command has that measures."""


class _FiniteRange(click.FloatRange):
    """A range that infinity and NaN, which compare as if they were in it, are not in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


_MORE_THAN_NOTHING = _FiniteRange(min=0, min_open=True)


model_options = together(
    click.option("--model", help="Model for all three roles (litellm name); none: offline."),
    click.option("--compressor-model", help="Model that the compressor calls."),
    click.option(
        "--judge-model",
        "--judge",
        help="Model that grades, or offline: only compressions cost money; the rest is rule-based.",
    ),
    click.option("--budget-usd", type=_MORE_THAN_NOTHING, help="Spend no more than this."),
    click.option(
        "--set",
        "changes",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a key of the configuration for this run, e.g. --set compress_runs=5.",
    ),
)
"""What chooses and bounds models."""
