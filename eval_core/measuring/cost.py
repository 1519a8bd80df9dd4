"""What a run will cost, before anything is sent: planned calls, tokens and dollars."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import fmean

from eval_core.base.config import PresetName
from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages, count_text
from eval_core.comparing.drift import GradedCell, graded_cells, sample
from eval_core.domain.call import Completion, Draw, ModelCall, Role, Usage
from eval_core.domain.case import Case, Cell, make_plan
from eval_core.domain.grade import Answer, Answerer, Judge
from eval_core.domain.measurement import Measurement
from eval_core.domain.probe import Probe
from eval_core.domain.target import Builtin, TargetSpec
from eval_core.judging.answering import ModelAnswerer, answer_messages, group_messages, grouped
from eval_core.judging.calibration import calibration_key, calibration_set, find_record
from eval_core.judging.extractive import NOT_IN_CONTEXT, ExtractiveAnswerer
from eval_core.judging.fact_judge import FactJudge
from eval_core.judging.grading import ModelJudge, example_replies, grade_messages
from eval_core.judging.judge_audit import REPEATED, labelled_set
from eval_core.measuring.grouping import find_grouping, grouping_key
from eval_core.measuring.options import Job
from eval_core.measuring.preflight import compressor_call, plain_order
from eval_core.measuring.session import find_controls
from eval_core.measuring.wiring import planned_fingerprint
from eval_core.models.client import ModelClient
from eval_core.models.offline import complete_offline
from eval_core.models.presets import LIMITS
from eval_core.models.prices import Tariff
from eval_core.models.settings import Models
from eval_core.sandbox.targets import BuiltinSubject, Target
from eval_core.storage.baselines import Reference, find_reference, stored_reference
from eval_core.storage.results import ResultsFolder

__all__ = [
    "CHECKS",
    "EstimateRow",
    "LabelPrice",
    "PlannedCalls",
    "Quote",
    "Scope",
    "StandIn",
    "estimate",
    "forecast",
    "forecast_grading",
    "make_stand_ins",
    "price_of_one_label",
    "quote",
    "quote_grading",
    "total",
]

# What a run will cost, before anything is sent.


@dataclass(frozen=True)
class PlannedCalls:
    """Calls of one role to one model, alike enough to be counted together."""

    role: Role
    model: str
    calls: int
    input_tokens: int
    """Of all calls together."""
    output_tokens: int
    """Expected of all calls together; at most calls x max_tokens."""
    shared_tokens: int = 0
    """The part of the input that stands at the beginning of an earlier call: what a prompt cache can save."""
    written_tokens: int = 0
    """The part that later calls begin with too: what a prompt cache keeps, some providers at a higher price."""


@dataclass(frozen=True)
class EstimateRow:
    """One row of the dry run's table; costs are None where the price is unknown."""

    role: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    cached_cost_usd: float | None
    """The cost when every shared beginning is read from the prompt cache."""


def estimate(plan: Iterable[PlannedCalls], tariffs: Mapping[str, Tariff | None]) -> list[EstimateRow]:
    """Price each part of the plan, with and without prompt caching."""
    rows = []
    for part in plan:
        price = tariffs.get(part.model)
        shared = min(part.shared_tokens, part.input_tokens)
        plain = None if price is None else price.cost(Usage(part.input_tokens, 0, part.output_tokens), part.calls)
        written = min(part.written_tokens, part.input_tokens - shared)
        usage = Usage(part.input_tokens, shared, part.output_tokens, written_tokens=written)
        cached = None if price is None else price.cost(usage, part.calls)
        rows.append(
            EstimateRow(part.role, part.model, part.calls, part.input_tokens, part.output_tokens, plain, cached)
        )
    return rows


def total(rows: Iterable[EstimateRow]) -> EstimateRow:
    """Sum the rows; one unknown price makes the sum unknown."""
    rows = list(rows)

    def summed(costs: list[float | None]) -> float | None:
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    return EstimateRow(
        "total",
        "",
        sum(row.calls for row in rows),
        sum(row.input_tokens for row in rows),
        sum(row.output_tokens for row in rows),
        summed([row.cost_usd for row in rows]),
        summed([row.cached_cost_usd for row in rows]),
    )


