"""Judge calibration: a judge that misranks obvious cases must not decide; results are cached by judge and data."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from itertools import combinations
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from eval_core.base.errors import UserError
from eval_core.base.files import digest, parse, pretty, read_json, write_atomic
from eval_core.domain.call import Draw
from eval_core.domain.grade import Grade, Judge, Unscored
from eval_core.domain.judge_record import LEAST_AGREEMENT, Calibration, JudgeRecord, Misranking
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Probe
from eval_core.judging.judge_audit import labelled_set

# Calibration: a judge that cannot rank answers whose order is plain must not decide anything.

_GROSS = 0.5  # points of the overall score by which a worse answer must win to be a gross error
_DATA = Path(__file__).parent / "data" / "calibration.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GradedAnswer(_Strict):
    """An answer and its place in the order; equal ranks are not compared."""

    name: str
    rank: int
    text: str


class Group(_Strict):
    """One small probe with answers from right to worthless."""

    probe: Probe
    answers: list[GradedAnswer]


class CalibrationSet(_Strict):
    """The shipped data."""

    version: int
    groups: list[Group]

    @property
    def digest(self) -> str:
        """What identifies the data in fingerprints."""
        return digest(self.model_dump(mode="json", by_alias=True, exclude_none=True))


@cache
def calibration_set() -> CalibrationSet:
    """Read the shipped data."""
    return parse(CalibrationSet, read_json(_DATA), _DATA.name)


async def calibrate(judge: Judge, data: CalibrationSet | None = None, *, run: int = 0) -> Calibration:
    """Have the judge grade every answer, and compare its order with the known one."""
    groups = (data or calibration_set()).groups
    results = await asyncio.gather(
        *(
            judge.grade(group.probe, answer.text, fixture="calibration", draw=Draw(run))
            for group in groups
            for answer in group.answers
        )
    )
    remaining = iter(results)
    right, pairs, scored = 0, 0, 0
    gross: list[Misranking] = []
    unscored: list[str] = []
    for group in groups:
        graded: list[tuple[GradedAnswer, Grade]] = []
        for answer in group.answers:
            result = next(remaining)
            if isinstance(result, Unscored):
                unscored.append(f"{group.probe.id}/{answer.name}: {result.reason}")
            else:
                graded.append((answer, result))
        scored += len(graded)
        for one, other in combinations(graded, 2):
            if one[0].rank == other[0].rank:
                continue
            (better, high), (worse, low) = sorted((one, other), key=lambda item: -item[0].rank)
            pairs += 1
            right += high.overall > low.overall
            if low.overall - high.overall >= _GROSS:
                gross.append(Misranking(group.probe.id, better.name, high.overall, worse.name, low.overall))
    return Calibration(right / pairs if pairs else None, pairs, tuple(gross), tuple(unscored), scored)


# Whether a judge may decide: its calibration, paid for once and kept by judge, data, model and date.

CALIBRATION = "calibration"
"""The folder below the results."""
_LOOK_AGAIN = 0.2  # seconds between looks at another process's lock


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def calibration_key(judge: Mapping[str, str]) -> str:
    """Return what identifies a record: the judge by its rubric and sampling, and the data."""
    return digest({"judge": dict(judge), "data": calibration_set().digest, "labels": labelled_set().digest})


def find_record(
    key: str, results: Path, measurements: Iterable[Measurement], served: str | None = None
) -> JudgeRecord | None:
    """Return what was paid for before, by a stored baseline or an earlier run, if it still holds."""
    kept = [measurement.extra.calibration for measurement in measurements]
    path = results / CALIBRATION / f"{key}.json"
    with contextlib.suppress(UserError, ValidationError):  # torn, or of another version: measured again
        kept += [JudgeRecord.model_validate(read_json(path))] if path.exists() else []
    return next((record for record in kept if record is not None and record.fits(key, served)), None)


def keep_record(results: Path, record: JudgeRecord) -> None:
    """Keep a record beside the results, unless grades are missing: an outage says nothing about the judge."""
    audited = record.audit is None or record.audit.usable == record.audit.answers
    if audited and not record.calibration.unscored:
        write_atomic(results / CALIBRATION / f"{record.key}.json", pretty(record.model_dump(mode="json")))


async def examine(judge: Judge, served: Callable[[], str | None]) -> JudgeRecord:
    calibration = await calibrate(judge)
    moment = _now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return JudgeRecord(key=calibration_key(judge.identity), served=served(), date=moment, calibration=calibration)


@asynccontextmanager
async def _alone(path: Path, stopped: Callable[[], str | None]) -> AsyncIterator[None]:
    """Let one process at a time calibrate a judge: two labels that start together pay once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            if stopped() is not None:
                break
            await asyncio.sleep(_LOOK_AGAIN)
    try:
        yield
    finally:
        lock.release()


async def trusted(
    judge: Judge,
    results: Path,
    measurements: Iterable[Measurement],
    *,
    anyway: bool = False,
    served: Callable[[], str | None] = lambda: None,
    stopped: Callable[[], str | None] = lambda: None,
) -> JudgeRecord | None:
    """Examine a judge, unless that was done before, and refuse one that is not fit to decide.

    Where the run had to stop meanwhile, the grades that are missing say nothing about the judge.
    """
    key, measurements = calibration_key(judge.identity), list(measurements)
    record = find_record(key, results, measurements, served())
    if anyway or (record is None and stopped() is not None):
        return record
    if record is None:
        async with _alone(results / CALIBRATION / f"{key}.lock", stopped):
            record = find_record(key, results, measurements, served()) or await examine(judge, served)
            keep_record(results, record)
    else:
        keep_record(results, record)
    if record.reasons and stopped() is None:
        raise UserError(
            f"the judge {judge.identity['model']} is not fit to decide: {'; '.join(record.reasons)}. At least "
            f"{LEAST_AGREEMENT:.0%} of the plain cases and no gross error are needed: choose another "
            "--judge-model, or continue anyway with models.trust_judge (`compression-eval judge calibrate` shows the "
            "cases)"
        )
    return record
