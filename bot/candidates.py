"""Finding the compressor in a tree: an agent that we know, or by the names of its methods and what it takes."""

from __future__ import annotations

import ast
import difflib
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from eval_core.base.errors import UserError
from eval_core.sandbox.targets import SHIPPED_TARGETS

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
_VERBS = ("compress", "compact", "condense", "summarise", "summarize")
_SDKS = frozenset({"anthropic", "litellm", "openai"})
_SDK_CLIENT = re.compile(r"\b(Async)?(OpenAI|Anthropic)\b")
_CLIENT = re.compile(r"(?:^|_)(?:client|openai|anthropic)$")
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

    @property
    def words(self) -> str:
        """The options of `init` that name it."""
        method = self.target.get("method")
        return f"--compressor {self.target['compressor']}" + (f" --method {method}" if method else "")


@dataclass(frozen=True)
class _Parameter:
    """What a function takes, as far as the source says."""

    name: str
    kind: str
    """Its annotation."""
    required: bool

    @property
    def client(self) -> str:
        """The class of the model's client that is wanted here, as in "openai.OpenAI"; empty where none is."""
        named = _SDK_CLIENT.search(self.kind)
        if named:
            return f"{named[2].lower()}.{named[1] or ''}{named[2]}"
        return "openai.OpenAI" if _CLIENT.search(self.name) and not re.search(r"str|int|bool|dict", self.kind) else ""


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[_Parameter]:
    """List what a function takes by name, without `self`."""
    named = [*node.args.posonlyargs, *node.args.args]
    without = [True] * (len(named) - len(node.args.defaults)) + [False] * len(node.args.defaults)
    both = [*zip(named, without, strict=True)]
    both += [(arg, default is None) for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    return [
        _Parameter(arg.arg, ast.unparse(arg.annotation) if arg.annotation else "", needed)
        for arg, needed in both
        if arg.arg != "self"
    ]


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    return next((item for item in node.body if isinstance(item, _FUNCTIONS) and item.name == name), None)


def _read(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError, OSError, RecursionError):
        return None


@dataclass(frozen=True)
class CompressorCandidate:
    """A class or function that may be the compressor."""

    path: Path
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    method: str
    """The method that compresses; of a function its own name."""

    @property
    def rank(self) -> tuple[bool, bool, int, bool, int, str]:
        """Sort the likeliest to the front."""
        of_ours = self.path.name == FILE and self.method == "compress"
        word = next(at for at, verb in enumerate(_VERBS) if self.method.startswith(verb))
        return (
            not of_ours,
            self.node.name != "ContextCompressor",
            word,
            not isinstance(self.node, ast.ClassDef),
            len(self.path.parts),
            f"{self.path}:{self.node.lineno}",
        )


def candidates(root: Path) -> list[CompressorCandidate]:
    """List what may be the compressor of a tree, the likeliest first."""
    found: list[CompressorCandidate] = []
    for path in root.rglob("*.py"):
        if _SKIPPED.intersection(path.relative_to(root).parts[:-1]) or not _mentions_a_verb(path):
            continue
        tree = _read(path)
        found += [
            CompressorCandidate(path, node, method)
            for node in (tree.body if tree else ())
            if isinstance(node, _DEFINITIONS) and (method := _compressing(node))
        ]
    return sorted(found, key=lambda candidate: candidate.rank)


def _mentions_a_verb(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(f"def {verb}" in text for verb in _VERBS)


def _compressing(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Return the method that compresses, or the function's own name; empty where there is neither."""
    if isinstance(node, ast.ClassDef):
        methods = [item.name for item in node.body if isinstance(item, _FUNCTIONS) and _parameters(item)]
        return next((name for verb in _VERBS for name in methods if name == verb or name.startswith(f"{verb}_")), "")
    fits = any(node.name == verb or node.name.startswith(f"{verb}_") for verb in _VERBS)
    return node.name if fits and _parameters(node) else ""


def is_plain(found: Sequence[CompressorCandidate]) -> bool:
    """Tell whether nobody has to be asked: there is one, or the first has the name that everybody gives it."""
    return len(found) == 1 or (bool(found) and found[0].path.name == FILE and found[0].method == "compress")


def described(root: Path, candidate: CompressorCandidate) -> Found:
    """Describe a candidate as a target: what its constructor is given, whether it calls a model, its adapter."""
    node, path = candidate.node, candidate.path
    source = _source(root, path)
    name = f"{'.'.join(path.relative_to(source).with_suffix('').parts)}:{node.name}"
    return _found(root, path, node, name, source, candidate.method)


def _found(
    root: Path,
    path: Path,
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    name: str,
    source: Path,
    method: str,
) -> Found:
    is_class = isinstance(node, ast.ClassDef)
    maker = _method(node, "__init__") if isinstance(node, ast.ClassDef) else node
    called = _method(node, method) if isinstance(node, ast.ClassDef) else None
    made = _parameters(maker) if maker else []
    if not is_class:
        made = made[1:]  # the first one takes the messages
    clients = [parameter for parameter in made if parameter.client]
    needs_model = bool(clients) or any(item.name in _NEEDS_MODEL for item in made) or _imports_sdk(path)
    given = {item.name: _KNOWN[item.name] for item in made if item.name in _KNOWN} if needs_model else {}
    call = {item.name: _CALL[item.name] for item in (_parameters(called)[1:] if called else made) if item.name in _CALL}
    target: dict[str, Any] = {"pythonpath": [source.relative_to(root).as_posix()], "compressor": name}
    files: dict[str, str] = {}
    unknown = [item.name for item in made if item.required and item.name not in {**given, **call} and not item.client]
    if wanted := [item for item in clients if item.required]:
        target["adapter"] = f"{ADAPTERS}/{node.name.lower()}_adapter.py"
        files[target["adapter"]] = _adapter(name, wanted, unknown, is_class=is_class)
        if any("anthropic" in item.client for item in wanted):
            target["env"] = {"ANTHROPIC_BASE_URL": "${LLM_ROOT_URL}", "ANTHROPIC_API_KEY": "${LLM_API_KEY}"}
    if is_class and given:
        target["init"] = given
    elif not is_class:
        call = {**given, **call}
    if is_class and method != "compress":
        target["method"] = method
    if call:
        target["call"] = call
    target["llm"] = "required" if needs_model else "none"
    where = target.get("adapter", "init" if is_class else "call")
    note = f"# Fill in under {where} what your code passes as {', '.join(unknown)}." if unknown else ""
    return Found(target, _watched(root, path), files=files, note=note)


def _imports_sdk(path: Path) -> bool:
    """Tell whether a file imports what calls models."""
    tree = _read(path)
    names = [
        name
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""])
    ]
    return any(name.partition(".")[0] in _SDKS for name in names)


def _adapter(name: str, clients: Sequence[_Parameter], unknown: Sequence[str], *, is_class: bool) -> str:
    """Write the adapter of a compressor that wants a client of the model."""
    imports = sorted({item.client for item in clients})
    lines = [f"{item.name}={item.client.partition('.')[2]}()," for item in clients]
    lines += [f"{other}=...,  # fill in what your code passes" for other in unknown]
    body = "\n".join(f"        {line}" for line in lines)
    signature = "create(spec)" if is_class else "compress(function, messages, call)"
    opened, rest = ('spec["target"](', '**spec["init"],') if is_class else ("function(\n        messages,", "**call,")
    return (
        f'"""Gives {name} its client of the model."""\n\n'
        + "".join(f"from {item.partition('.')[0]} import {item.partition('.')[2]}\n" for item in imports)
        + f"\n\ndef {signature}:\n"
        '    """The address and the token of the model that the evaluation serves are in the environment."""\n'
        f"    return {opened}\n{body}\n        {rest}\n    )\n"
    )


def with_environment(root: Path, found: Found | None) -> Found | None:
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
                return _found(root, path, node, name, source, method)
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
    if _method(node, method) is not None or node.bases:
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
