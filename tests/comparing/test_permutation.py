"""The permutation test against brute force in plain Python, and its exactness."""

from __future__ import annotations

import itertools
import math
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from eval_core.statistics.arms import Arm, Array
from eval_core.statistics.hypotheses import (
    FACT_HYPOTHESES,
    SCORE_HYPOTHESES,
    Block,
    Explained,
    Unit,
    fact_blocks,
    fill,
    score_blocks,
)
from eval_core.statistics.permutation import Design, PermutationResult, permute

from .arms import constant, fixture, noisy

Pools = list[tuple[list[list[list[float]]], int]]
"""Per fixture: the runs of both arms (candidate first) as [run][probe][dimension], and how many are the candidate's."""


def compare_scores(base: Arm, candidate: Arm, **options: int) -> PermutationResult:
    result = permute(score_blocks(base, candidate), SCORE_HYPOTHESES, alpha=0.03, lead="overall", **options)
    assert result is not None
    return result


def two_sided(t: float, df: int) -> float:
    """Add up the density of Student's t in small steps."""
    scale = math.gamma((df + 1) / 2) / math.gamma(df / 2) / math.sqrt(df * math.pi)
    steps = 20_000
    middles = ((at + 0.5) * t / steps for at in range(steps))
    return 1 - 2 * sum(scale * (1 + x * x / df) ** (-(df + 1) / 2) for x in middles) * t / steps


def brute_force(pools: Pools) -> dict[str, object]:
    """Do steps 1 to 5 with lists and loops, sharing no code with the package."""

    def statistics(
        labels: tuple[tuple[int, ...], ...],
    ) -> tuple[list[float], list[float], list[float], list[float], list[float], list[tuple[float, int]]]:
        deltas, df, inverse = [0.0] * 7, [0, 0], [0.0, 0.0]
        squares = [[0.0] * 7, [0.0] * 7]
        units: list[float] = []
        unit_squares, unit_df = [0.0, 0.0], [0, 0]
        sizes: list[tuple[int, int]] = []
        for (runs, n), chosen in zip(pools, labels, strict=True):
            arms = [
                [run for i, run in enumerate(runs) if i in chosen],
                [r for i, r in enumerate(runs) if i not in chosen],
            ]
            for h in range(7):
                means = [[fmean(fmean(probe) if h == 6 else probe[h] for probe in run) for run in arm] for arm in arms]
                deltas[h] += (fmean(means[0]) - fmean(means[1])) / len(pools)
                for side in (0, 1):
                    squares[side][h] += sum((y - fmean(means[side])) ** 2 for y in means[side])
            for side in (0, 1):
                df[side] += len(arms[side]) - 1
                inverse[side] += 1 / len(arms[side])
                for p in range(len(runs[0])):
                    cells = [fmean(run[p]) for run in arms[side]]
                    unit_squares[side] += sum((y - fmean(cells)) ** 2 for y in cells)
                    unit_df[side] += len(cells) - 1
            units += [
                fmean(fmean(run[p]) for run in arms[0]) - fmean(fmean(run[p]) for run in arms[1])
                for p in range(len(runs[0]))
            ]
            sizes += [(n, len(runs) - n)] * len(runs[0])

        def variances(sums: list[float], known: list[int]) -> list[float]:
            own = [total / count if count else None for total, count in zip(sums, known, strict=True)]
            return [value if value is not None else own[1 - at] or 0.0 for at, value in enumerate(own)]

        ours, theirs = (max(value, 0.0025) for value in variances(unit_squares, unit_df))
        ratio = ours / theirs
        ses: list[float] = []
        bare: list[float] = []
        free: list[int] = []
        for h in range(7):
            pooled = (squares[0][h] / ratio + squares[1][h]) / sum(df)
            alone = variances([squares[0][h], squares[1][h]], df)
            pair = [max(alone[0], ratio * pooled), max(alone[1], pooled)]
            # An arm that varies more than both together say is known by its own runs, which count for one run more.
            known = [
                min(at + 1, sum(df)) if at and own >= got else sum(df)
                for at, own, got in zip(df, alone, pair, strict=True)
            ]
            shares = [value * share for value, share in zip(pair, inverse, strict=True)]
            spread = sum(part**2 / at for part, at in zip(shares, known, strict=True))
            free.append(int(sum(shares) ** 2 / spread + 1e-9) if spread else 0)
            for found, floor in ((ses, 0.0025), (bare, 0.0)):
                parts = [max(value, floor) * share for value, share in zip(pair, inverse, strict=True)]
                found.append(math.sqrt(sum(parts)) / len(pools))
        normal = [abs(d) / se if se else math.inf for d, se in zip(deltas, bare, strict=True)]
        local = [abs(u) / math.sqrt(ours / n + theirs / m) for u, (n, m) in zip(units, sizes, strict=True)]
        by_student = list(zip(normal, free, strict=True))
        return [abs(d) / se for d, se in zip(deltas, ses, strict=True)], deltas, ses, units, local, by_student

    choices = [list(itertools.combinations(range(len(runs)), n)) for runs, n in pools]
    table = [statistics(labels) for labels in itertools.product(*choices)]
    lead, rest, local = [t[6] for t, *_ in table], [max(t[:6]) for t, *_ in table], [max(u) for *_, u, _ in table]
    near = 1e-9
    share_a = [
        min(fmean(other >= a - near for other in lead), 3 * fmean(other >= b - near for other in rest))
        for a, b in zip(lead, rest, strict=True)
    ]
    share_l = [fmean(other >= value - near for other in local) for value in local]
    combined = [min(a, 6 * b) for a, b in zip(share_a, share_l, strict=True)]
    first, count = table[0], len(table)
    # No average counts for more than Student's t says, in whole arrangements.
    normal = [math.ceil(two_sided(t, df) * count - near) / count if t < math.inf else 0.0 for t, df in first[5]]
    adjusted = [
        *(
            min(1.0, 3 * max(fmean(other >= t - near for other in rest), p))
            for t, p in zip(first[0][:6], normal[:6], strict=True)
        ),
        max(fmean(other >= first[0][6] - near for other in lead), normal[6]),
    ]
    observed = min(*adjusted, 6 * share_l[0])
    return {
        "p": max(1 / count, fmean(value <= observed + near for value in combined)),
        "p_global": min(adjusted),
        "p_local": share_l[0],
        "adjusted": adjusted,
        "deltas": first[1],
        "ses": first[2],
        "units": first[3],
        "unit_p": [min(1.0, 6 * fmean(other >= u - near for other in local)) for u in first[4]],
        "arrangements": len(table),
    }


