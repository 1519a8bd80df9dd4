"""What a run has cost so far, by role: every call of its journal, failed and repeated attempts included."""

from __future__ import annotations

import json
from pathlib import Path

from eval_core.run.record import UseRecord

__all__ = ["spending"]


def spending(journal: Path) -> dict[str, UseRecord]:
    """Sum up a journal; an unreadable line costs its own numbers only."""
    found: dict[str, UseRecord] = {}
    if not journal.exists():
        return found
    with journal.open("rb") as stream:
        for raw in stream:
            try:
                line = json.loads(raw)
                if line["at"] not in ("done", "paid"):
                    continue
                usage = line["usage"]
                use = UseRecord(
                    calls=1,
                    input_tokens=usage["input_tokens"],
                    cached_tokens=usage["cached_tokens"],
                    output_tokens=usage["output_tokens"],
                    cost_usd=usage["cost_usd"],
                )
            except (ValueError, KeyError, TypeError):
                continue
            role = str(line.get("role"))
            found[role] = found.get(role, UseRecord()).plus(use)
    return found
