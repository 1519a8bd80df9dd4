"""Measure what the sandbox adds to the start of a child.

    python bench/sandbox.py [--rounds 20]

Starts the launcher up to its first frame (interpreter, self-test, hello) with and without the sandbox,
alternating, and prints the medians. The bar: less than 150 ms on top.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from eval_core.sandbox.isolation import SandboxChoice, detect, open_view, run_folder, view_of
from eval_core.sandbox.process import Child
from eval_core.sandbox.subject import CANARY_VARIABLE, canaries
from eval_core.sandbox.validate import MAX_FRAME

BAR_MS = 150


async def start_once(choice: SandboxChoice, tree: Path) -> float:
    """Return the seconds from nothing to the launcher's first frame."""
    started = time.perf_counter()
    with ExitStack() as stack:
        folder = stack.enter_context(run_folder())
        python = Path(sys.executable)
        view = view_of(python, tree, folder / "gw") if choice.confined else open_view(python, tree, folder)
        canary = stack.enter_context(canaries(folder, (view.tree, view.launcher)))
        group = stack.enter_context(choice.limit_memory(2**31))
        child = await Child.start(
            choice.command(view, folder, 60, 2048), choice, name=folder.name, memory=group,
            environment={CANARY_VARIABLE: canary.value},
        )  # fmt: skip
        hello = {
            "nonce": child.nonce,
            "max_frame": MAX_FRAME,
            "limits": {"CORE": 0},
            "canary": canary.as_frame() if choice.confined else None,
        }
        answer = await child.ask(hello, 60, "the start")
        seconds = time.perf_counter() - started
        assert answer["hits"] == []
        await child.close()
    return seconds


async def measure(rounds: int) -> None:
    choices = {"without": detect("none"), "with": detect()}
    times: dict[str, list[float]] = {name: [] for name in choices}
    with tempfile.TemporaryDirectory() as tree:
        for round_ in range(rounds + 2):
            for name, choice in choices.items():
                seconds = await start_once(choice, Path(tree))
                if round_ >= 2:  # the first ones fill caches
                    times[name].append(seconds * 1000)
    plain, boxed = (statistics.median(times[name]) for name in choices)
    print(f"sandbox            {choices['with'].level}")
    print(f"without            {plain:7.1f} ms (median of {rounds})")
    print(f"with               {boxed:7.1f} ms")
    print(f"added              {boxed - plain:7.1f} ms, {boxed / plain:.2f} times; the bar is {BAR_MS} ms")
    if boxed - plain >= BAR_MS:
        raise SystemExit(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    asyncio.run(measure(parser.parse_args().rounds))