@pytest.mark.parametrize(
    "sizes", [((1, 3, 2),), ((2, 2, 3), (2, 2, 3)), ((1, 4, 2), (2, 3, 1)), ((1, 2, 2), (1, 2, 4), (2, 1, 3))]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_number_equals_the_one_computed_by_brute_force(
    sizes: tuple[tuple[int, int, int], ...], seed: int
) -> None:
    random = np.random.default_rng(seed)
    base, candidate, pools = {}, {}, []
    for index, (n, m, probes) in enumerate(sizes):
        cells = random.integers(0, 6, (n + m, probes, 6)).astype(float)
        names = tuple(f"p{i}" for i in range(probes))
        candidate[f"f{index}"] = fixture(cells[:n], probes=names)
        base[f"f{index}"] = fixture(cells[n:], probes=names)
        pools.append((cells.tolist(), n))
    expected = brute_force(pools)
    result = compare_scores(Arm("b", base), Arm("c", candidate))
    assert result.enumerated
    assert result.arrangements == expected["arrangements"]
    for name in ("p", "p_global", "p_local"):
        assert getattr(result, name) == pytest.approx(expected[name]), name
    assert [h.p for h in result.hypotheses] == pytest.approx(expected["adjusted"])
    assert [h.delta for h in result.hypotheses] == pytest.approx(expected["deltas"])
    assert [h.se for h in result.hypotheses] == pytest.approx(expected["ses"])
    assert [u.delta for u in result.units] == pytest.approx(expected["units"])
    assert [u.p for u in result.units] == pytest.approx(expected["unit_p"])
    assert [h.candidate - h.base for h in result.hypotheses] == pytest.approx(expected["deltas"])


def test_a_worked_example() -> None:
    """The one in docs/method-statistics.md: one low candidate run against three of the baseline, in two fixtures."""

    def runs(*means: float) -> Array:
        return np.repeat(np.array(means)[:, None, None], 6, axis=2)

    base = {"a": fixture(runs(4.0, 4.2, 4.1), probes=("p",)), "b": fixture(runs(3.0, 3.1, 3.2), probes=("p",))}
    candidate = {"a": fixture(runs(3.2), probes=("p",)), "b": fixture(runs(2.5), probes=("p",))}
    result = compare_scores(Arm("b", base), Arm("c", candidate))
    overall = result.hypotheses[-1]
    assert result.arrangements == 16
    assert overall.delta == pytest.approx(-0.75)  # (3.2 - 4.1 + 2.5 - 3.1) / 2
    assert overall.se == pytest.approx(math.sqrt(0.01 * (1 + 1 / 3) / 2))  # both fixtures: variance 0.01, four df
    assert result.p == result.attainable_p == 1 / 16
    assert not result.can_reach  # 1/16 > 0.03: with so few runs even this is no proof
    candidate = {"a": fixture(runs(3.2, 3.3), probes=("p",)), "b": fixture(runs(2.5, 2.6), probes=("p",))}
    result = compare_scores(Arm("b", base), Arm("c", candidate))
    overall = result.hypotheses[-1]
    assert (result.arrangements, result.p) == (100, 0.01)
    assert [overall.delta, overall.ci_low, overall.ci_high] == pytest.approx([-0.70, -0.88, -0.52], abs=0.005)


def test_arrangement_zero_is_the_observed_one_and_none_stands_twice() -> None:
    masks = list(Design(((1, 3), (2, 2))).masks())
    rows = {tuple(np.concatenate(row)) for row in zip(*masks, strict=True)}
    assert len(rows) == 4 * 6
    assert [mask[0].tolist() for mask in masks] == [[1, 0, 0, 0], [1, 1, 0, 0]]


def test_drawn_arrangements_keep_sizes_start_with_the_observed_and_repeat_with_the_seed() -> None:
    design = Design(((3, 10), (3, 9), (2, 10)), seed=7)
    assert not design.enumerated
    for (n, _), mask, again in zip(design.sizes, design.masks(), design.masks(), strict=True):
        assert mask.shape[0] == 10_000
        assert (mask.sum(axis=1) == n).all()
        assert mask[0].tolist() == [1.0] * n + [0.0] * (mask.shape[1] - n)
        assert (mask == again).all()
        assert mask.mean(axis=0) == pytest.approx(np.full(mask.shape[1], n / mask.shape[1]), abs=0.02)
    assert any((a != b).any() for a, b in zip(design.masks(), Design(design.sizes, seed=8).masks(), strict=True))


def test_drawing_agrees_with_enumerating() -> None:
    base, candidate = noisy(1, 5, fixtures=2), noisy(2, 3, fixtures=2, mean=3.8)
    whole = compare_scores(base, candidate)
    drawn = compare_scores(base, candidate, limit=2000)
    assert whole.enumerated
    assert not drawn.enumerated
    assert drawn.p == pytest.approx(whole.p, abs=0.03)
    assert drawn.crit == pytest.approx(whole.crit, rel=0.1)


@pytest.mark.parametrize(
    ("sizes", "attainable"),
    [(((1, 10),), 1 / 11), (((3, 3),), 2 / 20), (((1, 1),), 1.0), (((3, 10),), 1 / 286), (((3, 10),) * 5, 1e-4)],
)
def test_the_smallest_attainable_p_counts_mirror_images(sizes: tuple[tuple[int, int], ...], attainable: float) -> None:
    assert Design(sizes).attainable_p == pytest.approx(attainable)


def test_identical_deterministic_arms_have_p_one() -> None:
    result = compare_scores(constant(3, 4.3), constant(3, 4.3))
    assert result.p == result.p_global == result.p_local == 1.0
    assert all(h.p == 1.0 and h.delta == pytest.approx(0.0) for h in result.hypotheses)
    assert all(0 < h.mde < 0.2 for h in result.hypotheses)


@pytest.mark.parametrize("drop", [0.05, 1.0])
def test_a_deterministic_regression_reaches_the_smallest_attainable_p(drop: float) -> None:
    result = compare_scores(constant(10, 4.3), constant(3, 4.3 - drop))
    assert result.p == pytest.approx(result.attainable_p, abs=2e-4)
    assert all(h.delta == pytest.approx(-drop) and h.ci_high < 0 for h in result.hypotheses)


def test_float_noise_does_not_break_ties() -> None:
    # 0.1 + 0.2 and 0.3 differ in the last digit; all runs are equal for every purpose.
    scores = np.where(np.arange(8)[:, None, None] % 2, 0.1 + 0.2, 0.3) * np.ones((8, 2, 6))
    result = compare_scores(Arm("b", {"f": fixture(scores[:4])}), Arm("c", {"f": fixture(scores[3:7])}))
    assert result.p == 1.0


def test_one_run_on_each_side_promises_nothing() -> None:
    result = compare_scores(constant(1, 4.0, fixtures=2), constant(1, 3.0, fixtures=2))
    assert not result.can_reach
    assert all(math.isinf(h.mde) and math.isinf(h.ci_low) for h in result.hypotheses)


def test_a_probe_missing_in_one_arm_leaves_both() -> None:
    base, candidate = np.full((3, 2, 6), 4.0), np.full((2, 2, 6), 4.0)
    base[:, 1] = 1.0
    candidate[:, 1] = np.nan
    result = compare_scores(Arm("b", {"f": fixture(base)}), Arm("c", {"f": fixture(candidate)}))
    assert [u.unit.name for u in result.units] == ["p0"]
    assert [u.label for u in result.left_out] == ["f / p1"]
    assert result.hypotheses[-1].base == result.hypotheses[-1].candidate == 4.0


def test_probes_are_matched_by_name_not_by_position() -> None:
    scores = np.zeros((3, 2, 6))
    scores[:, 0] = 5.0
    base = Arm("b", {"f": fixture(scores)})
    candidate = Arm("c", {"f": fixture(scores[:, ::-1].copy(), probes=("p1", "p0"))})
    assert compare_scores(base, candidate).p == 1.0


def test_a_lost_run_counts_as_no_run() -> None:
    base, candidate = noisy(1, 4, fixtures=1), noisy(2, 3, fixtures=1)
    candidate.fixtures["f0"].scores[1] = np.nan
    assert compare_scores(base, candidate).runs == {"f0": (2, 4)}


def test_a_missing_cell_is_filled_from_its_probe_and_its_run_not_with_zero() -> None:
    values = np.array([[4.0, 2.0], [3.0, 1.0], [5.0, np.nan]])
    filled = fill(values, 5.0)
    assert filled[2, 1] == pytest.approx(1.5 + 1.0)  # the probe's mean, and the run is one point above its column
    assert filled[:2] == pytest.approx(values[:2])


cells = arrays(np.float64, (8, 3, 6), elements=st.integers(0, 5).map(float))
holes = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), max_size=2)


