"""Shell completion of what the shell cannot know: fixtures, targets, labels and results.

The shell asks at every Tab, so nothing here imports more than it needs, and a mistake in a configuration file is no
reason to complain while somebody types.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem


def _folder(ctx: click.Context, field: str) -> Path | None:
    from eval_core.base.config import config_folder, load_config
    from eval_core.base.errors import UserError

    config = ctx.params.get("config")
    try:
        return config_folder(config) / str(getattr(load_config(config), field))
    except UserError:
        return None


def _labels(ctx: click.Context) -> Sequence[str]:
    root = ctx.params.get("results")
    folder = root if isinstance(root, Path) else _folder(ctx, "results")
    return sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder and folder.is_dir() else ()


def complete_fixtures(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the last of several names with commas between."""
    folder = _folder(ctx, "fixtures")
    if folder is None or not folder.is_dir():
        from eval_core.base.shipped import shipped

        folder = shipped("fixtures")
    names = sorted({path.name.partition(".")[0] for path in folder.glob("*.json*")})
    before, comma, last = incomplete.rpartition(",")
    taken = set(before.split(","))
    return [CompletionItem(f"{before}{comma}{name}") for name in names if name.startswith(last) and name not in taken]


def complete_targets(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the built-in compressors; anything else is a file."""
    from eval_core.compressors.strategies import STRATEGIES

    found = [CompletionItem(f"builtin:{name}") for name in STRATEGIES if f"builtin:{name}".startswith(incomplete)]
    return found if incomplete.startswith("b") and found else [*found, CompletionItem(incomplete, type="file")]


def complete_labels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the labels of results that are there, for `--resume`."""
    return [CompletionItem(name) for name in _labels(ctx) if name.startswith(incomplete)]


def complete_results(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete results folders; anything else is a file."""
    folder = _folder(ctx, "results")
    names = [f"{folder.name}/{name}" for name in _labels(ctx)] if folder else []
    return [
        *(CompletionItem(name) for name in names if name.startswith(incomplete)),
        CompletionItem(incomplete, type="file"),
    ]
