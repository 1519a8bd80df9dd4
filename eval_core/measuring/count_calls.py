"""Counting the calls of a run: its own roles ask a client that sends nothing and gives replies of the usual length."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import fmean

from eval_core.base.messages import Message, content_text
from eval_core.base.tokens import count_messages, count_text
from eval_core.domain.call import Acceptance, Completion, Draw, ModelCall, Role, Usage
from eval_core.domain.case import Case
from eval_core.domain.measurement import Measurement
from eval_core.domain.session_text import SessionText
from eval_core.domain.target import Builtin
from eval_core.judging.answering import ModelAnswerer
from eval_core.judging.calibration import calibrate
from eval_core.judging.extractive import NOT_IN_CONTEXT
from eval_core.judging.grading import ModelJudge, example_replies
from eval_core.judging.judge_audit import audit
from eval_core.judging.obeying import ROOM, ModelObeyer
from eval_core.measuring.ask_obeys import ask_obeys, obey_controls
from eval_core.measuring.controls import measure_controls
from eval_core.measuring.preflight import preflight
from eval_core.measuring.price_calls import CountedCalls
from eval_core.models.client import ModelClient
from eval_core.models.offline import OfflineModel
from eval_core.models.settings import Models
from eval_core.models.transport import wants_marks
from eval_core.sandbox.targets import BuiltinSubject, Target

CACHED_FROM = 1_024
"""Providers keep the beginning of a prompt from this length on."""
CHECKS = "for checks"
"""What the calls before the run are for."""
_ANSWER_CHARS = 350  # about 60 words; the instructions allow 100, and the facts asked for need a quarter of that
SUMMARY_TOKENS = 1_250  # models stay far below the room they are given, and agents cap it near this
_SHORT_SUMMARY = "The export was repaired, all tests pass, and it is to be deployed on Thursday. " * 3
_OBEYS = {ROOM["choice"]: ("A", 4), ROOM["action"]: ('{"tool": "", "arguments": {}}', 45)}
_ROLES: Mapping[Role, str] = {"compressor": "compressions", "answer": "answers", "judge": "grades"}


@dataclass(frozen=True)
class StandIn:
    """One fixture-run as it would probably be."""

    case: Case
    calls: tuple[ModelCall, ...]
    """What the compressor asks its model, step by step."""
    summaries: tuple[int, ...]
    """Tokens of the replies."""
    state: list[Message]
    longer: float = 0.0
    """By how many tokens a stored baseline's states are longer than this one."""


@dataclass(frozen=True)
class Share:
    """What there is to do for one fixture."""

    graded: int
    compressions: int
    controls: bool = True
    obeyed: int | None = None
    """Graded runs from whose states models choose and act; None for all."""
    obey_controls: bool = True


class CountingClient(ModelClient):
    """Counts what it is asked; equal calls of an equal draw are paid once, as in a run."""

    def __init__(self, models: Models, usual: Mapping[str, float] | None = None) -> None:
        """Begin with nothing counted; `usual` are the tokens of a role's replies, where an earlier run tells."""
        super().__init__(models)
        self.usual = usual or {}
        self._counted: dict[tuple[str, Role, str], CountedCalls] = {}
        self._made: set[object] = set()
        self._held: set[int] = set()
        self._purpose, self._times, self._longer = "", 1, 0.0
        self._grade = example_replies()

    @property
    def counted(self) -> list[CountedCalls]:
        """All calls that a run would make."""
        return [found for found in self._counted.values() if found.calls]

    @contextmanager
    def counting(self, purpose: str = "", times: int = 1, longer: float = 0.0) -> Iterator[None]:
        """Say what the calls are for, in how many runs they are made, and by how much their states are longer."""
        before = self._purpose, self._times, self._longer
        self._purpose, self._times, self._longer = purpose, times, longer
        yield
        self._purpose, self._times, self._longer = before

    async def complete(self, call: ModelCall, acceptance: Acceptance | None = None) -> Completion:
        """Count the call and return a reply of the usual length."""
        text, output = self._reply(call)
        texts = tuple(map(content_text, call.messages))
        if (call.model, call.draw, texts) not in self._made:
            self._made.add((call.model, call.draw, texts))
            self.add(call, output)
        return Completion(text, Usage(), call.model, 0.0)

    def _reply(self, call: ModelCall) -> tuple[str, float]:
        if call.role == "compressor":
            return _SHORT_SUMMARY, count_text(_SHORT_SUMMARY)
        if call.role == "judge":
            return self._grade[0], self.usual.get("judge", fmean(map(count_text, self._grade)))
        if call.max_tokens in _OBEYS:
            return _OBEYS[call.max_tokens]
        if call.shared <= 1:  # instructions, and no state
            return NOT_IN_CONTEXT, count_text(NOT_IN_CONTEXT)
        text = " ".join(map(content_text, call.messages[:-1]))[-_ANSWER_CHARS:]
        return text, self.usual.get("answer", count_text(text))

    def add(self, call: ModelCall, output: float) -> None:
        """Count a call: what is new of its beginning goes to the provider's cache, the rest is read from there.

        Each run asks about a state of its own; what compressors and judges are told first is the same in all.
        """
        purpose, times = self._purpose or _ROLES[call.role], self._times
        front = count_messages(call.messages[: call.shared]) + self._longer
        known = min(self._known(call), front)
        fresh = times if call.role == "answer" else min(times, 1)
        key = purpose, call.role, call.model
        found = self._counted.setdefault(key, CountedCalls(call.role, call.model, purpose=purpose))
        found.calls += times
        found.input_tokens += times * (count_messages(call.messages) + self._longer)
        found.output_tokens += times * output
        if front >= CACHED_FROM:
            found.written_tokens += fresh * (front - known)
            found.shared_tokens += times * known + (times - fresh) * (front - known)

    def _known(self, call: ModelCall) -> float:
        """Return how many tokens at the beginning of a call the cache holds, and note that it holds them all now."""
        marks: list[int] = []
        for message in call.messages[: call.shared]:
            marks.append(hash((marks[-1] if marks else call.model, content_text(message))))
        length = next((at + 1 for at in reversed(range(len(marks))) if marks[at] in self._held), 0)
        self._held.update(marks[-1:] if wants_marks(call.model) else marks)
        tokens = count_messages(call.messages[:length])
        return tokens + self._longer if tokens >= CACHED_FROM else 0.0

    def compress(self, stand_ins: Sequence[StandIn], shares: Mapping[str, Share]) -> None:
        """Count the compressions."""
        for item in stand_ins:
            with self.counting(times=shares[item.case.fixture.name].compressions):
                for call, tokens in zip(item.calls, item.summaries, strict=True):
                    self.add(replace(call, model=self.models.compressor), self.usual.get("compressor", tokens))


