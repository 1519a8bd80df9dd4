"""Measure what the comparison rule is worth: false verdicts and power on simulated compressors.

    python -m bench.detection                     # all tables; hours on two cores
    python -m bench.detection --quick             # 100 comparisons of each kind, to look at
    python -m bench.detection --only harmless     # some of the tables

The model of a compressor: probes differ much in how well they survive (skewed), all probes of a run share the luck of
one summary, a probe's facts tend to be lost together (near-binary), the six dimensions of a grade hang together, and
the judge adds noise and whole numbers. The rule is the shipped one, with fewer arrangements.
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from eval_core.comparing.control_runs import control_shift
from eval_core.comparing.verdict import DECIDED, Options, decide, facts_open
from eval_core.domain.extra import Look
from eval_core.statistics.arms import Arm, Array, FixtureArm
from eval_core.statistics.looks import RUNS_AT_LOOK, next_look
from eval_core.strands.asks import AsksChange
from eval_core.strands.evidence import Recorded
from eval_core.strands.fact_changes import FalseValues
from eval_core.strands.findings import Finding, Kind, StrandState, Verdict
from eval_core.strands.form import FormChange
from eval_core.strands.outcome import OutcomeChange
from eval_core.strands.size import SizeChange

PROBES, CENSUS_KINDS, CENSUS_FACTS = 10, ("path", "identifier", "number", "error", "url"), 15
FACTS = 4
ARTIFACT_PROBES = 2
SOUND = 5
"""Census facts of each fixture that nearly every run keeps, and that a change may lose."""
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
    blocks: bool = False
    """Whether the facts of a probe, and of a kind of census fact, always share one fate."""
    sections: float = 0.0
    """Chance that a run leaves out a section: the facts of the artifact probes and the paths of the census."""
    collapse: float = 0.0
    """Chance that a run keeps hardly anything."""
    size: float = 0.05
    """Coefficient of variation of the retained tokens."""


REGIMES = {
    "low": Noise(0.2, 0.03, 0.15, 0.0),
    "mid": Noise(0.4, 0.08, 0.35, 0.12),
    "high": Noise(1.2, 0.35, 0.9, 0.25),
}
"""Set by their run-to-run SD of a dimension: 0.21, 0.25 and 0.47 points. Power depends on it."""


@dataclass(frozen=True)
class Design:
    """How many runs of each fixture there are."""

    name: str
    graded: int
    compressed: int
    base: int = 10
    more: bool = False
    """Whether further compressions are made, look by look, while the facts are open."""


DESIGNS = {
    "paid": Design("3 graded, 3 to 10 compressed", 3, 3, more=True),
    "least": Design("3 graded, 3 compressed", 3, 3),
    "free": Design("3 graded, 10 compressed", 3, 10),
    "all": Design("10 graded, 10 compressed", 10, 10),
}
"""`paid`: the default where a model is paid for compressing; `least`: the same where the budget has no room for more;
`free`: where none is paid; `all`: after the last look."""


@dataclass(frozen=True)
class Change:
    """What the pull request did to the compressor."""

    section: float = 1.0
    """Survival of the facts of artifact probes and of census paths (a section dropped from the template)."""
    sections: float = 0.0
    """Chance that a run leaves that section out altogether."""
    facts: int = 0
    """So many census facts of the first fixture are never kept any more."""
    shift: float = 0.0
    """Points added to every grade."""
    ruined: int = 0
    """So many probes of the first fixture lose everything and are graded 0."""
    lost: float = 0.0
    """Each kept fact is lost with this probability."""
    regained: float = 0.0
    """Each lost fact is kept after all with this probability."""


SCENARIOS = {
    "same vs same": Change(),
    "a template section dropped": Change(section=0.35),
    "uniform −0.3": Change(shift=-0.3),
    "one fixture, two probes 5 → 0": Change(ruined=2),
    "each fact lost with +15 %": Change(lost=0.15),
    "a small improvement": Change(regained=0.2, shift=0.1),
    "one fact lost always": Change(facts=1),
    "two facts lost always": Change(facts=2),
    "five facts lost always": Change(facts=5),
    "a section lost in half of the runs": Change(sections=0.5),
    "one probe 5 → 0": Change(ruined=1),
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


def _singles(facts: NDArray[np.bool_], census: NDArray[np.bool_]) -> dict[str, Array]:
    """Return each single fact of both kinds by name."""
    columns = np.concatenate([facts.reshape(len(facts), -1), census.reshape(len(census), -1)], axis=1)
    return {f"fact-{at}": column for at, column in enumerate(columns.T.astype(np.float64))}


def _tokens(random: np.random.Generator, runs: int, cv: float) -> Array:
    return 1000 * np.exp(random.normal(0, cv, runs))


def _fixture(
    random: np.random.Generator,
    quality: Array,
    census_quality: Array,
    noise: Noise,
    change: Change,
    graded: int,
    runs: int,
) -> FixtureArm:
    luck = random.normal(0, noise.summary, (runs, 1)) - 6 * (random.random((runs, 1)) < noise.collapse)
    odds = np.repeat((quality + luck)[:, :, None], FACTS, axis=2)
    kept = _alter(random, _keep(random, odds, 1.0 if noise.blocks else 0.5), change)
    census_odds = np.repeat((census_quality + luck)[:, :, None], CENSUS_FACTS, axis=2)
    census_odds[:, 1, :SOUND] = 4.2 + luck
    census = _alter(random, _keep(random, census_odds, float(noise.blocks)), change)
    kept[:, :ARTIFACT_PROBES] &= random.random((runs, ARTIFACT_PROBES, FACTS)) < change.section
    census[:, 0] &= random.random((runs, CENSUS_FACTS)) < change.section
    written = random.random((runs, 1, 1)) >= max(noise.sections, change.sections)
    kept[:, :ARTIFACT_PROBES] &= written
    census[:, 0] &= written[:, 0]
    ruined = slice(2, 2 + change.ruined)
    kept[:, ruined] = False
    census[:, 1, : change.facts] = False
    facts = kept.mean(axis=2)
    answer = random.normal(0, noise.judge, (graded, PROBES, 1))
    dimension = random.normal(0, noise.judge * 0.7, (graded, PROBES, len(LOADINGS)))
    style = random.normal(0, noise.style, (graded, 1, 1))
    latent = 4.7 - 4 * LOADINGS * (1 - facts[:graded, :, None]) + style + answer + dimension
    # Whole points by fair rounding after the shift, so that a shift of 0.3 is one of 0.3 at the ceiling too.
    shifted = np.clip(np.clip(latent, 0, 5) + change.shift, 0, 5)
    scores = np.floor(shifted + random.random(shifted.shape)).clip(0, 5)
    scores[:, ruined] = 0.0
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
        kept=_singles(kept, census),
        tokens=_tokens(random, runs, noise.size),
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
            mine = change if number == 0 else replace(change, ruined=0, facts=0)
            one = _fixture(random, quality, census, self.noise, mine, graded, runs)
            scores = one.scores.copy()
            if odd:
                scores[0] = np.clip(scores[0] - 1.0, 0, 5)
            fixtures[f"fixture-{number}"] = replace(one, scores=np.clip(scores + day, 0, 5))
        return Arm("arm", fixtures)


def _symmetric(random: np.random.Generator, fixtures: int, spread: float, graded: int, compressed: int) -> Arm:
    """Draw an arm whose noise is symmetric around the middle of the scale: more of it leaves all means as they are."""

    def one() -> FixtureArm:
        run = random.normal(0, 0.2, (graded, 1, 1))
        cell = random.normal(0, 0.35, (graded, PROBES, 1)) + random.normal(0, 0.25, (graded, PROBES, len(LOADINGS)))
        luck = random.normal(0, 0.03, (compressed, 1))

        def shares(columns: int, sd: float) -> Array:
            return np.clip(0.5 + spread * (luck + random.normal(0, sd, (compressed, columns))), 0, 1)

        odds = np.repeat((spread * 13 * luck)[:, :, None], FACTS * (PROBES + CENSUS_FACTS), axis=2)
        single = _keep(random, odds, 0.0)
        return FixtureArm(
            probes=tuple(f"probe-{i}" for i in range(PROBES)),
            scores=np.clip(2.5 + spread * (run + cell), 0, 5),
            facts=shares(PROBES, 0.1),
            census_kinds=CENSUS_KINDS,
            census=shares(len(CENSUS_KINDS), 0.06),
            census_weights=np.full((compressed, len(CENSUS_KINDS)), float(CENSUS_FACTS)),
            structure=({"tool pairs whole": True},) * compressed,
            planned_scores=graded * PROBES,
            planned_facts=compressed * PROBES,
            kept=_singles(single, single[:, :0]),
            tokens=_tokens(random, compressed, 0.05 * spread),
        )

    return Arm("symmetric", {f"fixture-{number}": one() for number in range(fixtures)})


_NO_FALSE = FalseValues(more=False, named=())


def _recorded(base: Arm, candidate: Arm) -> Recorded:
    """Return what the records would say of two arms: their sizes, and nothing else."""

    def mean(arm: Arm, read: str) -> float:
        if read == "tokens":
            return float(np.mean([item.tokens.mean() for item in arm.fixtures.values() if item.tokens is not None]))
        return float(np.mean([np.mean(list(item.kept.values())) for item in arm.fixtures.values()]))

    kept = mean(base, "kept"), mean(candidate, "kept")
    return Recorded(
        outcome=OutcomeChange((), (), (), (), ()),
        window=Finding(name="window", state=StrandState.NOT_RECORDED),
        shown=Finding(name="shown", state=StrandState.NOT_RECORDED),
        asks=AsksChange(Finding(name="asks", state=StrandState.NOT_RECORDED)),
        form=FormChange(False),
        facts=(),
        invented=_NO_FALSE,
        stale=_NO_FALSE,
        size=SizeChange(True, mean(base, "tokens"), mean(candidate, "tokens"), *kept, *kept),
        asked_facts=PROBES * FACTS,
        other_facts=len(CENSUS_KINDS) * CENSUS_FACTS,
        exact=False,
        judged=True,
        model_wrote=True,
    )


@dataclass(frozen=True)
class Setting:
    """One row of a table."""

    name: str
    fixtures: int
    noise: Noise = REGIMES["mid"]
    change: Change = Change()
    design: Design = DESIGNS["paid"]
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
    """An interval without zero beside a calm verdict, or one with zero in the sentence that tells a change."""
    more: bool = False
    """Whether further compressions were bought."""

    @property
    def alarm(self) -> bool:
        """Whether anything is called changed."""
        return self.kind not in CALM


def _interval_with_zero(text: str) -> bool:
    """Tell whether a sentence shows an interval that contains zero."""
    inside = text.partition("[")[2].partition("]")[0].replace("\u2212", "-").split(", ")
    return len(inside) == 2 and float(inside[0]) <= 0 <= float(inside[1])


def _outcome(verdict: Verdict, *, more: bool) -> Outcome:
    outside = any((row.ci_low or 0) > 0 or (row.ci_high or 0) < 0 for row in verdict.rows)
    calm = verdict.kind in CALM
    odd = outside if calm else _interval_with_zero(verdict.headline)
    less = any(item.verdict == "less_stable" for item in verdict.spread)
    return Outcome(verdict.kind, less, odd, more)


def _first(arm: Arm, graded: int, compressed: int) -> Arm:
    """Return the first runs of an arm."""
    cut = {
        name: dataclasses.replace(
            item,
            scores=item.scores[:graded],
            facts=item.facts[:compressed],
            census=item.census[:compressed],
            census_weights=item.census_weights[:compressed],
            structure=item.structure[:compressed],
            planned_scores=graded * PROBES,
            planned_facts=compressed * PROBES,
            kept={fact: values[:compressed] for fact, values in item.kept.items()},
            tokens=None if item.tokens is None else item.tokens[:compressed],
        )
        for name, item in arm.fixtures.items()
    }
    return Arm(arm.label, cut)


def _disturb(random: np.random.Generator, setting: Setting, base: Arm, candidate: Arm) -> None:
    """Make one run of each fixture odd, and lose some grades."""
    if setting.odd_anywhere:
        for theirs, ours in zip(base.fixtures.values(), candidate.fixtures.values(), strict=True):
            at = random.integers(len(theirs.scores) + len(ours.scores))
            run = theirs.scores[at] if at < len(theirs.scores) else ours.scores[at - len(theirs.scores)]
            run[:] = np.clip(run - 1.0, 0, 5)
    if setting.missing:
        for item in candidate.fixtures.values():
            item.scores[random.random(item.scores.shape[:2]) < setting.missing] = np.nan


def _compare(random: np.random.Generator, setting: Setting, base: Arm, suite: Suite | None, seed: int) -> Outcome:
    design, compressions = setting.design, RUNS_AT_LOOK[-1] if setting.design.more else setting.design.compressed
    day = random.normal(0, setting.day) if setting.day else 0.0
    shift = None
    if suite is None:
        candidate = _symmetric(random, setting.fixtures, setting.spread, design.graded, compressions)
    else:
        candidate = suite.arm(random, setting.change, design.graded, compressions, day=day)
        if setting.control:
            found = control_shift(base, suite.arm(random, Change(), 1, 1, day=day))
            shift = found.shift if found is not None else None
    _disturb(random, setting, base, candidate)
    rule = replace(RULE, seed=seed, coverage_floor=0.5)

    def decided(arm: Arm, *earlier: Look) -> Verdict:
        return decide(base, arm, options=rule, shift=shift, recorded=_recorded(base, arm), earlier=earlier)

    if not design.more:
        return _outcome(decided(candidate), more=False)
    looks, compressed = list[Look](), design.compressed
    while True:
        facts = decided(_first(candidate, 0, compressed), *looks)
        later = next_look(compressed)
        if facts.kind in DECIDED:
            return _outcome(facts, more=bool(looks))
        if later is None or not facts_open(facts):
            return _outcome(decided(_first(candidate, design.graded, compressed), *looks), more=bool(looks))
        looks.append(Look(design.graded, compressed))
        compressed = later


def trial(seed: int, setting: Setting) -> Outcome:
    """Simulate one comparison and decide it."""
    random = np.random.default_rng(seed)
    base_runs = setting.design.base
    if setting.spread != 1.0:
        base = _symmetric(random, setting.fixtures, 1.0, base_runs, base_runs)
        return _compare(random, setting, base, None, seed)
    suite = Suite.draw(random, setting.fixtures, setting.noise)
    base = suite.arm(random, Change(), base_runs, base_runs, odd=setting.odd)
    return _compare(random, setting, base, suite, seed)


def shared_trial(seed: int, setting: Setting, pull_requests: int = 20) -> bool:
    """Compare many harmless pull requests with one baseline: was there any alarm?"""
    random = np.random.default_rng(seed)
    suite = Suite.draw(random, setting.fixtures, setting.noise)
    base = suite.arm(random, Change(), setting.design.base, setting.design.base)
    return any(_compare(random, setting, base, suite, seed + at).alarm for at in range(pull_requests))


@dataclass(frozen=True)
class Looked:
    """One pull request that is looked at until something is settled."""

    alarm_at: tuple[bool, bool, bool]
    """Whether it was called changed by the first, second, third look."""
    promised: float | None
    """The chance that was stated at the first look that the advised runs settle it."""
    settled: bool
    """Whether they did."""


def looked_trial(seed: int, setting: Setting) -> Looked:
    """Look at a pull request at 3, 6 and 10 runs."""
    random = np.random.default_rng(seed)
    suite = Suite.draw(random, setting.fixtures, setting.noise)
    base = suite.arm(random, Change(), setting.design.base, setting.design.base)
    whole = suite.arm(random, setting.change, RUNS_AT_LOOK[-1], RUNS_AT_LOOK[-1])
    found, earlier = [], list[Look]()
    for runs in RUNS_AT_LOOK:
        part = _first(whole, runs, runs)
        rule = replace(RULE, seed=seed)
        found.append(decide(base, part, options=rule, earlier=earlier, recorded=_recorded(base, part)))
        earlier.append(Look(runs, runs))
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


def _percent(flags: Sequence[bool]) -> str:
    return f"{100 * sum(flags) / len(flags):.1f}"


def _table(columns: Sequence[str]) -> None:
    print(f"\n| {' | '.join(columns)} |")
    print("|---" * len(columns) + "|")


_GRID = [(fixtures, design) for fixtures in (1, 5) for design in DESIGNS.values()]


def _cell(found: Sequence[Outcome]) -> str:
    """Say how many are called regressed, and how many changed in another way."""
    regressed = _percent([item.kind is Kind.REGRESSED for item in found])
    return f"{regressed} + {_percent([item.alarm and item.kind is not Kind.REGRESSED for item in found])}"


def _rows(pool: multiprocessing.pool.Pool, settings: Mapping[str, Sequence[Setting]], seeds: range) -> None:
    """Print a row of each name: what each of its settings comes to, and three things about all of them together."""
    first = next(iter(settings.values()))
    columns = [f"{item.fixtures} fixture{'s' * (item.fixtures > 1)}, {item.design.name}" for item in first]
    _table(("", *columns, "inconclusive", "less stable", "odd interval", "more runs"))
    for name, row in settings.items():
        found = [pool.map(partial(trial, setting=setting), seeds, chunksize=10) for setting in row]
        every = [item for one in found for item in one]
        cells = [
            name,
            *map(_cell, found),
            _percent([item.kind is Kind.INCONCLUSIVE for item in every]),
            _percent([item.less_stable for item in every]),
            _percent([item.contradiction for item in every]),
            _percent([item.more for item in found[0]]),
        ]
        print(f"| {' | '.join(cells)} |", flush=True)


def _grid(one: Setting) -> list[Setting]:
    return [replace(one, fixtures=fixtures, design=design) for fixtures, design in _GRID]


_MID = REGIMES["mid"]
_HARMLESS = {
    "SD 0.21, tokens vary by 2 %": Setting("", 5, replace(REGIMES["low"], size=0.02)),
    "SD 0.25, by 5 %": Setting("", 5),
    "SD 0.47, by 10 %": Setting("", 5, replace(REGIMES["high"], size=0.10)),
    "SD 0.25, by 20 %": Setting("", 5, replace(_MID, size=0.20)),
    "5 % of the runs collapse": Setting("", 5, replace(_MID, collapse=0.05)),
    "a section missing in 20 % of the runs": Setting("", 5, replace(_MID, sections=0.2)),
    "in 50 %": Setting("", 5, replace(_MID, sections=0.5)),
    "facts of a section share one fate": Setting("", 5, replace(_MID, blocks=True)),
    "one run of either side a point lower, 4 % of the grades missing": Setting("", 5, missing=0.04, odd_anywhere=True),
    "only the noise doubled": Setting("", 5, spread=2.0),
    "tripled": Setting("", 5, spread=3.0),
}
_HARMFUL = (
    "one fact lost always",
    "two facts lost always",
    "five facts lost always",
    "a section lost in half of the runs",
    "one probe 5 → 0",
    "uniform −0.3",
    "each fact lost with +15 %",
    "a small improvement",
)


def harmless(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Nothing changed but the luck: every alarm is false."""
    del sizes
    print("\n## Nothing changed, % called regressed + changed in another way")
    _rows(pool, {name: _grid(one) for name, one in _HARMLESS.items()}, seeds)


