"""The one way to a model: journal, gate, budget, slot, attempt, and again if that can help."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from eval_core.domain.call import Acceptance, Completion, Failed, FailureKind, ModelCall, Usage
from eval_core.models.budget import Budget, Reservation, worst_tokens
from eval_core.models.faults import Fault
from eval_core.models.journal import Journal, call_key
from eval_core.models.limiter import Limiter, rate_window
from eval_core.models.prices import tariff
from eval_core.models.retry import RetryPolicy
from eval_core.models.settings import Endpoint, Models, environment_secrets
from eval_core.models.transport import Attempt, PrefixGate, close_connections, load_litellm, send

__all__ = ["ModelClient"]

# The longest chains first: what others wait for is sent before what nobody waits for.
_PRIORITY = {"compressor": 0, "answer": 20, "judge": 30}
_LEADER = 10
# Failures that every other call to the same model would meet as well.
_FATAL = frozenset({"auth", "payment", "not_found"})


class ModelClient:
    """Completes calls; provider faults come back as values, never as exceptions."""

    def __init__(
        self,
        models: Models,
        *,
        journal: Journal | None = None,
        budget: Budget | None = None,
        concurrency: int = 16,
        retry: RetryPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Check that the budget can be kept with the prices that are known."""
        self.models = models
        self.budget = budget
        self.retry = retry or RetryPolicy()
        self.fatal: dict[str, Failed] = {}
        """Models that are out of reach for good, and why."""
        self.served: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Which model answered for which, as the providers named it."""
        self.sent = 0
        self._journal = journal
        self._concurrency = concurrency
        self._clock, self._sleep = clock, sleep
        self._tariffs = {model: tariff(model, models.prices) for model in models.distinct}
        if budget is not None:
            budget.require_prices(models.distinct, self._tariffs)
        secrets = environment_secrets(os.environ)
        self._secrets = (*secrets, models.key.reveal()) if models.key else secrets
        self._gate = PrefixGate()
        self._limiters: dict[str, Limiter] = {}
        self._running: dict[str, asyncio.Task[Completion | Failed]] = {}
        self._loaded: asyncio.Task[object] | None = None

    async def __aenter__(self) -> Self:
        """Use the client; leaving closes its connections."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        await self.aclose()

    async def aclose(self) -> None:
        """Drop what is under way and close the connections."""
        for task in list(self._running.values()):
            task.cancel()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        for limiter in self._limiters.values():
            limiter.close()
        if self._journal is not None:
            await self._journal.drain()
        if self._loaded is not None:
            await close_connections()

    @property
    def in_flight(self) -> int:
        """The number of requests that are with a provider right now."""
        return sum(limiter.active for limiter in self._limiters.values())

    async def complete(self, call: ModelCall, acceptance: Acceptance | None = None) -> Completion | Failed:
        """Answer from the journal, join an equal call under way, or make the call."""
        if params := self.models.params.get(call.model):
            call = replace(call, params={**params, **call.params})
        key = call_key(call)
        if self._journal is not None and (found := self._journal.lookup(key)) is not None:
            self.served[call.model][found.model] += 1
            return found
        task = self._running.get(key)
        joined = task is not None
        if task is None:
            task = self._running[key] = asyncio.create_task(self._first(call, key, acceptance))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        # Shielded: a caller who goes away must not throw away what is being paid for.
        outcome = await asyncio.shield(task)
        return replace(outcome, cached=True) if joined and isinstance(outcome, Completion) else outcome

    async def _first(self, call: ModelCall, key: str, acceptance: Acceptance | None) -> Completion | Failed:
        async with self._gate.enter(call.prefix) as leads:
            return await self._attempts(call, key, acceptance, _PRIORITY[call.role] - (_LEADER if leads else 0))

    async def _attempts(
        self, call: ModelCall, key: str, acceptance: Acceptance | None, priority: int
    ) -> Completion | Failed:
        await self._load()
        used = self._journal.wasted(key) if self._journal is not None else Usage()
        failures: Counter[FailureKind] = Counter()
        endpoint = self.models.endpoint(call.model)
        began: float | None = None
        while True:
            attempt = await self._attempt(call, key, endpoint, acceptance, priority)
            if isinstance(attempt, Failed):
                return replace(attempt, usage=used)
            began = self._clock() - attempt.seconds if began is None else began
            if attempt.usage is not None:
                used = used.plus(attempt.usage)
            if attempt.fault is None:
                self.served[call.model][attempt.served_by] += 1
                return Completion(attempt.text, used, attempt.served_by, attempt.seconds, calls=attempt.calls)
            fault = attempt.fault
            failures[fault.kind] += 1
            wait = self.retry.delay(
                fault.kind,
                failures[fault.kind],
                elapsed=self._clock() - began,
                retry_after=fault.retry_after,
                seed=key,
            )
            if wait is None:
                tries = failures.total()
                again = f" (gave up after {tries} attempts)" if tries > 1 else ""
                asked = f"; the provider asks to wait {fault.retry_after:g} s" if fault.retry_after else ""
                failed = Failed(
                    fault.kind,
                    self.retry.retryable(fault.kind),
                    f"{call.model}: {fault.message}{asked}{again}",
                    used,
                )
                if fault.kind in _FATAL and "HTTP 403" not in fault.message:
                    self.fatal.setdefault(call.model, failed)
                return failed
            if acceptance is not None and fault.kind in ("malformed", "truncated"):
                call = replace(call, messages=acceptance.amend(fault.message))
            await self._sleep(wait)

    async def _attempt(
        self, call: ModelCall, key: str, endpoint: Endpoint, acceptance: Acceptance | None, priority: int
    ) -> Attempt | Failed:
        """Make one request, with its slot held and its worst case reserved; write down what it came to."""
        limiter = self._limiter(endpoint.provider)
        price = self._tariffs.get(call.model)
        if self.budget is not None:
            # Counted ahead, where no slot waits for it, and in a thread: the tokenizer really runs beside the loop.
            await asyncio.to_thread(worst_tokens, call)
        async with limiter.slot(priority) as granted_at:
            if call.model in self.fatal:
                return self.fatal[call.model]
            held: Reservation | None = None
            if self.budget is not None:
                reserved = await self.budget.reserve(call, price)
                if isinstance(reserved, Failed):
                    return reserved
                held = reserved
            try:
                if self._journal is not None:
                    self._journal.sent(key, held.usd if held else 0.0, held.tokens if held else 0)
                self.sent += 1
                attempt = await send(call, endpoint, self.retry.attempt_seconds, self._secrets)
            except BaseException:
                if self.budget is not None and held is not None:
                    self.budget.lose(held)
                raise
            if attempt.usage is not None:
                cost = None if price is None else price.cost(attempt.usage)
                attempt = replace(attempt, usage=replace(attempt.usage, cost_usd=cost))
            if acceptance is not None and attempt.fault is None:
                problem = acceptance.problem(attempt.text)
                if problem is not None:
                    attempt = replace(attempt, fault=Fault("malformed", problem, "yes"))
            self._account(attempt, held)
            self._adapt(limiter, attempt, granted_at)
        await self._write_down(call, key, attempt)
        return attempt

    def _account(self, attempt: Attempt, held: Reservation | None) -> None:
        if self.budget is None or held is None:
            return
        if attempt.usage is None and attempt.fault is not None and attempt.fault.charge == "unsure":
            self.budget.lose(held)
        else:
            self.budget.settle(held, attempt.usage)

    def _adapt(self, limiter: Limiter, attempt: Attempt, granted_at: float) -> None:
        fault = attempt.fault
        if fault is not None and fault.kind == "rate_limit":
            limiter.throttled(granted_at, fault.retry_after)
        elif attempt.usage is not None:
            limiter.succeeded(rate_window(attempt.headers, datetime.now(UTC)))

    async def _write_down(self, call: ModelCall, key: str, attempt: Attempt) -> None:
        if self._journal is None:
            return
        usage = attempt.usage or Usage()
        if attempt.fault is None:
            await self._journal.done(key, call, attempt.text, attempt.served_by, usage, attempt.seconds, attempt.calls)
        else:
            failed = Failed(attempt.fault.kind, False, attempt.fault.message, usage)
            await self._journal.failed(key, call, failed, attempt.fault.charge)

    def _limiter(self, provider: str) -> Limiter:
        if provider not in self._limiters:
            self._limiters[provider] = Limiter(self._concurrency, clock=self._clock, sleep=self._sleep)
        return self._limiters[provider]

    async def _load(self) -> None:
        """Import litellm once, in a thread: it takes seconds, in which other work goes on."""
        if self._loaded is None:
            self._loaded = asyncio.create_task(asyncio.to_thread(load_litellm))
        await self._loaded
