"""Which calls a run will make, and their tokens and price: counted from real prompts, with stand-ins for replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean

from eval_core.base.messages import Message
from eval_core.base.tokens import count_messages, count_text
from eval_core.domain.call import Draw, Role, Usage
from eval_core.domain.case import Case
from eval_core.domain.obey_probe import session_tools
from eval_core.domain.probe import Probe
from eval_core.facts.retention import FixtureFacts
from eval_core.judging.answering import answer_messages, answer_room
from eval_core.judging.calibration import calibration_set
from eval_core.judging.extractive import NOT_IN_CONTEXT
from eval_core.judging.grading import example_replies, grade_messages
from eval_core.judging.judge_audit import REPEATED, labelled_set
from eval_core.judging.obeying import obey_call
from eval_core.measuring.ask_obeys import ORDERS
from eval_core.measuring.controls import ceiling_state
from eval_core.measuring.preflight import compressor_call, plain_order
from eval_core.models.prices import Tariff
from eval_core.models.settings import Models

# Calls and their price.


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


# Calls by purpose.

CACHED_FROM = 1_024
"""Providers keep the beginning of a prompt from this length on."""
CHECKS = "for checks"
"""What the calls before the run are for."""
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
    compresses: bool = True
    """Whether the compressor asks a model."""
    output: dict[str, float] = field(default_factory=dict)
    """Role to the tokens of a usual reply, where an earlier run of the same models tells."""
    left: Mapping[str, tuple[int, int]] | None = None
    """Fixture to graded runs and compressions, where it is not all of them: of a shard, or of a run that goes on."""
    checks: bool = True
    """Whether the models are tried first; of a run that goes on, that is in the journal."""
    obey_controls: frozenset[str] | None = None
    """The fixtures whose controls of choices and actions are to be asked; None for those of `controls`."""
    obeyed: int | None = None
    """Graded runs of the candidate from whose states models choose and act; None for all."""

    def graded(self, fixture: str) -> int:
        """Return how often the probes of a fixture are asked and graded."""
        return (self.runs if self.left is None else self.left[fixture][0]) + self.base_runs

    def obeys(self, fixture: str) -> int:
        """Return from how many states of a fixture models choose and act."""
        own = self.graded(fixture) - self.base_runs
        return min(own, own if self.obeyed is None else self.obeyed) + self.base_runs

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

    def planned(self, role: Role, model: str) -> PlannedCalls:
        numbers = (round(number) for number in (self.input, self.output, self.shared, self.written))
        return PlannedCalls(role, model, self.calls, *numbers)


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
) -> _Tally:
    tally = _Tally()
    for at, probe in enumerate(case.probes):
        prompt = answer_messages(state, probe)
        state_tokens = count_messages(prompt[:-1]) + longer
        said = count_text(answers[probe.id]) if output is None else output
        read, written = (state_tokens, 0.0) if at else (0.0, state_tokens)
        tally.add(count_messages(prompt) + longer, said, read, times, written)
    return tally


def _ceilings(case: Case, answers: dict[str, str], output: float | None, room: int | None) -> _Tally:
    """Count the questions about the whole session, or about each probe's evidence where that does not fit."""
    if room is None or count_messages(case.fixture.messages) <= room:
        return _questions(case.fixture.messages, case, answers, 0, output, 1)
    tally, facts = _Tally(), FixtureFacts(case.fixture)
    for probe in case.probes:
        asked = count_messages(answer_messages(ceiling_state(case, probe, facts, room), probe))
        tally.add(asked, count_text(answers[probe.id]) if output is None else output, 0.0, 1, float(asked))
    return tally


_REPLY_TOKENS = {"choice": 4, "action": 45}


def _obeys(
    item: StandIn, models: Models, model: str, state: list[Message], longer: float, draws: Sequence[Draw]
) -> _Tally:
    """Count the choices and actions about one state; the answering model has its beginning in the cache already."""
    tally, tools = _Tally(), session_tools(item.case.fixture.messages)
    for at, probe in enumerate(item.case.bank.obeys):
        for draw in draws:
            prompt = obey_call(models, model, state, probe, tools, draw=draw).messages
            same = count_messages(prompt[:-1]) + longer
            first = not at and model != models.answer
            tally.add(
                count_messages(prompt) + longer,
                _REPLY_TOKENS[probe.type],
                0.0 if first else same,
                written=same if first else 0.0,
            )
    return tally


def _all_obeys(stand_ins: Sequence[StandIn], models: Models, scope: Scope) -> Iterator[tuple[str, PlannedCalls]]:
    """Return the choices and actions that each model is asked for, and their controls."""
    known = scope.controls if scope.obey_controls is None else scope.obey_controls
    for model in models.obeying:
        asked, controls = _Tally(), _Tally()
        for item in stand_ins:
            name, case = item.case.fixture.name, item.case
            longer = 0.0 if item.tokens_after is None else item.tokens_after - count_messages(item.state)
            runs = [Draw(run) for run in range(scope.obeys(name))]
            asked = _sum(iter([asked, _obeys(item, models, model, item.state, longer, runs)]))
            if known is not None and name not in known:
                continue
            floors = [Draw(control=True, repeat=repeat) for repeat in range(ORDERS)]
            given: tuple[tuple[list[Message], Sequence[Draw]], ...] = (
                (case.fixture.messages, floors[:1]),
                (item.state, floors[:1]),
                ([], floors),
            )
            found = [_obeys(item, models, model, messages, 0.0, draws) for messages, draws in given]
            controls = _sum(iter([controls, *found]))
        for purpose, tally in (("choices and actions", asked), ("controls", controls)):
            if tally.calls:
                yield purpose, tally.planned("answer", model)


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
    return _gradings(plain, output)


def _audit(output: float) -> _Tally:
    labelled = [(group.probe, answer.text) for group in labelled_set().groups for answer in group.answers]
    again = labelled[:: max(1, len(labelled) // REPEATED)][:REPEATED]
    return _gradings([*labelled, *again], output)


def _gradings(answers: Iterable[tuple[Probe, str]], output: float) -> _Tally:
    tally = _Tally()
    for probe, text in answers:
        rubric, question = grade_messages(probe, text)
        tally.add(count_messages([rubric, question]), output, count_messages([rubric]))
    return tally


def forecast_examination(models: Models, *, calibrated: bool, audited: bool) -> list[tuple[str, PlannedCalls]]:
    """Return the calls that examine a judge, without those that were made before."""
    usual = _usual_grade()
    rows = [] if calibrated else [("calibration", _calibration(usual))]
    rows += [] if audited else [("audit", _audit(usual))]
    return [(purpose, tally.planned("judge", models.judge)) for purpose, tally in rows]


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
        room = answer_room(models)
        full = (_ceilings(item.case, item.answers, answer, room) for item in controlled)
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
    if scope.checks:
        rows += [(CHECKS, role, tally) for role, tally in _checks(scope, stand_ins, models, grade)]
    model = {"compressor": models.compressor, "answer": models.answer, "judge": models.judge}
    planned = [(purpose, tally.planned(role, model[role])) for purpose, role, tally in rows if tally.calls]
    return [*planned, *_all_obeys(stand_ins, models, scope)]
