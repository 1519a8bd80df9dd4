"""The rooms of the two packages and who imports whom, for docs/architecture.md."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

__all__ = ["BEGIN", "END", "drawn"]

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- drawn by scripts/export-schemas -->", "<!-- end of drawing -->"
_ROOMS = (
    *("base", "compressors", "domain", "evidence", "suite", "models", "sandbox"),
    *("judging", "storage", "comparing", "measuring", "reporting", "cli"),
)


def _modules() -> dict[str, Path]:
    found = {}
    for package in ("bot", "eval_core"):
        for path in sorted((ROOT / package).rglob("*.py")):
            found[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


def _room(module: str, modules: dict[str, Path]) -> str:
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
        for room in edges.get(start, ()):
            if room not in seen:
                seen.add(room)
                reach(room, seen)
        return seen

    return {
        room: {other for other in others if not any(other in reach(way, set()) for way in others - {other})}
        for room, others in edges.items()
    }


def _said(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return doc.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def drawn() -> str:
    """Return the graph of the rooms and the list of their modules, as markdown."""
    modules = _modules()
    edges: dict[str, set[str]] = defaultdict(set)
    rooms: dict[str, list[str]] = defaultdict(list)
    for name, path in modules.items():
        room = _room(name, modules)
        if path.read_text(encoding="utf-8").strip():
            rooms[room].append(name)
        edges[room] |= {_room(other, modules) for other in _imports(path, modules)} - {room}
    order = [f"eval_core.{room}" for room in _ROOMS]
    order += sorted(room for room in rooms if room.startswith("bot"))
    lines = ["```mermaid", "graph BT"]
    reduced = _reduced(edges)
    for room in order:
        lines += [f"  {room} --> {other}" for other in order if other in reduced.get(room, ())]
    lines += ["```", ""]
    for room in order:
        lines += [f"**`{room.replace('.', '/')}`**", "", "| module | what it holds |", "|---|---|"]
        for name in sorted(rooms[room]):
            short = name.removeprefix(f"{room}.") if name != room else "(package)"
            lines.append(f"| `{short}` | {_said(modules[name])} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
