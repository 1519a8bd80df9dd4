"""Measure what the comparison rule is worth: false alarms and power on simulated compressors.

    python bench/detection.py                     # 500 replications of every scenario
    python bench/detection.py --quick             # 100, to look at

The model of a compressor: probes differ much in how well they survive (skewed), all probes of a run share the luck of
one summary, a probe's facts tend to be lost together (near-binary), the six dimensions of a grade hang together, and
the judge adds noise and whole numbers. The median rule is shown at its own threshold, and raised
until it gives as few false alarms.
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eval_core.comparing import medians as seed_rule
from eval_core.comparing.arms import Arm, Array, FixtureArm
from eval_core.comparing.findings import Kind
from eval_core.comparing.noise import noise_floor
from eval_core.comparing.verdict import Options, decide
from eval_core.domain.grade import DIMENSIONS

PROBES, CENSUS_KINDS, CENSUS_FACTS = 10, ("path", "identifier", "number", "error", "url"), 15
FACTS = 4
ARTIFACT_PROBES = 2
GRADED, COMPRESSED, BASELINE = 3, 10, 10
RULE = Options(arrangements=1500)
LOADINGS = np.array([1.0, 0.8, 1.1, 1.0, 0.7, 0.5])
"""How much of a lost fact each dimension feels."""
ALARMS = {Kind.REGRESSED, Kind.IMPROVED, Kind.MIXED}


@dataclass(frozen=True)
class Noise:
    """How much luck there is."""

    summary: float
    """SD of the summary's luck, in log-odds of keeping a fact."""
    style: float
    """SD of the summary's effect on all grades beyond the facts, in points."""
    judge: float
    """SD of the judge on one answer, in points."""
    chancy: float
    """Share of probes whose facts survive in some runs only."""


REGIMES = {
    "low": Noise(0.2, 0.03, 0.15, 0.0),
    "mid": Noise(0.4, 0.08, 0.35, 0.12),
    "high": Noise(1.2, 0.35, 0.9, 0.25),
}
"""Set by their run-to-run SD of a dimension, which is printed: mid is to be about 0.25 points. Power depends on it."""


@dataclass(frozen=True)
class Change:
    """What the pull request did to the compressor."""

    section: float = 1.0
    """Survival of the facts of artifact probes and of census paths (a section dropped from the template)."""
    shift: float = 0.0
    """Points added to every grade."""
    broken: bool = False
    """Two probes of the first fixture lose everything and are graded 0."""
    lost: float = 0.0
    """Each kept fact is lost with this probability."""
    regained: float = 0.0
    """Each lost fact is kept after all with this probability."""


SCENARIOS = {
    "same vs same": Change(),
    "a template section dropped": Change(section=0.35),
    "uniform −0.3": Change(shift=-0.3),
    "one fixture, two probes 5 → 0": Change(broken=True),
    "each fact lost with +15 %": Change(lost=0.15),
    "a small improvement": Change(regained=0.2, shift=0.1),
}

NOISY_SCENARIOS = ("uniform −0.3", "one fixture, two probes 5 → 0", "each fact lost with +15 %")
"""Shown under low and high noise too."""


def _keep(random: np.random.Generator, odds: Array, together: float) -> NDArray[np.bool_]:
    """Draw which facts survive; with probability `together` all facts of a group share one fate."""
    own = random.random(odds.shape)
    shared = np.broadcast_to(random.random((*odds.shape[:-1], 1)), odds.shape)
    joint = random.random((*odds.shape[:-1], 1)) < together
    return np.asarray(np.where(joint, shared, own) < 1 / (1 + np.exp(-odds)), dtype=np.bool_)


def _alter(random: np.random.Generator, kept: NDArray[np.bool_], change: Change) -> NDArray[np.bool_]:
    kept = kept & (random.random(kept.shape) >= change.lost)
    return kept | (random.random(kept.shape) < change.regained)


