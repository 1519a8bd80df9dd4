"""The batch APIs of OpenAI and Anthropic: many calls in one request, answered within a day at half the price.

Written from the providers' published shapes and tried against a server on loopback that follows them; there is no
account behind it.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol
from urllib.parse import quote, urlencode

import aiohttp

from eval_core.base.errors import UserError
from eval_core.domain.call import ModelCall
from eval_core.models.faults import fault_of, fault_of_status
from eval_core.models.openai_compatible import DirectConnections
from eval_core.models.settings import Endpoint, Models
from eval_core.models.transport import load_litellm, request_arguments

__all__ = [
    "MOST_BYTES",
    "MOST_CALLS",
    "BatchApi",
    "BatchItem",
    "BatchProblem",
    "BatchRequest",
    "BatchState",
    "batch_api",
    "custom_id",
    "require_batches",
]

MOST_CALLS = 50_000
"""Of one batch; OpenAI's limit, which is the lower one."""
MOST_BYTES = 128 * 2**20
_LARGEST_FILE = 2**30
_SECONDS = 300.0
_PAGE = 100
_MOST_PAGES = 50
_CLOCKS = 3_600  # seconds by which the provider's clock and ours may differ
_MARK = "compression_eval"
_NO_BATCHES = frozenset({"github-models", "ollama", "vllm", "openrouter", "azure", "bedrock", "vertex"})
_NO_SUCH_API = frozenset({404, 405, 501})


class BatchProblem(Exception):
    """A provider did not do what was asked of it."""

    def __init__(self, message: str, *, sure: bool, status: int = 0) -> None:
        """Say whether it is sure that nothing was done."""
        super().__init__(message)
        self.sure, self.status = sure, status


@dataclass(frozen=True)
class BatchRequest:
    """One call of a batch."""

    id: str
    body: Mapping[str, Any]
    beta: str | None = None
    """Features of Anthropic's API that the body makes use of."""


@dataclass(frozen=True)
class BatchState:
    """How far a batch is."""

    state: Literal["running", "ended", "refused"]
    done: int
    total: int
    files: tuple[str, ...] = ()
    """Where the replies are."""
    problem: str = ""
    """Why the provider did not begin."""


@dataclass(frozen=True)
class BatchItem:
    """What became of one call: a status and a body as the chat completions of OpenAI have them."""

    id: str
    status: int
    """0 where the call was never made: the batch expired or was cancelled before."""
    body: str


class BatchApi(Protocol):
    """What a provider can do with batches."""

    def request(self, id: str, call: ModelCall) -> BatchRequest:
        """Return a call as a part of a batch."""
        ...

    async def submit(self, mark: str, requests: Sequence[BatchRequest]) -> str:
        """Submit a batch and return the provider's id for it."""
        ...

    async def find(self, mark: str, since: int, calls: int) -> str | None:
        """Look for a batch that was submitted under our mark; None when there is none."""
        ...

    async def state(self, id: str) -> BatchState:
        """Ask how far a batch is."""
        ...

    async def items(self, id: str, state: BatchState) -> list[BatchItem]:
        """Return what became of the calls of a batch that has ended."""
        ...


def custom_id(mark: str, key: str) -> str:
    """Return the name of a call in a batch: ours by its mark, and 64 characters at most, as Anthropic wants it."""
    return f"{mark}_{key}"[:64]


def require_batches(models: Models | None) -> None:
    """Refuse models whose provider has no batch API, before anything is paid for."""
    if models is None:
        raise UserError("--batch: no model is configured, and nothing is paid for; leave it out, or name a --model")
    if models.offline_judge:
        raise UserError(
            "--batch: with --judge offline only compressions are paid for, which are made at once; leave it out"
        )
    for model in dict.fromkeys((models.answer, models.judge)):
        if _protocol(models, model) is None:
            found = models.endpoints.get(model)
            where = (found.preset if found and found.preset else None) or models.endpoint(model).provider
            raise UserError(
                f"--batch: {model}: no batch API is known for {where}; OpenAI (also by --api-base) and Anthropic have "
                "one. Leave out --batch to make the calls one by one"
            )


def _protocol(models: Models, model: str) -> Literal["openai", "anthropic"] | None:
    found = models.endpoints.get(model)
    if found is not None and found.preset in _NO_BATCHES:
        return None
    endpoint = models.endpoint(model)
    if endpoint.direct:
        return "openai"
    try:
        provider = load_litellm().get_llm_provider(model=endpoint.model)[1]
    except Exception:  # whatever litellm makes of the name, it is none of the two
        return None
    return provider if provider in ("openai", "anthropic") else None


