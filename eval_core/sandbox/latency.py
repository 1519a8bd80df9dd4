"""How long a compression takes as a user of the compressor would feel it: warm, and with the machine to itself.

Three things are taken off the clock and told apart: imports, the wait for our own model client, and the wait for a
processor that other runs keep busy. The first is the child's own word and the last can be its own doing, so the number
is for people who trust the compressor: a hostile one can make it small, though not what was taken off.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval_core.sandbox.classify import CallRecord

_NANO = 1e9


@dataclass(frozen=True)
class StepTime:
    """The time of one step, taken apart."""

    seconds: float
    """As a user feels it."""
    import_seconds: float = 0.0
    """Spent importing modules, which happens once in a process."""
    queued_seconds: float = 0.0
    """Spent waiting for a turn at the model, for retries, and for a processor."""


def _covered(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length that intervals cover together: calls side by side wait at the same time."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total


def model_queue(calls: Sequence[CallRecord]) -> float:
    """Return how much longer the calls took than the model did; less than nothing where answers were replayed."""
    waits = [(call.forwarded_at, call.forwarded_at + call.queued_seconds) for call in calls if call.queued_seconds > 0]
    return _covered(waits) + sum(call.queued_seconds for call in calls if call.queued_seconds < 0)


def held_up(call: CallRecord, calls: Sequence[CallRecord], now: float) -> float:
    """Return for how long a call that has not ended was held up by somebody other than the run that made it.

    That is the time with the provider, and the time in our own queue, except while the run had other calls with the
    provider: whoever sends many at once waits for itself.
    """
    held_since = now if call.held_since is None else call.held_since
    exchanges = [span for other in calls for span in other.exchanges]
    exchanges += [(other.out_since, now) for other in calls if other.out_since is not None]
    queued = [(max(begin, call.forwarded_at), min(end, held_since)) for begin, end in exchanges]
    return now - call.forwarded_at - _covered(queued)


def processor_waits(pids: Iterable[int]) -> dict[tuple[int, int], float]:
    """Return for each thread of the processes the seconds that it was ready and had no processor, where Linux says."""
    waits: dict[tuple[int, int], float] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError, ValueError, IndexError):
                    waits[pid, int(task.name)] = int((task / "schedstat").read_bytes().split()[1]) / _NANO
    return waits


def felt(
    wall: float,
    *,
    imports: float,
    queue: float,
    before: Mapping[tuple[int, int], float],
    after: Mapping[tuple[int, int], float],
) -> StepTime:
    """Take a step's time apart; of threads that waited for a processor the one that waited longest counts."""
    imports = min(max(imports, 0.0), wall)  # the child's own word, so it is held to what can be
    waited = max((seconds - before.get(thread, 0.0) for thread, seconds in after.items()), default=0.0)
    # What was waited for during imports is in the imports already, and nobody can tell the two apart.
    waited = min(max(waited, 0.0), max(wall - imports - max(queue, 0.0), 0.0)) if not imports else 0.0
    return StepTime(max(wall - imports - queue - waited, 0.0), imports, queue + waited)


class StepClock:
    """Measures one step from outside."""

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self._pids = pids
        self._before = processor_waits(pids())
        self.started = time.monotonic()

    def stop(self) -> float:
        """Return the wall time; call `time` next, before the processes end."""
        self.wall = time.monotonic() - self.started
        return self.wall

    def time(self, imports: float, calls: Sequence[CallRecord]) -> StepTime:
        """Return the step's time, taken apart."""
        after = processor_waits(self._pids())
        return felt(self.wall, imports=imports, queue=model_queue(calls), before=self._before, after=after)
