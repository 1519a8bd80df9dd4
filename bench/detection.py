"""Measure what the comparison rule is worth: false alarms and power on simulated compressors.

    python bench/detection.py                     # some minutes on two cores
    python bench/detection.py --quick             # a fifth of it, to look at
    python bench/detection.py --only noise day    # some of the tables

The model of a compressor: probes differ much in how well they survive (skewed), all probes of a run share the luck of
one summary, a probe's facts tend to be lost together (near-binary), the six dimensions of a grade hang together, and
the judge adds noise and whole numbers. Beside the rule stands the one that it replaced.
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eval_core.comparing.arms import Arm, Array, FixtureArm
from eval_core.comparing.control_runs import control_shift
from eval_core.comparing.drift import ALPHA, CONFIRMED, GradedCell, Regraded, check, confirm, sample
from eval_core.comparing.findings import Kind, Verdict
from eval_core.comparing.looks import RUNS_AT_LOOK
from eval_core.comparing.verdict import Options, decide
from eval_core.domain.extra import Look

sys.path.insert(0, str(Path(__file__).parent))
from replaced_rule import alarms

PROBES, CENSUS_KINDS, CENSUS_FACTS = 10, ("path", "identifier", "number", "error", "url"), 15
FACTS = 4
ARTIFACT_PROBES = 2
GRADED, COMPRESSED, BASELINE = 3, 10, 10
RULE = Options(arrangements=1000)
LOADINGS = np.array([1.0, 0.8, 1.1, 1.0, 0.7, 0.5])
"""How much of a lost fact each dimension feels."""
CALM = {Kind.NO_DETECTABLE_CHANGE, Kind.INCONCLUSIVE}


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
"""Set by their run-to-run SD of a dimension: 0.21, 0.25 and 0.47 points. Power depends on it."""


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


@dataclass(frozen=True)
class Suite:
    """The fixtures of one simulation: what the compressor keeps of them as a rule."""

    quality: list[Array]
    census: list[Array]
    noise: Noise

    @classmethod
    def draw(cls, random: np.random.Generator, fixtures: int, noise: Noise) -> Suite:
        """Draw fixtures; most facts are safe in every run, some probes are a matter of luck."""
        qualities, census = [], []
        for _ in range(fixtures):
            sound = random.random(PROBES) >= noise.chancy
            share = np.clip(np.where(sound, random.beta(30, 1, PROBES), random.beta(2, 2, PROBES)), 0.05, 0.985)
            share[2:4] = 0.985  # the two probes that break are sound before
            qualities.append(np.log(share / (1 - share)))
            census.append(random.normal(1.2, 0.4, len(CENSUS_KINDS)))
        return cls(qualities, census, noise)

    def arm(
        self,
        random: np.random.Generator,
        change: Change,
        graded: int,
        runs: int,
        *,
        day: float = 0.0,
        odd: bool = False,
    ) -> Arm:
        """Measure the suite."""
        fixtures = {}
        for number, (quality, census) in enumerate(zip(self.quality, self.census, strict=True)):
            mine = change if number == 0 or not change.broken else Change()
            one = _fixture(random, quality, census, self.noise, mine, graded, runs)
            scores = one.scores.copy()
            if odd:
                scores[0] = np.clip(scores[0] - 1.0, 0, 5)
            fixtures[f"fixture-{number}"] = replace(one, scores=np.clip(scores + day, 0, 5))
        return Arm("arm", fixtures)


def _symmetric(random: np.random.Generator, fixtures: int, spread: float, graded: int) -> Arm:
    """Draw an arm whose noise is symmetric around the middle of the scale: more of it leaves all means as they are."""

    def one() -> FixtureArm:
        run = random.normal(0, 0.2, (graded, 1, 1))
        cell = random.normal(0, 0.35, (graded, PROBES, 1)) + random.normal(0, 0.25, (graded, PROBES, len(LOADINGS)))

        def shares(columns: int, sd: float) -> Array:
            noise = random.normal(0, 0.03, (COMPRESSED, 1)) + random.normal(0, sd, (COMPRESSED, columns))
            return np.clip(0.5 + spread * noise, 0, 1)

        return FixtureArm(
            probes=tuple(f"probe-{i}" for i in range(PROBES)),
            scores=np.clip(2.5 + spread * (run + cell), 0, 5),
            facts=shares(PROBES, 0.1),
            census_kinds=CENSUS_KINDS,
            census=shares(len(CENSUS_KINDS), 0.06),
            census_weights=np.full((COMPRESSED, len(CENSUS_KINDS)), float(CENSUS_FACTS)),
            structure=({"tool pairs whole": True},) * COMPRESSED,
            planned_scores=graded * PROBES,
            planned_facts=COMPRESSED * PROBES,
        )

    return Arm("symmetric", {f"fixture-{number}": one() for number in range(fixtures)})


@dataclass(frozen=True)
class Setting:
    """One row of a table."""

    name: str
    fixtures: int
    regime: str = "mid"
    change: Change = Change()
    spread: float = 1.0
    """Of the candidate's noise, in the symmetric model; 1 is the model of compressors."""
    day: float = 0.0
    """SD of what the day adds to all grades of the candidate, and of a control."""
    control: bool = False
    missing: float = 0.0
    """Share of the candidate's grades that is missing."""
    odd: bool = False
    """One base run of each fixture is a point lower."""
    odd_anywhere: bool = False
    """One run of each fixture, of either arm by chance, is a point lower."""


