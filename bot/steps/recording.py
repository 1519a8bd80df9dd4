"""Recording GitHub's answers about one workflow run, as golden data for the loopback GitHub.

Only the shapes are compared: which fields there are and of which type. What the loopback leaves out is no mistake as
long as the bot does not read it; a field that it invents, or gives another type, is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.github.api_error import NotFound
from bot.github.repository import WORKFLOW, GitHub
from bot.steps.check import CHECK_NAME
from eval_core.base.files import write_atomic

__all__ = ["mismatches", "record_run"]


def record_run(github: GitHub, number: int, run_id: int, into: Path) -> list[str]:
    """Ask for everything that the bot reads about a run, and keep each answer in a file of its own."""
    pull = github.answer(f"/pulls/{number}")
    head = pull["head"]["sha"]
    paths = {
        "repository": "",
        "files": f"/pulls/{number}/files",
        "comments": f"/issues/{number}/comments",
        "permission": f"/collaborators/{pull['user']['login']}/permission",
        "base-commit": f"/commits/{pull['base']['ref']}",
        "checks": f"/commits/{head}/check-runs?check_name={CHECK_NAME}&filter=all",
        "workflow-runs": f"/actions/workflows/{WORKFLOW}/runs",
        "run": f"/actions/runs/{run_id}",
        "jobs": f"/actions/runs/{run_id}/jobs?filter=all",
        "artifacts": f"/actions/runs/{run_id}/artifacts",
        "approvals": f"/actions/runs/{run_id}/approvals",
        "environment": "/environments/compression-eval",
    }
    answers: dict[str, Any] = {"pull": pull}
    for name, path in paths.items():
        try:
            answers[name] = github.answer(path)
        except NotFound:
            continue  # an environment that nobody made, a run without artifacts
    into.mkdir(parents=True, exist_ok=True)
    for name, value in answers.items():
        write_atomic(into / f"{name}.json", json.dumps(value, indent=1, sort_keys=True) + "\n")
    return list(answers)


def mismatches(real: Any, ours: Any, where: str = "") -> Iterator[str]:
    """Yield the fields that the loopback invents or gives another type than GitHub does."""
    if isinstance(real, dict) and isinstance(ours, dict):
        for key, value in ours.items():
            if key not in real:
                yield f"{where}.{key}: GitHub has no such field"
            else:
                yield from mismatches(real[key], value, f"{where}.{key}")
    elif isinstance(real, list) and isinstance(ours, list):
        if real and ours:
            yield from mismatches(real[0], ours[0], f"{where}[0]")
    elif real is not None and ours is not None and type(real) is not type(ours):
        yield f"{where}: {type(real).__name__} on GitHub, {type(ours).__name__} here"
