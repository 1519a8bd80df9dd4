"""Targets: from what the user names (a built-in, a class, a file) to a compressor that can be run."""

from __future__ import annotations

import asyncio
import difflib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.files import read_text
from eval_core.base.messages import Message
from eval_core.base.shipped import shipped
from eval_core.base.threads import computing, waiting
from eval_core.base.tokens import count_messages
from eval_core.compressors.strategies import ASK_NOBODY, STRATEGIES, create
from eval_core.compressors.summariser import ModelSummariser
from eval_core.compressors.thresholds import effective_window
from eval_core.domain.call import Completion, Draw, Failed, ModelCall
from eval_core.domain.compression import Compression, ModelRequest, ModelUse, Outcome, Round, RoundLog, Step, Subject
from eval_core.domain.fixture import Fixture
from eval_core.domain.target import Builtin, TargetSpec, read_target, target_from
from eval_core.models.offline import OFFLINE_MODEL
from eval_core.models.refusals import said_instead
from eval_core.sandbox.classify import NO_USE
from eval_core.sandbox.due import Due, is_stuck
from eval_core.sandbox.isolation import Wanted, detect, interpreter
from eval_core.sandbox.subject import ProcessSubject

# The reference compressors as subjects: our own code, run in this process.

KEPT_LIMIT = 0.90
"""A state that keeps more than this share of the tokens was not compressed."""

Complete = Callable[[ModelCall], Any]


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads of their own: they wait for model calls, and the calls need the threads that everybody shares."""
    return ThreadPoolExecutor(256, thread_name_prefix="compress")


class _ModelFailed(Exception):
    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _shared(messages: Sequence[Message], *, first: bool) -> int:
    """Return how many messages are the same in every run: the first prompt, and later what comes before the summary."""
    if first:
        return len(messages)
    asks_last = len(messages) > 2  # instructions, transcript, and then what this run has written so far
    return len(messages) - 1 if asks_last else 0


@dataclass
class _Bridge:
    """Lets the synchronous compressor, in its thread, call the asynchronous client."""

    complete: Complete | None
    """None where rules summarise: then nothing is asked."""
    model: str | None
    run: int
    loop: asyncio.AbstractEventLoop
    max_tokens: int
    use: ModelUse = field(default_factory=ModelUse)
    of_step: ModelUse = field(default_factory=ModelUse)
    requests: list[ModelRequest] = field(default_factory=list)
    step: int = 0
    refused: str = ""
    """What the model said in place of a summary, if it did."""
    queued: float = 0.0
    """Seconds spent waiting for a turn, for imports and for retries: not the compressor's latency."""

    def take_up(self, done: Sequence[Round]) -> None:
        """Go on after rounds that were asked and paid for before."""
        for one in done:
            self.requests.extend(one.requests or ())
            self.use += one.step.use

    def begin(self, step: int) -> tuple[int, float]:
        """Begin a step; return what was asked and waited for before it."""
        self.step, self.of_step = step, ModelUse()
        return len(self.requests), self.queued

    def __call__(self, messages: list[Message]) -> str:
        assert self.complete is not None
        assert self.model is not None
        call = ModelCall(
            role="compressor",
            model=self.model,
            messages=tuple(messages),
            max_tokens=self.max_tokens,
            draw=Draw(self.run),
            shared=_shared(messages, first=not self.use.calls),
        )
        began = time.perf_counter()
        with waiting():
            result: Completion | Failed = asyncio.run_coroutine_threadsafe(self.complete(call), self.loop).result()
        if isinstance(result, Failed):
            raise _ModelFailed(result)
        self.requests.append(ModelRequest(tuple(messages), self.step, result.text))
        self.queued += time.perf_counter() - began - result.seconds
        self.refused = said_instead(result.text, result.refusal) or self.refused
        told = result.usage
        use = ModelUse(
            calls=1, input_tokens=told.input_tokens, output_tokens=told.output_tokens, cost_usd=told.cost_usd
        )
        self.use, self.of_step = self.use + use, self.of_step + use
        return result.text


