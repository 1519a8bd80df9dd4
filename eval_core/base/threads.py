"""Threads that compute take turns, so that the event loop, which sends the model calls, gets its share.

Python runs one thread at a time. Ten threads that compute are no faster than one, but each of them is one more that
the loop has to wait for whenever a reply comes in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")
_turn = Lock()


@cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="compute")


@contextmanager
def computing() -> Iterator[None]:
    """Compute in the thread at hand, when it is its turn."""
    with _turn:
        yield


@contextmanager
def waiting() -> Iterator[None]:
    """Within `computing`: let others compute while this thread waits for something."""
    _turn.release()
    try:
        yield
    finally:
        _turn.acquire()


async def compute(work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Compute in a thread, when it is its turn, while the loop goes on."""

    def in_turn() -> _R:
        with computing():
            return work(*args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(_thread(), in_turn)
