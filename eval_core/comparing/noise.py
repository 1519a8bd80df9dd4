"""Noise: how much runs of one compressor differ, how often that looks like a change, and how many runs detect one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eval_core.base.errors import UserError
from eval_core.comparing.tested import Options
from eval_core.comparing.verdict import decide
from eval_core.domain.measurement import Measurement
from eval_core.statistics.arms import Arm, FixtureArm, make_arm
from eval_core.statistics.hypotheses import FACT_HYPOTHESES, SCORE_HYPOTHESES, fact_blocks, row_name, score_blocks
from eval_core.statistics.permutation import quantile
from eval_core.strands.findings import Kind

ALARMS = {Kind.REGRESSED, Kind.IMPROVED, Kind.MIXED}
MOST_RUNS = 50
NO_NOISE = "All runs of a fixture gave the same result: there is no run-to-run noise."


@dataclass(frozen=True)
class FalseAlarms:
    """How often the rule called two random halves of one baseline different.

    Relabelling is what the test itself does, so this checks ties, missing cells and structure checks on real data;
    it cannot see a provider that changes from one day to the next.
    """

    splits: int
    alarms: int
    candidate_runs: int
    crit: float
    """The median critical value of the score test (fact test where nothing is graded)."""

    @property
    def rate(self) -> float:
        """Return the share of splits with an alarm."""
        return self.alarms / self.splits

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % Wilson interval of the rate."""
        z, n = 1.96, self.splits
        middle = (self.rate + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(self.rate * (1 - self.rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class NoiseFloor:
    """The spread of one quantity from run to run of the same fixture with the same compressor."""

    name: str
    sd: float
    fixtures: int
    df: int


@dataclass(frozen=True)
class RunsNeeded:
    """Candidate runs of each fixture needed to see a change with 80 % power; None where no number suffices."""

    change: float
    runs: int | None


def _part(arm: FixtureArm, graded: NDArray[np.intp], rest: NDArray[np.intp]) -> FixtureArm:
    rows = np.concatenate([graded, rest])
    fixture = dataclasses.replace(
        arm,
        scores=arm.scores[graded[graded < len(arm.scores)]],
        facts=arm.facts[rows],
        census=arm.census[rows],
        census_weights=arm.census_weights[rows],
        structure=tuple(arm.structure[row] for row in rows),
        kept={fact: values[rows] for fact, values in arm.kept.items()},
        tokens=None if arm.tokens is None else arm.tokens[rows],
    )
    return dataclasses.replace(fixture, planned_scores=fixture.score_cells, planned_facts=fixture.fact_cells)


def _split(arm: Arm, candidate_runs: int | None, random: np.random.Generator) -> tuple[Arm, Arm]:
    halves: tuple[dict[str, FixtureArm], dict[str, FixtureArm]] = ({}, {})
    for name, fixture in arm.fixtures.items():
        graded, every = len(fixture.scores), len(fixture.structure)
        if every < 2 or graded == 1:
            raise UserError(f"{arm.label}: {name} has one run only; a baseline needs at least two to be split")
        chosen: list[list[NDArray[np.intp]]] = [[], []]
        for start, stop in ((0, graded), (graded, every)):
            order = start + random.permutation(stop - start)
            half = (stop - start) // 2
            # With few runs to give, both sides keep at least one.
            take = half if candidate_runs is None or start else max(1, min(candidate_runs, stop - start - 1))
            take = min(take, stop - start)
            chosen[0].append(order[:take])
            chosen[1].append(order[take:])
        for half_arm, parts in zip(halves, chosen, strict=True):
            half_arm[name] = _part(fixture, parts[0], parts[1])
    return Arm(f"{arm.label} (A)", halves[1]), Arm(f"{arm.label} (B)", halves[0])


def false_alarms(
    arm: Arm, *, splits: int = 200, candidate_runs: int | None = None, options: Options | None = None, seed: int = 0
) -> FalseAlarms:
    """Split a baseline at random against itself, again and again, and count the alarms of the whole rule."""
    rule = options or Options(arrangements=1000)
    random = np.random.default_rng(seed)
    alarms, crits, sizes = 0, [], []
    for number in range(splits):
        base, candidate = _split(arm, candidate_runs, random)
        verdict = decide(base, candidate, options=dataclasses.replace(rule, seed=number))
        alarms += verdict.kind in ALARMS
        crits += [verdict.tests[0].crit] if verdict.tests else []
        sizes += [n for test in verdict.tests[:1] for n, _ in test.runs.values()]
    return FalseAlarms(splits, alarms, min(sizes, default=0), float(np.median(crits)) if crits else math.nan)


def noise_floor(arm: Arm) -> tuple[NoiseFloor, ...]:
    """Return the run-to-run SD of every hypothesis, pooled over fixtures."""
    found = []
    for names, blocks in (
        (SCORE_HYPOTHESES, score_blocks(arm, arm)),
        (FACT_HYPOTHESES, fact_blocks(arm, arm)),
    ):
        for index, name in enumerate(names):
            measured = [(block.means + block.explained.means)[: block.candidate_runs] for block in blocks]
            columns = [means[:, index] for means in measured]
            columns = [column for column in columns if len(column) > 1 and np.isfinite(column).all()]
            df = sum(len(column) - 1 for column in columns)
            if df:
                squares = sum(float(((column - column.mean()) ** 2).sum()) for column in columns)
                found.append(NoiseFloor(name, math.sqrt(squares / df), len(columns), df))
    return tuple(found)


def noise_of(measurement: Measurement) -> dict[str, float]:
    """Return the noise floor as a baseline stores it."""
    return {item.name: round(item.sd, 6) for item in noise_floor(make_arm(measurement))}


def noise_rows(noise: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the rows whose runs differ, as readers call them, with the standard deviation of a run's mean."""
    return [(row_name(name), sd) for name, sd in noise.items() if sd]


def runs_needed(
    sd: float, *, fixtures: int, baseline_runs: int, crit: float, changes: Sequence[float] = (0.2, 0.3, 0.5, 1.0)
) -> tuple[RunsNeeded, ...]:
    """Return for each size of change the fewest candidate runs whose minimum detectable effect is that small."""

    def mde(runs: int) -> float:
        df = fixtures * (runs + baseline_runs - 2)
        return (crit + quantile(0.80, df)) * sd * math.sqrt((1 / runs + 1 / baseline_runs) / fixtures)

    return tuple(
        RunsNeeded(change, next((runs for runs in range(1, MOST_RUNS + 1) if mde(runs) <= change), None))
        for change in changes
    )
