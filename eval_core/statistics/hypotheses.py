"""From two arms to the numbers that are tested: run means per hypothesis, and single units, per fixture."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eval_core.domain.grade import DIMENSIONS
from eval_core.statistics.arms import Arm, Array, FixtureArm

OVERALL = "overall"
AUTHORED = "authored facts"
CENSUS = "census"
SCORE_HYPOTHESES = (*DIMENSIONS, OVERALL)
FACT_HYPOTHESES = (AUTHORED, CENSUS)
SIZE = "retained tokens"
FACT_NAMES = {AUTHORED: "facts that probes ask for", CENSUS: "other facts"}
"""What readers see; the other facts are those that rules found in the sessions."""


def row_name(hypothesis: str) -> str:
    """Return what readers call a hypothesis."""
    return FACT_NAMES.get(hypothesis, hypothesis.replace("_", " "))


_LEAST_SQUARE = 1e-6
"""With less variation of the facts than this there is no slope to find."""

UnitKind = Literal["probe", "fact", "census"]


@dataclass(frozen=True)
class Unit:
    """The smallest thing that can be named as broken."""

    fixture: str
    kind: UnitKind
    """A probe's scores, a probe's facts, or a kind of census fact."""
    name: str

    @property
    def label(self) -> str:
        """How people read it."""
        return f"{self.fixture} / {self.name}"


@dataclass(frozen=True)
class Explained:
    """The part of the numbers that follows the facts kept; zero where nothing is taken out."""

    means: Array
    """[runs, hypotheses]: measured minus tested."""
    values: Array
    """[runs, units]: measured minus tested."""
    delta: Array
    """[hypotheses]: the change of that part, estimated from all compressions and not only the graded ones."""
    variance: Array
    """[hypotheses]: the sampling variance of `delta`."""

    @classmethod
    def nothing(cls, runs: int, hypotheses: int, units: int) -> Explained:
        """Return what leaves the numbers as they are."""
        return cls(np.zeros((runs, hypotheses)), np.zeros((runs, units)), np.zeros(hypotheses), np.zeros(hypotheses))


@dataclass(frozen=True)
class Block:
    """One fixture's runs of both arms, candidate runs first, nothing missing."""

    fixture: str
    candidate_runs: int
    base_runs: int
    means: Array
    """[runs, hypotheses]; a hypothesis that this fixture does not measure is a column of NaN."""
    units: tuple[Unit, ...]
    values: Array
    """[runs, units]"""
    explained: Explained
    """What the facts say about these numbers and is therefore taken out of them before they are tested."""
    left_out: tuple[Unit, ...]
    """Measured on one side only, therefore compared on none."""


def _mean(values: Array, axis: int) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a slice without any value has no mean: NaN is the answer
        return np.asarray(np.nanmean(values, axis=axis), dtype=np.float64)


def fill(values: Array, high: float) -> Array:
    """Fill missing cells with what the cell's column and run would predict.

    Column means and run effects are taken over both arms together, so a filled run is the same run under every
    relabelling and the test stays exact.
    """
    if np.isfinite(values).all():
        return values
    column = _mean(values, 0)
    effect = np.nan_to_num(_mean(values - column, 1))
    guess = np.clip(column + np.expand_dims(effect, 1), 0.0, high)
    return np.where(np.isnan(values), guess, values)


def _shared(base: tuple[str, ...], candidate: tuple[str, ...]) -> tuple[list[str], list[int], list[int]]:
    names = [name for name in base if name in candidate]
    return names, [base.index(name) for name in names], [candidate.index(name) for name in names]


def _both(candidate: Array, base: Array) -> NDArray[np.bool_]:
    """Tell which columns hold at least one value in each arm."""
    return _seen(candidate) & _seen(base)


def _seen(values: Array) -> NDArray[np.bool_]:
    cells = np.isfinite(values)
    whole = cells.all(axis=2) if cells.ndim == 3 else cells
    return np.asarray(whole.any(axis=0), dtype=np.bool_)


def _one_sided(fixture: str, kind: UnitKind, base: dict[str, bool], candidate: dict[str, bool]) -> list[Unit]:
    names = dict.fromkeys([*base, *candidate])
    return [Unit(fixture, kind, name) for name in names if base.get(name, False) != candidate.get(name, False)]