def _fixture(
    random: np.random.Generator,
    quality: Array,
    census_quality: Array,
    noise: Noise,
    change: Change,
    graded: int,
    runs: int,
) -> FixtureArm:
    luck = random.normal(0, noise.summary, (runs, 1, 1))
    kept = _alter(random, _keep(random, np.repeat((quality + luck[:, :, 0])[:, :, None], FACTS, axis=2), 0.5), change)
    census_odds = np.repeat((census_quality + luck[:, :, 0])[:, :, None], CENSUS_FACTS, axis=2)
    census = _alter(random, _keep(random, census_odds, 0.0), change)
    kept[:, :ARTIFACT_PROBES] &= random.random((runs, ARTIFACT_PROBES, FACTS)) < change.section
    census[:, 0] &= random.random((runs, CENSUS_FACTS)) < change.section
    if change.broken:
        kept[:, 2:4] = False
    facts = kept.mean(axis=2)
    answer = random.normal(0, noise.judge, (graded, PROBES, 1))
    dimension = random.normal(0, noise.judge * 0.7, (graded, PROBES, len(LOADINGS)))
    style = random.normal(0, noise.style, (graded, 1, 1))
    latent = 4.7 - 4 * LOADINGS * (1 - facts[:graded, :, None]) + style + answer + dimension
    # Whole points by fair rounding after the shift, so that a shift of 0.3 is one of 0.3 at the ceiling too.
    shifted = np.clip(np.clip(latent, 0, 5) + change.shift, 0, 5)
    scores = np.floor(shifted + random.random(shifted.shape)).clip(0, 5)
    if change.broken:
        scores[:, 2:4] = 0.0
    return FixtureArm(
        probes=tuple(f"probe-{i}" for i in range(PROBES)),
        scores=scores,
        facts=facts,
        census_kinds=CENSUS_KINDS,
        census=census.mean(axis=2),
        census_weights=np.full((runs, len(CENSUS_KINDS)), float(CENSUS_FACTS)),
        structure=({"tool pairs whole": True},) * runs,
        planned_scores=graded * PROBES,
        planned_facts=runs * PROBES,
    )


def simulate(random: np.random.Generator, fixtures: int, noise: Noise, change: Change) -> tuple[Arm, Arm]:
    """Draw a suite, a baseline of it and a candidate."""
    base: dict[str, FixtureArm] = {}
    candidate: dict[str, FixtureArm] = {}
    for number in range(fixtures):
        sound = (
            random.random(PROBES) >= noise.chancy
        )  # most facts are safe in every run, some probes are a matter of luck
        share = np.clip(np.where(sound, random.beta(30, 1, PROBES), random.beta(2, 2, PROBES)), 0.05, 0.985)
        share[2:4] = 0.985  # the two probes that break are sound before
        quality = np.log(share / (1 - share))
        census_quality = random.normal(1.2, 0.4, len(CENSUS_KINDS))
        mine = change if number == 0 or not change.broken else Change()
        name = f"fixture-{number}"
        base[name] = _fixture(random, quality, census_quality, noise, Change(), BASELINE, BASELINE)
        candidate[name] = _fixture(random, quality, census_quality, noise, mine, GRADED, COMPRESSED)
    return Arm("baseline", base), Arm("candidate", candidate)


@dataclass(frozen=True)
class Trial:
    """One simulated comparison under both rules."""

    kind: Kind
    by_scores: bool
    by_facts: bool
    median_step: float
    """The largest step of the median rule's table."""
    mde: float
    mde_facts: float
    sd: float
    """Run-to-run SD of a dimension in the baseline, mean of the six."""


def trial(seed: int, fixtures: int, noise: Noise, change: Change) -> Trial:
    """Simulate one comparison and decide it."""
    base, candidate = simulate(np.random.default_rng(seed), fixtures, noise, change)
    verdict = decide(base, candidate, options=replace(RULE, seed=seed))
    steps = [abs(row.delta) for row in seed_rule.table(base, candidate) if row.dimension != "overall"]
    scores, facts = verdict.tests
    overall, authored = verdict.row("overall"), verdict.row("authored facts")
    assert overall is not None
    assert authored is not None
    sd = float(np.mean([item.sd for item in noise_floor(base) if item.name in DIMENSIONS]))
    return Trial(
        kind=verdict.kind,
        by_scores=scores.significant,
        by_facts=facts.significant,
        median_step=max(steps),
        mde=overall.mde or 0.0,
        mde_facts=authored.mde or 0.0,
        sd=sd,
    )


Runner = Callable[[int, Noise, Change, int, int], list[Trial]]


def _runner(pool: multiprocessing.pool.Pool) -> Runner:
    def run(fixtures: int, noise: Noise, change: Change, replications: int, offset: int) -> list[Trial]:
        seeds = range(offset, offset + replications)
        return pool.map(partial(trial, fixtures=fixtures, noise=noise, change=change), seeds, chunksize=10)

    return run