def batch_api(models: Models, model: str, connections: DirectConnections, secrets: Sequence[str]) -> BatchApi:
    """Return the batch API through which a model is reached."""
    protocol, endpoint = _protocol(models, model), models.endpoint(model)
    if protocol is None:
        raise UserError(f"{model}: no batch API is known for {endpoint.provider}")
    wire = _Wire(endpoint, connections, secrets, protocol)
    return _OpenAIBatches(wire) if protocol == "openai" else _AnthropicBatches(wire)


class _Wire:
    """Makes the requests, with the key that calls to the model have too."""

    def __init__(
        self, endpoint: Endpoint, connections: DirectConnections, secrets: Sequence[str], protocol: str
    ) -> None:
        self.endpoint, self.connections, self._secrets = endpoint, connections, secrets
        self._protocol = protocol
        self.base = endpoint.api_base or ""
        if not endpoint.direct:
            probe = ModelCall("answer", endpoint.model, ({"role": "user", "content": "?"},), 1)
            self.base = str(self.through_litellm(probe)["raw_request_api_base"]).rstrip("/")

    def through_litellm(self, call: ModelCall) -> dict[str, Any]:
        """Return the request that litellm would make of a call; nothing is sent."""
        from litellm.types.utils import CallTypes
        from litellm.utils import return_raw_request

        arguments = request_arguments(call, self.endpoint, _SECONDS)
        arguments.pop("api_key", None)  # it uses one of its own, which is none
        found: dict[str, Any] = dict(return_raw_request(CallTypes.completion, arguments))
        if not isinstance(found.get("raw_request_body"), dict):
            why = "" if call.private else f": {found.get('error')}"  # which may quote the prompt
            raise UserError(f"{self.endpoint.model}: the request cannot be put into a batch{why}")
        return found

    def _headers(self) -> dict[str, str]:
        key = self.endpoint.key.reveal() if self.endpoint.key is not None else None
        if key is None and not self.endpoint.direct:
            key = os.environ.get(f"{self._protocol.upper()}_API_KEY")  # where litellm finds it too
        if self._protocol == "anthropic":
            return {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
        return {"Authorization": f"Bearer {key}"} if key else {}

    async def ask(
        self,
        method: str,
        path: str,
        data: bytes | aiohttp.FormData | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Make a request and return the body of its reply; anything but success is a problem."""
        url = f"{self.base}{path}"
        kind = {"Content-Type": "application/json"} if isinstance(data, bytes) else {}
        try:
            async with asyncio.timeout(_SECONDS):
                status, seen, raw = await self.connections.request(
                    method, url, {**self._headers(), **kind, **(headers or {})}, data, largest=_LARGEST_FILE
                )
        except TimeoutError:
            raise BatchProblem(f"{url}: no complete reply within {_SECONDS:g} s", sure=False) from None
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            fault = fault_of(exc, self._secrets)
            raise BatchProblem(f"{url}: {fault.message}", sure=fault.charge == "no") from None
        if not 200 <= status < 300:
            fault = fault_of_status(status, raw.decode("utf-8", "replace"), seen, self._secrets)
            raise BatchProblem(f"{url}: {fault.message}", sure=status < 500, status=status)
        return raw

    async def ask_json(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Make a request whose reply is a JSON object."""
        data = None if body is None else json.dumps(body).encode()
        return self.read_object(await self.ask(method, path, data, headers), path)

    def read_object(self, raw: bytes, path: str) -> dict[str, Any]:
        """Read a reply."""
        try:
            found = json.loads(raw)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise BatchProblem(f"{self.base}{path}: the reply is no JSON object", sure=False)
        return found

    async def pages(self, path: str, cursor: str) -> list[dict[str, Any]]:
        """Return the list of batches, the newest first."""
        found: list[dict[str, Any]] = []
        query: dict[str, str] = {"limit": str(_PAGE)}
        for _ in range(_MOST_PAGES):
            page = await self.ask_json("GET", f"{path}?{urlencode(query)}")
            data = [item for item in page.get("data") or () if isinstance(item, dict)]
            found += data
            if not page.get("has_more") or not data:
                break
            query[cursor] = str(page.get("last_id") or data[-1].get("id"))
        return found


def _lines(raw: bytes) -> Iterator[dict[str, Any]]:
    """Read a file of JSON lines; one that is damaged is a call without a reply."""
    for line in raw.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and isinstance(found.get("custom_id"), str):
            yield found


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


class _OpenAIBatches:
    """`/v1/files` and `/v1/batches`: a file of requests goes up, a file of replies comes back."""

    _ENDED = frozenset({"completed", "expired", "cancelled"})

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def request(self, id: str, call: ModelCall) -> BatchRequest:
        """Return the request that would be made by itself."""
        wire = self._wire
        if wire.endpoint.direct:
            body = wire.connections.body(call, wire.endpoint)
        else:
            body = dict(wire.through_litellm(call)["raw_request_body"])
            body |= body.pop("extra_body", None) or {}
        return BatchRequest(id, {name: value for name, value in body.items() if name not in ("stream", "timeout")})

    async def submit(self, mark: str, requests: Sequence[BatchRequest]) -> str:
        """Upload the requests, then have them worked on."""
        lines = [
            json.dumps(
                {"custom_id": item.id, "method": "POST", "url": "/v1/chat/completions", "body": item.body},
                separators=(",", ":"),
            )
            for item in requests
        ]
        form = aiohttp.FormData()
        form.add_field("purpose", "batch")
        content = ("\n".join(lines) + "\n").encode()
        form.add_field("file", content, filename=f"{_MARK}-{mark}.jsonl", content_type="application/jsonl")
        try:
            raw = await self._wire.ask("POST", "/files", form)
        except BatchProblem as exc:
            # A file alone is worked on by nobody.
            raise BatchProblem(self._said(exc), sure=True, status=exc.status) from None
        uploaded = self._wire.read_object(raw, "/files")
        body = {
            "input_file_id": uploaded.get("id"),
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {_MARK: mark},
        }
        try:
            made = await self._wire.ask_json("POST", "/batches", body)
        except BatchProblem as exc:
            raise BatchProblem(self._said(exc), sure=exc.sure, status=exc.status) from None
        if not isinstance(made.get("id"), str):
            raise BatchProblem(f"{self._wire.base}/batches: the reply names no batch", sure=False)
        return str(made["id"])

    def _said(self, exc: BatchProblem) -> str:
        if exc.status in _NO_SUCH_API:
            return f"{self._wire.base} has no batch API ({exc}); leave out --batch to make the calls one by one"
        return str(exc)

    async def find(self, mark: str, since: int, calls: int) -> str | None:
        """Look for our mark among the batches."""
        for batch in await self._wire.pages("/batches", "after"):
            if _mapping(batch.get("metadata")).get(_MARK) == mark:
                return str(batch.get("id"))
        return None

    async def state(self, id: str) -> BatchState:
        """Ask how far a batch is."""
        batch = await self._wire.ask_json("GET", f"/batches/{quote(id, safe='')}")
        counts, status = _mapping(batch.get("request_counts")), batch.get("status")
        total = _count(counts.get("total"))
        done = _count(counts.get("completed")) + _count(counts.get("failed"))
        if status == "failed":
            errors = _mapping(batch.get("errors")).get("data")
            said = [str(_mapping(error).get("message")) for error in errors or () if _mapping(error).get("message")]
            return BatchState("refused", done, total, (), "; ".join(said[:3]) or "it does not say why")
        if status not in self._ENDED:
            return BatchState("running", done, total)
        files = tuple(
            str(batch[name]) for name in ("output_file_id", "error_file_id") if isinstance(batch.get(name), str)
        )
        return BatchState("ended", done, total, files)

    async def items(self, id: str, state: BatchState) -> list[BatchItem]:
        """Read the files of replies and of errors."""
        found = []
        for file in state.files:
            raw = await self._wire.ask("GET", f"/files/{quote(file, safe='')}/content")
            found += [self._item(line) for line in _lines(raw)]
        return found

    @staticmethod
    def _item(line: Mapping[str, Any]) -> BatchItem:
        name, response, error = str(line["custom_id"]), _mapping(line.get("response")), _mapping(line.get("error"))
        if response:
            return BatchItem(name, _count(response.get("status_code")), json.dumps(response.get("body")))
        if str(error.get("code")) in ("batch_expired", "batch_cancelled"):
            return BatchItem(name, 0, "")
        return BatchItem(name, 500, json.dumps({"error": dict(error)}))


_ERROR_STATUS = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504,
    "overloaded_error": 529,
}  # fmt: skip
_FINISH = {"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter"}


class _AnthropicBatches:
    """`/v1/messages/batches`: the requests go up in one body, the replies come back as lines.

    A batch has no field for a mark of ours, so that one whose id was never heard is known by the names of its calls.
    """

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def request(self, id: str, call: ModelCall) -> BatchRequest:
        """Return the request that litellm would make."""
        found = self._wire.through_litellm(call)
        body = {
            name: value for name, value in found["raw_request_body"].items() if name not in ("stream", "extra_body")
        }
        return BatchRequest(id, body, _mapping(found.get("raw_request_headers")).get("anthropic-beta"))

    async def submit(self, mark: str, requests: Sequence[BatchRequest]) -> str:
        """Submit the requests."""
        body = {"requests": [{"custom_id": item.id, "params": item.body} for item in requests]}
        betas = sorted({name.strip() for item in requests for name in (item.beta or "").split(",") if name.strip()})
        made = await self._wire.ask_json(
            "POST", "/batches", body, {"anthropic-beta": ",".join(betas)} if betas else None
        )
        if not isinstance(made.get("id"), str):
            raise BatchProblem(f"{self._wire.base}/batches: the reply names no batch", sure=False)
        return str(made["id"])

    async def find(self, mark: str, since: int, calls: int) -> str | None:
        """Look into the batches of the time that have as many calls."""
        for batch in await self._wire.pages("/batches", "after_id"):
            if _moment(batch.get("created_at")) < since - _CLOCKS:
                break
            if sum(_count(value) for value in _mapping(batch.get("request_counts")).values()) != calls:
                continue
            id = str(batch.get("id"))
            if batch.get("processing_status") != "ended":
                raise BatchProblem(
                    f"{id}: it may be the batch whose submission was interrupted, and only its replies will tell; "
                    "wait until it has ended",
                    sure=False,
                )
            items = await self.items(id, BatchState("ended", 0, 0))
            if any(item.id.startswith(f"{mark}_") for item in items):
                return id
        return None

    async def state(self, id: str) -> BatchState:
        """Ask how far a batch is."""
        batch = await self._wire.ask_json("GET", f"/batches/{quote(id, safe='')}")
        counts = {name: _count(value) for name, value in _mapping(batch.get("request_counts")).items()}
        total = sum(counts.values())
        ended = batch.get("processing_status") == "ended"
        return BatchState("ended" if ended else "running", total - counts.get("processing", 0), total)

    async def items(self, id: str, state: BatchState) -> list[BatchItem]:
        """Read the replies."""
        raw = await self._wire.ask("GET", f"/batches/{quote(id, safe='')}/results")
        return [self._item(line) for line in _lines(raw)]

    @staticmethod
    def _item(line: Mapping[str, Any]) -> BatchItem:
        name, result = str(line["custom_id"]), _mapping(line.get("result"))
        if result.get("type") == "succeeded":
            return BatchItem(name, 200, json.dumps(_as_completion(_mapping(result.get("message")))))
        if result.get("type") != "errored":
            return BatchItem(name, 0, "")
        outer = _mapping(result.get("error"))
        error = _mapping(outer.get("error")) or outer
        return BatchItem(name, _ERROR_STATUS.get(str(error.get("type")), 500), json.dumps({"error": dict(error)}))


def _moment(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return float("inf")


def _as_completion(message: Mapping[str, Any]) -> dict[str, Any]:
    """Write a message of Anthropic's as a chat completion; a schema may have been asked for by way of a tool."""
    blocks = [_mapping(block) for block in message.get("content") or ()]
    text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    if not text:
        text = "".join(json.dumps(block.get("input")) for block in blocks if block.get("type") == "tool_use")
    usage = _mapping(message.get("usage"))
    read, written = (_count(usage.get(f"cache_{kind}_input_tokens")) for kind in ("read", "creation"))
    return {
        "model": message.get("model"),
        "choices": [
            {
                "finish_reason": _FINISH.get(str(message.get("stop_reason")), "stop"),
                "message": {"role": "assistant", "content": text},
            }
        ],
        "usage": {
            "prompt_tokens": _count(usage.get("input_tokens")) + read + written,
            "completion_tokens": _count(usage.get("output_tokens")),
            "prompt_tokens_details": {"cached_tokens": read},
            "cache_creation_input_tokens": written,
        },
    }
