"""One measuring session, from plan to measurement: controls, provenance, resume."""

from __future__ import annotations

import asyncio
import datetime
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from eval_core.base.errors import UserError
from eval_core.base.files import digest, pretty, read_json, write_atomic
from eval_core.base.messages import Message
from eval_core.base.threads import compute
from eval_core.domain.call import ArmName, Draw
from eval_core.domain.case import Case, Cell, draft_counts, make_plan
from eval_core.domain.compression import Outcome, Subject, TakesBudget
from eval_core.domain.extra import Extra
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.grade import Answer, Answerer, Grade, Judge
from eval_core.domain.measurement import Controls, Measurement, ProbeControl, Provenance
from eval_core.domain.probe import Probe
from eval_core.domain.record import FrontierPoint, RunRecord, UseRecord
from eval_core.domain.shard import Shard
from eval_core.domain.target import CompressorSource
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import holds
from eval_core.facts.retention import FixtureFacts, probe_in_session
from eval_core.facts.session_facts import SessionFacts
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.blame import PlainRequests, examine, own_doing, settle_refusals, suspects
from eval_core.measuring.execute import Executor, run_in_turn
from eval_core.measuring.wiring import Roles, make_fingerprint
from eval_core.storage.results import Claim, ResultsFolder, claim_folder

__all__ = [
    "CONTROL",
    "CONTROLS",
    "AfterFacts",
    "MeasuringSession",
    "control_key",
    "find_controls",
    "keep_controls",
    "measure_controls",
    "measure_together",
    "now",
    "package_version",
    "read_ahead",
    "source_commit",
]

# Where a result comes from: source commit, date, version.


def now() -> datetime.datetime:
    """Return the current time in UTC."""
    return datetime.datetime.now(datetime.UTC)


def package_version() -> str:
    """Return the installed version of this program."""
    try:
        return version("compression-eval")
    except PackageNotFoundError:
        return "unreleased"


