"""The permutation test: whole runs are relabelled within fixtures, max-T over dimensions and probes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from eval_core.statistics.arms import Array
from eval_core.statistics.hypotheses import Block, Unit

# Quantiles of Student's t for whole degrees of freedom, so that no statistics package is needed.


def _cdf(t: float, df: int) -> float:
    """Return P(T <= t) by the finite series that exists for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(df))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = df % 2
    term = cosine if odd else 1.0
    total = term if df > 1 else 0.0
    for step in range(3 if odd else 2, df - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + inside / 2


@lru_cache(maxsize=1024)
def quantile(probability: float, df: int) -> float:
    """Return the t that is exceeded with probability 1 - `probability`; infinite where nothing measures the noise."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"probability must be in [0.5, 1), got {probability}")
    if df < 1:
        return math.inf
    low, high = 0.0, 1.0
    while _cdf(high, df) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _cdf(middle, df) < probability else (low, middle)
    return (low + high) / 2


# All the ways, or a fair draw of them, in which runs could have carried the two labels.

LIMIT = 10_000
"""Enumerate up to this many arrangements; draw this many where there are more."""


@dataclass(frozen=True)
class Design:
    """How many candidate and baseline runs each fixture has; runs trade labels only inside their fixture."""

    sizes: tuple[tuple[int, int], ...]
    """Per fixture: candidate runs, baseline runs."""
    limit: int = LIMIT
    seed: int = 0

    @property
    def total(self) -> int:
        """Count the distinct arrangements."""
        return math.prod(math.comb(n + m, n) for n, m in self.sizes)

    @property
    def enumerated(self) -> bool:
        """Tell whether all arrangements are looked at."""
        return self.total <= self.limit

    @property
    def count(self) -> int:
        """Count the arrangements looked at."""
        return min(self.total, self.limit)

    @property
    def attainable_p(self) -> float:
        """Return the smallest p-value this design can give.

        With equal run counts everywhere the mirror image of an arrangement has the same statistics, so even the
        clearest change shares its place with its mirror.
        """
        mirrored = all(n == m for n, m in self.sizes)
        return min(1.0, max((2 if mirrored else 1) / self.total, 1 / self.count))

    def masks(self) -> tuple[Array, ...]:
        """Return for each fixture an [arrangement, run] matrix, 1 where the run is labelled candidate.

        Candidate runs stand first; arrangement 0 is the observed one. Tests of the same runs share the matrices.
        """
        return _masks(self)

    def _made(self) -> Iterator[Array]:
        tables = [_choices(n, m) for n, m in self.sizes] if self.enumerated else []
        if self.enumerated:
            shape = tuple(len(table) for table in tables)
            picks: Sequence[np.ndarray[tuple[int, ...], np.dtype[np.intp]]] = np.unravel_index(
                np.arange(self.total), shape
            )
            for table, pick in zip(tables, picks, strict=True):
                yield table[pick]
            return
        for index, (n, m) in enumerate(self.sizes):
            # A stream per fixture: adding a fixture leaves the draws of the others as they were.
            random = np.random.default_rng((self.seed, index))
            ranks = random.random((self.count, n + m)).argsort(axis=1)
            mask = (ranks < n).astype(np.float64)
            mask[0] = np.arange(n + m) < n
            yield mask


@lru_cache(maxsize=2)
def _masks(design: Design) -> tuple[Array, ...]:
    """Return the masks of a design; they are shared, so that nobody may write into them."""
    made = tuple(design._made())
    for mask in made:
        mask.flags.writeable = False
    return made


def _choices(n: int, m: int) -> Array:
    rows = np.array(list(itertools.combinations(range(n + m), n)), dtype=np.intp)
    mask = np.zeros((len(rows), n + m))
    np.put_along_axis(mask, rows, 1.0, axis=1)
    return mask


# The test: did relabelling whole runs ever look as different as what was observed?

VARIANCE_FLOOR = 0.05**2
"""Deterministic runs have no variance; the floor keeps their statistics finite and tiny wobbles small."""
POWER = 0.80
PRIOR_DF = 1
"""What the single units of an arm add to the degrees of freedom of its runs, where these vary more than they say."""
LOCAL_COST = 4
"""What the p of a single unit is multiplied by: averages get four fifths of alpha, single units the rest."""
REST_COST, REST_LOCAL_COST = 3, 6
"""The same where one average leads: it gets two thirds of alpha, the others two ninths, single units one ninth."""
MOST_EXTRA = 30
"""Nobody runs more than this many further compressions of a fixture for one pull request."""
TOLERANCE = 1e-9
"""Statistics closer than this are tied: the order of a sum must not break a tie."""

Counts = NDArray[np.intp]


@dataclass(frozen=True)
class Hypothesis:
    """One averaged quantity: how it moved, how surely, and what would have been seen."""

    name: str
    base: float
    candidate: float
    delta: float
    se: float
    df: int
    ci_low: float
    ci_high: float
    """At the level of the test: it leaves out zero where the averages make the test significant."""
    ci90_low: float
    ci90_high: float
    """This hypothesis alone; what equivalence is read from."""
    p: float
    """Adjusted for the number of hypotheses."""
    mde: float
    """The smallest change that would have been seen with 80 % power."""
    mde_two_more: float
    """The same, had the candidate two more runs of each fixture."""
    crit: float
    """The standardised change from which on this average alone makes the test significant."""
    tested: float
    """The part of `delta` that the test is about."""
    explained: float
    """The rest, which follows from the facts kept."""
    se_after: tuple[float, ...] = ()
    """The standard error with 1, 2, ... more candidate runs of each fixture."""


@dataclass(frozen=True)
class Shift:
    """How far today's numbers lie from those of the day of the baseline, whatever was changed."""

    points: dict[str, float]
    """Per hypothesis; taken off the change that is tested and shown."""
    se: dict[str, float]
    """Its uncertainty, which widens every interval."""

    def of(self, name: str) -> tuple[float, float]:
        """Return shift and variance of one hypothesis."""
        return self.points.get(name, 0.0), self.se.get(name, 0.0) ** 2


@dataclass(frozen=True)
class UnitDelta:
    """One probe or kind of fact: how it moved, and its adjusted p, times the cost of the local part."""

    unit: Unit
    base: float
    candidate: float
    delta: float
    tested: float
    """The part of `delta` that the test is about."""
    p: float


@dataclass(frozen=True)
class PermutationResult:
    """What one test says."""

    p: float
    p_global: float
    p_local: float
    hypotheses: tuple[Hypothesis, ...]
    units: tuple[UnitDelta, ...]
    crit: float
    """The standardised change of the leading average from which on the test is significant."""
    arrangements: int
    enumerated: bool
    attainable_p: float
    can_reach: bool
    """Whether any data at all could have been significant at `alpha` with this many runs."""
    alpha: float
    runs: dict[str, tuple[int, int]]
    """Per fixture: candidate runs, baseline runs."""
    left_out: tuple[Unit, ...]


def at_least(statistic: Array, values: Array | None = None) -> Counts:
    """Count, for each value, the arrangements whose statistic is at least as large, ties included."""
    wanted = statistic if values is None else values
    slack = wanted - TOLERANCE * np.maximum(1.0, np.abs(wanted))
    return np.asarray(len(statistic) - np.searchsorted(np.sort(statistic), slack, side="left"), dtype=np.intp)


@dataclass(frozen=True)
class _Sums:
    """What the arrangements come to, added up over fixtures."""

    delta: Array
    """[arrangements, hypotheses]"""
    se: Array
    bare_se: Array
    """[hypotheses]: the same without the floor, in the observed arrangement."""
    bare_df: Counts
    """[hypotheses]: the degrees of freedom of that."""
    local: Array
    """[arrangements]: the largest standardised change of a single unit."""
    unit_se: Array
    """[fixtures]: the standard error of a unit in the observed arrangement."""
    variances: tuple[Array, Array]
    """Per arm [hypotheses], in the observed arrangement."""
    degrees: tuple[NDArray[np.intp], NDArray[np.intp]]
    """Per arm [hypotheses]: what the variances rest on."""
    fixtures: NDArray[np.intp]
    """Per hypothesis: how many fixtures measure it."""


def _variances(squares: tuple[Array, Array], degrees: tuple[Counts, Counts]) -> tuple[Array, Array]:
    """Return the variance of each arm; one whose runs measure no noise borrows the other's."""
    ours, theirs = (square / np.maximum(df, 1) for square, df in zip(squares, degrees, strict=True))
    return np.where(degrees[0] > 0, ours, theirs), np.where(degrees[1] > 0, theirs, ours)


def _moderated(
    squares: tuple[Array, Array], degrees: tuple[Counts, Counts], ratio: Array
) -> tuple[tuple[Array, Array], tuple[Counts, Counts]]:
    """Return the variance of each arm, at least what both arms together make of it, and its degrees of freedom.

    Three runs often look calmer than they are. How much more one arm varies than the other is known better from its
    single units, of which there are many: `ratio` is that of their variances. Where an arm varies even more than that,
    its own runs are all that tells how much.
    """
    both = degrees[0] + degrees[1]
    pooled = (squares[0] / ratio + squares[1]) / np.maximum(both, 1)
    shares = ratio * pooled, pooled
    own = _variances(squares, degrees)
    freedom = [
        np.where((alone[0] > share[0]) & (df > 0), np.minimum(df + PRIOR_DF, both), both)
        for alone, share, df in zip(own, shares, degrees, strict=True)
    ]
    return (np.maximum(own[0], shares[0]), np.maximum(own[1], shares[1])), (freedom[0], freedom[1])


def _floored(variances: tuple[Array, Array]) -> tuple[Array, Array]:
    return np.maximum(variances[0], VARIANCE_FLOOR), np.maximum(variances[1], VARIANCE_FLOOR)


def _relabel(blocks: Sequence[Block], design: Design) -> _Sums:
    count, width = design.count, blocks[0].means.shape[1]
    delta = np.zeros((count, width))
    squares = np.zeros((count, width)), np.zeros((count, width))
    inverse = np.zeros(width), np.zeros(width)
    degrees = np.zeros(width, dtype=np.intp), np.zeros(width, dtype=np.intp)
    fixtures = np.zeros(width, dtype=np.intp)
    unit_squares = np.zeros(count), np.zeros(count)
    unit_degrees = np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp)
    largest = []
    for block, mask in zip(blocks, design.masks(), strict=True):
        n, m = block.candidate_runs, block.base_runs
        measured = np.isfinite(block.means).all(axis=0)
        # Centred, so that the difference of large sums keeps its digits; the other arm's sum is then the negative.
        centred = np.where(measured, block.means - block.means.mean(axis=0), 0.0)
        moved = mask @ centred
        inside = mask @ centred**2
        delta += moved / n + moved / m
        squares[0][:] += inside - moved**2 / n
        squares[1][:] += (centred**2).sum(axis=0) - inside - moved**2 / m
        for arm, runs in enumerate((n, m)):
            inverse[arm][:] += measured / runs
            degrees[arm][:] += measured * (runs - 1)
        fixtures += measured
        units = block.values - block.values.mean(axis=0)
        moved = mask @ units
        inside = mask @ (units**2).sum(axis=1)
        unit_squares[0][:] += inside - (moved**2).sum(axis=1) / n
        unit_squares[1][:] += (units**2).sum() - inside - (moved**2).sum(axis=1) / m
        for arm, runs in enumerate((n, m)):
            unit_degrees[arm][:] += (runs - 1) * len(block.units)
        largest.append(np.abs(moved).max(axis=1, initial=0.0) * (1 / n + 1 / m))
    known = np.maximum(fixtures, 1)
    for square in squares:
        np.maximum(square, 0.0, out=square)  # equal runs leave what rounding left, of either sign
    # One spread of a unit for each arm: a single unit has too few runs to tell its own.
    unit_ours, unit_theirs = _floored(_variances(unit_squares, unit_degrees))
    measured_variances, freedom = _moderated(squares, degrees, (unit_ours / unit_theirs)[:, None])
    parts = [part[0] * share for part, share in zip(measured_variances, inverse, strict=True)]
    ours, theirs = _floored(measured_variances)
    unit_ses = [np.sqrt(unit_ours / block.candidate_runs + unit_theirs / block.base_runs) for block in blocks]
    return _Sums(
        delta=delta / known,
        se=np.sqrt(ours * inverse[0] + theirs * inverse[1]) / known,
        bare_se=np.sqrt(sum(parts)) / known,
        bare_df=_welch_each(parts, freedom),
        local=np.max([value / se for value, se in zip(largest, unit_ses, strict=True)], axis=0),
        unit_se=np.array([se[0] for se in unit_ses]),
        variances=(ours[0], theirs[0]),
        degrees=degrees,
        fixtures=fixtures,
    )


