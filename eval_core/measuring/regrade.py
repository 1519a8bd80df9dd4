"""Grading stored answers again: a sample to see whether the judge drifted, or all of them after it did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from eval_core.base.errors import UserError
from eval_core.base.numbers import counted, p_value, signed
from eval_core.comparing.drift import (
    SAMPLE,
    GradedCell,
    Regraded,
    alarmed,
    answer_key,
    check,
    graded_cells,
    sample,
)
from eval_core.domain.call import Draw
from eval_core.domain.case import Case
from eval_core.domain.extra import RejudgedCell, RejudgedSample
from eval_core.domain.grade import DIMENSIONS, Grade, Judge, Unscored
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Probe
from eval_core.domain.record import ProbeRecord, RunRecord
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.session import now, package_version

__all__ = ["check_banks", "describe_shift", "regrade", "rejudge_sample", "stored_answers"]

_AGAIN, _CONFIRMING = 1, 2
"""Repeats of a grade: a fresh one is asked for and not the journal's of an equal answer, then one that confirms."""


def _probes(cases: Sequence[Case]) -> dict[tuple[str, str], Probe]:
    return {(case.fixture.name, probe.id): probe for case in cases for probe in case.bank.probes}


async def _grade(
    judge: Judge, probe: Probe, cell: GradedCell, record: ProbeRecord, repeat: int = _AGAIN
) -> Grade | Unscored:
    if isinstance(judge, FactJudge):
        # As in the run itself: by what the compressed state held, not by what an answer quotes of it.
        return judge.grade_kept(probe, {fact.label for fact in record.facts if fact.kept})
    assert record.answer is not None
    return await judge.grade(probe, record.answer.text, fixture=cell.fixture, draw=Draw(cell.run, repeat=repeat))


async def rejudge_sample(
    base: Measurement, cases: Sequence[Case], judge: Judge, *, size: int = SAMPLE, seed: int = 0
) -> RejudgedSample:
    """Grade a sample of a baseline's stored answers again; where it raises an alarm, a second one as well."""
    probes = _probes(cases)
    stored = {cell: record for cell, record in graded_cells(base) if (cell.fixture, cell.probe) in probes}
    chosen = sample(list(stored), size, seed)
    first = await _regraded(stored, chosen, probes, judge, _AGAIN)
    if not alarmed(base, first):
        return first
    fresh = [cell for cell in stored if cell not in chosen]
    # A small baseline has no other answers: the same ones are then graded a third time.
    others = sample(fresh if len(fresh) >= len(chosen) else list(stored), size, seed + 1)
    second = await _regraded(stored, others, probes, judge, _CONFIRMING)
    costs = (first.cost_usd, second.cost_usd)
    return RejudgedSample(
        cells=first.cells,
        confirming=second.cells,
        unscored=first.unscored + second.unscored,
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
    )


async def _regraded(
    stored: dict[GradedCell, ProbeRecord],
    chosen: Sequence[GradedCell],
    probes: dict[tuple[str, str], Probe],
    judge: Judge,
    repeat: int,
) -> RejudgedSample:
    answers = [answer for cell in chosen if (answer := stored[cell].answer) is not None]
    results = await asyncio.gather(
        *(_grade(judge, probes[cell.fixture, cell.probe], cell, stored[cell], repeat) for cell in chosen)
    )
    cells, cost = [], 0.0
    known = True
    for cell, answer, result in zip(chosen, answers, results, strict=True):
        if isinstance(result, Grade):
            scores = [result.scores[name] for name in DIMENSIONS]
            key = answer_key(answer.text)
            cells.append(RejudgedCell(fixture=cell.fixture, run=cell.run, probe=cell.probe, answer=key, scores=scores))
            known = known and result.cost_usd is not None
            cost += result.cost_usd or 0.0
    return RejudgedSample(cells=cells, unscored=len(chosen) - len(cells), cost_usd=cost if known else None)


def stored_answers(measurement: Measurement, cases: Sequence[Case]) -> list[tuple[Probe, str]]:
    """Return every stored answer with its probe."""
    probes = _probes(cases)
    return [
        (probes[cell.fixture, cell.probe], record.answer.text)
        for cell, record in graded_cells(measurement)
        if record.answer is not None and (cell.fixture, cell.probe) in probes
    ]


def check_banks(measurement: Measurement, cases: Sequence[Case], where: str) -> None:
    """Refuse to grade answers to questions that are no longer asked."""
    banks = {case.fixture.name: case.bank.digest for case in cases}
    for name, stored in measurement.fingerprint.probes.items():
        if banks.get(name) != stored:
            raise UserError(
                f"{where}: probes/{name}.probes.json is not the bank these answers were given to; "
                "restore it, or measure the baseline again with `compression-eval baseline update`"
            )


async def regrade(
    measurement: Measurement,
    cases: Sequence[Case],
    judge: Judge,
    *,
    on_record: Callable[[RunRecord], None] = lambda record: None,
    stopped: Callable[[], str | None] = lambda: None,
) -> Measurement:
    """Return the same answers with today's grades, under the fingerprint of today's judge."""
    probes = _probes(cases)

    async def record(cell: GradedCell, old: ProbeRecord) -> ProbeRecord:
        if old.answer is None or (cell.fixture, cell.probe) not in probes:
            return old  # nothing was answered, or the answer to a private probe is not stored
        result = await _grade(judge, probes[cell.fixture, cell.probe], cell, old)
        return old.model_copy(update={"result": result})

    async def run(old: RunRecord) -> RunRecord:
        cells = [GradedCell(old.fixture, old.run, probe) for probe in old.probes]
        new = await asyncio.gather(*(record(cell, old.probes[cell.probe]) for cell in cells))
        fresh = old.model_copy(update={"probes": {cell.probe: item for cell, item in zip(cells, new, strict=True)}})
        on_record(fresh)
        return fresh

    names = list(measurement.fixtures)
    graded = await asyncio.gather(
        *(asyncio.gather(*(run(old) for old in measurement.fixtures[name])) for name in names)
    )
    identity = dict(judge.identity)
    rubric = identity.pop("rubric", "none")
    moment = now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return measurement.model_copy(
        update={
            "fixtures": {name: list(runs) for name, runs in zip(names, graded, strict=True)},
            "fingerprint": measurement.fingerprint.model_copy(update={"judge_model": identity, "rubric": rubric}),
            "models": {**measurement.models, "judge": judge.identity["model"]},
            "provenance": measurement.provenance.model_copy(update={"version": package_version()}),
            "extra": measurement.extra.model_copy(update={"regraded": moment}),
            "stopped": stopped(),
        }
    )


def describe_shift(old: Measurement, new: Measurement) -> str:
    """Say how far the grades of the same answers moved."""
    before = {cell: record.result for cell, record in graded_cells(old)}
    pairs = [
        Regraded(cell, _scores(before[cell]), _scores(record.result))
        for cell, record in graded_cells(new)
        if cell in before
    ]
    found = check(pairs)
    if found is None:
        return "No stored answer could be graded again."
    name, shift = found.largest
    what = "the judge drifted" if found.fired else "no drift that matters"
    return f"{counted(len(pairs), 'answer')} graded again: {name} {signed(shift)} (p {p_value(found.p)}); {what}."


def _scores(result: Grade | Unscored | None) -> tuple[float, ...]:
    assert isinstance(result, Grade)
    return tuple(result.scores[name] for name in DIMENSIONS)
