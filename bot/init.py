"""`compression-eval init`: find the compressor and adopt the bot in a repository."""

from __future__ import annotations

import ast
import difflib
import re
import subprocess
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import click

from eval_core.base.errors import UserError

__all__ = [
    "AdoptionPlan",
    "Found",
    "adoption",
    "find_compressor",
    "init",
    "named_compressor",
    "own_source",
]

# Finding the compressor in a tree: by its file's name and by what its class takes.

FILE = "context_compressor.py"
_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "tests", "test", "site-packages", "build", "dist"})
_SOURCES = ("src", "lib")
# What the constructor of a compressor is given, by the name of its parameter.
_KNOWN = {
    "model": "${MODEL}",
    "base_url": "${LLM_BASE_URL}",
    "api_base": "${LLM_BASE_URL}",
    "api_key": "${LLM_API_KEY}",
    "provider": "custom",
    "context_length": "${CONTEXT_LENGTH}",
    "config_context_length": "${CONTEXT_LENGTH}",
    "quiet_mode": True,
}
_NEEDS_MODEL = frozenset({"base_url", "api_base", "api_key"})
_CALL = {"focus_topic": "${FOCUS_TOPIC}", "force": True}


@dataclass(frozen=True)
class Found:
    """A compressor, as a target spec wants it described."""

    path: str
    target: dict[str, Any]


def _parameters(node: ast.ClassDef, method: str) -> list[str] | None:
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and item.name == method:
            arguments = item.args
            return [argument.arg for argument in (*arguments.args, *arguments.kwonlyargs) if argument.arg != "self"]
    return None


def _compressor_class(tree: ast.Module) -> ast.ClassDef | None:
    classes = [
        node for node in tree.body if isinstance(node, ast.ClassDef) and _parameters(node, "compress") is not None
    ]
    return min(classes, key=lambda node: (node.name != "ContextCompressor", node.lineno), default=None)


def _read(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return None


def find_compressor(root: Path) -> Found | None:
    """Return the compressor of a tree: the shallowest `context_compressor.py` with a class that can compress."""
    files = [path for path in root.rglob(FILE) if not _SKIPPED.intersection(path.relative_to(root).parts[:-1])]
    for path in sorted(files, key=lambda path: (len(path.parts), str(path))):
        tree = _read(path)
        found = _compressor_class(tree) if tree else None
        if found is not None:
            return Found(path.relative_to(root).as_posix(), _describe(root, path, found))
    return None


def named_compressor(root: Path, name: str) -> Found | None:
    """Return the compressor that is named as `package.module:Class`."""
    module, _, wanted = name.partition(":")
    inner = Path(*module.split("."))
    for source in (root, *(root / folder for folder in _SOURCES)):
        for path in (source / inner.with_suffix(".py"), source / inner / "__init__.py"):
            tree = _read(path) if path.is_file() else None
            for node in tree.body if tree else ():
                if isinstance(node, ast.ClassDef) and node.name == wanted:
                    target = {**_describe(root, path, node), "compressor": name}
                    target["pythonpath"] = [source.relative_to(root).as_posix()]
                    return Found(path.relative_to(root).as_posix(), target)
    return None


def _source(root: Path, path: Path) -> Path:
    """Return the folder that the imports of a file begin at: above its outermost package."""
    top = path.parent
    while top != root and (top / "__init__.py").exists():
        top = top.parent
    first = path.relative_to(root).parts[0]
    if top == path.parent and first in _SOURCES:
        return root / first  # packages without __init__.py, in a src layout
    return root if top == path.parent else top


def _describe(root: Path, path: Path, node: ast.ClassDef) -> dict[str, Any]:
    source = _source(root, path)
    module = ".".join(path.relative_to(source).with_suffix("").parts)
    init = {name: _KNOWN[name] for name in _parameters(node, "__init__") or () if name in _KNOWN}
    needs_model = bool(_NEEDS_MODEL & set(init))
    target: dict[str, Any] = {
        "pythonpath": [source.relative_to(root).as_posix()],
        "compressor": f"{module}:{node.name}",
    }
    if needs_model:
        target["init"] = init
    call = {name: value for name, value in _CALL.items() if name in (_parameters(node, "compress") or ())}
    if call:
        target["call"] = call
    target["llm"] = "required" if needs_model else "none"
    return target


# `compression-eval init`: adopt the bot in a repository.

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
class AdoptionPlan:
    """Files to be written, by path below the repository."""

    files: dict[str, str]
    compressor: str


def adoption(root: Path, action: str, compressor: str | None) -> AdoptionPlan:
    """Work out everything that adopting the bot writes."""

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
    return AdoptionPlan(
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
    from eval_core.base.files import write_atomic

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