@given(cells, holes)
@settings(max_examples=12)
def test_over_all_relabellings_of_any_runs_small_p_values_are_no_commoner_than_they_say(
    values: Array, missing: list[tuple[int, int]]
) -> None:
    """Take each labelling in turn as the observed one: the share with p <= a is at most a, for every a."""
    for run, probe in missing:
        values[run, probe] = np.nan
    found = []
    half = list(itertools.combinations(range(4), 2))
    for first, second in itertools.product(half, half):
        base, candidate = {}, {}
        for name, chosen, offset in (("f", first, 0), ("g", second, 4)):
            ours = [offset + i for i in chosen]
            theirs = [offset + i for i in range(4) if i not in chosen]
            candidate[name] = fixture(values[ours], probes=("p", "q", "r"))
            base[name] = fixture(values[theirs], probes=("p", "q", "r"))
        blocks = score_blocks(Arm("b", base), Arm("c", candidate))
        if any(block.left_out for block in blocks):
            return  # a probe wholly missing on one side is left out of that comparison: other data, not a relabelling
        result = permute(blocks, SCORE_HYPOTHESES, alpha=0.03)
        assert result is not None
        found.append(result.p)
    for level in set(found):
        assert sum(p <= level + 1e-12 for p in found) <= level * len(found) + 1e-6


