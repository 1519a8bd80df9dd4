"""Simulated compressors, as the two arms of a comparison.

The model of a compressor: probes differ much in how well they survive (skewed), all probes of a run share the luck of
one summary, a probe's facts tend to be lost together (near-binary), the six dimensions of a grade hang together, and
the judge adds noise and whole numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eval_core.statistics.arms import Arm, Array, FixtureArm

PROBES, CENSUS_KINDS, CENSUS_FACTS = 10, ("path", "identifier", "number", "error", "url"), 15
FACTS = 4
ARTIFACT_PROBES = 2
SOUND = 5
"""Census facts of each fixture that nearly every run keeps, and that a change may lose."""
LOADINGS = np.array([1.0, 0.8, 1.1, 1.0, 0.7, 0.5])
"""How much of a lost fact each dimension feels."""


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


def symmetric(
    random: np.random.Generator,
    fixtures: int,
    spread: float,
    graded: int,
    compressed: int,
    singles: float | None = None,
) -> Arm:
    """Draw an arm whose noise is symmetric around the middle of the scale: more of it leaves all means as they are."""
    inner = spread if singles is None else singles

    def one() -> FixtureArm:
        run = random.normal(0, 0.2, (graded, 1, 1))
        cell = random.normal(0, 0.35, (graded, PROBES, 1)) + random.normal(0, 0.25, (graded, PROBES, len(LOADINGS)))
        luck = random.normal(0, 0.03, (compressed, 1))

        def shares(columns: int, sd: float) -> Array:
            return np.clip(0.5 + spread * luck + inner * random.normal(0, sd, (compressed, columns)), 0, 1)

        odds = np.repeat((spread * 13 * luck)[:, :, None], FACTS * (PROBES + CENSUS_FACTS), axis=2)
        single = _keep(random, odds, 0.0)
        return FixtureArm(
            probes=tuple(f"probe-{i}" for i in range(PROBES)),
            scores=np.clip(2.5 + spread * run + inner * cell, 0, 5),
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
