"""What one fixture-run may ask of its model, however it asks and however often it is tried; and whom it waits for."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eval_core.base.config import Price
from eval_core.base.messages import Message
from eval_core.domain.call import Completion, Draw, Failed, ModelCall, Usage
from eval_core.domain.compression import Compression, Outcome
from eval_core.domain.fixture import Fixture
from eval_core.domain.target import target_from
from eval_core.models.client import ModelClient
from eval_core.models.journal import Journal
from eval_core.models.retry import RetryPolicy
from eval_core.models.settings import Models
from eval_core.sandbox.classify import CallRecord
from eval_core.sandbox.gateway import GatewayLimits
from eval_core.sandbox.isolation import SandboxChoice
from eval_core.sandbox.latency import held_up
from eval_core.sandbox.subject import ProcessSubject
from eval_core.sandbox.targets import resolve_paths
from tests.model_provider import Asked, LoopbackProvider

TREE = """
import ctypes, json, os, sys, threading, urllib.request

def ask(text):
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 100}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]["content"]

def one_after_another(messages, count=4, last="say nothing"):
    for number in range(count - 1):
        ask(f"say something {number}")
    ask(last)
    return [{"role": "user", "content": "short"}]

def all_at_once(messages, count=12, words=1):
    def one(number):
        try:
            ask("say nothing " * words + str(number))
        except OSError:
            pass
    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return [{"role": "user", "content": "short"}]

def leaves_open(messages, end):
    threading.Thread(target=ask, args=("leave me open",), daemon=True).start()
    ask("is it open?")
    endings[end]()

def fails():
    raise KeyError("of its own")

endings = {
    "raise": fails, "exit": sys.exit, "hard exit": lambda: os._exit(3), "kill": lambda: os.kill(os.getpid(), 9),
    "abort": os.abort, "crash": lambda: ctypes.string_at(0), "terminate": lambda: os.kill(os.getpid(), 15),
    "return nothing": lambda: None,
}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "asks.py").write_text(TREE)
    for made in (tmp_path, folder):
        made.chmod(0o755)
    return folder


class Spender:
    """A model without a client: each call takes its time and uses as many tokens as it is told."""

    def __init__(self, tokens: int, *, seconds: float = 0.0, fails: int = -1) -> None:
        self.tokens, self.seconds, self.fails = tokens, seconds, fails
        self.calls = self.under_way = self.most = 0

    async def complete(self, call: ModelCall) -> Completion | Failed:
        self.calls += 1
        if self.calls == self.fails:
            return Failed("server", True, "500")
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(self.seconds)
        self.under_way -= 1
        text = "" if "nothing" in call.messages[-1]["content"] and not self.seconds else "a fine summary"
        return Completion(text, Usage(self.tokens, 0, 10, 0.001), "m", self.seconds)


def test_tries_of_one_run_share_its_calls(run, tree: Path) -> None:
    model = Spender(100)
    spec = {"compressor": "asks:one_after_another", "llm": "required"}
    done = run(spec, model, tree=tree, base=tree, limits=GatewayLimits(requests=6))
    assert (done.outcome, model.calls, done.use.calls) == (Outcome.BAD_COMPLETION, 6, 6)
    assert done.detail == "the compressor's model answered with nothing"
    assert "the last try ended at what earlier ones had left of the caps on model calls" in done.notes


def test_tries_of_one_run_share_its_tokens(run, tree: Path) -> None:
    model = Spender(150)
    spec = {"compressor": "asks:one_after_another", "llm": "required"}
    done = run(spec, model, tree=tree, base=tree, limits=GatewayLimits(total_tokens=1_000))
    assert (done.outcome, model.calls) == (Outcome.BAD_COMPLETION, 6)
    assert done.use.input_tokens + done.use.output_tokens == 960


def test_an_outage_that_uses_up_the_caps_is_still_an_outage(run, tree: Path) -> None:
    model = Spender(100, fails=4)
    spec = {"compressor": "asks:one_after_another", "llm": "required", "call": {"last": "say something"}}
    done = run(spec, model, tree=tree, base=tree, limits=GatewayLimits(requests=6))
    assert (done.outcome, model.calls) == (Outcome.INFRA, 6)


def test_calls_at_once_wait_until_their_worst_case_fits(run, tree: Path) -> None:
    model = Spender(60, seconds=0.2)
    spec = {"compressor": "asks:all_at_once", "llm": "required"}
    done = run(spec, model, tree=tree, base=tree, limits=GatewayLimits(total_tokens=1_000))
    assert model.most <= 5  # of a worst case of 173 tokens each
    assert model.calls == 12
    assert done.outcome is Outcome.OK


