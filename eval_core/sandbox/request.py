"""What one request of the compressor means: checked, and rebuilt from what may go to the provider and nothing else.

The gateway's process checks a request before it passes it on, and the evaluator checks what it is passed with the same
function. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eval_core.base.messages import ROLES, Message, message_problem
from eval_core.base.strict_json import BadJson, parse_json, without_surrogates

MAX_MESSAGES = 20_000
MAX_VALUES = 20 * MAX_MESSAGES
"""In all objects and lists of one request: a few for each message, and the schemas of tools."""

PASSED = ("top_p", "stop", "presence_penalty", "frequency_penalty")
EFFORT = ("reasoning_effort", "verbosity")
"""Not passed on either, because not every model has it; what a model writes may depend on it, so it is written down."""
IGNORED = (
    *EFFORT, "logprobs", "metadata", "parallel_tool_calls", "prompt_cache_key", "safety_identifier", "seed",
    "service_tier", "store", "stream_options", "top_logprobs", "user",
)  # fmt: skip
"""Fields that are accepted and not passed on."""
HANDLED = (
    "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "stream", "n", "response_format",
    "tools", "tool_choice",
)  # fmt: skip
FORBIDDEN = ("functions", "function_call", "audio", "modalities", "web_search_options", "prediction")


class Refusal(Exception):
    """The request is turned away: an HTTP status and a sentence for the compressor's author."""

    def __init__(self, status: int, message: str, code: str) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


@dataclass(frozen=True)
class GatewayLimits:
    """What one run of the compressor may ask for, and how it may ask."""

    requests: int = 64
    """Model calls, all steps and attempts together."""
    total_tokens: int = 4_000_000
    """Input and output of all calls together; the worst case of each is reserved before it is made."""
    output_tokens: int = 16_384
    """Of one call; a larger wish is lowered."""
    request_bytes: int = 8 * 1024 * 1024
    """Of one body; checked against its announced length before any of it is read."""
    run_bytes: int = 64 * 1024 * 1024
    """Of all model calls together, which the evaluator keeps until the run is over; checked before each call."""
    bytes_at_once: int = 32 * 1024 * 1024
    """Of all bodies that are being read or answered."""
    header_bytes: int = 32 * 1024
    connections: int = 64
    """Open at the same time."""
    arrivals: int = 2_000
    """Connections and requests of every kind, all together; then the gateway closes."""
    request_seconds: float = 30.0
    """For a request to arrive whole once it has begun."""
    idle_seconds: float = 120.0
    """For a connection to begin its next request."""


