"""`compression-eval init`: adopt the bot in a repository."""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from bot.candidates import (
    CompressorCandidate,
    Found,
    candidates,
    described,
    is_plain,
    known_agent,
    named_command,
    named_compressor,
    with_environment,
)
from bot.github.checkout import git, own_repository
from eval_core.base.errors import UserError

WORKFLOW = Path(".github/workflows/compression-eval.yml")
STATUS = Path(".github/workflows/compression-eval-status.yml")
APPROVAL = Path(".github/workflows/compression-eval-approval.yml")
_INSTALL = re.compile(r"( *)- run: scripts/install-action(?: (bot|gate)\b.*)?\n")
_ACTION = re.compile(r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+@[A-Za-z0-9._/-]+$")
_RESULTS = "results/"
_IGNORED = ".gitignore"


def own_source() -> str | None:
    """Return OWNER/REPO@SHA of the checkout that this program runs from, so that it can be pinned exactly."""
    here = Path(__file__).resolve().parent.parent
    if git(here, "rev-parse", "--show-toplevel") != str(here):
        return None
    repo = own_repository(here)
    return repo and f"{repo}@{git(here, 'rev-parse', 'HEAD')}"


@dataclass(frozen=True)
class AdoptionPlan:
    """Files to be written, by path below the repository."""

    files: dict[str, str]
    setup: tuple[str, ...] = ()
    target: str = ""
    """What is measured, as results call it."""


def _with_action(workflow: str, action: str) -> str:
    """Return the workflow with the published action in place of the script of this repository."""

    def uses(found: re.Match[str]) -> str:
        indent, job = found.groups()
        given = f"{indent}  with:\n{indent}    job: {job}\n" if job else ""
        return f"{indent}- uses: {action}\n{given}"

    return _INSTALL.sub(uses, workflow)


def adoption(
    root: Path,
    action: str | None,
    compressor: str | None,
    method: str = "compress",
    command: Found | None = None,
    choose: Choose | None = None,
    *,
    beside: Sequence[Path] = (),
) -> AdoptionPlan:
    """Work out everything that adopting the bot writes; the workflow only where it is known what it installs."""
    from eval_core.base.config import CONFIG_FILE

    workflows = [WORKFLOW, *beside] if action else []
    texts = {str(path): files("bot").joinpath(f"templates/{path.name}").read_text("utf-8") for path in workflows}
    plan = {
        **{path: _with_action(text, action or "") for path, text in texts.items()},
        # git keeps no empty folder
        **{f"{name}/.gitkeep": "" for name in ("fixtures", "probes", "baselines") if not _filled(root / name)},
    }
    found = command or (
        with_environment(root, named_compressor(root, compressor, method))
        if compressor is not None
        else known_agent(root) or with_environment(root, _chosen(root, choose))
    )
    plan[_IGNORED] = _ignoring(root / _IGNORED, found)
    if found is not None:
        name = str(found.target.get("compressor") or " ".join(found.target.get("command", ())))
        return AdoptionPlan({CONFIG_FILE: _config(found, action), **found.files, **plan}, found.setup, name)
    if not (root / CONFIG_FILE).exists():
        raise UserError(
            f"{root.resolve()}: no class or function of Python named for compressing (compress, compact, condense, "
            "summarise); "
            "name yours with --compressor package.module:Class, or, in another language than Python, with "
            '--command "node compress.ts"'
        )
    return AdoptionPlan(plan)


Choose = Callable[[Path, Sequence[CompressorCandidate]], CompressorCandidate]


def _chosen(root: Path, choose: Choose | None) -> Found | None:
    """Return the compressor that is plain or chosen; a configuration that is there already has chosen."""
    from eval_core.base.config import CONFIG_FILE

    found = candidates(root)
    if not found or is_plain(found):
        return described(root, found[0]) if found else None
    if (root / CONFIG_FILE).exists():
        return None
    if choose is None:
        listed = "".join(f"\n  {described(root, item).words}" for item in found[:_SHOWN])
        raise UserError(f"{root.resolve()}: {len(found)} compressors to choose from; name one of them:{listed}")
    return described(root, choose(root, found))


_SHOWN = 9


def _ask(root: Path, found: Sequence[CompressorCandidate]) -> CompressorCandidate:
    """Let the user choose."""
    click.echo("Which of these is your compressor?")
    for number, item in enumerate(found[:_SHOWN], 1):
        model = "calls a model" if described(root, item).target["llm"] == "required" else "calls no model"
        click.echo(f"  {number}. {described(root, item).words}  ({item.path.relative_to(root)}, {model})")
    number = click.prompt("Number", type=click.IntRange(1, min(len(found), _SHOWN)), default=1)
    return found[number - 1]


def _ignoring(path: Path, found: Found | None) -> str:
    """Return the ignore file with the results folder in it, and with what the setup installs."""
    standing = path.read_text(encoding="utf-8") if path.exists() else ""
    wanted = [_RESULTS]
    if found is not None and str(found.target.get("python", "")).startswith(".venv/"):
        wanted.append(".venv/")
    if found is not None and any(words.startswith("npm ") for words in found.setup):
        wanted.append("node_modules/")
    ignored = {line.strip().strip("/") for line in standing.splitlines()}
    missing = [line for line in wanted if line.strip("/") not in ignored]
    if not missing:
        return standing
    return standing + ("" if not standing or standing.endswith("\n") else "\n") + "\n".join(missing) + "\n"


def _filled(folder: Path) -> bool:
    return folder.is_dir() and any(path.name != ".gitkeep" for path in folder.iterdir())


_SCHEMA = (
    "# yaml-language-server: $schema=https://raw.githubusercontent.com/{repo}/{ref}/docs/schema/config.schema.json\n"
)
"""What editors complete and check the configuration by."""


def _config(found: Found, action: str | None) -> str:
    import yaml

    repo, _, ref = (action or "").partition("@")
    head = (_SCHEMA.format(repo=repo, ref=ref) if ref else "") + (
        "# What compression-eval measures. Every field: docs/configuration.md of compression-eval.\n"
        "# No models here means offline runs: free, deterministic, good for content loss.\n"
        "# models: {compressor: anthropic/claude-sonnet-4-5, judge: openai/gpt-5}\n"
        "# budget_usd: 8\n"
    )
    body: dict[str, Any] = {"target": found.target, "watch": list(found.watch)}
    if found.setup:
        body["setup"] = list(found.setup)
    note = f"#\n{found.note}\n" if found.note else ""
    return head + note + str(yaml.safe_dump(body, sort_keys=False))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path())
