"""Carrying a job out: trust the judge, measure, and keep what later comparisons need."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eval_core.base.errors import UserError
from eval_core.base.threads import compute
from eval_core.comparing.control_runs import keep_control
from eval_core.domain.case import Case
from eval_core.domain.extra import Look
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.measurement import Controls, Measurement
from eval_core.domain.record import RunRecord
from eval_core.facts.session_facts import SessionFacts
from eval_core.judging.calibration import trusted
from eval_core.measuring.base_branch import BasePlan, BranchPoint, keep_base
from eval_core.measuring.blame import PlainRequests
from eval_core.measuring.controls import find_controls
from eval_core.measuring.facts_first import FactsFirst
from eval_core.measuring.interrupt import Interruption, interruptible
from eval_core.measuring.play_rounds import GENERATED, play
from eval_core.measuring.preflight import preflight
from eval_core.measuring.run_fingerprint import make_fingerprint
from eval_core.measuring.session import MeasuringSession, measure_together, read_ahead
from eval_core.measuring.touched import touched_by
from eval_core.measuring.wiring import Cast, Roles, Traffic, make_cast
from eval_core.sandbox.targets import Target
from eval_core.statistics.looks import bought_looks, looks_before
from eval_core.storage.baselines import Reference, find_reference, stored_reference
from eval_core.storage.results import BASE_FOLDER, CONTROL_FOLDER, SUMMARY, ResultsFolder, read_measurement, spending
from eval_core.suite.sizes import generated_cases

if TYPE_CHECKING:
    from eval_core.measuring.options import Job
    from eval_core.models.client import ModelClient

__all__ = ["Trial"]


@dataclass(frozen=True)
class Trial:
    """One job with the folder it writes to and who is told of its progress."""

    job: Job
    folder: ResultsFolder
    cases: Sequence[Case]
    on_record: Callable[[RunRecord], None]
    watch: Callable[[Callable[[], Traffic | None]], None]

    async def measure(self) -> Measurement:
        """Measure; whatever happens, what is finished is in the folder."""
        job, target = self.job, self.job.load_target()
        before = self._before()
        async with AsyncExitStack() as stack:
            cast = await make_cast(
                stack,
                target,
                job.models,
                journal=self.folder.journal,
                budget_usd=job.budget(self.cases),
                max_tokens_total=job.settings.max_tokens_total,
                concurrency=job.settings.concurrency,
                sandbox=job.sandbox,
                hidden=job.hidden,
                deadline_s=job.deadline_s,
                sealing=job.sealing,
            )
            self.watch(cast.traffic)
            with interruptible(cast.stop, cast.abandon) as interruption:
                measurement = await self._measure(cast, target, interruption, before)
            if (mistake := cast.mistake()) is not None:
                raise UserError(
                    f"{mistake}; what is finished is kept in {self.folder.path}, "
                    f"`--label {self.folder.path.name} --resume` continues from there"
                )
            return measurement

    def _before(self) -> tuple[Look, ...]:
        """Return what had been measured of this candidate when it was looked at before."""
        if self.job.looks > 1:
            return self.job.looked_at
        if not self.job.resume or not (self.folder.path / SUMMARY).exists():
            return ()
        stored = read_measurement(self.folder.path)
        looks = stored.extra.looks
        # A run that was cut short has not been tested.
        return looks if stored.stopped else (*looks, Look(stored.planned_runs, stored.planned_compress_runs))

    async def _measure(
        self, cast: Cast, target: Target, interruption: Interruption, before: Sequence[Look]
    ) -> Measurement:
        job = self.job
        fingerprint = make_fingerprint(self.cases, job.models, job.topic)
        stored = self._stored(fingerprint)
        reference = (
            find_reference(job.compare_to, job.root / job.settings.baselines, fingerprint)
            if job.baseline == "stored"
            else None
        )
        notes: dict[str, object] = {}
        here = {cell.case.fixture.name: cell.case for cell in job.cells(self.cases)}
        facts = {name: SessionFacts(case) for name, case in here.items()}
        tried = ahead = None
        # Of more shards than fixture-runs, some have nothing to do: they try no model and have no budget for it.
        if cast.client is not None and here:
            tried = asyncio.create_task(self._preflight(cast, cast.client))
            # While the models are tried, the processor is free for everything that needs no reply.
            await _under_way(cast.client, tried)
            ahead = asyncio.create_task(read_ahead(facts.values(), tried.done))
            await compute(getattr, stored, "measurement", None)
        controls = self._known_controls(fingerprint, stored)
        sessions = [self._session(cast, cast.roles, fingerprint, self.folder, target, controls, interruption)]
        plan = job.plan_base(fingerprint, reference, self.folder.path.parent)
        if plan.known is not None:
            ResultsFolder(self.folder.path / BASE_FOLDER).write_measurement(plan.known)
        if plan.beside != "nothing":
            sessions.insert(0, self._beside(cast, plan, fingerprint, controls, interruption))
        for session in sessions:
            session.facts = facts
        if tried is not None:
            await tried
            await self._trust(cast, stored, notes)
        # A control is there for the day; what decides is the whole base, or the stored baseline.
        standing = None if plan.beside == "whole" else plan.known or (reference.measurement if reference else None)
        if (job.stops_early or job.compresses_more) and (standing is not None or plan.beside == "whole"):
            grown = sessions if plan.beside == "whole" else sessions[-1:]
            after = FactsFirst(job, grown, standing, before, self.folder.path.parent, cast.budget)
            measured = await measure_together(sessions, after)
        else:
            measured = await measure_together(sessions)
        for session, base_measurement in zip(sessions[:-1], measured[:-1], strict=True):
            notes |= self._keep_base(session, base_measurement, plan)
        if ahead is not None:
            await ahead
        measurement = measured[-1]
        looks = (*before, *bought_looks(*job.plan, measurement.planned_compress_runs))
        notes |= self._comparison_notes(plan, reference, target)
        notes |= await self._play(cast, target, reference, interruption)
        measurement = measurement.noting(**notes, looks=looks_before(looks, measurement))
        return self._keep(measurement, cast)

    async def _play(
        self, cast: Cast, target: Target, reference: Reference | None, interruption: Interruption
    ) -> dict[str, object]:
        """Play the generated sessions of the asked size, of the base too where it is at hand and none is stored."""
        job, plan = self.job, self.job.rounds(reference)
        if not plan.runs:
            return {}
        cases = generated_cases(plan.suite, self.folder.path.parent / GENERATED)
        fingerprint = make_fingerprint(cases, job.models, job.topic)
        sessions = [self._session(cast, cast.roles, fingerprint, self.folder, target, {}, interruption)]
        if plan.base:
            base = job.load_base_target()
            roles = replace(cast.roles, subject=cast.subject_of(base, "base"))
            folder = ResultsFolder(self.folder.path / BASE_FOLDER)
            sessions.insert(0, self._session(cast, roles, fingerprint, folder, base, {}, interruption))
            sessions[0].arm = "base"
        return {"rounds": await play(sessions, plan, cases)}

    def _comparison_notes(self, plan: BasePlan, reference: Reference | None, target: Target) -> dict[str, object]:
        """Note what the candidate is compared with, and which watched files it touches."""
        job = self.job
        notes: dict[str, object] = {}
        if plan.stale:
            notes["stale"] = True
        if plan.own:
            notes["base"] = "rerun"
        if plan.own or reference is not None:
            notes["compared"] = True
        if job.base_tree is not None and job.base_tree.resolve() != target.tree.resolve():
            notes["touched"] = touched_by(job.base_tree, target.tree, job.settings.watch, [job.results])
        return notes

    def _keep_base(self, session: MeasuringSession, measurement: Measurement, plan: BasePlan) -> dict[str, object]:
        """Keep what was measured of the base: in its folder, and for what this run and later ones need of it."""
        measurement = _from_files(measurement, plan.digest, self.job.base_point)
        session.finish(measurement)
        if plan.beside == "control":
            return {"control": keep_control(measurement)}
        if plan.shelf is not None and self.job.shard is None:
            keep_base(plan.shelf, measurement)
        return {}

    async def _trust(self, cast: Cast, stored: Reference | None, notes: dict[str, object]) -> None:
        """Examine the judge, unless that was done before."""
        known = [stored.measurement] if stored else []
        if self._does_once and cast.roles.judged:
            notes["calibration"] = await trusted(
                cast.roles.judge,
                self.folder.path.parent,
                known,
                anyway=self.job.settings.models.trust_judge,
                served=cast.served_judge,
                stopped=lambda: cast.stopped() or cast.mistake(),
            )

    @property
    def _does_once(self) -> bool:
        """Whether what is done once for a run is done here, and not by another shard."""
        return self.job.shard is None or self.job.shard.first

    async def _preflight(self, cast: Cast, client: ModelClient) -> None:
        """Make the first calls; where they fail, the rest of the run only writes down that it could not be made."""
        case = min(self.cases, key=lambda case: case.fixture.name)
        problem = await preflight(
            client,
            cast.roles.answerer,
            cast.roles.judge,
            case,
            compresses=cast.compresses_with_model,
            judged=cast.roles.judged,
            trust_judge=self.job.settings.models.trust_judge,
        )
        # A budget that is used up is said by the budget, in its own words.
        if problem is not None and not (cast.budget and cast.budget.refused):
            client.stop(problem, calls_only=True)

    def _beside(
        self,
        cast: Cast,
        plan: BasePlan,
        fingerprint: Fingerprint,
        controls: dict[str, Controls],
        interruption: Interruption,
    ) -> MeasuringSession:
        """Return the session that measures the base: all of it, or a few runs that show what the day does."""
        base = self.job.load_base_target()
        roles = replace(cast.roles, subject=cast.subject_of(base, "base"))
        folder = ResultsFolder(self.folder.path / (BASE_FOLDER if plan.beside == "whole" else CONTROL_FOLDER))
        session = self._session(cast, roles, fingerprint, folder, base, controls, interruption)
        session.arm = "base"
        if plan.beside == "control":
            session.runs = session.compress_runs = self.job.settings.baseline.control_runs
        return session

    def _session(
        self,
        cast: Cast,
        roles: Roles,
        fingerprint: Fingerprint,
        folder: ResultsFolder,
        target: Target,
        controls: dict[str, Controls],
        interruption: Interruption,
    ) -> MeasuringSession:
        runs, compress_runs = self.job.plan
        return MeasuringSession(
            cases=self.cases,
            roles=roles,
            fingerprint=fingerprint,
            folder=folder,
            label=self.folder.path.name if folder is self.folder else f"{self.folder.path.name}/{folder.path.name}",
            runs=runs,
            compress_runs=compress_runs,
            seed=self.job.seed,
            focus_topic=self.job.topic,
            concurrency=self.job.settings.concurrency,
            tree=target.tree,
            source=self.job.source(target),
            known_controls=controls,
            results=self.folder.path.parent if roles.judged else None,
            on_record=self.on_record,
            stopped=lambda: interruption.why or cast.stopped(),
            halted=lambda: interruption.why or cast.halted(),
            cut=interruption.cut,
            resume=self.job.resume,
            shard=self.job.shard,
            plain=PlainRequests(cast.client) if cast.client is not None and cast.compresses_with_model else None,
        )

    def _known_controls(self, fingerprint: Fingerprint, stored: Reference | None) -> dict[str, Controls]:
        """Return the controls that a stored baseline holds, of every fixture it shares with this run."""
        if stored is None:
            return {}
        results, measurements = self.folder.path.parent, [stored.measurement]
        found = {case.fixture.name: find_controls(case, fingerprint, results, measurements) for case in self.cases}
        return {name: controls for name, controls in found.items() if controls is not None}

    def _stored(self, fingerprint: Fingerprint) -> Reference | None:
        """Return the nearest stored baseline: with the equal fingerprint, its controls are not paid for again."""
        try:
            found = stored_reference(self.job.root / self.job.settings.baselines, fingerprint)
        except UserError:
            if self.job.compare_to == "auto" and self.job.baseline == "stored":
                raise
            return None  # an unreadable baseline must not stand in the way of the update that replaces it
        return found

    def _keep(self, measurement: Measurement, cast: Cast) -> Measurement:
        measurement = _from_files(measurement, self.job.digest_of(self.job.load_target().tree))
        update: dict[str, Any] = {"stopped": measurement.stopped or cast.stopped()}
        if cast.client is not None:
            update["use"] = spending(self.folder.journal)
            noted = {"served": cast.served(), "broken_lines": cast.broken_lines}
            update["extra"] = measurement.extra.model_copy(update=noted)
        measurement = measurement.model_copy(update=update)
        self.folder.write_measurement(measurement)
        return measurement


def _from_files(measurement: Measurement, digest: str | None, point: BranchPoint | None = None) -> Measurement:
    """Note which watched files were measured, and the commit and branch that they are of where these are known."""
    named = {} if point is None else {"source_sha": point.sha}
    provenance = measurement.provenance.model_copy(update={"watched": digest, **named})
    measurement = measurement.model_copy(update={"provenance": provenance})
    return measurement if point is None else measurement.noting(branch=point.branch)


async def _under_way(client: ModelClient, tried: asyncio.Task[None]) -> None:
    """Wait until the first calls are with the provider."""
    while not client.in_flight and not tried.done():
        await asyncio.sleep(0.001)
