"""Structure checks against the baseline's."""

from __future__ import annotations

import numpy as np
import pytest

from eval_core.statistics.arms import Arm
from eval_core.strands.structure import changes, structure_strand

from .arms import fixture


def arm(*passes: bool | None) -> Arm:
    structure = tuple({} if flag is None else {"check": flag} for flag in passes)
    nothing = np.full((len(passes), 2), np.nan)
    return Arm("a", {"f": fixture(None, nothing, nothing, structure=structure)})


@pytest.mark.parametrize(
    ("base", "candidate", "kind"),
    [
        ((True, True), (False, False), "broken"),
        ((True,), (False,), "broken"),
        ((True, True), (False, False, True), "broken"),
        ((True, True), (False, True), "shaky"),
        ((True,) * 10, (False, *(True,) * 9), "shaky"),
        ((True, False), (False, False), None),
        ((False, False, True), (True, True), "repaired"),
        ((False, True), (True, True), None),
        ((False, False), (False, False), None),
        ((True, True), (None, False), "broken"),
        ((True, True), (None, None), None),
        ((None, None), (False, False), None),
    ],
)
def test_broken_repaired_shaky(base: tuple[bool, ...], candidate: tuple[bool, ...], kind: str | None) -> None:
    found = changes(arm(*base), arm(*candidate))
    assert [item.kind for item in found] == ([kind] if kind else [])


def test_counts_are_kept() -> None:
    (found,) = changes(arm(True, True, True), arm(False, False, True, None))
    assert (found.label, found.base_passed, found.base_runs) == ("f / check", 3, 3)
    assert (found.candidate_passed, found.candidate_runs) == (1, 3)


def test_the_row_counts_the_checks_that_always_pass() -> None:
    base, candidate = arm(True, True), arm(False, True)
    strand = structure_strand(changes(base, candidate), base, candidate)
    assert (strand.base, strand.candidate) == ("1 of 1 checks", "0 of 1 checks")
    assert structure_strand([], arm(None), arm(None)).base == ""
