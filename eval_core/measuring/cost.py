"""What a job will cost, before anything is sent: calls, tokens and dollars."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from eval_core.base.config import PresetName
from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages, count_text
from eval_core.domain.call import Completion, Draw, ModelCall
from eval_core.domain.case import Case
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.grade import Answer
from eval_core.domain.measurement import Measurement
from eval_core.domain.session_text import SessionText
from eval_core.domain.target import Builtin, TargetSpec
from eval_core.judging.calibration import calibration_key, find_record
from eval_core.judging.extractive import ExtractiveAnswerer
from eval_core.judging.grading import judge_identity
from eval_core.judging.obeying import obey_identity
from eval_core.measuring.ask_obeys import find_obey_controls
from eval_core.measuring.controls import find_controls
from eval_core.measuring.forecast import (
    CHECKS,
    EstimateRow,
    PlannedCalls,
    Scope,
    StandIn,
    estimate,
    forecast,
    forecast_examination,
    total,
)
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import Plan, make_plan
from eval_core.models.offline import OfflineModel
from eval_core.models.presets import LIMITS
from eval_core.models.settings import Models
from eval_core.sandbox.targets import BuiltinSubject, Target
from eval_core.statistics.looks import RUNS_AT_LOOK
from eval_core.storage.results import ResultsFolder

# How long replies usually are, until a stored baseline of the same models tells.
_ANSWER_CHARS = 350  # about 60 words; the instructions allow 100, and the facts asked for need a quarter of that
_SUMMARY_CHARS = 5_000  # about 1,500 tokens: models stay far below the room they are given, and agents cap it near this
_CHARS_PER_TOKEN = 4
ROUNDS = "compressions in rounds"


@dataclass(frozen=True)
class CostEstimate:
    """Calls, tokens and cost of a job."""

    rows: tuple[EstimateRow, ...]
    """One for each role."""
    purposes: tuple[tuple[str, int], ...]
    """What the calls are for, and how many."""
    budget_usd: float
    facts_only: EstimateRow | None = None
    """What it costs where facts alone decide, and grading is left out; None where that is not tried."""
    more: EstimateRow | None = None
    """What further compressions cost at most, if the facts stay open; None where none would be made."""
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

    def __str__(self) -> str:
        """Say it in one line."""
        usd, uncached, calls = self.total.cached_cost_usd, self.total.cost_usd, self.total.calls
        if usd is None or uncached is None:
            return f"{calls} model calls at an unknown price; give it under models.prices"
        facts = self.facts_only.cached_cost_usd if self.facts_only else None
        least = f", ${facts:.2f} where facts alone decide" if facts is not None else ""
        short = "" if usd <= self.budget_usd else f"; the budget of ${self.budget_usd:g} does not cover it"
        return f"about ${usd:.2f} (${uncached:.2f} without prompt caching{least}), {calls} calls{short}"


async def _stand_in(case: Case, target: Target, topic: str | None, base: Measurement | None) -> StandIn:
    """Compress once by rules, writing down what a model would have been asked."""
    calls: list[ModelCall] = []
    replies: list[Completion] = []
    model = OfflineModel(SessionText(case.fixture.messages))

    async def complete(call: ModelCall) -> Completion:
        calls.append(call)
        room = min(call.max_tokens, _SUMMARY_CHARS // _CHARS_PER_TOKEN)
        replies.append(await model.complete(replace(call, max_tokens=room)))
        return replies[-1]

    # A compressor in a process of its own is not started for an estimate; the reference stands in for it.
    strategy = target.spec.name if isinstance(target.spec, Builtin) else "anchored"
    subject = BuiltinSubject(strategy, complete=complete, model="none")
    compression = await subject.compress(case.fixture, run=0, seed=0, focus_topic=topic or case.fixture.focus_topic)
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


def _missing_controls(
    cases: Sequence[Case], fingerprint: Fingerprint, results: Path, known: Sequence[Measurement]
) -> frozenset[str]:
    return frozenset(case.fixture.name for case in cases if find_controls(case, fingerprint, results, known) is None)


def _missing_obey_controls(
    cases: Sequence[Case], models: Models, results: Path, known: Sequence[Measurement]
) -> frozenset[str]:
    who = {model: obey_identity(models, model) for model in models.obeying}
    return frozenset(
        name
        for case in cases
        for name in [case.fixture.name]
        if find_obey_controls(case, who, results, [stored.controls.get(name) for stored in known]) is None
    )


def _calibrated(models: Models, results: Path, known: Sequence[Measurement]) -> bool:
    """Tell whether nothing has to be found out about the judge."""
    return models.offline_judge or find_record(calibration_key(judge_identity(models)), results, known) is not None


def _by_role(planned: Sequence[tuple[str, PlannedCalls]], models: Models) -> list[EstimateRow]:
    tariffs = {model: models.tariff(model) for model in models.distinct}
    rows = estimate([part for _, part in planned], tariffs)
    by_role = {role: [row for row in rows if row.role == role] for role in dict.fromkeys(row.role for row in rows)}
    return [replace(total(mine), role=role, model=mine[0].model) for role, mine in by_role.items()]


def _left_to_do(plan: Plan, done: ResultsFolder | None) -> dict[str, tuple[int, int]]:
    """Return the graded runs and the compressions of each fixture that are still to be paid for."""
    left = {case.fixture.name: (0, 0) for case in plan.cases}
    for cell in plan.cells:
        name = cell.case.fixture.name
        record = done.read_run(name, cell.run) if done else None
        made = record is not None and record.ok
        graded = made and record is not None and record.graded
        left[name] = (left[name][0] + (cell.graded and not graded), left[name][1] + (not made))
    return left


def _begun(plan: Plan, label: str | None) -> ResultsFolder | None:
    """Return the results of that label that the run goes on with, if there are any."""
    options = plan.options
    if label is None or not options.resume:
        return None
    folder = ResultsFolder(plan.results / (options.shard.label(label) if options.shard else label))
    return folder if folder.journal.exists() else None


def estimate_cost(plan: Plan, label: str | None = None) -> CostEstimate | None:
    """Estimate a run; None when it runs offline and costs nothing. Nothing is sent and nothing is written.

    What a run of that label has paid for already is left out where the plan goes on with it.
    """
    models = plan.models
    if models is None:
        return None
    known, target, base = plan.paid_before, plan.target, plan.base
    stored = plan.reference if plan.options.baseline == "stored" else None
    comparable = stored.measurement if stored and stored.comparable else None
    calibrated = plan.options.settings.models.trust_judge or _calibrated(models, plan.results, known)
    base_runs, base_compress_runs = plan.base_runs
    own = frozenset(cell.case.fixture.name for cell in plan.cells if cell.run == 0)
    done = _begun(plan, label)
    scope = Scope(
        runs=plan.runs,
        compress_runs=plan.compress_runs,
        base_runs=base_runs,
        base_compress_runs=base_compress_runs,
        other_budgets=max(len(target.spec.budgets) - 1, 0) if isinstance(target.spec, TargetSpec) else 0,
        controls=own & _missing_controls(plan.cases, plan.fingerprint, plan.results, known),
        calibration=not calibrated and plan.does_once,
        compresses=target.asks_model,
        output={role: use.output_tokens / use.calls for role, use in comparable.use.items() if use.calls}
        if comparable
        else {},
        left=None if plan.options.shard is None and done is None else _left_to_do(plan, done),
        checks=done is None and bool(plan.cells),
        obey_controls=own & _missing_obey_controls(plan.cases, models, plan.results, known),
        obeyed=plan.obeyed_runs,
    )

    expected = make_stand_ins(plan.cases, target, plan.options.topic, comparable)
    planned = forecast(expected, models, scope)
    if models.offline_judge:
        planned = [(purpose, part) for purpose, part in planned if part.role == "compressor"]
    if target.asks_model and plan.rounds.runs:
        planned.append((ROUNDS, plan.rounds.planned(models)))
    purposes: dict[str, int] = {}
    for purpose, part in planned:
        purposes[purpose] = purposes.get(purpose, 0) + part.calls
    rows = _by_role(planned, models)
    facts = [item for item in planned if item[0] in (CHECKS, ROUNDS, "compressions", "calibration")]
    return CostEstimate(
        tuple(rows),
        tuple(purposes.items()),
        plan.budget_usd,
        total(_by_role(facts, models)) if plan.stops_early and (comparable or base.own) else None,
        _further(plan, expected, models, scope) if comparable or base.own else None,
        (*_limits(models, rows), *_too_long(expected, models, compresses=target.asks_model)),
    )


def _further(plan: Plan, expected: Sequence[StandIn], models: Models, scope: Scope) -> EstimateRow | None:
    """Price the compressions up to the last look, of the base too where all of it is measured beside the candidate."""
    count = RUNS_AT_LOOK[-1] - scope.compress_runs
    if not plan.compresses_more or count <= 0:
        return None
    beside = count if scope.base_compress_runs == scope.compress_runs else 0
    only = Scope(runs=0, compress_runs=count, base_compress_runs=beside, compresses=True, output=scope.output)
    planned = [item for item in forecast(expected, models, only) if item[0] == "compressions"]
    return total(_by_role(planned, models)) if planned else None


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
                f"{models.answer} ({answer:,}): they ask about each probe's evidence and the messages around it."
            )
    return tuple(notes)


def estimate_examination(options: RunOptions, results: Path, *, again: bool = False) -> CostEstimate | None:
    """Estimate the calibration and the audit of the judge, as far as they are not known; None offline."""
    models = options.models
    if models is None or models.offline_judge:
        return None
    known = None if again else find_record(calibration_key(judge_identity(models)), results, ())
    planned = forecast_examination(
        models, calibrated=known is not None, audited=known is not None and known.audit is not None
    )
    purposes = tuple((purpose, part.calls) for purpose, part in planned)
    return CostEstimate(tuple(_by_role(planned, models)), purposes, options.budget)


def price_of_one_label(options: RunOptions) -> CostEstimate | None:
    """Estimate what a label on a pull request costs with this configuration; None offline. Nothing is sent."""
    # The bot has the base branch at hand, and measures a run of it beside the candidate.
    return estimate_cost(make_plan(options if options.base_tree else replace(options, base_tree=options.root)))