@dataclass(frozen=True)
class Outcome:
    """What one simulated comparison came to."""

    kind: Kind
    less_stable: bool
    contradiction: bool
    """An interval without zero beside a calm verdict."""
    replaced: bool
    """Whether the replaced rule raises an alarm."""

    @property
    def alarm(self) -> bool:
        """Whether anything is called changed."""
        return self.kind not in CALM


def _outcome(verdict: Verdict, replaced: bool) -> Outcome:
    outside = any((row.ci_low or 0) > 0 or (row.ci_high or 0) < 0 for row in verdict.rows)
    return Outcome(verdict.kind, bool(verdict.spread), outside and verdict.kind in CALM, replaced)


def _compare(random: np.random.Generator, setting: Setting, base: Arm, suite: Suite | None, seed: int) -> Outcome:
    day = random.normal(0, setting.day) if setting.day else 0.0
    shift = None
    if suite is None:
        candidate = _symmetric(random, setting.fixtures, setting.spread, GRADED)
    else:
        candidate = suite.arm(random, setting.change, GRADED, COMPRESSED, day=day)
        if setting.control:
            found = control_shift(base, suite.arm(random, Change(), 1, 1, day=day))
            shift = found.shift if found is not None else None
    if setting.odd_anywhere:
        for theirs, ours in zip(base.fixtures.values(), candidate.fixtures.values(), strict=True):
            at = random.integers(len(theirs.scores) + len(ours.scores))
            run = theirs.scores[at] if at < len(theirs.scores) else ours.scores[at - len(theirs.scores)]
            run[:] = np.clip(run - 1.0, 0, 5)
    if setting.missing:
        for item in candidate.fixtures.values():
            item.scores[random.random(item.scores.shape[:2]) < setting.missing] = np.nan
    rule = replace(RULE, seed=seed, coverage_floor=0.5)
    verdict = decide(base, candidate, options=rule, shift=shift)
    # The replaced rule knew no control.
    replaced = not setting.control and alarms(base, candidate, seed=seed, limit=RULE.arrangements)
    return _outcome(verdict, replaced)


def trial(seed: int, setting: Setting) -> Outcome:
    """Simulate one comparison and decide it."""
    random = np.random.default_rng(seed)
    if setting.spread != 1.0:
        return _compare(random, setting, _symmetric(random, setting.fixtures, 1.0, BASELINE), None, seed)
    suite = Suite.draw(random, setting.fixtures, REGIMES[setting.regime])
    base = suite.arm(random, Change(), BASELINE, BASELINE, odd=setting.odd)
    return _compare(random, setting, base, suite, seed)


def shared_trial(seed: int, setting: Setting, pull_requests: int = 20) -> tuple[bool, bool]:
    """Compare many harmless pull requests with one baseline: did any alarm, by this rule and by the replaced one?"""
    random = np.random.default_rng(seed)
    suite = Suite.draw(random, setting.fixtures, REGIMES[setting.regime])
    base = suite.arm(random, Change(), BASELINE, BASELINE)
    found = [_compare(random, setting, base, suite, seed + at) for at in range(pull_requests)]
    return any(item.alarm for item in found), any(item.replaced for item in found)


@dataclass(frozen=True)
class Looked:
    """One pull request that is looked at until something is settled."""

    alarm_at: tuple[bool, bool, bool]
    """Whether it was called changed by the first, second, third look."""
    promised: float | None
    """The chance that was stated at the first look that the advised runs settle it."""
    settled: bool
    """Whether they did."""


def _first(arm: Arm, graded: int) -> Arm:
    cut = {
        name: dataclasses.replace(item, scores=item.scores[:graded], planned_scores=graded * PROBES)
        for name, item in arm.fixtures.items()
    }
    return Arm(arm.label, cut)


