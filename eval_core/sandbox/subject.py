"""The compressor under test, run in a sandboxed child process, with canaries that the child must not reach."""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.files import read_text
from eval_core.base.messages import Message
from eval_core.domain.compression import Compression, Outcome, Step
from eval_core.domain.fixture import Fixture
from eval_core.domain.target import TargetSpec, substitute
from eval_core.sandbox.classify import CallRecord, StepEvidence, StepVerdict, classify, last_word, requests_of, use_of
from eval_core.sandbox.gateway import SOCKET, Complete, Gateway, GatewayLimits
from eval_core.sandbox.isolation import SandboxChoice, SandboxView, interpreter, open_view, run_folder, view_of
from eval_core.sandbox.process import Child, ChildGone
from eval_core.sandbox.validate import MAX_FRAME, BadFrame, StepResult, error_text, read_step

__all__ = [
    "CANARY_VARIABLE",
    "Canary",
    "Count",
    "ProcessSubject",
    "SandboxBreach",
    "canaries",
]

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

RETRY_RUN = 1000
"""Added to the run index of a retry after a bad completion, so that the same bad answer is not replayed."""


class SandboxBreach(UserError):
    """The self-test found a way out of the sandbox; the compressor was not started."""


@dataclass(frozen=True)
class _Job:
    """One fixture-run, as asked for."""

    fixture: Fixture
    run: int
    seed: int
    focus_topic: str | None


@dataclass
class _Progress:
    """What one try has come to so far."""

    steps: list[Step] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    output: str = ""
    resumable: bool = False
    state: Any = None
    """The adapter's own, after the last good step."""


