"""Targets: from what the user names (a built-in, a class, a file) to a compressor that can be run."""

from __future__ import annotations

import asyncio
import difflib
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eval_core.base.errors import UserError
from eval_core.base.messages import Message
from eval_core.base.threads import computing, waiting
from eval_core.base.tokens import count_messages
from eval_core.compressors.strategies import STRATEGIES, create
from eval_core.compressors.summariser import ModelSummariser
from eval_core.domain.call import Completion, Failed, ModelCall
from eval_core.domain.compression import Compression, ModelUse, Outcome, Step, Subject
from eval_core.domain.fixture import Fixture
from eval_core.domain.target import Builtin, TargetSpec, read_target, target_from
from eval_core.models.offline import OFFLINE_MODEL, complete_offline
from eval_core.sandbox.isolation import Wanted, detect
from eval_core.sandbox.subject import ProcessSubject

__all__ = [
    "KEPT_LIMIT",
    "BuiltinSubject",
    "Complete",
    "Target",
    "find_target",
]

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


@dataclass
class _Bridge:
    """Lets the synchronous compressor, in its thread, call the asynchronous client."""

    complete: Complete
    model: str
    run: int
    fixture: str
    loop: asyncio.AbstractEventLoop
    max_tokens: int
    use: ModelUse
    queued: float = 0.0
    """Seconds spent waiting for a turn, for imports and for retries: not the compressor's latency."""

    def __call__(self, messages: list[Message]) -> str:
        call = ModelCall(
            role="compressor",
            model=self.model,
            messages=tuple(messages),
            max_tokens=self.max_tokens,
            run=self.run,
            prefix=f"compress/{self.fixture}",
        )
        began = time.perf_counter()
        with waiting():
            result: Completion | Failed = asyncio.run_coroutine_threadsafe(self.complete(call), self.loop).result()
        if isinstance(result, Failed):
            raise _ModelFailed(result)
        self.queued += time.perf_counter() - began - result.seconds
        usage, use = result.usage, self.use
        cost = None if usage.cost_usd is None or use.cost_usd is None else use.cost_usd + usage.cost_usd
        self.use = ModelUse(
            use.calls + 1, use.input_tokens + usage.input_tokens, use.output_tokens + usage.output_tokens, cost
        )
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

    async def compress(self, fixture: Fixture, *, run: int, seed: int, focus_topic: str | None = None) -> Compression:
        """Compress a fixture once, segment after segment, with one instance."""
        bridge = None
        loop = asyncio.get_running_loop()
        if self.complete is not None and self.model is not None:
            bridge = _Bridge(self.complete, self.model, run, fixture.name, loop, self.max_tokens, ModelUse())
        try:
            steps = await loop.run_in_executor(_threads(), self._in_turn, fixture, bridge, focus_topic)
        except _ModelFailed as exc:
            outcome = Outcome.BAD_COMPLETION if exc.failure.kind in ("empty", "truncated") else Outcome.INFRA
            return Compression(outcome, f"{exc.failure.kind}: {exc.failure.message}", use=_used(bridge))
        kept = steps[-1].tokens_after / max(steps[-1].tokens_before, 1)
        if kept > KEPT_LIMIT:
            return Compression(
                Outcome.NOT_COMPRESSED, f"{kept:.0%} of the tokens are still there", steps, _used(bridge)
            )
        return Compression(Outcome.OK, steps=steps, use=_used(bridge))

    def _in_turn(self, fixture: Fixture, bridge: _Bridge | None, focus_topic: str | None) -> tuple[Step, ...]:
        with computing():
            return self._steps(fixture, bridge, focus_topic)

    def _steps(self, fixture: Fixture, bridge: _Bridge | None, focus_topic: str | None) -> tuple[Step, ...]:
        compressor = create(self.strategy, ModelSummariser(bridge) if bridge else None)
        state: list[Message] = []
        steps = []
        start = 0
        for cut in fixture.cuts:
            state = [*state, *fixture.messages[start:cut]]
            before = count_messages(state)
            began, queued = time.perf_counter(), bridge.queued if bridge else 0.0
            state = compressor.compress(state, before, focus_topic)
            queued = (bridge.queued - queued) if bridge else 0.0
            seconds = time.perf_counter() - began - queued
            steps.append(Step(state, before, count_messages(state), seconds, queued_seconds=queued))
            start = cut
        return tuple(steps)


def _used(bridge: _Bridge | None) -> ModelUse:
    return bridge.use if bridge else ModelUse()


# From what the user calls the target to a subject that can be run.

_HERMES = Path(__file__).resolve().parents[2] / "docs" / "targets" / "hermes.yml"


@dataclass(frozen=True)
class Target:
    """A compressor, described, and the tree that holds its code."""

    spec: TargetSpec | Builtin
    base: Path
    tree: Path

    def subject(
        self, *, complete: Complete | None, model: str | None, max_tokens: int, sandbox: Wanted, hidden: tuple[str, ...]
    ) -> tuple[Subject, str]:
        """Return the subject and a word about the sandbox it runs in."""
        if isinstance(self.spec, Builtin):
            subject = BuiltinSubject(self.spec.name, complete=complete, model=model, max_tokens=max_tokens)
            return subject, "not needed: the reference compressor is our own code"
        choice = detect(sandbox)
        process = ProcessSubject(
            spec=self.spec,
            base=self.base,
            tree=self.tree,
            sandbox=choice,
            model=model or OFFLINE_MODEL,
            complete=complete or complete_offline,
            count=count_messages,
            hidden=hidden,
        )
        return process, choice.level


def find_target(
    given: str | None, configured: dict[str, Any] | str, root: Path, tree: Path, environ: Mapping[str, str] = os.environ
) -> Target:
    """Choose the target: the command line, an agent project's own runner, or the configuration."""
    hermes = environ.get("HERMES_AGENT_ROOT")
    if given is None and hermes:
        # That runner starts us in our own checkout and means its own tree, whatever is configured here.
        if not Path(hermes).is_dir():
            raise UserError(f"HERMES_AGENT_ROOT={hermes}: no such folder; it should hold the agent's source tree")
        return Target(_with_interpreter(read_target(_HERMES), Path(hermes)), _HERMES.parent, Path(hermes))
    value = given if given is not None else configured
    if isinstance(value, str) and not value.startswith("builtin:"):
        path = root / value
        if not path.exists():
            raise UserError(
                f"--target {value}: no such file; give builtin:anchored, builtin:opaque ... or a target file"
            )
        return Target(read_target(path), path.parent, tree)
    return Target(target_from(value, "target"), root, tree)


def _with_interpreter(spec: TargetSpec | Builtin, tree: Path) -> TargetSpec | Builtin:
    """Use the environment of the agent's own tree, or ours where it has none."""
    if isinstance(spec, Builtin) or spec.python is None:
        return spec
    python = tree / spec.python
    return spec.model_copy(update={"python": str(python.absolute()) if python.exists() else None})
