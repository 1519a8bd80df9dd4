"""Succeed where a table on stdin names the four files in the order that was decided."""

import re
import sys

ORDER = [".lantern.md", "AGENTS.md", "CONTEXT.md", ".glowrules"]
rows = [line for line in sys.stdin.read().splitlines() if line.lstrip().startswith("|")]
named = [name for row in rows for name in re.findall("|".join(map(re.escape, ORDER)), row)]
sys.exit([name for at, name in enumerate(named) if name not in named[:at]] != ORDER)