def looked_trial(seed: int, setting: Setting) -> Looked:
    """Look at a pull request at 3, 6 and 10 graded runs."""
    random = np.random.default_rng(seed)
    suite = Suite.draw(random, setting.fixtures, REGIMES[setting.regime])
    base = suite.arm(random, Change(), BASELINE, BASELINE)
    whole = suite.arm(random, setting.change, RUNS_AT_LOOK[-1], COMPRESSED)
    found, earlier = [], list[Look]()
    for runs in RUNS_AT_LOOK:
        found.append(decide(base, _first(whole, runs), options=replace(RULE, seed=seed), earlier=earlier))
        earlier.append(Look(runs, COMPRESSED))
    reached = [any(item.kind not in CALM for item in found[: at + 1]) for at in range(3)]
    promised, settled = None, False
    if found[0].kind is Kind.INCONCLUSIVE and found[0].advice is not None:
        promised = found[0].advice.chance
        later = found[RUNS_AT_LOOK.index(RUNS_AT_LOOK[0] + found[0].advice.runs)]
        settled = later.kind is not Kind.INCONCLUSIVE
    return Looked((reached[0], reached[1], reached[2]), promised, settled)


_ANY_SIZE = "uniform, 0 to −0.4"


def any_size_trial(seed: int, setting: Setting) -> Looked:
    """Look at a change of any size: only over many sizes can the promised chance be held against what came true."""
    shift = -0.4 * float(np.random.default_rng(seed).random())
    return looked_trial(seed, replace(setting, change=Change(shift=shift)))


@dataclass(frozen=True)
class Judge:
    """How a judge grades today what it graded when the baseline was made."""

    name: str
    shift: float = 0.0
    scale: float = 1.0
    """How far from the middle of the scale a grade lies, against then."""
    noise: float = 0.35
    """SD of one grade of an answer, then and now."""


JUDGES = (
    Judge("the same judge"),
    Judge("the same, noisy judge", noise=0.9),
    Judge("every grade 0.10 lower", shift=-0.10),
    Judge("every grade 0.25 lower", shift=-0.25),
    Judge("every grade 0.25 lower, noisy", shift=-0.25, noise=0.9),
    Judge("scale halved around the middle", scale=0.5),
)


def drift_trial(seed: int, judge: Judge, fixtures: int) -> tuple[bool, bool]:
    """Grade stored answers of a baseline again: was there a first alarm, and was it confirmed?"""
    random = np.random.default_rng(seed)
    shape = (fixtures, BASELINE, PROBES)
    # Most answers are good, some are poor; the dimensions of an answer hang together.
    worth = np.clip(5 * random.beta(4, 1.2, shape), 0, 5)[..., None] + random.normal(0, 0.3, (*shape, len(LOADINGS)))

    def graded(true: Array) -> Array:
        one = random.normal(0, judge.noise, (*shape, 1)) + random.normal(0, 0.7 * judge.noise, true.shape)
        return np.floor(np.clip(true + one, 0, 5) + random.random(true.shape)).clip(0, 5)

    old, new = graded(worth), graded(2.5 + judge.scale * (worth - 2.5) + judge.shift)
    cells = [GradedCell(f"fixture-{at}", run, f"probe-{probe}") for at, run, probe in np.ndindex(shape)]
    pairs = {
        cell: Regraded(cell, tuple(old[index]), tuple(new[index]))
        for cell, index in zip(cells, np.ndindex(shape), strict=True)
    }
    first = sample(cells, seed=seed)
    found = check([pairs[cell] for cell in first], alpha=ALPHA)
    if found is None or not found.fired:
        return False, False
    second = sample([cell for cell in cells if cell not in set(first)], seed=seed + 1)
    both = confirm(found, check([pairs[cell] for cell in (*first, *second)], alpha=CONFIRMED))
    return True, both is not None and both.fired


def _percent(flags: Sequence[bool]) -> str:
    return f"{100 * sum(flags) / len(flags):.1f}"


def _table(columns: Sequence[str]) -> None:
    print(f"\n| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")


def _twice(seeds: range) -> range:
    return range(seeds.start, seeds.stop + len(seeds))


