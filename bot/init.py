"""`compression-eval init`: find the compressor and adopt the bot in a repository."""

from __future__ import annotations

import ast
import difflib
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

import click
import yaml

from bot.github.checkout import git, own_repository
from eval_core.base.errors import UserError
from eval_core.sandbox.targets import SHIPPED_TARGETS

__all__ = [
    "ADAPTERS",
    "AdoptionPlan",
    "Found",
    "adoption",
    "find_compressor",
    "init",
    "known_agent",
    "named_command",
    "named_compressor",
    "own_source",
]

# Finding the compressor in a tree: an agent that we know, or by its file's name and by what its class takes.

ADAPTERS = ".github/compression-eval"
"""Where an adapter of ours is put: changes there are never taken from a pull request."""

FILE = "context_compressor.py"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (ast.ClassDef, *_FUNCTIONS)
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

    target: dict[str, Any]
    watch: tuple[str, ...]
    setup: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """What the target needs beside the configuration: its adapter."""
    note: str = ""
    """What is to be known about this agent."""


def _parameters(node: ast.ClassDef, method: str) -> list[str] | None:
    for item in node.body:
        if isinstance(item, _FUNCTIONS) and item.name == method:
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
            return Found(_describe(root, path, found, "compress"), _watched(root, path))
    return None


def _with_environment(root: Path, found: Found | None) -> Found | None:
    """Return the compressor with the repository's own environment, where it has one that can be made again."""
    if found is None or not (root / ".venv" / "bin" / "python").exists():
        return found
    if (root / "requirements.txt").is_file():
        packages = "-r requirements.txt"
    elif (root / "pyproject.toml").is_file():
        packages = "."
    else:
        return found
    setup = ("python3 -m venv .venv", f".venv/bin/pip install {packages}")
    return replace(found, target={"python": ".venv/bin/python", **found.target}, setup=setup)


def known_agent(root: Path) -> Found | None:
    """Return the shipped target of an agent whose source tree this is, with everything that belongs to it."""
    for path in sorted(SHIPPED_TARGETS.glob("*.yml")):
        shipped = yaml.safe_load(path.read_text(encoding="utf-8"))
        target, watch = dict(shipped["target"]), shipped.get("watch", [])
        # A command drives an installed program; only a class can be recognised in a source tree.
        place = _defined(root, *target["compressor"].split(":")) if "compressor" in target else None
        if place is None or not all(any(root.glob(name)) for name in watch):
            continue
        source, module = place
        files = {}
        if adapter := target.get("adapter"):
            target["adapter"] = f"{ADAPTERS}/{adapter}"
            files[target["adapter"]] = (path.parent / adapter).read_text(encoding="utf-8")
        target["pythonpath"] = [source.relative_to(root).as_posix()]
        comments = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        return Found(
            target, tuple(watch) or _watched(root, module), tuple(shipped.get("setup", ())), files, "\n".join(comments)
        )
    return None


def _defined(root: Path, module: str, name: str) -> tuple[Path, Path] | None:
    """Return the import root and the file of a class or function, which its package may only pass on."""
    inner = Path(*module.split("."))
    for source in (root, *(root / folder for folder in _SOURCES)):
        folder = source / inner
        files = [source / inner.with_suffix(".py"), *(sorted(folder.rglob("*.py")) if folder.is_dir() else ())]
        for path in files:
            tree = _read(path) if path.is_file() else None
            if tree and any(isinstance(node, _DEFINITIONS) and node.name == name for node in tree.body):
                return source, path
    return None


def _watched(root: Path, path: Path) -> tuple[str, ...]:
    """Watch the compressor with the modules around it, which it may well be made of."""
    file = PurePosixPath(path.relative_to(root).as_posix())
    return (str(file) if file.parent == PurePosixPath() else f"{file.parent}/**",)


