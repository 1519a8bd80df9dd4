"""What each provider is sent by the real command, in its own protocol, and what is read back. Nothing leaves here."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import small
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from eval_core.base.config import EndpointConfig, ModelConfig, Price
from eval_core.base.messages import Message
from eval_core.domain.call import Completion, Draw, Failed, ModelCall, Role, Usage
from eval_core.models.budget import Budget
from eval_core.models.client import ModelClient
from eval_core.models.retry import RetryPolicy
from eval_core.models.settings import ModelFlags, resolve
from eval_core.storage.results import read_measurement

from .wire import FRESH, OUT, READ, WRITTEN, Seen, Wire, wired
from .world import ONE_RUN

pytestmark = pytest.mark.usefixtures("litellm")

KEY = "a-key-of-nobody-0123456789"
RUN = ("run", *ONE_RUN, "--set", "models.trust_judge=true", "--label", "a", "--quiet")
RUBRIC = "artifact_trail"


@dataclass(frozen=True)
class Way:
    """One way to a model: how it is configured, and what must come out on the wire."""

    model: str
    path: str
    key: tuple[str, str]
    """The header that holds the login, and how it begins."""
    environ: dict[str, str] = field(default_factory=dict)
    endpoint: dict[str, Any] = field(default_factory=lambda: {"protocol": "litellm"})
    sent_as: str | None = None
    """The model's name in the body; None where it is in the path."""
    limit: str = "max_tokens"
    marked: bool = False


AWS = {"AWS_ACCESS_KEY_ID": "AKIA0123456789", "AWS_SECRET_ACCESS_KEY": KEY, "AWS_REGION_NAME": "us-east-1"}
GOOGLE = {"VERTEXAI_PROJECT": "p", "VERTEXAI_LOCATION": "us-east5", "GOOGLE_APPLICATION_CREDENTIALS": "login.json"}
VERTEX = "/v1/projects/p/locations/us-east5/publishers"
BEARER = ("authorization", f"Bearer {KEY}")
WAYS = {
    "anthropic": Way(
        "anthropic/claude-sonnet-4-5", "/v1/messages", ("x-api-key", KEY), {"ANTHROPIC_API_KEY": KEY},
        sent_as="claude-sonnet-4-5", marked=True,
    ),
    "gemini": Way(
        "gemini/gemini-2.5-flash", "/models/gemini-2.5-flash:generateContent", ("x-goog-api-key", KEY),
        {"GEMINI_API_KEY": KEY}, limit="generationConfig.max_output_tokens",
    ),
    "azure": Way(
        "azure/our-own", "/openai/deployments/our-own/chat/completions", ("api-key", KEY), {"AZURE_API_KEY": KEY},
        {"preset": "azure", "base_model": "azure/gpt-4o"}, sent_as="our-own",
    ),
    "bedrock-claude": Way(
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse", ("authorization", "AWS4-HMAC-SHA256 "), AWS,
        {"preset": "bedrock"}, limit="inferenceConfig.maxTokens", marked=True,
    ),
    "bedrock-nova": Way(
        "bedrock/amazon.nova-pro-v1:0", "/model/amazon.nova-pro-v1:0/converse", ("authorization", "AWS4-HMAC-SHA256 "),
        AWS, {"preset": "bedrock"}, limit="inferenceConfig.maxTokens", marked=True,
    ),
    "vertex-claude": Way(
        "vertex_ai/claude-sonnet-4-5", f"{VERTEX}/anthropic/models/claude-sonnet-4-5:rawPredict",
        ("authorization", "Bearer a-login"), GOOGLE, {"preset": "vertex"}, marked=True,
    ),
    "vertex-gemini": Way(
        "vertex_ai/gemini-2.5-flash", f"{VERTEX}/google/models/gemini-2.5-flash:generateContent",
        ("authorization", "Bearer a-login"), GOOGLE, {"preset": "vertex"}, limit="generationConfig.max_output_tokens",
    ),
    "openai": Way(
        "openai/gpt-4.1", "/chat/completions", BEARER, {"OPENAI_API_KEY": KEY}, sent_as="gpt-4.1",
    ),
    "openai-reasoning": Way(
        "openai/o4-mini", "/chat/completions", BEARER, {"OPENAI_API_KEY": KEY}, sent_as="o4-mini",
        limit="max_completion_tokens",
    ),
    "openrouter": Way(
        "anthropic/claude-sonnet-4.5", "/chat/completions", BEARER, {"OPENROUTER_API_KEY": KEY},
        {"preset": "openrouter"}, sent_as="anthropic/claude-sonnet-4.5", marked=True,
    ),
    "github-models": Way(
        "openai/gpt-4.1", "/chat/completions", BEARER, {"GITHUB_TOKEN": KEY}, {"preset": "github-models"},
        sent_as="openai/gpt-4.1",
    ),
    "ollama": Way("llama3.2:1b", "/chat/completions", ("authorization", ""), {}, {"preset": "ollama"}, "llama3.2:1b"),
    "vllm": Way("meta-llama/x", "/chat/completions", ("authorization", ""), {}, {"preset": "vllm"}, "meta-llama/x"),
}  # fmt: skip


