"""Window: which messages are kept word for word, and where.

For most compressors this is code, not the work of a model: it comes out the same in every run, and a change in it is
certain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from eval_core.base.numbers import counted_range
from eval_core.domain.record import RunRecord, WindowRecord
from eval_core.facts.verbatim import Kept
from eval_core.strands.findings import Finding, StrandState
from eval_core.strands.structure import changed_in_place


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


def _typical(runs: Sequence[RunRecord]) -> WindowRecord | None:
    """Return the window that most runs have."""
    seen = Counter(run.window for run in runs if run.window is not None)
    return seen.most_common(1)[0][0] if seen else None


def window_strand(base: Mapping[str, Sequence[RunRecord]], candidate: Mapping[str, Sequence[RunRecord]]) -> Finding:
    pairs = [
        (name, before, now)
        for name in base.keys() & candidate.keys()
        if (before := _typical(base[name])) and (now := _typical(candidate[name]))
    ]
    if not pairs:
        return Finding(name="window", state=StrandState.NOT_RECORDED)
    details, shrunk, grown = [], 0, 0
    for name, before, now in sorted(pairs, key=lambda pair: pair[0]):
        parts = [
            f"{part} {getattr(before, part)} → {getattr(now, part)}"
            for part in ("head", "tail", "middle", "changed")
            if getattr(before, part) != getattr(now, part)
        ]
        if parts:
            details.append(f"{name}: {', '.join(parts)} messages")
        more = (now.head + now.tail + now.middle) - (before.head + before.tail + before.middle)
        shrunk, grown = shrunk + (more < 0), grown + (more > 0)
    sides = [before for _, before, _ in pairs], [now for _, _, now in pairs]
    kept = [[item.head + item.tail + item.middle for item in side] for side in sides]
    theirs, ours = (counted_range(min(numbers), max(numbers), "message") for numbers in kept)
    if shrunk > grown and shrunk * 2 > len(pairs):
        state, says = StrandState.WORSE, f"fewer messages are kept verbatim ({ours}, before {theirs})"
    else:
        state, says = (StrandState.CHANGED if details else StrandState.SAME), ""
    return Finding(
        name="window",
        state=state,
        base=theirs,
        candidate=ours,
        says=says,
        details=tuple(details),
        loss=max(0.0, 1 - sum(kept[1]) / sum(kept[0])) if any(kept[0]) else 0.0,
    )
