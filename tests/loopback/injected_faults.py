"""Injected faults: the next matching requests fail in a chosen way."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Faults", "InjectedFault"]


@dataclass
class InjectedFault:
    """How matching requests fail, and how many of them."""

    method: str
    path: str
    """A regular expression that must be found in the path."""
    kind: Literal["status", "timeout", "drop", "hook"] = "status"
    status: int = 500
    times: int = 1
    after: int = 0
    """Let this many matching requests pass first."""
    takes_effect: bool = False
    """Do what was asked, and only then fail: the answer is lost, not the request."""
    message: str = ""
    body: Any = None
    """An answer of one's own instead of an error message."""
    headers: Mapping[str, str] = field(default_factory=dict)
    hook: Callable[[], Any] | None = None
    """Called before the request is handled, which then goes on as usual."""


class Faults:
    """The queue of ordered trouble."""

    def __init__(self) -> None:
        self._queue: list[InjectedFault] = []

    def add(self, fault: InjectedFault) -> None:
        """Order trouble."""
        self._queue.append(fault)

    def take(self, method: str, path: str) -> InjectedFault | None:
        """Return the first fault that fits this request, and count it."""
        for fault in self._queue:
            if fault.method != method or not re.search(fault.path, path):
                continue
            if fault.after > 0:
                fault.after -= 1
                continue
            fault.times -= 1
            if fault.times <= 0:
                self._queue.remove(fault)
            return fault
        return None

    @property
    def pending(self) -> int:
        """How many faults have not happened yet; a test that ordered trouble wants 0 at its end."""
        return len(self._queue)