def _welch(parts: Sequence[tuple[float, int]]) -> int:
    """Return the degrees of freedom of a sum of independent variances, each with its own."""
    total = sum(variance for variance, _ in parts)
    squares = sum(variance**2 / df for variance, df in parts if df > 0)
    return int(total**2 / squares + TOLERANCE) if squares > 0 else 0


def _welch_each(variances: Sequence[Array], degrees: tuple[Counts, Counts]) -> Counts:
    """Return the same for each column."""
    columns = zip(*variances, *degrees, strict=True)
    found = [_welch([(float(ours), int(df)), (float(theirs), int(other))]) for ours, theirs, df, other in columns]
    return np.array(found, dtype=np.intp)


@dataclass(frozen=True)
class _Reading:
    """One hypothesis in the observed arrangement, with the day and the facts taken into account."""

    name: str
    index: int
    tested: float
    """The change beyond facts and day."""
    se: float
    """Of `tested`."""
    explained: float
    explained_variance: float
    base: float
    df: int
    bare_se: float
    """Of `tested`, without the floor."""
    bare_df: int
    """What `bare_se` rests on."""

    @property
    def normal_p(self) -> float:
        """What Student's t makes of the change; 0 where nothing measures the noise, and it says nothing."""
        if not (self.bare_df and self.bare_se):
            return 0.0
        return 2 * (1 - _cdf(abs(self.tested) / self.bare_se, self.bare_df))

    def normal_crit(self, alpha: float) -> float:
        """Return the change, in units of `se`, from which on Student's t is significant."""
        return quantile(1 - alpha / 2, self.bare_df) * self.bare_se / self.se if self.bare_df else 0.0


