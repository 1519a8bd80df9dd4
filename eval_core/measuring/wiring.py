"""Wiring: the live objects of a run (subject, answerer, judge, model client), from configuration."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eval_core.domain.call import ArmName, Completion, Failed, ModelCall
from eval_core.domain.compression import Subject
from eval_core.domain.grade import Answerer, Judge, Obeyer
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.options import RunOptions
from eval_core.models.retry import RetryPolicy
from eval_core.models.settings import Models
from eval_core.sandbox.targets import Complete, Target

if TYPE_CHECKING:
    from eval_core.models.budget import Budget
    from eval_core.models.client import ModelClient


# Who does what in a run: the subject, the answerer and the judge.


@dataclass(frozen=True)
class Roles:
    """Everything that takes part in a run."""

    subject: Subject
    answerer: Answerer
    judge: Judge
    offline: bool
    sandbox: str = "not needed: own code"
    obeyers: tuple[Obeyer, ...] = ()
    """Models that choose and act."""

    @property
    def judged(self) -> bool:
        """Whether a model grades; where facts do, there is nothing to calibrate and nothing that drifts."""
        return not isinstance(self.judge, FactJudge)


# The live objects: models where they are configured, honest stand-ins where they are not.

RETRY = RetryPolicy()
_SWITCH_SECONDS = 0.001  # how long a thread that computes may keep the loop from sending and receiving
# What every call would meet and only the user can put right; an empty account or a used-up budget is not a mistake.
_MISTAKES = frozenset({"auth", "not_found"})


@dataclass(frozen=True)
class Traffic:
    """What goes on between us and the models at one moment."""

    sent: int
    in_flight: int
    tokens: int
    usd: float | None


@dataclass(frozen=True)
class Live:
    """Who takes part, and what became of the calls to models, if there were any."""

    roles: Roles
    subject_of: Callable[[Target, ArmName], Subject]
    """Another target with the same models; its arm keeps its calls apart from equal ones."""
    client: ModelClient | None = None
    budget: Budget | None = None
    compresses_with_model: bool = True
    broken_lines: int = 0
    """Of the journal that the run began with."""

    def stopped(self) -> str | None:
        """Say why the run had to stop, if it had to."""
        if self.client is None or self.budget is None:
            return None
        if self.client.stopped is not None:
            return self.client.stopped.message
        if self.client.out:
            return next(iter(self.client.out.values())).message
        if not self.budget.refused:
            return None
        spent = self.budget.spent_usd + self.budget.unsure_usd
        if self.budget.tokens is None:
            return f"the budget of ${self.budget.usd:g} is used up (${spent:.4f} spent); raise it with --budget-usd"
        used = f"{self.budget.spent_tokens:,} of {self.budget.tokens:,} tokens, ${spent:.4f} of ${self.budget.usd:g}"
        return f"the budget is used up ({used}); raise it with --budget-usd or max_tokens_total"

    def mistake(self) -> str | None:
        """Return what is wrong with the configuration, a key or a model's name, where no model ever answered.

        Where another model did, there is something to keep: the run is incomplete and says the same.
        """
        if self.client is None or self.client.served or (self.budget and self.budget.spent_tokens):
            return None
        return next((failed.message for failed in self.client.out.values() if failed.kind in _MISTAKES), None)

    def halted(self) -> str | None:
        """Say why no fixture-run should begin, if so: its compression could not be made, or nobody waits for it."""
        if self.client is None:
            return None
        found = self.client.stopped
        if self.compresses_with_model:
            found = found or self.client.health(self.client.models.compressor).out
        elif self.client.calls_only:
            return None  # what costs nothing is measured, though the models that should judge it cannot be used
        return found.message if found else None

    def stop(self, why: str) -> None:
        """Start no new call."""
        if self.client is not None:
            self.client.stop(why)

    def abandon(self) -> None:
        """Give up the calls under way."""
        if self.client is not None:
            self.client.abandon()

    def traffic(self) -> Traffic | None:
        """Return what goes on; None offline."""
        if self.client is None or self.budget is None:
            return None
        known = self.budget.usd is not None
        usd = self.budget.spent_usd + self.budget.unsure_usd if known else None
        return Traffic(self.client.sent, self.client.in_flight, self.budget.spent_tokens, usd)

    def served(self) -> dict[str, dict[str, int]]:
        """Return which models answered for which."""
        return {model: dict(found) for model, found in self.client.served.items()} if self.client else {}

    def served_judge(self) -> str | None:
        """Return the judge's model as the provider names it, once it has answered."""
        found = self.served().get(self.roles.judge.identity["model"], {})
        return max(found, key=lambda name: found[name], default=None)


