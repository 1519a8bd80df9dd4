"""Whether the compressor compressed: which failures count, which decide, and which are the provider's."""

from __future__ import annotations

import pytest

from eval_core.domain.compression import Outcome
from eval_core.domain.record import RunRecord
from eval_core.strands.findings import StrandState
from eval_core.strands.outcome import (
    Failures,
    always_failing,
    broken_fixtures,
    compare_outcomes,
    failures,
    outcome_culprits,
    outcome_strand,
)

RAISED, IDLE = Outcome.TARGET_ERROR, Outcome.NOT_COMPRESSED


def runs(good: int, failed: int = 0, kind: Outcome = RAISED, *, refused: str = "") -> list[RunRecord]:
    ends = [(Outcome.OK, "")] * good + [(kind, refused)] * failed
    return [
        RunRecord(fixture="f", run=number, graded=True, outcome=outcome, refused=words)
        for number, (outcome, words) in enumerate(ends)
    ]


def test_what_the_provider_failed_at_is_no_run_and_no_failure() -> None:
    assert failures({"f": runs(2, 3, Outcome.INFRA)}) == (Failures("f", 2, {}),)
    (found,) = failures({"f": [*runs(2, 1), *runs(0, 2, IDLE)]})
    assert (found.runs, found.failed, found.raised) == (5, 3, 1)


@pytest.mark.parametrize(("failed", "broken", "shaky"), [(0, (), ()), (2, (), ("f",)), (3, ("f",), ())])
def test_more_than_half_of_the_runs_must_fail_to_decide_by_themselves(
    failed: int, broken: tuple[str, ...], shaky: tuple[str, ...]
) -> None:
    change = compare_outcomes({"f": runs(4)}, {"f": runs(4 - failed, failed)})
    assert (change.broken, change.shaky, change.repaired) == (broken, shaky, ())


def test_a_few_failures_of_every_fixture_decide_together() -> None:
    names = [f"f{number}" for number in range(6)]
    change = compare_outcomes({name: runs(10) for name in names}, {name: runs(7, 3) for name in names})
    assert (change.broken, change.shaky) == (tuple(names), ())
    calm = {"calm": runs(10)}
    change = compare_outcomes({**calm, "f": runs(10)}, {**calm, "f": runs(9, 1)})
    assert (change.broken, change.shaky) == ((), ("f",))
    assert outcome_strand(change).state is StrandState.CANNOT_TELL


def test_a_base_that_failed_too_is_no_evidence_against_the_candidate() -> None:
    change = compare_outcomes({"f": runs(3, 1)}, {"f": runs(0, 4)})
    assert (change.broken, change.shaky) == ((), ())
    assert broken_fixtures(change) == ("f",)
    assert broken_fixtures(compare_outcomes({"f": runs(0, 4)}, {"f": runs(0, 4)})) == ()
    assert broken_fixtures(compare_outcomes({"f": []}, {"f": runs(0, 4)})) == ("f",)
    # Without a run of either side there is nothing to say.
    assert broken_fixtures(compare_outcomes({"f": runs(4)}, {"f": runs(0, 4, Outcome.INFRA)})) == ()


@pytest.mark.parametrize(("failed", "repaired"), [(2, ()), (3, ("f",))])
def test_a_fixture_is_repaired_where_most_runs_failed_and_none_does(failed: int, repaired: tuple[str, ...]) -> None:
    change = compare_outcomes({"f": runs(4 - failed, failed), "g": runs(4)}, {"f": runs(4), "g": runs(4)})
    assert change.repaired == repaired
    strand = outcome_strand(change)
    assert strand.state is (StrandState.BETTER if repaired else StrandState.SAME)
    assert strand.gain == len(repaired) / 2
    assert (strand.base, strand.candidate) == (f"{8 - failed} of 8 runs", "8 of 8 runs")
    assert compare_outcomes({"f": runs(1, 3)}, {"f": runs(3, 1)}).repaired == ()
    assert outcome_strand(compare_outcomes({"f": runs(0, 4)}, {"f": runs(4)})).gain == 1.0


def test_one_session_that_is_never_shortened_is_not_broken_and_a_suite_of_them_is() -> None:
    idle, fine = runs(0, 2, IDLE), runs(2)
    assert always_failing(failures({"f": idle, "g": fine})) == ()
    assert always_failing(failures({"f": idle, "g": idle})) == ("f", "g")
    assert always_failing(failures({"f": idle, "none": []})) == ("f",)
    assert always_failing(failures({"f": runs(0, 2), "g": fine, "none": []})) == ("f",)
    assert always_failing(failures({"f": runs(1, 1), "g": fine})) == ()


def test_a_broken_fixture_is_named_with_the_share_of_runs_that_compress() -> None:
    change = compare_outcomes({"f": runs(4), "g": runs(4)}, {"f": runs(1, 3), "g": runs(4), "new": runs(0, 4)})
    assert broken_fixtures(change) == ("f", "new")
    named = outcome_culprits(change, broken_fixtures(change))
    assert [(item.fixture, item.base, item.candidate) for item in named] == [("f", 1.0, 0.25), ("new", None, 0.0)]
    assert outcome_strand(change).state is StrandState.WORSE
