"""A synthetic evaluation over the model client: compress, then answers, then grades, for each fixture-run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from eval_core.base.config import Price
from eval_core.base.messages import Message
from eval_core.domain.call import Completion, Draw, ModelCall
from eval_core.domain.grade import Answer, Grade, Unscored
from eval_core.domain.probe import Probe
from eval_core.judging.answering import ModelAnswerer
from eval_core.judging.grading import ModelJudge
from eval_core.models.budget import Budget
from eval_core.models.client import ModelClient
from eval_core.models.journal import Journal
from eval_core.models.settings import Models

MODEL = "loopback"


@dataclass(frozen=True)
class Size:
    """How much there is to do."""

    fixtures: int = 5
    runs: int = 3
    probes: int = 12

    @property
    def calls(self) -> int:
        """All model calls of the plan."""
        return self.fixtures * self.runs * (1 + 2 * self.probes)


@contextmanager
def provider(*options: str) -> Iterator[str]:
    """Run the loopback provider in a process of its own and yield its base URL."""
    command = [sys.executable, "-m", "tests.model_provider", *options]
    root = Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()  # the provider stops when its input ends


Client = TypeVar("Client", bound=ModelClient)


@asynccontextmanager
async def client_at(
    base_url: str,
    concurrency: int = 16,
    kind: type[Client] = ModelClient,  # type: ignore[assignment]
) -> AsyncIterator[Client]:
    """Open a client with journal and budget, as a real run has them."""
    models = Models(MODEL, MODEL, MODEL, api_base=base_url, prices={MODEL: Price(input=1, output=4, cached_input=0.1)})
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal.jsonl") as journal:
        async with kind(models, journal=journal, budget=Budget(100.0), concurrency=concurrency) as client:
            yield client


def _probe(fixture: int, number: int) -> Probe:
    return Probe.model_validate(
        {
            "id": f"p{number}",
            "type": "recall",
            "question": f"Which file of project {fixture} holds setting number {number}, and what is its value?",
            "expected_facts": [f"config/section_{number}.toml", f"value_{number}"],
        }
    )


def _state(fixture: int, run: int, summary: str, lines: int) -> list[Message]:
    line = "- setting number {0} is in config/section_{0}.toml: value_{0} (session {1})"
    facts = "\n".join(line.format(number, run) for number in range(lines))
    return [
        {"role": "system", "content": f"You are a coding agent in project {fixture}, session {run}."},
        {"role": "user", "content": f"Summary of the session so far:\n{facts}\n{summary[:400]}"},
        {"role": "assistant", "content": "I go on from this summary."},
    ]


async def warm_up(client: ModelClient) -> None:
    """Make one call, so that imports are not measured."""
    await client.complete(
        ModelCall("compressor", MODEL, ({"role": "user", "content": "hello"},), 10, draw=Draw(control=True))
    )


async def _fixture_run(client: ModelClient, size: Size, fixture: int, run: int, lines: int) -> list[Grade | Unscored]:
    answerer, judge = ModelAnswerer(client), ModelJudge(client)
    prompt = f"Summarise the session of project {fixture}.\n" + "tests/test_io.py failed with exit code 2\n" * 200
    compressed = await client.complete(
        ModelCall("compressor", MODEL, ({"role": "user", "content": prompt},), 400, Draw(run))
    )
    assert isinstance(compressed, Completion), compressed
    state = _state(fixture, run, compressed.text, lines)

    async def one(probe: Probe) -> Grade | Unscored:
        answer = await answerer.answer(state, probe, fixture=f"f{fixture}", draw=Draw(run))
        assert isinstance(answer, Answer), answer
        return await judge.grade(probe, answer.text, fixture=f"f{fixture}", draw=Draw(run))

    return await asyncio.gather(*(one(_probe(fixture, n)) for n in range(size.probes)))


async def evaluate(client: ModelClient, size: Size, lines: int = 120) -> float:
    """Run the whole plan and return the seconds it took."""
    began = time.perf_counter()
    runs = [(fixture, run) for fixture in range(size.fixtures) for run in range(size.runs)]
    grids = await asyncio.gather(*(_fixture_run(client, size, fixture, run, lines) for fixture, run in runs))
    took = time.perf_counter() - began
    assert all(isinstance(grade, Grade) for grid in grids for grade in grid)
    assert client.sent >= size.calls, client.sent
    return took
