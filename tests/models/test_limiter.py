from __future__ import annotations

import asyncio

from eval_core.models.limiter import Limiter, RateWindow

from .faketime import FakeTime


def limiter(ceiling: int) -> tuple[Limiter, FakeTime]:
    time = FakeTime()
    return Limiter(ceiling, clock=time.clock, sleep=time.sleep), time


def test_it_grows_to_the_ceiling_while_calls_succeed_and_never_beyond() -> None:
    slots, time = limiter(16)
    slots.throttled(time.clock())
    grown = [slots.limit]
    for _ in range(150):
        slots.succeeded()
        grown.append(slots.limit)
    assert grown[0] == 8
    assert grown == sorted(grown)
    assert grown[-1] == 16


def test_a_burst_of_protests_halves_once() -> None:
    async def scene() -> None:
        slots, time = limiter(16)
        assert slots.limit == 16
        sent = time.clock()
        time.now += 1
        for _ in range(10):
            slots.throttled(sent)
        assert slots.limit == 8
        slots.throttled(time.clock())  # sent after the halving: a new protest
        assert slots.limit == 4
        for _ in range(30):
            slots.throttled(time.clock())
        assert slots.limit == 1

    asyncio.run(scene())


def test_after_a_protest_it_grows_slowly() -> None:
    slots, time = limiter(16)
    slots.throttled(time.clock())
    slots.succeeded()
    assert slots.limit == 8 + 1 / 8


def test_never_more_calls_at_once_than_the_limit() -> None:
    async def scene() -> int:
        slots, _ = limiter(4)
        most = now = 0

        async def one() -> None:
            nonlocal most, now
            async with slots.slot():
                now += 1
                most = max(most, now)
                await asyncio.sleep(0)
                now -= 1
                slots.succeeded()

        await asyncio.gather(*(one() for _ in range(50)))
        assert slots.active == 0
        return most

    assert asyncio.run(scene()) == 4


def test_a_provider_that_asks_for_a_pause_gets_one() -> None:
    async def scene() -> None:
        slots, time = limiter(4)
        slots.throttled(time.clock(), retry_after=30.0)
        began = time.clock()
        async with slots.slot():
            assert time.clock() - began >= 30.0

    asyncio.run(scene())


def test_an_exhausted_window_pauses_until_its_reset() -> None:
    async def scene() -> None:
        slots, time = limiter(4)
        slots.succeeded(RateWindow(0, None, 12.0))
        began = time.clock()
        async with slots.slot():
            assert time.clock() - began >= 12.0

    asyncio.run(scene())


def test_a_window_that_resets_tomorrow_is_not_waited_for() -> None:
    async def scene() -> None:
        slots, time = limiter(4)
        slots.succeeded(RateWindow(0, None, 86_400.0))
        began = time.clock()
        async with slots.slot():
            assert time.clock() == began, "the provider refuses the next call, if it means that, and the model is out"

    asyncio.run(scene())


def test_a_nearly_exhausted_window_shrinks_the_limit() -> None:
    async def scene() -> None:
        slots, _ = limiter(16)
        slots.limit = 16.0
        async with slots.slot(), slots.slot(), slots.slot(), slots.slot():
            slots.succeeded(RateWindow(remaining_requests=2))
        assert slots.limit == 2

    asyncio.run(scene())


def test_the_most_urgent_waiter_goes_first_and_equals_in_order() -> None:
    async def scene() -> list[str]:
        slots, _ = limiter(1)
        order: list[str] = []

        async def one(name: str, priority: int) -> None:
            async with slots.slot(priority):
                order.append(name)

        async with slots.slot():
            tasks = [asyncio.create_task(one(*item)) for item in (("c", 30), ("a1", 0), ("b", 20), ("a2", 0))]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(scene()) == ["a1", "a2", "b", "c"]


def test_a_waiter_that_goes_away_as_its_turn_comes_gives_its_slot_back() -> None:
    async def scene() -> None:
        slots, _ = limiter(1)

        async def hold() -> None:
            async with slots.slot():
                raise AssertionError("it was cancelled before")

        async with slots.slot():
            gone = asyncio.create_task(hold())
            await asyncio.sleep(0)
        assert slots.active == 1, "its turn has come, and it has not run yet"
        gone.cancel()
        await asyncio.wait([gone])
        assert gone.cancelled()
        assert slots.active == 0

    asyncio.run(scene())


def test_a_waiter_that_goes_away_leaves_no_hole() -> None:
    async def scene() -> None:
        slots, _ = limiter(1)

        async def hold() -> None:
            async with slots.slot():
                await asyncio.sleep(0)

        async with slots.slot():
            gone, stays = asyncio.create_task(hold()), asyncio.create_task(hold())
            await asyncio.sleep(0)
            gone.cancel()
        await stays
        assert slots.active == 0

    asyncio.run(scene())