def source_commit(tree: Path) -> tuple[str | None, bool]:
    """Return the commit a folder is at and whether it has uncommitted changes; (None, False) outside of git."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    sha = git("rev-parse", "HEAD")
    return sha, bool(sha and git("status", "--porcelain", "--untracked-files=no"))


# Controls: the same probes on the full transcript and on nothing, so that a bad probe is not blamed on anybody.

CONTROLS = "controls"
"""The folder below the results that keeps controls by what they depend on."""

CONTROL = Draw(control=True)
_CEILING_FAILS = 2.0
_FLOOR_PASSES = 2.5


def control_key(case: Case, answerer: Mapping[str, str], judge: Mapping[str, str]) -> str:
    """Return what identifies the controls of a case: the session, its probes, and who answers and grades."""
    return digest(
        {
            "fixture": case.fixture.digest,
            "probes": case.bank.digest,
            **({"private": [case.private.digest, sorted(case.probe_types)]} if case.private else {}),
            "answer": dict(answerer),
            "judge": dict(judge),
        }
    )


def _of_measurement(case: Case, answerer: Mapping[str, str], judge: Mapping[str, str], stored: Measurement) -> bool:
    """Tell whether a stored measurement asked the same probes of the same session, with the same models."""
    name, print_ = case.fixture.name, stored.fingerprint
    answer, grade = dict(answerer), dict(judge)
    return (
        name in stored.controls
        and print_.fixtures.get(name) == case.fixture.digest
        and print_.probes.get(name) == case.bank.digest
        and (case.private is None or print_.private.get(name) == case.private.digest)
        and (print_.answer_template, print_.rubric) == (answer.pop("template", "none"), grade.pop("rubric", "none"))
        and (print_.answer_model, print_.judge_model) == (answer, grade)
    )


def find_controls(
    case: Case,
    answerer: Mapping[str, str],
    judge: Mapping[str, str],
    results: Path,
    measurements: Iterable[Measurement] = (),
) -> Controls | None:
    """Return controls that were paid for before: of a stored baseline or an earlier run."""
    for stored in measurements:
        if _of_measurement(case, answerer, judge, stored):
            return stored.controls[case.fixture.name]
    path = results / CONTROLS / f"{control_key(case, answerer, judge)}.json"
    try:
        return Controls.model_validate(read_json(path)) if path.exists() else None
    except (UserError, ValidationError):
        return None


def keep_controls(
    case: Case, answerer: Mapping[str, str], judge: Mapping[str, str], results: Path, controls: Controls
) -> None:
    """Keep controls for later runs; where a grade is missing they are measured again."""
    if all(probe.ceiling is not None and probe.floor is not None for probe in controls.probes.values()):
        path = results / CONTROLS / f"{control_key(case, answerer, judge)}.json"
        write_atomic(path, pretty(controls.model_dump(mode="json")))


async def _overall(
    state: list[Message], case: Case, probe: Probe, answerer: Answerer, judge: Judge, control: str
) -> float | None:
    name = f"{case.fixture.name}/{control}"
    answer = await answerer.answer(state, probe, fixture=name, draw=CONTROL)
    if not isinstance(answer, Answer):
        return None
    if isinstance(judge, FactJudge):
        held = probe_in_session(probe, FixtureFacts(case.fixture))
        return judge.grade_state(held, Haystack.of_messages(state)).overall
    grade = await judge.grade(probe, answer.text, fixture=name, draw=CONTROL)
    return grade.overall if isinstance(grade, Grade) else None


def _share(probe: Probe, text: Haystack) -> float:
    return sum(holds(fact, text) for fact in probe.required) / len(probe.required)


async def measure_controls(
    case: Case, answerer: Answerer, judge: Judge, turns: asyncio.Semaphore | None = None
) -> Controls:
    """Measure ceiling and floor of every probe of a case; `turns` limits how many are measured at the same time.

    Controls fill gaps, so no more prompts are written ahead than can fill them; those of the floor are short.
    """
    turns = turns or asyncio.Semaphore(16)
    banks = case.probes

    async def one(state: list[Message], probe: Probe, control: str) -> float | None:
        async with turns:
            return await _overall(state, case, probe, answerer, judge, control)

    floors, ceilings = await asyncio.gather(
        asyncio.gather(*(one([], probe, "empty") for probe in banks)),
        asyncio.gather(*(one(case.fixture.messages, probe, "full") for probe in banks)),
    )
    full, empty = await compute(Haystack.of_messages, case.fixture.messages), Haystack.of("")
    probes = {}
    for probe, ceiling, floor in zip(banks, ceilings, floors, strict=True):
        reason = None
        if not _share(probe, full):
            reason = "none of its facts is in the session"
        elif isinstance(judge, FactJudge):
            # Rules answer worse than a model would: that says nothing about the probe.
            pass
        elif ceiling is not None and ceiling < _CEILING_FAILS:
            reason = f"the full transcript scores only {ceiling:.1f}"
        elif floor is not None and floor > _FLOOR_PASSES:
            reason = f"no context at all scores {floor:.1f}"
        probes[probe.id] = ProbeControl(
            ceiling=ceiling,
            floor=floor,
            ceiling_facts=_share(probe, full),
            floor_facts=_share(probe, empty),
            quarantined=reason,
        )
    return Controls(probes=probes)


# One run from plan to measurement.


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
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the first fixture-run is measured, or when none is left to measure."""
    _known: dict[tuple[str, int], RunRecord] = field(default_factory=dict)
    _told: set[tuple[str, int]] = field(default_factory=set)

    async def measure(self) -> Measurement:
        """Execute the plan."""
        return self.finish((await measure_together([self]))[0])

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What the measurement can be compared with."""
        return make_fingerprint(self.cases, self.roles, self.focus_topic)

    def open(self) -> None:
        """Claim the folder and take up what is finished there."""
        claim = Claim(target=self.roles.subject.name, source=self.source, seed=self.seed, fingerprint=self.fingerprint)
        claim_folder(self.folder, claim, resume=self.resume)
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
        cells = make_plan(self.cases, self.runs, compress_runs)
        stored = [self.folder.read_run(cell.case.fixture.name, cell.run) for cell in cells]
        return sum(record is None or not record.ok for record in stored)

    @property
    def plan(self) -> list[Cell]:
        """All fixture-runs of this session."""
        plan = make_plan(self.cases, self.runs, self.compress_runs)
        return plan if self.shard is None else self.shard.cells(plan)

    @property
    def _own_cases(self) -> Sequence[Case]:
        """The cases whose first run is measured here, and their controls with it."""
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
        if set(record.probes) != set(cell.case.probe_types):
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
        # A completion that is of no use among others that are is a fault too; where none is, another would not be.
        lone = record.outcome is Outcome.BAD_COMPLETION and any(other.ok for other in self._known.values())
        return record.outcome is Outcome.INFRA or lone or bool(codes & _BY_CHANCE)

    def settled(self, cell: Cell) -> RunRecord | None:
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
        settled = list(found.values()) if self.shard is not None else settle_refusals(list(found.values()))
        for record, before in zip(settled, records, strict=True):
            if record is not before:
                self._keep(record)
        return settled

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
        answerer, judge, results = self.roles.answerer, self.roles.judge, self.results
        known = self.known_controls.get(case.fixture.name)
        if known is None and results is not None:
            known = find_controls(case, answerer.identity, judge.identity, results)
        if known is not None and set(case.probe_types) <= set(known.probes):
            return Controls(probes={name: known.probes[name] for name in case.probe_types})
        measured = await measure_controls(case, answerer, judge, turns)
        if results is not None:
            keep_controls(case, answerer.identity, judge.identity, results, measured)
        return measured

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
        use: dict[str, UseRecord] = {}
        for record in records:
            fixtures[record.fixture].append(record)
            for role, spent in record.use.items():
                use[role] = use.get(role, UseRecord()).plus(spent)
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
            ),
            models=self.roles.models,
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
        finished = session.settled if again else session.finished
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
