"""The page of mutants: every edit of the bench has a row, and what the page counts keeps the promises made for it."""

from __future__ import annotations

import re
import sys

import small

PAGE = (small.REPOSITORY / "docs" / "method-mutants.md").read_text(encoding="utf-8")
TOGETHER = re.compile(
    r"^together: caught (\d+) of (\d+) harmful edits, \d+ by the strand expected; called improved (\d+), mixed (\d+), "
    r"trade \d+; harmless edits flagged (\d+) of (\d+) times\.",
    re.MULTILINE,
)


def test_every_edit_of_the_bench_has_its_row() -> None:
    sys.path.insert(0, str(small.REPOSITORY / "bench"))
    try:
        from mutant_edits import HELD_OUT, LATER, MUTANTS
    finally:
        sys.path.pop(0)
    missing = [
        f"{mutant.compressor}: {mutant.name}"
        for mutant in (*MUTANTS, *HELD_OUT, *LATER)
        if f"| {mutant.compressor} | {mutant.name} | {mutant.sort} |" not in PAGE
    ]
    assert missing == []
    assert len(MUTANTS) + len(HELD_OUT) >= 40
    assert sum(not mutant.harmless for mutant in LATER) >= 12
    assert sum(mutant.harmless for mutant in LATER) >= 6
    assert "Not measured" not in PAGE


def test_the_counts_keep_what_the_method_promises() -> None:
    found = TOGETHER.search(PAGE)
    assert found is not None
    caught, harmful, improved, mixed, flagged, calm = map(int, found.groups())
    assert caught >= 0.95 * harmful
    assert improved == 0
    assert mixed <= 0.10 * harmful
    assert flagged <= 0.05 * calm
