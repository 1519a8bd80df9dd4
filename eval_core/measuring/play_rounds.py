"""Rounds: generated sessions that both sides compress again and again, beside the suite; their price, said before."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eval_core.base.config import SuiteName
from eval_core.base.files import parse, pretty, read_json, write_atomic
from eval_core.base.numbers import counted
from eval_core.base.tokens import count_messages
from eval_core.domain.case import Case
from eval_core.domain.compression import Compression, HasTrigger, Outcome
from eval_core.domain.extra import PlayedRounds
from eval_core.domain.fixture import TRIGGER, Fixture
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import RoundsRecord, RunRecord, TriggerRecord, TriggerRound
from eval_core.measuring.price_calls import CountedCalls, estimate
from eval_core.measuring.session import MeasuringSession, compress_all
from eval_core.models.settings import Models
from eval_core.sandbox.due import is_stuck
from eval_core.storage.results import ResultsFolder
from eval_core.suite.generate import SessionPlan
from eval_core.suite.sizes import SIZES, when_due

GENERATED = "generated"
"""The folder below the results that keeps generated sessions."""
ROUNDS = "compressions in rounds"
"""What their calls are for."""
ROUNDS_FOLDER = "rounds"
"""Below a result: the runs of these sessions."""
_CANDIDATE_RUNS, _BASE_RUNS = 2, 4
_INPUT, _OUTPUT, _MOST_OUTPUT = 0.95, 0.1, 4_000
"""Of a call: parts of the window that it sends and gets, as measured with a model that follows the template."""
_CYCLE = 0.45
"""Of a window: what is new between two compressions that fire at 70 % and free two thirds of it."""
_CALL_MINUTES, _OFFLINE_MINUTES = 0.5, 0.01
"""For a round: with a model, all runs at the same time; offline, one run after the other on two cores."""


@dataclass(frozen=True)
class RoundsPlan:
    """How many runs and rounds a size means."""

    suite: SuiteName
    candidate: int
    base: int
    """Runs of each session; 0 where the base is stored, or nobody knows it."""
    when_due: SessionPlan | None = None
    """The session that is compressed when the compressor says so, once on each side."""

    @classmethod
    def of(cls, suite: SuiteName, *, base: bool, baseline: bool, offline: bool) -> RoundsPlan:
        """Plan a size; offline, more than two runs of each show nothing new. A baseline has the runs of a base."""
        runs = _CANDIDATE_RUNS if offline else _BASE_RUNS
        return cls(suite, runs if baseline else _CANDIDATE_RUNS, runs if base else 0, when_due(suite, offline=offline))

    @property
    def runs(self) -> int:
        return len(SIZES[self.suite]) * (self.candidate + self.base)

    @property
    def cycles(self) -> int:
        """About how often the session is compressed that says itself when it is due, on all sides."""
        due = self.when_due
        return 0 if due is None else math.ceil(due.tokens / (_CYCLE * due.window)) * (1 + bool(self.base))

    @property
    def rounds(self) -> int:
        """How many compressions that is in all."""
        return sum(plan.rounds for plan in SIZES[self.suite]) * (self.candidate + self.base) + self.cycles

    def minutes(self, *, offline: bool) -> int:
        """Say how long it takes."""
        longest = max((plan.rounds for plan in SIZES[self.suite]), default=0)
        return math.ceil(_OFFLINE_MINUTES * self.rounds if offline else _CALL_MINUTES * longest)

    def counted(self, models: Models) -> CountedCalls:
        """Return the calls of the compressor's model."""
        parts = [
            (plan.rounds * (self.candidate + self.base), round(_INPUT * plan.window), plan.window)
            for plan in SIZES[self.suite]
        ]
        if self.when_due is not None:
            parts.append((self.cycles, round(TRIGGER * self.when_due.window), self.when_due.window))
        sent = sum(calls * each for calls, each, _ in parts)
        got = sum(calls * min(round(_OUTPUT * window), _MOST_OUTPUT) for calls, _, window in parts)
        return CountedCalls("compressor", models.compressor, self.rounds, sent, got, purpose=ROUNDS)

    def price(self, models: Models | None) -> str:
        """Say what it costs and how long it takes."""
        price, what = "no cost", "compressions"
        if models is not None:
            (row,) = estimate([self.counted(models)], {models.compressor: models.tariff(models.compressor)})
            price = "unknown price" if row.cost_usd is None else f"about ${row.cost_usd:.2f}"
            what = "calls"
        sessions = counted(len(SIZES[self.suite]), "generated session")
        minutes = counted(self.minutes(offline=models is None), "minute")
        return f"{sessions} in rounds: {self.rounds:,} {what}, {price}, about {minutes}."


