"""Calls: how often a compression asks its model, how many of the replies are of no use, and what it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from eval_core.base.numbers import tokens
from eval_core.domain.compression import ModelUse
from eval_core.domain.measurement import Measurement
from eval_core.strands.findings import Finding, StrandState

_MORE = 0.1
"""A smaller share is no change: models are asked again now and then."""


@dataclass(frozen=True)
class _Side:
    """The compressions of one side that asked a model."""

    uses: Sequence[ModelUse]
    seconds: Sequence[float]

    @staticmethod
    def of(measurement: Measurement) -> _Side:
        runs = [run for runs in measurement.fixtures.values() for run in runs if run.ok]
        asking = [run for run in runs if run.use.get("compressor", ModelUse()).calls]
        return _Side([run.use["compressor"] for run in asking], [run.seconds for run in asking])

    @property
    def calls(self) -> float:
        return fmean(use.calls for use in self.uses)

    @property
    def in_vain(self) -> float:
        return sum(use.fruitless for use in self.uses) / sum(use.calls for use in self.uses)

    @property
    def words(self) -> str:
        if not self.uses:
            return ""
        parts = [f"{self.calls:.3g} call{'' if self.calls == 1 else 's'}"]
        if self.in_vain:
            parts.append(f"{self.in_vain:.0%} without a usable reply")
        parts.append(f"{tokens(fmean(use.input_tokens + use.output_tokens for use in self.uses))} tokens")
        costs = [use.cost_usd for use in self.uses if use.cost_usd]
        if len(costs) == len(self.uses):
            parts.append(f"${fmean(costs):.3f}")
        return ", ".join([*parts, f"{median(self.seconds):.1f} s"])


def calls_strand(sides: Sequence[Measurement]) -> Finding | None:
    """Say what a compression takes on both sides; more calls, or more in vain, are told and decide nothing."""
    found = [_Side.of(side) for side in sides]
    if not found or not found[-1].uses:
        return None
    before, now = found
    if not before.uses:
        return Finding(name="calls", state=StrandState.NOT_RECORDED, candidate=now.words)
    changed = abs(now.calls / before.calls - 1) >= _MORE or abs(now.in_vain - before.in_vain) >= _MORE
    says = f"{now.calls:.3g} model calls for each compression, before {before.calls:.3g}" if changed else ""
    state = StrandState.CHANGED if changed else StrandState.SAME
    return Finding(name="calls", state=state, base=before.words, candidate=now.words, says=says)