def _read(name: str, index: int, blocks: Sequence[Block], sums: _Sums, shift: Shift | None) -> _Reading:
    measuring = [block for block in blocks if np.isfinite(block.means[:, index]).all()]
    drift, doubt = shift.of(name) if shift is not None else (0.0, 0.0)
    raw = [block.means[:, index] + block.explained.means[:, index] for block in measuring]
    base = [values[block.candidate_runs :].mean() for values, block in zip(raw, measuring, strict=True)]
    parts = [
        (float(sums.variances[0][index]) * sum(1 / block.candidate_runs for block in measuring), 0),
        (float(sums.variances[1][index]) * sum(1 / block.base_runs for block in measuring), 1),
    ]
    return _Reading(
        name=name,
        index=index,
        tested=float(sums.delta[0, index]) - drift,
        se=math.sqrt(float(sums.se[0, index]) ** 2 + doubt),
        explained=float(np.mean([block.explained.delta[index] for block in measuring])),
        explained_variance=float(sum(block.explained.variance[index] for block in measuring)) / len(measuring) ** 2,
        base=float(np.mean(base)),
        df=_welch([(variance, int(sums.degrees[arm][index])) for variance, arm in parts]),
        bare_se=math.sqrt(float(sums.bare_se[index]) ** 2 + doubt),
        bare_df=int(sums.bare_df[index]),
    )


