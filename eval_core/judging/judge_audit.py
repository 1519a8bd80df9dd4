"""Judge audit: how a judge's scale compares with that of people, on answers labelled by hand.

A judge that squeezes all grades into half a point ranks well and shrinks every change tenfold; one that gives all six
dimensions the same grade, or is blind to one, or pays by length, ranks well too. The shipped answers were labelled by
hand, so that level, slope, each dimension, the profile over dimensions and the price of length can be told apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from eval_core.base.files import digest, parse, read_json
from eval_core.domain.call import Draw
from eval_core.domain.grade import DIMENSIONS, Grade, Judge
from eval_core.domain.judge_record import Audit
from eval_core.domain.probe import Probe

REPEATED = 12
_REPEAT = 2  # as journals of older versions number it
_DATA = Path(__file__).parent / "data" / "labelled.json"

Array = NDArray[np.float64]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LabelledAnswer(_Strict):
    """An answer and its six labels, in the order of DIMENSIONS."""

    name: str
    text: str
    labels: list[float]


class LabelledGroup(_Strict):
    """A probe of a shipped fixture with answers from right to worthless."""

    fixture: str
    probe: Probe
    answers: list[LabelledAnswer]


class LabelledSet(_Strict):
    """The shipped labels and the rule by which they were given."""

    version: int
    rule: str
    groups: list[LabelledGroup]

    @property
    def digest(self) -> str:
        """What identifies the data."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude_none=True))


@cache
def labelled_set() -> LabelledSet:
    """Read the shipped labels."""
    return parse(LabelledSet, read_json(_DATA), _DATA.name)


def _slope(label: Array, grade: Array) -> float:
    centred = label - label.mean()
    square = float((centred**2).sum())
    return float((centred * (grade - grade.mean())).sum() / square) if square > 0 else 0.0


def _kappa(label: Array, grade: Array) -> float:
    """Return the agreement of whole points beyond chance, with squared weights."""
    one, other = np.rint(label).astype(int).ravel(), np.rint(np.clip(grade, 0, 5)).astype(int).ravel()
    seen = float(((one - other) ** 2).mean())
    chance = float(((one[:, None] - other[None, :]) ** 2).mean())
    return 1 - seen / chance if chance > 0 else 0.0


def _padding(names: Sequence[tuple[str, str]], label: Array, grade: Array) -> float | None:
    """Return what long answers earn over short ones that say the same, beyond what their labels differ."""
    place = {name: at for at, name in enumerate(names)}
    pairs = [(place[group, "right_long"], place[group, "right"]) for group, name in names if name == "right_long"]
    # Empty talk must not earn by its length either: it is set against short answers that know as little.
    empty = [at for at, (_, name) in enumerate(names) if name == "empty_long"]
    short = [at for at, (_, name) in enumerate(names) if name in ("invented", "pleading")]
    gains = [float((grade[long] - grade[other] - label[long] + label[other]).mean()) for long, other in pairs]
    if short:
        known = float((grade[short] - label[short]).mean())
        gains += [float((grade[at] - label[at]).mean()) - known for at in empty]
    return float(np.mean(gains)) if gains else None


async def audit(judge: Judge, data: LabelledSet | None = None, *, run: int = 0) -> Audit:
    """Have the judge grade every labelled answer, some of them twice, and compare."""
    chosen = data or labelled_set()
    cells = [(group, answer) for group in chosen.groups for answer in group.answers]
    again = cells[:: max(1, len(cells) // REPEATED)][:REPEATED]
    results = await asyncio.gather(
        *(judge.grade(group.probe, answer.text, fixture="audit", draw=Draw(run)) for group, answer in cells),
        *(
            judge.grade(group.probe, answer.text, fixture="audit", draw=Draw(run, repeat=_REPEAT))
            for group, answer in again
        ),
    )
    first, second = results[: len(cells)], results[len(cells) :]
    usable = [at for at, result in enumerate(first) if isinstance(result, Grade)]
    if len(usable) < 2:
        return Audit(len(cells), len(usable))
    names = [(f"{cells[at][0].fixture}/{cells[at][0].probe.id}", cells[at][1].name) for at in usable]
    label = np.array([cells[at][1].labels for at in usable])
    grade = np.array([_six(first[at]) for at in usable])
    own_label, own_grade = (side - side.mean(axis=1, keepdims=True) for side in (label, grade))
    whole = {id(answer): result for (_, answer), result in zip(cells, first, strict=True)}
    repeats = [
        (whole_first.overall - result.overall) ** 2 / 2
        for (_, answer), result in zip(again, second, strict=True)
        if isinstance(result, Grade) and isinstance(whole_first := whole[id(answer)], Grade)
    ]
    return Audit(
        answers=len(cells),
        usable=len(usable),
        level=float((grade - label).mean()),
        slope=_slope(label.mean(axis=1), grade.mean(axis=1)),
        response={name: _slope(label[:, at], grade[:, at]) for at, name in enumerate(DIMENSIONS)},
        profile=_slope(own_label.ravel(), own_grade.ravel()),
        length=_padding(names, label, grade),
        repeat_sd=float(np.sqrt(np.mean(repeats))) if repeats else None,
        kappa=_kappa(label, grade),
    )


def _six(result: object) -> list[float]:
    assert isinstance(result, Grade)
    return [result.scores[name] for name in DIMENSIONS]
