"""Calls that can wait: gathered, submitted as one batch for each model, and collected by a later process.

What is written down before and after each step is the journal's, so that a process can be killed at any moment: a
batch is marked before it is submitted, and looked for by its mark where the provider's id was never heard.
"""

from __future__ import annotations

import asyncio
import json
import secrets as random
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval_core.base.errors import IncompleteError, WaitingError
from eval_core.base.tokens import count_messages
from eval_core.domain.call import Failed, ModelCall, Role, Usage
from eval_core.models.batch_api import (
    MOST_BYTES,
    MOST_CALLS,
    BatchApi,
    BatchItem,
    BatchProblem,
    BatchRequest,
    batch_api,
    custom_id,
)
from eval_core.models.budget import Budget, Reservation, worst_case
from eval_core.models.journal import Collected, Journal, OpenBatch
from eval_core.models.openai_compatible import DirectConnections
from eval_core.models.prices import Tariff
from eval_core.models.settings import Models

__all__ = ["BatchQueue", "Submitted"]

_MARK_BYTES = 8
_USUAL_OUTPUT: Mapping[Role, int] = {"compressor": 1_250, "answer": 90, "judge": 70}
_WAITS = "waits for a batch"
_GONE = frozenset({404, 410})
_KEPT = 48 * 3_600
"""Seconds in which a batch is made, with a day to spare. A provider that does not know it then will not bring it."""


@dataclass(frozen=True)
class Submitted:
    """What went to the providers."""

    batches: tuple[tuple[str, str, int], ...]
    """The model, the provider's id and the number of calls of each."""
    usd: float | None
    """What they will probably cost; None where a price is unknown."""
    most_usd: float
    deferred: int = 0
    """Calls that the budget has no room for until these are collected."""

    def __str__(self) -> str:
        """Say it in one sentence."""
        calls = sum(count for _, _, count in self.batches)
        each = "; ".join(f"{model}: {count} in {id}" for model, id, count in self.batches)
        price = "at an unknown price" if self.usd is None else f"about ${self.usd:.4f}, at most ${self.most_usd:.4f}"
        later = f"; {self.deferred} more wait until the budget has room" if self.deferred else ""
        return f"submitted {_counted(calls, 'call')} to be made within a day at half price ({each}), {price}{later}"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


@dataclass(frozen=True)
class _Waiting:
    call: ModelCall
    worst: Reservation


def _said(batch: OpenBatch, words: BatchProblem | str) -> str:
    """Return what a provider says of a batch; with private probes in it, it may quote one of them."""
    if not batch.private:
        return str(words)
    status = f"HTTP {words.status}; " if isinstance(words, BatchProblem) and words.status else ""
    return f"{status}the provider's words are not kept, since private probes are among the calls"


class _Refused(Exception):
    """The provider did not begin with a batch, or does not know it."""