def test_calls_at_once_use_no_more_tokens_than_the_cap(run, tree: Path) -> None:
    model = Spender(120, seconds=0.2)
    spec = {"compressor": "asks:all_at_once", "llm": "required"}
    done = run(spec, model, tree=tree, base=tree, limits=GatewayLimits(total_tokens=1_000))
    assert done.outcome is Outcome.TARGET_ERROR
    assert "the run's 1,000 tokens are used up" in done.detail
    assert done.use.input_tokens + done.use.output_tokens <= 1_000


def compress(
    tree: Path,
    choice: SandboxChoice,
    session: Fixture,
    provider: LoopbackProvider,
    folder: Path,
    *,
    limits: GatewayLimits | None = None,
    retries: int = 2,
    **spec: Any,
) -> tuple[Compression, ModelClient]:
    """Compress once through the real client and a real server."""

    def count(messages: list[Message]) -> int:
        return len(str(messages))

    async def scene() -> tuple[Compression, ModelClient]:
        async with provider as server:
            models = Models("m", "m", "m", api_base=server.base_url, prices={"m": Price(input=1, output=2)})
            journal = Journal(folder / "journal.jsonl")
            retry = RetryPolicy(base_seconds=0.01, outage_seconds=0.01)
            async with ModelClient(models, journal=journal, concurrency=4, retry=retry) as client:
                checked = target_from({"llm": "required", "timeout_s": 30, **spec}, "spec")
                resolved = resolve_paths(checked, tree, tree, tree, "spec")
                subject = ProcessSubject(
                    resolved,
                    tree,
                    choice,
                    "m",
                    client.complete,
                    count,
                    limits=limits or GatewayLimits(),
                    retries=retries,
                )
                done = await subject.compress(session, run=0, seed=0)
            journal.close()
            return done, client

    return asyncio.run(scene())


def test_requests_that_the_client_repeats_are_within_the_cap(choice, session, tree: Path, tmp_path: Path) -> None:
    def behave(asked: Asked) -> str | None:
        return "empty" if asked.last[-1] in "02468" else None

    provider = LoopbackProvider(behave=behave, latency=0.05)
    limits = GatewayLimits(total_tokens=1_500)
    done, _ = compress(
        tree, choice, session, provider, tmp_path, compressor="asks:all_at_once", call={"words": 30}, limits=limits
    )
    assert 1_000 < provider.input_tokens + provider.output_tokens <= 1_500
    assert max(Counter(asked.last for asked in provider.asked).values()) > 1
    assert done.outcome is Outcome.BAD_COMPLETION


def test_replies_that_are_replayed_after_an_outage_use_up_nothing(choice, session, tree: Path, tmp_path: Path) -> None:
    def behave(asked: Asked) -> str | None:
        return "500" if "last" in asked.last and sum("last" in one.last for one in provider.asked) <= 6 else None

    provider = LoopbackProvider(behave=behave)
    done, _ = compress(
        tree, choice, session, provider, tmp_path,
        compressor="asks:one_after_another", call={"last": "the last"}, limits=GatewayLimits(requests=6),
    )  # fmt: skip
    assert done.outcome is Outcome.OK
    assert done.notes == ("tried 2 times because of the provider",)


def test_a_flood_of_the_compressor_s_own_is_not_the_provider_s(choice, session, tree: Path, tmp_path: Path) -> None:
    provider = LoopbackProvider(latency=1.0)
    done, client = compress(
        tree, choice, session, provider, tmp_path, compressor="asks:all_at_once", call={"count": 60}, timeout_s=10
    )
    assert (done.outcome, done.notes) == (Outcome.TARGET_ERROR, ())
    assert "took longer than 10 s" in done.detail
    assert client.sent < 60


SDK = """
import asyncio, openai

def flood(messages):
    async def scene():
        async with openai.AsyncOpenAI() as client:
            async def one(number):
                asked = [{"role": "user", "content": f"part {number}"}]
                return await client.chat.completions.create(model="m", max_tokens=100, messages=asked)
            return await asyncio.gather(*map(one, range(60)))
    asyncio.run(scene())
    return [{"role": "user", "content": "short"}]
"""


@pytest.mark.parametrize("crowded", [False, True], ids=["answers all", "answers two at once"])
def test_sixty_calls_at_once_of_a_real_sdk_are_the_compressor_s_own_fault(
    crowded: bool, choice, session, tree: Path, tmp_path: Path
) -> None:
    """They take longer than the step on any machine; that a provider says 429 to some of them blames nobody else."""
    (tree / "floods.py").write_text(SDK)

    def behave(asked: Asked) -> str | None:
        return "429" if crowded and provider.under_way > 2 else None

    provider = LoopbackProvider(behave=behave, latency=1.0)
    env = {"OPENAI_BASE_URL": "${LLM_BASE_URL}", "OPENAI_API_KEY": "${LLM_API_KEY}"}
    done, _ = compress(tree, choice, session, provider, tmp_path, compressor="floods:flood", env=env, timeout_s=12)
    assert (done.outcome, done.notes) == (Outcome.TARGET_ERROR, ())
    assert "took longer than 12 s" in done.detail
    assert len(provider.delivered) < 60