def _present(names: tuple[str, ...], values: Array) -> dict[str, bool]:
    return dict(zip(names, (bool(flag) for flag in _seen(values)), strict=True))


@dataclass(frozen=True)
class _Graded:
    """The scores of one fixture in both arms, candidate runs first, beside the facts of the same probes."""

    fixture: str
    runs: tuple[int, int]
    cells: Array
    """[graded runs, probes, dimensions], nothing missing."""
    kept: Array
    """[graded runs, probes]: the share of the probe's facts kept, minus its mean over all these runs."""
    everything: tuple[Array, Array]
    """Per arm [all compressions]: the mean over the probes of the share kept."""
    units: tuple[Unit, ...]
    left_out: tuple[Unit, ...]


def _graded(name: str, base: FixtureArm, candidate: FixtureArm) -> _Graded | None:
    probes, in_base, in_candidate = _shared(base.probes, candidate.probes)
    ours, theirs = candidate.scores[:, in_candidate], base.scores[:, in_base]
    both = _both(ours, theirs)
    ours, theirs = (side[:, both] for side in (ours, theirs))
    scored = [np.asarray(np.isfinite(side).any(axis=(1, 2)), dtype=np.bool_) for side in (ours, theirs)]
    ours, theirs = (side[rows] for side, rows in zip((ours, theirs), scored, strict=True))
    if not (len(ours) and len(theirs)):
        return None
    facts = [arm.facts[:, at][:, both] for arm, at in ((candidate, in_candidate), (base, in_base))]
    kept = np.concatenate([side[: len(rows)][rows] for side, rows in zip(facts, scored, strict=True)])
    everything = [_mean(side, 1) for side in facts]
    return _Graded(
        fixture=name,
        runs=(len(ours), len(theirs)),
        cells=fill(np.concatenate([ours, theirs]), 5.0),
        kept=np.nan_to_num(kept - _mean(kept, 0)),
        everything=(everything[0][np.isfinite(everything[0])], everything[1][np.isfinite(everything[1])]),
        units=tuple(Unit(name, "probe", probe) for probe, keep in zip(probes, both, strict=True) if keep),
        left_out=tuple(
            _one_sided(name, "probe", _present(base.probes, base.scores), _present(candidate.probes, candidate.scores))
        ),
    )


def _slopes(graded: Sequence[_Graded]) -> Array:
    """Return for each dimension the points that a probe gains with all of its facts, from both arms together.

    The labels of the runs do not enter, so that the residuals are the same under every relabelling. A negative slope
    is luck, and more than the whole scale is no effect of facts.
    """
    square = sum(float((item.kept**2).sum()) for item in graded)
    if square < _LEAST_SQUARE:
        return np.zeros(len(DIMENSIONS))
    product = sum((item.kept[:, :, None] * (item.cells - item.cells.mean(axis=0))).sum(axis=(0, 1)) for item in graded)
    return np.clip(np.asarray(product, dtype=np.float64) / square, 0.0, 5.0)


def _score_block(item: _Graded, slopes: Array) -> Block:
    whole = np.append(slopes, slopes.mean())
    part = item.kept[:, :, None] * slopes
    dimensions = (item.cells - part).mean(axis=1)
    ours, theirs = item.everything
    known = len(ours) > 0 and len(theirs) > 0
    shift = float(ours.mean() - theirs.mean()) if known else 0.0
    spread = sum(float(side.var(ddof=1)) / len(side) for side in (ours, theirs) if len(side) > 1)
    explained_dimensions = part.mean(axis=1)
    return Block(
        fixture=item.fixture,
        candidate_runs=item.runs[0],
        base_runs=item.runs[1],
        means=np.column_stack([dimensions, dimensions.mean(axis=1)]),
        units=item.units,
        values=(item.cells - part).mean(axis=2),
        explained=Explained(
            means=np.column_stack([explained_dimensions, explained_dimensions.mean(axis=1)]),
            values=part.mean(axis=2),
            delta=whole * shift,
            variance=whole**2 * spread,
        ),
        left_out=item.left_out,
    )


