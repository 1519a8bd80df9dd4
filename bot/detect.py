"""Finding the compressor in a tree: by its file's name and by what its class takes."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Found", "find_compressor", "named_compressor"]

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
