"""Check a target point by point: the protocol of a command, one compression, and what it does when its model fails."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from eval_core.base.messages import Message
from eval_core.domain.call import Completion, Draw, ModelCall, Usage
from eval_core.domain.compression import Outcome, both_ends
from eval_core.domain.fixture import Fixture
from eval_core.domain.model_failure import FailureReaction
from eval_core.sandbox.exchange import CompressLine, ErrorLine, answer_to_compress, read_error
from eval_core.sandbox.process import ChildGone
from eval_core.sandbox.subject import ProcessSubject, Running
from eval_core.sandbox.target_call import CommandCall
from eval_core.sandbox.validate import BadFrame, StepResult

_SHOWN = 800
_FLUSHED = " (a line that ends with a newline and is flushed)"
"""What is forgotten most often where an answer does not come."""
_SUMMARY = "The user asked for retries in app/fetch.py. Three attempts were added; the tests pass."


_WORDS = {
    FailureReaction.DESTROYED: "the session was cut without a summary, and no error was reported: users would not know"
}


@dataclass(frozen=True)
class ContractCheck:
    """One point of the contract."""

    name: str
    state: Literal["ok", "failed", "warning"]
    detail: str = ""


def _turns(topic: str, count: int) -> list[Message]:
    """Return a session of plain turns and tool calls, long enough that something can be cut."""
    messages: list[Message] = [
        {"role": "user", "content": f"Please look at {topic}. " + "Take care of every case. " * 20}
    ]
    for number in range(count):
        key = f"{topic}-{number}"
        call = {"name": "read_file", "arguments": json.dumps({"path": f"{topic}/part_{number}.py"})}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [{"id": key, "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": key, "content": f"def part_{number}(): ...\n" * 30},
            {"role": "assistant", "content": f"Part {number} of {topic} is fine. " * 10},
            {"role": "user", "content": f"Go on with part {number + 1}."},
        ]  # fmt: skip
    return messages


_SYSTEM: Message = {"role": "system", "content": "You are a careful engineer."}
_FIRST = [_SYSTEM, *_turns("app", 16)]
"""Longer than what agents keep word for word of a session this small."""
_SESSION = Fixture(name="check", messages=_FIRST, context_length=32_000)
_SECOND = _turns("tests", 3)
_ODD_TEXT = [
    _SYSTEM,
    {"role": "user", "content": [{"type": "text", "text": "Ünïcödé, 日本語, 👩‍💻, \u2028 and \\u0000"}]},
    {"role": "assistant", "content": 'quotes " and \\ backslashes\r\nand lines'},
    *_turns("日本語", 2),
    {"role": "user", "content": "a long line: " + "x" * 1_000_000},
    {"role": "assistant", "content": "read"},
    *_turns("after", 2),
]


async def _answering(call: ModelCall) -> Completion:
    return Completion(_SUMMARY, Usage(100, 0, 20, 0.0), call.model, 0.0)


@dataclass
class _Play:
    """One process of the command, and what was seen of it."""

    subject: ProcessSubject
    now: Running
    tell: Callable[[ContractCheck], None]
    number: int = 0
    dead: bool = False

    def note(self, name: str, problem: str | None, *, grave: bool = True) -> bool:
        state: Literal["ok", "failed", "warning"] = "ok" if problem is None else "failed" if grave else "warning"
        self.tell(ContractCheck(name, state, problem or ""))
        return problem is None

    async def line(self, text: str) -> str | None:
        """Send any line; return the answer, or None when the command is gone (and note it)."""
        try:
            frame = {"do": "exchange", "line": text}
            answer = await self.now.child.ask(frame, self.subject.spec.timeout_s, f"the answer{_FLUSHED}")
        except (ChildGone, BadFrame) as exc:
            self._gone(str(exc))
            return None
        if answer["phase"] == "line":
            return str(answer["text"])
        self._gone(f"the command {answer.get('problem')}")
        return None

    def _gone(self, why: str) -> None:
        self.dead = True
        self.note("stays alive", why)

    async def compress(self, messages: list[Message], earlier: StepResult | None = None) -> StepResult | str:
        self.number += 1
        before = (earlier.returned or []) if earlier else []
        asked = CompressLine(id=self.number, messages=[*before, *messages], state=earlier.opaque if earlier else None)
        text = await self.line(asked.line())
        return "the command is gone" if text is None else answer_to_compress(text, self.number, asked.messages)

    async def expect_error(self, name: str, line: dict[str, Any]) -> None:
        """Send a line that cannot be served: the only right answer is an error, and life goes on."""
        text = await self.line(json.dumps(line))
        if text is None:
            return
        said = read_error(text)
        right = isinstance(said, ErrorLine) and said.id in (None, line.get("id"))
        self.note(name, None if right else f'a line with "type": "error" was expected, and this came: {text[:200]}')


@dataclass(frozen=True)
class _Stage:
    subject: ProcessSubject
    tell: Callable[[ContractCheck], None]

    @asynccontextmanager
    async def play(self, name: str) -> AsyncIterator[_Play | None]:
        """Start the command afresh; None (and a failed check) when it is not ready."""
        subject = replace(self.subject, complete=_answering)
        async with subject.running(12, Draw()) as now:
            call = CommandCall(subject.spec)
            given = subject.given(now, context_length=32_000, focus_topic=None, seed=0, run=0)
            try:
                ready = call.ready(
                    await now.child.ask(call.job(given), subject.spec.timeout_s, f"the answer to start{_FLUSHED}")
                )
            except (ChildGone, BadFrame) as exc:
                ready = str(exc)
            play = _Play(subject, now, self.tell)
            said = both_ends(now.child.output.strip(), _SHOWN)
            problem = None if not isinstance(ready, str) else ready + (f"; it printed: {said}" if said else "")
            yield play if play.note(name, problem) else None


async def check_contract(subject: ProcessSubject, tell: Callable[[ContractCheck], None]) -> None:
    """Run every check in the sandbox, and tell of each as it is done; the order is that of a session's life."""
    if subject.spec.command is None:
        works = await _compresses(subject, tell)
    else:
        works = await _keeps_protocol(_Stage(subject, tell), subject.spec.llm == "required")
    if works:
        for failure, done in (await subject.try_failures(_SESSION)).items():
            bad = done in (FailureReaction.DESTROYED, FailureReaction.HUNG)
            tell(ContractCheck(f"model {failure.words}", "warning" if bad else "ok", _WORDS.get(done, done.words)))


