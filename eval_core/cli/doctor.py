"""`compression-eval doctor`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from eval_core.measuring.options import Job

__all__ = ["doctor", "print_diagnoses"]


def print_diagnoses(job: Job, config: Path | None = None) -> bool:
    """Print what is found, line by line as it is found; return whether something is broken."""
    from eval_core.measuring.diagnose import diagnose

    broken = False
    for item in diagnose(job, config):
        broken = broken or item.state == "broken"
        click.echo(f"  {item.state:8} {item.what}")
        if item.advice:
            click.echo(f"           {item.advice}")
    return broken


@click.command()
@click.option("--target", help="builtin:NAME or a target file.  [default: the configured one]")
@click.option(
    "--tree", type=click.Path(path_type=Path), help="The code under test.  [default: the configuration's folder]"
)
@click.option("--config", type=click.Path(path_type=Path), help="Default: .compression-eval.yml")
@click.option(
    "--sandbox", type=click.Choice(["auto", "bwrap", "docker", "none"]), default="auto", show_default=True,
    help="Sandbox for your own target; none runs it with your permissions.",
)  # fmt: skip
def doctor(target: str | None, tree: Path | None, config: Path | None, sandbox: Any) -> None:
    """Try what a run needs: load the suite, compress one short session in the sandbox, check keys and budget.

    It costs nothing: the compressor gets the offline model. Exit 2 if something does not work.

    \b
    Examples:
      compression-eval doctor
      compression-eval doctor --target target.yml
    """
    from eval_core.base.config import config_folder, load_config
    from eval_core.measuring.options import Job

    click.echo(f"  ok       Python {'.'.join(map(str, sys.version_info[:3]))}")
    job = Job(load_config(config), config_folder(config), tree=tree, target=target, sandbox=sandbox)
    sys.exit(2 if print_diagnoses(job, config) else 0)