def named_compressor(root: Path, name: str, method: str = "compress") -> Found:
    """Return the compressor that is named as `package.module:Class`, or `:function`, if it can be called so."""
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        raise UserError(f"--compressor {name!r}: give package.module:Class, or package.module:function")
    module, _, wanted = name.partition(":")
    inner = Path(*module.split("."))
    known: list[str] = []
    for source in _sources(root, inner):
        for path in (source / inner.with_suffix(".py"), source / inner / "__init__.py"):
            tree = _read(path) if path.is_file() else None
            for node in tree.body if tree else ():
                if isinstance(node, _DEFINITIONS):
                    known.append(node.name)
                if not isinstance(node, _DEFINITIONS) or node.name != wanted:
                    continue
                if isinstance(node, ast.ClassDef):
                    _check_method(name, node, method)
                    target = {**_describe(root, path, node, method), "compressor": name}
                else:
                    target = {"compressor": name, **_called(node)}
                target["pythonpath"] = [source.relative_to(root).as_posix()]
                return Found(target, _watched(root, path))
    near = difflib.get_close_matches(wanted, known, n=1)
    hint = f"did you mean {module}:{near[0]}?" if near else "give package.module:Class"
    raise UserError(f"--compressor {name}: no such class or function in {root.resolve()}; {hint}")


def _sources(root: Path, inner: Path) -> list[Path]:
    """Return the folders that the imports may begin at: the usual ones, then any folder of a tree of several."""
    usual = [root, *(root / folder for folder in _SOURCES)]
    if not inner.parts or inner.is_absolute() or ".." in inner.parts:
        return usual
    deep = [
        path.parents[len(inner.parts) - 1 + (path.name == "__init__.py")]
        for name in (inner.with_suffix(".py"), inner / "__init__.py")
        for path in sorted(root.rglob(str(name)), key=lambda path: (len(path.parts), str(path)))
        if not _SKIPPED.intersection(path.relative_to(root).parts[:-1])
    ]
    return list(dict.fromkeys([*usual, *deep]))


def _called(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, Any]:
    """Describe how a function is called: with a model where it takes one."""
    given = [argument.arg for argument in (*node.args.args[1:], *node.args.kwonlyargs)]
    call = {name: value for name, value in {**_KNOWN, **_CALL}.items() if name in given}
    needs_model = bool(_NEEDS_MODEL & set(call))
    if not needs_model:
        call = {name: value for name, value in call.items() if name in _CALL}
    return {**({"call": call} if call else {}), "llm": "required" if needs_model else "none"}


def named_command(root: Path, words: Sequence[str], llm: str) -> Found:
    """Return the target of a program, with what Node needs to run it where the tree has a package.json."""
    if not words:
        raise UserError('--command: it is empty; give a program and its arguments, as in --command "node compress.ts"')
    named = [word for word in words if (root / word).is_file()]
    if not named and shutil.which(words[0]) is None:
        raise UserError(
            f"--command {shlex.join(words)}: {words[0]} is neither a program on this machine nor a file in "
            f"{root.resolve()}; paths are relative to that folder"
        )
    if missing := [word for word in words[1:] if not named and PurePosixPath(word).suffix]:
        raise UserError(
            f"--command {shlex.join(words)}: {missing[0]}: no such file in {root.resolve()}; paths are relative to "
            "that folder"
        )
    target: dict[str, Any] = {"command": list(words), "llm": llm}
    setup: tuple[str, ...] = ()
    if (root / "package.json").is_file():
        locked = (root / "package-lock.json").is_file()
        target["runtime"] = "."
        setup = ("npm ci",) if locked else ("npm install",)
    watch = tuple(dict.fromkeys(glob for word in named for glob in _watched(root, root / word)))
    return Found(target, watch or ("**",), setup)