async def _compresses(subject: ProcessSubject, tell: Callable[[ContractCheck], None]) -> bool:
    """Build a Python compressor and compress once."""
    done = await replace(subject, complete=_answering, retries=0).compress(_SESSION, run=0, seed=0)
    built = done.outcome is not Outcome.SETUP_ERROR
    tell(ContractCheck("is imported and built", "ok" if built else "failed", "" if built else done.detail))
    if built:
        state: Literal["ok", "failed", "warning"] = "ok" if done.outcome is Outcome.OK else "failed"
        if done.outcome is Outcome.NOT_COMPRESSED:
            state = "warning"
        tell(ContractCheck("compresses a session", state, done.detail))
    return built


async def _keeps_protocol(stage: _Stage, needs_model: bool) -> bool:
    async with stage.play("answers start with ready") as play:
        if play is None:
            return False
        await _session(play, needs_model)
    async with stage.play("starts again from nothing") as play:
        if play is not None:
            result = await play.compress(_ODD_TEXT)
            play.note(
                "takes unicode, content parts and a line of a megabyte", result if isinstance(result, str) else None
            )
    return True


async def _session(play: _Play, needs_model: bool) -> None:
    first = await play.compress(_FIRST)
    if not play.note("compresses a session", first if isinstance(first, str) else None) or isinstance(first, str):
        return
    count = play.subject.count
    if first.opaque is None:
        before, after = count(_FIRST), count(first.messages)
        problem = None if after < before else f"{after:,} of {before:,} tokens are still there"
        play.note("returns less than it was given", problem, grave=False)
        same = first.messages[:1] == [_SYSTEM]
        play.note("keeps the system message first", None if same else "it is not the first message", grave=False)
    if needs_model:
        calls = len(play.now.gateway.log.records)
        play.note("calls the model through the gateway", None if calls else "no call came; use base_url and api_key")
    second = await play.compress(_SECOND, first)
    play.note("compresses the next segment of the same session", second if isinstance(second, str) else None)
    play.number += 1
    await play.expect_error(
        "answers a session without messages with an error",
        {"type": "compress", "id": play.number, "messages": [], "state": None},
    )
    play.number += 1
    await play.expect_error("answers a line of unknown type with an error", {"type": "later", "id": play.number})
    again = await play.compress(_FIRST)
    play.note("goes on after an error", again if isinstance(again, str) else None)
    play.number += 1
    later = {"type": "compress", "id": play.number, "messages": _FIRST, "state": None, "added_later": True}
    text = await play.line(json.dumps(later))
    result = "the command is gone" if text is None else answer_to_compress(text, play.number, _FIRST)
    play.note("ignores a field that it does not know", result if isinstance(result, str) else None)
    if play.dead:
        return
    try:
        ended = await play.now.child.ask({"do": "finish"}, 30, "ending")
        status = ended.get("status")
    except (ChildGone, BadFrame) as exc:
        play.note("ends when its input ends", str(exc))
        return
    wrong = (
        "it was still running after 10 s" if status is None else f"it ended with status {status}" if status else None
    )
    play.note("ends when its input ends", wrong, grave=status is None)