async def _stand_in(case: Case, target: Target, topic: str | None, base: Measurement | None) -> StandIn:
    """Compress once by rules, writing down what a model would have been asked."""
    calls: list[ModelCall] = []
    summaries: list[int] = []
    model = OfflineModel(SessionText(case.fixture.messages))

    async def complete(call: ModelCall) -> Completion:
        reply = await model.complete(replace(call, max_tokens=min(call.max_tokens, SUMMARY_TOKENS)))
        # Of a compressor in a process of its own it is known only that every run begins with the same prompt.
        calls.append(call if own or not calls else replace(call, shared=0))
        summaries.append(count_text(reply.text))
        return reply

    # A compressor in a process of its own is not started for an estimate; the reference stands in for it.
    own = isinstance(target.spec, Builtin)
    strategy = target.spec.name if isinstance(target.spec, Builtin) else "anchored"
    subject = BuiltinSubject(strategy, complete=complete, model="none")
    done = await subject.compress(case.fixture, run=0, seed=0, focus_topic=topic or case.fixture.focus_topic)
    silent = not isinstance(target.spec, Builtin) and target.spec.llm == "none"
    known = [run.tokens_after for run in base.fixtures.get(case.fixture.name, []) if run.ok] if base else []
    longer = fmean(known) - count_messages(done.state) if known else 0.0
    return StandIn(case, () if silent else tuple(calls), () if silent else tuple(summaries), done.state, longer)


def make_stand_ins(
    cases: Sequence[Case], target: Target, topic: str | None = None, base: Measurement | None = None
) -> list[StandIn]:
    """Return each fixture-run as it would probably be, from what a stored baseline tells where there is one."""

    async def each() -> list[StandIn]:
        return [await _stand_in(case, target, topic, base) for case in cases]

    return asyncio.run(each())


def count_calls(
    stand_ins: Sequence[StandIn],
    models: Models,
    shares: Mapping[str, Share],
    *,
    usual: Mapping[str, float] | None = None,
    calibrates: bool = True,
    checks: bool = True,
) -> list[CountedCalls]:
    """Return the calls of a run by what they are for; `shares` says what there is to do for each fixture."""
    client = CountingClient(models, usual)
    asyncio.run(_run(client, stand_ins, shares, calibrates=calibrates, checks=checks))
    return client.counted


async def _run(
    client: CountingClient, stand_ins: Sequence[StandIn], shares: Mapping[str, Share], *, calibrates: bool, checks: bool
) -> None:
    client.compress(stand_ins, shares)
    judged = not client.models.offline_judge
    answerer, judge = ModelAnswerer(client), ModelJudge(client)
    for item in stand_ins if judged else ():
        await _questions(client, item, shares[item.case.fixture.name], answerer, judge)
    if calibrates and judged:
        with client.counting("calibration"):
            await calibrate(judge)
    if checks and stand_ins:  # last: what belongs to the controls or the calibration is paid for there
        case = min((item.case for item in stand_ins), key=lambda case: case.fixture.name)
        compresses = any(item.calls for item in stand_ins)
        with client.counting(CHECKS):
            await preflight(client, answerer, judge, case, compresses=compresses, trust_judge=True, judged=judged)


async def _questions(
    client: CountingClient, item: StandIn, share: Share, answerer: ModelAnswerer, judge: ModelJudge
) -> None:
    """Ask and grade about one state, and about everything and nothing where that is not known."""
    case, name = item.case, item.case.fixture.name
    obeyers = [ModelObeyer(client, model) for model in client.models.obeying]
    for probe in case.probes:
        with client.counting(times=share.graded, longer=item.longer):
            answer = await answerer.answer(item.state, probe, fixture=name, draw=Draw())
        with client.counting(times=share.graded):
            await judge.grade(probe, getattr(answer, "text", ""), fixture=name, draw=Draw())
    obeyed = share.graded if share.obeyed is None else min(share.graded, share.obeyed)
    with client.counting("choices and actions", obeyed, item.longer):
        await ask_obeys(case, item.state, obeyers, Draw())
    with client.counting("controls"):
        if share.controls:
            await measure_controls(case, answerer, judge)
        if share.obey_controls:
            await obey_controls(case, obeyers, None, None, asyncio.Semaphore(16), answerer.room)


def count_examination(models: Models, *, calibrated: bool, audited: bool) -> list[CountedCalls]:
    """Return the calls that examine a judge, without those that were made before."""
    client = CountingClient(models)
    judge = ModelJudge(client)

    async def examine() -> None:
        if not calibrated:
            with client.counting("calibration"):
                await calibrate(judge)
        if not audited:
            with client.counting("audit"):
                await audit(judge)

    asyncio.run(examine())
    return client.counted
