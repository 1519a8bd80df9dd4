"""`compression-eval init`: adopt the bot in a repository."""

from __future__ import annotations

import difflib
import re
import subprocess
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import click

from eval_core.errors import UserError

__all__ = ["Plan", "adoption", "init", "own_source"]

WORKFLOW = Path(".github/workflows/compression-eval.yml")
_INSTALL = "- run: scripts/install-action"
_ACTION = re.compile(r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+@[A-Za-z0-9._/-]+$")
# A server's address; a path on this machine says nothing that a workflow could install from.
_REMOTE = re.compile(r"^(?:(?:https?|ssh)://[^/]+/|[^/@]+@[^/:]+:)([A-Za-z0-9-]+/[A-Za-z0-9._-]+?)(?:\.git)?/?$")
_RESULTS = "results/"


def own_source() -> str | None:
    """Return OWNER/REPO@SHA of the checkout that this program runs from, so that it can be pinned exactly."""
    here = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    try:
        if git("rev-parse", "--show-toplevel") != str(here):
            return None
        remote = _REMOTE.match(git("remote", "get-url", "origin"))
        return f"{remote[1]}@{git('rev-parse', 'HEAD')}" if remote else None
    except FileNotFoundError:
        return None


@dataclass(frozen=True)
class Plan:
    """Files to be written, by path below the repository."""

    files: dict[str, str]
    compressor: str


def adoption(root: Path, action: str, compressor: str | None) -> Plan:
    """Work out everything that adopting the bot writes."""
    from bot.detect import find_compressor, named_compressor

    found = named_compressor(root, compressor) if compressor else find_compressor(root)
    if found is None and compressor:
        raise UserError(f"--compressor {compressor}: no such class in {root}; give package.module:Class")
    if found is None:
        raise UserError(
            f"{root}: no context_compressor.py with a class that has a compress method; "
            "name yours with --compressor package.module:Class"
        )
    target = found.target
    workflow = files("bot").joinpath("templates/compression-eval.yml").read_text(encoding="utf-8")
    return Plan(
        {
            str(WORKFLOW): workflow.replace(_INSTALL, f"- uses: {action}"),
            ".compression-eval.yml": _config(target, _watched(found.path)),
            ".gitignore": _ignoring(root / ".gitignore"),
            # git keeps no empty folder
            **{f"{name}/.gitkeep": "" for name in ("fixtures", "probes", "baselines") if not _filled(root / name)},
        },
        str(target["compressor"]),
    )


def _watched(path: str) -> str:
    """Watch the compressor with the modules around it, which it may well be made of."""
    folder = PurePosixPath(path).parent
    return path if folder == PurePosixPath() else f"{folder}/**"


def _ignoring(path: Path) -> str:
    """Return the ignore file with the results folder in it."""
    standing = path.read_text(encoding="utf-8") if path.exists() else ""
    if _RESULTS in standing.splitlines():
        return standing
    return standing + ("" if not standing or standing.endswith("\n") else "\n") + _RESULTS + "\n"


def _filled(folder: Path) -> bool:
    return folder.is_dir() and any(path.name != ".gitkeep" for path in folder.iterdir())


def _config(target: dict[str, Any], watch: str) -> str:
    import yaml

    head = (
        "# What compression-eval measures. Every field: docs/configuration.md of compression-eval.\n"
        "# No models here means offline runs: free, deterministic, good for content loss.\n"
        "# models: {compressor: anthropic/claude-sonnet-4-5, judge: openai/gpt-5}\n"
        "# budget_usd: 5\n"
    )
    return head + str(yaml.safe_dump({"target": target, "watch": [watch]}, sort_keys=False))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path())
@click.option("--action", help="OWNER/REPO@SHA of compression-eval; default: the checkout this program runs from.")
@click.option("--compressor", help="package.module:Class; default: found by looking for context_compressor.py.")
@click.option("--yes", is_flag=True, help="Replace files that differ without asking.")
def init(folder: Path, action: str | None, compressor: str | None, yes: bool) -> None:
    """Write the workflow and .compression-eval.yml into a repository; running it again changes nothing.

    \b
    Examples:
      compression-eval init
      compression-eval init ../my-agent --action my-org/compression-eval@0123456789abcdef0123456789abcdef01234567
    """
    from eval_core.files import write_atomic

    source = action or own_source()
    if source is None or not _ACTION.match(source):
        raise UserError(
            f"--action {source or ''}: give OWNER/REPO@SHA, the repository of compression-eval that the workflow "
            "installs from; pin it by the full SHA of a commit that you have looked at"
        )
    plan = adoption(folder, source, compressor)
    for name, text in plan.files.items():
        path = folder / name
        standing = path.read_text(encoding="utf-8") if path.exists() else None
        if standing == text:
            click.echo(f"  same     {name}")
            continue
        if standing is not None:
            diff = difflib.unified_diff(
                standing.splitlines(), text.splitlines(), f"{name} (yours)", f"{name} (new)", lineterm=""
            )
            click.echo("\n".join(diff))
            if not yes and not click.confirm(f"Replace {name}?", default=False):
                click.echo(f"  kept     {name}")
                continue
        write_atomic(path, text)
        click.echo(f"  {'written ' if standing is None else 'replaced'} {name}")
    click.echo(
        f"\nThe compressor under test is {plan.compressor}. Three things are left to do:\n"
        "  1. Secret: on GitHub, make the environment `compression-eval` and put the model key there as\n"
        "     COMPRESSION_EVAL_API_KEY (a key of its own, with a spending limit). Offline runs need none.\n"
        "  2. Label: make the label `eval-compression`.\n"
        "  3. Fixtures and a first baseline: `compression-eval fixture import SESSION.jsonl`, "
        "`compression-eval probe propose NAME`,\n"
        "     then `compression-eval baseline update`, and commit fixtures/, probes/ and baselines/."
    )
