"""A model provider on loopback beside the command line, and a plan so small that every fault can be tried."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import small

from eval_core.base.files import digest
from eval_core.base.messages import Message
from eval_core.domain.case import Case
from tests.model_provider import Asked, LoopbackProvider, reply_to

COMPRESSOR, ANSWER, JUDGE = "openai/compressor", "openai/answerer", "openai/judge"
ONE_RUN = ("--runs", "1", "--set", "compress_runs=1")

UPDATE = ("baseline", "update", "--runs", "2", "--set", "models.trust_judge=true", "--quiet")
"""A small measurement that asks models; with AGAIN it goes on where it was."""
AGAIN = ("--label", "a", "--resume")


def served_at(url: str, *models: str, price: str = "input: 1, output: 4, cached_input: 0.1") -> tuple[str, ...]:
    """Return the options that send calls to a server, at a price for each of these models."""
    prices = ", ".join(f"{model}: {{{price}}}" for model in models)
    return ("--set", f"models.api_base={url}", "--set", f"models.prices={{{prices}}}")


class Provider:
    """The loopback provider in a thread of its own, so that the command can run in this one."""

    def __init__(self) -> None:
        self.behave: Callable[[Asked], str | None] = lambda asked: None
        self.reply: Callable[[Sequence[Message]], str] = reply_to
        self.act: Callable[[Asked], Sequence[tuple[str, Mapping[str, Any]]]] = lambda asked: []
        self.server = LoopbackProvider(
            behave=lambda asked: self.behave(asked),
            reply=lambda messages: self.reply(messages),
            act=lambda asked: self.act(asked),
        )

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a command that calls this provider."""
        roles = ("--compressor-model", COMPRESSOR, "--set", f"models.answer={ANSWER}", "--judge-model", JUDGE)
        return (*roles, *served_at(self.server.base_url, COMPRESSOR, ANSWER, JUDGE))

    def asked_of(self, model: str) -> list[Asked]:
        """Return the requests for one model, without the short compression before the run."""
        return [asked for asked in self.server.asked if asked.model == model and "EXPORT_BUCKET" not in asked.last]

    def paid_twice(self) -> int:
        """Count replies that were delivered for a request that had one before; runs that ask the same are told apart.

        The provider cannot see the run index, so this holds for plans with one run.
        """
        bodies = [str(sorted(asked.body.items(), key=lambda item: item[0])) for asked in self.server.delivered]
        return len(bodies) - len(set(bodies))

    def bill(self) -> float:
        """Return what the requests cost at the prices of `options`, nothing cached."""
        return (self.server.input_tokens + 4 * self.server.output_tokens) / 1e6

    def cached_bill(self) -> float:
        """Return what they cost with the part read from the cache at its price."""
        return self.bill() - 0.9 * self.server.cached_tokens / 1e6


@contextmanager
def serving(provider: Provider) -> Iterator[Provider]:
    """Serve from a thread until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(provider.server.start(), loop).result()
        yield provider
        asyncio.run_coroutine_threadsafe(provider.server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def tiny(*probes: str) -> Case:
    """Return the debug session with only these probes."""
    bank = small.debug_bank()
    chosen = [probe for probe in bank.probes if probe.id in probes]
    return Case(small.debug_fixture(), bank.model_copy(update={"probes": chosen}))


CHECKS = {COMPRESSOR: 1, ANSWER: 1, JUDGE: 3}
"""How many calls each model gets before the run."""


def faulty(fault: str, model: str, times: int | None = None, *, after: int = 0) -> Callable[[Asked], str | None]:
    """Misbehave towards one model, always or so often, after so many good replies."""
    left, good = [times], [after]

    def behave(asked: Asked) -> str | None:
        if asked.model != model or left[0] == 0:
            return None
        if good[0]:
            good[0] -= 1
            return None
        if left[0] is not None:
            left[0] -= 1
        return fault

    return behave


def once_in_ten(fault: str) -> Callable[[Asked], str | None]:
    """Misbehave towards one prompt in ten, once: which ones is decided by their text, not by when they come."""
    failed: set[str] = set()

    def behave(asked: Asked) -> str | None:
        mark = digest([asked.model, list(asked.messages)])
        checks = "EXPORT_BUCKET" in str(asked.messages)  # before the run, which is refused where these fail
        if checks or int(mark, 16) % 10 or mark in failed:
            return None
        failed.add(mark)
        return fault

    return behave


def files_below(folder: Path) -> Iterable[tuple[Path, bytes]]:
    """Return every file of a results folder with its bytes."""
    return [(path, path.read_bytes()) for path in folder.rglob("*") if path.is_file()]


def results_of(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the result of every graded probe."""
    runs = [run for runs in summary["fixtures"].values() for run in runs if run["graded"]]
    return [record["result"] for run in runs for record in run["probes"].values()]


def done(journal: Path) -> int:
    """Count the calls that ended, by the journal."""
    lines = journal.read_bytes().splitlines() if journal.exists() else []
    return sum(line.startswith(b'{"at":"done"') for line in lines)
