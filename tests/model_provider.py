"""A model provider on loopback, with faults, for benchmarks, tests and trials without an account."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from eval_core.base.errors import UserError
from eval_core.base.messages import Message, content_text
from eval_core.base.tokens import count_messages, count_text

__all__ = [
    "MISBEHAVIOURS",
    "Asked",
    "LoopbackProvider",
    "grade",
    "reply_to",
]

# What the loopback provider says: short deterministic texts, made from the prompt alone.

_DIMENSIONS = (
    "accuracy", "context_awareness", "artifact_trail", "completeness", "continuity", "instruction_following",
)  # fmt: skip
_KEYS = ("accuracy", "context", "artifact", "complete", "continuity", "instruction")  # of the reply that is asked for
_WORD = re.compile(r"[A-Za-z0-9_]{3,}")
_HEADING = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_ANSWER = re.compile(r"^<<<(\w+)\n(.*?)\n\1>>>", re.MULTILINE | re.DOTALL)
_FACTS = re.compile(r"^Expected facts.*?:\n((?:- .+\n?)+)", re.MULTILINE)
_STALE = re.compile(r"^Superseded values.*?:\n((?:- .+\n?)+)", re.MULTILINE)
_ARTIFACT = re.compile(r"[\w./-]+\.\w{1,5}\b|#\d+|\b[0-9a-f]{7,40}\b|\b\w+_\w+\b|\d{2,}")
_SUMMARY_LINES = 60
_SUMMARY_CHARS = 5_000  # models stay far below the room that they are given
_RAMBLING = 300
_ANSWER_CHARS = 500  # what a model makes of "at most 100 words"
_SECTIONS = (
    ("file|artifact|path|change", r"\.\w{1,4}\b|/"),
    ("decision|decided|choice|why", r"decid|because|instead|chose|rather|keep"),
    ("next|open|todo|remain|pending|step", r"next|todo|still|remain|pending|follow"),
    ("error|problem|bug|issue|blocker", r"error|fail|exception|traceback|bug"),
    ("constraint|rule|preference|instruction", r"never|always|must|only|do not|don't"),
)


@lru_cache(maxsize=65_536)
def _words(text: str) -> frozenset[str]:
    """Return the words of a text; the same context is asked about many times."""
    return frozenset(word.lower() for word in _WORD.findall(text))


def _lines(messages: Sequence[Message]) -> list[str]:
    lines = []
    for message in messages:
        lines += [line.strip()[:300] for line in content_text(message).splitlines() if line.strip()]
    return list(dict.fromkeys(lines))


def _entries(pattern: re.Pattern[str], prompt: str) -> list[list[str]]:
    found = pattern.search(prompt)
    return [line[2:].lower().split(" or ") for line in found.group(1).splitlines()] if found else []


def grade(prompt: str) -> str:
    """Grade as the prompt asks, by looking for the expected facts in the answer."""
    between = _ANSWER.search(prompt)
    answer = between.group(2).lower() if between else ""
    facts, stale = _entries(_FACTS, prompt), _entries(_STALE, prompt)
    found = [options for options in facts if any(option.strip('`" ') in answer for option in options)]
    share = len(found) / len(facts) if facts else 0.0
    wrong = any(option.strip('`" ') in answer for options in stale for option in options)
    named = [options for options in facts if any(_ARTIFACT.search(option) for option in options)]
    trail = sum(options in found for options in named) / len(named) if named else share
    form = (2.0 if "context" in answer else 1.0) if not found else 2.5 + 2.5 * share - (len(answer) > _RAMBLING)
    scores = (5 * share * (0.6 if wrong else 1), 5 * share * (0.3 if wrong else 1), 5 * trail, 5 * share, 5 * share**2)
    rounded = (round(score, 1) for score in (*scores, form))
    reply = {"reason": f"{len(found)} of {len(facts)} facts", **dict(zip(_KEYS, rounded, strict=True))}
    return json.dumps(reply, separators=(",", ":"))


def _quote(messages: Sequence[Message]) -> str:
    question = _words(content_text(messages[-1]))
    scored = []
    for at, line in enumerate(_lines(messages[:-1])):
        overlap = len(question & _words(line))
        if overlap:
            scored.append((-overlap, at, line))
    best, room = [], _ANSWER_CHARS
    for item in sorted(scored)[:8]:
        if len(item[2]) <= room:
            best.append(item)
            room -= len(item[2])
    return "\n".join(line for _, _, line in sorted(best, key=lambda item: item[1])) or "Not in context."


def _summary(messages: Sequence[Message], headings: list[str]) -> str:
    newest = [line for line in _lines(messages[1:] or messages) if _ARTIFACT.search(line)][-_SUMMARY_LINES:]
    while sum(map(len, newest)) > _SUMMARY_CHARS:
        del newest[0]
    salient = newest
    if not headings:
        return "\n".join(salient) or "Nothing to keep."
    taken: set[str] = set()
    parts = []
    for at, heading in enumerate(headings):
        wanted = next((given for asked, given in _SECTIONS if re.search(asked, heading, re.IGNORECASE)), ".")
        last = at == len(headings) - 1
        chosen = [s for s in salient if s not in taken and (last or re.search(wanted, s, re.IGNORECASE))]
        chosen = chosen if last else chosen[:15]
        taken.update(chosen)
        parts.append(f"## {heading}\n" + ("\n".join(f"- {line}" for line in chosen) or "(none)"))
    return "\n\n".join(parts)


_NUMBERED = re.compile(r"^\d+\. (.+)$(?=[\s\S]*^\[\[1\]\]$)", re.MULTILINE)
"""Questions that share a call, each to be answered below its number in double brackets."""


def reply_to(messages: Sequence[Message]) -> str:
    """Answer a prompt: grades for a rubric, a summary for a summariser's, quotations for a question."""
    prompt = "\n".join(content_text(message) for message in messages)
    if all(name in prompt for name in _DIMENSIONS):
        return grade(prompt)
    if questions := _NUMBERED.findall(content_text(messages[-1])):
        alone = "The session stops here. Question about it:\n\n"
        answers = (_quote([*messages[:-1], {"role": "user", "content": alone + question}]) for question in questions)
        return "\n".join(f"[[{number}]]\n{answer}" for number, answer in enumerate(answers, 1))
    if re.search(r"\bquestion\b.*:\s*\n", content_text(messages[-1])[:200], re.IGNORECASE):
        return _quote(messages)  # the instructions may speak of summaries all the same
    first = content_text(messages[0])
    if re.search(r"\b(?:summar|condens|compact|compress)", first[:2_000], re.IGNORECASE):
        return _summary(messages, _HEADING.findall(first))
    return _quote(messages)