def _rows(pool: multiprocessing.pool.Pool, settings: Sequence[Setting], seeds: range) -> None:
    _table(
        (
            "scenario",
            "fixtures",
            "regressed",
            "improved",
            "mixed",
            "all",
            "replaced rule",
            "less stable",
            "odd interval",
        )
    )
    for setting in settings:
        found = pool.map(partial(trial, setting=setting), seeds, chunksize=10)
        kinds = [
            _percent([item.kind is kind for item in found]) for kind in (Kind.REGRESSED, Kind.IMPROVED, Kind.MIXED)
        ]
        cells = [
            setting.name,
            str(setting.fixtures),
            *kinds,
            f"**{_percent([item.alarm for item in found])}**",
            _percent([item.replaced for item in found]),
            _percent([item.less_stable for item in found]),
            _percent([item.contradiction for item in found]),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def same(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Nothing changed: every alarm is false."""
    print("\n## Nothing changed, % called changed")
    settings = [
        *(Setting(f"same vs same, {regime} noise", size, regime) for size in sizes for regime in REGIMES),
        *(Setting("4 % of the grades missing", size, missing=0.04) for size in sizes),
        *(
            Setting(f"one odd base run{', with control' if control else ''}", size, odd=True, control=control)
            for size in sizes
            for control in (False, True)
        ),
        *(Setting("one odd run of either side", size, odd_anywhere=True) for size in sizes),
    ]
    _rows(pool, settings, _twice(seeds))


def noise(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Only the spread changed."""
    print("\n## Only the noise of the candidate's runs changed, % called changed")
    settings = [Setting(f"run SD x {spread:g}", size, spread=spread) for size in sizes for spread in (2.0, 3.0)]
    _rows(pool, settings, _twice(seeds))


def day(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Only the day changed."""
    print("\n## Only the day changed, % called changed; control: one base run of each fixture")
    settings = [
        Setting(f"day effect of SD {sd:g}{', with control' if control else ''}", size, day=sd, control=control)
        for size in sizes
        for sd in (0.0, 0.05, 0.10)
        for control in (False, True)
        if sd or control
    ]
    _rows(pool, settings, _twice(seeds))


def power(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Something changed."""
    print(f"\n## Something changed, {GRADED} graded runs, % called changed")
    settings = [
        Setting(f"{name}, {regime} noise", size, regime, change)
        for size in sizes
        for regime in ("mid", "high")
        for name, change in SCENARIOS.items()
        if change != Change()
    ]
    settings += [
        Setting("uniform −0.3, mid noise, with control", size, change=Change(shift=-0.3), control=True)
        for size in sizes
    ]
    _rows(pool, settings, seeds)


def shared(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Many pull requests against one baseline."""
    print("\n## 20 harmless pull requests against one baseline, % of baselines with at least one alarm")
    _table(("day", "fixtures", "this rule", "replaced rule"))
    for size in sizes:
        for sd, control in ((0.0, False), (0.05, False), (0.05, True)):
            setting = Setting("", size, day=sd, control=control)
            found = pool.map(
                partial(shared_trial, setting=setting),
                range(seeds.start, seeds.start + 20 * len(seeds), 100),
                chunksize=1,
            )
            name = f"{f'SD {sd:g}' if sd else 'the same'}{', control' if control else ''}"
            cells = [name, str(size), *(_percent([item[at] for item in found]) for at in (0, 1))]
            print(f"| {' | '.join(cells)} |", flush=True)


def looks(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Look again after more runs."""
    print(f"\n## Looks at {', '.join(map(str, RUNS_AT_LOOK))} graded runs, high noise")
    _table(("scenario", "fixtures", "by look 1", "by look 2", "by look 3", "advised", "promised", "kept"))
    for size in sizes:
        for name in ("same vs same", "uniform −0.3", _ANY_SIZE):
            setting = Setting(name, size, "high", SCENARIOS.get(name, Change()))
            played = looked_trial if name in SCENARIOS else any_size_trial
            found = pool.map(partial(played, setting=setting), seeds, chunksize=10)
            advised = [item for item in found if item.promised is not None]
            cells = [
                name,
                str(size),
                *(_percent([item.alarm_at[at] for item in found]) for at in range(3)),
                _percent([item.promised is not None for item in found]),
                f"{100 * float(np.mean([item.promised for item in advised])):.1f}" if advised else "",
                _percent([item.settled for item in advised]) if advised else "",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


def drift(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Grade stored answers again with a judge that changed, or did not."""
    print("\n## Judge drift: 90 stored answers graded again, a first alarm confirmed by others, % of comparisons")
    _table(("judge", "fixtures", "first alarm", "confirmed"))
    for size in sizes:
        for judge in JUDGES:
            found = pool.map(partial(drift_trial, judge=judge, fixtures=size), seeds, chunksize=10)
            cells = [judge.name, str(size), *(_percent([item[at] for item in found]) for at in (0, 1))]
            print(f"| {' | '.join(cells)} |", flush=True)


TABLES = {"same": same, "noise": noise, "day": day, "power": power, "looks": looks, "shared": shared, "drift": drift}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Measure false alarms and power of the comparison rule.")
    parser.add_argument("--replications", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="100 replications")
    parser.add_argument("--first-seed", type=int, default=0, help="fresh data: seeds that no constant was chosen with")
    parser.add_argument("--fixtures", type=int, nargs="+", default=[3, 5])
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with multiprocessing.Pool(options.processes) as pool:
        for name in options.only:
            replications = 100 if options.quick else options.replications
            TABLES[name](pool, range(options.first_seed, options.first_seed + replications), options.fixtures)


if __name__ == "__main__":
    main()