@pytest.fixture
def wire(one_probe: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    # The first call imports a part of litellm, which may take longer than the second that tests allow a reply.
    policy = RetryPolicy(base_seconds=0.01, longest_seconds=0.02, again=dict.fromkeys(RetryPolicy().again, 1))
    monkeypatch.setattr("eval_core.measuring.wiring.RETRY", policy)
    look_up, connect = socket.getaddrinfo, socket.socket.connect
    outside: list[str] = []

    def guarded(host: Any, *more: Any, **named: Any) -> Any:
        if host not in ("127.0.0.1", "localhost", None):
            outside.append(str(host))
            raise socket.gaierror(-2, "outside")
        return look_up(host, *more, **named)

    def connected(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            outside.append(str(address))
            raise OSError("outside")
        connect(self, address)

    monkeypatch.setattr(socket, "getaddrinfo", guarded)
    monkeypatch.setattr(socket.socket, "connect", connected)
    for way in WAYS.values():
        for name in way.environ:
            monkeypatch.delenv(name, raising=False)
    with wired() as server:
        yield server
    assert outside == []


def configured(
    way: Way, wire: Wire, monkeypatch: pytest.MonkeyPatch, params: dict[str, Any] | None = None, **endpoint: Any
) -> tuple[str, ...]:
    """Write the configuration; return the command."""
    if "vertex_ai" in way.model:
        pytest.importorskip("google.auth")
        private = rsa.generate_private_key(65537, 2048)
        pem = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        login = {"type": "service_account", "project_id": "p", "private_key_id": "1", "private_key": pem.decode(),
                 "client_email": "a@example.com", "client_id": "1", "token_uri": f"{wire.url}/token"}  # fmt: skip
        Path("login.json").write_text(json.dumps(login), encoding="utf-8")
    for name, value in way.environ.items():
        monkeypatch.setenv(name, value)
    models: dict[str, Any] = {
        "judge": way.model,
        "endpoints": {way.model: {**way.endpoint, "url": wire.url, **endpoint}},
        **({"params": {way.model: params}} if params else {}),
    }
    Path(".compression-eval.yml").write_text(json.dumps({"models": models}), encoding="utf-8")
    return (*RUN, "--set", f"models.prices={{{way.model}: {{input: 1, output: 4, cached_input: 0.1, cache_write: 2}}}}")


def at(body: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        body = body[name]
    return body


def grading(wire: Wire) -> list[Seen]:
    return [seen for seen in wire.calls if RUBRIC in json.dumps(seen.body)]


@pytest.mark.parametrize("name", WAYS)
def test_a_run_reaches_the_provider_in_its_own_protocol(
    name: str, wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = WAYS[name]
    ran = cli(*configured(way, wire, monkeypatch))
    assert ran.code == 0, ran.err
    assert {(seen.method, seen.path) for seen in wire.calls} == {("POST", way.path)}
    header, value = way.key
    assert all(seen.headers.get(header, "").startswith(value) for seen in wire.calls)
    bodies = [seen.body for seen in wire.calls]
    assert {body.get("model") for body in bodies} == {way.sent_as}
    assert not any(body.get("stream") for body in bodies)
    limits = {at(body, way.limit) for body in bodies}
    most = 4_000 if name == "github-models" else 8_000
    assert max(limits) == most, "a summary may have no more than the provider allows"
    for seen in grading(wire):
        assert KEY not in json.dumps(seen.body)
        marks = json.dumps(seen.body).count('"ephemeral"') + json.dumps(seen.body).count('"cachePoint"')
        assert marks == way.marked
        if way.marked:  # at the end of the rubric, which all grades begin with
            front = seen.body.get("system") or seen.body["messages"][0]["content"]
            assert "cache_control" in front[-1] or "cachePoint" in front[-1]
    measured = read_measurement(Path("results/a"))
    calls = len(wire.calls)
    total = [
        sum(getattr(use, part) or 0 for use in measured.use.values()) for part in ("input_tokens", "cached_tokens")
    ]
    assert total == [calls * (FRESH + READ + WRITTEN), calls * READ]
    assert sum(use.output_tokens for use in measured.use.values()) == calls * OUT
    written = 0 if "gemini" in name else WRITTEN
    spent = (FRESH + WRITTEN - written) + 0.1 * READ + 2 * written + 4 * OUT
    assert sum(use.cost_usd or 0 for use in measured.use.values()) == pytest.approx(calls * spent / 1e6)


@pytest.mark.parametrize("name", ["anthropic", "bedrock-claude", "vertex-claude", "gemini", "openrouter"])
def test_a_model_that_thinks_has_room_for_its_answer_and_nothing_that_forbids_it(
    name: str, wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = WAYS[name]
    ran = cli(*configured(way, wire, monkeypatch, {"reasoning_effort": "low", "top_p": 0.9}))
    assert ran.code == 0, ran.err
    for seen in grading(wire):
        text = json.dumps(seen.body)
        assert at(seen.body, way.limit) == 900 + 1_024
        if name == "gemini":
            assert '"thinkingBudget": 1024' in text
            continue
        assert '"temperature"' not in text
        assert "top_p" not in text.lower()
        assert "topP" not in text
        assert '"type": "tool"' not in text, "a model that thinks cannot be made to call a tool"
        assert '"budget_tokens": 1024' in text or '"reasoning_effort": "low"' in text


def test_what_a_reasoning_model_refuses_is_left_out_from_then_on(
    wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strict(seen: Seen) -> web.Response | None:
        said = None
        if "max_tokens" in seen.body:
            said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
        elif "temperature" in seen.body:
            said = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is."
        return web.json_response({"error": {"message": said, "code": "unsupported"}}, status=400) if said else None

    wire.answer = strict
    ran = cli(*configured(WAYS["github-models"], wire, monkeypatch))
    assert ran.code == 0, ran.err
    refused = [seen for seen in wire.calls if strict(seen)]
    assert len(refused) <= 2 * 5  # those before the run, which are under way together
    assert all("response_format" in seen.body for seen in grading(wire))
    assert "free" not in Path("results/a/journal.jsonl").read_text(), "nobody was told of it"


def test_a_router_that_finds_nobody_for_a_schema_is_asked_in_words(
    wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"error": {"message": "No endpoints found that can handle the requested parameters.", "code": 404}}
    wire.answer = lambda seen: web.json_response(said, status=404) if "response_format" in seen.body else None
    ran = cli(*configured(WAYS["openrouter"], wire, monkeypatch))
    assert ran.code == 0, ran.err


def test_a_client_that_was_closed_leaves_nothing_closed_to_the_next(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = "openai/gpt-4.1"
    config = ModelConfig(judge=model, endpoints={model: EndpointConfig(url=wire.url, protocol="litellm")})
    models = resolve(ModelFlags(), os.environ, config)
    assert models is not None

    async def scene() -> None:
        for run in range(2):
            async with ModelClient(models) as client:
                call = ModelCall("judge", model, ({"role": "user", "content": "?"},), 9, Draw(run))
                assert isinstance(await client.complete(call), Completion)

    asyncio.run(scene())


LONE = ({"role": "user", "content": "hi"}, {"role": "tool", "content": "r"})
ODD = {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": [], "properties": []}}}]}


@pytest.mark.parametrize(
    ("name", "messages", "params"),
    [("gemini", LONE, {}), ("gemini", LONE[:1], ODD), ("anthropic", LONE, {}), ("bedrock-nova", LONE[:1], ODD)],
)
@pytest.mark.parametrize("role", ["compressor", "answer"])
def test_what_cannot_be_put_into_a_provider_s_protocol_is_a_bad_request_and_costs_nothing(
    role: Role,
    name: str,
    messages: tuple[Message, ...],
    params: dict[str, Any],
    wire: Wire,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    way = WAYS[name]
    for variable, value in way.environ.items():
        monkeypatch.setenv(variable, value)
    config = ModelConfig(judge=way.model, endpoints={way.model: EndpointConfig(url=wire.url, **way.endpoint)})
    models = resolve(
        ModelFlags(), os.environ, config.model_copy(update={"prices": {way.model: Price(input=1, output=4)}})
    )
    assert models is not None

    async def scene() -> None:
        budget = Budget(5.0)
        async with ModelClient(models, budget=budget) as client:
            failed = await client.complete(ModelCall(role, way.model, messages, 9, params=params))
            assert isinstance(failed, Failed)
            assert (failed.kind, failed.retryable, failed.usage) == ("bad_request", False, Usage())
            assert budget.unsure_usd == 0
            # A compressor's may be a login that has run out, so the model is asked something else.
            assert [("single word: yes" in json.dumps(seen.body)) for seen in wire.calls] in ([], [True])
            assert role == "compressor" or not wire.calls

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("name", "variable"),
    [("anthropic", "ANTHROPIC_API_BASE"), ("azure", "AZURE_API_BASE"), ("openai", "OPENAI_API_BASE")],
)
def test_the_providers_own_variable_for_the_address_is_heeded(
    name: str, variable: str, wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, wire.url)
    command = configured(WAYS[name], wire, monkeypatch, url=None)
    assert cli(*command).code == 0
    assert {seen.path for seen in wire.calls} == {WAYS[name].path}


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.parametrize("name", ["anthropic", "gemini", "azure", "bedrock-claude", "openai", "vllm"])
def test_a_redirect_takes_neither_the_key_nor_the_session_to_another_address(
    name: str, status: int, wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with wired() as other:
        headers = {"Location": f"{other.url}{WAYS[name].path}"}
        wire.answer = lambda seen: web.Response(status=status, headers=headers)
        ran = cli(*configured(WAYS[name], wire, monkeypatch))
        assert ran.code == 2, "only the user can correct the address"
        assert f"HTTP {status}: a redirect to {other.url}" in ran.err
        assert "which is not followed; give that address" in ran.err
        assert other.seen == []


@pytest.mark.parametrize("name", ["anthropic", "azure", "bedrock-claude", "github-models"])
def test_an_address_in_the_environment_gets_everything_in_openais_protocol(
    name: str, wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = WAYS[name]
    command = configured(way, wire, monkeypatch, url="http://127.0.0.1:9")
    monkeypatch.setenv("COMPRESSION_EVAL_API_BASE", f"{wire.url}/v1")
    assert cli(*command).code == 0
    assert {seen.path for seen in wire.calls} == {"/v1/chat/completions"}
    assert {seen.body["model"] for seen in wire.calls} == {way.model}


@pytest.mark.parametrize(
    ("model", "endpoint", "said"),
    [
        ("azure/ours", {"preset": "azure"}, "azure/ours needs AZURE_API_KEY or AZURE_AD_TOKEN and AZURE_API_BASE."),
        ("azure/ours", {"preset": "azure", "url": "http://127.0.0.1:9"}, "needs AZURE_API_KEY or AZURE_AD_TOKEN."),
        ("gemini/gemini-2.5-flash", {}, "needs GEMINI_API_KEY or GOOGLE_API_KEY."),
        ("bedrock/amazon.nova-pro-v1:0", {}, "needs AWS_ACCESS_KEY_ID or AWS_PROFILE."),
        (
            "vertex_ai/gemini-2.5-flash",
            {},
            "needs GOOGLE_APPLICATION_CREDENTIALS or VERTEXAI_CREDENTIALS and VERTEXAI_",
        ),
        ("anthropic/claude-sonnet-4-5", {"key_env": "OUR_KEY"}, "needs OUR_KEY."),
        ("nonsense", {}, "nonsense: this names no provider that litellm knows; write PROVIDER/MODEL"),
    ],
)
def test_what_is_missing_for_a_provider_is_said_before_anything_is_sent(
    model: str, endpoint: dict[str, Any], said: str, wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "vertex" in model:
        pytest.importorskip("google.auth")
    monkeypatch.setenv("HOME", str(Path.cwd()))  # without anybody's logins
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    models = {"judge": model, "endpoints": {model: endpoint}}
    Path(".compression-eval.yml").write_text(json.dumps({"models": models}), encoding="utf-8")
    ran = cli(*RUN, "--compare-to", "none", "--set", f"models.prices={{{model}: {{input: 1, output: 4}}}}")
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1


def test_vertex_without_its_package_says_what_to_install(
    wire: Wire, cli: small.Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)
    ran = cli(*RUN, "--model", "vertex_ai/gemini-2.5-flash")
    assert ran.code == 2
    assert "pip install 'compression-eval[vertex]'" in ran.err
