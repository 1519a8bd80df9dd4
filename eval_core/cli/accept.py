"""`compression-eval accept`: write into the configuration what was removed on purpose."""

from __future__ import annotations

import difflib
from pathlib import Path

import click

from eval_core.cli.completion import complete_results
from eval_core.cli.options import config_option


@click.command()
@click.argument("result", required=False, type=click.Path(path_type=Path), shell_complete=complete_results)
@click.option("--compare-to", default="auto", show_default=True, help="auto, a baseline file or a results folder.")
@click.option("--yes", is_flag=True, help="Write without asking.")
@config_option
def accept(result: Path | None, compare_to: str, yes: bool, config: Path | None) -> None:
    """Accept an intended removal: what RESULT has lost is written into the configuration and no longer counts.

    Sections, facts and facts that no longer reach the compressor's model are accepted one by one, so any further loss
    still counts. Without RESULT, the newest result is taken. Nothing is measured and no model is called.

    \b
    Examples:
      compression-eval accept
      compression-eval accept results/shorter --yes
    """
    from eval_core.base.config import CONFIG_FILE, config_folder
    from eval_core.base.errors import UserError
    from eval_core.base.files import read_text, write_atomic
    from eval_core.base.yaml_edit import add_to_yaml
    from eval_core.cli.report import compare_stored

    folder, data = compare_stored(result, config, compare_to)
    if data.verdict is None:
        raise UserError(f"{folder}: nothing to accept, because it was compared with nothing: {data.note}")
    if data.offer is None:
        raise UserError(f"{folder}: no removal to accept. {data.verdict.headline}")
    path = config or config_folder(None) / CONFIG_FILE
    before = read_text(path) if path.exists() else ""
    after = add_to_yaml(before, {"accept": data.offer.added.model_dump(exclude_defaults=True)}, str(path))
    click.echo(f"Now:  {data.verdict.headline}")
    click.echo(f"Then: {data.offer.verdict.headline}")
    if not data.offer.suffices:
        click.echo("What is left is not a removal, so it cannot be accepted.")
    names = (str(path), f"{path}, with the removal accepted")
    click.echo("".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), *names)), nl=False)
    if not yes:
        click.confirm(f"Write this to {path}?", abort=True)
    undo = f"rm {path}"
    if before:
        saved = folder / f"before-accept{CONFIG_FILE}"
        write_atomic(saved, before)
        undo = f"cp {saved} {path}"
    write_atomic(path, after)
    click.echo(f"Written. To undo it: {undo}")
