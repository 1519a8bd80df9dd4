"""`compression-eval doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eval_core.cli.entry import as_json, print_json
from eval_core.cli.options import config_option

if TYPE_CHECKING:
    from eval_core.measuring.diagnose import Diagnosis


def print_diagnoses(found: Iterable[Diagnosis], *, as_json: bool = False) -> bool:
    """Print what is found, line by line as it is found; return whether something is broken."""
    broken = False
    if as_json:
        listed = [asdict(item) for item in found]
        print_json(listed)
        return any(item["state"] == "broken" for item in listed)
    for item in found:
        broken = broken or item.state == "broken"
        click.echo(f"  {item.state:8} {item.what}")
        if item.advice:
            click.echo(f"           {item.advice}")
    return broken


def check_github() -> Iterator[Diagnosis]:
    """Look at the repository's settings on GitHub that decide who can read the model key; nothing is changed there."""
    from bot.github.checkout import own_repository
    from bot.github.repository import GitHub
    from bot.steps.gate import ENVIRONMENT
    from eval_core.base.errors import IncompleteError, UserError
    from eval_core.measuring.diagnose import Diagnosis

    token = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN")
    repo = os.environ.get("GITHUB_REPOSITORY") or own_repository(Path())
    if not token or repo is None:
        what = "GITHUB_TOKEN: not set" if not token else "GITHUB_REPOSITORY: not set, and origin is not on GitHub"
        advice = "give a token that may read the repository (`gh auth token` prints one)" if not token else "OWNER/NAME"
        yield Diagnosis("broken", what, advice)
        return
    try:
        github = GitHub.from_environment({**os.environ, "GITHUB_TOKEN": token}, repo=repo)
        default, allowed = github.default_branch(), github.branches_of(ENVIRONMENT)
    except (UserError, IncompleteError) as exc:
        yield Diagnosis("broken", str(exc))
        return
    where = f"environment {ENVIRONMENT} of {repo}"
    bind = f'choose "Selected branches and tags" in its settings and add {default} only'
    if allowed is None:
        yield Diagnosis("missing", f"{where}: not there", f"create it; {bind}, then add the model key as its secret")
    elif allowed == (default,):
        yield Diagnosis("ok", f"{where}: only workflows on {default} can use it")
    else:
        who = f"workflows on {', '.join(allowed)}" if allowed else "workflows on any branch"
        advice = f"{bind}: whoever can push to such a branch can read the model key with a workflow there"
        yield Diagnosis("broken", f"{where}: {who} can use it", advice)


@click.command()
@click.option("--target", help="builtin:NAME or a target file.  [default: the configured one]")
@click.option(
    "--tree", type=click.Path(path_type=Path), help="The code under test.  [default: the configuration's folder]"
)
@config_option
@click.option(
    "--sandbox", type=click.Choice(["auto", "bwrap", "docker", "none"]), default="auto", show_default=True,
    help="Sandbox for your own target; none runs it with your permissions.",
)  # fmt: skip
@click.option(
    "--github", is_flag=True, help="Also check the environment on GitHub. Needs GITHUB_TOKEN, which only has to read."
)
@as_json
def doctor(
    target: str | None, tree: Path | None, config: Path | None, sandbox: Any, *, github: bool, as_json: bool
) -> None:
    """Try what a run needs: load the suite, compress one short session in the sandbox, check keys and budget.

    It costs nothing: the compressor gets the offline model. Exit 2 if something does not work.

    \b
    Examples:
      compression-eval doctor
      compression-eval doctor --target target.yml
      compression-eval doctor --github
    """
    from eval_core.base.config import config_folder, load_config
    from eval_core.measuring.diagnose import Diagnosis, diagnose
    from eval_core.measuring.options import RunOptions

    options = RunOptions(load_config(config), config_folder(config), tree=tree, target=target, sandbox=sandbox)
    python = Diagnosis("ok", f"Python {'.'.join(map(str, sys.version_info[:3]))}")
    found = chain([python], diagnose(options, config), check_github() if github else ())
    broken = print_diagnoses(found, as_json=as_json)
    sys.exit(2 if broken else 0)