def _hypothesis(
    reading: _Reading, blocks: Sequence[Block], sums: _Sums, crit: float, p: float, doubt: float
) -> Hypothesis:
    measuring = [block for block in blocks if np.isfinite(block.means[:, reading.index]).all()]
    delta, df = reading.tested + reading.explained, reading.df
    ours, theirs = (float(variances[reading.index]) for variances in sums.variances)

    def error(extra: int) -> float:
        noise = sum(ours / (block.candidate_runs + extra) + theirs / block.base_runs for block in measuring)
        return math.sqrt(noise / len(measuring) ** 2 + reading.explained_variance + doubt)

    se = error(0)
    # One run on each side measures no noise: the floor ranks arrangements, but promises nothing about the true change.
    half = crit * se if df else math.inf
    half90 = quantile(0.95, df) * se
    return Hypothesis(
        name=reading.name,
        base=reading.base,
        candidate=reading.base + delta,
        delta=delta,
        se=se,
        df=df,
        ci_low=delta - half,
        ci_high=delta + half,
        ci90_low=delta - half90,
        ci90_high=delta + half90,
        p=p,
        mde=(crit + quantile(POWER, df)) * se,
        mde_two_more=(crit + quantile(POWER, df + 2 * len(measuring))) * error(2) if df else math.inf,
        crit=crit,
        tested=reading.tested,
        explained=reading.explained,
        se_after=tuple(error(extra) for extra in range(1, MOST_EXTRA + 1)),
    )


