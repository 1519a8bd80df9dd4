"""Measuring: a plan becomes a measurement. The judge is examined first, and what later comparisons need is kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from eval_core.base.errors import UserError
from eval_core.base.globs import watched_files
from eval_core.comparing.compare import ReportData
from eval_core.comparing.control_runs import keep_control
from eval_core.domain.call import ArmName
from eval_core.domain.extra import ControlRuns, Extra, Look, PlayedRounds, Unexercised
from eval_core.domain.judge_record import JudgeRecord
from eval_core.domain.measurement import Controls, Measurement
from eval_core.domain.record import RunRecord
from eval_core.domain.rollout import PlayedTasks
from eval_core.facts.session_facts import SessionFacts
from eval_core.judging.calibration import trusted
from eval_core.measuring.base_branch import BranchPoint, keep_base
from eval_core.measuring.blame import PlainRequests
from eval_core.measuring.compare_with_base import compare
from eval_core.measuring.controls import find_controls
from eval_core.measuring.facts_first import FactsFirst
from eval_core.measuring.interrupt import Interruption, interruptible
from eval_core.measuring.plan import Plan
from eval_core.measuring.play_rounds import GENERATED, play
from eval_core.measuring.play_tasks import FRESH_FOLDER, play_tasks
from eval_core.measuring.preflight import preflight
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import AfterFacts, MeasuringSession, compress_all, measure_together, read_ahead
from eval_core.measuring.wiring import Live, Traffic, make_live
from eval_core.sandbox.isolation import detect
from eval_core.sandbox.targets import Target
from eval_core.statistics.looks import bought_looks, looks_before
from eval_core.storage.results import BASE_FOLDER, CONTROL_FOLDER, SUMMARY, ResultsFolder, read_measurement, spending
from eval_core.suite.sizes import SIZES, generated_cases

# What changed lines are about that no fixture shows.
_SPEAKS_OF: dict[Unexercised, re.Pattern[str]] = {
    "focus": re.compile(r"focus_?topic", re.IGNORECASE),
    "trigger": re.compile(r"should_?compress|should_?compact", re.IGNORECASE),
}


@dataclass(frozen=True)
class Sinks:
    """Where a run writes to, and who is told of its progress."""

    folder: ResultsFolder
    on_record: Callable[[RunRecord], None] = lambda record: None
    watch: Callable[[Callable[[], Traffic | None]], None] = lambda traffic: None


def measure(plan: Plan, sinks: Sinks) -> Measurement:
    """Carry a plan out; whatever happens, what is finished is in the folder."""
    return asyncio.run(_measure(plan, sinks))


def compare_run(plan: Plan, measurement: Measurement, folder: ResultsFolder) -> ReportData:
    """Compare what was measured with the base of its plan; a part of a run is not compared."""
    return compare(plan.base_of(measurement, folder.path), measurement, plan.cases)


async def _measure(plan: Plan, sinks: Sinks) -> Measurement:
    folder, before = sinks.folder, _looks_before(plan, sinks.folder)
    async with AsyncExitStack() as stack:
        live = await make_live(stack, plan.options, plan.target, folder.journal, plan.budget_usd)
        sinks.watch(live.traffic)
        with interruptible(live.stop, live.abandon) as interruption:
            run = _Run(plan, sinks, live, interruption, before)
            measurement = await run.measure()
        if (mistake := live.mistake()) is not None:
            raise UserError(
                f"{mistake}; what is finished is kept in {folder.path}, "
                f"`--label {folder.path.name} --resume` continues from there"
            )
        return measurement


def _looks_before(plan: Plan, folder: ResultsFolder) -> tuple[Look, ...]:
    """Return what had been measured of this candidate when it was looked at before."""
    if plan.options.looks > 1:
        return plan.earlier_looks
    if not plan.options.resume or not (folder.path / SUMMARY).exists():
        return ()
    stored = read_measurement(folder.path)
    looks = stored.extra.looks
    # A run that was cut short has not been tested.
    return looks if stored.stopped else (*looks, Look(stored.planned_runs, stored.planned_compress_runs))


@dataclass(frozen=True)
class _Run:
    """A plan with the live objects that carry it out."""

    plan: Plan
    sinks: Sinks
    live: Live
    interruption: Interruption
    before: Sequence[Look]

    async def measure(self) -> Measurement:
        plan, folder = self.plan, self.sinks.folder
        facts = {cell.case.fixture.name: SessionFacts(cell.case) for cell in plan.cells}
        tried = ahead = None
        # Of more shards than fixture-runs, some have nothing to do: they try no model and have no budget for it.
        if self.live.client is not None and facts:
            tried = asyncio.create_task(self._preflight())
            # While the models are tried, the processor is free for everything that needs no reply.
            while not self.live.client.in_flight and not tried.done():
                await asyncio.sleep(0.001)
            ahead = asyncio.create_task(read_ahead(facts.values(), tried.done))
        sessions = self._sessions(facts)
        if plan.base.known is not None:
            ResultsFolder(folder.path / BASE_FOLDER).write_measurement(plan.base.known)
        calibration = None
        if tried is not None:
            await tried
            calibration = await self._trust()
        measured = await measure_together(sessions, self._after_facts(sessions))
        control = self._keep_base(sessions[0], measured[0]) if len(sessions) > 1 else None
        if ahead is not None:
            await ahead
        return self._keep(measured[-1], calibration, control, await self._play(), await self._play_tasks(sessions))

    async def _play(self) -> PlayedRounds | None:
        """Play the generated sessions of the asked size, of the base too where it is at hand and none is stored."""
        plan, folder = self.plan, self.sinks.folder
        if not plan.rounds.runs:
            return None
        cases = generated_cases(SIZES[plan.rounds.suite], plan.results / GENERATED)
        due = generated_cases([plan.rounds.when_due] if plan.rounds.when_due else [], plan.results / GENERATED)
        sessions = [self._session(plan.target, folder, {}, {})]
        if plan.rounds.base:
            sessions.insert(0, self._base_session(BASE_FOLDER, {}, {}))
        for session in sessions:
            session.fingerprint = make_fingerprint(cases, plan.models, plan.options.topic)
        return await play(sessions, plan.rounds, cases, next(iter(due), None))

    async def _play_tasks(self, sessions: Sequence[MeasuringSession]) -> PlayedTasks | None:
        """Let an agent go on from the states that both sides were compressed to, as far as they were measured here."""
        plan, client = self.plan, self.live.client
        if not plan.tasks.sides or client is None or client.stopped is not None:
            return None
        states = {session.arm: _states(session) for session in sessions}

        async def compress(fixture: str, runs: int) -> dict[ArmName, list[RunRecord]]:
            grown = [
                replace(
                    session,
                    cases=[case for case in plan.cases if case.fixture.name == fixture],
                    runs=0,
                    compress_runs=runs,
                    folder=ResultsFolder(session.folder.path / FRESH_FOLDER),
                    on_record=lambda record: None,
                )
                for session in sessions
            ]
            found = await compress_all(grown)
            return {one.arm: [run for run in runs if run.ok] for one, runs in zip(grown, found, strict=True)}

        sandbox, folder = detect(plan.options.sandbox), self.sinks.folder.path
        prices = plan.options.settings.task
        return await play_tasks(plan.tasks, client, sandbox, plan.results, folder, states, compress, prices)

    def _sessions(self, facts: dict[str, SessionFacts]) -> list[MeasuringSession]:
        """Return what is measured in alternation: the base, as far as it is measured here, and the candidate."""
        plan, controls = self.plan, self._known_controls()
        sessions = [self._session(plan.target, self.sinks.folder, facts, controls)]
        if plan.base.in_run != "nothing":
            name = BASE_FOLDER if plan.base.in_run == "whole" else CONTROL_FOLDER
            sessions.insert(0, self._base_session(name, facts, controls))
            sessions[0].runs, sessions[0].compress_runs = plan.base_runs
        return sessions

    def _base_session(
        self, name: str, facts: dict[str, SessionFacts], controls: dict[str, Controls]
    ) -> MeasuringSession:
        target = self.plan.base_target
        assert target is not None
        base = self._session(target, ResultsFolder(self.sinks.folder.path / name), facts, controls)
        base.roles = replace(base.roles, subject=self.live.subject_of(target, "base"))
        base.arm = "base"
        return base

    def _session(
        self, target: Target, folder: ResultsFolder, facts: dict[str, SessionFacts], controls: dict[str, Controls]
    ) -> MeasuringSession:
        plan, live, interruption, own = self.plan, self.live, self.interruption, self.sinks.folder
        options = plan.options
        return MeasuringSession(
            cases=plan.cases,
            roles=live.roles,
            fingerprint=plan.fingerprint,
            folder=folder,
            label=own.path.name if folder is own else f"{own.path.name}/{folder.path.name}",
            runs=plan.runs,
            compress_runs=plan.compress_runs,
            seed=options.seed,
            focus_topic=options.topic,
            concurrency=options.settings.concurrency,
            tree=target.tree,
            source=options.source(target),
            known_controls=controls,
            results=plan.results if live.roles.judged else None,
            on_record=self.sinks.on_record,
            stopped=lambda: interruption.why or live.stopped(),
            halted=lambda: interruption.why or live.halted(),
            cut=interruption.cut,
            resume=options.resume,
            shard=options.shard,
            plain=PlainRequests(live.client) if live.client is not None and live.compresses_with_model else None,
            facts=facts,
            obeyed_runs=plan.obeyed_runs,
        )

    def _known_controls(self) -> dict[str, Controls]:
        """Return the controls that a stored baseline holds, of every fixture it shares with this run."""
        plan, known = self.plan, self.plan.paid_before
        if not known:
            return {}
        found = {case.fixture.name: find_controls(case, plan.fingerprint, plan.results, known) for case in plan.cases}
        return {name: controls for name, controls in found.items() if controls is not None}

    async def _preflight(self) -> None:
        """Make the first calls; where they fail, the rest of the run only writes down that it could not be made."""
        live, client = self.live, self.live.client
        assert client is not None
        problem = await preflight(
            client,
            live.roles.answerer,
            live.roles.judge,
            min(self.plan.cases, key=lambda case: case.fixture.name),
            compresses=live.compresses_with_model,
            judged=live.roles.judged,
            trust_judge=self.plan.options.settings.models.trust_judge,
        )
        # A budget that is used up is said by the budget, in its own words.
        if problem is not None and not (live.budget and live.budget.refused):
            client.stop(problem, calls_only=True)

    async def _trust(self) -> JudgeRecord | None:
        """Examine the judge, unless that was done before or another shard does it."""
        plan, live = self.plan, self.live
        if not plan.does_once or not live.roles.judged:
            return None
        return await trusted(
            live.roles.judge,
            plan.results,
            plan.paid_before,
            anyway=plan.options.settings.models.trust_judge,
            served=live.served_judge,
            stopped=lambda: live.stopped() or live.mistake(),
        )

    def _after_facts(
        self, sessions: Sequence[MeasuringSession]
    ) -> Callable[[Sequence[Measurement]], Awaitable[AfterFacts]] | None:
        """Return what decides when all compressions are there; None where grading follows in any case."""
        plan, whole = self.plan, self.plan.base.in_run == "whole"
        # A control says how today's models differ; what decides is the whole base, or the stored baseline.
        stored = plan.base.known or (plan.reference.measurement if plan.reference else None)
        if not (plan.stops_early or plan.compresses_more) or not (whole or stored):
            return None
        grown = sessions if whole else sessions[-1:]
        return FactsFirst(plan, grown, None if whole else stored, self.before, self.live.budget)

    def _keep_base(self, session: MeasuringSession, measurement: Measurement) -> ControlRuns | None:
        """Keep what was measured of the base, in its folder and for later runs; return its control runs."""
        plan = self.plan
        measurement = _from_files(measurement, plan.base.digest, plan.options.base_point)
        session.finish(measurement)
        if plan.base.in_run == "control":
            return keep_control(measurement)
        if plan.base.store is not None and plan.options.shard is None:
            keep_base(plan.base.store, measurement)
        return None

    def _keep(
        self,
        measurement: Measurement,
        calibration: JudgeRecord | None,
        control: ControlRuns | None,
        rounds: PlayedRounds | None,
        tasks: PlayedTasks | None,
    ) -> Measurement:
        """Write the measurement down, with what was noted on the way."""
        plan, live, options = self.plan, self.live, self.plan.options
        looks = (*self.before, *bought_looks(plan.runs, plan.compress_runs, measurement.planned_compress_runs))
        extra = Extra(
            calibration=calibration,
            control=control,
            looks=looks_before(looks, measurement),
            base="rerun" if plan.base.own else None,
            stale=plan.base.stale,
            compared=plan.base.own or plan.reference is not None,
            served=live.served(),
            broken_lines=live.broken_lines,
            touched=self._touched(),
            rounds=rounds,
            tasks=tasks,
            shard=measurement.extra.shard,
        )
        measurement = _from_files(measurement, options.digest_of(plan.target.tree)).model_copy(
            update={"extra": extra, "stopped": measurement.stopped or live.stopped()}
        )
        if live.client is not None:
            measurement = measurement.model_copy(update={"use": spending(self.sinks.folder.journal)})
        self.sinks.folder.write_measurement(measurement)
        return measurement

    def _touched(self) -> tuple[Unexercised, ...]:
        base, tree, options = self.plan.options.base_tree, self.plan.target.tree, self.plan.options
        if base is None or base.resolve() == tree.resolve():
            return ()
        return touched_by(base, tree, options.settings.watch, [options.results])


def _states(session: MeasuringSession) -> dict[str, list[RunRecord]]:
    """Return what each session was compressed to, as far as that succeeded."""
    found: dict[str, list[RunRecord]] = {case.fixture.name: [] for case in session.cases}
    for cell in session.plan:
        run = session.folder.read_run(cell.case.fixture.name, cell.run)
        if run is not None and run.ok:
            found[run.fixture].append(run)
    return found


def _from_files(measurement: Measurement, digest: str | None, point: BranchPoint | None = None) -> Measurement:
    """Note which watched files were measured, and the commit and branch that they are of where these are known."""
    named = {} if point is None else {"source_sha": point.sha}
    provenance = measurement.provenance.model_copy(update={"watched": digest, **named})
    measurement = measurement.model_copy(update={"provenance": provenance})
    return measurement if point is None else measurement.noting(branch=point.branch)


def touched_by(base: Path, tree: Path, globs: Sequence[str], skipped: Sequence[Path] = ()) -> tuple[Unexercised, ...]:
    """Return what the lines of watched files are about that a change adds or removes."""
    changed = _lines(base, globs, (*skipped, tree)) ^ _lines(tree, globs, skipped)
    return tuple(name for name, pattern in _SPEAKS_OF.items() if any(pattern.search(line) for _, line in changed))


def _lines(tree: Path, globs: Sequence[str], skipped: Sequence[Path]) -> set[tuple[str, str]]:
    return {
        (name, line.strip())
        for name in watched_files(tree, globs, skipped)
        for line in (tree / name).read_text(encoding="utf-8", errors="replace").splitlines()
    }
