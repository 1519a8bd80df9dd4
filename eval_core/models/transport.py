"""One attempt at one model call: sending it, the prompt prefix that calls share for caching, room for thinking."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any

from eval_core.base.files import digest
from eval_core.base.messages import Message, content_text
from eval_core.base.tokens import count_messages, count_text
from eval_core.domain.call import ModelCall, ReplyCall, Usage
from eval_core.models.faults import Delivered, Fault, fault_of, unusable
from eval_core.models.settings import Endpoint

# Calls that share the beginning of their prompt: one goes ahead, so that the others find it in the cache.

_MOST_TOKENS = 10**9  # in one call; a provider that tells of more, or of less than none, has miscounted
_LONGEST_LEAD = 60.0
_LEAST_CHARS = 3_000  # about the 1,024 tokens from which on providers keep a prompt

# Claude, however it is reached, and Nova cache only what is marked; other providers detect shared prefixes.
_MARKED = re.compile(
    r"^(?:claude|anthropic/|(?:bedrock|vertex_ai|azure_ai|openrouter)/.*(?:anthropic|claude)|bedrock/.*amazon\.nova)"
)


class PrefixGate:
    """Lets the first call of each prefix through alone."""

    def __init__(self) -> None:
        """Begin with no prefix seen."""
        self._opened: dict[str, asyncio.Event] = {}
        self.patient = True
        """Whether the others wait; a handful of calls is over sooner, and hardly dearer, all at once."""

    def leads(self, prefix: str | None) -> bool:
        """Tell whether a call with this prefix would be the first."""
        return prefix is not None and prefix not in self._opened

    @asynccontextmanager
    async def enter(self, prefix: str | None) -> AsyncIterator[bool]:
        """Go ahead as the first of a prefix (true), or wait until the first has finished, however it ended.

        Providers keep a prompt when they begin to reply. After a minute that has happened, or the first one hangs.
        """
        if prefix is None:
            yield False
            return
        if not self.leads(prefix):
            if self.patient:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._opened[prefix].wait(), _LONGEST_LEAD)
            yield False
            return
        opened = self._opened[prefix] = asyncio.Event()
        try:
            yield True
        finally:
            opened.set()


def wants_marks(model: str) -> bool:
    """Tell whether the provider caches only prompts that are marked."""
    return bool(_MARKED.search(model))


def prefix_digest(call: ModelCall) -> str | None:
    """Identify the repeated beginning of a call by its content; None where there is none that is worth a wait."""
    repeated = call.messages[: call.shared]
    if sum(len(content_text(message)) for message in repeated) < _LEAST_CHARS:
        return None
    return digest([call.model, list(repeated)])


def mark_prefix(messages: Sequence[Message], model: str, shared: int) -> list[Message]:
    """Mark the end of the beginning that other calls repeat."""
    marked = list(messages)
    if not 0 < shared <= len(marked) or not wants_marks(model):
        return marked
    last = dict(marked[shared - 1])
    content = last.get("content")
    parts: list[Message] = (
        [{"type": "text", "text": content}] if isinstance(content, str) else [dict(part) for part in content or ()]
    )
    if not parts or not parts[-1].get("text"):
        return marked
    parts[-1]["cache_control"] = {"type": "ephemeral"}
    marked[shared - 1] = {**last, "content": parts}
    return marked


# One attempt at one call through litellm, which knows the protocols of the providers.


@dataclass(frozen=True)
class Attempt:
    """What one request came to: a text, or a fault; and what it used."""

    text: str
    served_by: str
    usage: Usage | None
    """None when the provider sent no reply."""
    seconds: float
    fault: Fault | None = None
    headers: Mapping[str, object] = field(default_factory=dict)
    calls: tuple[ReplyCall, ...] = ()


@cache
def load_litellm() -> Any:
    """Import litellm, which takes seconds, with everything that talks to others or prints turned off."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # or it looks for a newer list on the network
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"  # the same, for the first call to a Claude model
    os.environ["LITELLM_MODE"] = "PRODUCTION"  # or it reads the .env file of whatever folder we stand in
    _watch_http_clients()
    import litellm
    import openai.resources  # noqa: F401 - its first use takes a second, which the event loop should not stand still

    count_text("")  # loads the token table, for the same reason
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).disabled = True  # its debug log holds requests with their headers
    # The first call imports fifty modules more; one that is answered here, and sent to nobody, has them ready.
    litellm.completion(model="hosted_vllm/none", messages=[{"role": "user", "content": ""}], mock_response="ready")
    gc.collect()
    gc.freeze()  # the imports leave objects by the hundred thousand that every later collection would walk
    return litellm


@dataclass
class _Departure:
    """Whether anything of a call has left for the provider."""

    left: bool = False


_departure: ContextVar[_Departure | None] = ContextVar("departure", default=None)


def _leave() -> None:
    if (departure := _departure.get()) is not None:
        departure.left = True


