"""What an evaluation will cost and take, in words, for the comment that announces it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eval_core.config import Config
from eval_core.job import Job

__all__ = ["Plan", "describe"]

_SECONDS_PER_CALL = 4.0


@dataclass(frozen=True)
class Plan:
    """Models, cost and duration, for people."""

    models: str
    cost: str
    minutes: str


def describe(config: Config) -> Plan:
    """Describe the run that the configuration asks for; an estimate that fails is no reason to refuse it."""
    models = Job(config).models
    if models is None:
        return Plan("none (offline: rules, quotations, facts)", "$0.00", "a minute or two")
    names = ", ".join(dict.fromkeys((models.compressor, models.answer, models.judge)))
    cap = f"at most ${config.budget_usd:.2f} (the budget)"
    try:
        from eval_core.quote import quote

        found = quote(Job(config))
    except Exception as exc:
        print(f"No estimate: {type(exc).__name__}: {exc}", flush=True)
        found = None
    if found is None:
        return Plan(names, cap, "a few minutes to a quarter of an hour")
    low, high = found.total.cached_cost_usd, found.total.cost_usd
    cost = cap if low is None or high is None else f"${low:.2f} to ${high:.2f}, {cap}"
    minutes = math.ceil(found.total.calls * _SECONDS_PER_CALL / config.concurrency / 60)
    return Plan(names, cost, f"about {minutes} minute{'s' if minutes != 1 else ''}")