@dataclass(frozen=True)
class BuiltinSubject:
    """One of the shipped strategies, with rules or with a model."""

    strategy: str = "anchored"
    complete: Complete | None = None
    model: str | None = None
    max_tokens: int = 8_000

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            near = difflib.get_close_matches(self.strategy, STRATEGIES, n=1)
            hint = f"; did you mean builtin:{near[0]}?" if near else ""
            raise UserError(f"builtin:{self.strategy}: no such compressor{hint} Known: {', '.join(STRATEGIES)}")

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"builtin:{self.strategy}"

    @property
    def deterministic(self) -> bool:
        """Whether every run comes out the same, so that one is enough."""
        return self.complete is None

    async def compress(
        self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None, log: RoundLog | None = None
    ) -> Compression:
        """Compress a fixture once, segment after segment, with one instance; go on after the rounds of a log."""
        bridge, loop = self._bridge(run), asyncio.get_running_loop()
        try:
            steps = await loop.run_in_executor(_threads(), self._in_turn, fixture, bridge, focus_topic, log)
        except _ModelFailed as exc:
            outcome = Outcome.BAD_COMPLETION if exc.failure.kind in NO_USE else Outcome.INFRA
            detail = f"{exc.failure.kind}: {exc.failure.message}"
            return Compression(outcome, detail, use=bridge.use, requests=tuple(bridge.requests))
        kept = steps[-1].tokens_after / max(steps[-1].tokens_before, 1)
        if kept > KEPT_LIMIT:
            detail = f"{kept:.0%} of the tokens are still there"
            return Compression(Outcome.NOT_COMPRESSED, detail, steps, bridge.use, requests=tuple(bridge.requests))
        return Compression(
            Outcome.OK, steps=steps, use=bridge.use, requests=tuple(bridge.requests), refused=bridge.refused
        )

    async def compress_when_due(self, fixture: Fixture, *, seed: int) -> Compression:
        """Compress whenever the strategy says so, or whenever the window is nearly full."""
        del seed
        bridge, loop = self._bridge(0), asyncio.get_running_loop()
        fired: list[int] = []
        steps: list[Step] = []
        try:
            own = await loop.run_in_executor(_threads(), self._when_due, fixture, bridge, steps, fired)
        except _ModelFailed as exc:
            detail = f"{exc.failure.kind}: {exc.failure.message}"
            return Compression(Outcome.INFRA, detail, tuple(steps), bridge.use, fired=tuple(fired))
        return Compression(Outcome.OK, "", tuple(steps), bridge.use, fired=tuple(fired), own_trigger=own)

    def _bridge(self, run: int) -> _Bridge:
        return _Bridge(self.complete, self.model, run, asyncio.get_running_loop(), self.max_tokens)

    def _create(self, fixture: Fixture, bridge: _Bridge) -> Any:
        by_model = bridge.complete is not None and bridge.model is not None
        summariser = ModelSummariser(bridge) if by_model else None
        return create(self.strategy, summariser, effective_window(fixture.context_length))

    def _when_due(self, fixture: Fixture, bridge: _Bridge, steps: list[Step], fired: list[int]) -> bool:
        compressor = self._create(fixture, bridge)
        ask = getattr(compressor, "should_compress", None)
        due, state = Due(fixture), list[Message]()
        with computing():
            while not is_stuck(steps) and (news := due.step()) is not None:
                state = [*state, *news]
                if not (due.by_window if ask is None else ask(state, due.tokens)):
                    continue
                before = count_messages(state)
                began = time.perf_counter()
                state = compressor.compress(state, before)
                steps.append(Step(state, before, count_messages(state), time.perf_counter() - began))
                fired.append(due.seen)
                due.compressed(steps[-1].tokens_after)
        return ask is not None

    def _in_turn(
        self, fixture: Fixture, bridge: _Bridge, focus_topic: str | None, log: RoundLog | None
    ) -> tuple[Step, ...]:
        with computing():
            return self._steps(fixture, bridge, focus_topic, log)

    def _steps(
        self, fixture: Fixture, bridge: _Bridge, focus_topic: str | None, log: RoundLog | None
    ) -> tuple[Step, ...]:
        compressor = self._create(fixture, bridge)
        # What an instance knows of earlier rounds is all in the messages.
        done = log.read() if log is not None else []
        steps = [one.step for one in done]
        state: list[Message] = steps[-1].messages if steps else []
        bridge.take_up(done)
        cuts = [0, *fixture.cuts]
        for step in range(len(steps), len(fixture.cuts)):
            state = [*state, *fixture.messages[cuts[step] : cuts[step + 1]]]
            before = count_messages(state)
            mark, queued = bridge.begin(step)
            began = time.perf_counter()
            state = compressor.compress(state, before, focus_topic)
            queued = bridge.queued - queued
            seconds = time.perf_counter() - began - queued
            steps.append(Step(state, before, count_messages(state), seconds, queued_seconds=queued, use=bridge.of_step))
            if log is not None:
                log.add(Round(steps[-1], tuple(bridge.requests[mark:])))
        return tuple(steps)


# From what the user calls the target to a subject that can be run. Every path of a target is resolved here, once.

SHIPPED_TARGETS = shipped("docs/targets")


