"""What an evaluation will cost and take, in words, for the comment that announces it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from eval_core.config import Config
from eval_core.model.settings import ModelFlags, resolve

__all__ = ["Plan", "describe"]


@dataclass(frozen=True)
class Plan:
    """Models, cost and duration, for people."""

    models: str
    cost: str
    minutes: str


def describe(config: Config) -> Plan:
    """Describe the run that the configuration asks for."""
    models = resolve(ModelFlags(), os.environ, config.models)
    if models is None:
        return Plan("none (offline: rules, quotations, facts)", "$0.00", "a minute or two")
    names = ", ".join(dict.fromkeys((models.compressor, models.answer, models.judge)))
    return Plan(names, f"at most ${config.budget_usd:.2f} (the budget)", "a few minutes to a quarter of an hour")
