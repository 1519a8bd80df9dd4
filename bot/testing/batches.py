"""The batch APIs of a model provider on loopback: OpenAI's files and batches, Anthropic's message batches.

A batch goes through the states of the real ones, one at each look at it, and stays in progress while it is held.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from aiohttp import web

__all__ = ["Batch", "LoopbackBatches", "as_chat", "as_message"]

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_MOST = 50_000
_ERROR_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error",
    500: "api_error", 503: "api_error", 529: "overloaded_error",
}  # fmt: skip
End = Literal["complete", "expire", "refuse"]


@dataclass
class Batch:
    """One batch and how far it is."""

    id: str
    requests: dict[str, dict[str, Any]]
    """Name to the body of the request."""
    created: int
    metadata: dict[str, str] = field(default_factory=dict)
    input_file: str = ""
    status: str = "validating"
    ends: End = "complete"
    results: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    """Name to the status and body of the reply; a name that is missing was never worked on."""


class LoopbackBatches:
    """Keeps files and batches; `work` answers one request."""

    def __init__(self, work: Callable[[Mapping[str, Any]], tuple[int, dict[str, Any]]]) -> None:
        """Begin without any."""
        self.openai: dict[str, Batch] = {}
        self.anthropic: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.held = False
        """Whether batches stay in progress."""
        self.ends: End = "complete"
        """How batches end that are submitted from now on."""
        self.worked_before_the_end = 10**9
        """How many requests of a batch that expires are worked on."""
        self.on_submit: Callable[[Batch], None] = lambda batch: None
        """Called when a batch was taken and before its submitter is told."""
        self.on_upload: Callable[[], None] = lambda: None
        """Called when a file was taken."""
        self.requests: list[str] = []
        """Method and path of everything that was asked of these APIs."""
        self.keys: set[str] = set()
        """The keys that came with it."""
        self.keeps_replies = True
        """Whether the replies of a batch can still be had."""
        self.offered = True
        """Whether there is a batch API at all."""
        self._work = work

    def add_routes(self, app: web.Application) -> None:
        """Serve both APIs."""
        routes: list[tuple[str, str, Callable[[web.Request], Any]]] = [
            ("POST", "/v1/files", self._upload),
            ("GET", "/v1/files/{id}/content", self._content),
            ("POST", "/v1/batches", self._create),
            ("GET", "/v1/batches", self._list),
            ("GET", "/v1/batches/{id}", self._show),
            ("POST", "/v1/messages/batches", self._create_messages),
            ("GET", "/v1/messages/batches", self._list_messages),
            ("GET", "/v1/messages/batches/{id}", self._show_messages),
            ("GET", "/v1/messages/batches/{id}/results", self._results),
        ]
        for method, path, handler in routes:
            app.router.add_route(method, path, self._noted(handler))

    def _noted(self, handler: Callable[[web.Request], Any]) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            self.requests.append(f"{request.method} {request.path}")
            self.keys.add(request.headers.get("Authorization") or request.headers.get("x-api-key") or "")
            if not self.offered:
                return _error(404, "unknown URL")
            answered: web.StreamResponse = await handler(request)
            return answered

        return handle

    # OpenAI.

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form.get("file")
        if form.get("purpose") != "batch" or not isinstance(file, web.FileField):
            return _error(400, "a file and the purpose 'batch' are required")
        id = f"file-{len(self.files)}"
        self.files[id] = file.file.read()
        self.on_upload()
        return web.json_response({"id": id, "object": "file", "purpose": "batch", "bytes": len(self.files[id])})

    async def _content(self, request: web.Request) -> web.Response:
        raw = self.files.get(request.match_info["id"]) if self.keeps_replies else None
        return _error(404, "no such file") if raw is None else web.Response(body=raw)

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        raw = self.files.get(body.get("input_file_id"))
        if raw is None or body.get("endpoint") != "/v1/chat/completions" or body.get("completion_window") != "24h":
            return _error(400, "input_file_id, endpoint or completion_window is not one that can be used")
        lines = [json.loads(line) for line in raw.splitlines()]
        batch = Batch(
            f"batch_{len(self.openai)}",
            {line["custom_id"]: line["body"] for line in lines},
            int(datetime.now(UTC).timestamp()),
            dict(body.get("metadata") or {}),
            body["input_file_id"],
            ends=self.ends,
        )
        wrong = [line for line in lines if line["method"] != "POST" or line["url"] != body["endpoint"]]
        models = {line["body"].get("model") for line in lines}
        if wrong or len(batch.requests) != len(lines) or len(models) != 1 or len(lines) > _MOST:
            batch.ends = "refuse"
        self.openai[batch.id] = batch
        self.on_submit(batch)
        return web.json_response(self._shown(batch))

    async def _list(self, request: web.Request) -> web.Response:
        newest = [*reversed(self.openai.values())]
        data, more = _page(newest, request.query.get("after"), int(request.query.get("limit", "20")))
        return web.json_response(
            {"object": "list", "data": [self._shown(batch) for batch in data], "has_more": more,
             "last_id": data[-1].id if data else None}
        )  # fmt: skip

    async def _show(self, request: web.Request) -> web.Response:
        batch = self.openai.get(request.match_info["id"])
        if batch is None:
            return _error(404, "no such batch")
        self._advance(batch, ("validating", "in_progress", "finalizing", "completed"))
        return web.json_response(self._shown(batch))

    def _shown(self, batch: Batch) -> dict[str, Any]:
        good = sum(status == 200 for status, _ in batch.results.values())
        ended = batch.status in ("completed", "expired")
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "input_file_id": batch.input_file,
            "completion_window": "24h",
            "created_at": batch.created,
            "status": batch.status,
            "metadata": batch.metadata,
            "errors": {"object": "list", "data": [{"code": "invalid", "message": "a line cannot be used", "line": 1}]}
            if batch.status == "failed"
            else None,
            "output_file_id": self._file(batch, good=True) if ended and good else None,
            "error_file_id": self._file(batch, good=False) if ended and good < len(batch.requests) else None,
            "request_counts": {
                "total": len(batch.requests), "completed": good, "failed": len(batch.results) - good,
            },
        }  # fmt: skip

    def _file(self, batch: Batch, *, good: bool) -> str:
        """Write the file of replies, or that of the requests that got none."""
        lines: list[dict[str, Any]] = []
        for name in batch.requests:
            status, body = batch.results.get(name, (0, {}))
            if (status == 200) != good:
                continue
            error = {"code": "batch_expired", "message": "not executed before the completion window expired"}
            response = {"status_code": status, "request_id": f"req-{name[:8]}", "body": body}
            lines.append(
                {"id": f"batch_req_{len(lines)}", "custom_id": name, "response": response if status else None,
                 "error": None if status else error}
            )  # fmt: skip
        id = f"{batch.id}-{'output' if good else 'errors'}"
        lines.reverse()  # in no particular order
        self.files[id] = "".join(json.dumps(line) + "\n" for line in lines).encode()
        return id

    # Anthropic.

    async def _create_messages(self, request: web.Request) -> web.Response:
        body = await request.json()
        if not request.headers.get("x-api-key") or not request.headers.get("anthropic-version"):
            return _anthropic_error(401, "x-api-key and anthropic-version are required")
        names = [item.get("custom_id", "") for item in body.get("requests") or ()]
        if not names or len(set(names)) != len(names) or not all(_NAME.fullmatch(name) for name in names):
            return _anthropic_error(400, "custom_id must be unique and match ^[a-zA-Z0-9_-]{1,64}$")
        params = {item["custom_id"]: item["params"] for item in body["requests"]}
        if not all({"model", "messages", "max_tokens"} <= set(item) for item in params.values()):
            return _anthropic_error(400, "params: model, messages and max_tokens are required")
        now = int(datetime.now(UTC).timestamp())
        batch = Batch(f"msgbatch_{len(self.anthropic)}", params, now, status="in_progress", ends=self.ends)
        self.anthropic[batch.id] = batch
        self.on_submit(batch)
        return web.json_response(self._shown_messages(batch, request))

    async def _list_messages(self, request: web.Request) -> web.Response:
        newest = [*reversed(self.anthropic.values())]
        data, more = _page(newest, request.query.get("after_id"), int(request.query.get("limit", "20")))
        shown = [self._shown_messages(batch, request) for batch in data]
        first, last = (data[0].id, data[-1].id) if data else (None, None)
        return web.json_response({"data": shown, "has_more": more, "first_id": first, "last_id": last})

    async def _show_messages(self, request: web.Request) -> web.Response:
        batch = self.anthropic.get(request.match_info["id"])
        if batch is None:
            return _anthropic_error(404, "no such batch")
        self._advance(batch, ("in_progress", "ended"), as_chat)
        return web.json_response(self._shown_messages(batch, request))

    def _shown_messages(self, batch: Batch, request: web.Request) -> dict[str, Any]:
        ended = batch.status == "ended"
        good = sum(status == 200 for status, _ in batch.results.values())
        missing = len(batch.requests) - len(batch.results)
        url = f"{request.url.origin()}/v1/messages/batches/{batch.id}/results"
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": batch.status,
            "created_at": datetime.fromtimestamp(batch.created, UTC).isoformat().replace("+00:00", "Z"),
            "request_counts": {
                "processing": 0 if ended else missing,
                "succeeded": good,
                "errored": len(batch.results) - good,
                "canceled": 0,
                "expired": missing if ended else 0,
            },
            "results_url": url if ended else None,
        }

    async def _results(self, request: web.Request) -> web.Response:
        batch = self.anthropic.get(request.match_info["id"])
        if batch is None or batch.status != "ended":
            return _anthropic_error(404, "no results yet")
        lines = []
        for name in reversed(batch.requests):
            status, body = batch.results.get(name, (0, {}))
            result: dict[str, Any] = {"type": "expired"}
            if status == 200:
                result = {"type": "succeeded", "message": as_message(body)}
            elif status:
                kind, said = _ERROR_TYPES.get(status, "api_error"), body.get("error", {}).get("message", "")
                result = {"type": "errored", "error": {"type": "error", "error": {"type": kind, "message": said}}}
            lines.append(json.dumps({"custom_id": name, "result": result}) + "\n")
        return web.Response(text="".join(lines), content_type="application/x-jsonl")

    # Both.

    def work(self) -> None:
        """Go on with every batch without being looked at."""
        for batch in self.openai.values():
            self._advance(batch, ("validating", "in_progress", "finalizing", "completed"))
        for batch in self.anthropic.values():
            self._advance(batch, ("in_progress", "ended"), as_chat)

    def _advance(
        self,
        batch: Batch,
        states: tuple[str, ...],
        chat: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda body: body,
    ) -> None:
        """Go on to the end, through all states, unless the batch is held."""
        if batch.status not in states[:-1]:
            return
        if batch.ends == "refuse":
            batch.status = "failed"
            return
        batch.status = "in_progress"
        if self.held:
            return
        for name, body in [*batch.requests.items()][: self.worked_before_the_end if batch.ends == "expire" else None]:
            batch.results[name] = self._work(chat(body))
        batch.status = "expired" if batch.ends == "expire" and states[-1] == "completed" else states[-1]


def _page(items: list[Batch], after: str | None, limit: int) -> tuple[list[Batch], bool]:
    at = next((at + 1 for at, batch in enumerate(items) if batch.id == after), 0)
    return items[at : at + limit], at + limit < len(items)


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "loopback", "code": None}}, status=status)


def _anthropic_error(status: int, message: str) -> web.Response:
    body = {"type": "error", "error": {"type": _ERROR_TYPES.get(status, "api_error"), "message": message}}
    return web.json_response(body, status=status)


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Write a request of Anthropic's messages as one for a chat completion."""
    system = body.get("system") or []
    front = [{"role": "system", "content": system}] if system else []
    return {"model": body["model"], "messages": [*front, *body["messages"]], "max_tokens": body["max_tokens"]}


def as_message(completion: Mapping[str, Any]) -> dict[str, Any]:
    """Write a chat completion as a message of Anthropic's."""
    choice, usage = completion["choices"][0], completion.get("usage", {})
    return {
        "id": f"msg_{completion['id']}",
        "type": "message",
        "role": "assistant",
        "model": completion["model"],
        "content": [{"type": "text", "text": choice["message"]["content"] or ""}],
        "stop_reason": {"stop": "end_turn", "length": "max_tokens"}.get(choice["finish_reason"], "refusal"),
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.get("prompt_tokens", 0),
            "output_tokens": usage.get("completion_tokens", 0),
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        },
    }
