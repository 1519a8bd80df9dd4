"""Print a short health report of the installation."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping

from lantern.config import ConfigError, load_config

NEEDED_TOOLS = ("git", "less")


def report(env: Mapping[str, str]) -> list[str]:
    """Return the report, one finding a line, problems marked with '!'."""
    lines = [f"  python {platform.python_version()}"]
    for tool in NEEDED_TOOLS:
        found = shutil.which(tool)
        lines.append(f"  {tool} found" if found else f"! {tool} missing from PATH")
    try:
        config = load_config(env)
    except ConfigError as problem:
        lines.append(f"! settings: {problem}")
    else:
        lines.append(f"  model {config.model}, {config.max_turns} turns")
    return lines
