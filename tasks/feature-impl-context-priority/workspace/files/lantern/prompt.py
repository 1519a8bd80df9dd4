"""Build the system prompt of a turn."""

from __future__ import annotations

from pathlib import Path

from lantern.config import Config
from lantern.context_files import load_project_context

IDENTITY = "You are lantern, a terminal agent. Be brief and check before you claim."


def build_system_prompt(config: Config, cwd: Path, tool_names: list[str]) -> str:
    """Join identity, tools and project context; called anew on every turn."""
    parts = [IDENTITY]
    if tool_names:
        parts.append("Tools: " + ", ".join(sorted(tool_names)))
    context = load_project_context(cwd, config.context_max_chars)
    if context:
        parts.append("# Project context\n\n" + context)
    return "\n\n".join(parts)