def _unit_deltas(blocks: Sequence[Block], sums: _Sums, drift: float, cost: int) -> tuple[tuple[UnitDelta, ...], int]:
    """Return all units, and how many arrangements have a unit that moved as much as the one that moved most."""
    found, fewest = [], len(sums.local)
    for block, se in zip(blocks, sums.unit_se, strict=True):
        tested = block.values[: block.candidate_runs].mean(axis=0) - block.values[block.candidate_runs :].mean(axis=0)
        raw = block.values + block.explained.values
        candidate, base = raw[: block.candidate_runs].mean(axis=0), raw[block.candidate_runs :].mean(axis=0)
        beaten = np.maximum(at_least(sums.local, np.abs(tested - drift) / se), 1)
        fewest = min(fewest, int(beaten.min(initial=fewest)))
        shares = np.minimum(1.0, cost * beaten / len(sums.local))
        found += [
            UnitDelta(unit, float(b), float(c), float(c - b), float(t), float(p))
            for unit, b, c, t, p in zip(block.units, base, candidate, tested - drift, shares, strict=True)
        ]
    return tuple(found), fewest


def _allowed(combined: Counts, alpha: float) -> int:
    """Return the largest combined count at which the whole test is significant; 0 where none is."""
    # The p of a combined count c is the share of arrangements with a count of at most c.
    ranked = np.sort(combined)
    allowed = ranked[np.searchsorted(ranked, ranked, side="right") <= alpha * len(combined) + TOLERANCE]
    return int(allowed[-1]) if len(allowed) else 0


