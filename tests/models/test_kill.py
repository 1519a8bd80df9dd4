"""Killed at any moment, a run goes on where it was."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from eval_core.models.journal import Journal, call_key
from tests.model_provider import Asked, LoopbackProvider

from . import worker
from .provider import call

CALLS, KILLS, CONCURRENCY = 120, 20, 4


def finished(path: Path) -> set[str]:
    """Read, without the journal's own code, which calls are finished."""
    if not path.exists():
        return set()
    lines = [line for line in path.read_bytes().split(b"\n")[:-1] if line]
    return {line["key"] for line in map(json.loads, lines) if line["at"] == "done"}


def test_killed_twenty_times_no_finished_call_is_paid_again_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Forked from a process that holds the imports: what is killed is a real process, twenty times, within seconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker.__name__])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))  # where the server finds it
    path = tmp_path / "journal.jsonl"
    keys = {f"call {n}": call_key(call(f"call {n}", run=n)) for n in range(CALLS)}
    dice = random.Random(7)

    async def scene() -> None:
        requests: Counter[str] = Counter()
        repeated: list[str] = []
        done: set[str] = set()
        enough = asyncio.Event()
        patience = 0

        def behave(asked: Asked) -> str | None:
            nonlocal patience
            requests[asked.last] += 1
            if keys[asked.last] in done:
                repeated.append(asked.last)
            patience -= 1
            if patience <= 0:
                enough.set()
            # Some paid and useless replies and some errors, so that kills meet retries as well.
            return {0: "empty", 1: "500"}.get(dice.randrange(12))

        async with LoopbackProvider(behave=behave, latency=0.002) as provider:
            for round_ in range(KILLS + 1):
                done = finished(path)
                enough.clear()
                patience = dice.randrange(1, 9)
                process = context.Process(target=worker.work, args=(str(tmp_path), provider.base_url, CALLS))
                process.start()
                if round_ < KILLS and len(done) < CALLS:
                    waiters = [asyncio.create_task(enough.wait()), asyncio.create_task(asyncio.to_thread(process.join))]
                    await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
                    await asyncio.sleep(dice.random() * 0.004)  # somewhere between request, reply and journal
                    process.kill()
                    await asyncio.gather(waiters[1])
                    waiters[0].cancel()
                else:
                    await asyncio.to_thread(process.join)
                    assert process.exitcode == 0
            assert not repeated
            assert finished(path) == set(keys.values())
            # A kill loses at most what was under way.
            assert requests.total() - len(keys) <= KILLS * CONCURRENCY + sum(
                1 for line in path.read_text().splitlines() if json.loads(line)["at"] in ("paid", "free")
            )
        with Journal(path) as journal:
            assert journal.finished == CALLS
            assert journal.broken_lines == 0
            paid = provider.input_tokens + provider.output_tokens
            assert journal.spent.tokens <= paid <= journal.spent.tokens + journal.spent.unsure_tokens

    asyncio.run(scene())
