"""What a job will cost, before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from eval_core.errors import UserError
from eval_core.job import Job
from eval_core.judge.answering import ModelAnswerer
from eval_core.judge.extractive import ExtractiveAnswerer
from eval_core.judge.grade import Answer
from eval_core.judge.grading import ModelJudge
from eval_core.measurement import Measurement
from eval_core.messages import Message
from eval_core.model.client import ModelClient
from eval_core.model.estimate import EstimateRow, PlannedCalls, estimate, total
from eval_core.model.offline import complete_offline
from eval_core.model.outcome import Completion, ModelCall
from eval_core.model.prices import tariff
from eval_core.model.settings import Models
from eval_core.reference import Reference, find_reference, stored_reference
from eval_core.run.forecast import Scope, StandIn, forecast
from eval_core.run.roles import Roles, make_fingerprint
from eval_core.run.suite import Case
from eval_core.run.target import Target
from eval_core.run.trust import calibration_key, find_calibration
from eval_core.subject.builtin import BuiltinSubject
from eval_core.subject.spec import Builtin
from eval_core.tokens import count_text

__all__ = ["Quote", "quote"]

_ANSWER_CHARS = 900  # about 150 words; the instructions allow 250


@dataclass(frozen=True)
class Quote:
    """Calls, tokens and cost of a job."""

    rows: tuple[EstimateRow, ...]
    """One for each role."""
    purposes: tuple[tuple[str, int], ...]
    """What the calls are for, and how many."""
    budget_usd: float

    @property
    def total(self) -> EstimateRow:
        """All roles together."""
        return total(self.rows)


async def _stand_in(case: Case, target: Target, topic: str | None, base: Measurement | None) -> StandIn:
    """Compress once by rules, writing down what a model would have been asked."""
    calls: list[ModelCall] = []
    replies: list[Completion] = []

    async def complete(call: ModelCall) -> Completion:
        calls.append(call)
        replies.append(await complete_offline(call))
        return replies[-1]

    # A compressor in a process of its own is not started for an estimate; the reference stands in for it.
    strategy = target.spec.name if isinstance(target.spec, Builtin) else "anchored"
    subject = BuiltinSubject(strategy, complete=complete, model="none")
    compression = await subject.compress(case.fixture, run=0, seed=0, focus_topic=topic)
    silent = not isinstance(target.spec, Builtin) and target.spec.llm == "none"
    answerer, answers = ExtractiveAnswerer(), {}
    for probe in case.bank.probes:
        answer = await answerer.answer(compression.state, probe, fixture=case.fixture.name, run=0)
        answers[probe.id] = answer.text[:_ANSWER_CHARS] if isinstance(answer, Answer) else ""
    known = [run.tokens_after for run in base.fixtures.get(case.fixture.name, []) if run.ok] if base else []
    prompts: tuple[tuple[Message, ...], ...] = () if silent else tuple(call.messages for call in calls)
    summaries = () if silent else tuple(count_text(reply.text) for reply in replies)
    return StandIn(case, prompts, summaries, compression.state, answers, fmean(known) if known else None)


def _references(
    job: Job, cases: Sequence[Case], models: Models
) -> tuple[ModelJudge, Reference | None, Reference | None]:
    """Return the judge, the stored baseline that is nearest, and what the run would be compared with."""
    client = ModelClient(models)
    judge = ModelJudge(client)
    compressor = {"model": models.compressor, "max_tokens": str(models.compressor_max_tokens)}
    roles = Roles(BuiltinSubject(), ModelAnswerer(client), judge, offline=False, compressor=compressor)
    fingerprint = make_fingerprint(cases, roles, job.topic)
    baselines = job.root / job.settings.baselines
    try:
        stored = stored_reference(baselines, fingerprint)
    except UserError:
        stored = None
    reference = find_reference(job.compare_to, job.root, baselines, fingerprint) if job.baseline == "stored" else None
    return judge, stored, reference


def _by_role(planned: Sequence[PlannedCalls], models: Models) -> list[EstimateRow]:
    rows = estimate(planned, {model: tariff(model, models.prices) for model in models.distinct})
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


def quote(job: Job, results: Path | None = None) -> Quote | None:
    """Estimate a job; None when it runs offline and costs nothing. Nothing is sent and nothing is written."""
    models = job.models
    if models is None:
        return None
    job.check()
    cases, target = job.load_cases(), job.load_target()
    judge, stored, reference = _references(job, cases, models)
    comparable = reference.measurement if reference and reference.comparable else None
    known = [stored.measurement] if stored else []
    folder = results or job.root / job.settings.results
    calibrated = job.trust_judge or find_calibration(calibration_key(judge), folder, known) is not None
    runs, compress_runs = job.plan
    scope = Scope(
        runs=runs,
        compress_runs=compress_runs,
        arms=2 if job.baseline == "rerun" else 1,
        controls=not (stored and stored.comparable),
        calibration=not calibrated,
        drift=comparable,
        drift_sample=job.drift_sample,
        output={role: use.output_tokens / use.calls for role, use in comparable.use.items() if use.calls}
        if comparable
        else {},
    )

    async def stand_ins() -> list[StandIn]:
        return [await _stand_in(case, target, job.topic, comparable) for case in cases]

    planned = forecast(asyncio.run(stand_ins()), models, scope)
    purposes: dict[str, int] = {}
    for purpose, part in planned:
        purposes[purpose] = purposes.get(purpose, 0) + part.calls
    rows = _by_role([part for _, part in planned], models)
    return Quote(tuple(rows), tuple(purposes.items()), job.budget_usd or job.settings.budget_usd)
