"""From two arms to the numbers that are tested: run means per hypothesis, and single units, per fixture."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eval_core.comparing.arms import Arm, Array, FixtureArm
from eval_core.domain.grade import DIMENSIONS

__all__ = ["AUTHORED", "CENSUS", "FACT_HYPOTHESES", "SCORE_HYPOTHESES", "Block", "Unit", "fact_blocks", "score_blocks"]

OVERALL = "overall"
AUTHORED = "authored facts"
CENSUS = "census"
SCORE_HYPOTHESES = (*DIMENSIONS, OVERALL)
FACT_HYPOTHESES = (AUTHORED, CENSUS)

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


def _score_block(name: str, base: FixtureArm, candidate: FixtureArm) -> Block | None:
    probes, in_base, in_candidate = _shared(base.probes, candidate.probes)
    ours, theirs = candidate.scores[:, in_candidate], base.scores[:, in_base]
    both = _both(ours, theirs)
    ours, theirs = (side[:, both] for side in (ours, theirs))
    ours, theirs = (side[np.isfinite(side).any(axis=(1, 2))] for side in (ours, theirs))
    if not (len(ours) and len(theirs)):
        return None
    cells = fill(np.concatenate([ours, theirs]), 5.0)
    dimensions = cells.mean(axis=1)
    return Block(
        name,
        len(ours),
        len(theirs),
        np.column_stack([dimensions, dimensions.mean(axis=1)]),
        tuple(Unit(name, "probe", probe) for probe, keep in zip(probes, both, strict=True) if keep),
        cells.mean(axis=2),
        tuple(
            _one_sided(name, "probe", _present(base.probes, base.scores), _present(candidate.probes, candidate.scores))
        ),
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
    return Block(name, *runs, means, tuple(units), np.concatenate(columns, axis=1), tuple(left_out))


def score_blocks(base: Arm, candidate: Arm) -> tuple[Block, ...]:
    """Return the scores of the fixtures that were graded on both sides."""
    pairs = ((name, arm, candidate.fixtures.get(name)) for name, arm in base.fixtures.items())
    blocks = (_score_block(name, arm, other) for name, arm, other in pairs if other is not None)
    return tuple(block for block in blocks if block is not None)


def fact_blocks(base: Arm, candidate: Arm) -> tuple[Block, ...]:
    """Return the retention of the fixtures that put facts at risk on both sides."""
    pairs = ((name, arm, candidate.fixtures.get(name)) for name, arm in base.fixtures.items())
    blocks = (_fact_block(name, arm, other) for name, arm, other in pairs if other is not None)
    return tuple(block for block in blocks if block is not None)