@dataclass(frozen=True)
class Target:
    """A compressor, described, and the tree that holds its code."""

    spec: TargetSpec | Builtin
    """Its paths are absolute."""
    tree: Path
    """The code under test; absolute."""
    written: TargetSpec | Builtin
    """The description as it stands in its file, the same on every machine."""

    @property
    def name(self) -> str:
        """How reports call it."""
        return f"builtin:{self.spec.name}" if isinstance(self.spec, Builtin) else self.spec.name

    @property
    def asks_model(self) -> bool:
        """Whether its compressions are a model's work, where there is one."""
        return self.spec.name not in ASK_NOBODY if isinstance(self.spec, Builtin) else self.spec.llm == "required"

    def moved_to(self, there: TargetSpec) -> Target:
        """Return the same compressor, called in the same way, at the place that another description has it."""
        if isinstance(self.spec, Builtin) or isinstance(self.written, Builtin):
            return self
        place = {"compressor": there.compressor, "pythonpath": there.pythonpath}
        return replace(
            self,
            spec=self.spec.model_copy(update=place),
            written=self.written.model_copy(update={"compressor": there.compressor}),
        )

    def subject(
        self, *, complete: Complete | None, model: str | None, max_tokens: int, sandbox: Wanted, hidden: tuple[str, ...]
    ) -> tuple[Subject, str]:
        """Return the subject and a word about the sandbox it runs in."""
        if isinstance(self.spec, Builtin):
            subject = BuiltinSubject(self.spec.name, complete=complete, model=model, max_tokens=max_tokens)
            return subject, "not needed: the reference compressor is our own code"
        # Before anything is measured or paid for.
        interpreter(self.spec.python)
        if self.spec.adapter is not None:
            read_text(Path(self.spec.adapter))
        choice = detect(sandbox)
        process = ProcessSubject(
            spec=self.spec,
            tree=self.tree,
            sandbox=choice,
            model=model or OFFLINE_MODEL,
            complete=complete,
            count=count_messages,
            hidden=hidden,
        )
        return process, choice.in_words


def find_target(
    given: str | None,
    configured: dict[str, Any] | str,
    root: Path,
    tree: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Target:
    """Choose the target: the command line, an agent project's own runner, or the configuration.

    What the configuration says is relative to its folder, `root`; what a target file says, to that file. The tree under
    test is the root unless another is named; a target file from outside the root describes the code beside it.
    """
    if tree is not None and not tree.is_dir():
        raise UserError(f"--tree {tree}: no such folder; it holds the code under test")
    hermes = environ.get("HERMES_AGENT_ROOT")
    if given is None and hermes:
        # That runner starts us in our own checkout and means its own tree, whatever is configured here.
        return _hermes(Path(hermes), tree)
    home = folder = root.resolve()
    value, where = configured, "target"
    if given is not None and not given.startswith("builtin:"):
        path = Path(given)
        if not path.is_file():
            raise UserError(
                f"--target {given}: no such file; give builtin:anchored, builtin:opaque ... or a target file"
            )
        # A link to a target file is that file, whose code is beside it.
        written, where, folder = read_target(path), given, path.resolve().parent
        home = home if folder.is_relative_to(home) else folder
        tree = tree or home
    elif given is None and isinstance(value, str) and not value.startswith("builtin:"):
        path = root / value
        if not path.is_file():
            raise UserError(f"target: {value}: no such file in {root.resolve()}; it is relative to the configuration")
        written, where, folder = read_target(path), str(path), path.resolve().parent
    else:
        written = target_from(value if given is None else given, where)
    tree = (tree or root).resolve()
    if isinstance(written, Builtin):
        return Target(written, tree, written)
    home = home if folder.is_relative_to(home) else folder
    return Target(resolve_paths(written, folder, home, tree, where), tree, written)


def _absolute(folder: Path, named: str) -> str:
    # The last link is left alone: a virtual environment's python is a link, and without it there is no environment.
    return os.path.normpath(folder / Path(named).expanduser())


def resolve_paths(spec: TargetSpec, folder: Path, home: Path, tree: Path, where: str) -> TargetSpec:
    """Return the spec with absolute paths.

    The interpreter, the runtime and the adapter are those beside the file. Import roots, and the folder that a command
    is started in, are looked up in the tree under test, at the place where they lie below `home`, so that a pull
    request's own code is run and nothing else.
    """

    def in_tree(entry: str, field: str) -> str:
        path = Path(_absolute(folder, entry))
        if not path.is_relative_to(tree):
            if not path.is_relative_to(home):
                raise UserError(
                    f"{where}: {field}: {entry!r} is {path}, which is outside the tree under test ({tree}); "
                    "name the tree with --tree"
                )
            path = tree / path.relative_to(home)
        return str(path)

    return spec.model_copy(
        update={
            "python": spec.python and _absolute(folder, spec.python),
            "runtime": spec.runtime and _absolute(folder, spec.runtime),
            "adapter": spec.adapter and _absolute(folder, spec.adapter),
            "pythonpath": [in_tree(entry, "pythonpath") for entry in spec.pythonpath],
            "directory": in_tree(spec.directory, "directory"),
        }
    )


def _hermes(agent: Path, tree: Path | None) -> Target:
    """Return the shipped target as if it were in the agent's folder, with our own interpreter where that has none."""
    if not agent.is_dir():
        raise UserError(f"HERMES_AGENT_ROOT={agent}: no such folder; it should hold the agent's source tree")
    agent = agent.resolve()
    tree = (tree or agent).resolve()
    written = read_target(SHIPPED_TARGETS / "hermes.yml")
    assert isinstance(written, TargetSpec)
    python = written.python and _absolute(agent, written.python)
    update = {
        "adapter": written.adapter and str(SHIPPED_TARGETS / written.adapter),
        "python": python if python and Path(python).exists() else None,
    }
    return Target(resolve_paths(written.model_copy(update=update), agent, agent, tree, "hermes.yml"), tree, written)