# A model provider on loopback: for benchmarks, tests and trying things out without an account.


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    number: int
    """From 0, in order of arrival."""
    model: str
    messages: Sequence[Message]
    max_tokens: int
    body: Mapping[str, Any] = field(repr=False)

    @property
    def last(self) -> str:
        """The text of the last message."""
        return content_text(self.messages[-1])

    @property
    def text(self) -> str:
        """The text of all messages."""
        return "\n".join(map(content_text, self.messages))


def _error(status: int, message: str, code: str | None = None, **headers: str) -> web.Response:
    body = {"error": {"message": message, "type": "loopback", "code": code}}
    return web.json_response(body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


_ERRORS: dict[str, Callable[[], web.Response]] = {
    "429": lambda: _error(429, "slow down"),
    "429-retry-after": lambda: _error(429, "slow down", Retry_After="7"),
    "429-quota-day": lambda: _error(429, "daily limit of 50 requests reached", Retry_After="24367"),
    "429-quota": lambda: _error(429, "you exceeded your current quota", "insufficient_quota"),
    "500": lambda: _error(500, "internal error"),
    "502": lambda: web.Response(status=502, text="<html>bad gateway</html>", content_type="text/html"),
    "503": lambda: _error(503, "overloaded"),
    "529": lambda: _error(529, "overloaded"),
    "400": lambda: _error(400, "unknown field"),
    "401": lambda: _error(401, "no such key"),
    "402": lambda: _error(402, "out of credit"),
    "403": lambda: _error(403, "not for you"),
    "404": lambda: _error(404, "no such model"),
    "context-length": lambda: _error(400, "the maximum context length is 10 tokens", "context_length_exceeded"),
    "html": lambda: web.Response(text="<html><body>Welcome</body></html>", content_type="text/html"),
    "broken-body": lambda: web.Response(text='{"id": "x", "choi', content_type="application/json"),
    "wrong-shape": lambda: web.json_response({"hello": "world"}),
    "error-with-200": lambda: web.json_response({"error": {"message": "upstream fell over", "code": 502}}),
}
# Replies that are delivered and paid, and yet hold nothing to use: changes to a proper reply's choice.
_REPLIES: dict[str, dict[str, Any]] = {
    "empty": {"content": ""},
    "null": {"content": None},
    "reasoning-only": {"content": None, "reasoning_content": "Let me think about it."},
    "refusal": {"content": None, "refusal": "I will not answer that."},
    "content-filter": {"content": "", "finish_reason": "content_filter"},
    "truncated": {"content": '{"reason": "the answer', "finish_reason": "length"},
    "tool-call": {"content": None, "finish_reason": "tool_calls", "tool_calls": [
        {"id": "call-1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}]},
    "invalid-json": {"content": "I would say: {'accuracy': five"},
    "wrong-schema": {"content": '{"verdict": "good", "score": 4}'},
    "out-of-range": {"content": json.dumps({
        "reason": "x", "accuracy": 9, "context_awareness": 9, "artifact_trail": -1, "completeness": 9,
        "continuity": 9, "instruction_following": 9})},
    "not-a-number": {"content": '{"reason": "x", "accuracy": NaN, "context_awareness": 1, "artifact_trail": 1, '
                                '"completeness": 1, "continuity": 1, "instruction_following": 1}'},
}  # fmt: skip
_WIRE = ("reset", "drip", "hang", "not-http", "wrong-model", "no-usage", "absurd-usage", "truncated-late")
_ABSURD_USAGE = {"prompt_tokens": -5_000, "completion_tokens": 10**30, "total_tokens": 0}
MISBEHAVIOURS: tuple[str, ...] = (*_ERRORS, *_REPLIES, *_WIRE)


class LoopbackProvider:
    """An OpenAI-compatible server on 127.0.0.1."""

    def __init__(
        self,
        *,
        behave: Callable[[Asked], str | None] | None = None,
        reply: Callable[[Sequence[Message]], str] = reply_to,
        act: Callable[[Asked], Sequence[tuple[str, Mapping[str, Any]]]] | None = None,
        latency: float = 0.0,
        prompt_cache: bool = False,
        marked_cache: bool = False,
        sampling: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Behave well, except where `behave` names a misbehaviour for a request.

        `act` says which tools are called, by name and arguments, where some are offered; none is an answer in words.
        """
        self.behave = behave
        self.asked: list[Asked] = []
        self.delivered: list[Asked] = []
        """Requests whose reply was complete and well-formed."""
        self.most_at_once = 0
        self.input_tokens = self.cached_tokens = self.written_tokens = self.output_tokens = 0
        self.leave = asyncio.Event()
        """Set when the server stops, so that hanging replies end."""
        self._act = act
        self._reply, self._latency, self._headers = reply, latency, dict(headers or {})
        self._prompt_cache, self._marked_cache = prompt_cache, marked_cache
        """Whether beginnings are kept: all of them, or only those that are marked, which costs extra."""
        self._sampling = sampling
        """Whether the same prompt gets another text each time, as from a model with a temperature; grades do not."""
        self._repeats: Counter[str] = Counter()
        self._cached: dict[bytes, int] = {}
        self.under_way = 0
        self._runner: web.AppRunner | None = None
        self.base_url = ""

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening."""
        await self.stop()

    async def start(self, port: int = 0) -> str:
        """Listen, and return the base URL."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._handle)
        app.router.add_post("/v1/messages", self._message)
        app.router.add_get("/v1/stats", self._stats)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, "127.0.0.1", port).start()
        except OSError as exc:
            raise UserError(f"port {port} on 127.0.0.1 cannot be used: {exc.strerror}") from None
        self.base_url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self.base_url

    async def stop(self) -> None:
        """Let hanging replies go and close."""
        self.leave.set()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _stats(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "asked": len(self.asked),
                "delivered": len(self.delivered),
                "most_at_once": self.most_at_once,
                "input_tokens": self.input_tokens,
                "cached_tokens": self.cached_tokens,
                "written_tokens": self.written_tokens,
                "output_tokens": self.output_tokens,
            }
        )

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        arrived = asyncio.get_running_loop().time()
        body = await request.json()
        limit = body.get("max_tokens") or body.get("max_completion_tokens") or 1_000_000
        asked = Asked(len(self.asked), body.get("model", ""), body["messages"], limit, body)
        self.asked.append(asked)
        self.under_way += 1
        self.most_at_once = max(self.most_at_once, self.under_way)
        try:
            return await self._answer(request, asked, arrived)
        finally:
            self.under_way -= 1

    async def _answer(self, request: web.Request, asked: Asked, arrived: float) -> web.StreamResponse:
        fault = self.behave(asked) if self.behave else None
        if fault in _ERRORS:
            return _ERRORS[fault]()
        if fault == "hang":
            await self.leave.wait()
        if fault in ("reset", "drip", "not-http"):
            return await self._broken(request, fault)
        # The cache is read on arrival and filled by the reply: equal prompts that arrive together all miss.
        keeps = self._prompt_cache or self._marked_cache
        cached, beginnings = self._read_cache(asked) if keeps else (0, {})
        written = max(beginnings.values(), default=0) - cached if self._marked_cache else 0
        answer = self._completion(asked, fault, cached, max(0, written))
        if self._latency:  # counted from the arrival: thinking up the reply is part of it
            await asyncio.sleep(max(0.0, arrived + self._latency - asyncio.get_running_loop().time()))
        self._cached.update(beginnings)
        if fault not in _REPLIES:
            self.delivered.append(asked)
        return web.json_response(answer, headers=self._headers)

    def _completion(self, asked: Asked, fault: str | None, cached: int = 0, written: int = 0) -> dict[str, Any]:
        choice: dict[str, Any] = {"content": self._sampled(asked), "finish_reason": "stop"}
        if self._act is not None and asked.body.get("tools") and (made := self._act(asked)):
            choice = {"content": None, "finish_reason": "tool_calls", "tool_calls": list(_tool_calls(made))}
        choice.update(_REPLIES.get(fault or "", {}))
        if fault == "truncated-late":
            choice["finish_reason"] = "length"
        finish = choice.pop("finish_reason")
        said = str(choice["content"] or "") + (json.dumps(choice["tool_calls"]) if "tool_calls" in choice else "")
        usage = self._usage(asked, cached, written, said)
        return {
            "id": f"loopback-{asked.number}",
            "object": "chat.completion",
            "created": 0,
            "model": "another-model" if fault == "wrong-model" else asked.model,
            "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **choice}}],
            **({} if fault == "no-usage" else {"usage": _ABSURD_USAGE if fault == "absurd-usage" else usage}),
        }

    def _sampled(self, asked: Asked) -> str:
        text = self._reply(asked.messages)
        if not self._sampling or asked.body.get("temperature") == 0:
            return text
        prompt = hashlib.sha256(json.dumps(asked.messages).encode()).hexdigest()
        self._repeats[prompt] += 1
        return f"Wording {self._repeats[prompt]}.\n{text}"

    async def _message(self, request: web.Request) -> web.Response:
        """Answer as Anthropic's messages do."""
        body = await request.json()
        chat = as_chat(body)
        asked = Asked(len(self.asked), body["model"], chat["messages"], body["max_tokens"], chat)
        self.asked.append(asked)
        self.delivered.append(asked)
        return web.json_response(as_message(self._completion(asked, None)))

    async def _broken(self, request: web.Request, fault: str) -> web.StreamResponse:
        if fault == "not-http":
            assert request.transport is not None
            request.transport.write(b"SSH-2.0-OpenSSH_9.6\r\n")
            request.transport.close()
            return web.Response()
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "5000"})
        await response.prepare(request)
        await response.write(b'{"id":')
        while fault == "drip" and not self.leave.is_set():
            try:
                await response.write(b" ")
                await asyncio.wait_for(self.leave.wait(), 0.02)
            except TimeoutError:
                continue
            except ConnectionError:
                return response
        if request.transport is not None:
            request.transport.abort()
        return response

    def _usage(self, asked: Asked, cached: int, written: int, text: str) -> dict[str, Any]:
        spent_in, spent_out = count_messages(asked.messages), count_text(text)
        self.input_tokens += spent_in
        self.cached_tokens += cached
        self.written_tokens += written
        self.output_tokens += spent_out
        return {
            "prompt_tokens": spent_in,
            "completion_tokens": spent_out,
            "total_tokens": spent_in + spent_out,
            "prompt_tokens_details": {"cached_tokens": cached},
            **({"cache_creation_input_tokens": written} if written else {}),
        }

    def _read_cache(self, asked: Asked) -> tuple[int, dict[bytes, int]]:
        """Return the tokens of the longest known beginning, from 1,024 on as usual, and all beginnings."""
        total, hasher = 0, hashlib.sha256(asked.model.encode())
        beginnings: dict[bytes, int] = {}
        for message in asked.messages:
            hasher.update(json.dumps([message.get("role"), content_text(message)]).encode())
            total += count_messages([message])
            if not self._marked_cache or (total >= 1_024 and _marked(message)):
                beginnings[hasher.digest()] = total
        known = [tokens for beginning, tokens in beginnings.items() if beginning in self._cached and tokens >= 1_024]
        return max(known, default=0), beginnings


def _tool_calls(made: Sequence[tuple[str, Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    for number, (name, arguments) in enumerate(made, 1):
        function = {"name": name, "arguments": json.dumps(arguments)}
        yield {"id": f"call_{number}", "type": "function", "function": function}


def _marked(message: Message) -> bool:
    content = message.get("content")
    return isinstance(content, list) and any("cache_control" in part for part in content)


async def _serve(port: int, provider: LoopbackProvider) -> None:
    count_text("")  # loads the token table, or the first request would wait for it
    print(await provider.start(port), flush=True)
    try:
        await asyncio.to_thread(sys.stdin.read)
    finally:
        await provider.stop()


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Write a request of Anthropic's messages as one for a chat completion."""
    system = body.get("system") or []
    front = [{"role": "system", "content": system}] if system else []
    tools = [
        {"type": "function", "function": {"name": tool["name"], "parameters": tool.get("input_schema", {})}}
        for tool in body.get("tools") or ()
    ]
    chat = {"model": body["model"], "messages": [*front, *body["messages"]], "max_tokens": body["max_tokens"]}
    return {**chat, "tools": tools} if tools else chat


def as_message(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Write a chat completion as a message of Anthropic's."""
    choice, usage = completion["choices"][0], completion.get("usage", {})
    calls = [
        {"type": "tool_use", "id": call["id"], "name": function["name"], "input": json.loads(function["arguments"])}
        for call in choice["message"].get("tool_calls") or ()
        for function in (call["function"],)
    ]
    reasons = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
    return {
        "id": f"msg_{completion['id']}",
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": calls or [{"type": "text", "text": choice["message"]["content"] or ""}],
        "stop_reason": reasons.get(choice["finish_reason"], "refusal"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.get("prompt_tokens", 0),
            "output_tokens": usage.get("completion_tokens", 0),
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        },
    }


def main() -> None:
    """Serve until standard input closes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds from a request's arrival to its reply")
    parser.add_argument("--prompt-cache", action="store_true", help="simulate a prompt cache")
    parser.add_argument("--marked-cache", action="store_true", help="keep only beginnings that are marked, as Claude's")
    parser.add_argument("--sampling", action="store_true", help="word the reply to a repeated prompt differently")
    options = parser.parse_args()
    provider = LoopbackProvider(
        latency=options.latency,
        prompt_cache=options.prompt_cache,
        marked_cache=options.marked_cache,
        sampling=options.sampling,
    )
    asyncio.run(_serve(options.port, provider))


if __name__ == "__main__":
    main()