@dataclass(frozen=True)
class ProcessSubject:
    """Run a target in a child process, confined as the sandbox says, with the gateway as its only model."""

    spec: TargetSpec
    """With absolute paths: `python` and `adapter` come from the base branch, `pythonpath` is in the tree."""
    tree: Path
    """The code under test."""
    sandbox: SandboxChoice
    model: str
    """The compressor model, served whatever the target asks for."""
    complete: Complete
    count: Count
    hidden: tuple[str, ...] = ()
    """Paths in the tree that the target must not see: probes, fixtures, baselines, results."""
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    retries: int = 2

    @property
    def name(self) -> str:
        """How reports call it."""
        return self.spec.name

    async def compress(self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None) -> Compression:
        """Compress a fixture once; the provider's faults are tried again, the target's are its result."""
        job = _Job(fixture, run, seed, focus_topic)
        calls: list[CallRecord] = []
        notes: list[str] = []
        resume: _Progress | None = None
        call_run = run
        for attempt in range(self.retries + 1):
            progress = _Progress()
            if resume is not None and resume.resumable and resume.steps:
                progress.steps, progress.state = list(resume.steps), resume.state
            verdict = await self._attempt(job, call_run, progress)
            calls += progress.calls
            notes += [note for note in progress.notes if note not in notes]
            if not verdict.retry or attempt == self.retries:
                break
            if verdict.outcome is Outcome.BAD_COMPLETION:
                call_run += RETRY_RUN
            resume = progress
        if attempt:
            notes.append(f"tried {attempt + 1} times because of the provider")
        return Compression(
            outcome=verdict.outcome,
            detail=verdict.detail,
            steps=tuple(progress.steps),
            use=use_of(calls),
            requests=requests_of(calls),
            refused=next((record.refusal for record in last_word(progress.calls) if record.refusal), ""),
            notes=tuple(notes),
            output=progress.output,
        )

    async def _attempt(self, job: _Job, call_run: int, progress: _Progress) -> StepVerdict:
        """Start a child, take it through all segments, and end it."""
        python = interpreter(self.spec.python)
        gateway = Gateway(model=self.model, complete=self.complete, run=call_run, limits=self.limits)
        needs_model = self.spec.llm == "required"
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(run_folder())
            if needs_model:
                await stack.enter_async_context(gateway.serve(folder / "gw"))
            if not self.tree.is_dir():
                raise UserError(f"{self.tree}: the tree under test is not a folder")
            view = open_view(python, self.tree.resolve(), folder)
            if self.sandbox.confined:
                view = view_of(python, self.tree, folder / "gw" if needs_model else None, self.hidden)
            try:
                child = await self._start(stack, view, folder, job)
                verdict = await self._drive(child, view, gateway, job, progress)
                return replace(verdict, detail=view.outside(verdict.detail, self.tree))
            finally:
                progress.calls = [replace(record) for record in gateway.log.records]
                progress.output = view.outside(progress.output, self.tree)

    async def _start(self, stack: AsyncExitStack, view: SandboxView, folder: Path, job: _Job) -> Child:
        """Start the launcher and believe it only after its look around."""
        seconds = self.spec.timeout_s * (len(job.fixture.cuts) + 1)
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
            "limits": self.sandbox.resource_limits(memory, seconds),
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

    def _job_frame(self, view: SandboxView, token: str, job: _Job, progress: _Progress) -> dict[str, Any]:
        """Write down what the launcher is to build; nothing of probes or expected facts is known here."""
        needs_model = self.spec.llm == "required"
        variables: dict[str, Any] = {
            "MODEL": self.model,
            "LLM_API_KEY": token if needs_model else "",
            "FOCUS_TOPIC": job.focus_topic,
            "CONTEXT_LENGTH": job.fixture.context_length,
            "SEED": job.seed,
            "RUN": job.run,
        }
        init, call = substitute(self.spec.init, variables), substitute(self.spec.call, variables)
        adapter = None if self.spec.adapter is None else read_text(Path(self.spec.adapter))
        inside = [str(Path(view.tree) / (self.tree / entry).relative_to(self.tree)) for entry in self.spec.pythonpath]
        return {
            "compressor": self.spec.compressor,
            "method": self.spec.method,
            "init": init,
            "call": call,
            "optional": self.spec.optional_init,
            "adapter": adapter,
            "adapter_name": Path(self.spec.adapter or "adapter").name,
            "spec": {
                "compressor": self.spec.compressor,
                "init": init,
                "call": call,
                "model": self.model,
                "base_url": "${LLM_BASE_URL}",
                "api_key": variables["LLM_API_KEY"],
                "context_length": job.fixture.context_length,
                "focus_topic": job.focus_topic,
                "seed": job.seed,
            },
            "env": substitute(self.spec.env, {**variables, "FOCUS_TOPIC": job.focus_topic or ""}),
            "files": substitute(self.spec.files, {**variables, "FOCUS_TOPIC": job.focus_topic or ""}),
            "gateway": f"{view.gateway}/{SOCKET}" if needs_model else "",
            "token": variables["LLM_API_KEY"],
            "directory": view.tree,
            "pythonpath": inside,
            "resume": {"messages": progress.steps[-1].messages, "state": progress.state} if progress.steps else None,
        }

    async def _drive(
        self, child: Child, view: SandboxView, gateway: Gateway, job: _Job, progress: _Progress
    ) -> StepVerdict:
        """Build the compressor and take it through the segments that are left."""
        needs_model = self.spec.llm == "required"
        try:
            frame = self._job_frame(view, gateway.token, job, progress)
            answer = await child.ask(frame, self.spec.timeout_s, "importing and building the compressor")
        except (ChildGone, BadFrame) as exc:
            progress.output = child.output
            return classify(StepEvidence(needs_model, setup_error=f"while it was imported and built, {exc}"))
        if answer["phase"] != "ready":
            progress.output = child.output
            return classify(StepEvidence(needs_model, setup_error=error_text(answer)))
        if dropped := answer.get("dropped"):
            progress.notes.append(f"left out, since the signature lacks them: {', '.join(map(str, dropped))[:500]}")
        progress.resumable = answer.get("resumable") is True
        cuts = [0, *job.fixture.cuts]
        verdict = StepVerdict(Outcome.OK)
        for index in range(len(progress.steps), len(cuts) - 1):
            segment = job.fixture.messages[cuts[index] : cuts[index + 1]]
            verdict = await self._step(child, gateway, segment, progress)
            place = f"step {index + 1} of {len(cuts) - 1}: " if len(cuts) > 2 else ""
            verdict = replace(verdict, detail=place + verdict.detail) if verdict.detail else verdict
            if verdict.outcome is Outcome.NOT_COMPRESSED and index + 2 < len(cuts):
                # A step that does not shrink is data: the session goes on, and what counts is how it ends.
                progress.notes.append(f"not compressed: {verdict.detail}")
            elif verdict.outcome is not Outcome.OK:
                break
        progress.output = child.output
        if child.output_bytes:
            progress.notes.append(f"the compressor printed {child.output_bytes:,} bytes")
        return verdict

    async def _step(self, child: Child, gateway: Gateway, segment: list[Message], progress: _Progress) -> StepVerdict:
        """Compress once and judge it; the clock is ours, for the child's could say anything."""
        before = self.count([*(progress.steps[-1].messages if progress.steps else []), *segment])
        mark = len(gateway.log.records)
        started = time.monotonic()
        result: StepResult | str
        try:
            answer = await child.ask({"do": "compress", "messages": segment}, self.spec.timeout_s, "compressing")
            seconds = time.monotonic() - started
            result = read_step(answer)
        except (ChildGone, BadFrame) as exc:
            result = str(exc)
        evidence = await self._evidence(gateway, mark, started)
        if isinstance(result, str):
            return classify(replace(evidence, error=result))
        after = self.count(result.messages)
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
            progress.steps.append(Step(result.messages, before, after, seconds))
            progress.state = result.state
        return verdict

    async def _evidence(self, gateway: Gateway, mark: int, started: float) -> StepEvidence:
        """Collect what the gateway saw of a step, calls that are still with the provider included."""
        if self.spec.llm != "required":
            return StepEvidence(needs_model=False)
        limit = self.spec.timeout_s
        await gateway.settle(started + limit - time.monotonic())
        calls = [replace(record) for record in gateway.log.records[mark:]]
        now = time.monotonic()
        stalled = any(call.status == "unfinished" and now - call.forwarded_at >= limit / 2 for call in calls)
        return StepEvidence(needs_model=True, calls=calls, gateway=gateway.trouble, provider_stalled=stalled)
