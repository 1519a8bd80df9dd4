"""Compressors of every shape: what each returns, raises or does is in its name."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import urllib.request

LAST = [{"role": "user", "content": "short"}]


def ask(model: str = "wished-for", **extra: object) -> str:
    """Call the gateway through the environment, as any SDK would."""
    body = {"model": model, "messages": [{"role": "user", "content": "summarise"}], **extra}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]


class Plain:
    """Remember how often it was called, to show that one instance serves all segments."""

    def __init__(self) -> None:
        self.calls = 0
        self.seen: list[int] = []

    def compress(self, messages):
        self.calls += 1
        self.seen.append(len(messages))
        return [{"role": "user", "content": f"call {self.calls}, lengths {self.seen}"}]


class Async:
    async def compress(self, messages):
        await asyncio.sleep(0)
        return [{"role": "user", "content": await asyncio.to_thread(ask)}]


class Wide:
    """Ask three times side by side and go on with what came back."""

    def compress(self, messages):
        parts = []

        def one():
            try:
                parts.append(ask())
            except OSError:
                parts.append("")

        threads = [threading.Thread(target=one) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [{"role": "user", "content": " ".join(parts)}]


class AsksWhenBuilt:
    def __init__(self):
        ask()

    def compress(self, messages):
        return [{"role": "user", "content": ask()}]


class TriesTwice:
    def compress(self, messages):
        try:
            text = ask()
        except OSError:
            text = ask()
        return [{"role": "user", "content": text}]


class Limited:
    def compress(self, messages):
        return [{"role": "user", "content": ask(max_tokens=300, temperature=0.5)}]


class Images:
    def compress(self, messages):
        try:
            ask(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}])
        except OSError:
            return LAST


class Falls:
    fell = True

    def compress(self, messages):
        ask()
        return LAST


class Keywords:
    def __init__(self, *, model, size=3):
        pass

    def compress(self, messages, *, force=False):
        return LAST


def identity(messages):
    return messages


def copy(messages):
    return [dict(message) for message in messages]


def nothing(messages):
    return None


def empty(messages):
    return []


def text(messages):
    return "a summary"


def generator(messages):
    yield from LAST


def mapping(messages):
    return {"messages": LAST}


def objects(messages):
    return [object()]


def bad_role(messages):
    return [{"role": "oracle", "content": "x"}]


def lonely_tool(messages):
    return [{"role": "tool", "tool_call_id": "gone", "content": "x"}]


def unanswered(messages):
    return [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "ls", "arguments": "{}"}}]}]


def list_as_call_id(messages):
    return [{"role": "tool", "tool_call_id": [], "content": "x"}]


def not_a_number(messages):
    return [{"role": "user", "content": "x", "weight": float("nan")}]


def surrogate(messages):
    return [{"role": "user", "content": "\ud800"}]


def bottomless(messages):
    inner: list = []
    for _ in range(200):
        inner = [inner]
    return [{"role": "user", "content": "x", "extra": inner}]


def a_set(messages):
    return [{"role": "user", "content": {"x"}}]


def raises(messages):
    raise KeyError("no such section")


def raises_in_a_library(messages):
    return json.loads("")


def needs_a_model(messages, model):
    return messages[-1:]


def exits(messages):
    sys.exit("leaving")


def hard_exit(messages):
    os._exit(7)


def sleeps(messages):
    threading.Event().wait()


def prints(messages):
    print("::set-output name=x::y")
    sys.stderr.write("to stderr\n")
    return LAST


def patches_json(messages):
    json.dumps = lambda *_, **__: "{}"
    json.loads = lambda *_, **__: {}
    json.JSONEncoder.iterencode = lambda *_, **__: iter("[]")
    os.write = lambda *_: 0
    return LAST


not_callable = 3
