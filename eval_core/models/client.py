"""The one way to a model: journal, gate, budget, slot, attempt, and again if that can help."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from eval_core.base.messages import Message
from eval_core.base.tokens import count_text
from eval_core.domain.call import Acceptance, ArmName, Completion, Draw, Failed, FailureKind, ModelCall, Usage
from eval_core.models.budget import Budget, Reservation, count_ahead
from eval_core.models.credentials import key_name
from eval_core.models.faults import Fault
from eval_core.models.health import ModelHealth, remedy
from eval_core.models.journal import Journal, call_key
from eval_core.models.limiter import Limiter, rate_window
from eval_core.models.openai_compatible import DirectConnections
from eval_core.models.prices import Tariff
from eval_core.models.refusals import refusal_in
from eval_core.models.retry import RetryPolicy
from eval_core.models.settings import Endpoint, Models, environment_secrets
from eval_core.models.transport import (
    Attempt,
    PrefixGate,
    close_connections,
    load_litellm,
    prefix_digest,
    send,
    with_thinking,
)

# What others wait for first. A grade goes before the next answer, so that fixture-runs end one after the other and
# are evaluated while others are still being answered; controls, which nobody waits for, fill the gaps and the end.
_PRIORITY = {"compressor": 0, "judge": 20, "answer": 30}
_CONTROLS = {"compressor": 0, "answer": 40, "judge": 50}
_LEADER = 10
_OF_THE_PROMPT = frozenset({"empty", "refusal", "malformed", "bad_request", "timeout"})
"""What a prompt can bring about: a reply, paid for, that is of no use, or none, or one without end."""
_REPLIED = frozenset({"empty", "refusal", "truncated", "malformed"})
_PLAIN_QUESTION: tuple[Message, ...] = ({"role": "user", "content": "Reply with the single word: yes"},)
_PLAIN_ROOM = 64
_MORE_ROOM = 2  # by how much the limit of a reply grows that was cut off


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
        deadline: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Check that the budget can be kept with the prices that are known; the deadline is a moment of the clock."""
        self.models = models
        self.deadline = deadline
        self.budget = budget
        self.retry = retry or RetryPolicy()
        self.stopped: Failed | None = None
        """Why no new call starts, whatever the model."""
        self.calls_only = False
        """Whether what needs no model may go on all the same."""
        self.served: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Which model answered for which, as the providers named it."""
        self.sent = 0
        self.count: Callable[[str], int] = count_text
        """How long a prompt is, for the worst case that is set aside."""
        self._journal = journal
        self._concurrency = concurrency
        self._clock, self._sleep = clock, sleep
        self._tariffs = {model: models.tariff(model) for model in models.distinct}
        if budget is not None:
            budget.require_prices(models.distinct, self._tariffs)
        keys = [key.reveal() for key in (models.key, *models.keys.values()) if key is not None]
        self._secrets = (*environment_secrets(os.environ), *keys)
        self.gate = PrefixGate()
        self._limiters: dict[str, Limiter] = {}
        self._running: dict[str, asyncio.Task[Completion | Failed]] = {}
        self._health: dict[str, ModelHealth] = {}
        self._compressors: dict[tuple[str, ArmName], ModelHealth] = {}
        self._afresh: dict[ArmName, int] = {}
        self._plain_questions: dict[str, asyncio.Task[Completion | Failed]] = {}
        self._stopping = asyncio.Event()
        self._direct = DirectConnections()
        self._loaded: asyncio.Task[object] | None = None

    async def __aenter__(self) -> Self:
        """Use the client; leaving closes its connections."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Drop what is under way and close the connections."""
        self.abandon()
        await asyncio.gather(*self._running.values(), return_exceptions=True)
        for limiter in self._limiters.values():
            limiter.close()
        if self._journal is not None:
            await self._journal.drain()
        await self._direct.aclose()
        if self._loaded is not None:
            await close_connections()

    @property
    def in_flight(self) -> int:
        """The number of requests that are with a provider right now."""
        return sum(limiter.active for limiter in self._limiters.values())

    def health(self, model: str) -> ModelHealth:
        if model not in self._health:
            key = key_name(self.models, model)
            self._health[model] = ModelHealth(model, self._clock, lambda: self.deadline, key)
        return self._health[model]

    @property
    def out(self) -> dict[str, Failed]:
        """The models that get no more calls, from anybody or from a compressor, and why."""
        states = [*((model, state) for (model, _), state in self._compressors.items()), *self._health.items()]
        return {model: state.out for model, state in states if state.out is not None}

    def stop(self, why: str, *, calls_only: bool = False) -> None:
        """Start no new call; those under way may end. With `calls_only`, what needs no model goes on."""
        if self.stopped is None:
            self.stopped = Failed("stopped", True, why)
            self.calls_only = calls_only
            self._stopping.set()
            self._wake()

    async def finish(self, seconds: float) -> None:
        """Wait for what is under way, so long at most: it is being paid for."""
        if self._running:
            await asyncio.wait(self._running.values(), timeout=seconds)

    def abandon(self) -> None:
        """Give up what is under way: its worst case stays in the journal."""
        for task in list(self._running.values()):
            task.cancel()

    def _wake(self) -> None:
        for limiter in self._limiters.values():
            limiter.resume()

    def _refusal(self, call: ModelCall) -> Failed | None:
        """Say why this call may not start now, if so."""
        if self.stopped is None and self.deadline is not None and self._clock() >= self.deadline:
            self.stop("the deadline was reached")
        return self.stopped or self.health(call.model).out or self._state(call, "empty").out

    def _state(self, call: ModelCall, kind: FailureKind) -> ModelHealth:
        """Return whose state a failure is held against: a compressor may have asked for a reply that is of no use.

        Its prompts are a stranger's, so what they bring about stops the compressor of that arm and nobody else. Those
        of controls are ours.
        """
        if not call.by_compressor or kind not in _OF_THE_PROMPT:
            return self.health(call.model)
        return self._compressors.setdefault(
            (call.model, call.draw.arm),
            ModelHealth(f"{call.model}, asked by the compressor", self._clock, lambda: self.deadline),
        )

    @contextmanager
    def asking_afresh(self, arm: ArmName) -> Iterator[None]:
        """Make the calls of an arm's compressor as new draws, and hold nothing against what it asked before or asks."""
        self._compressors.pop((self.models.compressor, arm), None)
        self._afresh[arm] = time.time_ns() // 1_000
        try:
            yield
        finally:
            del self._afresh[arm]
            self._compressors.pop((self.models.compressor, arm), None)

    async def _pause(self, seconds: float, health: ModelHealth) -> None:
        """Wait, but not for a model that is out or a run that stops."""
        waits = [
            asyncio.ensure_future(wait) for wait in (self._sleep(seconds), health.gone.wait(), self._stopping.wait())
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def complete(self, call: ModelCall, acceptance: Acceptance | None = None) -> Completion | Failed:
        """Answer from the journal, join an equal call under way, or make the call."""
        call = self._as_sent(call)
        if call.by_compressor and (again := self._afresh.get(call.draw.arm)):
            call = replace(call, draw=replace(call.draw, repeat=again))
        key = call_key(call) if self._journal is None else self._journal.key(call)
        if self._journal is not None and (found := self._journal.lookup(key)) is not None:
            self.served[call.model][found.model] += 1
            return _heard(found, call)
        task = self._running.get(key)
        joined = task is not None
        if task is None:
            task = self._running[key] = asyncio.create_task(self._first(call, key, acceptance))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        # Shielded: a caller who goes away must not throw away what is being paid for.
        try:
            outcome = await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and self.stopped is not None:
                return self.stopped
            raise
        return replace(outcome, cached=True) if joined and isinstance(outcome, Completion) else outcome

    def _as_sent(self, call: ModelCall) -> ModelCall:
        """Add the model's parameters and room for its thinking, up to the most that it can write."""
        if params := self.models.params.get(call.model):
            call = replace(call, params={**params, **call.params})
        call = with_thinking(call)
        most = self.models.endpoint(call.model).max_output
        return call if most is None or call.max_tokens <= most else replace(call, max_tokens=most)

    async def _first(self, call: ModelCall, key: str, acceptance: Acceptance | None) -> Completion | Failed:
        priority = (_CONTROLS if call.draw.control else _PRIORITY)[call.role]
        async with self.gate.enter(prefix_digest(call)) as leads:
            return await self._attempts(call, key, acceptance, priority - (_LEADER if leads else 0))

    async def _attempts(
        self, call: ModelCall, key: str, acceptance: Acceptance | None, priority: int
    ) -> Completion | Failed:
        used = self._journal.wasted(key) if self._journal is not None else Usage()
        failures: Counter[FailureKind] = Counter()
        endpoint, health = self.models.endpoint(call.model), self.health(call.model)
        began: float | None = None
        kept = ""
        asked_plainly = False
        while True:
            attempt = await self._attempt(call, key, endpoint, acceptance, priority)
            if isinstance(attempt, Failed):
                return replace(attempt, usage=used)
            began = self._clock() - attempt.seconds if began is None else began
            if attempt.usage is not None:
                used = used.plus(attempt.usage)
            if attempt.fault is None:
                self.served[call.model][attempt.served_by] += 1
                done = Completion(attempt.text, used, attempt.served_by, attempt.seconds, calls=attempt.calls)
                return _heard(done, call)
            fault = attempt.fault
            if fault.unproven and call.by_compressor and not asked_plainly:
                asked_plainly, known = True, self._direct.known(endpoint)
                if (fault_of_the_model := await self._ask_plainly(call)) is not None:
                    return replace(fault_of_the_model, usage=used)
                if self._direct.known(endpoint) != known and await _may_ask_again(call):
                    continue  # the question showed what the model does not take; without that, it may well answer
            failures[fault.kind] += 1
            if fault.kind == "truncated":
                kept = max(kept, attempt.text, key=len)
            wait = self._wait(call, key, fault, failures[fault.kind], self._clock() - began)
            if wait is None or not await _may_ask_again(call):
                return self._given_up(call, fault, failures.total(), used, kept)
            call = _amended(call, attempt.text, fault, acceptance, endpoint.max_output)
            await self._pause(wait, health)

    def _wait(self, call: ModelCall, key: str, fault: Fault, failures: int, elapsed: float) -> float | None:
        """Return how long to wait before the next attempt; None where none is worth it."""
        if fault.kind == "truncated" and call.role == "compressor":
            # The limit is its own, or the most that it may have. More room would measure something else.
            return None
        health = self.health(call.model)
        too_long = fault.retry_after is not None and health.too_long(fault.retry_after)
        return self.retry.delay(
            fault.kind,
            failures,
            elapsed=elapsed,
            retry_after=None if too_long else fault.retry_after,
            seed=key,
            # A schema that is refused is not refused by chance; the caller knows how to ask without one.
            answered=health.answered > 0 and call.response_schema is None,
        )

    async def _ask_plainly(self, call: ModelCall) -> Failed | None:
        """Ask a compressor's model something harmless; return why it does not answer us either, if so.

        An error may quote what the compressor wrote, so its words do not tell a rejected request from an empty account
        or a wrong key. Nobody but us writes this question.
        """
        asking = self._plain_questions.get(call.model)
        if asking is None:
            plain = ModelCall(
                role="compressor",
                model=call.model,
                messages=_PLAIN_QUESTION,
                max_tokens=_PLAIN_ROOM,
                draw=Draw(control=True, repeat=time.time_ns() // 1_000),
                # Every model that takes a temperature takes one up to this.
                temperature=None if call.temperature is None else min(call.temperature, 1.0),
            )
            asking = self._plain_questions[call.model] = asyncio.create_task(self.complete(plain))
            asking.add_done_callback(lambda _: self._plain_questions.pop(call.model, None))
        answer = await asyncio.shield(asking)
        if isinstance(answer, Completion) or answer.kind in _REPLIED:
            return None
        # A model that rejects our own question as a bad one rejects everything; the compressor's was none.
        return replace(answer, kind="unknown") if answer.kind == "bad_request" else answer

    def _given_up(self, call: ModelCall, fault: Fault, tries: int, used: Usage, kept: str) -> Failed:
        again = f" (gave up after {tries} attempts)" if tries > 1 else ""
        asked = f"; the provider asks to wait {fault.retry_after:g} s" if fault.retry_after else ""
        hint, health = "", self.health(call.model)
        if fault.kind == "not_found" and self.models.endpoint(call.model).direct and "/" in call.model:
            hint = f"; the name is sent as it is: does the server know it as {call.model!r}?"
        elif not health.answered and (advice := remedy(fault.kind, health.key)):
            hint = f"; {advice}"
        return Failed(
            fault.kind,
            self.retry.retryable(fault.kind),
            f"{call.model}: {fault.message}{asked}{hint}{again}",
            used,
            kept,
        )

    async def _attempt(
        self, call: ModelCall, key: str, endpoint: Endpoint, acceptance: Acceptance | None, priority: int
    ) -> Attempt | Failed:
        """Make one request, with its slot held and its worst case reserved; write down what it came to."""
        if (refusal := self._refusal(call)) is not None:
            return refusal
        limiter = self._limiter(endpoint.provider)
        if not endpoint.direct:
            await self._load()
        price = self._tariffs.get(call.model)
        if self.budget is not None and self.count is count_text:
            await count_ahead(call)  # here, where no slot waits for it
        async with limiter.slot(priority) as granted_at:
            if (refusal := self._refusal(call)) is not None:
                return refusal
            held: Reservation | None = None
            if self.budget is not None:
                reserved = await self.budget.reserve(call, price, self.count)
                if isinstance(reserved, Failed):
                    return reserved
                held = reserved
            try:
                attempt = await self._send(call, key, endpoint, held)
            except BaseException:
                if self.budget is not None and held is not None:
                    self.budget.lose(held)
                raise
            attempt = self._concluded(call, attempt, held, acceptance, price)
            if call.passage is not None:
                call.passage.returned(attempt.usage, attempt.fault.kind if attempt.fault else None, lost=_lost(attempt))
            self._adapt(limiter, attempt, granted_at, health=self.health(call.model))
        await self._write_down(call, key, attempt)
        return attempt

    async def _send(self, call: ModelCall, key: str, endpoint: Endpoint, held: Reservation | None) -> Attempt:
        if self._journal is not None:
            self._journal.sent(key, held.usd if held else 0.0, held.tokens if held else 0)
        self.sent += 1
        if call.passage is not None:
            call.passage.left()
        seconds = min(endpoint.seconds, self.retry.attempt_seconds or endpoint.seconds)
        post = self._direct.send if endpoint.direct and call.front is None else send
        return await post(call, endpoint, seconds, self._secrets)

    def _concluded(
        self,
        call: ModelCall,
        attempt: Attempt,
        held: Reservation | None,
        acceptance: Acceptance | None,
        price: Tariff | None,
    ) -> Attempt:
        """Price a reply, hold it against what its caller can use, and charge it."""
        if attempt.usage is not None:
            cost = None if price is None else price.cost(attempt.usage)
            attempt = replace(attempt, usage=replace(attempt.usage, cost_usd=cost))
        attempt = _judged(attempt, acceptance)
        said = refusal_in(attempt.text) if attempt.fault is None and acceptance is None else None
        refused = Fault("refusal", f"the model refused: {said}", "yes") if said else None
        if refused is not None and call.role != "compressor":
            attempt = replace(attempt, fault=refused)
        if attempt.fault is not None and attempt.fault.unproven and call.by_compressor:
            # Its own bad request, until the model does not answer the evaluator either.
            attempt = replace(attempt, fault=replace(attempt.fault, kind="bad_request", retry_after=None))
        if call.private:
            attempt = _without_quotations(attempt)
        self._account(attempt, held)
        problem = attempt.fault or refused
        if problem is None or (problem.kind == "truncated" and call.role == "compressor"):
            self.health(call.model).succeeded()
            self._state(call, "empty").succeeded()
        else:
            health = self._state(call, problem.kind)
            health.failed(problem, attempt.seconds)
            if health.out is not None:
                self._wake()
        return attempt

    def _account(self, attempt: Attempt, held: Reservation | None) -> None:
        if self.budget is None or held is None:
            return
        if _lost(attempt):
            self.budget.lose(held)
        else:
            self.budget.charge(held, attempt.usage)

    def _adapt(self, limiter: Limiter, attempt: Attempt, granted_at: float, health: ModelHealth) -> None:
        fault = attempt.fault
        if fault is not None and fault.kind in ("server", "connection") and health.failing and health.out is None:
            # An outage is waited out with a few calls, not with all of them: some failures are paid for.
            limiter.throttled(granted_at, self.retry.outage_seconds)
            return
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


async def _may_ask_again(call: ModelCall) -> bool:
    return call.passage is None or await call.passage.again(call)


def _heard(done: Completion, call: ModelCall) -> Completion:
    """Mark a refusal that a compressor gets in place of its summary: it goes on with it, as it would at work."""
    return replace(done, refusal=refusal_in(done.text) or "") if call.role == "compressor" else done


def _judged(attempt: Attempt, acceptance: Acceptance | None) -> Attempt:
    """Hold a reply against what its caller can use: one that was cut off behind the last word needed will do."""
    if acceptance is None or (attempt.fault is not None and attempt.fault.kind != "truncated"):
        return attempt
    problem = acceptance.problem(attempt.text)
    if problem is None:
        return replace(attempt, fault=None)
    return attempt if attempt.fault else replace(attempt, fault=Fault("malformed", problem, "yes"))


def _without_quotations(attempt: Attempt) -> Attempt:
    """Leave the kind of a fault and drop its words: providers quote prompts in their errors, and we quote replies."""
    if attempt.fault is None or attempt.fault.kind == "truncated":
        return attempt  # our own words, with nothing of the reply in them; the next attempt is told them
    said = f"failed ({attempt.fault.kind}); the words are not kept, since a private probe was asked"
    return replace(attempt, fault=replace(attempt.fault, message=said))


def _lost(attempt: Attempt) -> bool:
    """Tell whether an attempt may have been charged, and nobody knows how much."""
    return attempt.usage is None and attempt.fault is not None and attempt.fault.charge == "unsure"


def _amended(
    call: ModelCall, text: str, fault: Fault, acceptance: Acceptance | None, max_output: int | None
) -> ModelCall:
    """Change a call after a reply that was of no use: say what is wrong with it, or give it more room."""
    if acceptance is not None and fault.kind in ("malformed", "truncated"):
        # Looked at again: the words about a private reply are not in the fault, and the model may know them.
        problem = acceptance.problem(text) if fault.kind == "malformed" else None
        call = replace(call, messages=acceptance.amend(problem or fault.message))
    if fault.kind == "truncated":
        call = replace(call, max_tokens=_more_room(call.max_tokens, max_output))
    return call


def _more_room(max_tokens: int, most: int | None) -> int:
    return max(max_tokens, min(_MORE_ROOM * max_tokens, most or _MORE_ROOM * max_tokens))
