"""Executing a plan: compress, attribute facts, ask, grade; each finished fixture-run is written down at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eval_core.base.messages import Message
from eval_core.base.threads import compute
from eval_core.base.tokens import count_messages
from eval_core.domain.call import ArmName, Draw, OpaqueState
from eval_core.domain.case import Case, Cell
from eval_core.domain.compression import CanRecall, Compression, ModelUse, Outcome, Step, Subject, both_ends
from eval_core.domain.first_trigger import TriesTrigger
from eval_core.domain.fixture import Fixture
from eval_core.domain.grade import Answer, Answerer, Grade, Judge, Obeyer, OpaqueAnswerer, Unscored
from eval_core.domain.model_failure import TriesFailures
from eval_core.domain.next_request import TakesTurn
from eval_core.domain.probe import Probe
from eval_core.domain.record import CensusRecord, ProbeRecord, RunRecord, SizeRecord, reply_use
from eval_core.facts.bare import usable_texts
from eval_core.facts.census import CensusFact
from eval_core.facts.fact_text import Haystack
from eval_core.facts.haystack import fact_key
from eval_core.facts.retention import CensusRetention, StateFacts, census_retention, probe_in_session
from eval_core.facts.session_facts import SessionFacts
from eval_core.facts.verbatim import Kept
from eval_core.judging.fact_judge import FactJudge
from eval_core.measuring.ask_obeys import OBEYED_RUNS, ask_obeys
from eval_core.storage.round_log import RoundFile
from eval_core.strands.asks import read_asks
from eval_core.strands.form import read_form, written_texts
from eval_core.strands.invented import read_invented, read_stale
from eval_core.strands.obeys import OBEYS
from eval_core.strands.recovery import Asked
from eval_core.strands.registry import read_strands
from eval_core.strands.rounds import record_rounds
from eval_core.strands.shown import Requests
from eval_core.strands.strand import SeenRun
from eval_core.strands.structure import structure_checks
from eval_core.strands.window import read_window

_Reply = tuple[Answer | None, Grade | Unscored]
_LAST_WORDS = 1.0  # seconds in which a fixture-run whose calls were given up can still write its record
_OUTPUT = 4_000  # characters of what a compressor printed that are kept where it failed
_WORST = 12  # lost census facts named in a record; the counts cover all of them


def _stored_compression(record: RunRecord) -> Compression:
    """Take a finished compression up again: it was paid for, and a second one would be another draw."""
    return Compression(
        record.outcome,
        record.detail,
        steps=(
            Step(
                record.messages,
                record.tokens_before,
                record.tokens_after,
                record.seconds,
                queued_seconds=record.queued_seconds,
                opaque=record.opaque,
            ),
        ),
        start_seconds=record.cold_seconds,
        use=record.use.get("compressor", ModelUse()),
        notes=tuple(record.notes),
        refused=record.refused,
    )


def _as_shown(record: RunRecord, earlier: RunRecord) -> RunRecord:
    """Take over what an earlier record of the same compression says of its requests and its rounds."""
    signs = {(name, fact.label): fact.shown for name, probe in earlier.probes.items() for fact in probe.facts}
    probes = {
        name: probe.model_copy(
            update={
                "facts": [fact.model_copy(update={"shown": signs.get((name, fact.label), "")}) for fact in probe.facts]
            }
        )
        for name, probe in record.probes.items()
    }
    return record.model_copy(
        update={
            "shown": earlier.shown,
            "asks": earlier.asks,
            "held": earlier.held,
            "probes": probes,
            "strands": {**record.strands, **earlier.strands, **_asked_again(record)},
        }
    )


def _asked_again(record: RunRecord) -> dict[str, dict[str, Any]]:
    """Return what was asked about the state and not read from it: it is newer than what an earlier record holds."""
    return {name: found for name, found in record.strands.items() if name == OBEYS}


def _measurable(compression: Compression) -> bool:
    """Tell whether there is a state that can be read."""
    made = compression.outcome in (Outcome.OK, Outcome.NOT_COMPRESSED) and bool(compression.steps)
    return made and compression.opaque is None


@dataclass
class Executor:
    """Runs cells of a plan with one subject, one answerer and one judge."""

    subject: Subject
    answerer: Answerer
    judge: Judge
    seed: int = 0
    focus_topic: str | None = None
    concurrency: int = 16
    arm: ArmName = "candidate"
    """The side of the comparison whose cells these are."""
    on_record: Callable[[RunRecord], None] = lambda record: None
    halted: Callable[[], str | None] = lambda: None
    """Why no fixture-run should begin any more."""
    compressed: Mapping[tuple[str, int], RunRecord] = field(default_factory=dict)
    """Fixture-runs whose compression is done; only what is asked about it may be missing."""
    known: dict[str, SessionFacts] = field(default_factory=dict)
    """What is read of each fixture once."""
    obeyers: Sequence[Obeyer] = ()
    """Models that choose and act from graded states."""
    obeyed_runs: int = OBEYED_RUNS
    """Of so many runs."""
    tried_on: str = ""
    """The fixture on whose first run the compressor is also put before failing models, and asked when it sets in."""
    log_of: Callable[[str, int], RoundFile | None] = lambda fixture, run: None
    """Where the rounds of a fixture-run are written down until it is finished."""
    rounds_only: bool = False
    """Whether only what became of the facts round by round is wanted: all else is as much work again, and unused."""

    @property
    def deterministic(self) -> bool:
        """Whether every run of a fixture must come out the same, so that one is enough."""
        parts = (self.subject, self.answerer, self.judge)
        return not self.obeyers and all(getattr(part, "deterministic", False) for part in parts)

    async def run(self, cells: Sequence[Cell]) -> list[RunRecord]:
        """Execute cells, several at once; the order of the result is the order of the plan."""
        if self.deterministic:
            return await self._run_once_each(cells)
        return await run_in_turn([(self, cell) for cell in cells], self.concurrency)

    async def _run_once_each(self, cells: Sequence[Cell]) -> list[RunRecord]:
        first: dict[tuple[str, bool], RunRecord] = {}
        records = []
        for cell in cells:
            key = (cell.case.fixture.name, cell.graded)
            if key in first:
                record = first[key].model_copy(update={"run": cell.run})
                self.on_record(record)
            else:
                record = first[key] = await self.cell(cell)
            records.append(record)
        return records

    async def cell(self, cell: Cell) -> RunRecord:
        """Execute one cell and hand its record on."""
        earlier = self.compressed.get((cell.case.fixture.name, cell.run))
        if earlier is None and (why := self.halted()) is not None:
            return self.unfinished(cell, f"not started: {why}")
        if earlier is not None:
            compression = _stored_compression(earlier)
        else:
            compression = await self._compress(cell)
            if (cell.case.fixture.name, cell.run) == (self.tried_on, 0):
                compression = await self._try(cell.case.fixture, compression)
        record = await self._measure(cell, compression)
        if earlier is not None:
            # The requests are gone, and what they showed was written down when they were made.
            record = _as_shown(record, earlier)
        self.on_record(record)
        return record

    async def _try(self, fixture: Fixture, done: Compression) -> Compression:
        """Add what is tried once for each measurement; it takes seconds and no model."""
        if isinstance(self.subject, TriesFailures):
            done = replace(done, with_failing_models=await self.subject.try_failures(fixture))
        if "trigger" in done.answers and isinstance(self.subject, TriesTrigger):
            done = replace(done, trigger=await self.subject.first_trigger(fixture))
        if "turn" in done.answers and isinstance(self.subject, TakesTurn):
            done = replace(done, next_turn=await self.subject.next_turn(fixture))
        return done

    async def _compress(self, cell: Cell) -> Compression:
        """Compress; of a session in several rounds, go on after the last one that is written down."""
        fixture = cell.case.fixture
        log = self.log_of(fixture.name, cell.run) if fixture.segments else None
        done = await self.subject.compress(
            fixture,
            run=cell.run,
            seed=self.seed + cell.run,
            focus_topic=self.focus_topic or fixture.focus_topic,
            **({} if log is None else {"log": log}),
        )
        if log is not None and not done.outcome.retryable:
            log.remove()
        return await self._recall(cell.case, done) if self.rounds_only else done

    async def _recall(self, case: Case, done: Compression) -> Compression:
        """Let the agent's own search look for what the last state of a session has lost."""
        subject = self.subject
        if not isinstance(subject, CanRecall) or not subject.recalls or case.ledger is None or not _measurable(done):
            return done
        asked = await compute(Asked.of, Kept(case.fixture.messages, done.state), case.ledger)
        found = await subject.recall(case.fixture, asked.removed, await compute(asked.questions))
        return replace(done, recalled=found)

    def unfinished(self, cell: Cell, why: str) -> RunRecord:
        """Return the record of a cell that was not executed; it is written nowhere, and a resumed run executes it."""
        tokens = count_messages(cell.case.fixture.messages)
        return RunRecord(
            fixture=cell.case.fixture.name,
            run=cell.run,
            graded=cell.graded,
            outcome=Outcome.INFRA,
            detail=why,
            tokens_before=tokens,
            tokens_after=0,
            seconds=0.0,
        )

    async def _measure(self, cell: Cell, compression: Compression) -> RunRecord:
        state = compression.opaque or compression.state
        asked = cell.graded and cell.run < self.obeyed_runs and self.obeyers
        if not asked or not (_measurable(compression) or compression.opaque):
            return await self._measured(cell, compression)
        draw = Draw(cell.run, self.arm)
        obeyed = asyncio.create_task(ask_obeys(cell.case, state, self.obeyers, draw))
        try:
            record = await self._measured(cell, compression)
            found, use = await obeyed
        finally:
            obeyed.cancel()
        if not record.ok or found is None:
            return record
        update = {"strands": {**record.strands, OBEYS: found}, "use": {**record.use, OBEYS: use}}
        return record.model_copy(update=update)

    async def _measured(self, cell: Cell, compression: Compression) -> RunRecord:
        # Reading takes processor time; in a thread, calls go out meanwhile. Models need nothing of what is read, so
        # that they are asked at the same time.
        asked: asyncio.Task[dict[str, _Reply]] | None = None
        if cell.graded and _measurable(compression) and not isinstance(self.judge, FactJudge):
            asked = asyncio.create_task(self._ask(cell, compression.state))
        try:
            bare, facts = await compute(self._read, cell, compression)
            if asked is not None and facts is not None:
                return await compute(self._attribute, cell, bare, facts, await asked)
        finally:
            if asked is not None:
                asked.cancel()
        if compression.opaque is not None and bare.ok:
            replies = await self._ask(cell, compression.opaque) if cell.graded else {}
            probes = {
                key: ProbeRecord(facts=[], answer=answer, result=result) for key, (answer, result) in replies.items()
            }
            return bare.model_copy(update={"probes": probes, "use": {**bare.use, **_reply_uses(probes)}})
        if facts is None:
            return bare
        replies = await self._ask(cell, compression.state, facts.state) if cell.graded else {}
        return await compute(self._attribute, cell, bare, facts, replies)

    def _bare(self, cell: Cell, compression: Compression) -> RunRecord:
        fixture = cell.case.fixture
        return RunRecord(
            fixture=fixture.name,
            run=cell.run,
            graded=cell.graded,
            outcome=compression.outcome,
            detail=compression.detail,
            notes=list(compression.notes),
            output="" if compression.outcome is Outcome.OK else both_ends(compression.output.strip(), _OUTPUT),
            tokens_before=count_messages(fixture.messages),
            tokens_after=compression.steps[-1].tokens_after
            if compression.opaque
            else count_messages(compression.state),
            seconds=compression.seconds,
            cold_seconds=compression.cold_seconds,
            queued_seconds=compression.queued_seconds,
            messages=compression.state,
            opaque=compression.opaque,
            use={"compressor": compression.use},
            refused=compression.refused,
        )

    def _read(self, cell: Cell, compression: Compression) -> tuple[RunRecord, StateFacts | None]:
        fixture = cell.case.fixture
        bare = self._bare(cell, compression)
        if self.rounds_only:
            return _with_rounds(bare, cell, compression), None
        known = self.known.setdefault(fixture.name, SessionFacts(cell.case))
        if compression.requests is not None:
            # What was asked is known where the compressor failed, too.
            asks = read_asks(compression.requests, compression.steps, known.said)
            bare = bare.model_copy(update={"asks": asks})
        if not _measurable(compression):
            return bare, None
        state = compression.state
        kept = Kept(fixture.messages, state)
        retention = census_retention(known.census, fixture.messages, state, kept)
        written = written_texts(kept)
        held = Haystack.of_messages(state)
        read = {
            "summary": "\n\n".join(kept.own_texts),
            "verbatim": sorted(kept.indexes),
            "census": _census_record(known.census, retention),
            "structure": structure_checks(fixture.messages, state, kept),
            "window": read_window(kept),
            "form": read_form(written),
            "invented": read_invented(written, known.text),
            "stale": read_stale(cell.case.bank.probes, held),
            "strands": read_strands(SeenRun(fixture, compression, kept, cell.case.ledger)),
        }
        facts = StateFacts(held, kept.haystack, known.evidence)
        usable = usable_texts(kept)
        if usable != kept.own_texts:
            carried = Haystack.of_all([kept.haystack.source, *usable])
            read["bare"] = known.held_by(held) - known.held_by(carried)
        if len(compression.steps) > 1:
            read["held"] = [known.kept_by(step.messages) for step in compression.steps]
        if compression.requests is not None:
            states = [step.messages for step in compression.steps]
            requests = Requests(compression.requests, fixture.messages, fixture.cuts, states)
            read["shown"] = requests.record([fact for fact, _ in known.authored], known.census, known.lines)
            facts = replace(facts, sign=requests.sign)
        return bare.model_copy(update=read), facts

    def _attribute(self, cell: Cell, bare: RunRecord, facts: StateFacts, replies: Mapping[str, _Reply]) -> RunRecord:
        probes = {probe.id: self._probe_record(probe, replies.get(probe.id), facts) for probe in cell.case.probes}
        known = self.known[cell.case.fixture.name]
        # Without the private ones: they rotate, and what is counted here must be the same facts in every run.
        public = (fact for probe in cell.case.bank.probes for fact in probes[probe.id].facts if fact.evidence)
        authored = list({fact_key(fact.label): fact for fact in public}.values())
        kept = sum(fact.kept for fact in authored) + len(bare.census.fates) - bare.census.fates.count("0")
        again = [place for fact in authored if not fact.kept and (place := known.had_again(fact.evidence)) is not None]
        return bare.model_copy(
            update={
                "probes": probes,
                "size": SizeRecord(
                    facts=known.total,
                    kept=kept,
                    recency=round(known.recency(bare.tokens_after), 2),
                    proportional=round(known.proportional(bare.tokens_after), 2),
                ),
                "refetch_tokens": sum(known.tokens[index] for index in set(again)),
                "refetch_facts": len(again),
                "turns_ahead": known.turns_ahead,
                "use": {**bare.use, **_reply_uses(probes)},
            }
        )

    async def _answer(
        self, state: list[Message] | OpaqueState, probe: Probe, name: str, draw: Draw
    ) -> Answer | Unscored:
        if not isinstance(state, OpaqueState):
            return await self.answerer.answer(state, probe, fixture=name, draw=draw)
        if not isinstance(self.answerer, OpaqueAnswerer):
            reason = "no answer: the compressed state can only be read by its provider"
            return Unscored(code="unreadable", missing="answer", reason=reason)
        return await self.answerer.answer_opaque(state, probe, fixture=name, draw=draw)

    async def _ask(
        self, cell: Cell, state: list[Message] | OpaqueState, held: Haystack | None = None
    ) -> dict[str, _Reply]:
        name, draw = cell.case.fixture.name, Draw(cell.run, self.arm)

        async def reply(probe: Probe) -> _Reply:
            answer = await self._answer(state, probe, name, draw)
            if isinstance(answer, Unscored):
                if answer.missing is None:
                    answer = Unscored(code=answer.code, missing="answer", reason=f"no answer: {answer.reason}")
                return None, answer
            if held is not None and isinstance(self.judge, FactJudge):
                return answer, self.judge.grade_state(probe_in_session(probe, self.known[name].evidence), held)
            return answer, await self.judge.grade(probe, answer.text, fixture=name, draw=draw)

        probes = cell.case.probes
        replies = await asyncio.gather(*map(reply, probes))
        return {probe.id: reply for probe, reply in zip(probes, replies, strict=True)}

    @staticmethod
    def _probe_record(probe: Probe, reply: _Reply | None, facts: StateFacts) -> ProbeRecord:
        answer, result = reply or (None, None)
        record = ProbeRecord(facts=facts.probe(probe, answer.text if answer else None), answer=answer, result=result)
        return record.redacted if probe.private else record