# Which calls a run will make: counted from real prompts, with stand-ins for what models have yet to write.

CACHED_FROM = 1_024
"""Providers keep the beginning of a prompt from this length on."""
CHECKS = "for checks"
"""What the calls before the run are for."""
GROUPING = "to compare shared calls"
"""What the calls are for that answer and grade every probe alone and in a shared call."""
_SHORT_SUMMARY = 60.0


@dataclass(frozen=True)
class StandIn:
    """One fixture-run as it would probably be."""

    case: Case
    prompts: tuple[tuple[Message, ...], ...]
    """What the compressor asks its model, step by step."""
    shared: tuple[int, ...]
    """How many messages at the beginning of each prompt are the same in every run."""
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
    base_runs: int = 0
    base_compress_runs: int = 0
    """Of the base, where it is measured in the same run: as often as the candidate, or once as a control."""
    other_budgets: int = 0
    """Compressions of each fixture at other budgets of the target."""
    controls: frozenset[str] | None = None
    """The fixtures whose controls are to be measured; None for all."""
    calibration: bool = True
    grouping: bool = False
    """Whether it is to be found out what sharing a call does to the answers."""
    compresses: bool = True
    """Whether the compressor asks a model."""
    drift: Measurement | None = None
    drift_sample: int = 0
    output: dict[str, float] = field(default_factory=dict)
    """Role to the tokens of a usual reply, where an earlier run of the same models tells."""
    left: Mapping[str, tuple[int, int]] | None = None
    """Fixture to graded runs and compressions, where it is not all of them: of a shard, or of a run that goes on."""
    checks: bool = True
    """Whether the models are tried first; of a run that goes on, that is in the journal."""

    def graded(self, fixture: str) -> int:
        """Return how often the probes of a fixture are asked and graded."""
        return (self.runs if self.left is None else self.left[fixture][0]) + self.base_runs

    def compressions(self, fixture: str) -> int:
        """Return how often a fixture is compressed."""
        own = self.compress_runs if self.left is None else self.left[fixture][1]
        return own + self.base_compress_runs + self.other_budgets


@dataclass
class _Tally:
    """Adds up calls of one kind."""

    calls: int = 0
    input: float = 0
    output: float = 0
    shared: float = 0
    written: float = 0

    def add(
        self, input_tokens: float, output_tokens: float, shared: float = 0, times: int = 1, written: float = 0
    ) -> None:
        self.calls += times
        self.input += times * input_tokens
        self.output += times * output_tokens
        self.shared += times * (shared if shared >= CACHED_FROM else 0)
        self.written += times * (written if written >= CACHED_FROM else 0)


def _compressions(stand_ins: Sequence[StandIn], scope: Scope) -> _Tally:
    tally = _Tally()
    for stand_in in stand_ins:
        times = scope.compressions(stand_in.case.fixture.name)
        for prompt, shared, reply in zip(stand_in.prompts, stand_in.shared, stand_in.summaries, strict=True):
            whole, same = count_messages(prompt), count_messages(prompt[:shared])
            output = scope.output.get("compressor", reply)
            tally.add(whole, output, times=min(times, 1), written=same)
            tally.add(whole, output, same, times=max(times - 1, 0))
    return tally


def _questions(
    state: list[Message],
    case: Case,
    answers: dict[str, str],
    longer: float,
    output: float | None,
    times: int,
    per_call: int = 1,
) -> _Tally:
    tally = _Tally()
    for at, probes in enumerate(grouped(case.probes, per_call)):
        prompt = group_messages(state, probes) if len(probes) > 1 else answer_messages(state, probes[0])
        state_tokens = count_messages(prompt[:-1]) + longer
        said = sum(count_text(answers[probe.id]) for probe in probes) if output is None else output
        read, written = (state_tokens, 0.0) if at else (0.0, state_tokens)
        tally.add(count_messages(prompt) + longer, said, read, times, written)
    return tally


