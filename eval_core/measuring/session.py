"""One measuring session, from plan to measurement: controls, provenance, resume."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from eval_core.base.threads import compute
from eval_core.domain.call import ArmName
from eval_core.domain.case import Case, Cell, draft_counts, plan_cells
from eval_core.domain.compression import ModelUse, Outcome, Subject, TakesBudget
from eval_core.domain.extra import Extra
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.measurement import Controls, Measurement, Provenance
from eval_core.domain.record import FrontierPoint, RunRecord
from eval_core.domain.shard import Shard
from eval_core.domain.target import CompressorSource
from eval_core.facts.session_facts import SessionFacts
from eval_core.measuring.ask_obeys import OBEYED_RUNS, answered_all, obey_controls, unanswered
from eval_core.measuring.blame import PlainRequests, attribute_refusals, examine, own_doing, suspects
from eval_core.measuring.controls import find_controls, keep_controls, measure_controls
from eval_core.measuring.execute import Executor, run_in_turn
from eval_core.measuring.provenance import environment, now, package_version, source_commit
from eval_core.measuring.wiring import Roles
from eval_core.storage.results import ResultsFolder, RunIdentity, keep_identity

# Failures that say nothing about what was asked: the same call may well be answered a minute later.
_BY_CHANCE = frozenset(
    {"rate_limit", "server", "connection", "timeout", "empty", "malformed", "unknown", "auth", "payment", "not_found",
     "bad_request"}
)  # fmt: skip


@dataclass
class MeasuringSession:
    """Measures one target; what is finished is on disk at once, and a resumed session starts from there."""

    cases: Sequence[Case]
    roles: Roles
    fingerprint: Fingerprint
    """What the measurement can be compared with."""
    folder: ResultsFolder
    label: str
    runs: int
    compress_runs: int
    seed: int = 0
    focus_topic: str | None = None
    concurrency: int = 16
    tree: Path = field(default_factory=Path)
    source: CompressorSource = field(default_factory=CompressorSource)
    """What the target was made of when the session began."""
    known_controls: dict[str, Controls] = field(default_factory=dict)
    """Controls measured before under the same fingerprint: not paid for again."""
    results: Path | None = None
    """The folder that keeps controls for later runs; None where they cost nothing."""
    on_record: Callable[[RunRecord], None] = lambda record: None
    stopped: Callable[[], str | None] = lambda: None
    """Why the run cannot go on, e.g. that the budget is used up."""
    halted: Callable[[], str | None] = lambda: None
    """Why no fixture-run should begin any more."""
    cut: asyncio.Event | None = None
    """Set when fixture-runs under way have to end."""
    resume: bool = False
    arm: ArmName = "candidate"
    """Keeps the model calls of this session apart from the other arm's, which asks the same."""
    shard: Shard | None = None
    """The part of the plan that is measured here; None for all of it."""
    plain: PlainRequests | None = None
    """Asks the compressor's model in our own words, where the compressor has one."""
    facts: dict[str, SessionFacts] = field(default_factory=dict)
    """What is read of each fixture once; sessions of the same cases share it."""
    rounds_only: bool = False
    """Whether only the facts of each round are read, and nothing is asked."""
    obeyed_runs: int = OBEYED_RUNS
    """Graded runs of each fixture from whose states models choose and act."""
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the first fixture-run is measured, or when none is left to measure."""
    _known: dict[tuple[str, int], RunRecord] = field(default_factory=dict)
    _told: set[tuple[str, int]] = field(default_factory=set)

    async def measure(self) -> Measurement:
        """Execute the plan."""
        return self.finish((await measure_together([self]))[0])

    def open(self) -> None:
        """Note whose the folder is and take up what is finished there."""
        identity = RunIdentity(
            target=self.roles.subject.name, source=self.source, seed=self.seed, fingerprint=self.fingerprint
        )
        keep_identity(self.folder, identity, resume=self.resume)
        self._take_up()

    def _take_up(self) -> None:
        """Take up what is stored of the plan."""
        for cell in self.plan if self.resume else ():
            name = cell.case.fixture.name, cell.run
            if name not in self._known and (record := self.folder.read_run(*name)) is not None:
                self._known[name] = record

    def grow(self, compress_runs: int) -> None:
        """Compress each fixture this often."""
        self.compress_runs = compress_runs
        self._take_up()

    def missing(self, compress_runs: int) -> int:
        """Count the compressions that would still have to be made for so many of each fixture."""
        cells = plan_cells(self.cases, self.runs, compress_runs)
        stored = [self.folder.read_run(cell.case.fixture.name, cell.run) for cell in cells]
        return sum(record is None or not record.ok for record in stored)

    @property
    def plan(self) -> list[Cell]:
        """All fixture-runs of this session."""
        plan = plan_cells(self.cases, self.runs, self.compress_runs)
        return plan if self.shard is None else self.shard.cells(plan)

    @property
    def _own_cases(self) -> Sequence[Case]:
        """The cases whose first run is measured here, and their controls with it."""
        if not self.runs:
            return ()  # nothing is asked
        if self.shard is None:
            return self.cases
        return [cell.case for cell in self.plan if cell.run == 0]

    def executor(self) -> Executor:
        """Return what executes this session's cells; stored compressions are not made again."""
        return Executor(
            self.roles.subject,
            self.roles.answerer,
            self.roles.judge,
            seed=self.seed,
            focus_topic=self.focus_topic,
            concurrency=self.concurrency,
            arm=self.arm,
            on_record=self._keep,
            halted=self.halted,
            known=self.facts,
            tried_on="" if self.rounds_only else self.cases[0].fixture.name,
            obeyers=() if self.rounds_only else self.roles.obeyers,
            obeyed_runs=self.obeyed_runs,
            rounds_only=self.rounds_only,
            log_of=self.folder.round_log,
            compressed={key: record for key, record in self._known.items() if record.ok and record.messages},
        )

    def finished(self, cell: Cell) -> RunRecord | None:
        """Return the record of a cell that has nothing left to do."""
        record = self._known.get((cell.case.fixture.name, cell.run))
        if record is not None and record.outcome is Outcome.REFUSED:
            return record.model_copy(
                update={"graded": cell.graded}
            )  # found out and paid for; asked again, it is the same
        if record is None or not record.ok or record.graded != cell.graded:
            return None
        if not self.rounds_only and set(record.probes) != set(cell.case.probe_types):
            return None
        asked = cell.graded and cell.run < self.obeyed_runs
        if asked and not answered_all(record, cell.case, self.roles.obeyers):
            return None
        unscored = any(probe.result is None or probe.result.kind == "unscored" for probe in record.probes.values())
        return None if cell.graded and unscored else record

    def missed_by_chance(self, cell: Cell) -> bool:
        """Tell whether a provider's fault kept something of a cell from being measured, and the run could go on."""
        record = self._known.get((cell.case.fixture.name, cell.run))
        if record is None or self.stopped() is not None:
            return False
        results = [probe.result for probe in record.probes.values()]
        codes = {result.code for result in results if result is not None and result.kind == "unscored"}
        codes |= unanswered(record)
        # A completion that is of no use among others that are is a fault too; where none is, another would not be.
        lone = record.outcome is Outcome.BAD_COMPLETION and any(other.ok for other in self._known.values())
        return record.outcome is Outcome.INFRA or lone or bool(codes & _BY_CHANCE)

    def measured(self, cell: Cell) -> RunRecord | None:
        """Return the record of a cell unless a fault that may have passed left something out of it."""
        return None if self.missed_by_chance(cell) else self._known.get((cell.case.fixture.name, cell.run))

    def _keep(self, record: RunRecord) -> None:
        self.folder.write_run(record)
        self.begun.set()
        self._known[record.fixture, record.run] = record
        # A compression that is still to be graded is no finished fixture-run yet.
        if record.graded or record.run >= self.runs or not record.ok:
            self.tell(record)

    async def examined(self, records: Sequence[RunRecord]) -> list[RunRecord]:
        """Find out of runs without a summary whether the model or the compressor is to blame, and say so in them."""
        cells = {(cell.case.fixture.name, cell.run): cell for cell in self.plan}
        found = {(record.fixture, record.run): record for record in records}
        executor = replace(self.executor(), compressed={})

        async def again(record: RunRecord) -> RunRecord:
            return await executor.cell(replace(cells[record.fixture, record.run], graded=record.graded))

        for unwritten in suspects(records).values() if self.plain is not None else ():
            assert self.plain is not None
            case = cells[unwritten[0].fixture, unwritten[0].run].case
            known = any(record.answered_plainly for record in unwritten)  # found out before the run was resumed
            tried, own = (unwritten, True) if known else await examine(unwritten, case, self.plain, again, self.arm)
            found.update({(record.fixture, record.run): own_doing(record) if own else record for record in tried})
        attributed = list(found.values()) if self.shard is not None else attribute_refusals(list(found.values()))
        for record, before in zip(attributed, records, strict=True):
            if record is not before:
                self._keep(record)
        return attributed

    def tell(self, record: RunRecord) -> None:
        """Report a finished fixture-run, once."""
        if (record.fixture, record.run) not in self._told:
            self._told.add((record.fixture, record.run))
            self.on_record(record)

    async def controls(self) -> dict[str, Controls]:
        """Measure the controls of every case that has none yet."""
        names = [case.fixture.name for case in self._own_cases]
        turns = asyncio.Semaphore(2 * self.concurrency)
        measured = await asyncio.gather(*(self._control(case, turns) for case in self._own_cases))
        return dict(zip(names, measured, strict=True))

    async def _control(self, case: Case, turns: asyncio.Semaphore) -> Controls:
        results = self.results
        known = self.known_controls.get(case.fixture.name)
        if known is None and results is not None:
            known = find_controls(case, self.fingerprint, results)
        room = getattr(self.roles.answerer, "room", None)
        obeyed = asyncio.create_task(obey_controls(case, self.roles.obeyers, known, results, turns, room))
        try:
            if known is not None and set(case.probe_types) <= set(known.probes):
                measured = Controls(probes={name: known.probes[name] for name in case.probe_types})
            else:
                measured = await measure_controls(case, self.roles.answerer, self.roles.judge, turns)
                if results is not None:
                    keep_controls(case, self.fingerprint, results, measured)
            return measured.model_copy(update={"obeys": await obeyed})
        finally:
            obeyed.cancel()

    async def at_budgets(self) -> dict[str, list[FrontierPoint]]:
        """Compress each case once at every other budget that the target takes; what fails there is left out."""
        subject = self.roles.subject
        others = subject.at_other_budgets if isinstance(subject, TakesBudget) else ()

        async def point(other: Subject, case: Case) -> FrontierPoint | None:
            if self.halted():
                return None
            done = await other.compress(
                case.fixture, run=0, seed=self.seed, focus_topic=self.focus_topic or case.fixture.focus_topic
            )
            if done.outcome is not Outcome.OK or done.opaque is not None:
                return None
            facts = self.facts.setdefault(case.fixture.name, SessionFacts(case))
            return await compute(facts.at_budget, done.state)

        found = {case.fixture.name: [await point(other, case) for other in others] for case in self._own_cases}
        return {name: [item for item in points if item] for name, points in found.items()}

    @property
    def _read(self) -> dict[str, SessionFacts]:
        """What is read of each fixture of which a run is measured here."""
        own = {cell.case.fixture.name for cell in self.plan}
        return {
            case.fixture.name: self.facts.setdefault(case.fixture.name, SessionFacts(case))
            for case in self.cases
            if case.fixture.name in own
        }

    async def read_ahead(self) -> None:
        """Read what is left to read of the sessions while models are at work, not when everything else is done."""
        await self.begun.wait()
        await read_ahead(self._read.values())

    def measurement(
        self,
        records: Sequence[RunRecord],
        controls: dict[str, Controls],
        runs: int,
        at_budgets: Mapping[str, list[FrontierPoint]] | None = None,
    ) -> Measurement:
        """Put the measurement together; with `at_budgets`, the points for the picture of facts by size are in it."""
        sha, dirty = source_commit(self.tree)
        fixtures: dict[str, list[RunRecord]] = {case.fixture.name: [] for case in self.cases}
        use: dict[str, ModelUse] = {}
        for record in records:
            fixtures[record.fixture].append(record)
            for role, spent in record.use.items():
                use[role] = use.get(role, ModelUse()) + spent
        read = self._read
        return Measurement(
            label=self.label,
            offline=self.roles.offline,
            deterministic=True if getattr(self.roles.subject, "deterministic", False) else None,
            fingerprint=self.fingerprint,
            provenance=Provenance(
                target=self.roles.subject.name,
                source_sha=sha,
                dirty=dirty,
                date=now().strftime("%Y-%m-%dT%H:%M:%SZ"),
                version=package_version(),
                seed=self.seed,
                sandbox=self.roles.sandbox,
                environment=environment(self.source),
            ),
            models=self.fingerprint.models,
            planned_runs=runs,
            planned_compress_runs=max(self.runs, self.compress_runs),
            fixtures=fixtures,
            probe_types={case.fixture.name: case.probe_types for case in self.cases},
            drafts=draft_counts(self.cases),
            controls=controls,
            census={name: facts.entries for name, facts in read.items()},
            frontier={}
            if at_budgets is None
            else {name: [*facts.frontier, *at_budgets.get(name, [])] for name, facts in read.items()},
            use=use,
            stopped=self.stopped(),
            extra=Extra(shard=None if self.shard is None else str(self.shard)),
        )

    def finish(self, measurement: Measurement) -> Measurement:
        """Write the summary."""
        self.folder.write_measurement(measurement)
        return measurement


