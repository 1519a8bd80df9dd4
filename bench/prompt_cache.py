"""How much of the input a prompt cache can serve, and how much it does serve.

    python -m bench.prompt_cache
    python -m bench.prompt_cache --pipeline

The loopback provider simulates a prompt cache: beginnings of at least 1,024 tokens, known once a reply was given.
Cacheable is what the siblings of each prefix share with the first of them. With --pipeline the whole evaluation
of the shipped fixtures runs instead of bare calls, once each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from urllib.request import urlopen

from bench.makespan import pipeline
from bench.plan import Size, client_at, evaluate, provider
from eval_core.base.tokens import count_messages
from eval_core.domain.call import Acceptance, Completion, Failed, ModelCall
from eval_core.models.client import ModelClient
from eval_core.models.transport import prefix_digest

LEAST = 1_024


class CountingClient(ModelClient):
    """A client that adds up what its calls share with the first of their prefix."""

    cacheable = 0
    seen: set[str]

    async def complete(self, call: ModelCall, acceptance: Acceptance | None = None) -> Completion | Failed:
        """Count, then complete."""
        shared = count_messages(call.messages[: call.shared])
        if (prefix := prefix_digest(call)) is not None:
            self.cacheable += shared if prefix in self.seen and shared >= LEAST else 0
            self.seen.add(prefix)
        return await super().complete(call, acceptance)


async def measure(size: Size, lines: int, latency: float) -> tuple[dict[str, int], int]:
    with provider("--latency", str(latency), "--prompt-cache") as url:
        async with client_at(url, kind=CountingClient) as client:
            client.seen = set()
            await evaluate(client, size, lines)
            with urlopen(f"{url}/stats") as reply:
                return json.load(reply), client.cacheable


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latency", type=float, default=0.1)
    parser.add_argument("--pipeline", action="store_true", help="the whole evaluation")
    options = parser.parse_args()
    if options.pipeline:
        with provider("--latency", str(options.latency), "--prompt-cache") as url:
            pipeline(url, runs=1, concurrency=16)
            with urlopen(f"{url}/stats") as reply:
                stats = json.load(reply)
        share = stats["cached_tokens"] / stats["input_tokens"]
        print(f"{stats['input_tokens']:,} input tokens, {share:.1%} read from the cache, {stats['asked']} calls")
        return
    for lines in (60, 250, 1000):
        stats, cacheable = asyncio.run(measure(Size(), lines, options.latency))
        total, cached = stats["input_tokens"], stats["cached_tokens"]
        print(
            f"state of {lines} lines: {total:,} input tokens, {cacheable / total:.1%} cacheable, "
            f"{cached / total:.1%} read from the cache ({cached / max(1, cacheable):.1%} of the cacheable)",
            flush=True,
        )


if __name__ == "__main__":
    main()