def _census_mean(values: Array, weights: Array) -> Array:
    weights = np.where(np.isnan(values), 0.0, np.nan_to_num(weights))
    total = weights.sum(axis=1)
    kept = (np.nan_to_num(values) * weights).sum(axis=1)
    return np.where(total > 0, kept / np.maximum(total, 1e-300), np.nan)


def _fact_block(name: str, base: FixtureArm, candidate: FixtureArm) -> Block | None:
    rows_ours, rows_theirs = candidate.happened, base.happened
    runs = int(rows_ours.sum()), int(rows_theirs.sum())
    if not all(runs):
        return None
    columns: list[Array] = []
    units: list[Unit] = []
    authored = np.full(sum(runs), np.nan)
    kinds: tuple[tuple[UnitKind, tuple[str, ...], tuple[str, ...], Array, Array], ...] = (
        ("fact", base.probes, candidate.probes, base.facts, candidate.facts),
        ("census", base.census_kinds, candidate.census_kinds, base.census, candidate.census),
    )
    left_out: list[Unit] = []
    for kind, base_names, names, theirs, ours in kinds:
        shared, in_base, in_candidate = _shared(base_names, names)
        left_out += _one_sided(name, kind, _present(base_names, theirs), _present(names, ours))
        ours, theirs = ours[rows_ours][:, in_candidate], theirs[rows_theirs][:, in_base]
        both = _both(ours, theirs)
        if not both.any():
            continue
        filled = fill(np.concatenate([ours[:, both], theirs[:, both]]), 1.0)
        columns.append(filled)
        units += [Unit(name, kind, item) for item, keep in zip(shared, both, strict=True) if keep]
        if kind == "fact":
            authored = filled.mean(axis=1)
    if not units:
        return None
    ours, theirs = (
        _census_mean(arm.census[rows], arm.census_weights[rows])
        for arm, rows in ((candidate, rows_ours), (base, rows_theirs))
    )
    census = np.concatenate([ours, theirs])
    if np.isfinite(ours).any() and np.isfinite(theirs).any():
        census = fill(census[:, None], 1.0)[:, 0]
    else:
        census = np.full(sum(runs), np.nan)
    means = np.column_stack([authored, census])
    values = np.concatenate(columns, axis=1)
    explained = Explained.nothing(len(means), means.shape[1], values.shape[1])
    return Block(name, *runs, means, tuple(units), values, explained, tuple(left_out))


def score_blocks(base: Arm, candidate: Arm) -> tuple[Block, ...]:
    """Return the scores, beyond what the facts explain, of the fixtures that were graded on both sides."""
    pairs = ((name, arm, candidate.fixtures.get(name)) for name, arm in base.fixtures.items())
    found = (_graded(name, arm, other) for name, arm, other in pairs if other is not None)
    graded = [item for item in found if item is not None]
    slopes = _slopes(graded)
    return tuple(_score_block(item, slopes) for item in graded)


def fact_blocks(base: Arm, candidate: Arm) -> tuple[Block, ...]:
    """Return the retention of the fixtures that put facts at risk on both sides."""
    pairs = ((name, arm, candidate.fixtures.get(name)) for name, arm in base.fixtures.items())
    blocks = (_fact_block(name, arm, other) for name, arm, other in pairs if other is not None)
    return tuple(block for block in blocks if block is not None)


def size_blocks(base: Arm, candidate: Arm) -> tuple[Block, ...]:
    """Return the logarithms of the retained tokens of the fixtures that both sides compressed."""
    found = []
    for name, arm in base.fixtures.items():
        other = candidate.fixtures.get(name)
        if other is None or arm.tokens is None or other.tokens is None:
            continue
        ours, theirs = (side[np.isfinite(side)] for side in (other.tokens, arm.tokens))
        if len(ours) and len(theirs):
            means = np.log(np.maximum(np.concatenate([ours, theirs]), 1.0))[:, None]
            nothing = Explained.nothing(len(means), 1, 0)
            found.append(Block(name, len(ours), len(theirs), means, (), np.zeros((len(means), 0)), nothing, ()))
    return tuple(found)
