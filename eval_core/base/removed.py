"""What older versions had: each flag, command and configuration key that is gone, and what to do now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["COMMANDS", "FLAGS", "KEYS", "removed_keys"]

FLAGS: Mapping[str, str] = {
    "--batch": "It submitted calls to a provider's batch API; leave it out, as prompt caching saves about as much.",
    "--drift-sample": "It graded stored answers again; leave it out, a control run of the base shows the same.",
    "--regrade-baseline": "It graded a baseline's answers again; use --baseline rerun, or renew the baseline.",
    "--regraded": "It told the judge's share of the noise; see the line “Repeats” of `judge calibrate`.",
}
COMMANDS: Mapping[str, str] = {
    "bot record": "It stored GitHub's responses for our own tests; there is nothing to do now.",
    "bot remind": "It failed for an old baseline; delete the job `remind` and its `schedule` from the workflow.",
    "judge regrade": "It graded stored answers again; use `baseline update`, or `run --baseline rerun`.",
}

KEYS: Mapping[str, str] = {
    "models.questions_per_call": "It let several probes share a call; delete it, every probe is a call of its own.",
    "bot.remind_after_days": "It set the age for `bot remind`; delete it, the comment says how old a baseline is.",
}


def removed_keys(content: Any) -> list[str]:
    """Return a sentence for each key of a configuration that older versions read."""
    return [f"{key} was removed. {said}" for key, said in KEYS.items() if _has(content, key.split("."))]


def _has(content: Any, path: list[str]) -> bool:
    if not isinstance(content, dict) or path[0] not in content:
        return False
    return len(path) == 1 or _has(content[path[0]], path[1:])