async def make_live(
    stack: AsyncExitStack, options: RunOptions, target: Target, journal: Path, budget_usd: float
) -> Live:
    """Make everything that a run needs alive; what must be closed is closed with the stack."""
    models = options.models
    if models is None:
        subject, confined = make_subject(options, target)
        roles = Roles(subject, ExtractiveAnswerer(), FactJudge(), offline=True, sandbox=confined)
        return Live(roles, lambda target, arm: make_subject(options, target)[0])
    from eval_core.judging.answering import ModelAnswerer
    from eval_core.judging.grading import ModelJudge
    from eval_core.judging.obeying import ModelObeyer
    from eval_core.models.credentials import require_keys
    from eval_core.models.transport import load_litellm

    require_keys(models)
    if models.through_litellm:  # once, before anything is timed: the import takes seconds
        await asyncio.to_thread(load_litellm)
    sys.setswitchinterval(_SWITCH_SECONDS)
    client, budget, broken_lines = await _make_client(stack, options, models, journal, budget_usd)

    def subject_of(target: Target, arm: ArmName) -> tuple[Subject, str]:
        async def complete(call: ModelCall) -> Completion | Failed:
            return await client.complete(replace(call, draw=replace(call.draw, arm=arm)))

        return make_subject(options, target, models, complete)

    subject, confined = subject_of(target, "candidate")
    answerer = ExtractiveAnswerer() if models.offline_judge else ModelAnswerer(client)
    judge = FactJudge() if models.offline_judge else ModelJudge(client)
    obeyers = tuple(ModelObeyer(client, model) for model in models.obeying)
    roles = Roles(subject, answerer, judge, offline=False, sandbox=confined, obeyers=obeyers)
    return Live(roles, lambda target, arm: subject_of(target, arm)[0], client, budget, target.asks_model, broken_lines)


def make_subject(
    options: RunOptions, target: Target, models: Models | None = None, complete: Complete | None = None
) -> tuple[Subject, str]:
    """Return a target's subject and a word about its sandbox."""
    return target.subject(
        complete=complete,
        model=None if models is None else models.compressor,
        max_tokens=8_000 if models is None else models.compressor_max_tokens,
        sandbox=options.sandbox,
        hidden=options.hidden,
    )


async def _make_client(
    stack: AsyncExitStack, options: RunOptions, models: Models, journal: Path, budget_usd: float
) -> tuple[ModelClient, Budget, int]:
    """Open the journal and connect the client; return how many lines of the journal could not be read."""
    from eval_core.models.budget import Budget
    from eval_core.models.client import ModelClient
    from eval_core.models.journal import Journal

    settings, deadline_s = options.settings, options.deadline_s
    record = stack.enter_context(Journal(journal, options.sealing))
    budget = Budget(budget_usd, settings.max_tokens_total, carried=record.spent)
    client = await stack.enter_async_context(
        ModelClient(
            models,
            journal=record,
            budget=budget,
            concurrency=settings.concurrency,
            retry=RETRY,
            deadline=None if deadline_s is None else time.monotonic() + deadline_s,
        )
    )
    if deadline_s is not None:
        reached = f"the deadline of {deadline_s / 60:g} minutes was reached"
        timer = asyncio.get_running_loop().call_later(deadline_s, client.stop, reached)
        stack.callback(timer.cancel)
    return client, budget, record.broken_lines
