"""Real children, a real gateway, and a model that is a function in this process."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval_core.base.errors import UserError
from eval_core.domain.call import Completion, Failed, ModelCall, Usage
from eval_core.domain.compression import Compression
from eval_core.domain.fixture import Fixture
from eval_core.domain.target import TargetSpec, target_from
from eval_core.sandbox.isolation import SandboxChoice, detect
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import resolve_paths

HERE = Path(__file__).parent


class Model:
    """Answer from a list, then go on with a plain summary; remember every call."""

    def __init__(self, *answers: str | Failed, together: int = 1) -> None:
        self.answers = list(answers)
        self.together = together
        """No call is answered before this many have come."""
        self.enough: asyncio.Event | None = None
        self.calls: list[ModelCall] = []

    async def complete(self, call: ModelCall) -> Completion | Failed:
        self.calls.append(call)
        answer = self.answers.pop(0) if self.answers else "the summary"
        self.enough = self.enough or asyncio.Event()
        if len(self.calls) >= self.together:
            self.enough.set()
        await self.enough.wait()
        if isinstance(answer, Failed):
            return answer
        return Completion(answer, Usage(100, 0, 10, 0.001), "provider/served-1", 0.01)


@pytest.fixture
def model() -> type[Model]:
    return Model


@pytest.fixture(scope="session")
def choice() -> SandboxChoice:
    try:
        return detect()
    except UserError as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc))
        warnings.warn(f"children run unconfined in these tests: {exc}", stacklevel=1)
        return detect("none")


@pytest.fixture
def session() -> Fixture:
    turns = [{"role": role, "content": f"{index} " + "words of the session " * 20} for index, role in
             enumerate(["user", "assistant"] * 6)]  # fmt: skip
    return Fixture(name="session", messages=[{"role": "system", "content": "be brief"}, *turns], context_length=32_000)


@pytest.fixture
def chained(session: Fixture) -> Fixture:
    return session.model_copy(update={"segments": [5, 9]})


def count(messages: list[dict[str, Any]]) -> int:
    return sum(len(str(message.get("content") or "").split()) for message in messages)


@pytest.fixture
def run(choice: SandboxChoice, session: Fixture) -> Callable[..., Compression]:
    """Return a function that compresses once with a spec, a model and a sandbox, all with defaults."""

    def compress(
        spec: TargetSpec | dict[str, Any],
        model: Model | None = None,
        *,
        fixture: Fixture = session,
        tree: Path = HERE / "shapes",
        base: Path = HERE / "shapes",
        sandbox: SandboxChoice = choice,
        focus_topic: str | None = None,
        **options: Any,
    ) -> Compression:
        if isinstance(spec, dict):
            checked = target_from({"llm": "none", "timeout_s": 30, **spec}, "spec")
            assert isinstance(checked, TargetSpec)
            spec = checked
        spec = resolve_paths(spec, base, base, tree, "spec")
        subject = ProcessSubject(spec, tree, sandbox, "provider/served", (model or Model()).complete, count, **options)
        return asyncio.run(subject.compress(fixture, run=3, seed=11, focus_topic=focus_topic))

    return compress
