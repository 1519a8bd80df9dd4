"""How close a whole evaluation comes to the shortest possible time.

    python -m bench.makespan
    python -m bench.makespan --client

A loopback provider answers every call after a fixed latency. The whole pipeline runs over the shipped fixtures:
compress, read facts, answer, grade, controls. The bound is the larger of the longest chain of calls and all calls
spread over all slots. The prefix gate makes chains one call longer; urgent calls first (compress, then the first
answer of each fixture-run) hide that behind the others' work. Starting the process is not counted. With --client the
calls alone are made, without anything that computes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from bench.plan import Size, client_at, evaluate, provider, warm_up
from eval_core.base.config import Config, ModelConfig, Price
from eval_core.measuring.measure import Sinks, measure
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import make_plan
from eval_core.storage.results import open_results

REPOSITORY = Path(__file__).parents[1]
MODEL = "openai/loopback"


@dataclass(frozen=True)
class Measured:
    """One run."""

    seconds: float
    calls: int
    chain: int
    """Calls that must follow each other."""
    processor: float
    """Seconds of processor time of this process."""
    peak_mb: float


def pipeline(url: str, runs: int, concurrency: int) -> Measured:
    """Measure the real pipeline."""
    prices = {MODEL: Price(input=1, output=4, cached_input=0.1)}
    models = ModelConfig(compressor=MODEL, api_base=url, prices=prices, trust_judge=True)
    options = RunOptions(
        Config(models=models, concurrency=concurrency),
        root=REPOSITORY,
        runs=runs,
        compress_runs=runs,
        budget_usd=1000.0,
        compare_to="none",
    )
    plan = make_plan(options)
    with tempfile.TemporaryDirectory() as folder, open_results(Path(folder), "bench", resume=False) as results:
        began, used = time.perf_counter(), time.process_time()
        measurement = measure(plan, Sinks(results))
        took, worked = time.perf_counter() - began, time.process_time() - used
    with urlopen(f"{url}/stats") as reply:
        calls = json.load(reply)["asked"]
    assert measurement.stopped is None
    assert all(run.ok for records in measurement.fixtures.values() for run in records)
    chain = max(len(case.fixture.cuts) for case in plan.cases) + 2
    return Measured(took, calls, chain, worked, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


async def _client(url: str, runs: int, concurrency: int) -> Measured:
    size = Size(runs=runs)
    async with client_at(url, concurrency) as client:
        await warm_up(client)
        used = time.process_time()
        took = await evaluate(client, size)
        worked = time.process_time() - used
        return Measured(took, size.calls, 3, worked, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.4)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--client", action="store_true", help="the calls alone")
    options = parser.parse_args()
    for _ in range(options.repeat):
        with provider("--latency", str(options.latency)) as url:
            if options.client:
                found = asyncio.run(_client(url, options.runs, options.concurrency))
            else:
                found = pipeline(url, options.runs, options.concurrency)
        bound = max(found.chain * options.latency, found.calls * options.latency / options.concurrency)
        print(
            f"{found.calls} calls, {found.seconds:.2f} s, bound {bound:.2f} s, ratio {found.seconds / bound:.3f}, "
            f"{found.processor:.2f} s of processor time, peak {found.peak_mb:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
