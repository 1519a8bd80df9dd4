"""A headless Chromium for looking at the report: the DevTools protocol over one socket, nothing to install.

Used by `scripts/pictures` and by the end-to-end test of the page.
"""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import aiohttp

__all__ = ["Chromium", "find_chromium"]

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-address=127.0.0.1",
    "--remote-debugging-port=0",
)
PATIENCE = 120.0
"""Seconds after which an answer that does not come is a failure."""
Result = TypeVar("Result")


def find_chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


class Chromium:
    """One browser with one page. All events of the page are kept in `events`."""

    def __init__(self, binary: str) -> None:
        """Start the browser."""
        self.events: list[dict[str, Any]] = []
        self._loop = asyncio.new_event_loop()
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._loaded = asyncio.Event()
        self._number = 0
        self._run(self._start(binary))

    def __enter__(self) -> Chromium:
        """Return the browser itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the browser."""
        self.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self._loop.run_until_complete(asyncio.wait_for(work, PATIENCE))

    async def _start(self, binary: str) -> None:
        self._process = await asyncio.create_subprocess_exec(
            binary, *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank", stderr=asyncio.subprocess.PIPE
        )
        assert self._process.stderr is not None
        while True:
            line = (await self._process.stderr.readline()).decode(errors="replace")
            if not line:
                raise RuntimeError(f"{binary} ended before it could be spoken to")
            if found := re.search(r"ws://127\.0\.0\.1:(\d+)/", line):
                break
        # Whatever it goes on to say must be read, or it would stop at a full pipe.
        self._drain = asyncio.create_task(self._process.stderr.read())
        self._http = aiohttp.ClientSession()
        async with self._http.get(f"http://127.0.0.1:{found.group(1)}/json/list") as answer:
            pages = [item for item in await answer.json() if item["type"] == "page"]
        self._socket = await self._http.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)
        self._reader = asyncio.create_task(self._read())
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self._send(f"{domain}.enable", {})

    async def _read(self) -> None:
        async for message in self._socket:
            body = message.json()
            if "id" in body:
                self._waiting.pop(body["id"]).set_result(body)
            else:
                self.events.append(body)
                if body["method"] == "Page.loadEventFired":
                    self._loaded.set()

    async def _send(self, method: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        future = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        body = await future
        if "error" in body:
            raise RuntimeError(f"{method}: {body['error']['message']}")
        result: dict[str, Any] = body["result"]
        return result

    def command(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command of the protocol."""
        return self._run(self._send(method, parameters))

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the page and the theme that the system asks for."""
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        # Nothing moves while pictures are taken.
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.command("Emulation.setEmulatedMedia", features=[scheme, still])

    def open(self, address: str) -> None:
        """Load a page and wait until it is there."""

        async def load() -> None:
            self._loaded.clear()
            await self._send("Page.navigate", {"url": "about:blank"})
            await self._loaded.wait()
            self.events.clear()
            self._loaded.clear()
            await self._send("Page.navigate", {"url": address})
            await self._loaded.wait()

        self._run(load())

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; a promise is waited for."""
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release one key."""
        codes = {
            "Enter": ("\r", 13),
            "Escape": ("", 27),
            "Tab": ("", 9),
            "ArrowLeft": ("", 37),
            "ArrowRight": ("", 39),
        }
        text, code = codes.get(key, (key, 0))
        self.command("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen (or the whole page) as a PNG."""
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Stop the browser and remove its profile."""

        async def stop() -> None:
            self._reader.cancel()
            await self._socket.close()
            await self._http.close()
            self._process.terminate()
            await self._process.wait()
            await self._drain

        self._run(stop())
        self._loop.close()
        self._profile.cleanup()
