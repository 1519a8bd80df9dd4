"""`compression-eval doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from eval_core.base.errors import UserError

__all__ = ["doctor"]


@dataclass(frozen=True)
class _Finding:
    state: str
    what: str
    advice: str = ""


def _configuration(config: Path | None) -> Iterator[_Finding]:
    from eval_core.base.config import CONFIG_FILE, load_config

    settings = load_config(config)
    where = config or Path(CONFIG_FILE)
    yield _Finding("ok", f"configuration: {where if where.exists() else 'defaults (no .compression-eval.yml here)'}")
    for name in ("fixtures", "probes", "baselines"):
        folder = Path(getattr(settings, name))
        count = len(list(folder.glob("*.json"))) if folder.is_dir() else 0
        advice = {
            "fixtures": "`compression-eval fixture import SESSION` makes one",
            "probes": "`compression-eval probe propose FIXTURE` drafts one",
            "baselines": "`compression-eval baseline update` makes one",
        }[name]
        yield _Finding("ok", f"{folder}: {count} files") if count else _Finding("missing", f"{folder}: empty", advice)
    from eval_core.sandbox.targets import find_target

    target = find_target(None, settings.target, Path(), Path())
    yield _Finding("ok", f"target: {getattr(target.spec, 'compressor', None) or 'builtin:' + target.spec.name}")


def _models(config: Path | None) -> Iterator[_Finding]:
    from eval_core.base.config import load_config
    from eval_core.models.settings import ModelFlags, require_keys, resolve

    models = resolve(ModelFlags(), os.environ, load_config(config).models)
    if models is None:
        advice = "set models in .compression-eval.yml, COMPRESSION_EVAL_MODEL or --model to use some"
        yield _Finding("ok", "models: none, everything runs offline", advice)
        return
    yield _Finding("ok", f"models: compressor {models.compressor}, answer {models.answer}, judge {models.judge}")
    require_keys(models)
    yield _Finding("ok", "model keys: there")


def _sandbox() -> Iterator[_Finding]:
    from eval_core.sandbox.isolation import detect

    choice = detect("auto")
    advice = "" if choice.level.startswith("bwrap") else "bubblewrap starts faster: apt-get install bubblewrap"
    yield _Finding("ok", f"sandbox: {choice.in_words}", advice)


@click.command()
@click.option("--config", type=click.Path(path_type=Path), help="Default: .compression-eval.yml")
def doctor(config: Path | None) -> None:
    """Say what is configured, what is missing and how to get it. Exit 2 when something does not work.

    \b
    Example:
      compression-eval doctor
    """
    broken = False
    version = ".".join(map(str, sys.version_info[:3]))
    click.echo(f"  ok       Python {version}")
    for findings in (_configuration(config), _models(config), _sandbox()):
        try:
            for finding in findings:
                click.echo(f"  {finding.state:8} {finding.what}")
                if finding.advice:
                    click.echo(f"           {finding.advice}")
        except UserError as exc:
            broken = True
            click.echo(f"  broken   {exc}")
    sys.exit(2 if broken else 0)
