"""Makes calls until it is killed; started by test_kill through a fork server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from eval_core.models.budget import Budget
from eval_core.models.client import ModelClient
from eval_core.models.journal import Journal
from eval_core.models.retry import RetryPolicy
from tests.model_provider import LoopbackProvider

from .provider import call, models_at


def work(folder: str, base_url: str, calls: int) -> None:
    async def scene() -> None:
        with Journal(Path(folder) / "journal.jsonl") as journal:
            budget = Budget(5.0, carried=journal.spent)
            async with ModelClient(
                models_at(base_url), journal=journal, budget=budget, concurrency=4, retry=RetryPolicy(base_seconds=0.01)
            ) as client:
                await asyncio.gather(*(client.complete(call(f"call {n}", run=n)) for n in range(calls)))

    asyncio.run(scene())


async def _warm_up() -> None:
    async with LoopbackProvider() as provider, ModelClient(models_at(provider.base_url)) as client:
        await client.complete(call())


# On import: the fork server pays once for what the first call of a process costs, and its children start at once.
asyncio.run(_warm_up())