def _share(flags: list[bool]) -> str:
    return f"{100 * sum(flags) / len(flags):.1f}"


@dataclass(frozen=True)
class Equalised:
    """The median rule at exactly the wanted rate of false alarms.

    Its steps are so coarse that no threshold gives 5 %; the two around it are mixed by a biased coin.
    """

    low: float
    high: float
    weight: float
    """How often the lower threshold is taken."""

    def flagged(self, trials: list[Trial]) -> float:
        """Return the share of trials that the mixture flags."""
        below, above = (_reached(trials, step) for step in (self.low, self.high))
        return self.weight * below + (1 - self.weight) * above


def _reached(trials: list[Trial], step: float) -> float:
    return float(np.mean([item.median_step >= step - 1e-9 for item in trials]))


def _equalise(null: list[Trial], rate: float) -> Equalised:
    steps = [0.3, *np.arange(0.5, 5.51, 0.25).tolist()]  # medians of whole numbers move in such steps
    high = next(step for step in steps if _reached(null, step) <= rate)
    low = max((step for step in steps if step < high), default=high)
    gap = _reached(null, low) - _reached(null, high)
    return Equalised(low, high, (rate - _reached(null, high)) / gap if gap else 0.0)


def _line(name: str, trials: list[Trial], medians: Equalised) -> str:
    cells = [
        _share([item.kind in ALARMS for item in trials]),
        _share([item.kind in (Kind.REGRESSED, Kind.MIXED) for item in trials]),
        _share([item.by_scores for item in trials]),
        _share([item.by_facts for item in trials]),
        _share([item.median_step >= 0.3 - 1e-9 for item in trials]),
        f"{100 * medians.flagged(trials):.1f}",
    ]
    return f"| {name} | {' | '.join(cells)} | {len(trials)} |"


def _suite(run: Runner, fixtures: int, replications: int) -> None:
    mid = REGIMES["mid"]
    null = run(fixtures, mid, Change(), 4 * replications, 0)
    medians = _equalise(null, float(np.mean([item.kind in ALARMS for item in null])))
    mde, mde_facts, sd = (
        float(np.median([getattr(item, name) for item in null])) for name in ("mde", "mde_facts", "sd")
    )
    design = f"{GRADED} graded + {COMPRESSED - GRADED} compress-only runs against {BASELINE}"
    print(f"\n## {fixtures} fixtures x {PROBES} probes, {design}, mid noise; % flagged\n")
    columns = ["scenario", "this rule", "as worse", "scores alone", "facts alone", "medians, 0.3"]
    print(f"| {' | '.join(columns)} | medians, equal false alarms | n |")
    print("|---|---|---|---|---|---|---|---|")
    print(_line("same vs same", null, medians), flush=True)
    extra = {f"uniform −{mde:.2f} (the reported MDE)": Change(shift=-mde)}
    for name, change in {**SCENARIOS, **extra}.items():
        if change != Change():
            print(_line(name, run(fixtures, mid, change, replications, 1_000_000), medians), flush=True)
    spreads = [f"mid {sd:.2f}"]
    for regime in ("low", "high"):
        trials = run(fixtures, REGIMES[regime], Change(), 4 * replications, 2_000_000)
        spreads.append(f"{regime} {np.median([item.sd for item in trials]):.2f}")
        print(_line(f"same vs same, {regime} noise", trials, medians), flush=True)
        for name in NOISY_SCENARIOS:
            trials = run(fixtures, REGIMES[regime], SCENARIOS[name], replications, 1_000_000)
            print(_line(f"{name}, {regime} noise", trials, medians), flush=True)
    print(f"\nReported minimum detectable effect, median: {mde:.2f} points overall, {100 * mde_facts:.1f} pp of facts.")
    print(f"The median rule has equal false alarms at a step between {medians.low:.2f} and {medians.high:.2f}.")
    print(f"Run-to-run SD of a dimension, points: {', '.join(spreads)}.")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure false alarms and power of the comparison rule.")
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="100 replications")
    parser.add_argument("--fixtures", type=int, nargs="+", default=[3, 5])
    options = parser.parse_args()
    with multiprocessing.Pool(2) as pool:
        for fixtures in options.fixtures:
            _suite(_runner(pool), fixtures, 100 if options.quick else options.replications)


if __name__ == "__main__":
    main()