async def _when_due(session: MeasuringSession, case: Case) -> TriggerRecord | None:
    """Play a session that is compressed when it is due; what was played before the run was interrupted is read."""
    subject, fixture = session.roles.subject, case.fixture
    path = session.folder.path / f"{fixture.name}-when-due.json"
    if path.exists():
        return parse(TriggerRecord, read_json(path), str(path))
    if not isinstance(subject, HasTrigger) or session.halted():
        return None
    done = await subject.compress_when_due(fixture, seed=session.seed)
    if done.outcome.retryable:
        return None
    record = trigger_record(fixture, done)
    write_atomic(path, pretty(record.model_dump(mode="json")).encode())
    return record


def trigger_record(fixture: Fixture, done: Compression) -> TriggerRecord:
    """Return what is kept of a session that was compressed when it was due."""
    rounds = [
        TriggerRound(message=seen, before=step.tokens_before, after=step.tokens_after)
        for seen, step in zip(done.fired, done.steps, strict=False)
    ]
    failed = done.outcome is not Outcome.OK
    return TriggerRecord(
        session=fixture.name,
        window=fixture.context_length,
        share=TRIGGER,
        tokens=count_messages(fixture.messages),
        messages=len(fixture.messages),
        own=done.own_trigger,
        rounds=rounds,
        ended="failed" if failed else "stuck" if is_stuck(done.steps) else "session",
        detail=f"the compressor {done.outcome.words}" + (f" ({done.detail[:200]})" if done.detail else "")
        if failed
        else "",
    )


def _of(records: Sequence[RunRecord]) -> list[RoundsRecord]:
    return [RoundsRecord.model_validate(run.strands["rounds"]) for run in records if run.ok and "rounds" in run.strands]


def _failed(records: Sequence[RunRecord]) -> list[str]:
    """Return what the compressor itself did not bring to an end."""
    return [
        f"{run.fixture}: the compressor {run.outcome.words}" + (f" ({run.detail[:200]})" if run.detail else "")
        for run in records
        if not run.ok and not run.outcome.retryable
    ]


def stored_rounds(stored: Measurement | None, suite: SuiteName) -> bool:
    """Tell whether a baseline holds the runs of every session of a size."""
    played = None if stored is None else stored.extra.rounds
    return played is not None and {plan.name for plan in SIZES[suite]} <= {run.session for run in played.candidate}


def _playing(session: MeasuringSession, plan: RoundsPlan, cases: Sequence[Case]) -> MeasuringSession:
    """Return a session of the same target that compresses the generated sessions and asks nothing."""
    of_base = session.arm == "base"
    return replace(
        session,
        cases=cases,
        folder=ResultsFolder(session.folder.path / ROUNDS_FOLDER),
        label=f"{session.label}/{ROUNDS_FOLDER}",
        runs=0,
        compress_runs=plan.base if of_base else plan.candidate,
        known_controls={},
        results=None,
        shard=None,
        rounds_only=True,
        begun=asyncio.Event(),
        _known={},
        _told=set(),
    )


async def play(
    sessions: Sequence[MeasuringSession], plan: RoundsPlan, cases: Sequence[Case], due: Case | None = None
) -> PlayedRounds:
    """Play the sessions of a size; the candidate's session comes last, the base's before it, if it is measured."""
    playing = [_playing(session, plan, cases) for session in sessions]
    for session in playing:
        session.folder.path.mkdir(parents=True, exist_ok=True)
    found = await compress_all(playing)
    ours, theirs = found[-1], found[0] if len(found) > 1 else []
    triggered = [record] if due is not None and (record := await _when_due(playing[-1], due)) else []
    of_base = [record] if due is not None and len(playing) > 1 and (record := await _when_due(playing[0], due)) else []
    return PlayedRounds(
        candidate=_of(ours),
        base=_of(theirs),
        failed=_failed(ours),
        base_failed=_failed(theirs),
        triggered=triggered,
        base_triggered=of_base,
    )