def _grades(case: Case, answers: dict[str, str], output: float, times: int) -> _Tally:
    tally = _Tally()
    for probe in case.probes:
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
        total.written += item.written
    return total


def _calibration(output: float) -> _Tally:
    plain = [(group.probe, answer.text) for group in calibration_set().groups for answer in group.answers]
    labelled = [(group.probe, answer.text) for group in labelled_set().groups for answer in group.answers]
    again = labelled[:: max(1, len(labelled) // REPEATED)][:REPEATED]
    return _gradings([*plain, *labelled, *again], output)


def _gradings(answers: Iterable[tuple[Probe, str]], output: float) -> _Tally:
    tally = _Tally()
    for probe, text in answers:
        rubric, question = grade_messages(probe, text)
        tally.add(count_messages([rubric, question]), output, count_messages([rubric]))
    return tally


def forecast_grading(
    answers: Iterable[tuple[Probe, str]], models: Models, *, calibration: bool, output: float | None = None
) -> list[tuple[str, PlannedCalls]]:
    """Return the calls that grade these answers, after a calibration where one is needed."""
    usual = _usual_grade() if output is None else output
    rows = [("grades", _gradings(answers, usual))]
    if calibration:
        rows.append(("calibration", _calibration(usual)))
    return [
        (
            purpose,
            PlannedCalls(
                "judge", models.judge, tally.calls, round(tally.input), round(tally.output), round(tally.shared)
            ),
        )
        for purpose, tally in rows
        if tally.calls
    ]


def _usual_grade() -> float:
    return fmean(map(count_text, example_replies()))


def _checks(scope: Scope, stand_ins: Sequence[StandIn], models: Models, grade: float) -> list[tuple[Role, _Tally]]:
    """Count the calls before the run, without those that belong to the controls or the calibration anyway."""
    compress, answer, judge = _Tally(), _Tally(), _Tally()
    if scope.compresses:
        compress.add(count_messages(compressor_call(models).messages), _SHORT_SUMMARY)
    case = min((item.case for item in stand_ins), key=lambda case: case.fixture.name)
    if scope.controls is not None and case.fixture.name not in scope.controls:
        answer.add(count_messages(answer_messages([], case.bank.probes[0])), count_text(NOT_IN_CONTEXT))
    if not scope.calibration:
        group, answers = plain_order()
        for one in answers:
            judge.add(count_messages(grade_messages(group.probe, one.text)), grade)
    return [("compressor", compress), ("answer", answer), ("judge", judge)]


def _drift(scope: Scope, cases: Sequence[Case], output: float) -> _Tally:
    tally = _Tally()
    if scope.drift is None or not scope.drift_sample:
        return tally
    probes = {(case.fixture.name, probe.id): probe for case in cases for probe in case.bank.probes}
    stored: dict[GradedCell, str] = {
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
    answer, grade = scope.output.get("answer"), scope.output.get("judge", _usual_grade())
    asked = _sum(
        _questions(
            item.state,
            item.case,
            item.answers,
            0.0 if item.tokens_after is None else item.tokens_after - count_messages(item.state),
            answer,
            scope.graded(item.case.fixture.name),
            models.questions_per_call,
        )
        for item in stand_ins
    )
    rows: list[tuple[str, Role, _Tally]] = [
        ("compressions", "compressor", _compressions(stand_ins, scope)),
        ("answers", "answer", asked),
    ]
    controlled = [item for item in stand_ins if scope.controls is None or item.case.fixture.name in scope.controls]
    unknown = [dict.fromkeys(item.answers, NOT_IN_CONTEXT) for item in controlled]
    silence = float(count_text(NOT_IN_CONTEXT))
    if controlled:
        full = (_questions(item.case.fixture.messages, item.case, item.answers, 0, answer, 1) for item in controlled)
        empty = (_questions([], item.case, said, 0, silence, 1) for item, said in zip(controlled, unknown, strict=True))
        rows.append(("controls", "answer", _sum(chain(full, empty))))
    graded = (_grades(item.case, item.answers, grade, scope.graded(item.case.fixture.name)) for item in stand_ins)
    rows.append(("grades", "judge", _sum(graded)))
    if controlled:
        full = (_grades(item.case, item.answers, grade, 1) for item in controlled)
        empty = (_grades(item.case, said, grade, 1) for item, said in zip(controlled, unknown, strict=True))
        rows.append(("controls", "judge", _sum(chain(full, empty))))
    if scope.calibration:
        rows.append(("calibration", "judge", _calibration(grade)))
    if scope.grouping:
        both = (
            _questions(item.state, item.case, item.answers, 0, None, 1, size)
            for item in stand_ins
            for size in (1, models.questions_per_call)
        )
        rows.append((GROUPING, "answer", _sum(both)))
        rows.append((GROUPING, "judge", _sum(_grades(item.case, item.answers, grade, 2) for item in stand_ins)))
    if scope.checks:
        rows += [(CHECKS, role, tally) for role, tally in _checks(scope, stand_ins, models, grade)]
    rows.append(("drift sample", "judge", _drift(scope, [item.case for item in stand_ins], grade)))
    model = {"compressor": models.compressor, "answer": models.answer, "judge": models.judge}
    return [
        (
            purpose,
            PlannedCalls(
                role,
                model[role],
                tally.calls,
                round(tally.input),
                round(tally.output),
                round(tally.shared),
                round(tally.written),
            ),
        )
        for purpose, role, tally in rows
        if tally.calls
    ]


# What a job will cost, before anything is sent.

_HERE = Path()

# How long replies usually are, until a stored baseline of the same models tells.
_ANSWER_CHARS = 350  # about 60 words; the instructions allow 100, and the facts asked for need a quarter of that
_SUMMARY_CHARS = 5_000  # about 1,500 tokens: models stay far below the room they are given, and agents cap it near this
_CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class Quote:
    """Calls, tokens and cost of a job."""

    rows: tuple[EstimateRow, ...]
    """One for each role."""
    purposes: tuple[tuple[str, int], ...]
    """What the calls are for, and how many."""
    budget_usd: float
    facts_only: EstimateRow | None = None
    """What it costs where facts alone decide, and grading is left out; None where that is not tried."""
    notes: tuple[str, ...] = ()
    """What a provider allows that this job may not fit into."""

    @property
    def total(self) -> EstimateRow:
        """All roles together."""
        return total(self.rows)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose price is unknown."""
        return tuple(dict.fromkeys(row.model for row in self.rows if row.cost_usd is None))

    @property
    def covered(self) -> str:
        """Say whether the budget is enough; a price must be known."""
        budget, most, least = f"The budget of ${self.budget_usd:g}", self.total.cost_usd, self.total.cached_cost_usd
        if most is None or least is None:
            return f"{budget} cannot be kept: a price is unknown."
        if most <= self.budget_usd:
            return f"{budget} covers it."
        if least <= self.budget_usd:
            return f"{budget} covers it with prompt caching. Without it the run would stop and could be resumed."
        return f"{budget} is less than that: the run would stop and could be resumed."


async def _stand_in(case: Case, target: Target, topic: str | None, base: Measurement | None) -> StandIn:
    """Compress once by rules, writing down what a model would have been asked."""
    calls: list[ModelCall] = []
    replies: list[Completion] = []

    async def complete(call: ModelCall) -> Completion:
        calls.append(call)
        room = min(call.max_tokens, _SUMMARY_CHARS // _CHARS_PER_TOKEN)
        replies.append(await complete_offline(replace(call, max_tokens=room)))
        return replies[-1]

    # A compressor in a process of its own is not started for an estimate; the reference stands in for it.
    strategy = target.spec.name if isinstance(target.spec, Builtin) else "anchored"
    subject = BuiltinSubject(strategy, complete=complete, model="none")
    compression = await subject.compress(case.fixture, run=0, seed=0, focus_topic=topic)
    silent = not isinstance(target.spec, Builtin) and target.spec.llm == "none"
    answerer, answers = ExtractiveAnswerer(), {}
    for probe in case.probes:
        answer = await answerer.answer(compression.state, probe, fixture=case.fixture.name, draw=Draw())
        answers[probe.id] = answer.text[:_ANSWER_CHARS] if isinstance(answer, Answer) else ""
    known = [run.tokens_after for run in base.fixtures.get(case.fixture.name, []) if run.ok] if base else []
    prompts: tuple[tuple[Message, ...], ...] = () if silent else tuple(call.messages for call in calls)
    own = isinstance(target.spec, Builtin)
    # Of a compressor in a process of its own it is known only that every run begins with the same prompt.
    shared = tuple(call.shared if own or at == 0 else 0 for at, call in enumerate(calls[: len(prompts)]))
    summaries = () if silent else tuple(count_text(reply.text) for reply in replies)
    return StandIn(case, prompts, shared, summaries, compression.state, answers, fmean(known) if known else None)


def make_stand_ins(
    cases: Sequence[Case], target: Target, topic: str | None = None, base: Measurement | None = None
) -> list[StandIn]:
    """Return each fixture-run as it would probably be, from what a stored baseline tells where there is one."""

    async def each() -> list[StandIn]:
        return [await _stand_in(case, target, topic, base) for case in cases]

    return asyncio.run(each())


def _references(
    job: Job, cases: Sequence[Case], models: Models
) -> tuple[Answerer, Judge, Reference | None, Reference | None]:
    """Return who answers and judges, the stored baseline that is nearest, and what the run would be compared with."""
    client = ModelClient(models)
    answerer: Answerer = ExtractiveAnswerer() if models.offline_judge else ModelAnswerer(client)
    judge: Judge = FactJudge() if models.offline_judge else ModelJudge(client)
    fingerprint = planned_fingerprint(cases, models, job.topic)
    baselines = job.root / job.settings.baselines
    try:
        stored = stored_reference(baselines, fingerprint)
    except UserError:
        stored = None
    reference = find_reference(job.compare_to, baselines, fingerprint) if job.baseline == "stored" else None
    return answerer, judge, stored, reference


def _missing_controls(
    cases: Sequence[Case], answerer: Answerer, judge: Judge, results: Path, known: Sequence[Measurement]
) -> frozenset[str]:
    return frozenset(
        case.fixture.name
        for case in cases
        if find_controls(case, answerer.identity, judge.identity, results, known) is None
    )


def _batched(
    planned: Sequence[tuple[str, PlannedCalls]], models: Models, *, compressions: bool = True
) -> tuple[str, ...]:
    """Say what a batch means for the price."""
    usual = total(_by_role(planned, models)).cached_cost_usd
    instead = "" if usual is None else f"; without --batch and with prompt caching, all this costs about ${usual:.2f}"
    return (
        *((_AT_ONCE,) if compressions else ()),
        f"Providers do not promise prompt caching in a batch, and none is counted{instead}.",
        "A batch sets the worst case of its calls aside; what the budget has no room for follows in a further one.",
    )


_AT_ONCE = "Answers and grades are made in batches, at half the price; compressions are made at once."


def _by_role(planned: Sequence[tuple[str, PlannedCalls]], models: Models, *, batch: bool = False) -> list[EstimateRow]:
    tariffs = {model: models.tariff(model) for model in models.distinct}
    halved = {model: price.halved if price else None for model, price in tariffs.items()}
    rows: list[EstimateRow] = []
    for purpose, part in planned:
        waits = batch and part.role != "compressor" and purpose not in (CHECKS, GROUPING)
        rows += (
            estimate([replace(part, shared_tokens=0, written_tokens=0)], halved) if waits else estimate([part], tariffs)
        )
    found = []
    for role in dict.fromkeys(row.role for row in rows):
        mine = [row for row in rows if row.role == role]
        summed = total(mine)
        found.append(
            EstimateRow(
                role,
                mine[0].model,
                summed.calls,
                summed.input_tokens,
                summed.output_tokens,
                summed.cost_usd,
                summed.cached_cost_usd,
            )
        )
    return found


def _left_to_do(job: Job, plan: Sequence[Cell], done: ResultsFolder | None) -> dict[str, tuple[int, int]]:
    """Return the graded runs and the compressions of each fixture that are still to be paid for."""
    left = {cell.case.fixture.name: (0, 0) for cell in plan}
    for cell in plan if job.shard is None else job.shard.cells(plan):
        name = cell.case.fixture.name
        record = done.read_run(name, cell.run) if done else None
        made = record is not None and record.ok
        graded = made and record is not None and record.graded
        left[name] = (left[name][0] + (cell.graded and not graded), left[name][1] + (not made))
    return left


def quote(job: Job, results: Path | None = None, label: str | None = None) -> Quote | None:
    """Estimate a job; None when it runs offline and costs nothing. Nothing is sent and nothing is written.

    What a run of that label has paid for already is left out where the job goes on with it.
    """
    models = job.models
    if models is None:
        return None
    job.check()
    cases, target = job.load_cases(), job.load_target()
    answerer, judge, stored, reference = _references(job, cases, models)
    comparable = reference.measurement if reference and reference.comparable else None
    known = [stored.measurement] if stored else []
    folder = results or job.results
    calibrated = job.trust_judge or find_record(calibration_key(judge), folder, known) is not None
    base = job.expected_base(cases, folder)
    runs, compress_runs = job.plan
    base_runs, base_compress_runs = job.base_runs(base)
    plan, once = make_plan(cases, runs, compress_runs), job.shard is None or job.shard.first
    own = frozenset(cell.case.fixture.name for cell in (job.shard.cells(plan) if job.shard else plan) if cell.run == 0)
    there = None if label is None else folder / (job.shard.label(label) if job.shard else label)
    done = ResultsFolder(there) if there is not None and job.resume else None
    done = done if done is not None and done.journal.exists() else None
    scope = Scope(
        runs=runs,
        compress_runs=compress_runs,
        base_runs=base_runs,
        base_compress_runs=base_compress_runs,
        other_budgets=max(len(target.spec.budgets) - 1, 0) if isinstance(target.spec, TargetSpec) else 0,
        controls=own & _missing_controls(cases, answerer, judge, folder, known),
        calibration=not calibrated and once,
        grouping=models.questions_per_call > 1
        and once
        and find_grouping(grouping_key(answerer, judge), folder, known) is None,
        compresses=target.asks_model,
        # The sample of a run that goes on is that of its first look.
        drift=comparable if once and done is None and not base.own else None,
        drift_sample=job.drift_sample,
        output={role: use.output_tokens / use.calls for role, use in comparable.use.items() if use.calls}
        if comparable
        else {},
        left=None if job.shard is None and done is None else _left_to_do(job, plan, done),
        checks=done is None and bool(job.cells(cases)),
    )

    expected = make_stand_ins(cases, target, job.topic, comparable)
    planned = forecast(expected, models, scope)
    if models.offline_judge:
        planned = [(purpose, part) for purpose, part in planned if part.role == "compressor"]
    purposes: dict[str, int] = {}
    for purpose, part in planned:
        purposes[purpose] = purposes.get(purpose, 0) + part.calls
    rows = _by_role(planned, models, batch=job.batch)
    facts = [item for item in planned if item[0] in (CHECKS, "compressions", "calibration", GROUPING)]
    return Quote(
        tuple(rows),
        tuple(purposes.items()),
        job.budget(cases),
        total(_by_role(facts, models)) if job.stops_early and (comparable or base.own) else None,
        (
            *(_batched(planned, models) if job.batch else ()),
            *_limits(models, rows),
            *_too_long(expected, models, compresses=target.asks_model),
        ),
    )


def _limits(models: Models, rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    """Say what a provider's limits mean for the job."""
    calls: dict[PresetName, int] = {}
    for row in rows:
        preset = models.endpoints[row.model].preset
        if preset is not None and preset in LIMITS:
            calls[preset] = calls.get(preset, 0) + row.calls
    return tuple(
        f"{preset} allows {LIMITS[preset].requests_per_day} requests a day in its free tier, "
        f"{LIMITS[preset].requests_per_minute} a minute, and {LIMITS[preset].input_tokens:,} input tokens in one; "
        f"this job makes {made:,}. Use it for small suites, or turn on paid use."
        for preset, made in calls.items()
    )


def _too_long(stand_ins: Sequence[StandIn], models: Models, *, compresses: bool) -> tuple[str, ...]:
    """Name the sessions that a model cannot take: to compress them, or to answer from the whole of them."""
    notes = []
    summary, answer = models.window(models.compressor), models.window(models.answer)
    for item in stand_ins:
        name = item.case.fixture.name
        asked = max((count_messages(prompt) for prompt in item.prompts), default=0)
        whole = count_messages(item.case.fixture.messages)
        if compresses and summary is not None and asked + _SUMMARY_CHARS // _CHARS_PER_TOKEN > summary:
            notes.append(
                f"{name}: the compressor's prompt of {asked:,} tokens does not fit {models.compressor} ({summary:,})."
            )
        if answer is not None and whole + models.answer_max_tokens > answer:
            notes.append(
                f"{name}: the whole session of {whole:,} tokens, which the controls ask about, does not fit "
                f"{models.answer} ({answer:,})."
            )
    return tuple(notes)


def quote_grading(
    job: Job, answers: Sequence[tuple[Probe, str]], results: Path, *, again: bool = False
) -> Quote | None:
    """Estimate the grading of answers, with the calibration of the judge where it is not known; None offline."""
    models = job.models
    if models is None or models.offline_judge:
        return None
    judge = ModelJudge(ModelClient(models))
    calibrated = not again and find_record(calibration_key(judge), results, ()) is not None
    planned = forecast_grading(answers, models, calibration=not (calibrated or (bool(answers) and job.trust_judge)))
    purposes = tuple((purpose, part.calls) for purpose, part in planned)
    rows = _by_role(planned, models, batch=job.batch)
    notes = _batched(planned, models, compressions=False) if job.batch else ()
    return Quote(tuple(rows), purposes, job.budget_usd or job.settings.budget_usd, notes=notes)


@dataclass(frozen=True)
class LabelPrice:
    """What one evaluation of a pull request costs; None where a price is unknown."""

    usd: float | None
    """With prompt caching, everything graded."""
    facts_only_usd: float | None
    """Where facts alone decide."""
    uncached_usd: float | None
    budget_usd: float
    calls: int
    unpriced: tuple[str, ...] = ()
    """Models whose price is unknown."""
    notes: tuple[str, ...] = ()
    """What a provider allows that it may not fit into."""

    def __str__(self) -> str:
        """Say it in one line."""
        if self.usd is None or self.uncached_usd is None:
            return f"{self.calls} model calls at an unknown price; give it under models.prices"
        least = f", ${self.facts_only_usd:.2f} where facts alone decide" if self.facts_only_usd is not None else ""
        short = "" if self.usd <= self.budget_usd else f"; the budget of ${self.budget_usd:g} does not cover it"
        return (
            f"about ${self.usd:.2f} (${self.uncached_usd:.2f} without prompt caching{least}), {self.calls} calls{short}"
        )


def price_of_one_label(job: Job, results: Path | None = None) -> LabelPrice | None:
    """Estimate what a label on a pull request costs with this configuration; None offline. Nothing is sent."""
    # The bot has the base branch at hand, and measures a run of it beside the candidate.
    found = quote(job if job.base_tree else replace(job, base_tree=job.root), results)
    if found is None:
        return None
    facts = found.facts_only.cached_cost_usd if found.facts_only else None
    whole = found.total
    return LabelPrice(
        whole.cached_cost_usd, facts, whole.cost_usd, found.budget_usd, whole.calls, found.unpriced, found.notes
    )
