"""What keeps a run close to the shortest possible time, told without a clock."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.testing.provider import Asked, LoopbackProvider, reply_to
from eval_core.base import tokens
from eval_core.base.config import Config, Price
from eval_core.measuring.options import Job
from eval_core.models.settings import ModelFlags
from eval_core.storage.results import open_results

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


def role(asked: Asked) -> str:
    if "instruction_following" in str(asked.messages[0]["content"]):
        return "judge"
    return "answer" if "question" in asked.last[:200].lower() else "compressor"


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Asked]:
    """Every request of one run over two fixtures, four calls at once."""
    provider = LoopbackProvider(reply=reply_to)
    with serving(provider) as url:
        flags = ModelFlags(model=MODEL, api_base=url, prices={MODEL: Price(input=1, output=4)})
        job = Job(
            Config(),
            root=REPOSITORY,
            flags=flags,
            runs=2,
            compress_runs=2,
            budget_usd=1000.0,
            concurrency=4,
            compare_to="none",
            trust_judge=True,
            target="builtin:anchored",
        )
        cases = job.load_cases()[:2]
        with open_results(tmp_path_factory.mktemp("results"), "bench", resume=False) as results:
            data = job.execute(results, cases, lambda record: None)
    assert data.candidate.stopped is None
    return provider.asked


def test_the_checks_before_a_run_take_one_round(asked: list[Asked]) -> None:
    """One compression, one answer and three grades leave together: nothing waits for the first grade."""
    assert sorted(map(role, asked[:5])) == ["answer", "compressor", "judge", "judge", "judge"]


def test_fixture_runs_are_graded_while_others_are_answered(asked: list[Asked]) -> None:
    """Grades do not all come last: what is computed from them would then be computed with nothing under way."""
    roles = [role(item) for item in asked[5:]]
    first_grade = roles.index("judge")
    assert roles[first_grade:].count("answer") > roles.count("answer") // 2


def test_the_table_of_tokens_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first calls of a run count their tokens in threads of their own, all at the same moment."""
    read = []
    real = tokens.gzip.decompress

    def noted(packed: bytes) -> bytes:
        read.append(len(packed))
        return real(packed)

    monkeypatch.setattr(tokens.gzip, "decompress", noted)
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