@click.option("--action", help="OWNER/REPO@SHA of compression-eval; default: the checkout this program runs from.")
@click.option(
    "--compressor", help="package.module:Class; default: found by its methods; asked for if there are several."
)
@click.option("--method", default="compress", show_default=True, help="Method of --compressor that compresses.")
@click.option(
    "--command", help='A compressor that is not Python: the program and its arguments, as in "node compress.ts".'
)
@click.option(
    "--llm",
    type=click.Choice(["required", "none"]),
    default="required",
    show_default=True,
    help="With --command: whether it calls a model.",
)
@click.option("--status", is_flag=True, help="Also write the free workflow that marks outdated results.")
@click.option("--approvals", is_flag=True, help="Also write the workflow that tells of approving reviews.")
@click.option("--yes", is_flag=True, help="Take the likeliest compressor and ask nothing, for scripts.")
@click.option("--force", is_flag=True, help="Replace files that differ; without it yours are kept.")
def init(
    folder: Path,
    action: str | None,
    compressor: str | None,
    method: str,
    command: str | None,
    llm: str,
    status: bool,
    approvals: bool,
    yes: bool,
    force: bool,
) -> None:
    """Write the workflow and .compression-eval.yml into a repository, then try what was written (see doctor).

    Running it again changes nothing that you edited: it shows the difference and keeps your file.

    \b
    Examples:
      compression-eval init
      compression-eval init --yes
      compression-eval init --compressor agent.memory:Memory --method shorten
      compression-eval init --command "node src/compress.ts"
      compression-eval init ../my-agent --action my-org/compression-eval@0123456789abcdef0123456789abcdef01234567
    """
    from bot.doctor import print_diagnoses
    from eval_core.base.config import load_config
    from eval_core.measuring.diagnose import diagnose
    from eval_core.measuring.options import RunOptions

    if command is not None and compressor is not None:
        raise UserError("--command and --compressor: give one of them; a compressor is a Python class or a program")
    program = None if command is None else named_command(folder, _words(command), llm)
    source = _checked_action(action)
    choose = (lambda _, found: found[0]) if yes else _ask if sys.stdin.isatty() else None
    beside = [path for path, wanted in ((STATUS, status), (APPROVAL, approvals)) if wanted]
    plan = adoption(folder, source, compressor, method, program, choose, beside=beside)
    for name, text in plan.files.items():
        _write(folder / name, name, text, force=force)
    if source is None and not (folder / WORKFLOW).exists():
        click.echo(
            f"  left out {WORKFLOW}: this program does not run from a clone of a GitHub repository, so\n"
            "           it cannot tell where the workflow should install it from. Everything on this machine works\n"
            f"           without it; for the bot, run init again with --action {_WANTED_ACTION}"
        )
    click.echo("\n" + _LEFT_TO_DO)
    if plan.setup:
        click.echo("  5. Create the compressor's environment on this machine: " + " && ".join(plan.setup))
    click.echo("\nChecks (`compression-eval doctor` repeats them):")
    if print_diagnoses(diagnose(RunOptions(load_config(None, folder), folder))):
        click.echo("Fix what is broken, then run `compression-eval doctor`.")


