"""Calls that a run will make, and their price, with and without a provider's cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eval_core.domain.call import Role, Usage
from eval_core.models.prices import Tariff


@dataclass
class CountedCalls:
    """Calls of one role to one model, alike enough to be counted together."""

    role: Role
    model: str
    calls: int = 0
    input_tokens: float = 0
    """Of all calls together."""
    output_tokens: float = 0
    """Expected of all calls together; at most calls x max_tokens."""
    shared_tokens: float = 0
    """The part of the input that stands at the beginning of an earlier call: what a prompt cache can save."""
    written_tokens: float = 0
    """The part that later calls begin with too: what a prompt cache keeps, some providers at a higher price."""
    purpose: str = ""


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


def estimate(counted: Iterable[CountedCalls], tariffs: Mapping[str, Tariff | None]) -> list[EstimateRow]:
    """Price each part, with and without prompt caching."""
    rows = []
    for part in counted:
        price, whole, output = tariffs.get(part.model), round(part.input_tokens), round(part.output_tokens)
        shared = min(round(part.shared_tokens), whole)
        written = min(round(part.written_tokens), whole - shared)
        plain, cached = (
            None if price is None else price.cost(usage, part.calls)
            for usage in (Usage(whole, 0, output), Usage(whole, shared, output, written_tokens=written))
        )
        rows.append(EstimateRow(part.role, part.model, part.calls, whole, output, plain, cached))
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