async def read_ahead(sessions: Iterable[SessionFacts], enough: Callable[[], bool] = lambda: False) -> None:
    """Compute what the sessions alone decide, in small pieces: a compression that wants its turn goes in between."""
    known = list(sessions)
    for piece in ("census", "text", "cuts", "frontier"):  # in the order in which they are needed
        for facts in known:
            if enough():
                return
            await compute(getattr, facts, piece)


async def _execute(
    sessions: Sequence[MeasuringSession], plans: Sequence[Sequence[Cell]], *, again: bool = False
) -> list[list[RunRecord]]:
    """Execute the plans of all sessions, a cell of each in turn; the order of each result is that of its plan.

    With `again`, only what a provider's fault kept from being measured.
    """
    executors = [session.executor() for session in sessions]
    done: list[dict[int, RunRecord]] = []
    for session, plan in zip(sessions, plans, strict=True):
        finished = session.measured if again else session.finished
        done.append({at: record for at, cell in enumerate(plan) if (record := finished(cell))})
        for record in done[-1].values():
            if record.graded or record.run >= session.runs:
                session.tell(record)
    if any(executor.deterministic for executor in executors):
        for executor, plan, known in zip(executors, plans, done, strict=True):
            missing = [at for at in range(len(plan)) if at not in known]
            fresh = await executor.run([plan[at] for at in missing])
            known.update(zip(missing, fresh, strict=True))
    else:
        turns = [
            (arm, at)
            for at in range(max(map(len, plans), default=0))
            for arm, plan in enumerate(plans)
            if at < len(plan) and at not in done[arm]
        ]
        slots = max(session.concurrency for session in sessions)
        for (arm, at), record in zip(
            turns,
            await run_in_turn([(executors[arm], plans[arm][at]) for arm, at in turns], slots, sessions[0].cut),
            strict=True,
        ):
            done[arm][at] = record
    return [[known[at] for at in range(len(plan))] for known, plan in zip(done, plans, strict=True)]


