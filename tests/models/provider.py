"""A client on a loopback provider, with everything that takes time replaced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_core.base.config import Price
from eval_core.domain.call import Draw, ModelCall
from eval_core.models.budget import Budget
from eval_core.models.client import ModelClient
from eval_core.models.journal import Journal
from eval_core.models.retry import RetryPolicy
from eval_core.models.settings import Models
from tests.model_provider import Asked, LoopbackProvider

from .faketime import FakeTime

MODEL = "loop"


def models_at(base_url: str, **settings: Any) -> Models:
    return Models(MODEL, MODEL, MODEL, api_base=base_url, prices={MODEL: Price(input=1, output=2)}, **settings)


def call(text: str = "hello", **fields: Any) -> ModelCall:
    draw = {"draw": Draw(fields.pop("run"))} if "run" in fields else {}
    values: dict[str, Any] = {**draw, "role": "answer", "model": MODEL, "max_tokens": 50, **fields}
    return ModelCall(messages=({"role": "user", "content": text},), **values)


def only_first(fault: str, times: int = 1) -> Callable[[Asked], str | None]:
    """Misbehave in the first requests, then behave."""
    return lambda asked: fault if asked.number < times else None


@dataclass
class Bench:
    provider: LoopbackProvider
    client: ModelClient
    journal: Journal | None
    time: FakeTime


@asynccontextmanager
async def bench(
    folder: Path | None = None,
    *,
    behave: Callable[[Asked], str | None] | None = None,
    provider: LoopbackProvider | None = None,
    usd: float | None = None,
    tokens: int | None = None,
    attempt_seconds: float = 20.0,
    concurrency: int = 16,
    settings: dict[str, Any] | None = None,
) -> AsyncIterator[Bench]:
    time = FakeTime()
    async with provider or LoopbackProvider(behave=behave) as server:
        journal = Journal(folder / "journal.jsonl") if folder else None
        budget = Budget(usd, tokens, carried=journal.spent if journal else None) if usd or tokens else None
        try:
            async with ModelClient(
                models_at(server.base_url, **(settings or {})),
                journal=journal,
                budget=budget,
                concurrency=concurrency,
                retry=RetryPolicy(attempt_seconds=attempt_seconds),
                clock=time.clock,
                sleep=time.sleep,
            ) as client:
                yield Bench(server, client, journal, time)
        finally:
            if journal:
                journal.close()