class BatchQueue:
    """The batches of one journal."""

    def __init__(
        self,
        models: Models,
        journal: Journal,
        budget: Budget | None,
        tariffs: Mapping[str, Tariff | None],
        connections: DirectConnections,
        secrets: Sequence[str],
    ) -> None:
        """Gather nothing yet: the first calls of a run are made at once."""
        self.open = False
        """Whether calls are gathered instead of made."""
        self._models, self._journal, self._budget = models, journal, budget
        self._tariffs, self._connections, self._secrets = tariffs, connections, secrets
        self._waiting: dict[str, ModelCall] = {}
        self._apis: dict[str, BatchApi] = {}

    def __len__(self) -> int:
        """Return how many calls wait to be submitted."""
        return len(self._waiting)

    def takes(self, call: ModelCall) -> bool:
        """Tell whether a call is gathered: a compressor waits for its own, and opaque states have an API of theirs."""
        return self.open and call.role != "compressor" and call.front is None

    def tariff(self, model: str) -> Tariff | None:
        """Return what calls in a batch cost."""
        price = self._tariffs.get(model)
        return None if price is None else price.halved

    def reply(self, key: str) -> tuple[Collected, Reservation] | None:
        """Return what a batch brought for a call that is not finished, and what was set aside for it."""
        found = self._journal.collected(key)
        return None if found is None else (found[0], Reservation(found[1], found[2]))

    def add(self, key: str, call: ModelCall) -> Failed:
        """Gather a call. Its worst case is set aside when it is submitted, so that calls that are made now go first."""
        self._waiting.setdefault(key, call)
        return Failed("queued", True, _WAITS)

    def _api(self, model: str) -> BatchApi:
        if model not in self._apis:
            self._apis[model] = batch_api(self._models, model, self._connections, self._secrets)
        return self._apis[model]

    # Collecting: what earlier processes submitted.

    async def collect(self) -> None:
        """Take in every batch that has ended; while one has not, nothing new is sent and the run is incomplete."""
        open_ones: list[str] = []
        failed = False
        for batch in self._journal.open_batches:
            try:
                problem = await self._collect(batch)
            except _Refused as exc:
                failed, problem = True, str(exc)
            except BatchProblem as exc:
                failed = True
                problem = f"the batch of {batch.model} cannot be asked about: {_said(batch, exc)}"
            if problem is not None:
                open_ones.append(problem)
        if open_ones:
            raise (IncompleteError if failed else WaitingError)(
                f"{'; '.join(open_ones)}. Nothing was sent; the same command with --resume asks again"
            )

    async def _collect(self, batch: OpenBatch) -> str | None:
        """Take one batch in, or say why that is not possible yet."""
        api = await asyncio.to_thread(self._api, batch.model)
        id = batch.id
        if id is None:
            id = await api.find(batch.mark, batch.since, len(batch.keys))
            if id is None:
                await self._end(batch, "the batch was never submitted")
                return None
            await self._journal.submitted(batch.mark, id)
        try:
            return await self._take_in(batch, id, api)
        except BatchProblem as exc:
            if exc.status not in _GONE:
                raise
            if time.time() < batch.since + _KEPT:
                day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(batch.since + _KEPT))
                asked = f"was it submitted with another key or --api-base? Its calls are made again after {day} UTC"
                raise _Refused(
                    f"the batch of {batch.model} cannot be asked about: {_said(batch, exc)}; {asked}"
                ) from None
            await self._end(batch, "the provider no longer knows the batch", batch.keys)
            return None

    async def _take_in(self, batch: OpenBatch, id: str, api: BatchApi) -> str | None:
        state = await api.state(id)
        if state.state == "running":
            return f"{id} of {batch.model} is still running: {state.done} of {state.total} calls are done"
        if state.state == "refused":
            why = _said(batch, state.problem)
            await self._end(batch, why)
            raise _Refused(
                f"{id} of {batch.model} was refused: {why}. Its calls cost nothing and are submitted again; "
                "leave out --batch to make them one by one"
            )
        unheard = set(batch.keys) if state.done else set()
        for key, item in _by_key(batch, await api.items(id, state)):
            unheard.discard(key)
            if item.status:
                self._journal.collect(key, Collected(item.status, item.body))
        await self._end(batch, "the batch ended without a reply to it", unheard)
        return None

    async def _end(self, batch: OpenBatch, why: str, lost: Collection[str] = ()) -> None:
        """Close a batch; what was set aside for calls without a reply is free again, unless they may have been made."""
        before = self._journal.spent
        await self._journal.ended(batch, why, lost)
        if self._budget is not None:
            after = self._journal.spent
            self._budget.unsure_usd = max(0.0, self._budget.unsure_usd - before.unsure_usd + after.unsure_usd)
            self._budget.unsure_tokens = max(0, self._budget.unsure_tokens - before.unsure_tokens + after.unsure_tokens)

    # Submitting: what was gathered in this process.

    async def submit(self) -> Submitted | None:
        """Submit what was gathered, one batch for each model; None when there is nothing."""
        chosen = await asyncio.to_thread(self._affordable)
        if self._budget is not None and not chosen:
            self._budget.refused += len(self._waiting)
        made: list[tuple[str, str, int]] = []
        usd: float | None = 0.0
        most = 0.0
        for model in self._models.distinct:
            calls = {key: item for key, item in chosen.items() if item.call.model == model}
            for mark, keys, requests in await asyncio.to_thread(self._parts, model, calls) if calls else ():
                part = {key: calls[key] for key in keys}
                made.append((model, await self._submit(model, mark, part, requests), len(part)))
                expected = self._expected(model, part.values())
                usd = None if usd is None or expected is None else usd + expected
                most += sum(item.worst.usd for item in part.values())
        for key in chosen:
            del self._waiting[key]
        return Submitted(tuple(made), usd, most, len(self._waiting)) if made else None

    def _affordable(self) -> dict[str, _Waiting]:
        """Set the worst case of each call aside, and return the calls for which there is room."""
        chosen = {}
        for key, call in self._waiting.items():
            item = _Waiting(call, worst_case(call, self.tariff(call.model)))
            if self._budget is None or self._budget.set_aside(item.worst):
                chosen[key] = item
        return chosen

    def _parts(self, model: str, calls: Mapping[str, _Waiting]) -> list[tuple[str, list[str], list[BatchRequest]]]:
        """Split the calls to a model where the providers' limits ask for it, each part under a mark of its own."""
        api = self._api(model)
        parts: list[tuple[str, list[str], list[BatchRequest]]] = []
        size = 0
        for key, item in calls.items():
            if not parts or len(parts[-1][1]) >= MOST_CALLS or size >= MOST_BYTES:
                parts.append((random.token_hex(_MARK_BYTES), [], []))
                size = 0
            mark, keys, requests = parts[-1]
            keys.append(key)
            requests.append(api.request(custom_id(mark, key), item.call))
            size += len(json.dumps(requests[-1].body))
        return parts

    async def _submit(
        self, model: str, mark: str, calls: Mapping[str, _Waiting], requests: Sequence[BatchRequest]
    ) -> str:
        private = any(item.call.private for item in calls.values())
        batch = OpenBatch(mark, model, int(time.time()), private=private)
        aside = {key: (item.worst.usd, item.worst.tokens, item.call.private) for key, item in calls.items()}
        await self._journal.queue(batch, aside)
        try:
            id = await self._api(model).submit(mark, requests)
        except BatchProblem as exc:
            if exc.sure:
                await self._end(batch, _said(batch, exc))
                raise IncompleteError(f"the batch of {model} was not submitted: {_said(batch, exc)}") from None
            raise IncompleteError(
                f"whether the batch of {model} was submitted is not known: {_said(batch, exc)}. The same command with "
                "--resume looks for it at the provider"
            ) from None
        await self._journal.submitted(mark, id)
        return id

    def _expected(self, model: str, items: Iterable[_Waiting]) -> float | None:
        price = self.tariff(model)
        if price is None:
            return None
        return sum(
            price.cost(Usage(count_messages(item.call.messages), 0, _USUAL_OUTPUT[item.call.role])) for item in items
        )


def _by_key(batch: OpenBatch, items: Iterable[BatchItem]) -> Iterator[tuple[str, BatchItem]]:
    """Find the call of each reply; a provider's file is foreign data, and what it names twice counts once."""
    keys = {custom_id(batch.mark, key): key for key in batch.keys}
    for item in items:
        if (key := keys.pop(item.id, None)) is not None:
            yield key, item
