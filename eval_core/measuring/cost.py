"""What a job will cost, before anything is sent: calls, tokens and dollars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eval_core.base.config import PresetName
from eval_core.base.tokens import count_messages
from eval_core.domain.case import Case
from eval_core.domain.fingerprint import Fingerprint
from eval_core.domain.measurement import Measurement
from eval_core.domain.target import TargetSpec
from eval_core.judging.calibration import calibration_key, find_record
from eval_core.judging.grading import judge_identity
from eval_core.judging.obeying import obey_identity
from eval_core.measuring.ask_obeys import find_obey_controls
from eval_core.measuring.controls import find_controls
from eval_core.measuring.count_calls import (
    CHECKS,
    SUMMARY_TOKENS,
    CountingClient,
    Share,
    StandIn,
    count_calls,
    count_examination,
    make_stand_ins,
)
from eval_core.measuring.options import RunOptions
from eval_core.measuring.plan import Plan, make_plan
from eval_core.measuring.play_rounds import ROUNDS
from eval_core.measuring.price_calls import CountedCalls, EstimateRow, estimate, total
from eval_core.models.presets import LIMITS
from eval_core.models.settings import Models
from eval_core.statistics.looks import RUNS_AT_LOOK
from eval_core.storage.results import ResultsFolder


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


def _by_role(counted: Iterable[CountedCalls], models: Models) -> list[EstimateRow]:
    tariffs = {model: models.tariff(model) for model in models.distinct}
    roles: dict[str, list[CountedCalls]] = {"compressor": [], "answer": [], "judge": []}
    for part in counted:
        roles[part.role].append(part)
    return [
        replace(total(estimate(parts, tariffs)), role=role, model=parts[0].model)
        for role, parts in roles.items()
        if parts
    ]


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
    known, target, done = plan.paid_before, plan.target, _begun(plan, label)
    stored = plan.reference if plan.options.baseline == "stored" else None
    comparable = stored.measurement if stored and stored.comparable else None
    calibrated = plan.options.settings.models.trust_judge or _calibrated(models, plan.results, known)
    usual = (
        {role: use.output_tokens / use.calls for role, use in comparable.use.items() if use.calls} if comparable else {}
    )
    expected = make_stand_ins(plan.cases, target, plan.options.topic, comparable)
    counted = count_calls(
        expected,
        models,
        _shares(plan, models, done),
        usual=usual,
        calibrates=not calibrated and plan.does_once,
        checks=done is None and bool(plan.cells),
    )
    if target.asks_model and plan.rounds.runs:
        counted.append(plan.rounds.counted(models))
    counted += plan.tasks.counted(models)
    purposes: dict[str, int] = {}
    for part in counted:
        purposes[part.purpose] = purposes.get(part.purpose, 0) + part.calls
    rows = _by_role(counted, models)
    facts = [part for part in counted if part.purpose in (CHECKS, ROUNDS, "compressions", "calibration")]
    compared = comparable is not None or plan.base.own
    return CostEstimate(
        tuple(rows),
        tuple(purposes.items()),
        plan.budget_usd,
        total(_by_role(facts, models)) if plan.stops_early and compared else None,
        _further(plan, expected, models, usual) if compared else None,
        (*_limits(models, rows), *_too_long(expected, models)),
    )


def _shares(plan: Plan, models: Models, done: ResultsFolder | None) -> dict[str, Share]:
    """Return what there is to do for each fixture, of the base too where it is measured in the same run."""
    target, known = plan.target, plan.paid_before
    others = max(len(target.spec.budgets) - 1, 0) if isinstance(target.spec, TargetSpec) else 0
    first = {cell.case.fixture.name for cell in plan.cells if cell.run == 0}
    controls = first & _missing_controls(plan.cases, plan.fingerprint, plan.results, known)
    obeys = first & _missing_obey_controls(plan.cases, models, plan.results, known)
    base_runs, base_compress_runs = plan.base_runs
    return {
        name: Share(
            graded + base_runs,
            compressions + base_compress_runs + others,
            name in controls,
            min(graded, plan.obeyed_runs) + base_runs,
            name in obeys,
        )
        for name, (graded, compressions) in _left_to_do(plan, done).items()
    }


def _further(plan: Plan, expected: Sequence[StandIn], models: Models, usual: Mapping[str, float]) -> EstimateRow | None:
    """Price the compressions up to the last look, of the base too where all of it is measured beside the candidate."""
    count = RUNS_AT_LOOK[-1] - plan.compress_runs
    if not plan.compresses_more or count <= 0:
        return None
    times = count * (2 if plan.base_runs[1] == plan.compress_runs else 1)
    return price_compressions(expected, models, times, usual)


def price_compressions(
    expected: Sequence[StandIn], models: Models, times: int, usual: Mapping[str, float] | None = None
) -> EstimateRow | None:
    """Price as many compressions of each fixture, and nothing else."""
    client = CountingClient(models, usual or {})
    client.compress(expected, {item.case.fixture.name: Share(0, times) for item in expected})
    return total(_by_role(client.counted, models)) if client.counted else None


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


def _too_long(stand_ins: Sequence[StandIn], models: Models) -> tuple[str, ...]:
    """Name the sessions that a model cannot take: to compress them, or to answer from the whole of them."""
    notes = []
    summary, answer = models.window(models.compressor), models.window(models.answer)
    for item in stand_ins:
        name = item.case.fixture.name
        asked = max((count_messages(call.messages) for call in item.calls), default=0)
        whole = count_messages(item.case.fixture.messages)
        if item.calls and summary is not None and asked + SUMMARY_TOKENS > summary:
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
    counted = count_examination(
        models, calibrated=known is not None, audited=known is not None and known.audit is not None
    )
    purposes = tuple((part.purpose, part.calls) for part in counted)
    return CostEstimate(tuple(_by_role(counted, models)), purposes, options.budget)


def price_of_one_label(options: RunOptions) -> CostEstimate | None:
    """Estimate what a label on a pull request costs with this configuration; None offline. Nothing is sent."""
    # The bot has the base branch at hand, and measures a run of it beside the candidate.
    return estimate_cost(make_plan(options if options.base_tree else replace(options, base_tree=options.root)))
