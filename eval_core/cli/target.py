"""`compression-eval target`: check."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from eval_core.cli.entry import as_json
from eval_core.cli.options import config_option


@click.group()
def target() -> None:
    """Work with the description of a compressor.

    \b
    Example:
      compression-eval target check
    """


@target.command()
@click.argument("target_file", metavar="[TARGET]", required=False)
@click.option("--target", "named", help="Same as TARGET_FILE.")
@config_option
@click.option(
    "--tree",
    type=click.Path(path_type=Path, file_okay=False),
    help="The code under test.  [default: the configuration's folder]",
)
@click.option(
    "--sandbox",
    type=click.Choice(["auto", "bwrap", "docker", "none"]),
    default="auto",
    help="none runs it with your permissions.",
)
@as_json
def check(
    target_file: str | None, named: str | None, config: Path | None, tree: Path | None, sandbox: str, as_json: bool
) -> None:
    """Check a target, point by point: does it start, compress, and leave the session whole when its model fails?

    It runs in the sandbox, with a model on loopback that answers, then with models that are down, busy, empty, cut off,
    call a tool or refuse. A `command:` also gets good and bad lines of the protocol. Exit 1 if a check fails; warnings
    are advice.

    \b
    Examples:
      compression-eval target check
      compression-eval target check my-target.yml --tree ../agent
    """
    from eval_core.base.config import config_folder, load_config
    from eval_core.base.errors import UserError
    from eval_core.domain.target import TargetSpec
    from eval_core.sandbox.conformance import ContractCheck, check_contract
    from eval_core.sandbox.subject import ProcessSubject
    from eval_core.sandbox.targets import find_target

    settings = load_config(config)
    found = find_target(target_file or named, settings.target, config_folder(config), tree, environ={})
    if not isinstance(found.spec, TargetSpec):
        raise UserError(f"target check is for compressors of your own; builtin:{found.spec.name} is shipped and tested")
    hidden = (settings.fixtures, settings.probes, settings.baselines, settings.results)
    subject, level = found.subject(complete=None, model=None, max_tokens=8_000, sandbox=sandbox, hidden=hidden)  # type: ignore[arg-type]
    assert isinstance(subject, ProcessSubject)
    if not as_json:
        click.echo(f"{found.spec.name} (sandbox: {level})")
    checks: list[ContractCheck] = []

    def tell(item: ContractCheck) -> None:
        checks.append(item)
        click.echo(f"  {item.state:<8} {item.name}" + (f"\n           {item.detail}" if item.detail else ""))

    asyncio.run(check_contract(subject, tell))
    failed = sum(item.state == "failed" for item in checks)
    click.echo(f"{len(checks) - failed} of {len(checks)} checks passed")
    sys.exit(1 if failed else 0)
