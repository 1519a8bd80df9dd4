"""Judge drift: stored answers graded again, and whether the judge still grades as it did."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eval_core.base.errors import UserError
from eval_core.comparing.arms import Array
from eval_core.comparing.hypotheses import SCORE_HYPOTHESES
from eval_core.comparing.permutation import LIMIT, Shift
from eval_core.domain.extra import RejudgedCell, RejudgedSample
from eval_core.domain.grade import DIMENSIONS, Grade
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import ProbeRecord

__all__ = [
    "ALPHA",
    "RELEVANT",
    "SAMPLE",
    "Drift",
    "GradedCell",
    "Regraded",
    "alarmed",
    "answer_key",
    "check",
    "confirm",
    "drift_in",
    "drift_of",
    "graded_cells",
    "pairs_of",
    "regraded_pairs",
    "sample",
    "shift_of",
]

# Does the judge still grade as it did when the baseline was made?

ALPHA = 0.2
"""Of the first sample: a false alarm costs a second one and nothing else."""
CONFIRMED = 0.01
"""Of both samples together: so rarely is a judge that did not change called drifted."""
FEW = 0.05
"""The same for baselines of fewer than eight fixture-runs, which cannot reach it."""
RELEVANT = 0.1
"""Shifts below this, a third of what a comparison can see, are left alone even when they are certain."""
LARGE = 0.3
"""A confirmed shift below this is taken off the scores; from this on scores are not compared."""
RELEVANT_SCALE = 0.15
"""A scale that is wider or narrower by less than this share is left alone."""
SAMPLE = 90
"""Finds a shift of a quarter point in 99 of 100 cases."""
TOLERANCE = 1e-9


@dataclass(frozen=True, order=True)
class GradedCell:
    """One stored answer."""

    fixture: str
    run: int
    probe: str


@dataclass(frozen=True)
class Regraded:
    """One stored answer with its old and its new six scores, in the order of DIMENSIONS."""

    cell: GradedCell
    old: tuple[float, ...]
    new: tuple[float, ...]


@dataclass(frozen=True)
class Drift:
    """What the paired test says."""

    fired: bool
    p: float
    shifts: dict[str, float]
    """Per dimension and overall: new minus old grade."""
    cells: int
    clusters: int
    attainable_p: float
    alpha: float
    scale: float = 1.0
    """How wide the new grades are spread over the scale, against the old ones."""
    errors: dict[str, float] = field(default_factory=dict)
    """Standard errors of the shifts."""

    @property
    def small(self) -> bool:
        """Whether it can be taken off the scores instead of muting them."""
        moved = max(abs(value) for value in self.shifts.values())
        return moved < LARGE and abs(self.scale - 1) < RELEVANT_SCALE

    @property
    def can_reach(self) -> bool:
        """Whether so few fixture-runs could have shown a drift at all."""
        return self.attainable_p <= self.alpha

    @property
    def largest(self) -> tuple[str, float]:
        """Return what moved most, as people call it; overall first where it is among the largest."""
        overall = self.shifts["overall"]
        name = max(self.shifts, key=lambda key: abs(self.shifts[key]))
        return ("overall", overall) if abs(overall) >= RELEVANT else (name.replace("_", " "), self.shifts[name])


def sample(cells: Sequence[GradedCell], n: int = SAMPLE, seed: int = 0) -> tuple[GradedCell, ...]:
    """Choose cells spread as evenly as possible over fixtures, then over runs; the same for the same seed."""
    random = np.random.default_rng(seed)
    queues: dict[str, dict[int, list[GradedCell]]] = {}
    for cell in sorted(cells):
        queues.setdefault(cell.fixture, {}).setdefault(cell.run, []).append(cell)
    orders = []
    for runs in queues.values():
        shuffled = [[group[i] for i in random.permutation(len(group))] for group in runs.values()]
        spread = [shuffled[i] for i in random.permutation(len(shuffled))]
        # One cell of every run before the second of any.
        orders.append([cell for layer in itertools.zip_longest(*spread) for cell in layer if cell is not None])
    dealt = [cell for layer in itertools.zip_longest(*orders) for cell in layer if cell is not None]
    return tuple(sorted(dealt[:n]))


def _cluster_means(pairs: Sequence[Regraded]) -> Array:
    groups: dict[tuple[str, int], list[Array]] = {}
    for pair in pairs:
        if len(pair.old) != len(DIMENSIONS) or len(pair.new) != len(DIMENSIONS):
            raise UserError(f"{pair.cell}: old and new grade need {len(DIMENSIONS)} scores; grade this answer again")
        difference = np.array(pair.new, dtype=np.float64) - np.array(pair.old, dtype=np.float64)
        if not np.isfinite(difference).all():
            raise UserError(f"{pair.cell}: a score is not a number; leave the cell out, missing is never zero")
        groups.setdefault((pair.cell.fixture, pair.cell.run), []).append(np.append(difference, difference.mean()))
    return np.array([np.mean(group, axis=0) for group in groups.values()])


def _signs(clusters: int, seed: int) -> Array:
    if 2**clusters <= LIMIT:
        return np.array(list(itertools.product((1.0, -1.0), repeat=clusters)))
    signs = np.random.default_rng(seed).choice((1.0, -1.0), size=(LIMIT, clusters))
    signs[0] = 1.0
    return signs


def _spreads(pairs: Sequence[Regraded]) -> Array:
    """Return for each cluster how much farther from the middle the new grades lie than the old ones, squared."""
    old, new = (np.array([getattr(pair, side) for pair in pairs]).mean(axis=1) for side in ("old", "new"))
    groups: dict[tuple[str, int], list[float]] = {}
    for pair, before, after in zip(pairs, old, new, strict=True):
        # Around each side's own mean: a shift alone is no change of scale.
        outward = (after - new.mean()) ** 2 - (before - old.mean()) ** 2
        groups.setdefault((pair.cell.fixture, pair.cell.run), []).append(float(outward))
    return np.array([np.mean(group) for group in groups.values()])


def _scale(pairs: Sequence[Regraded]) -> float:
    old, new = (np.array([getattr(pair, side) for pair in pairs]).mean(axis=1) for side in ("old", "new"))
    return float((new.std() + TOLERANCE) / (old.std() + TOLERANCE))


def check(pairs: Sequence[Regraded], *, alpha: float = ALPHA, seed: int = 0) -> Drift | None:
    """Compare old with new grades; None without any pair."""
    if not pairs:
        return None
    means = _cluster_means(pairs)
    count = len(means)
    signs = _signs(count, seed)
    shifts = signs @ means / count
    # Flipping a sign leaves the sum of squares; the floor serves a judge that repeats itself to the letter.
    spread = np.maximum((means**2).sum(axis=0) / count, 0.05**2)
    statistic = np.abs(shifts) / np.sqrt(spread / count)
    wider = _spreads(pairs)
    scaled = np.abs(signs @ wider) / np.sqrt(max(float((wider**2).sum()), count * 0.05**2))
    largest = np.maximum(statistic.max(axis=1), scaled)
    p = float((largest >= largest[0] - TOLERANCE * max(1.0, largest[0])).mean())
    moved = dict(zip(SCORE_HYPOTHESES, (float(value) for value in shifts[0]), strict=True))
    scale = _scale(pairs)
    relevant = max(abs(value) for value in moved.values()) >= RELEVANT - TOLERANCE or abs(scale - 1) >= RELEVANT_SCALE
    deviation = means.std(axis=0, ddof=1) if count > 1 else np.full(means.shape[1], np.inf)
    errors = dict(zip(SCORE_HYPOTHESES, (float(value) for value in deviation / np.sqrt(count)), strict=True))
    # Flipping every sign gives the same statistic, hence two.
    attainable = max(2 / 2**count, 1 / len(signs))
    return Drift(p <= alpha and relevant, p, moved, len(pairs), count, attainable, alpha, scale, errors)


def confirm(first: Drift | None, together: Drift | None) -> Drift | None:
    """Return what two samples say; without a second one a first alarm stays an alarm."""
    if first is None or not first.fired:
        return first
    return replace(first, fired=False) if together is None else together


# Stored answers that were graded again: what a measurement keeps of them, and the drift that they show.


def answer_key(text: str) -> str:
    """Return what identifies an answer."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def graded_cells(measurement: Measurement) -> Iterator[tuple[GradedCell, ProbeRecord]]:
    """Yield the cells that have both an answer and a grade."""
    for fixture, runs in measurement.fixtures.items():
        for run in runs:
            for probe, record in run.probes.items():
                if record.answer is not None and isinstance(record.result, Grade):
                    yield GradedCell(fixture, run.run, probe), record


