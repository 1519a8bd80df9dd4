"""May several questions share a call? Each probe is answered and graded both ways, and the scores must not change.

Done once for each pair of models, and kept beside the calibration of the judge. The states are those of the reference
compressor working by rules, which cost nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from pydantic import ValidationError

from eval_core.base.errors import UserError
from eval_core.base.files import digest, pretty, read_json, write_atomic
from eval_core.domain.call import Draw
from eval_core.domain.case import Case
from eval_core.domain.grade import Answer, Answerer, Grade, GroupAnswerer, Judge, Unscored
from eval_core.domain.judge_record import GroupingRecord
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Probe
from eval_core.judging.answering import grouped
from eval_core.judging.calibration import CALIBRATION
from eval_core.sandbox.targets import BuiltinSubject

__all__ = ["check_grouping", "find_grouping", "grouping_key"]

_DRAW = Draw(control=True)


def grouping_key(answerer: Answerer, judge: Judge) -> str:
    """Return what identifies a record: who answers, how many at once, and who grades."""
    return digest({"answerer": answerer.identity, "judge": judge.identity})


def find_grouping(key: str, results: Path, measurements: Iterable[Measurement]) -> GroupingRecord | None:
    """Return what an earlier run, or the one behind a baseline, found out."""
    kept = [measurement.extra.grouping for measurement in measurements]
    path = _path(results, key)
    with contextlib.suppress(UserError, ValidationError):  # torn, or of another version: measured again
        kept += [GroupingRecord.model_validate(read_json(path))] if path.exists() else []
    return next((record for record in kept if record is not None and record.fits(key)), None)


def _path(results: Path, key: str) -> Path:
    return results / CALIBRATION / f"grouping-{key}.json"


async def check_grouping(
    answerer: Answerer,
    judge: Judge,
    cases: Sequence[Case],
    results: Path,
    measurements: Iterable[Measurement],
    *,
    stopped: Callable[[], str | None],
) -> GroupingRecord | None:
    """Refuse a model whose scores change when several questions share a call; None where none do.

    Where the run had to stop meanwhile, what is missing says nothing about the model.
    """
    if not isinstance(answerer, GroupAnswerer) or answerer.questions_per_call == 1:
        return None
    key = grouping_key(answerer, judge)
    record = find_grouping(key, results, measurements)
    if record is None:
        record = await _measure(key, answerer, judge, cases)
        if stopped() is not None:
            return None
    write_atomic(_path(results, key), pretty(record.model_dump(mode="json")))
    if record.problem is not None:
        raise UserError(
            f"models.questions_per_call: {answerer.questions_per_call} is not fit for {answerer.identity['model']}: "
            f"{record.problem}. Set it to 1, or to a smaller number"
        )
    return record


async def _measure(key: str, answerer: GroupAnswerer, judge: Judge, cases: Sequence[Case]) -> GroupingRecord:
    found = await asyncio.gather(*(_differences(answerer, judge, case) for case in cases))
    differences = [value for values in found for value in values]
    count = len(differences)
    return GroupingRecord(
        key=key,
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        questions_per_call=answerer.questions_per_call,
        probes=count,
        change=statistics.fmean(differences) if differences else 0.0,
        error=statistics.stdev(differences) / count**0.5 if count > 1 else 0.0,
    )


async def _differences(answerer: GroupAnswerer, judge: Judge, case: Case) -> list[float]:
    """Return, for each probe that was graded both ways, its score in a shared call minus its score alone."""
    name = case.fixture.name
    state = (await BuiltinSubject().compress(case.fixture, run=0, seed=0)).state

    async def score(probe: Probe, answer: Answer | Unscored) -> float | None:
        if isinstance(answer, Unscored):
            return None
        grade = await judge.grade(probe, answer.text, fixture=name, draw=_DRAW)
        return grade.overall if isinstance(grade, Grade) else None

    async def alone(probe: Probe) -> float | None:
        return await score(probe, await answerer.answer(state, probe, fixture=name, draw=_DRAW))

    async def together(probes: Sequence[Probe]) -> list[float | None]:
        answers = await answerer.answer_together(state, probes, fixture=name, draw=_DRAW)
        return list(await asyncio.gather(*map(score, probes, answers)))

    groups = [group for group in grouped(case.bank.probes, answerer.questions_per_call) if len(group) > 1]
    asked = [probe for group in groups for probe in group]
    single, shared = await asyncio.gather(asyncio.gather(*map(alone, asked)), asyncio.gather(*map(together, groups)))
    pairs = zip((value for values in shared for value in values), single, strict=True)
    return [one - other for one, other in pairs if one is not None and other is not None]
