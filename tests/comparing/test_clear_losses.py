"""Clear losses against brute force in plain Python, and what they and the size do to a verdict."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small import cases, measure

from eval_core.comparing.tested import Options
from eval_core.comparing.verdict import decide
from eval_core.domain.compression import Outcome
from eval_core.statistics.arms import Arm, Array, make_arm
from eval_core.statistics.clear_losses import KeptBlock, clear_changes, kept_blocks
from eval_core.statistics.fates import fates
from eval_core.strands.evidence import Recorded
from eval_core.strands.findings import Kind, StrandState
from eval_core.strands.size import SizeChange

from .arms import noisy
from .records import recorded


def block(name: str, candidate: Sequence[Sequence[int]], base: Sequence[Sequence[int]]) -> KeptBlock:
    kept = np.array([*candidate, *base], dtype=np.float64)
    facts = tuple(f"fact {at}" for at in range(kept.shape[1]))
    return KeptBlock(name, len(candidate), len(base), facts, kept)


def brute_force(designs: Sequence[tuple[list[list[int]], int]], *, lost: bool) -> float:
    """Relabel with lists and loops: each fixture is its runs, candidate's first, and how many are the candidate's."""

    def chance(values: list[int], chosen: tuple[int, ...]) -> float:
        ours = sum(values[at] for at in chosen)
        draws = list(itertools.combinations(values, len(chosen)))
        return sum(sum(draw) <= ours for draw in draws) / len(draws)

    def statistic(labels: tuple[tuple[int, ...], ...]) -> float:
        total = 0.0
        for (runs, _), chosen in zip(designs, labels, strict=True):
            columns = [[run[fact] if lost else 1 - run[fact] for run in runs] for fact in range(len(runs[0]))]
            chances = [chance(column, chosen) for column in columns]
            total += sum(-math.log(p) for p in chances if p <= 0.02 + 1e-12) ** 2
        return total

    choices = [list(itertools.combinations(range(len(runs)), n)) for runs, n in designs]
    every = [statistic(labels) for labels in itertools.product(*choices)]
    return sum(value >= every[0] - 1e-9 * max(1.0, every[0]) for value in every) / len(every)


_SHAPES: tuple[tuple[tuple[int, int], ...], ...] = (
    ((3, 6),), ((2, 8),), ((4, 4),), ((1, 3), (2, 9)), ((3, 5), (2, 4)),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("shape", _SHAPES)
def test_the_p_values_equal_those_computed_by_brute_force(shape: tuple[tuple[int, int], ...], seed: int) -> None:
    random = np.random.default_rng(seed)
    designs, blocks = [], []
    for number, (n, m) in enumerate(shape):
        often = random.choice([0.1, 0.5, 0.9, 1.0], 4)
        runs = (random.random((n + m, 4)) < often).astype(int)
        runs[:n, :2] = seed % 2  # lost, or gained, in all runs
        runs[n:, :2] = random.random((m, 2)) < 0.9 if seed % 2 == 0 else random.random((m, 2)) < 0.1
        designs.append((runs.tolist(), n))
        blocks.append(block(f"f{number}", runs[:n].tolist(), runs[n:].tolist()))
    found = clear_changes(blocks, alpha=0.01)
    assert found is not None
    assert found.lost.p == pytest.approx(brute_force(designs, lost=True), abs=1e-12)
    assert found.gained.p == pytest.approx(brute_force(designs, lost=False), abs=1e-12)


def test_a_fact_that_all_keep_or_none_says_nothing_and_those_that_count_are_named() -> None:
    kept, lost = [1, 1, 0, 1], [1, 0, 0, 1]
    found = clear_changes([block("f", [lost] * 3, [kept] * 10)], alpha=0.01)
    assert found is not None
    assert (found.lost.facts, found.lost.share, found.lost.p) == ((("f", "fact 1"),), 0.25, 1 / 286)
    assert (found.gained.facts, found.gained.p, found.loss, found.gain) == ((), 1.0, 0.25, 0.0)


def _with(arm: Arm, lost: int, *, of: int = 20, gained: int = 0, runs: int | None = None) -> Arm:
    """Give each fixture single facts: the first ones never kept, the others always, the last ones never but gained."""
    found = {}
    for name, fixture in arm.fixtures.items():
        count = len(fixture.structure)
        state = {f"fact {at}": np.ones(count) for at in range(of)} | {f"late {at}": np.zeros(count) for at in range(9)}
        for at in range(lost):
            state[f"fact {at}"][: count if runs is None else runs] = 0.0
        for at in range(gained):
            state[f"late {at}"][:] = 1.0
        found[name] = replace(fixture, kept=state)
    return Arm(arm.label, found)


def test_facts_that_are_always_lost_make_it_worse_though_no_average_moves() -> None:
    base, candidate = _with(noisy(1, 10), 0), _with(noisy(2, 3), 2)
    found = recorded(exact=False, judged=True)
    calm = decide(base, _with(noisy(2, 3), 0), recorded=found)
    assert calm.kind is Kind.NO_DETECTABLE_CHANGE
    verdict = decide(base, candidate, recorded=found)
    facts = verdict.strand("facts")
    assert facts is not None
    assert (verdict.kind, facts.state, facts.says) == (Kind.REGRESSED, StrandState.WORSE, "6 facts clearly lost")
    assert facts.loss == pytest.approx(2 / 29)
    assert {test.name: test.p <= test.alpha for test in verdict.further_tests} == {"facts lost": True}
    mixed = decide(base, _with(noisy(2, 3), 2, gained=2), recorded=found).strand("facts")
    assert mixed is not None
    assert (mixed.state, mixed.says) == (StrandState.BOTH, "6 facts clearly lost, 6 clearly gained")


@pytest.mark.parametrize("fixtures", [1, 3])
def test_the_smallest_loss_that_is_named_is_the_first_that_is_certain(fixtures: int) -> None:
    random = np.random.default_rng(fixtures)
    flicker = [(random.random((13, 60)) < 0.8).astype(float) for _ in range(fixtures)]

    def arms(lost: int) -> list[KeptBlock]:
        sound = np.ones((13, 20))
        sound[:3, :lost] = 0.0
        names = tuple(map(str, range(80)))
        return [
            KeptBlock(f"f{at}", 3, 10, names, np.column_stack([sound if not at else np.ones((13, 20)), one]))
            for at, one in enumerate(flicker)
        ]

    calm = clear_changes(arms(0), alpha=0.0075)
    assert calm is not None
    assert calm.smallest is not None
    for lost in range(1, calm.smallest + 4):
        found = clear_changes(arms(lost), alpha=0.0075)
        assert found is not None
        assert found.worse or lost < calm.smallest
        assert not found.worse or lost >= calm.smallest - 1
    few = clear_changes([block("f", [[1]] * 3, [[1]] * 3)], alpha=0.0075)
    assert few is not None
    assert few.smallest is None


def test_what_was_gained_as_clearly_is_weighed_against_it() -> None:
    base, found = _with(noisy(1, 10), 0), recorded(exact=False, judged=True)
    for lost, gained, kind in ((3, 3, Kind.MIXED), (3, 1, Kind.REGRESSED), (1, 3, Kind.IMPROVED), (0, 9, None)):
        verdict = decide(base, _with(noisy(2, 3), lost, gained=gained), recorded=found)
        assert verdict.kind is (kind or Kind.NO_DETECTABLE_CHANGE)


def test_losses_that_may_be_luck_are_not_called_calm() -> None:
    base = _with(noisy(1, 10, fixtures=1), 0)
    found = recorded(exact=False, judged=True)
    alone = decide(base, _with(noisy(2, 2, fixtures=1), 2), recorded=found)  # 1 of 66 arrangements
    assert alone.kind is Kind.INCONCLUSIVE
    assert "2 facts" in alone.headline
    assert alone.further_tests[0].p == pytest.approx(1 / 66)


def test_missing_runs_and_facts_of_one_side_are_left_out() -> None:
    base, candidate = _with(noisy(1, 10, fixtures=1), 0), _with(noisy(2, 3, fixtures=1), 1)
    one = candidate.fixtures["f0"]
    one.facts[2], one.census[2] = np.nan, np.nan
    holes = replace(
        one,
        structure=(*one.structure[:2], {}),
        kept={**{fact: np.append(values[:2], np.nan) for fact, values in one.kept.items()}, "new": np.ones(3)},
    )
    (found,) = kept_blocks(base, Arm("c", {"f0": holes}))
    assert (found.candidate_runs, found.base_runs, found.kept.shape) == (2, 10, (12, 29))
    assert "new" not in found.facts


def test_what_probes_ask_for_and_rules_find_is_one_fact_in_the_order_of_the_arms_runs(tmp_path: Path) -> None:
    measured = measure(cases(), tmp_path / "run", "anchored")
    arm = make_arm(measured)
    for name, fixture in arm.fixtures.items():
        assert set(fixture.kept) == set(fates(measured, name))
        assert fixture.tokens is not None
        assert fixture.tokens[0] == measured.fixtures[name][0].tokens_after
    name, (run, *_) = next(iter(measured.fixtures.items()))
    failed = run.model_copy(update={"run": 0, "outcome": Outcome.INFRA, "graded": True})
    late = run.model_copy(update={"run": 1, "graded": False})
    mixed = measured.model_copy(update={"fixtures": {name: [late, failed]}, "planned_compress_runs": 2})
    for fact, values in make_arm(mixed).fixtures[name].kept.items():
        assert np.isnan(values[0])
        assert values[1] == fates(measured, name)[fact].kept[0]


# Size


def _sized(arm: Arm, seed: int, mean: float, cv: float) -> Arm:
    random = np.random.default_rng(seed)

    def tokens(runs: int) -> Array:
        return mean * np.exp(random.normal(0, cv, runs))

    return Arm(arm.label, {name: replace(one, tokens=tokens(len(one.structure))) for name, one in arm.fixtures.items()})


def _found(base: Arm, candidate: Arm, *, exact: bool = False) -> Recorded:
    means = [float(np.mean([one.tokens.mean() for one in arm.fixtures.values() if one.tokens is not None]))
             for arm in (base, candidate)]  # fmt: skip
    return replace(recorded(exact=exact, judged=True), size=SizeChange(True, means[0], means[1], 0.5, 0.5))


def test_a_size_that_runs_explain_decides_nothing_and_one_that_they_do_not_does() -> None:
    false = 0
    for seed in range(60):
        base = _sized(noisy(1, 10), seed, 1000, 0.15)
        same = _sized(noisy(2, 3), 1000 + seed, 1000, 0.15)
        verdict = decide(base, same, recorded=_found(base, same), options=Options(arrangements=500))
        false += verdict.kind in (Kind.REGRESSED, Kind.IMPROVED, Kind.TRADE)
    assert false <= 2  # by its 5 % alone it is another size in a third of them
    smaller = _sized(noisy(2, 3), 7, 600, 0.15)
    assert decide(base, smaller, recorded=_found(base, smaller)).kind is Kind.IMPROVED
    assert decide(smaller, base, recorded=_found(smaller, base)).kind is Kind.REGRESSED


def test_a_size_beyond_the_threshold_that_may_be_luck_says_so() -> None:
    change = SizeChange(True, 100.0, 120.0, p=0.04, alpha=0.01)
    assert (change.larger, change.strand.state) == (False, StrandState.CANNOT_TELL)
    assert change.strand.says == "the state is 20 % larger, which may be luck (p 0.040)"
    assert replace(change, p=0.004).larger
    assert replace(change, p=None).larger


def test_the_size_of_deterministic_runs_is_counted_however_few_they_are() -> None:
    base, candidate = _sized(noisy(1, 3, fixtures=1), 1, 1000, 0.0), _sized(noisy(2, 3, fixtures=1), 2, 1200, 0.001)
    assert decide(base, candidate, recorded=_found(base, candidate, exact=True)).kind is Kind.REGRESSED
    loose = _sized(noisy(2, 3, fixtures=1), 3, 1200, 0.1)
    assert decide(base, loose, recorded=_found(base, loose, exact=True)).kind is not Kind.REGRESSED


def test_a_measurement_with_itself_loses_nothing(tmp_path: Path) -> None:
    measured = measure(cases(), tmp_path / "run", "anchored")
    found = clear_changes(kept_blocks(make_arm(measured), make_arm(measured)), alpha=0.01)
    assert found is not None
    assert (found.lost.p, found.lost.facts, found.gained.facts) == (1.0, (), ())
