"""The subpackages, their modules and imports, for docs/architecture.md."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

__all__ = ["BEGIN", "END", "drawn"]

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- drawn by scripts/export-schemas -->", "<!-- end of drawing -->"
_LAYERS = (
    *("base", "compressors", "domain", "facts", "statistics", "strands", "suite", "models", "sandbox"),
    *("judging", "storage", "comparing", "measuring", "reporting", "cli"),
)


def _modules() -> dict[str, Path]:
    found = {}
    for package in ("bot", "eval_core"):
        for path in sorted((ROOT / package).rglob("*.py")):
            found[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


def _package(module: str) -> str:
    """Return the folder a module belongs to: `eval_core.base`, `bot.github`, or `bot` for the modules at its top."""
    parts = module.split(".")
    top = ".".join(parts[:2])
    return top if len(parts) > 2 or (ROOT / Path(*parts[:2])).is_dir() else parts[0]


def _imports(path: Path, modules: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            while name and name not in modules:
                name = name.rpartition(".")[0]
            if name:
                found.add(name)
    return found


def _reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Drop transitive edges, so that the drawing shows the layers."""

    def reach(start: str, seen: set[str]) -> set[str]:
        for package in edges.get(start, ()):
            if package not in seen:
                seen.add(package)
                reach(package, seen)
        return seen

    return {
        package: {other for other in others if not any(other in reach(way, set()) for way in others - {other})}
        for package, others in edges.items()
    }


def _said(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return doc.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def drawn() -> str:
    """Return the graph of the packages and the list of their modules, as markdown."""
    modules = _modules()
    edges: dict[str, set[str]] = defaultdict(set)
    packages: dict[str, list[str]] = defaultdict(list)
    for name, path in modules.items():
        package = _package(name)
        if path.read_text(encoding="utf-8").strip():
            packages[package].append(name)
        edges[package] |= {_package(other) for other in _imports(path, modules)} - {package}
    order = [f"eval_core.{package}" for package in _LAYERS]
    order += sorted(package for package in packages if package.startswith("bot"))
    lines = ["```mermaid", "graph BT"]
    reduced = _reduced(edges)
    for package in order:
        lines += [f"  {package} --> {other}" for other in order if other in reduced.get(package, ())]
    lines += ["```", ""]
    for package in order:
        lines += [f"**`{package.replace('.', '/')}`**", "", "| module | what it holds |", "|---|---|"]
        for name in sorted(packages[package]):
            short = name.removeprefix(f"{package}.") if name != package else "(package)"
            lines.append(f"| `{short}` | {_said(modules[name])} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