@given(cells, holes)
@settings(max_examples=25)
def test_swapping_the_arms_turns_every_difference_and_keeps_every_p(
    values: Array, missing: list[tuple[int, int]]
) -> None:
    for run, probe in missing:
        values[run, probe] = np.nan
    names = ("p", "q", "r")
    one, other = Arm("b", {"f": fixture(values[:5], probes=names)}), Arm("c", {"f": fixture(values[5:], probes=names)})
    there, back = compare_scores(one, other), compare_scores(other, one)
    assert there.p == pytest.approx(back.p)
    assert [h.delta for h in there.hypotheses] == pytest.approx([-h.delta for h in back.hypotheses])
    assert [h.p for h in there.hypotheses] == pytest.approx([h.p for h in back.hypotheses])


def test_facts_test_authored_and_census_retention_with_weights() -> None:
    census = np.array([[1.0, 0.5], [1.0, 0.5]])
    base = fixture(facts=np.ones((2, 2)), census=census)
    object.__setattr__(base, "census_weights", np.array([[30.0, 10.0], [30.0, 10.0]]))
    candidate = fixture(facts=np.array([[0.5, np.nan], [0.5, np.nan]]), census=census)
    blocks = fact_blocks(Arm("b", {"f": base}), Arm("c", {"f": candidate}))
    result = permute(blocks, FACT_HYPOTHESES, alpha=0.02)
    assert result is not None
    authored, overall = result.hypotheses
    assert authored.name == "authored facts"
    assert authored.base == 1.0
    assert authored.candidate == pytest.approx(0.5)
    assert overall.base == pytest.approx(0.875)
    assert overall.candidate == pytest.approx(0.75)
    assert [u.unit.label for u in result.units] == ["f / p0", "f / path", "f / number"]
    assert [u.label for u in result.left_out] == ["f / p1"]


