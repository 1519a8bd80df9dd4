"""Facts before grades: stop where they decide, and compress more often while they are open and the budget allows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eval_core.comparing.compare import compare_measurements
from eval_core.comparing.verdict import DECIDED, facts_open
from eval_core.domain.compression import ModelUse
from eval_core.domain.extra import Extra, Look
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RunRecord
from eval_core.measuring.plan import Plan
from eval_core.measuring.session import AfterFacts, MeasuringSession
from eval_core.models.budget import Budget
from eval_core.statistics.looks import bought_looks, looks_before, next_look


def leaves_room(budget: Budget, made: Sequence[ModelUse], missing: int, grading: ModelUse) -> bool:
    """Tell whether so many further compressions leave what the grading may cost; an unknown price never does.

    The last call needs room for its worst case, or it would be refused and the run be incomplete.
    """
    use = sum(made, ModelUse())
    if use.cost_usd is None or grading.cost_usd is None or not made:
        return False
    share = missing / len(made)
    usd = budget.spent_usd + budget.unsure_usd + share * use.cost_usd + grading.cost_usd + budget.largest.usd
    used = use.input_tokens + use.output_tokens
    rest = share * used + grading.input_tokens + grading.output_tokens + budget.largest.tokens
    tokens = budget.spent_tokens + budget.unsure_tokens + rest
    return (budget.usd is None or usd <= budget.usd) and (budget.tokens is None or tokens <= budget.tokens)


@dataclass(frozen=True)
class FactsFirst:
    """What to do once a session's compressions are there and nothing is graded."""

    plan: Plan
    sessions: Sequence[MeasuringSession]
    """Those that compress as often as the candidate: with it the base, where all of it is measured beside it."""
    base: Measurement | None
    """What the candidate is compared with; None for the base of this run."""
    before: Sequence[Look]
    budget: Budget | None

    async def __call__(self, found: Sequence[Measurement]) -> AfterFacts:
        """Compare the facts; grow the sessions where they are open and there is room for it."""
        plan = self.plan
        bought = bought_looks(plan.runs, plan.compress_runs, found[-1].planned_compress_runs)
        looks = looks_before((*self.before, *bought), found[-1])
        candidate = found[-1].model_copy(update={"extra": Extra(looks=looks)})
        base = found[0] if self.base is None else self.base
        verdict, _ = compare_measurements(base, candidate, accept=plan.options.settings.accept)
        if verdict.kind in DECIDED:
            return "stop" if plan.stops_early else "grade"
        later = next_look(candidate.planned_compress_runs)
        if later is None or not plan.compresses_more or not facts_open(verdict):
            return "grade"
        if not await self._room(found, later):
            return "grade"
        for session in self.sessions:
            session.grow(later)
        return "more"

    async def _room(self, found: Sequence[Measurement], runs: int) -> bool:
        if self.budget is None or self.sessions[0].stopped() is not None:
            return False
        made = [run.use["compressor"] for run in _ok(found[-len(self.sessions) :]) if "compressor" in run.use]
        missing = sum(session.missing(runs) for session in self.sessions)
        return leaves_room(self.budget, made, missing, await asyncio.to_thread(self._grading))

    def _grading(self) -> ModelUse:
        """Return what the rest of the run may cost, without prompt caching."""
        from eval_core.measuring.cost import estimate_cost

        found = estimate_cost(self.plan)
        rows = [row for row in (found.rows if found is not None else ()) if row.role != "compressor"]
        names = ("calls", "input_tokens", "output_tokens", "cost_usd")
        return sum((ModelUse(**{name: getattr(row, name) for name in names}) for row in rows), ModelUse())


def _ok(found: Iterable[Measurement]) -> list[RunRecord]:
    return [run for measurement in found for runs in measurement.fixtures.values() for run in runs if run.ok]
