"""The loopback GitHub as a server in a thread of its own."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal

from aiohttp import web

from loopback.api_request import Exchange, Handler, Problem, answer
from loopback.injected_faults import Faults, InjectedFault
from loopback.routes import REPOSITORY_ROUTES, SITE_ROUTES
from loopback.seed import Seed
from loopback.state import Rate, State

__all__ = ["LoopbackGitHub", "Seen"]

LARGEST_BODY = 64 << 20
FaultKind = Literal["status", "timeout", "drop"]


@dataclass(frozen=True)
class Seen:
    """A request that came in, and how it was answered (0: not at all)."""

    method: str
    path: str
    status: int


class LoopbackGitHub(Seed):
    """A GitHub with one repository: `with LoopbackGitHub("acme/agent") as gh: GitHub(..., api_url=gh.url)`."""

    def __init__(
        self,
        repo: str,
        *,
        files: Mapping[str, bytes] | None = None,
        default_branch: str = "main",
        private: bool = False,
        rate_limit: int = 5_000,
        port: int = 0,
    ) -> None:
        self._mutex = threading.RLock()
        rate = Rate(rate_limit, reset=int(time.time()) + 3_600)
        super().__init__(State(repo, default_branch, private, rate), self._mutex)
        self.push(default_branch, files if files is not None else {"README.md": b"A repository.\n"}, "Start")
        self.faults = Faults()
        self.seen: list[Seen] = []
        self._port = port
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._broken: BaseException | None = None

    @property
    def repo(self) -> str:
        """The repository's name, with its owner's."""
        return self.state.repo

    @property
    def tip(self) -> str:
        """The last commit of the default branch."""
        return self.state.refs[f"heads/{self.state.default_branch}"]

    @property
    def url(self) -> str:
        """The address to use as GITHUB_API_URL."""
        return f"http://localhost:{self._port}"

    def __enter__(self) -> LoopbackGitHub:
        self._thread = threading.Thread(target=self._run, name="loopback-github", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._broken is not None:
            raise self._broken
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._loop is not None and self._stopping is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread is not None:
            self._thread.join()

    def fail(
        self,
        method: str,
        path: str,
        status: int = 500,
        *,
        times: int = 1,
        after: int = 0,
        takes_effect: bool = False,
        kind: FaultKind = "status",
        body: Any = None,
    ) -> None:
        """Let the next matching requests fail; `takes_effect` loses only the answer, `body` is one of your own."""
        with self._mutex:
            self.faults.add(InjectedFault(method, path, kind, status, times, after, takes_effect, body=body))

    def secondary_limit(
        self, method: str, path: str, *, status: int = 403, retry_after: int | None = None, times: int = 1
    ) -> None:
        """Let the next matching requests hit the secondary rate limit."""
        message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        with self._mutex:
            self.faults.add(InjectedFault(method, path, "status", status, times, message=message, headers=headers))

    def before(self, method: str, path: str, hook: Any, *, after: int = 0) -> None:
        """Do something just before the next matching request is handled."""
        with self._mutex:
            self.faults.add(InjectedFault(method, path, "hook", after=after, hook=hook))

    def exhaust(self, reset_in: int) -> None:
        """Use up the primary rate limit."""
        with self._mutex:
            self.state.rate.used = self.state.rate.limit
            self.state.rate.reset = int(time.time()) + reset_in

    def refill(self) -> None:
        """Start a new window of the primary rate limit."""
        with self._mutex:
            self.state.rate.used = 0
            self.state.rate.reset = int(time.time()) + 3_600

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as exc:
            self._broken = exc
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=LARGEST_BODY)
        for method, path, handler in SITE_ROUTES:
            app.router.add_route(method, path, self._wrap(handler, in_repository=False))
        for method, path, handler in REPOSITORY_ROUTES:
            app.router.add_route(method, f"/repos/{{owner}}/{{name}}{path}", self._wrap(handler, in_repository=True))
        app.router.add_get("/_storage/{key}", self._storage)
        app.router.add_route("*", "/{rest:.*}", self._wrap(_nothing_here, in_repository=False))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", self._port)
            await site.start()
            self._port = runner.addresses[0][1]
            self._ready.set()
            await self._stopping.wait()
        finally:
            await runner.cleanup()

    def _wrap(self, handler: Handler, *, in_repository: bool) -> Any:
        async def handle(request: web.Request) -> web.StreamResponse:
            with self._mutex:
                fault = self.faults.take(request.method, request.path)
            if fault is not None and fault.hook is not None:
                fault.hook()
                fault = None
            if fault is None or fault.takes_effect:
                response = await self._answer(request, handler, in_repository)
            if fault is not None:
                response = await self._disturb(request, fault)
            with self._mutex:
                self.seen.append(Seen(request.method, request.path_qs, response.status))
            return response

        return handle

    async def _answer(self, request: web.Request, handler: Handler, in_repository: bool) -> web.StreamResponse:
        rate = self.state.rate
        try:
            if not request.headers.get("User-Agent"):
                raise Problem(403, "Request forbidden by administrative rules. Please make sure you send a User-Agent.")
            if request.path != "/rate_limit":
                if rate.used >= rate.limit:
                    raise Problem(403, "API rate limit exceeded for this token.")
                rate.used += 1
            exchange = Exchange(request, self.state, self.url)
            if in_repository:
                exchange.may_read()
            # Bodies are read before the state is touched, so no request sees another's half-done work.
            await request.read()
            with self._mutex:
                response = await handler(exchange)
        except Problem as problem:
            response = answer(problem.body, problem.status, problem.headers)
        self._dress(request, response)
        return response

    def _dress(self, request: web.Request, response: web.StreamResponse) -> None:
        rate = self.state.rate
        if request.method == "GET" and response.status == 200 and isinstance(response, web.Response):
            body = response.body if isinstance(response.body, bytes) else b""
            tag = f'"{hashlib.sha256(body).hexdigest()}"'
            response.headers["ETag"] = tag
            if request.headers.get("If-None-Match", "").removeprefix("W/") == tag:
                # What has not changed costs nothing.
                rate.used -= 1
                response.set_status(304)
                response.body = None
        response.headers["X-RateLimit-Limit"] = str(rate.limit)
        response.headers["X-RateLimit-Remaining"] = str(max(rate.limit - rate.used, 0))
        response.headers["X-RateLimit-Used"] = str(rate.used)
        response.headers["X-RateLimit-Reset"] = str(rate.reset)
        response.headers["X-RateLimit-Resource"] = "core"

    async def _disturb(self, request: web.Request, fault: InjectedFault) -> web.StreamResponse:
        if fault.kind == "timeout" and self._stopping is not None:
            await self._stopping.wait()
        if fault.kind in ("timeout", "drop"):
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=500)
        if fault.status >= 500 and not fault.message:
            # A proxy in front of GitHub speaks HTML.
            page = "<html><body><h1>Unicorn!</h1></body></html>"
            return web.Response(status=fault.status, text=page, content_type="text/html", headers=dict(fault.headers))
        body = {"message": fault.message or "Fault"} if fault.body is None else fault.body
        return answer(body, fault.status, fault.headers)

    async def _storage(self, request: web.Request) -> web.StreamResponse:
        with self._mutex:
            fault = self.faults.take(request.method, request.path)
            found = self.state.signed.get(request.match_info["key"])
        if fault is not None:
            return await self._disturb(request, fault)
        if "Authorization" in request.headers:
            # Storage has no use for the token, and the token has no business there.
            return web.Response(status=400, text="An Authorization header is not allowed here.")
        if found is None:
            return web.Response(status=404)
        kind, content = found
        return web.Response(body=content, content_type=kind)


async def _nothing_here(exchange: Exchange) -> web.Response:
    raise Problem(404, "Not Found")
