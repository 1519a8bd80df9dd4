"""How a target is asked, by kind: a Python object built by the launcher, or a command that speaks JSON lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from eval_core.base.messages import Message
from eval_core.domain.call import OpaqueState
from eval_core.domain.compression import Step
from eval_core.domain.target import TargetSpec, substitute
from eval_core.sandbox.exchange import (
    CompressLine,
    StartLine,
    TriggerLine,
    TurnLine,
    answer_to_compress,
    answer_to_start,
    answer_to_trigger,
    is_turned,
)
from eval_core.sandbox.validate import BadFrame, StepResult, error_text, read_step


@dataclass(frozen=True)
class Given:
    """What one run gives to the target; nothing of probes or expected facts is known here."""

    model: str
    token: str
    context_length: int | None
    focus_topic: str | None
    seed: int
    run: int
    adapter: str | None
    """The adapter's text."""
    adapter_path: str
    """Where a command finds it."""
    gateway: str
    """The gateway's socket as the child sees it; empty without a model."""
    directory: str
    """To start in, as the child sees it."""
    import_roots: tuple[str, ...]
    """As the child sees them."""
    runtime: str
    budget: int | None = None
    resume: tuple[Step, Any] | None = None
    """The last good step of an earlier try, and the adapter's state after it."""

    @property
    def variables(self) -> dict[str, Any]:
        """The values of `${...}` that are known on this side."""
        return {
            "MODEL": self.model,
            "LLM_API_KEY": self.token,
            "FOCUS_TOPIC": self.focus_topic,
            "CONTEXT_LENGTH": self.context_length,
            "SEED": self.seed,
            "RUN": self.run,
            "ADAPTER": self.adapter_path,
            "RUNTIME": self.runtime,
            "BUDGET": self.budget,
        }


@dataclass(frozen=True)
class Started:
    """The target is built, or running."""

    dropped: tuple[str, ...] = ()
    """Optional keywords that its signature lacks."""
    resumable: bool = False
    answers: tuple[str, ...] = ()
    """What it can be asked beside `compress`: whether it would, and to take a turn."""


class TargetCall(Protocol):
    """The frames that ask a target, and what its frames mean."""

    def job(self, given: Given) -> dict[str, Any]:
        """Write down what the launcher is to build or start."""

    def ready(self, answer: dict[str, Any]) -> Started | str:
        """Read the answer to the job; a text is why the target cannot be used."""

    def compress(self, segment: list[Message], earlier: Step | None) -> dict[str, Any]:
        """Ask for one step."""

    def result(self, answer: dict[str, Any], given: Sequence[Message]) -> StepResult | str:
        """Read the step's answer to the given messages; a text is what the target did wrong."""

    def trigger(self, messages: Sequence[Message], tokens: int) -> dict[str, Any]:
        """Ask whether it would compress a session of so many tokens now."""

    def triggered(self, answer: dict[str, Any]) -> bool | None:
        """Read the answer; None where it has none."""


def _surroundings(spec: TargetSpec, given: Given) -> dict[str, Any]:
    """Return the part of a job that is the same for all kinds."""
    texts: Mapping[str, Any] = {**given.variables, "FOCUS_TOPIC": given.focus_topic or ""}
    return {
        "adapter": given.adapter,
        "adapter_name": Path(spec.adapter or "adapter").name,
        "env": substitute(spec.env, texts),
        "files": substitute(spec.files, texts),
        "gateway": given.gateway,
        "token": given.token,
        "directory": given.directory,
    }


@dataclass(frozen=True)
class PythonCall:
    """A class or function that the launcher imports into its own process."""

    spec: TargetSpec

    def job(self, given: Given) -> dict[str, Any]:
        """Name what to import, and the keywords to build and call it with."""
        init, call = substitute(self.spec.init, given.variables), substitute(self.spec.call, given.variables)
        return {
            **_surroundings(self.spec, given),
            "command": None,
            "compressor": self.spec.compressor,
            "method": self.spec.method,
            "init": init,
            "call": call,
            "optional": self.spec.optional_init,
            "spec": {
                "compressor": self.spec.compressor,
                "init": init,
                "call": call,
                "model": given.model,
                "base_url": "${LLM_BASE_URL}",
                "api_key": given.token,
                "context_length": given.context_length,
                "focus_topic": given.focus_topic,
                "seed": given.seed,
            },
            "pythonpath": list(given.import_roots),
            "resume": {"messages": given.resume[0].as_returned, "state": given.resume[1]} if given.resume else None,
        }

    def ready(self, answer: dict[str, Any]) -> Started | str:
        """Read the launcher's word on import and construction."""
        if answer["phase"] != "ready":
            return error_text(answer)
        dropped = answer.get("dropped")
        return Started(
            dropped=tuple(map(str, dropped)) if isinstance(dropped, list) else (),
            resumable=answer.get("resumable") is True,
            answers=("trigger",) if answer.get("tells_when") is True else (),
        )

    def compress(self, segment: list[Message], earlier: Step | None) -> dict[str, Any]:
        """Send the new messages; the launcher holds the earlier ones, as the objects that the target returned."""
        return {"do": "compress", "messages": segment}

    def result(self, answer: dict[str, Any], given: Sequence[Message]) -> StepResult | str:
        """Read the launcher's frame."""
        return read_step(answer, given)

    def trigger(self, messages: Sequence[Message], tokens: int) -> dict[str, Any]:
        """Ask through the launcher."""
        return {"do": "due", "messages": list(messages), "tokens": tokens}

    def triggered(self, answer: dict[str, Any]) -> bool | None:
        """Read the launcher's frame."""
        due = answer.get("due")
        return due if isinstance(due, bool) else None


