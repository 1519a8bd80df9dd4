"""The estimate in the comment that announces an evaluation: which models, what it costs, how long it takes.

Estimating runs the reference compressor over the fixtures and counts tokens. The gate holds a write token, so that is
done by a process of its own, which does not get the token.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ValidationError

from bot.steps.without_token import start_without_token
from eval_core.base.config import Config, SuiteName
from eval_core.models.settings import ModelFlags, resolve

_SECONDS_PER_CALL = 4.0
_LONGEST = 120
"""Seconds after which the comment does without an estimate."""


_OFFLINE: dict[SuiteName, tuple[str, int]] = {
    "quick": ("a minute or two", 3),
    "rounds": ("two to four minutes", 5),
    "long": ("about ten minutes", 15),
    "full": ("about half an hour", 40),
    "adversarial": ("a minute", 3),
}
"""How long it takes without models, and when it should be over."""


@dataclass(frozen=True)
class RunEstimate:
    """Models, cost and duration, for people."""

    models: str
    cost: str
    minutes: str
    most_minutes: int | None = None
    """When it should be over, for the line that says what is going on."""


class _Estimated(BaseModel):
    calls: int
    """Beside those of rounds and rollouts."""
    minutes: int = 0
    """Of rounds and rollouts, whose calls follow each other."""
    cached_usd: float | None
    usd: float | None


def describe(config: Config) -> RunEstimate:
    """Describe the run that the configuration asks for; an estimate that fails is no reason to refuse it."""
    models = resolve(ModelFlags(), os.environ, config.models)
    if models is None:
        return RunEstimate("none (offline, rule-based)", "$0.00", *_OFFLINE[config.suite])
    names = ", ".join(dict.fromkeys((models.compressor, models.answer, models.judge)))
    cap = f"at most ${config.budget_usd:.2f} (the budget)"
    found = _estimate_in_subprocess(config)
    if found is None:
        return RunEstimate(names, cap, "a few minutes to a quarter of an hour")
    low, high = found.cached_usd, found.usd
    cost = cap if low is None or high is None else f"${low:.2f} to ${high:.2f}, {cap}"
    minutes = math.ceil(found.calls * _SECONDS_PER_CALL / config.concurrency / 60) + found.minutes
    return RunEstimate(names, cost, f"about {minutes} minute{'s' if minutes != 1 else ''}", minutes)


def _estimate_in_subprocess(config: Config) -> _Estimated | None:
    """Estimate in a process that holds no token; None where that fails, and its log says why."""
    with start_without_token("bot.steps.estimate") as process:
        try:
            said, _ = process.communicate(config.model_dump_json(by_alias=True), timeout=_LONGEST)
            return _Estimated.model_validate_json(said)
        except subprocess.TimeoutExpired:
            process.kill()
            why = f"it took more than {_LONGEST} seconds"
        except ValidationError:
            why = f"it ended with {process.returncode}"
    print(f"No estimate: {why}", flush=True)
    return None


def main() -> None:
    """Read a configuration from standard input and print the estimate of a run in this folder."""
    from eval_core.measuring.cost import estimate_cost
    from eval_core.measuring.options import RunOptions
    from eval_core.measuring.plan import make_plan

    config = Config.model_validate_json(sys.stdin.read())
    plan = make_plan(RunOptions(config, base_tree=Path()))
    found = estimate_cost(plan)
    if found is not None:
        total, rounds = found.total, plan.rounds
        played = sum(part.calls for part in plan.tasks.counted(plan.models)) if plan.models is not None else 0
        estimated = _Estimated(
            calls=total.calls - (rounds.rounds if plan.target.asks_model else 0) - played,
            minutes=rounds.minutes(offline=False) + plan.tasks.minutes,
            cached_usd=total.cached_cost_usd,
            usd=total.cost_usd,
        )
        print(estimated.model_dump_json())


if __name__ == "__main__":
    main()
