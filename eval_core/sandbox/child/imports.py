"""How long a step spends on importing modules, which only the first call in a process does."""

from __future__ import annotations

import contextlib
import importlib
import threading
import time
from collections.abc import Iterator
from typing import Any

_bootstrap: Any = importlib._bootstrap


class ImportTime:
    """The seconds so far of the thread that began; an import within an import counts once.

    What other threads import goes on beside the work, so taking it off as well could leave nothing of a step.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread, self._depth = threading.get_ident(), 0

    def measure(self, load: Any, *arguments: Any) -> Any:
        """Import with the original function, and count the outermost."""
        if threading.get_ident() != self._thread:
            return load(*arguments)
        self._depth += 1
        began = time.perf_counter()
        try:
            return load(*arguments)
        finally:
            self._depth -= 1
            if self._depth == 0:
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