class CommandCall:
    """A program in any language, which gets all that it needs with each line."""

    def __init__(self, spec: TargetSpec) -> None:
        self.spec = spec
        self._number = 0

    def job(self, given: Given) -> dict[str, Any]:
        """Name the program, and the line that it is greeted with."""
        start = StartLine(
            model=given.model,
            base_url="${LLM_BASE_URL}" if given.gateway else "",
            api_key=given.token,
            context_length=given.context_length,
            focus_topic=given.focus_topic,
            seed=given.seed,
            options=substitute(self.spec.init, given.variables),
        )
        return {
            **_surroundings(self.spec, given),
            "command": substitute(self.spec.command or [], {**given.variables, "FOCUS_TOPIC": given.focus_topic or ""}),
            "adapter_path": given.adapter_path,
            "runtime": given.runtime,
            "start": start.model_dump(mode="json"),
            "pythonpath": [],
        }

    def ready(self, answer: dict[str, Any]) -> Started | str:
        """Read the program's first line."""
        if answer["phase"] == "setup_error":
            return error_text(answer)
        text = self._text(answer)
        if isinstance(text, _Ended):
            return f"the command {text.how}"
        line = answer_to_start(text)
        return line if isinstance(line, str) else Started(resumable=line.resumable, answers=line.answers)

    def compress(self, segment: list[Message], earlier: Step | None) -> dict[str, Any]:
        """Send the earlier result with the new messages behind it."""
        self._number += 1
        line = CompressLine(
            id=self._number,
            messages=[*(earlier.as_returned if earlier else []), *segment],
            state=earlier.opaque if earlier else None,
        )
        return {"do": "exchange", "line": line.line()}

    def result(self, answer: dict[str, Any], given: Sequence[Message]) -> StepResult | str:
        """Read the program's answer."""
        text = self._text(answer)
        if isinstance(text, _Ended):
            return f"the command {text.how}"
        return answer_to_compress(text, self._number, given)

    def trigger(self, messages: Sequence[Message], tokens: int) -> dict[str, Any]:
        """Send the messages with the number that a provider would have counted."""
        self._number += 1
        return {"do": "exchange", "line": TriggerLine(id=self._number, messages=list(messages), tokens=tokens).line()}

    def triggered(self, answer: dict[str, Any]) -> bool | None:
        """Read the program's answer."""
        text = self._text(answer)
        return None if isinstance(text, _Ended) else answer_to_trigger(text, self._number)

    def turn(self, text: str) -> dict[str, Any]:
        """Send what the user says next."""
        self._number += 1
        return {"do": "exchange", "line": TurnLine(id=self._number, text=text).line()}

    def turned(self, answer: dict[str, Any]) -> bool:
        """Tell whether the turn was taken."""
        text = self._text(answer)
        return not isinstance(text, _Ended) and is_turned(text, self._number)

    @staticmethod
    def _text(answer: dict[str, Any]) -> str | _Ended:
        if answer["phase"] == "line" and isinstance(answer.get("text"), str):
            return str(answer["text"])
        if answer["phase"] == "ended":
            return _Ended(str(answer.get("problem") or "ended")[:500])
        raise BadFrame(f"the compressor's process sent {str(answer['phase'])[:40]!r} where a line was expected")


@dataclass(frozen=True)
class _Ended:
    how: str


def opaque_tokens(state: OpaqueState) -> int:
    """Estimate the size of a state that nobody but the provider can read, from its length."""
    return len(json.dumps(state.items, ensure_ascii=False)) // 4