async def run_in_turn(
    jobs: Sequence[tuple[Executor, Cell]], concurrency: int, cut: asyncio.Event | None = None
) -> list[RunRecord]:
    """Execute cells, so many at once, and begin them in the order given; those that run when `cut` is set end there."""
    slots = asyncio.Semaphore(concurrency)

    async def one(executor: Executor, cell: Cell) -> RunRecord:
        async with slots:
            return await executor.cell(cell)

    if cut is None:
        return list(await asyncio.gather(*(one(executor, cell) for executor, cell in jobs)))
    tasks = [asyncio.create_task(one(executor, cell)) for executor, cell in jobs]
    done = asyncio.gather(*tasks, return_exceptions=True)
    waiter: asyncio.Future[bool] = asyncio.create_task(cut.wait())
    try:
        ends: set[asyncio.Future[Any]] = {done, waiter}
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if cut.is_set() and not done.done():
            await asyncio.wait({done}, timeout=_LAST_WORDS)
            for task in tasks:
                task.cancel()
        results = await done
    finally:
        waiter.cancel()
        for task in tasks:
            task.cancel()
    records = []
    for (executor, cell), result in zip(jobs, results, strict=True):
        if isinstance(result, asyncio.CancelledError):
            records.append(executor.unfinished(cell, "the run was interrupted"))
        elif isinstance(result, BaseException):
            raise result
        else:
            records.append(result)
    return records


