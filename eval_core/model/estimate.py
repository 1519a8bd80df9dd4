"""What a run will cost, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eval_core.model.outcome import Role, Usage
from eval_core.model.prices import Tariff

__all__ = ["EstimateRow", "PlannedCalls", "estimate", "total"]


@dataclass(frozen=True)
class PlannedCalls:
    """Calls of one role to one model, alike enough to be counted together."""

    role: Role
    model: str
    calls: int
    input_tokens: int
    """Of all calls together."""
    output_tokens: int
    """Expected of all calls together; at most calls x max_tokens."""
    shared_tokens: int = 0
    """The part of the input that stands at the beginning of an earlier call: what a prompt cache can save."""


@dataclass(frozen=True)
class EstimateRow:
    """One row of the dry run's table; costs are None where the price is unknown."""

    role: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    cached_cost_usd: float | None
    """The cost when every shared beginning is read from the prompt cache."""


def estimate(plan: Iterable[PlannedCalls], tariffs: Mapping[str, Tariff | None]) -> list[EstimateRow]:
    """Price each part of the plan, with and without prompt caching."""
    rows = []
    for part in plan:
        price = tariffs.get(part.model)
        shared = min(part.shared_tokens, part.input_tokens)
        plain = None if price is None else price.cost(Usage(part.input_tokens, 0, part.output_tokens), part.calls)
        cached = None if price is None else price.cost(Usage(part.input_tokens, shared, part.output_tokens), part.calls)
        rows.append(
            EstimateRow(part.role, part.model, part.calls, part.input_tokens, part.output_tokens, plain, cached)
        )
    return rows


def total(rows: Iterable[EstimateRow]) -> EstimateRow:
    """Sum the rows; one unknown price makes the sum unknown."""
    rows = list(rows)

    def summed(costs: list[float | None]) -> float | None:
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    return EstimateRow(
        "total",
        "",
        sum(row.calls for row in rows),
        sum(row.input_tokens for row in rows),
        sum(row.output_tokens for row in rows),
        summed([row.cost_usd for row in rows]),
        summed([row.cached_cost_usd for row in rows]),
    )
