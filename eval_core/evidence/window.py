"""Window: which messages a compression kept word for word, and where.

For most compressors this is code, not the work of a model: it comes out the same in every run, and a change in it is
certain.
"""

from __future__ import annotations

from eval_core.domain.record import WindowRecord
from eval_core.evidence.structure import changed_in_place
from eval_core.evidence.verbatim import Kept

__all__ = ["read_window"]


def read_window(kept: Kept) -> WindowRecord:
    """Count the messages kept verbatim at both ends and between, and those that were changed where they stand."""
    total = len(kept.original)
    head = next((index for index in range(total) if index not in kept.indexes), total)
    tail = next((total - 1 - index for index in range(total - 1, head - 1, -1) if index not in kept.indexes), 0)
    return WindowRecord(
        head=head,
        tail=tail,
        middle=len(kept.indexes) - head - tail,
        changed=len(changed_in_place(kept)),
    )