def _reply_uses(probes: dict[str, ProbeRecord]) -> dict[str, ModelUse]:
    answered = [record.answer for record in probes.values() if record.answer]
    # Of answers that share a call, the first has its tokens.
    answers = [reply_use(answer) for answer in [one for one in answered if one.input_tokens] or answered]
    grades = [reply_use(record.result) for record in probes.values() if isinstance(record.result, Grade)]
    return {"answer": sum(answers, ModelUse()), "judge": sum(grades, ModelUse())} if answers or grades else {}


def _census_record(facts: Sequence[CensusFact], retention: CensusRetention) -> CensusRecord:
    lost, retained = set(retention.lost), set(retention.retained)
    worst = sorted(retention.lost, key=lambda fact: (-fact.salience, fact.kind, fact.value))[:_WORST]
    return CensusRecord(
        total=_by_kind(facts),
        at_risk=_by_kind([*retention.retained, *retention.lost]),
        lost=_by_kind(retention.lost),
        worst=[f"{fact.kind}: {fact.value}" for fact in worst],
        fates="".join("0" if fact in lost else "1" if fact in retained else "-" for fact in facts),
    )


def _with_rounds(bare: RunRecord, cell: Cell, compression: Compression) -> RunRecord:
    if not _measurable(compression):
        return bare
    kept = Kept(cell.case.fixture.messages, compression.state)
    rounds = record_rounds(SeenRun(cell.case.fixture, compression, kept, cell.case.ledger))
    checks = structure_checks(cell.case.fixture.messages, compression.state, kept)
    return bare.model_copy(update={"structure": checks, "strands": {} if rounds is None else {"rounds": rounds}})


def _by_kind(facts: Sequence[CensusFact]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for fact in facts:
        counts[fact.kind] = counts.get(fact.kind, 0) + 1
    return dict(sorted(counts.items()))
