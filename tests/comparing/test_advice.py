"""How likely more runs settle what is open: one certain change is enough, and a later look is a stricter one."""

from __future__ import annotations

from dataclasses import replace

from eval_core.statistics.permutation import Hypothesis, PermutationResult
from eval_core.strands import culprits
from eval_core.strands.culprits import chance_to_decide


def row(delta: float, se: float = 0.12) -> Hypothesis:
    later = tuple(se * (3 / (3 + extra)) ** 0.5 for extra in range(1, 8))
    return Hypothesis(
        name="overall",
        base=4.0,
        candidate=4.0 + delta,
        delta=delta,
        se=se,
        df=20,
        ci_low=delta - 3 * se,
        ci_high=delta + 3 * se,
        ci90_low=delta - 2 * se,
        ci90_high=delta + 2 * se,
        p=0.2,
        mde=0.4,
        mde_two_more=0.3,
        crit=2.6,
        tested=delta,
        explained=0.0,
        se_after=later,
    )


def family(*rows: Hypothesis) -> culprits.TestedFamily:
    result = PermutationResult(
        p=0.2,
        p_global=0.2,
        p_local=0.5,
        hypotheses=rows,
        units=(),
        crit=2.6,
        arrangements=1000,
        enumerated=False,
        attainable_p=0.001,
        can_reach=True,
        alpha=0.0225,
        runs={"a": (3, 10), "b": (3, 10)},
        left_out=(),
    )
    return culprits.TestedFamily("scores", result, margin=0.35, culprit_alpha=0.05)


def test_one_row_that_will_be_certain_settles_it_whatever_the_others_do() -> None:
    never_settled = row(-0.3, se=0.5)
    assert chance_to_decide([family(never_settled)], 3, 7) < 0.2
    assert chance_to_decide([family(row(-0.3), never_settled)], 3, 7) > 0.5


def test_a_change_at_the_edge_of_the_first_look_is_no_safe_bet_at_the_second() -> None:
    # Just short of the first look's threshold; the second look has a seventh of its alpha.
    assert chance_to_decide([family(row(-0.31))], 3, 3) < 0.75


def test_rows_near_zero_settle_as_no_change() -> None:
    assert chance_to_decide([family(row(0.0), row(0.01))], 3, 7) > 0.95


def test_more_runs_also_know_their_noise_better() -> None:
    # With four degrees of freedom the first look asks for 3.6 errors; the last one, which has eighteen, for fewer.
    assert chance_to_decide([family(replace(row(-0.25), df=4, crit=3.6))], 3, 7) > 0.9