@cache
def _watch_http_clients() -> None:
    """Note when the libraries' HTTP client sends something, and have it follow no redirect.

    A redirect would take the session's text along, and some keys. Each library makes clients of its own, in many
    places, and has no setting for it.
    """
    import httpx

    send_as_asked, send_and_block = httpx.AsyncClient.send, httpx.Client.send

    async def send_here(client: httpx.AsyncClient, request: httpx.Request, **options: Any) -> httpx.Response:
        _leave()
        return await send_as_asked(client, request, **{**options, "follow_redirects": False})

    def send_here_and_block(client: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        _leave()
        return send_and_block(client, request, **{**options, "follow_redirects": False})

    httpx.AsyncClient.send = send_here  # type: ignore[assignment, method-assign]
    httpx.Client.send = send_here_and_block  # type: ignore[assignment, method-assign]


async def close_connections() -> None:
    """Close the connections that litellm keeps open, and have it forget them: it would use a closed one again."""
    litellm = load_litellm()
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


def request_arguments(call: ModelCall, endpoint: Endpoint, seconds: float) -> dict[str, Any]:
    """Return what litellm is called with."""
    messages = mark_prefix(call.messages, endpoint.model, call.shared)
    arguments: dict[str, Any] = {
        **call.params,
        "model": endpoint.model,
        "messages": messages,
        "max_tokens": call.max_tokens,
        "timeout": seconds,
        "max_retries": 0,
        "drop_params": True,  # some models take no temperature; that is theirs to decide
        "stream": False,
    }
    if "tools" in call.params:
        arguments["_skip_mcp_handler"] = True  # it needs a package that litellm does not install, for any tool at all
    if call.temperature is not None:
        arguments["temperature"] = call.temperature
    if call.response_schema is not None:
        arguments["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": call.response_schema, "strict": True},
        }
    if endpoint.api_base is not None:
        arguments["api_base"] = endpoint.api_base
    if endpoint.key is not None:
        arguments["api_key"] = endpoint.key.reveal()
    return arguments


def _told(value: object) -> int:
    """Return a count of tokens as a provider tells it; 0, which is unknown, for what no call can have used."""
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 < value <= _MOST_TOKENS else 0


def usage_told(
    spent_in: object, spent_out: object, cached: object, written: object, call: ModelCall, text: str
) -> Usage:
    """Return the usage; count ourselves where the provider told none, since unknown is not zero."""
    counted_in, counted_out = _told(spent_in), _told(spent_out)
    if not counted_in:
        return Usage(count_messages(call.messages), 0, counted_out or count_text(text), None)
    read = min(_told(cached), counted_in)
    return Usage(counted_in, read, counted_out or count_text(text), None, min(_told(written), counted_in - read))


def _usage(response: Any, call: ModelCall, text: str) -> Usage:
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    written = getattr(usage, "cache_creation_input_tokens", 0) or getattr(details, "cache_creation_tokens", 0)
    return usage_told(
        getattr(usage, "prompt_tokens", 0),
        getattr(usage, "completion_tokens", 0),
        getattr(details, "cached_tokens", 0),
        written,
        call,
        text,
    )


def _delivered(choice: Any) -> Delivered:
    message = choice.message
    extra = getattr(message, "provider_specific_fields", None) or {}
    return Delivered(
        message.content,
        choice.finish_reason,
        getattr(message, "refusal", None) or extra.get("refusal"),
        bool(getattr(message, "tool_calls", None)),
        bool(getattr(message, "reasoning_content", None)),
    )


def _calls(choice: Any) -> tuple[ReplyCall, ...]:
    """Read the tool calls of a reply."""
    found = getattr(getattr(choice, "message", None), "tool_calls", None) or ()
    return tuple(
        ReplyCall(str(call.id), str(call.function.name), str(call.function.arguments or "{}"))
        for call in found
        if getattr(call, "function", None) is not None
    )


def served_by(name: str) -> str:
    """Return the model's name; local servers give the path of its file, which is nobody else's business."""
    return name.rsplit("/", 1)[-1] if name.startswith("/") else name


def _responses_arguments(call: ModelCall, endpoint: Endpoint) -> dict[str, Any]:
    """Return the arguments of a call whose state is input items of OpenAI's responses."""
    assert call.front is not None
    system = [content_text(message) for message in call.messages if message["role"] == "system"]
    said = [
        {"role": message["role"], "content": content_text(message)}
        for message in call.messages
        if message["role"] != "system"
    ]
    arguments: dict[str, Any] = {
        "model": endpoint.model.rpartition("/")[2],
        "input": [*call.front.items, *said],
        "max_output_tokens": call.max_tokens,
        "store": False,
    }
    if system:
        arguments["instructions"] = "\n\n".join(system)
    if call.temperature is not None:
        arguments["temperature"] = call.temperature
    return arguments


