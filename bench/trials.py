"""Simulated comparisons, decided by the shipped rule with fewer arrangements."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace

import numpy as np

from bench.simulated import (
    CENSUS_FACTS,
    CENSUS_KINDS,
    FACTS,
    PROBES,
    REGIMES,
    SCENARIOS,
    Change,
    Noise,
    Suite,
    symmetric,
)
from eval_core.comparing.control_runs import control_shift
from eval_core.comparing.tested import Options
from eval_core.comparing.verdict import DECIDED, decide, facts_open
from eval_core.domain.extra import Look
from eval_core.statistics.arms import Arm
from eval_core.statistics.clear_losses import KeptBlock, clear_changes
from eval_core.statistics.looks import RUNS_AT_LOOK, next_look
from eval_core.strands.asks import AsksChange
from eval_core.strands.evidence import Recorded
from eval_core.strands.fact_changes import FalseValues
from eval_core.strands.findings import Finding, Kind, StrandState, Verdict
from eval_core.strands.form import FormChange
from eval_core.strands.outcome import OutcomeChange
from eval_core.strands.size import SizeChange

RULE = Options(arrangements=1000)
CALM = {Kind.NO_DETECTABLE_CHANGE, Kind.INCONCLUSIVE}


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
    change: Change = SCENARIOS["same vs same"]
    design: Design = DESIGNS["paid"]
    spread: float = 1.0
    """Of the candidate's noise, in the symmetric model; 1 is the model of compressors."""
    singles: float | None = None
    """Of the noise of single probes and facts, where it does not grow with that of whole runs."""
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
        candidate = symmetric(
            random, setting.fixtures, setting.spread, design.graded, compressions, singles=setting.singles
        )
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
        base = symmetric(random, setting.fixtures, 1.0, base_runs, base_runs)
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


def any_size_trial(seed: int, setting: Setting) -> Looked:
    """Look at a change of any size: only over many sizes can the promised chance be held against what came true."""
    shift = -0.4 * float(np.random.default_rng(seed).random())
    return looked_trial(seed, replace(setting, change=Change(shift=shift)))


@dataclass(frozen=True)
class Flicker:
    """Facts of five fixtures: some a matter of luck, the others always kept but for those that the candidate loses."""

    flickering: int
    together: int
    """So many of them at a time share one fate."""
    lost: int
    """Of the first fixture."""


def clear_trial(seed: int, setting: Flicker) -> float:
    """Test 3 runs against 10 for clear losses alone, with all arrangements of the shipped rule, and return their p."""
    random, blocks = np.random.default_rng(seed), list[KeptBlock]()
    for number in range(5):
        often = random.beta(2, 2, setting.flickering // setting.together)
        kept = np.ones((13, 100 + setting.lost))
        kept[:, : setting.flickering] = np.repeat(random.random((13, len(often))) < often, setting.together, axis=1)
        if not number:
            kept[:3, 100:] = 0.0
        blocks.append(KeptBlock(f"fixture-{number}", 3, 10, tuple(map(str, range(kept.shape[1]))), kept))
    found = clear_changes(blocks, alpha=0.01, seed=seed)
    return found.lost.p if found is not None else 1.0
