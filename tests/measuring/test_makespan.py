"""What keeps a run close to the shortest possible time, told without a clock."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from eval_core.base import tokens
from eval_core.base.config import Config, ModelConfig, Price
from eval_core.domain.call import Draw, ModelCall, Role
from eval_core.measuring.controls import CONTROL
from eval_core.measuring.measure import Sinks, measure
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.models.client import ModelClient
from eval_core.models.settings import Models
from eval_core.storage.results import open_results
from tests.model_provider import Asked, LoopbackProvider

REPOSITORY = Path(__file__).parents[2]
MODEL = "loopback/model"


@contextmanager
def serving(provider: LoopbackProvider) -> Iterator[str]:
    """Serve from a thread of its own, as another program would."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(provider.start(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(provider.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


class TogetherProvider(LoopbackProvider):
    """Answers the first five requests only when all five are there."""

    def __init__(self) -> None:
        super().__init__()
        self.five = asyncio.Event()

    async def _answer(self, request: web.Request, asked: Asked, arrived: float) -> web.StreamResponse:
        if asked.number == 4:
            self.five.set()
        await self.five.wait()
        return await super()._answer(request, asked, arrived)


def test_the_checks_before_a_run_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """One compression, one answer and three grades leave together; with one behind another this would not end."""
    provider = TogetherProvider()
    with serving(provider) as url:
        models = ModelConfig(compressor=MODEL, api_base=url, prices={MODEL: Price(input=1, output=4)}, trust_judge=True)
        options = RunOptions(
            Config(models=models, concurrency=5),
            root=REPOSITORY,
            runs=1,
            compress_runs=1,
            budget_usd=1000.0,
            compare_to="none",
            target="builtin:anchored",
        )
        with open_results(tmp_path, "bench", resume=False) as results:
            plan = make_plan(options)
            measurement = measure(replace(plan, cases=plan.cases[:1]), Sinks(results))
    assert measurement.stopped is None


def test_fixture_runs_end_one_after_the_other_and_controls_come_last() -> None:
    """Were all grades given at the end, everything computed from them would be computed with no call under way."""
    control, run = ("control", CONTROL), ("run", Draw())
    waiting: list[tuple[Role, str, Draw]] = [
        ("answer", *control), ("judge", *control), ("answer", *run), ("judge", *run), ("compressor", *run)
    ]  # fmt: skip

    async def scene() -> list[str]:
        provider = LoopbackProvider(reply=lambda messages: "A reply that is long enough.")
        url = await provider.start()
        price = {MODEL: Price(input=1, output=4)}
        async with ModelClient(Models(MODEL, MODEL, MODEL, api_base=url, prices=price), concurrency=1) as client:
            async with client._limiter(url).slot():  # the one slot is taken while everything else queues up
                calls = [
                    ModelCall(role, MODEL, ({"role": "user", "content": f"{role} {name}"},), 50, draw)
                    for role, name, draw in waiting
                ]
                tasks = [asyncio.create_task(client.complete(call)) for call in calls]
                while len(client._limiter(url)._waiting) < len(waiting):
                    await asyncio.sleep(0)
            await asyncio.gather(*tasks)
        await provider.stop()
        return [asked.last for asked in provider.asked]

    assert asyncio.run(scene()) == ["compressor run", "judge run", "answer run", "answer control", "judge control"]


def test_the_table_of_tokens_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first calls of a run count their tokens in threads of their own, all at the same moment."""
    read: list[int] = []
    real = gzip.decompress

    def noted(packed: bytes) -> bytes:
        read.append(len(packed))
        return real(packed)

    monkeypatch.setattr(gzip, "decompress", noted)
    tokens._read_table.cache_clear()
    together = threading.Barrier(4)

    def count(number: int) -> None:
        together.wait()
        tokens.count_text(f"words that nobody counted before {number}")

    threads = [threading.Thread(target=count, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(read) == 1
