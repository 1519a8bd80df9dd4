"""The compressor under test, run in a sandboxed child process, with canaries that the child must not reach."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.files import read_text
from eval_core.base.messages import Message, full_text
from eval_core.domain.call import Draw
from eval_core.domain.compression import SMALLER, Compression, Outcome, Recalled, Round, RoundLog, Step
from eval_core.domain.first_trigger import Trigger
from eval_core.domain.fixture import Fixture
from eval_core.domain.model_failure import FailureReaction, ModelFailure
from eval_core.domain.next_request import TURN, NextTurn, compared
from eval_core.domain.session_text import SessionText
from eval_core.domain.target import TargetSpec
from eval_core.models.offline import OfflineModel
from eval_core.sandbox.allowance import Allowance
from eval_core.sandbox.classify import CallRecord, StepEvidence, StepVerdict, classify, no_summary, requests_of, use_of
from eval_core.sandbox.due import Due, is_stuck
from eval_core.sandbox.failing_models import FailingModel
from eval_core.sandbox.gateway import SOCKET, Complete, Gateway
from eval_core.sandbox.isolation import SandboxChoice, SandboxView, interpreter, open_view, run_folder, view_of
from eval_core.sandbox.latency import StepClock, held_up
from eval_core.sandbox.process import Child, ChildGone
from eval_core.sandbox.request import GatewayLimits
from eval_core.sandbox.target_call import CommandCall, Given, PythonCall, Started, TargetCall, opaque_tokens
from eval_core.sandbox.validate import MAX_FRAME, BadFrame, StepResult, error_text

# Things that must be out of the child's reach, set out before each run for its self-test to look for.

CANARY_VARIABLE = "COMPRESSION_EVAL_CANARY"


@dataclass(frozen=True)
class Canary:
    """Where the canaries are; no secret, but each is as reachable as a secret in its place would be."""

    value: str
    """In the environment of the process that starts the sandbox, and in the file."""
    file: str
    port: int
    abstract: str
    path: str
    read_only: tuple[str, ...]

    def as_frame(self) -> dict[str, Any]:
        """Return what the self-test is told."""
        return asdict(self)


@contextmanager
def canaries(folder: Path, read_only: tuple[str, ...]) -> Iterator[Canary]:
    """Set out the canaries in a folder that is not mounted, with real listeners on loopback."""
    value = secrets.token_hex(16)
    file, path = folder / "canary", folder / "canary.sock"
    file.write_text(value, encoding="ascii")
    file.chmod(0o644)
    abstract = f"compression-eval-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (f"\0{abstract}", str(path)):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(address)
            listener.listen()
        path.chmod(0o666)
        yield Canary(value, str(file), tcp.getsockname()[1], abstract, str(path), read_only)


# A compressor under test that runs in a process of its own.

Count = Callable[[list[Message]], int]


_TRIALS_AT_ONCE = 2
_WINDOW = 200_000
_WINDOWS = 5
"""One that does not set in when the session's window is full is asked about so many of them: its own may be larger."""
_PARTS = 100
"""The number of tokens at which it sets in is found to this part of it."""
_MOST_RECALLED = 16_000
"""Characters of one answer of a search: agents cut the outputs of their tools, too."""
_TRIAL_SECONDS = 60.0
_TRIAL = "compressing with a failing model"


class SandboxBreach(UserError):
    """The self-test found a way out of the sandbox; the compressor was not started."""


@dataclass(frozen=True)
class _Job:
    """One fixture-run, as asked for."""

    fixture: Fixture
    run: int
    seed: int
    focus_topic: str | None
    log: RoundLog | None = None
    when_due: bool = False
    """Whether it is compressed when that is due, and not at fixed places."""


@dataclass
class _Progress:
    """What one try has come to so far."""

    steps: list[Step] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    output: str = ""
    resumable: bool = False
    fired: list[int] = field(default_factory=list)
    own_trigger: bool = False
    answers: tuple[str, ...] = ()
    state: Any = None
    """The adapter's own, after the last good step."""
    start_seconds: float = 0.0
    """For import and construction, or until the command was ready: not part of the latency."""


@dataclass(frozen=True)
class Running:
    """A child that passed its self-test and waits for its job."""

    child: Child
    view: SandboxView
    gateway: Gateway


