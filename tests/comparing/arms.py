"""Arms built from a few numbers."""

from __future__ import annotations

import numpy as np

from eval_core.statistics.arms import Arm, Array, FixtureArm

KINDS = ("path", "number")
CHECKS = {"system prompt first": True, "tool pairs whole": True}


def fixture(
    scores: Array | None = None,
    facts: Array | None = None,
    census: Array | None = None,
    *,
    probes: tuple[str, ...] = ("p0", "p1"),
    structure: tuple[dict[str, bool], ...] | None = None,
    planned_scores: int | None = None,
    planned_facts: int | None = None,
) -> FixtureArm:
    """Build a fixture's arm; what is not given is absent (scores) or perfect (facts, census, structure)."""
    scores = np.zeros((0, len(probes), 6)) if scores is None else scores
    runs = len(structure) if structure is not None else len(facts) if facts is not None else len(scores)
    facts = np.ones((runs, len(probes))) if facts is None else facts
    census = np.ones((len(facts), len(KINDS))) if census is None else census
    return FixtureArm(
        probes=probes,
        scores=scores,
        facts=facts,
        census_kinds=KINDS,
        census=census,
        census_weights=np.where(np.isnan(census), 0.0, 10.0),
        structure=(CHECKS,) * len(facts) if structure is None else structure,
        planned_scores=scores.shape[0] * scores.shape[1] if planned_scores is None else planned_scores,
        planned_facts=facts.size if planned_facts is None else planned_facts,
    )


def constant(runs: int, score: float, fact: float = 1.0, fixtures: int = 3) -> Arm:
    """Build an arm whose runs are all alike, as a deterministic compressor's are."""

    def one() -> FixtureArm:
        return fixture(np.full((runs, 2, 6), score), np.full((runs, 2), fact), np.full((runs, 2), fact))

    return Arm("constant", {f"f{i}": one() for i in range(fixtures)})


def noisy(
    seed: int, runs: int, *, mean: float = 4.0, sd: float = 0.2, fact: float = 0.8, fixtures: int = 3, probes: int = 4
) -> Arm:
    """Build an arm with a summary effect shared by all probes of a run."""
    random = np.random.default_rng(seed)
    names = tuple(f"p{i}" for i in range(probes))
    built = {}
    for number in range(fixtures):
        summary = random.normal(0, sd, (runs, 1, 1))
        scores = np.clip(mean + summary + random.normal(0, sd, (runs, probes, 6)), 0, 5)
        facts = np.clip(fact + random.normal(0, 0.05, (runs, probes)), 0, 1)
        census = np.clip(fact + random.normal(0, 0.05, (runs, 2)), 0, 1)
        built[f"f{number}"] = fixture(scores, facts, census, probes=names)
    return Arm(f"noisy-{seed}", built)