def _check_method(name: str, node: ast.ClassDef, method: str) -> None:
    """Refuse a class that does not have the method; a class that inherits may have it, so it is accepted."""
    if _parameters(node, method) is not None or node.bases:
        return
    methods = [item.name for item in node.body if isinstance(item, _FUNCTIONS) and not item.name.startswith("_")]
    raise UserError(
        f"--compressor {name}: the class has no method {method}; name the one that compresses with --method"
        + (f" (it has {', '.join(methods[:8])})" if methods else "")
    )


def _source(root: Path, path: Path) -> Path:
    """Return the folder that the imports of a file begin at: above its outermost package."""
    top = path.parent
    while top != root and (top / "__init__.py").exists():
        top = top.parent
    first = path.relative_to(root).parts[0]
    if top == path.parent and first in _SOURCES:
        return root / first  # packages without __init__.py, in a src layout
    return root if top == path.parent else top


def _describe(root: Path, path: Path, node: ast.ClassDef, method: str) -> dict[str, Any]:
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
    if method != "compress":
        target["method"] = method
    call = {name: value for name, value in _CALL.items() if name in (_parameters(node, method) or ())}
    if call:
        target["call"] = call
    target["llm"] = "required" if needs_model else "none"
    return target


# `compression-eval init`: adopt the bot in a repository.

WORKFLOW = Path(".github/workflows/compression-eval.yml")
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
    root: Path, action: str | None, compressor: str | None, method: str = "compress", command: Found | None = None
) -> AdoptionPlan:
    """Work out everything that adopting the bot writes; the workflow only where it is known what it installs."""
    from eval_core.base.config import CONFIG_FILE

    workflow = files("bot").joinpath("templates/compression-eval.yml").read_text(encoding="utf-8")
    plan = {
        **({str(WORKFLOW): _with_action(workflow, action)} if action else {}),
        # git keeps no empty folder
        **{f"{name}/.gitkeep": "" for name in ("fixtures", "probes", "baselines") if not _filled(root / name)},
    }
    found = command or (
        _with_environment(root, named_compressor(root, compressor, method))
        if compressor is not None
        else known_agent(root) or _with_environment(root, find_compressor(root))
    )
    plan[_IGNORED] = _ignoring(root / _IGNORED, found)
    if found is not None:
        name = str(found.target.get("compressor") or " ".join(found.target.get("command", ())))
        return AdoptionPlan({CONFIG_FILE: _config(found, action), **found.files, **plan}, found.setup, name)
    if not (root / CONFIG_FILE).exists():
        raise UserError(
            f"{root.resolve()}: no context_compressor.py with a class that has a compress method; "
            "name yours with --compressor package.module:Class, or, in another language than Python, with "
            '--command "node compress.ts"'
        )
    return AdoptionPlan(plan)


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
@click.option("--compressor", help="package.module:Class; default: found by looking for context_compressor.py.")
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
@click.option("--force", is_flag=True, help="Replace files that differ; without it yours are kept.")
def init(
    folder: Path,
    action: str | None,
    compressor: str | None,
    method: str,
    command: str | None,
    llm: str,
    force: bool,
) -> None:
    """Write the workflow and .compression-eval.yml into a repository, then try what was written (see doctor).

    Running it again changes nothing that you edited: it shows the difference and keeps your file.

    \b
    Examples:
      compression-eval init
      compression-eval init --compressor agent.memory:Memory --method shorten
      compression-eval init --command "node src/compress.ts"
      compression-eval init ../my-agent --action my-org/compression-eval@0123456789abcdef0123456789abcdef01234567
    """
    from bot.doctor import print_diagnoses
    from eval_core.base.config import load_config
    from eval_core.measuring.diagnose import diagnose
    from eval_core.measuring.options import Job

    if command is not None and compressor is not None:
        raise UserError("--command and --compressor: give one of them; a compressor is a Python class or a program")
    program = None if command is None else named_command(folder, _words(command), llm)
    source = _checked_action(action)
    plan = adoption(folder, source, compressor, method, program)
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
    if print_diagnoses(diagnose(Job(load_config(None, folder), folder))):
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