def power(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Something changed."""
    del sizes
    print("\n## Something changed, % called regressed + changed in another way")
    rows = {
        f"{name}, SD {sd}": _grid(Setting("", 5, REGIMES[regime], SCENARIOS[name]))
        for regime, sd in (("mid", "0.25"), ("high", "0.47"))
        for name in _HARMFUL
    }
    _rows(pool, rows, seeds)


def day(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Only the day changed, or one run of the base is odd."""
    print("\n## Only the day changed, or a base run is odd; control: one base run of each fixture")

    def row(one: Setting) -> list[Setting]:
        return [replace(one, fixtures=size, control=control) for size in sizes for control in (False, True)]

    print(f"Each: {', '.join(f'{size} fixtures, without and with control' for size in sizes)}.")
    days = {f"day effect of SD {sd:g}": row(Setting("", 5, day=sd)) for sd in (0.0, 0.05, 0.10)}
    changed = row(Setting("", 5, change=SCENARIOS["uniform −0.3"]))
    _rows(
        pool,
        {**days, "one base run of ten a point lower": row(Setting("", 5, odd=True)), "uniform −0.3": changed},
        seeds,
    )


def shared(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Many pull requests against one baseline."""
    print("\n## 20 harmless pull requests against one baseline, % of baselines with at least one alarm")
    _table(("day", "fixtures", "alarm"))
    for size in sizes:
        for sd, control in ((0.0, False), (0.05, False), (0.05, True)):
            setting = Setting("", size, day=sd, control=control)
            starts = range(seeds.start, seeds.start + 20 * len(seeds), 100)
            found = pool.map(partial(shared_trial, setting=setting), starts, chunksize=1)
            name = f"{f'SD {sd:g}' if sd else 'the same'}{', control' if control else ''}"
            print(f"| {name} | {size} | {_percent(found)} |", flush=True)


def looks(pool: multiprocessing.pool.Pool, seeds: range, sizes: Sequence[int]) -> None:
    """Look again after more runs."""
    print(f"\n## Looks at {', '.join(map(str, RUNS_AT_LOOK))} runs, SD 0.47")
    _table(("scenario", "fixtures", "by look 1", "by look 2", "by look 3", "advised", "promised", "kept"))
    for size in sizes:
        for name in ("same vs same", "two facts lost always", "uniform −0.3", _ANY_SIZE):
            setting = Setting(name, size, REGIMES["high"], SCENARIOS.get(name, Change()))
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


TABLES = {"harmless": harmless, "power": power, "day": day, "looks": looks, "shared": shared}


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