@dataclass(frozen=True)
class ChatRequest:
    """What is left of a request after checking."""

    requested_model: str
    messages: tuple[Message, ...]
    max_tokens: int | None
    temperature: float | None
    response_schema: dict[str, Any] | None
    params: dict[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    effort: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> tuple[str, ...]:
        """What is asked for beside the messages, one `name: value` each, and each tool by itself."""
        body = self.body()
        tools = [("tool", tool) for tool in body.pop("tools", ())]
        others = [(name, value) for name, value in sorted(body.items()) if name not in ("model", "messages", *EFFORT)]
        return tuple(
            f"{name}: {json.dumps(value, sort_keys=True, ensure_ascii=False)}" for name, value in [*others, *tools]
        )

    def body(self) -> dict[str, Any]:
        """Return the request as chat completions write it; `read_request` of it is this request again."""
        body: dict[str, Any] = {
            "model": self.requested_model,
            "messages": list(self.messages),
            **self.params,
            **self.effort,
        }
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            body["temperature"] = self.temperature
        if self.response_schema is not None:
            described = {"name": "answer", "schema": self.response_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        return body


def _bad(message: str) -> Refusal:
    return Refusal(400, message, "invalid_request")


def _text(content: Any, place: str) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _bad(f"{place}: must be text or a list of text parts")
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            parts.append(part["text"])
        elif isinstance(part, dict) and part.get("type") == "refusal" and isinstance(part.get("refusal"), str):
            parts.append(part["refusal"])
        else:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise Refusal(403, f"{place}: parts of type {str(kind)[:40]!r} are not served; text only", "text_only")
    return "\n".join(parts)


def _tool_call(call: Any, place: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise _bad(f"{place}: each call needs a function")
    key, name, arguments = (call.get("id"), function.get("name"), function.get("arguments"))
    if not (isinstance(key, str) and isinstance(name, str) and isinstance(arguments, str)):
        raise _bad(f"{place}: id, function.name and function.arguments must be text")
    if not name:
        raise _bad(f"{place}: each call needs a function with a name")
    arguments = arguments if arguments.strip() else "{}"  # as some models write that there are none
    try:
        given = parse_json(arguments)
    except BadJson:
        given = None
    if not isinstance(given, dict):
        # Some protocols hold arguments as an object, so that no other text can be sent to every provider.
        raise _bad(f"{place}: arguments: must be a JSON object, as text")
    return {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}


_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMAS = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_SCHEMA_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_VALUE_LISTS = ("required", "enum")


def _check_schema(schema: Any, place: str) -> None:
    """Refuse what has not the shape of a JSON Schema: client libraries take it apart and fail in their own ways."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _bad(f"{place}: must be a JSON Schema, which is an object")
    given = {name: value for name, value in schema.items() if value is not None}
    types = given.get("type", "object")
    types = types if isinstance(types, list) else [types]
    if not types or not all(isinstance(name, str) for name in types):
        raise _bad(f"{place}.type: must be a type's name or a list of them")
    for inner_place, inner in _inner_schemas(given, place):
        _check_schema(inner, inner_place)


def _inner_schemas(given: dict[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    for name in _NAMED_SCHEMAS:
        if not isinstance(inner := given.get(name, {}), dict):
            raise _bad(f"{place}.{name}: must be an object of schemas")
        yield from ((f"{place}.{name}.{key[:40]}", value) for key, value in inner.items())
    for name in (*_SCHEMA_LISTS, *_VALUE_LISTS):
        if not isinstance(given.get(name, []), list):
            raise _bad(f"{place}.{name}: must be a list")
    for name in _SCHEMAS:
        # Earlier drafts describe a tuple by a list of items.
        values = given[name] if isinstance(given.get(name), list) and name == "items" else [given.get(name, True)]
        yield from ((f"{place}.{name}", value) for value in values)
    for name in _SCHEMA_LISTS:
        yield from ((f"{place}.{name}", value) for value in given.get(name, []))


def _message(message: Any, index: int) -> Message:
    """Rebuild a message from the fields that are known; whatever else it carries stays here."""
    place = f"messages[{index}]"
    if not isinstance(message, dict):
        raise _bad(f"{place}: must be an object")
    role = message.get("role")
    if role not in ROLES:
        raise _bad(f"{place}.role: {str(role)[:40]!r} is not one of {', '.join(ROLES)}")
    rebuilt: Message = {"role": role, "content": _text(message.get("content"), f"{place}.content")}
    for name in ("name", "tool_call_id"):
        value = message.get(name)
        if isinstance(value, str):
            rebuilt[name] = value
        elif value is not None:
            raise _bad(f"{place}.{name}: must be text")
    if calls := message.get("tool_calls"):
        if not isinstance(calls, list):
            raise _bad(f"{place}.tool_calls: must be a list")
        rebuilt["tool_calls"] = [_tool_call(call, f"{place}.tool_calls") for call in calls]
    return rebuilt


def _number(body: dict[str, Any], name: str, low: float, high: float) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(f"{name}: must be a number")
    if not low <= value <= high:
        raise _bad(f"{name}: must lie between {low} and {high}")
    return float(value)


def _output_limit(body: dict[str, Any]) -> int | None:
    """Return the smaller of the two names that the limit goes by."""
    limits = [_number(body, name, 1, 1e9) for name in ("max_tokens", "max_completion_tokens")]
    given = [int(limit) for limit in limits if limit is not None]
    return min(given) if given else None


def _format(body: dict[str, Any], params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the JSON Schema that is asked for; a plain JSON mode travels as a parameter."""
    wanted = body.get("response_format")
    if wanted is None or wanted == {"type": "text"}:
        return None
    if wanted == {"type": "json_object"}:
        params["response_format"] = wanted
        return None
    described = wanted.get("json_schema") if isinstance(wanted, dict) else None
    schema = described.get("schema") if isinstance(described, dict) else None
    if not isinstance(schema, dict):
        raise _bad("response_format: must be text, json_object or json_schema with a schema")
    _check_schema(schema, "response_format")
    return schema


def _params(body: dict[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name in PASSED:
        if name == "stop":
            stop = body.get("stop")
            if isinstance(stop, str) or (isinstance(stop, list) and all(isinstance(item, str) for item in stop)):
                params["stop"] = stop
            elif stop is not None:
                raise _bad("stop: must be text or a list of texts")
        elif (number := _number(body, name, -2, 2)) is not None:
            params[name] = number
    return params


def _plain(value: Any) -> str:
    """Write a setting down as one word or, where it has parts, as JSON."""
    return (value if isinstance(value, str) else json.dumps(value, sort_keys=True))[:200]


def _tool(tool: dict[str, Any], place: str) -> dict[str, Any]:
    """Rebuild a function that the model may ask the compressor to call; nothing of it runs at the provider."""
    function = tool.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        raise _bad(f"{place}: must be a function with a name")
    if function.get("parameters") is not None:
        _check_schema(function["parameters"], f"{place}.parameters")
    rebuilt: dict[str, Any] = {"name": function["name"][:128]}
    for name, kind in (("description", str), ("parameters", dict), ("strict", bool)):
        if isinstance(function.get(name), kind):
            rebuilt[name] = function[name]
    return {"type": "function", "function": rebuilt}


def _tools(body: dict[str, Any], params: dict[str, Any]) -> tuple[str, ...]:
    """Pass functions on; return what else was offered, which would run at the provider and is left out."""
    tools = body.get("tools") or []
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise _bad("tools: must be a list of objects")
    kept = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools) if tool.get("type") == "function"]
    choice = body.get("tool_choice")
    unserved = [f"tools.{str(tool.get('type'))[:40]}" for tool in tools if tool.get("type") != "function"]
    if not kept:
        return (*unserved, "tool_choice") if choice is not None else tuple(unserved)
    params["tools"] = kept
    if choice in ("auto", "none", "required"):
        params["tool_choice"] = choice
    elif choice is not None:
        named = choice.get("function") if isinstance(choice, dict) else None
        name = named.get("name") if isinstance(named, dict) else None
        if not isinstance(name, str):
            raise _bad("tool_choice: must be auto, none, required or a function's name")
        params["tool_choice"] = {"type": "function", "function": {"name": name}}
    return tuple(unserved)


def read_object(data: bytes) -> dict[str, Any]:
    """Parse a request body of any protocol; raise Refusal, and nothing else."""
    try:
        body = without_surrogates(parse_json(data, values=MAX_VALUES))
    except BadJson as exc:
        raise _bad(f"the body is not JSON: {exc}") from None
    if not isinstance(body, dict):
        raise _bad("the body must be an object")
    return body


def read_request(body: dict[str, Any]) -> ChatRequest:
    """Check a chat completion's body; raise Refusal, and nothing else, for whatever is not plain text chat."""
    # SDKs send null or an empty list for what is not used.
    body = {name: value for name, value in body.items() if value is not None and value != []}
    for name in body:
        if name in FORBIDDEN:
            raise Refusal(403, f"{name}: not served; a compressor gets plain text chat", "text_only")
        if name not in HANDLED and name not in PASSED and name not in IGNORED:
            raise _bad(f"{name[:60]}: this field is not served")
    if body.get("n", 1) != 1:
        raise _bad("n: only 1 is served")
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise _bad("messages: a list with at least one message is needed")
    if len(messages) > MAX_MESSAGES:
        raise _bad(f"messages: {len(messages):,} are more than the {MAX_MESSAGES:,} that are served")
    rebuilt = [_message(message, index) for index, message in enumerate(messages)]
    if problem := message_problem(rebuilt):
        raise _bad(problem)
    params = _params(body)
    unserved = _tools(body, params)
    return ChatRequest(
        requested_model=str(body.get("model", ""))[:200],
        messages=tuple(rebuilt),
        max_tokens=_output_limit(body),
        temperature=_number(body, "temperature", 0, 2),
        response_schema=_format(body, params),
        params=params,
        dropped=(*(name for name in body if name in IGNORED), *unserved),
        effort={name: _plain(body[name]) for name in EFFORT if name in body},
    )