def test_a_fixture_without_census_counts_for_the_other_hypothesis_only() -> None:
    empty = np.full((3, 2), np.nan)
    base = Arm("b", {"f": fixture(facts=np.ones((3, 2)), census=empty), "g": fixture(facts=np.ones((3, 2)))})
    lower = fixture(facts=np.ones((3, 2)), census=np.full((3, 2), 0.4))
    candidate = Arm("c", {"f": fixture(facts=np.ones((3, 2)), census=empty), "g": lower})
    result = permute(fact_blocks(base, candidate), FACT_HYPOTHESES, alpha=0.02)
    assert result is not None
    assert [h.df for h in result.hypotheses] == [8, 4]
    assert result.hypotheses[1].delta == pytest.approx(-0.6)


def test_nothing_to_compare_is_no_result() -> None:
    assert permute(score_blocks(Arm("b", {}), Arm("c", {})), SCORE_HYPOTHESES, alpha=0.03) is None


@pytest.mark.parametrize(
    ("of_units", "at_most"),
    [(3, 14), (1, 26)],  # 2 % would be 8; with the spread of the three means alone it is 35, with both arms' degrees 30
)
def test_three_runs_that_vary_three_times_as_much_are_rarely_called_another_mean(of_units: int, at_most: int) -> None:
    random = np.random.default_rng(26)
    false = 0
    for _ in range(400):
        base, candidate = (
            spread * random.normal(0, 0.2, (runs, 1)) + single * random.normal(0, 0.4, (runs, 10))
            for spread, single, runs in ((1, 1, 10), (3, of_units, 3))
        )
        values = np.concatenate([candidate, base])
        units = tuple(Unit("f", "probe", str(at)) for at in range(10))
        means = values.mean(axis=1, keepdims=True)
        block = Block("f", 3, 10, means, units, values, Explained.nothing(13, 1, 10), ())
        result = permute([block], ("overall",), alpha=0.02)
        assert result is not None
        false += result.p_global <= 0.02
    assert false <= at_most