def _taken_up(done: Sequence[Round]) -> tuple[_Progress, StepVerdict] | None:
    """Return where a killed run had got to; a run that could not be taken up again has written no round down."""
    if not done:
        return None
    progress = _Progress(steps=[one.step for one in done], resumable=True, state=done[-1].state)
    return progress, StepVerdict(Outcome.INFRA, "interrupted before its next round")


def _written(progress: _Progress, fixture: Fixture) -> list[Message]:
    """Return the messages of the compressed state that are not the session's own."""
    return (
        [message for message in progress.steps[-1].messages if message not in fixture.messages]
        if progress.steps
        else []
    )


async def _first_trigger(asked: Callable[[int], Awaitable[bool | None]], window: int) -> Trigger | None:
    """Halve the range between a number at which it does not compress and one at which it does."""
    below = 0
    for at in (window, _WINDOWS * window):
        when_full = await asked(at)
        if when_full is None:
            return None
        if when_full:
            break
        below = at
    else:
        return Trigger(below, None)
    while at - below > max(at // _PARTS, 1):
        middle = (below + at) // 2
        below, at = (below, middle) if await asked(middle) else (middle, at)
    return Trigger(_WINDOWS * window, at)


@dataclass(frozen=True)
class ProcessSubject:
    """Run a target in a child process, confined as the sandbox says, with the gateway as its only model."""

    spec: TargetSpec
    """With absolute paths: `python`, `runtime` and `adapter` come from the base branch, `pythonpath` is in the tree."""
    tree: Path
    """The code under test."""
    sandbox: SandboxChoice
    model: str
    """The compressor model, served whatever the target asks for."""
    complete: Complete | None
    """None lets the offline stand-in answer."""
    count: Count
    hidden: tuple[str, ...] = ()
    """Paths in the tree that the target must not see: probes, fixtures, baselines, results."""
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    retries: int = 2

    @property
    def name(self) -> str:
        """How reports call it."""
        return self.spec.name

    @property
    def at_other_budgets(self) -> tuple[ProcessSubject, ...]:
        """The same target at each budget but the first."""
        specs = (self.spec.model_copy(update={"budgets": [budget]}) for budget in self.spec.budgets[1:])
        return tuple(replace(self, spec=spec) for spec in specs)

    async def compress(
        self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None, log: RoundLog | None = None
    ) -> Compression:
        """Compress a fixture once; the provider's faults are tried again, the target's are its result."""
        subject = self if self.complete is not None else self._unpaid(fixture)
        return await subject._tried(_Job(fixture, run, seed, focus_topic, log))

    async def compress_when_due(self, fixture: Fixture, *, seed: int) -> Compression:
        """Compress whenever the target's `should_compress` says so, or whenever the window is nearly full."""
        subject = self if self.complete is not None else self._unpaid(fixture)
        return await subject._tried(_Job(fixture, 0, seed, None, when_due=True))

    def _unpaid(self, fixture: Fixture) -> ProcessSubject:
        """Let the offline stand-in answer."""
        return replace(self, complete=OfflineModel(SessionText(fixture.messages)).complete)

    @property
    def _call(self) -> TargetCall:
        return PythonCall(self.spec) if self.spec.command is None else CommandCall(self.spec)

    async def _built(self, now: Running, call: TargetCall, fixture: Fixture) -> Started | str:
        """Let a new child build the target, to try something with it; a text is why it cannot."""
        given = self.given(now, context_length=fixture.context_length, focus_topic=None, seed=0, run=0)
        return call.ready(await now.child.ask(call.job(given), self.spec.timeout_s, "importing and building"))

    async def _tried(self, job: _Job) -> Compression:
        fixture, run, log = job.fixture, job.run, job.log
        calls: list[CallRecord] = []
        notes: list[str] = []
        done = log.read() if log is not None else []
        resume = _taken_up(done)
        allowance = Allowance(self.limits)
        draw = Draw(run)
        for attempt in range(self.retries + 1):
            progress = _Progress()
            if resume is not None and resume[0].resumable and resume[0].steps and not job.when_due:
                progress.steps, progress.state = list(resume[0].steps), resume[0].state
            allowance.turned_away = False
            verdict = await self._attempt(job, draw, progress, allowance)
            calls += progress.calls
            notes += [note for note in progress.notes if note not in notes]
            if resume is not None and allowance.turned_away:
                # What the caps did to this attempt is the doing of those before it, whose outcome therefore stands.
                notes.append("the last try ended at what earlier ones had left of the caps on model calls")
                progress, verdict = resume
                break
            if not verdict.retry or attempt == self.retries:
                break
            if verdict.redraw:
                draw = replace(draw, attempt=draw.attempt + 1)
            resume = progress, verdict
        if (keeps := self.spec.keeps_tokens) and (size := self.count(fixture.messages)) < keeps:
            notes.append(f"{SMALLER}{size:,} of {keeps:,} tokens")
        if attempt:
            notes.append(f"tried {attempt + 1} times because of the provider")
        return Compression(
            outcome=verdict.outcome,
            detail=verdict.detail,
            steps=tuple(progress.steps),
            use=sum((one.step.use for one in done), use_of(calls)),
            requests=(*(asked for one in done for asked in one.requests or ()), *requests_of(calls)),
            refused=no_summary(progress.calls, _written(progress, fixture)),
            notes=tuple(notes),
            start_seconds=progress.start_seconds,
            output=progress.output,
            fired=tuple(progress.fired),
            own_trigger=progress.own_trigger,
            answers=progress.answers,
        )

    async def try_failures(self, fixture: Fixture) -> dict[ModelFailure, FailureReaction]:
        """Compress the beginning of a fixture once with each failing model, two at a time; nothing is paid."""
        if self.spec.llm != "required":
            return {}
        turns = asyncio.Semaphore(_TRIALS_AT_ONCE)

        async def one(failure: ModelFailure) -> FailureReaction | None:
            async with turns:
                return await self._fail_once(fixture, failure)

        found = await asyncio.gather(*map(one, ModelFailure))
        return {failure: done for failure, done in zip(ModelFailure, found, strict=True) if done is not None}

    async def first_trigger(self, fixture: Fixture) -> Trigger | None:
        """Ask at which number of tokens it would compress, halving what is left; None where it cannot be asked."""
        call, news = self._call, list(fixture.messages)
        async with self.running(1, Draw()) as now:

            async def asked(tokens: int) -> bool | None:
                frame = call.trigger(news, tokens)
                if self.spec.command is None:
                    news.clear()  # the launcher holds them
                return call.triggered(await now.child.ask(frame, self.spec.timeout_s, "saying whether it compresses"))

            try:
                ready = await self._built(now, call, fixture)
                if isinstance(ready, str) or "trigger" not in ready.answers:
                    return None
                return await _first_trigger(asked, fixture.context_length or _WINDOW)
            except (ChildGone, BadFrame):
                return None

    @property
    def recalls(self) -> bool:
        """Whether the target brings a search of its own along."""
        return self.spec.recall is not None

    async def recall(
        self, fixture: Fixture, removed: Sequence[Message], questions: Sequence[Sequence[str]]
    ) -> Recalled:
        """Ask the target's own search, in a new child; a stand-in is its model, so that nothing is paid."""
        subject, texts, problem = self._unpaid(fixture), list[str](), ""
        async with subject.running(1, Draw()) as now:
            try:
                ready = await subject._built(now, self._call, fixture)
                if isinstance(ready, str):
                    return Recalled((), ready)
                frame = {"do": "recall", "name": self.spec.recall, "messages": list(removed), "most": _MOST_RECALLED}
                for queries in questions:
                    found = []
                    for query in queries:
                        what = "searching the removed messages"
                        answer = await now.child.ask({**frame, "query": query}, self.spec.timeout_s, what)
                        frame["messages"] = []  # the launcher holds them
                        if answer["phase"] == "recalled":
                            found.append(str(answer.get("text"))[:_MOST_RECALLED])
                        else:
                            problem = problem or error_text(answer)
                    texts.append("\n".join(found))
            except (ChildGone, BadFrame) as exc:
                problem = problem or str(exc)
            return Recalled(tuple(texts), now.view.outside(problem, self.tree))

    async def next_turn(self, fixture: Fixture) -> NextTurn | None:
        """Compress, let it take one turn, and compare what it sent with the state that it reported."""
        known, messages, call = SessionText(fixture.messages), fixture.messages[: fixture.cuts[0]], self._call
        subject = self._unpaid(fixture)
        async with subject.running(1, Draw()) as now:
            try:
                ready = await subject._built(now, call, fixture)
                if isinstance(ready, str) or "turn" not in ready.answers or not isinstance(call, CommandCall):
                    return None
                answer = await now.child.ask(call.compress(messages, None), self.spec.timeout_s, "compressing")
                result = call.result(answer, messages)
                before = len(now.gateway.log.records)
                turned = call.turned(await now.child.ask(call.turn(TURN), self.spec.timeout_s, "taking a turn"))
            except (ChildGone, BadFrame):
                return None
            await now.gateway.finish(0)
            asked, sent = now.gateway.log.records[:before], now.gateway.log.records[before:]
            sent = [one for one in sent if any(TURN in full_text(message) for message in one.messages)]
            if isinstance(result, str) or result.opaque is not None or not (turned and asked and sent):
                return None
        known.add(one.reply for one in asked)
        return compared(result.messages, asked[-1].messages, sent[0].messages, known)

    async def _fail_once(self, fixture: Fixture, failure: ModelFailure) -> FailureReaction | None:
        """Return what it did when its model failed; None where it asked nothing that could fail."""
        model = FailingModel(failure, OfflineModel(SessionText(fixture.messages)))
        spec = self.spec.model_copy(update={"timeout_s": min(self.spec.timeout_s, _TRIAL_SECONDS)})
        subject = replace(self, spec=spec, complete=model.complete)
        call, segment = subject._call, fixture.messages[: fixture.cuts[0]]
        async with subject.running(1, Draw()) as now:
            result: StepResult | str
            try:
                ready = await subject._built(now, call, fixture)
                if isinstance(ready, str):
                    result = ready
                else:
                    answer = await now.child.ask(call.compress(segment, None), spec.timeout_s, _TRIAL)
                    result = call.result(answer, segment)
            except (ChildGone, BadFrame) as exc:
                if str(exc).startswith(_TRIAL):
                    return FailureReaction.HUNG
                result = str(exc)
            await now.gateway.finish(0)
        if isinstance(result, str):
            return FailureReaction.RAISED if model.failed else None
        if not model.failed or result.opaque is not None:
            return None
        return model.reaction(result, self.count(segment), self.count(result.messages))

    @asynccontextmanager
    async def running(self, segments: int, draw: Draw, allowance: Allowance | None = None) -> AsyncIterator[Running]:
        """Start a child behind its self-test, with the gateway beside it, and end both with the block."""
        python = interpreter(self.spec.python)
        complete = self.complete or OfflineModel(SessionText()).complete
        gateway = Gateway(model=self.model, complete=complete, draw=draw, limits=self.limits, allowance=allowance)
        needs_model = self.spec.llm == "required"
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(run_folder())
            if needs_model:
                await stack.enter_async_context(gateway.serve(folder / "gw"))
            if not self.tree.is_dir():
                raise UserError(f"{self.tree}: the tree under test is not a folder")
            view = open_view(python, self.tree.resolve(), folder)
            if self.sandbox.confined:
                view = view_of(
                    python, self.tree, folder / "gw" if needs_model else None, self.hidden, self.spec.runtime
                )
            yield Running(await self._start(stack, view, folder, segments), view, gateway)

    async def _attempt(self, job: _Job, draw: Draw, progress: _Progress, allowance: Allowance) -> StepVerdict:
        """Start a child, take it through all segments, and end it."""
        async with self.running(len(job.fixture.cuts), draw, allowance) as now:
            try:
                verdict = await self._drive(now, job, progress)
                return replace(verdict, detail=now.view.outside(verdict.detail, self.tree))
            finally:
                progress.calls = [replace(record) for record in now.gateway.log.records]
                progress.output = now.view.outside(progress.output, self.tree)

    async def _start(self, stack: AsyncExitStack, view: SandboxView, folder: Path, segments: int) -> Child:
        """Start the launcher and believe it only after its look around."""
        seconds = self.spec.timeout_s * (segments + 1)
        memory = self.spec.memory_mb * 2**20
        canary = stack.enter_context(canaries(folder, (view.tree, view.launcher)))
        group = stack.enter_context(self.sandbox.limit_memory(memory))
        child = await Child.start(
            self.sandbox.command(view, folder, seconds, self.spec.memory_mb),
            self.sandbox,
            name=folder.name,
            memory=group,
            environment={CANARY_VARIABLE: canary.value},
        )
        stack.push_async_callback(child.close)
        hello = {
            "nonce": child.nonce,
            "max_frame": MAX_FRAME,
            # Node and Bun reserve tens of gigabytes of address space that they never touch.
            "limits": self.sandbox.resource_limits(memory, seconds, address_space=self.spec.command is None),
            "canary": canary.as_frame() if self.sandbox.confined else None,
        }
        try:
            answer = await child.ask(hello, 60, "starting the sandbox")
        except (ChildGone, BadFrame) as exc:
            said = f" It said: {child.output.strip()[:500]}" if child.output.strip() else ""
            raise UserError(f"{view.python} could not be started in the sandbox: {exc}.{said}") from None
        if answer.get("phase") != "hello" or answer.get("hits") != []:
            hits = "; ".join(map(str, answer.get("hits") or ["no report"]))
            raise SandboxBreach(
                f"the sandbox ({self.sandbox.level}) does not hold: {hits}. The compressor was not started"
            )
        return child

    def given(self, now: Running, *, context_length: int | None, focus_topic: str | None, seed: int, run: int) -> Given:
        """Return what a run gives to the target."""
        needs_model = self.spec.llm == "required"

        def inside(path: str) -> str:
            return str(Path(now.view.tree) / (self.tree / path).relative_to(self.tree))

        return Given(
            model=self.model,
            token=now.gateway.token if needs_model else "",
            context_length=context_length,
            focus_topic=focus_topic,
            seed=seed,
            run=run,
            adapter=None if self.spec.adapter is None else read_text(Path(self.spec.adapter)),
            adapter_path=f"{now.view.home}/.compression-eval/{Path(self.spec.adapter or 'adapter').name}",
            gateway=f"{now.view.gateway}/{SOCKET}" if needs_model else "",
            directory=now.view.tree if self.spec.command is None else inside(self.spec.directory),
            import_roots=tuple(map(inside, self.spec.pythonpath)),
            runtime=self.spec.runtime or "",
            budget=self.spec.budgets[0] if self.spec.budgets else None,
        )

    async def _drive(self, now: Running, job: _Job, progress: _Progress) -> StepVerdict:
        """Build the compressor and take it through the segments that are left."""
        child = now.child
        call, context_length = self._call, job.fixture.context_length
        given = self.given(now, context_length=context_length, focus_topic=job.focus_topic, seed=job.seed, run=job.run)
        if progress.steps:
            given = replace(given, resume=(progress.steps[-1], progress.state))
        started = time.monotonic()
        try:
            answer = await child.ask(call.job(given), self.spec.timeout_s, "importing and building the compressor")
            ready = call.ready(answer)
        except (ChildGone, BadFrame) as exc:
            ready = f"while it was imported and built, {exc}"
        if isinstance(ready, str):
            progress.output = child.output
            evidence = await self._evidence(now.gateway, 0, started, time.monotonic())
            return classify(replace(evidence, setup_error=child.limit_reached or ready))
        progress.start_seconds = time.monotonic() - started
        if ready.dropped:
            progress.notes.append(f"left out, since the signature lacks them: {', '.join(ready.dropped)[:500]}")
        progress.resumable, progress.answers = ready.resumable, ready.answers
        if job.when_due:
            verdict = await self._drive_when_due(now, call, job.fixture, progress)
        else:
            verdict = await self._drive_through(now, call, job, progress)
        progress.output = child.output
        if child.output_bytes:
            progress.notes.append(f"the compressor printed {child.output_bytes:,} bytes")
        return verdict

    async def _drive_when_due(
        self, now: Running, call: TargetCall, fixture: Fixture, progress: _Progress
    ) -> StepVerdict:
        """Ask before each call of the agent's model, and compress where the answer is yes."""
        due, segment, verdict = Due(fixture), list[Message](), StepVerdict(Outcome.OK)
        progress.own_trigger = asks = "trigger" in progress.answers
        while not is_stuck(progress.steps) and (news := due.step()) is not None:
            segment += news
            fires = None
            if asks:
                # The launcher holds what a Python target was told before; a command holds nothing.
                state = progress.steps[-1].as_returned if progress.steps else []
                frame = call.trigger(news if isinstance(call, PythonCall) else [*state, *segment], due.tokens)
                try:
                    answer = await now.child.ask(frame, self.spec.timeout_s, "asking whether to compress")
                except (ChildGone, BadFrame) as exc:
                    return StepVerdict(Outcome.TARGET_ERROR, str(exc))
                if answer["phase"] == "raised":
                    return StepVerdict(Outcome.TARGET_ERROR, f"should_compress raised {error_text(answer)}")
                fires = call.triggered(answer)
                progress.own_trigger = asks = fires is not None
            if not (due.by_window if fires is None else fires):
                continue
            verdict = await self._step(now, call, segment, progress)
            if verdict.outcome not in (Outcome.OK, Outcome.NOT_COMPRESSED):
                return verdict
            segment = []
            progress.fired.append(due.seen)
            due.compressed(progress.steps[-1].tokens_after)
        return StepVerdict(Outcome.OK)

    async def _drive_through(self, now: Running, call: TargetCall, job: _Job, progress: _Progress) -> StepVerdict:
        """Take it through the segments that are left."""
        cuts = [0, *job.fixture.cuts]
        verdict = StepVerdict(Outcome.OK)
        for index in range(len(progress.steps), len(cuts) - 1):
            segment = job.fixture.messages[cuts[index] : cuts[index + 1]]
            verdict = await self._step(now, call, segment, progress)
            place = f"step {index + 1} of {len(cuts) - 1}: " if len(cuts) > 2 else ""
            verdict = replace(verdict, detail=place + verdict.detail) if verdict.detail else verdict
            if verdict.outcome is Outcome.NOT_COMPRESSED and index + 2 < len(cuts):
                # A step that does not shrink is data: the session goes on, and what counts is how it ends.
                progress.notes.append(f"not compressed: {verdict.detail}")
            elif verdict.outcome is not Outcome.OK:
                break
            self._write_down(now, job, progress)
        return verdict

    def _write_down(self, now: Running, job: _Job, progress: _Progress) -> None:
        """Write the last round down, where a later process could go on from it."""
        step = progress.steps[-1]
        if job.log is None or not progress.resumable or step.opaque is not None:
            return
        calls = [replace(record) for record in now.gateway.log.records if record.step == len(progress.steps) - 1]
        job.log.add(Round(step, requests_of(calls), progress.state))

    async def _step(self, now: Running, call: TargetCall, segment: list[Message], progress: _Progress) -> StepVerdict:
        """Compress once and judge it; the clock is ours, for the child's could say anything."""
        earlier = progress.steps[-1] if progress.steps else None
        messages = [*(earlier.messages if earlier else []), *segment]
        before = self.count(messages)
        if earlier is not None and earlier.opaque is not None:
            before += earlier.tokens_after
        mark = len(now.gateway.log.records)
        now.gateway.log.step = len(progress.steps)
        clock = StepClock(now.child.pids)
        result: StepResult | str
        try:
            answer = await now.child.ask(call.compress(segment, earlier), self.spec.timeout_s, "compressing")
            clock.stop()
            result = call.result(answer, messages)
        except (ChildGone, BadFrame) as exc:
            clock.stop()
            result = str(exc)
        evidence = await self._evidence(now.gateway, mark, clock.started, clock.started + clock.wall)
        if cut := sum(record.cut_off for record in evidence.calls):
            progress.notes.append(f"{cut} model replies were cut off by the max_tokens or stop that the compressor set")
        if isinstance(result, str):
            return classify(replace(evidence, error=now.child.limit_reached or result))
        served = sum(record.forwarded for record in evidence.calls)
        if result.reported_calls is not None and result.reported_calls != served:
            progress.notes.append(f"the command says {result.reported_calls} model calls; the gateway counted {served}")
        after = self.count(result.messages) if result.opaque is None else opaque_tokens(result.opaque)
        verdict = classify(
            replace(
                evidence,
                degraded=result.degraded,
                degraded_reason=result.reason,
                tokens_before=before,
                tokens_after=after,
                same_object=result.same_object,
            )
        )
        # A retry starts after the last good step, so a step that is tried again must not be in the list.
        if not verdict.retry:
            took = clock.time(result.import_seconds, evidence.calls)
            progress.steps.append(
                Step(
                    result.messages,
                    before,
                    after,
                    took.seconds,
                    took.import_seconds,
                    took.queued_seconds,
                    result.opaque,
                    result.returned,
                    use_of([record for record in now.gateway.log.records if record.step == len(progress.steps)]),
                )
            )
            progress.state = result.state
        return verdict

    async def _evidence(self, gateway: Gateway, mark: int, started: float, ended: float) -> StepEvidence:
        """Collect what the gateway saw of a step that began and ended then, calls that are still open included."""
        if self.spec.llm != "required":
            return StepEvidence(needs_model=False)
        limit = self.spec.timeout_s
        await gateway.finish(started + limit - time.monotonic())
        calls = [replace(record) for record in gateway.log.records[mark:]]
        stalled = any(call.status == "unfinished" and held_up(call, calls, ended) >= limit / 2 for call in calls)
        return StepEvidence(needs_model=True, calls=calls, gateway=gateway.trouble, provider_stalled=stalled)