async def _examined(
    sessions: Sequence[MeasuringSession], records: Sequence[Sequence[RunRecord]]
) -> list[list[RunRecord]]:
    return [await session.examined(found) for session, found in zip(sessions, records, strict=True)]


async def compress_all(sessions: Sequence[MeasuringSession]) -> list[list[RunRecord]]:
    """Compress all cases of several targets, their fixture-runs in alternation, and read what is left of the facts."""
    for session in sessions:
        session.open()
    return await _examined(sessions, await _execute(sessions, [session.plan for session in sessions]))


AfterFacts = Literal["grade", "more", "stop"]
"""What follows when all compressions are there: grading, more compressions, or nothing."""


async def measure_together(
    sessions: Sequence[MeasuringSession],
    after_facts: Callable[[Sequence[Measurement]], Awaitable[AfterFacts]] | None = None,
) -> list[Measurement]:
    """Measure several targets in one go, their fixture-runs in alternation; the first one's controls serve all.

    With `after_facts`, all compressions come first, and what they show says what follows. Summaries are the caller's
    to write: `Session.finish`, or with more in them.
    """
    for session in sessions:
        session.open()
    follows: AfterFacts = "grade" if after_facts is None else "more"
    while after_facts is not None and follows == "more":
        facts_only = [[replace(cell, graded=False) for cell in session.plan] for session in sessions]
        facts = await _examined(sessions, await _execute(sessions, facts_only))
        measured = [session.measurement(found, {}, runs=0) for session, found in zip(sessions, facts, strict=True)]
        follows = await after_facts(measured)
        if follows == "stop":
            for session, found in zip(sessions, facts, strict=True):
                for record in found:
                    session.tell(record)
            return await _with_sizes(sessions, facts, {}, graded=False)
    plans = [session.plan for session in sessions]
    begun = sessions[-1].begun

    async def execute() -> list[list[RunRecord]]:
        try:
            return await _execute(sessions, plans)
        finally:
            begun.set()

    # In this order: compressions are what everything else waits for, controls fill the gaps. The rest of the sessions
    # is read when the first calls are made: before that, every moment of the processor is wanted for their prompts.
    records, controls, _ = await asyncio.gather(execute(), sessions[0].controls(), sessions[-1].read_ahead())
    if any(session.missed_by_chance(cell) for session, plan in zip(sessions, plans, strict=True) for cell in plan):
        # What failed among good replies is asked for once more, now that the provider may have recovered.
        records = await _execute(sessions, plans, again=True)
    records = await _examined(sessions, records)
    if not sessions[0].stopped() and any(
        None in (probe.ceiling, probe.floor) for found in controls.values() for probe in found.probes.values()
    ):
        controls = await sessions[0].controls()
    return await _with_sizes(sessions, records, controls, graded=True)


async def _with_sizes(
    sessions: Sequence[MeasuringSession],
    records: Sequence[Sequence[RunRecord]],
    controls: dict[str, Controls],
    *,
    graded: bool,
) -> list[Measurement]:
    """Put the measurements together, with what the candidate, which comes last, keeps at its other budgets.

    The base is one point in the candidate's picture.
    """
    curves = [*([{}] * (len(sessions) - 1)), await sessions[-1].at_budgets()]
    return [
        session.measurement(found, controls, runs=session.runs if graded else 0, at_budgets=curve)
        for session, found, curve in zip(sessions, records, curves, strict=True)
    ]