async def _send_opaque(call: ModelCall, endpoint: Endpoint, seconds: float, secrets: Iterable[str]) -> Attempt:
    """Ask a question of a state that only the provider can read, with the provider's own SDK."""
    import openai  # litellm's own way to this API needs a package that it does not install

    _watch_http_clients()
    began = time.monotonic()
    assert call.front is not None
    if call.front.protocol != "openai-responses":
        fault = Fault("bad_request", f"a state of {call.front.protocol} cannot be sent back yet", "no")
        return Attempt("", "", None, 0.0, fault)
    key = endpoint.key.reveal() if endpoint.key else None
    try:
        async with (
            asyncio.timeout(seconds),
            openai.AsyncOpenAI(api_key=key, base_url=endpoint.api_base, max_retries=0) as client,
        ):
            response = await client.responses.create(**_responses_arguments(call, endpoint))
    except TimeoutError:
        fault = Fault("timeout", f"no complete reply within {seconds:g} s", "unsure")
        return Attempt("", "", None, time.monotonic() - began, fault)
    except Exception as exc:
        return Attempt("", "", None, time.monotonic() - began, fault_of(exc, secrets))
    took, text, counted = time.monotonic() - began, response.output_text, response.usage
    cached = counted.input_tokens_details.cached_tokens if counted else 0
    spent_in, spent_out = (counted.input_tokens, counted.output_tokens) if counted else (0, 0)
    usage = usage_told(spent_in, spent_out, cached, 0, call, text)
    problem = None if text.strip() else Fault("empty", "the reply is empty", "yes")
    if response.status == "incomplete":
        problem = Fault("truncated", f"the reply was cut off at max_tokens = {call.max_tokens}; allow more", "yes")
    return Attempt(text, served_by(str(response.model)), usage, took, problem)


async def send(call: ModelCall, endpoint: Endpoint, seconds: float, secrets: Iterable[str] = ()) -> Attempt:
    """Send the call once and wait at most so long for the last byte of the reply."""
    if call.front is not None:
        return await _send_opaque(call, endpoint, seconds, secrets)
    litellm = load_litellm()
    began = time.monotonic()
    departure = _Departure()
    _departure.set(departure)
    try:
        async with asyncio.timeout(seconds):
            response = await litellm.acompletion(**request_arguments(call, endpoint, seconds))
    except TimeoutError:
        fault = Fault("timeout", f"no complete reply within {seconds:g} s", "unsure")
        return Attempt("", "", None, time.monotonic() - began, fault)
    except Exception as exc:
        # Whatever the library throws concerns this one call; the run goes on.
        return Attempt("", "", None, time.monotonic() - began, fault_of(exc, secrets, left=departure.left))
    took = time.monotonic() - began
    choices = getattr(response, "choices", None) or []
    reply = _delivered(choices[0]) if choices else None
    text = reply.content if reply and isinstance(reply.content, str) else ""
    hidden = getattr(response, "_hidden_params", None) or {}
    return Attempt(
        text,
        served_by(str(getattr(response, "model", "") or "")),
        _usage(response, call, text),
        took,
        unusable(reply, call.max_tokens, tools_offered=bool(call.params.get("tools"))),
        dict(hidden.get("additional_headers") or {}),
        _calls(choices[0]) if choices else (),
    )


# Models that think before they answer: room for the thinking comes on top of the room for the answer.

_CLAUDE = re.compile(r"(?:^|/|\.)(?:anthropic[./])?claude", re.IGNORECASE)
# They think unless they are told not to, and count it as output.
_THINKERS = re.compile(r"(?:^|/)(?:gemini-(?:2\.5|[3-9])|o[1-9](?:-|$)|gpt-5(?!.*chat))", re.IGNORECASE)
# What litellm makes of `reasoning_effort` for Claude and Gemini: tokens of thinking, which count as output.
_BUDGETS: Mapping[str, int] = MappingProxyType(
    {"minimal": 1_024, "low": 1_024, "medium": 2_048, "high": 4_096, "xhigh": 8_192, "max": 16_384}
)
_UNSAID = 4_096
_OFF = frozenset({"none", "disable"})


def with_thinking(call: ModelCall) -> ModelCall:
    """Make a call to a model that is to think a valid one, with room for an answer behind the thinking.

    The limit of a reply covers both. A Claude model's budget must be smaller, and no temperature may be set with it.
    What a compressor asks of a model that thinks by itself is left as it is: its limit is its own.
    """
    effort = call.params.get("reasoning_effort")
    if effort in _OFF:
        return call
    told = isinstance(effort, str) and effort != "default"
    budget = _BUDGETS.get(str(effort), max(_BUDGETS.values())) if told else _UNSAID
    if _CLAUDE.search(call.model):
        if not told:
            return call
        params = {name: value for name, value in call.params.items() if name != "top_p"}
        if params.get("tool_choice") == "required":
            params["tool_choice"] = "auto"  # nor may a tool call be demanded
        return replace(call, max_tokens=call.max_tokens + budget, temperature=None, params=params)
    if not _THINKERS.search(call.model) or (call.role == "compressor" and not told):
        return call
    return replace(call, max_tokens=call.max_tokens + budget)
