"""What the gate's job is given by its runner."""

from __future__ import annotations

import adopted

from bot.steps.estimate import RunEstimate

PLAN = RunEstimate("none", "$0.00", "a minute", 1)


def environment(run: int = 100, attempt: int = 1) -> dict[str, str]:
    return {
        "GITHUB_REPOSITORY": adopted.REPO,
        "GITHUB_RUN_ID": str(run),
        "GITHUB_RUN_ATTEMPT": str(attempt),
        "GITHUB_SHA": "c" * 40,
    }
