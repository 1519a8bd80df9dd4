"""Casting a run: models where they are configured, honest stand-ins where they are not."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from eval_core.judge.extractive import ExtractiveAnswerer
from eval_core.judge.fact_judge import FactJudge
from eval_core.model.settings import Models
from eval_core.run.roles import Roles
from eval_core.run.target import Target
from eval_core.subject.sandbox import Wanted

__all__ = ["Cast", "make_cast"]


@dataclass(frozen=True)
class Cast:
    """Who takes part, and why the run had to stop, if it had to."""

    roles: Roles
    stopped: Callable[[], str | None]


async def make_cast(
    stack: AsyncExitStack,
    target: Target,
    models: Models | None,
    *,
    journal: Path,
    budget_usd: float,
    max_tokens_total: int | None,
    concurrency: int,
    sandbox: Wanted,
    hidden: tuple[str, ...],
) -> Cast:
    """Bring everybody together; what must be closed is closed with the stack."""
    if models is None:
        subject, confined = target.subject(complete=None, model=None, max_tokens=8_000, sandbox=sandbox, hidden=hidden)
        return Cast(Roles(subject, ExtractiveAnswerer(), FactJudge(), offline=True, sandbox=confined), lambda: None)
    from eval_core.judge.answering import ModelAnswerer
    from eval_core.judge.grading import ModelJudge
    from eval_core.model.budget import Budget
    from eval_core.model.client import ModelClient
    from eval_core.model.journal import Journal
    from eval_core.model.settings import require_keys

    require_keys(models)
    record = stack.enter_context(Journal(journal))
    budget = Budget(budget_usd, max_tokens_total, carried=record.spent)
    client = await stack.enter_async_context(
        ModelClient(models, journal=record, budget=budget, concurrency=concurrency)
    )
    subject, confined = target.subject(
        complete=client.complete,
        model=models.compressor,
        max_tokens=models.compressor_max_tokens,
        sandbox=sandbox,
        hidden=hidden,
    )

    def stopped() -> str | None:
        if client.fatal:
            return next(iter(client.fatal.values())).message
        return f"the budget of ${budget_usd:.2f} is used up" if budget.refused else None

    roles = Roles(
        subject,
        ModelAnswerer(client),
        ModelJudge(client),
        offline=False,
        compressor={"model": models.compressor, "max_tokens": str(models.compressor_max_tokens)},
        sandbox=confined,
    )
    return Cast(roles, stopped)
