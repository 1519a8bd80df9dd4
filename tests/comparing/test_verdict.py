"""Which verdict, in which words, with which exit code; and that the three never disagree."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_core.base.errors import UserError
from eval_core.comparing.control_runs import ControlShift
from eval_core.comparing.tested import Options
from eval_core.comparing.verdict import FailOn, decide, exit_code
from eval_core.domain.extra import Look
from eval_core.statistics.arms import Arm
from eval_core.statistics.looks import next_look, runs_at, share, spent
from eval_core.statistics.permutation import Shift
from eval_core.strands.findings import Advice, Kind, RowVerdict, Verdict

from .arms import CHECKS, constant, fixture, noisy

QUICK = Options(arrangements=500)
OTHER_MODELS = ControlShift(Shift({}, {}), -2.0, 0.01, 3)


def without_scores(arm: Arm) -> Arm:
    empty = {
        name: dataclasses.replace(one, scores=np.zeros((0, len(one.probes), 6)), planned_scores=0)
        for name, one in arm.fixtures.items()
    }
    return Arm(arm.label, empty)


def with_structure(arm: Arm, failing: dict[str, list[bool]]) -> Arm:
    """Let a check of every fixture pass or fail run by run."""
    changed = {
        name: dataclasses.replace(
            one,
            structure=tuple(
                {**checks, **{key: flags[i] for key, flags in failing.items()}}
                for i, checks in enumerate(one.structure)
            ),
        )
        for name, one in arm.fixtures.items()
    }
    return Arm(arm.label, changed)


# The decision


def test_a_result_with_itself_is_no_detectable_change_and_says_what_would_have_been_seen() -> None:
    verdict = decide(noisy(1, 10), noisy(1, 10))
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE
    assert "smallest detectable change" in verdict.headline
    assert {row.verdict for row in verdict.rows} == {RowVerdict.NO_DETECTABLE_CHANGE}


def test_lower_scores_regress_and_higher_scores_improve() -> None:
    high, low = noisy(1, 10, mean=4.2), noisy(2, 5, mean=3.2)
    assert decide(high, low).kind is Kind.REGRESSED
    assert decide(low, high).kind is Kind.IMPROVED


def test_identical_deterministic_runs_are_no_detectable_change() -> None:
    verdict = decide(constant(3, 4.0), constant(3, 4.0))
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE
    assert verdict.headline.startswith("No detectable change: overall 0.00 [")


def test_a_deterministic_regression_is_seen() -> None:
    verdict = decide(constant(3, 4.0), constant(3, 3.5))
    assert verdict.kind is Kind.REGRESSED
    assert verdict.headline.startswith("Regressed: overall −0.50 [")
    assert [item.kind for item in verdict.culprits if item.kind != "probe"] == ["dimension"] * 7


def test_scores_up_and_facts_down_is_mixed_and_both_are_told() -> None:
    verdict = decide(constant(3, 3.0, fact=0.9), constant(3, 4.0, fact=0.6))
    assert verdict.kind is Kind.MIXED
    assert verdict.headline.startswith("Mixed: facts that probes ask for: 90 % → 60 % kept; overall +1.00 [")


def test_facts_alone_decide_when_the_judge_was_not_called() -> None:
    verdict = decide(constant(10, 4.0, fact=0.85), without_scores(constant(10, 4.0, fact=0.62)))
    assert verdict.kind is Kind.REGRESSED
    assert verdict.headline == "Regressed: facts that probes ask for: 85 % → 62 % kept."
    assert [test.family for test in verdict.tests] == ["facts"]
    assert any("No scores were compared" in note for note in verdict.notes)


def test_facts_alone_can_show_no_detectable_change() -> None:
    verdict = decide(noisy(1, 10), without_scores(noisy(2, 10)))
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE
    assert "pp of facts" in verdict.headline
    assert "overall" not in verdict.headline


def test_two_broken_probes_of_one_fixture_are_named() -> None:
    base, candidate = noisy(1, 10, probes=10), noisy(2, 3, probes=10)
    candidate.fixtures["f1"].scores[:, 2:4] = 0.0
    verdict = decide(base, candidate)
    assert verdict.kind is Kind.REGRESSED
    assert {item.label for item in verdict.culprits if item.kind == "probe"} == {"f1 / p2", "f1 / p3"}
    assert verdict.headline.startswith("Regressed: overall −0.28 [")
    assert "f1" in verdict.next_step


def test_a_lost_kind_of_census_fact_is_named() -> None:
    base, candidate = noisy(1, 10, probes=10), noisy(2, 10, probes=10)
    candidate.fixtures["f2"].census[:, 0] = 0.0
    verdict = decide(base, candidate)
    assert verdict.kind is Kind.REGRESSED
    assert ("census", "f2", "path") in {(item.kind, item.fixture, item.name) for item in verdict.culprits}


def test_too_few_runs_are_inconclusive_and_say_so() -> None:
    verdict = decide(constant(3, 4.0, fixtures=1), constant(1, 3.0, fixtures=1))
    assert verdict.kind is Kind.INCONCLUSIVE
    assert "with so few runs no scores could be significant" in verdict.headline
    assert verdict.advice == Advice(runs=2)
    assert "--next-look" in verdict.next_step
    assert not verdict.tests[0].can_reach


def test_one_test_that_can_reach_significance_does_not_speak_for_one_that_cannot() -> None:
    whole = constant(8, 4.0, fixtures=1)
    short = {
        name: dataclasses.replace(one, scores=one.scores[:2], planned_scores=one.scores[:2, :, 0].size)
        for name, one in whole.fixtures.items()
    }
    verdict = decide(Arm("base", short), Arm("candidate", short))
    assert {test.family: test.can_reach for test in verdict.tests} == {"scores": False, "facts": True}
    assert {row.verdict for row in verdict.rows} == {RowVerdict.NO_DETECTABLE_CHANGE}
    assert verdict.kind is Kind.INCONCLUSIVE


def test_wide_intervals_are_inconclusive_and_give_one_advice() -> None:
    verdict = decide(noisy(1, 4, mean=3, sd=0.7, fixtures=2), noisy(3, 3, mean=3, sd=0.7, fixtures=2))
    assert verdict.kind is Kind.INCONCLUSIVE
    assert "more runs" not in verdict.headline
    assert verdict.advice is not None
    assert verdict.advice.runs == 3
    assert verdict.next_step.count("--next-look") == 1
    last = decide(noisy(1, 10, mean=3, sd=0.9, fixtures=1), noisy(3, 10, mean=3, sd=0.9, fixtures=1))
    assert (last.kind, last.advice) == (Kind.INCONCLUSIVE, None)
    assert "--next-look" not in last.next_step


# Before any number: comparable, complete


def test_different_fingerprints_come_first_and_show_no_delta() -> None:
    difference = [("tokenizer", "old", "new")]
    verdict = decide(constant(3, 4.0), constant(3, 1.0), differences=difference)
    assert verdict.kind is Kind.NOT_COMPARABLE
    assert verdict.headline == "Not comparable: tokenizer differs (old → new)."
    assert not verdict.rows
    assert not verdict.units
    assert not verdict.medians
    assert not verdict.tests


def test_models_that_changed_make_scores_not_comparable() -> None:
    verdict = decide(constant(3, 4.0), constant(3, 1.0), control=OTHER_MODELS)
    assert verdict.kind is Kind.NOT_COMPARABLE
    assert [(reason.code, reason.mutes) for reason in verdict.reasons] == [("models", "scores")]


def test_another_judge_mutes_the_scores_only() -> None:
    difference = [("judge_model.name", "judge-a", "judge-b")]
    calm = decide(constant(3, 4.0), constant(3, 1.0), differences=difference)
    assert calm.kind is Kind.NOT_COMPARABLE
    assert calm.headline == "Not comparable: judge_model.name differs (judge-a → judge-b)."
    assert {row.family for row in calm.rows} == {"facts"}
    lost = decide(constant(10, 4.0), constant(10, 4.0, fact=0.4), differences=difference)
    assert lost.kind is Kind.REGRESSED
    assert [reason.mutes for reason in lost.reasons] == ["scores"]


def test_models_that_changed_hide_no_lost_fact_and_no_broken_structure() -> None:
    lost = decide(constant(10, 4.0), constant(10, 4.0, fact=0.4), control=OTHER_MODELS)
    assert lost.kind is Kind.REGRESSED
    assert {test.family for test in lost.tests} == {"facts"}
    broken = with_structure(constant(10, 4.0), {"tool pairs whole": [False] * 10})
    assert decide(constant(10, 4.0), broken, control=OTHER_MODELS).kind is Kind.REGRESSED
    assert exit_code(lost, "regressed") == 1


def test_another_compressor_model_mutes_facts_but_not_structure() -> None:
    difference = [("compressor_model.model", "a", "b")]
    assert decide(constant(9, 4.0), constant(9, 4.0, fact=0.4), differences=difference).kind is Kind.NOT_COMPARABLE
    broken = with_structure(constant(9, 4.0), {"tool pairs whole": [False] * 9})
    assert decide(constant(9, 4.0), broken, differences=difference).kind is Kind.REGRESSED


@pytest.mark.parametrize(("lost", "kind"), [(6, Kind.NO_DETECTABLE_CHANGE), (7, Kind.INCOMPLETE)])
def test_the_coverage_floor_is_five_percent_of_the_grid(lost: int, kind: Kind) -> None:
    base, candidate = noisy(1, 10), noisy(1, 10)
    for cell in range(lost):
        candidate.fixtures[f"f{cell % 3}"].scores[cell, cell % 4] = np.nan
    verdict = decide(base, candidate)
    assert verdict.kind is kind
    if kind is Kind.INCOMPLETE:
        assert verdict.headline == "Incomplete: only 94 % of the candidate's planned grades are there, 95 % are needed."
        assert {row.family for row in verdict.rows} == {"facts"}


def test_a_missing_fixture_names_its_side() -> None:
    base, candidate = constant(3, 4.0), constant(3, 4.0)
    del candidate.fixtures["f1"]
    assert decide(base, candidate).headline == "Incomplete: the candidate has no fixture f1."
    assert decide(candidate, base).headline == "Incomplete: the baseline has no fixture f1."


def test_all_grades_missing_is_incomplete_never_a_regression() -> None:
    candidate = constant(3, 4.0)
    for one in candidate.fixtures.values():
        one.scores[:] = np.nan
    verdict = decide(constant(3, 4.0), candidate)
    assert verdict.kind is Kind.INCOMPLETE
    assert "the candidate has no scores of f0" in verdict.headline


def test_nothing_on_either_side_is_incomplete() -> None:
    assert decide(Arm("b", {}), Arm("c", {})).headline == "Incomplete: neither side has any fixture."


def test_facts_that_were_not_at_risk_are_not_missing() -> None:
    untested = fixture(
        np.full((5, 2, 6), 4.0), np.full((5, 2), np.nan), np.full((5, 2), np.nan), structure=(CHECKS,) * 5
    )
    arm = Arm("a", {f"f{i}": untested for i in range(3)})
    verdict = decide(arm, arm)
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE
    assert [test.family for test in verdict.tests] == ["scores"]


def test_where_nothing_at_all_was_at_risk_the_verdict_is_inconclusive() -> None:
    untested = fixture(None, np.full((5, 2), np.nan), np.full((5, 2), np.nan), structure=(CHECKS,) * 5)
    verdict = decide(Arm("b", {"f": untested}), Arm("c", {"f": untested}))
    assert verdict.kind is Kind.INCONCLUSIVE
    assert "nothing that was compared had anything at risk" in verdict.headline


def test_impossible_scores_are_refused() -> None:
    candidate = constant(3, 4.0)
    candidate.fixtures["f1"].scores[1, 0, 2] = 7.0
    with pytest.raises(UserError, match=r"constant: f1 / p0, run 2: a score is 7.0, expected 0 to 5"):
        decide(constant(3, 4.0), candidate)


def test_one_row_that_cannot_tell_keeps_the_verdict_inconclusive() -> None:
    verdict = decide(noisy(12, 6, fixtures=2), noisy(13, 5, fixtures=2), options=QUICK)
    undecided = [row.name for row in verdict.rows if row.verdict is not RowVerdict.NO_DETECTABLE_CHANGE]
    assert (undecided, verdict.culprits) == (["context_awareness"], ())
    assert all(test.can_reach for test in verdict.tests)
    assert verdict.kind is Kind.INCONCLUSIVE


# Structure


def test_a_broken_structure_check_regresses_by_itself() -> None:
    base = constant(3, 4.0)
    verdict = decide(base, with_structure(base, {"tool pairs whole": [False, False, True]}))
    assert verdict.kind is Kind.REGRESSED
    assert verdict.headline == "Regressed: structure check tool pairs whole fails (3 fixtures)."
    assert all(row.verdict is RowVerdict.NO_DETECTABLE_CHANGE for row in verdict.rows)


def test_a_repaired_structure_check_improves() -> None:
    base = constant(3, 4.0)
    verdict = decide(with_structure(base, {"tool pairs whole": [False] * 3}), base)
    assert verdict.kind is Kind.IMPROVED
    assert verdict.headline.startswith("Improved: repaired:")


def test_a_check_that_fails_once_is_told_and_does_not_decide() -> None:
    base = constant(3, 4.0)
    verdict = decide(base, with_structure(base, {"tool pairs whole": [True, False, True]}))
    assert verdict.kind is Kind.NO_DETECTABLE_CHANGE
    assert "f0 / tool pairs whole fails in 1 of 3 runs and never did in the baseline." in verdict.notes


def test_missing_grades_hide_no_broken_structure() -> None:
    candidate = with_structure(constant(3, 4.0), {"tool pairs whole": [False] * 3})
    for one in candidate.fixtures.values():
        one.scores[:] = np.nan
    verdict = decide(constant(3, 4.0), candidate)
    assert verdict.kind is Kind.REGRESSED
    assert "tool pairs whole" in verdict.headline
    assert verdict.reasons


# Looks


def test_planned_looks_share_one_alpha_and_the_same_runs_are_tested_once() -> None:
    shares = [share(3), share(6, [3]), share(10, [3, 6])]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == max(shares)
    assert share(3, [3]) == share(3)  # no further look: nothing was added
    assert share(10) == 1.0  # one look at the end may spend everything
    assert (next_look(3), next_look(7), next_look(10)) == (6, 10, None)
    assert [runs_at(look, 3) for look in (1, 2, 3, 4)] == [3, 6, 10, 10]
    with pytest.raises(UserError, match="look"):
        spent(-1)


def test_a_later_look_at_the_same_runs_gives_the_same_verdict() -> None:
    arms = noisy(1, 10, mean=4.0), noisy(2, 3, mean=3.8)
    assert decide(*arms, earlier=[Look(3, 10)]) == decide(*arms)


def test_a_look_after_more_runs_spends_what_is_left() -> None:
    base = noisy(1, 10, mean=4.0)
    first, second = decide(base, noisy(2, 3)), decide(base, noisy(2, 6), earlier=[Look(3, 3)])
    assert first.tests[0].alpha == pytest.approx(0.025 * 0.75)
    assert second.tests[0].alpha == pytest.approx(0.025 * 0.1)
    assert (first.look, second.look) == (1, 2)
    assert second.alpha_spent == pytest.approx(0.05 * 0.85)


# Exit codes and agreement

CODES: dict[Kind, tuple[int, int, int]] = {
    Kind.BROKEN: (0, 1, 1),
    Kind.NOT_COMPARABLE: (0, 3, 3),
    Kind.INCOMPLETE: (3, 3, 3),
    Kind.REGRESSED: (0, 1, 1),
    Kind.IMPROVED: (0, 0, 0),
    Kind.TRADE: (0, 0, 0),
    Kind.MIXED: (0, 1, 1),
    Kind.NO_DETECTABLE_CHANGE: (0, 0, 0),
    Kind.INCONCLUSIVE: (0, 0, 1),
    Kind.NOT_JUDGED: (0, 3, 3),
}


@pytest.mark.parametrize("kind", list(Kind))
def test_exit_codes_follow_the_verdict(kind: Kind) -> None:
    verdict = Verdict(kind=kind, headline="", next_step="", base_label="b", candidate_label="c")
    modes: tuple[FailOn, ...] = ("never", "regressed", "inconclusive")
    assert tuple(exit_code(verdict, mode) for mode in modes) == CODES[kind]


def test_a_verdict_survives_json() -> None:
    for verdict in (
        decide(noisy(1, 10), noisy(2, 3, mean=3.2)),
        decide(constant(1, 4.0), constant(1, 4.0)),
        decide(constant(3, 4.0), constant(3, 4.0), control=OTHER_MODELS),
    ):
        text = verdict.to_json()
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        assert Verdict.model_validate_json(text) == verdict
        assert "half \\ud800" in verdict.noted("half \ud800").to_json()


@given(
    seed=st.integers(0, 10_000),
    shift=st.sampled_from([-1.0, -0.4, -0.15, 0.0, 0.0, 0.15, 0.6]),
    fact_shift=st.sampled_from([-0.2, 0.0, 0.0, 0.1]),
    runs=st.integers(1, 5),
    fixtures=st.integers(1, 3),
    lost=st.integers(0, 3),
    broken=st.booleans(),
)
def test_sentence_rows_culprits_and_exit_code_always_agree(
    seed: int, shift: float, fact_shift: float, runs: int, fixtures: int, lost: int, broken: bool
) -> None:
    base = noisy(seed, 6, fixtures=fixtures)
    candidate = noisy(seed + 1, runs, mean=4.0 + shift, fact=0.8 + fact_shift, fixtures=fixtures)
    random = np.random.default_rng(seed)
    for _ in range(lost):
        candidate.fixtures["f0"].scores[random.integers(runs), random.integers(4)] = np.nan
    if broken:
        candidate = with_structure(candidate, {"tool pairs whole": [False] * runs})
    verdict = decide(base, candidate, options=QUICK)
    assert verdict.headline.startswith(verdict.kind.words + ": ")
    assert "-0.00" not in verdict.headline
    assert "nan" not in verdict.headline
    assert "unknown or more" not in verdict.headline
    assert "no regression" not in verdict.to_json().lower()
    directions = {item.direction for item in verdict.culprits}
    said = {row.verdict for row in verdict.rows}
    expected = {
        frozenset({"worse"}): {Kind.REGRESSED},
        frozenset({"better"}): {Kind.IMPROVED},
        # Both: the weightier side, or mixed where they are of comparable weight.
        frozenset({"worse", "better"}): {Kind.REGRESSED, Kind.IMPROVED, Kind.MIXED},
    }.get(frozenset(directions))
    if broken:
        assert verdict.kind is Kind.REGRESSED
    if verdict.kind is Kind.INCOMPLETE:
        assert all(row.family == "facts" for row in verdict.rows)
        assert not verdict.culprits
    elif expected is not None:
        assert verdict.kind in expected
    else:
        assert verdict.kind in (Kind.NO_DETECTABLE_CHANGE, Kind.INCONCLUSIVE)
        assert not any(test.significant for test in verdict.tests)
        settled = said == {RowVerdict.NO_DETECTABLE_CHANGE} and all(test.can_reach for test in verdict.tests)
        assert (verdict.kind is Kind.NO_DETECTABLE_CHANGE) == settled
    for direction in ("worse", "better"):
        assert (RowVerdict(direction) not in said) or direction in directions
    named = {item.name for item in verdict.culprits if item.kind in ("dimension", "retention")}
    assert named == {row.name for row in verdict.rows if row.verdict in (RowVerdict.WORSE, RowVerdict.BETTER)}
    for test in verdict.tests:
        family = [item for item in verdict.culprits if item.kind in KINDS_OF[test.family]]
        # Scores are also named where they follow from facts that changed for certain.
        by_facts = test.family == "scores" and any(other.significant for other in verdict.tests)
        assert bool(family) == test.significant or by_facts
    assert exit_code(verdict, "regressed") == {Kind.REGRESSED: 1, Kind.MIXED: 1, Kind.INCOMPLETE: 3}.get(
        verdict.kind, 0
    )


KINDS_OF = {"scores": {"dimension", "probe"}, "facts": {"retention", "fact", "census"}}


@given(seed=st.integers(0, 10_000), runs=st.integers(1, 6), sd=st.sampled_from([0.0, 0.1, 0.8]))
@settings(max_examples=25)
def test_a_result_compared_with_itself_never_changes(seed: int, runs: int, sd: float) -> None:
    arm = noisy(seed, runs, sd=sd)
    verdict = decide(arm, arm, options=QUICK)
    assert verdict.kind in (Kind.NO_DETECTABLE_CHANGE, Kind.INCONCLUSIVE)
    assert all(math.isclose(test.p, 1.0) for test in verdict.tests)


@given(seed=st.integers(0, 1000), holes=st.integers(0, 6))
@settings(max_examples=10)
def test_missing_cells_barely_move_the_means(seed: int, holes: int) -> None:
    """Missing is never zero: a few lost cells move a mean by noise, not by points."""
    base, whole, gappy = noisy(seed, 10), noisy(seed + 1, 10), noisy(seed + 1, 10)
    random = np.random.default_rng(seed)
    for _ in range(holes):
        gappy.fixtures[f"f{random.integers(3)}"].scores[random.integers(10), random.integers(4)] = np.nan
    one, other = decide(base, whole, options=QUICK).row("overall"), decide(base, gappy, options=QUICK).row("overall")
    assert one is not None
    assert other is not None
    assert abs(one.candidate - other.candidate) < 0.05
