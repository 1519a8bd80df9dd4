from __future__ import annotations

import asyncio
from threading import Event, Thread

from eval_core.base.threads import compute, computing, waiting


def test_only_one_thread_computes_at_a_time() -> None:
    at_once: list[int] = []
    running = 0

    def work(number: int) -> int:
        nonlocal running
        running += 1
        at_once.append(running)
        sum(range(20_000))
        running -= 1
        return number

    def in_thread() -> None:
        for _ in range(20):
            with computing():
                work(0)

    async def scene() -> list[int]:
        return await asyncio.gather(*(compute(work, number) for number in range(20)))

    threads = [Thread(target=in_thread) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert asyncio.run(scene()) == list(range(20))
    for thread in threads:
        thread.join()
    assert set(at_once) == {1}


def test_a_thread_that_waits_lets_another_compute() -> None:
    computed = Event()

    def waiter() -> None:
        with computing(), waiting():
            assert computed.wait(120)

    thread = Thread(target=waiter)
    thread.start()
    asyncio.run(compute(computed.set))
    thread.join(30)
    assert not thread.is_alive()


def test_what_the_work_raises_reaches_the_caller_and_the_turn_is_given_up() -> None:
    def fail() -> None:
        raise ValueError("no")

    async def scene() -> str:
        try:
            await compute(fail)
        except ValueError as exc:
            return str(exc) + await compute(lambda: "w")
        return ""

    assert asyncio.run(scene()) == "now"