def regraded_pairs(base: Measurement, candidate: Measurement) -> list[Regraded]:
    """Return the base's answers that the candidate's run graded again, with both grades."""
    sample = candidate.extra.drift
    return pairs_of(base, sample.cells) if sample else []


def pairs_of(base: Measurement, cells: Sequence[RejudgedCell]) -> list[Regraded]:
    """Return answers of a base that were graded again, with both grades."""
    again = {(cell.fixture, cell.run, cell.probe): cell for cell in cells}
    pairs = []
    for cell, record in graded_cells(base):
        new = again.get((cell.fixture, cell.run, cell.probe))
        assert record.answer is not None
        if new is None or new.answer != answer_key(record.answer.text) or not isinstance(record.result, Grade):
            continue
        old = tuple(record.result.scores[name] for name in DIMENSIONS)
        pairs.append(Regraded(cell, old, tuple(new.scores)))
    return pairs


def drift_of(base: Measurement, candidate: Measurement) -> Drift | None:
    """Test whether the judge of the candidate's run grades the base's answers as they were graded then."""
    sample = candidate.extra.drift
    return None if sample is None else drift_in(base, sample)


def drift_in(base: Measurement, sample: RejudgedSample) -> Drift | None:
    """Return what a sample, with the one that confirms it, says about the judge."""
    first, second = pairs_of(base, sample.cells), pairs_of(base, sample.confirming)
    clusters = {(pair.cell.fixture, pair.cell.run) for pair in (*first, *second)}
    # So few fixture-runs cannot reach the level; the usual one is then all that can be asked for.
    alpha = CONFIRMED if 2 / 2 ** len(clusters) <= CONFIRMED else FEW
    return confirm(check(first), check([*first, *second], alpha=alpha) if second else None)


def alarmed(base: Measurement, sample: RejudgedSample) -> bool:
    """Tell whether a first sample asks for a second one."""
    found = check(pairs_of(base, sample.cells))
    return found is not None and found.fired


def shift_of(drift: Drift) -> Shift:
    """Return a confirmed drift as what is taken off the scores."""
    return Shift(drift.shifts, drift.errors)
