"""`compression-eval merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from eval_core.cli.options import config_option, fail_on_option, format_option, stored_option


@click.command()
@click.argument("label")
@config_option
@click.option("--results", type=click.Path(path_type=Path), help="Folder that holds the shards.  [default: results]")
@stored_option
@fail_on_option
@format_option("text", "md", "json")
def merge(label: str, config: Path | None, results: Path | None, compare_to: str, fail_on: Any, form: str) -> None:
    """Join the shards of LABEL into one result, compare it with the baseline and write its reports.

    Nothing is sent and no key is needed. A shard that is missing or did not finish makes the result incomplete; run it
    again with the same options and --resume, then merge again.

    \b
    Examples:
      compression-eval run --label nightly --shard 1/2
      compression-eval run --label nightly --shard 2/2
      compression-eval merge nightly
    """
    from eval_core.base.config import config_folder, load_config
    from eval_core.cli.report import print_data
    from eval_core.cli.run import end_run, with_a_suite
    from eval_core.measuring.compare_with_base import compare, find_base
    from eval_core.measuring.merge import find_shards, merge_shards
    from eval_core.reporting.write import write_reports
    from eval_core.storage.results import open_results

    home = config_folder(config)
    settings = with_a_suite(load_config(config), home)
    root = results or home / settings.results
    shards = find_shards(root, label)
    with open_results(root, label, resume=True) as folder:
        merged = merge_shards(settings, home, shards, folder)
        base = find_base(merged.measurement, settings, home, compare_to=compare_to, folder=folder.path)
        data = compare(base, merged.measurement, merged.cases)
        write_reports(data, folder)
    print_data(data, form, where=root / label / "report.html", details=None)
    again = ", ".join(f"--shard {shard}" for shard in merged.missing)
    end_run(data, fail_on, root, f"run {again} again with --resume, then merge again")