_LEFT_TO_DO = """\
Next steps:
  1. Fixtures and a first baseline: `compression-eval fixture import SESSION.jsonl`,
     `compression-eval probe propose NAME`, then `compression-eval baseline update`. Commit
     the new files.
  2. Label: on GitHub, create the label `eval-compression`.
  3. Secret: create the environment `compression-eval`. Under "Deployment branches and tags",
     choose "Selected branches and tags" and add your default branch only: otherwise everyone
     with write access can read the key with a workflow on a branch of theirs. Put the model key
     there as COMPRESSION_EVAL_API_KEY (a dedicated key with a spending limit). With models of two
     providers, put each key there under the provider's name, as in OPENAI_API_KEY. Offline
     runs need none. `compression-eval doctor --github` checks this.
  4. Baseline pull requests: turn on Settings, Actions, General, "Allow GitHub Actions to create
     and approve pull requests" (off by default). To let your own CI start on them, store a token
     as the secret COMPRESSION_EVAL_TOKEN."""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as exc:
        raise UserError(f"--command {command}: {exc}") from None


_WANTED_ACTION = "OWNER/REPO@SHA, the repository of compression-eval that the workflow installs from"


def _checked_action(given: str | None) -> str | None:
    """Return what the workflow installs from; None where this program was installed from a package."""
    source = own_source() if given is None else given
    if source is not None and not _ACTION.match(source):
        raise UserError(
            f"--action {source}: give {_WANTED_ACTION}; pin it by the full SHA of a commit that you have looked at"
        )
    return source


def _write(path: Path, name: str, text: str, *, force: bool) -> None:
    """Write a file that is not there; keep one that differs, unless it is to be replaced."""
    from eval_core.base.files import read_text, write_atomic

    standing = read_text(path) if path.exists() else None
    if standing == text:
        click.echo(f"  same     {name}")
        return
    if standing is not None and name != _IGNORED:  # of that one, nothing is ever taken away
        diff = difflib.unified_diff(
            standing.splitlines(), text.splitlines(), f"{name} (yours)", f"{name} (new)", lineterm=""
        )
        click.echo("\n".join(diff))
        if not force:
            click.echo(f"  kept     {name}: yours differs as shown; --force replaces it")
            return
    write_atomic(path, text)
    click.echo(f"  {'written ' if standing is None else 'replaced' if name != _IGNORED else 'extended'} {name}")
