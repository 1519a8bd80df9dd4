"""How long a step spends on importing modules, which only the first call in a process does."""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["ImportTime", "time_imports"]

_bootstrap: Any = importlib._bootstrap


class ImportTime:
    """The seconds so far; an import within an import counts once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = threading.local()

    def measure(self, load: Any, *arguments: Any) -> Any:
        """Import with the original function, and count the outermost."""
        depth = getattr(self._depth, "value", 0)
        self._depth.value = depth + 1
        began = time.perf_counter()
        try:
            return load(*arguments)
        finally:
            self._depth.value = depth
            if depth == 0:
                self.seconds += time.perf_counter() - began


@contextlib.contextmanager
def time_imports() -> Iterator[ImportTime]:
    """Count within the block; the statement and `import_module` both end in one function of the interpreter."""
    counted, original = ImportTime(), _bootstrap._find_and_load
    _bootstrap._find_and_load = lambda *arguments: counted.measure(original, *arguments)
    try:
        yield counted
    finally:
        _bootstrap._find_and_load = original
