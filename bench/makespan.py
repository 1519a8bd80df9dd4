"""How close a whole evaluation comes to the shortest possible time.

    python -m bench.makespan

A loopback provider answers every call after a fixed latency. The bound is the larger of the critical path (compress,
answer, grade) and all calls spread over all slots. The prefix gate makes the longest chain one call longer; urgent
calls first (compress, then the first answer of each fixture-run) hide that behind the others' work.
"""

from __future__ import annotations

import argparse
import asyncio

from bench.plan import Size, client_at, evaluate, provider, warm_up


async def measure(latency: float, concurrency: int, size: Size) -> float:
    with provider("--latency", str(latency)) as url:
        async with client_at(url, concurrency) as client:
            await warm_up(client)
            return await evaluate(client, size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.4)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    size = Size()
    bound = max(3 * options.latency, size.calls * options.latency / options.concurrency)
    for _ in range(options.repeat):
        took = asyncio.run(measure(options.latency, options.concurrency, size))
        print(f"{size.calls} calls, {took:.2f} s, bound {bound:.2f} s, ratio {took / bound:.3f}", flush=True)


if __name__ == "__main__":
    main()