@dataclass(frozen=True)
class _Group:
    """Averages that share a part of alpha, the largest of them standing for all."""

    cost: int
    """What their p is multiplied by."""
    members: tuple[int, ...]
    largest: Array
    """[arrangements]"""

    @property
    def beaten(self) -> Counts:
        """For each arrangement how many look at least as different, at the group's cost."""
        return self.cost * at_least(self.largest)

    def threshold(self, allowed: int) -> float:
        """Return the smallest largest change that looks rare enough; where none does, the largest there is."""
        reaching = self.largest[self.beaten <= allowed]
        return float(reaching.min(initial=float(self.largest.max())))

    def adjusted(self, reading: _Reading) -> int:
        """Return the same for one average as it was measured, and no less than Student's t says.

        A few wild runs, dealt out between the arms, never look as different as they do together.
        """
        beaten = int(at_least(self.largest, np.array([abs(reading.tested) / reading.se]))[0])
        normal = math.ceil(reading.normal_p * len(self.largest) - TOLERANCE)
        return min(self.cost * max(beaten, normal, 1), len(self.largest))


def _groups(statistic: Array, measured: Sequence[int], lead: int | None) -> list[_Group]:
    """Return the leading average and the others, or all of them together where none leads."""
    if lead not in measured or len(measured) == 1:
        return [_Group(1, tuple(measured), statistic.max(axis=1))]
    rest = [index for index in measured if index != lead]
    parts = ((1, [index for index in measured if index == lead]), (REST_COST, rest))
    return [_Group(cost, tuple(members), statistic[:, members].max(axis=1)) for cost, members in parts]


def permute(
    blocks: Sequence[Block],
    hypotheses: tuple[str, ...],
    *,
    alpha: float,
    seed: int = 0,
    limit: int = LIMIT,
    shift: Shift | None = None,
    lead: str | None = None,
) -> PermutationResult | None:
    """Test all hypotheses and units at once; None where there is nothing to test.

    `lead` names the hypothesis that a reader looks at first, and that gets most of alpha.
    """
    if not blocks:
        return None
    design = Design(tuple((block.candidate_runs, block.base_runs) for block in blocks), limit, seed)
    sums = _relabel(blocks, design)
    measured = [int(index) for index in np.flatnonzero(sums.fixtures)]
    statistic = np.zeros_like(sums.delta)
    statistic[:, measured] = np.abs(sums.delta[:, measured]) / sums.se[:, measured]
    groups = _groups(statistic, measured, hypotheses.index(lead) if lead is not None else None)
    local_cost = LOCAL_COST if len(groups) == 1 else REST_LOCAL_COST
    combined = np.minimum.reduce([*(group.beaten for group in groups), local_cost * at_least(sums.local)])
    count = design.count
    readings = [_read(hypotheses[index], index, blocks, sums, shift) for index in measured]
    found = {}
    allowed = _allowed(combined, alpha)
    for group in groups:
        crit = group.threshold(allowed)
        if crit <= TOLERANCE:
            # All runs are equal: relabelling shows no spread, so the floor's normal theory takes its place.
            crit = min(quantile(0.975, max(1, reading.df)) for reading in readings)
        for reading in readings:
            if reading.index in group.members:
                least = reading.normal_crit(max(allowed, 1) / count / group.cost)
                found[reading.index] = max(crit, least), group.adjusted(reading)
    drift = shift.of(hypotheses[-1])[0] if shift is not None else 0.0
    units, least_local = _unit_deltas(blocks, sums, drift, local_cost)
    least_global = min((beaten for _, beaten in found.values()), default=count)
    observed = min(least_global, local_cost * least_local)
    return PermutationResult(
        p=float(max(int((combined <= observed).sum()), 1) / count),
        p_global=least_global / count,
        p_local=least_local / count,
        hypotheses=tuple(
            _hypothesis(reading, blocks, sums, crit, beaten / count, shift.of(reading.name)[1] if shift else 0.0)
            for reading in readings
            for crit, beaten in (found[reading.index],)
        ),
        units=units,
        crit=found[groups[0].members[0]][0],
        arrangements=count,
        enumerated=design.enumerated,
        attainable_p=design.attainable_p,
        can_reach=design.attainable_p <= alpha,
        alpha=alpha,
        runs={block.fixture: (block.candidate_runs, block.base_runs) for block in blocks},
        left_out=tuple(unit for block in blocks for unit in block.left_out),
    )
