"""Which calls a run will make: counted from real prompts, with stand-ins for what models have yet to write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from eval_core.compare.drift import Cell, sample
from eval_core.compare.rejudged import graded_cells
from eval_core.judge.answering import answer_messages
from eval_core.judge.calibration import calibration_set
from eval_core.judge.extractive import NOT_IN_CONTEXT
from eval_core.judge.grade import DIMENSIONS
from eval_core.judge.grading import grade_messages
from eval_core.measurement import Measurement
from eval_core.messages import Message
from eval_core.model.estimate import PlannedCalls
from eval_core.model.outcome import Role
from eval_core.model.settings import Models
from eval_core.run.suite import Case
from eval_core.tokens import count_messages, count_text

__all__ = ["Scope", "StandIn", "forecast"]

CACHED_FROM = 1_024
"""Providers keep the beginning of a prompt from this length on."""
_REPLY = {"reason": "Both facts are stated; one value is vague, another missing.", **dict.fromkeys(DIMENSIONS, 3.5)}


@dataclass(frozen=True)
class StandIn:
    """One fixture-run as it would probably be."""

    case: Case
    prompts: tuple[tuple[Message, ...], ...]
    """What the compressor asks its model, step by step."""
    summaries: tuple[int, ...]
    """Tokens of the replies."""
    state: list[Message]
    answers: dict[str, str]
    """Probe to a likely answer."""
    tokens_after: float | None = None
    """What a stored baseline says of the length of the state."""


@dataclass(frozen=True)
class Scope:
    """How much of everything there will be."""

    runs: int
    compress_runs: int
    arms: int = 1
    """Two when the base is measured in the same run."""
    controls: bool = True
    calibration: bool = True
    drift: Measurement | None = None
    drift_sample: int = 0
    output: dict[str, float] = field(default_factory=dict)
    """Role to the tokens of a usual reply, where an earlier run of the same models tells."""


@dataclass
class _Tally:
    """Adds up calls of one kind."""

    calls: int = 0
    input: float = 0
    output: float = 0
    shared: float = 0

    def add(self, input_tokens: float, output_tokens: float, shared: float = 0, times: int = 1) -> None:
        self.calls += times
        self.input += times * input_tokens
        self.output += times * output_tokens
        self.shared += times * (shared if shared >= CACHED_FROM else 0)


def _compressions(stand_ins: Sequence[StandIn], scope: Scope) -> _Tally:
    tally = _Tally()
    for stand_in in stand_ins:
        for step, (prompt, reply) in enumerate(zip(stand_in.prompts, stand_in.summaries, strict=True)):
            whole = count_messages(prompt)
            # Every run begins with the same prompt; later ones hold summaries of their own.
            same = whole if step == 0 else count_messages(prompt[:-1])
            output = scope.output.get("compressor", reply)
            tally.add(whole, output)
            tally.add(whole, output, same, times=scope.compress_runs * scope.arms - 1)
    return tally


def _questions(
    state: list[Message], case: Case, answers: dict[str, str], longer: float, output: float | None, times: int
) -> _Tally:
    tally = _Tally()
    for at, probe in enumerate(case.bank.probes):
        prompt = answer_messages(state, probe)
        shared = count_messages(prompt[:-1]) + longer if at else 0
        said = count_text(answers[probe.id]) if output is None else output
        tally.add(count_messages(prompt) + longer, said, shared, times)
    return tally


def _grades(case: Case, answers: dict[str, str], output: float, times: int) -> _Tally:
    tally = _Tally()
    for probe in case.bank.probes:
        rubric, question = grade_messages(probe, answers[probe.id])
        tally.add(count_messages([rubric, question]), output, count_messages([rubric]), times)
    return tally


def _sum(tallies: Iterator[_Tally]) -> _Tally:
    total = _Tally()
    for item in tallies:
        total.calls += item.calls
        total.input += item.input
        total.output += item.output
        total.shared += item.shared
    return total


def _calibration(output: float) -> _Tally:
    tally = _Tally()
    for group in calibration_set().groups:
        for answer in group.answers:
            rubric, question = grade_messages(group.probe, answer.text)
            tally.add(count_messages([rubric, question]), output, count_messages([rubric]))
    return tally


def _drift(scope: Scope, cases: Sequence[Case], output: float) -> _Tally:
    tally = _Tally()
    if scope.drift is None or not scope.drift_sample:
        return tally
    probes = {(case.fixture.name, probe.id): probe for case in cases for probe in case.bank.probes}
    stored: dict[Cell, str] = {
        cell: record.answer.text
        for cell, record in graded_cells(scope.drift)
        if record.answer and (cell.fixture, cell.probe) in probes
    }
    for cell in sample(list(stored), scope.drift_sample):
        rubric, question = grade_messages(probes[cell.fixture, cell.probe], stored[cell])
        tally.add(count_messages([rubric, question]), output, count_messages([rubric]))
    return tally


def forecast(stand_ins: Sequence[StandIn], models: Models, scope: Scope) -> list[tuple[str, PlannedCalls]]:
    """Return the calls of the plan by purpose, in the order in which roles work."""
    answer, grade = scope.output.get("answer"), scope.output.get("judge", float(count_text(json.dumps(_REPLY))))
    graded = scope.runs * scope.arms
    asked = _sum(
        _questions(
            item.state,
            item.case,
            item.answers,
            0.0 if item.tokens_after is None else item.tokens_after - count_messages(item.state),
            answer,
            graded,
        )
        for item in stand_ins
    )
    rows: list[tuple[str, Role, _Tally]] = [
        ("compressions", "compressor", _compressions(stand_ins, scope)),
        ("answers", "answer", asked),
    ]
    unknown = [dict.fromkeys(item.answers, NOT_IN_CONTEXT) for item in stand_ins]
    silence = float(count_text(NOT_IN_CONTEXT))
    if scope.controls:
        full = (_questions(item.case.fixture.messages, item.case, item.answers, 0, answer, 1) for item in stand_ins)
        empty = (_questions([], item.case, said, 0, silence, 1) for item, said in zip(stand_ins, unknown, strict=True))
        rows.append(("controls", "answer", _sum(chain(full, empty))))
    rows.append(("grades", "judge", _sum(_grades(item.case, item.answers, grade, graded) for item in stand_ins)))
    if scope.controls:
        full = (_grades(item.case, item.answers, grade, 1) for item in stand_ins)
        empty = (_grades(item.case, said, grade, 1) for item, said in zip(stand_ins, unknown, strict=True))
        rows.append(("controls", "judge", _sum(chain(full, empty))))
    if scope.calibration:
        rows.append(("calibration", "judge", _calibration(grade)))
    rows.append(("drift sample", "judge", _drift(scope, [item.case for item in stand_ins], grade)))
    model = {"compressor": models.compressor, "answer": models.answer, "judge": models.judge}
    return [
        (
            purpose,
            PlannedCalls(role, model[role], tally.calls, round(tally.input), round(tally.output), round(tally.shared)),
        )
        for purpose, role, tally in rows
        if tally.calls
    ]