def test_a_provider_that_hangs_is_to_blame_also_for_a_flood(choice, session, tree: Path, tmp_path: Path) -> None:
    provider = LoopbackProvider(behave=lambda _: "hang")
    done, _ = compress(
        tree,
        choice,
        session,
        provider,
        tmp_path,
        compressor="asks:all_at_once",
        call={"count": 8},
        timeout_s=6,
        retries=0,
    )
    assert done.outcome is Outcome.BAD_COMPLETION


class KeepsOpen(Spender):
    """Never answers one of the calls, and the others only when that one is there."""

    def __init__(self) -> None:
        super().__init__(10)
        self.open = asyncio.Event()

    async def complete(self, call: ModelCall) -> Completion | Failed:
        if "leave me open" in call.messages[-1]["content"]:
            self.open.set()
            await asyncio.Event().wait()
        await self.open.wait()
        return await super().complete(call)


def test_its_own_end_outranks_a_call_that_it_left_open(choice, session, tree: Path) -> None:
    async def one(end: str) -> Compression:
        spec = {"compressor": "asks:leaves_open", "call": {"end": end}, "llm": "required", "timeout_s": 10}
        resolved = resolve_paths(target_from(spec, "spec"), tree, tree, tree, "spec")
        subject = ProcessSubject(resolved, tree, choice, "m", KeepsOpen().complete, lambda messages: 100)
        return await subject.compress(session, run=0, seed=0)

    async def scene() -> list[Compression]:
        return await asyncio.gather(*map(one, said))

    said = {
        "raise": "raised KeyError: 'of its own'",
        "exit": "raised SystemExit",
        "hard exit": "ended by itself with status 3",
        "kill": "was ended by SIGKILL",
        "abort": "was ended by SIGABRT",
        "crash": "was ended by SIGSEGV",
        "terminate": "was ended by SIGTERM",
        "return nothing": "returned None",
    }
    for end, done in zip(said, asyncio.run(scene()), strict=True):
        assert done.outcome is Outcome.TARGET_ERROR, end
        assert "because of the provider" not in "".join(done.notes)
        assert said[end] in done.detail
        assert "it did not wait for the answer to its last model call" in done.detail


def test_the_time_behind_other_runs_and_failures_of_the_provider_is_not_the_compressor_s() -> None:
    def record(forwarded: float, held: float | None = None, out: float | None = None, *spans: tuple[float, float]):
        return CallRecord(0, forwarded_at=forwarded, held_since=held, out_since=out, exchanges=list(spans))

    alone = record(0.0)
    assert held_up(alone, [alone], 10.0) == 10.0  # never had its turn, and nobody of its own was before it
    served = record(0.0, None, None, (0.0, 3.0), (3.0, 6.0))
    assert held_up(alone, [alone, served], 10.0) == 4.0
    assert held_up(record(0.0, 6.0, 6.0), [served], 10.0) == 4.0
    failing = record(1.0, 2.0, None, (2.0, 2.1), (4.0, 4.1))  # in a pause after two errors of the provider
    assert held_up(failing, [failing], 10.0) == 9.0


def test_the_client_tells_when_a_request_leaves_and_not_when_it_is_queued() -> None:
    class Watch:
        def __init__(self) -> None:
            self.heard: list[str] = []

        def left(self) -> None:
            self.heard.append("left")

        def returned(self, usage: Usage | None, failed: str | None, *, lost: bool) -> None:
            self.heard.append(f"{failed} {lost}")

        async def again(self, call: ModelCall) -> bool:
            self.heard.append("again?")
            return len(self.heard) < 5

    async def scene() -> None:
        async with LoopbackProvider(behave=lambda _: "reset") as server:
            models = Models("m", "m", "m", api_base=server.base_url)
            async with ModelClient(models, retry=RetryPolicy(base_seconds=0.01)) as client:
                watch = Watch()
                messages = ({"role": "user", "content": "x"},)
                failed = await client.complete(ModelCall("compressor", "m", messages, 9, Draw(), passage=watch))
                assert isinstance(failed, Failed)
                assert watch.heard == ["left", "connection True", "again?", "left", "connection True", "again?"]

    asyncio.run(scene())
