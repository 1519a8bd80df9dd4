"""A headless Chromium, driven by Playwright: for `scripts/pictures` and the end-to-end tests of the page.

The browser is the system's own (Debian: `apt-get install chromium`); Playwright downloads nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import TracebackType
from typing import Any

from playwright.sync_api import sync_playwright

__all__ = ["PAINTED", "READY", "Chromium", "find_chromium"]

READY = (
    "new Promise(done => { const root = document.documentElement; if (root.dataset.ready) return done();"
    " new MutationObserver(() => root.dataset.ready && done()).observe(root, { attributes: true }) })"
)
"""Waits until a report has drawn everything that needs its data."""
PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Waits until what was drawn can be seen."""

_SECONDS = 120.0
"""How long to wait for the browser before that is a failure."""


def find_chromium() -> str | None:
    """Return the path of an installed Chromium or Chrome."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


class Chromium:
    """One browser with one page. `requests` and `complaints` are those of the page that is open."""

    def __init__(self, binary: str) -> None:
        """Start the browser."""
        self.requests: list[str] = []
        self.complaints: list[str] = []
        """What the page wrote to the console, and the errors that nothing caught."""
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(
            executable_path=binary, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        # Nothing moves while pictures are taken.
        self.page = self._browser.new_context(reduced_motion="reduce").new_page()
        self.page.set_default_timeout(_SECONDS * 1000)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def __enter__(self) -> Chromium:
        """Return the browser itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the browser."""
        self._browser.close()
        self._playwright.stop()

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the size of the page and the theme that the system asks for."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if dark else "light")

    def open(self, address: str) -> None:
        """Load a page, even one that differs from the present one only after the `#`."""
        self.page.goto("about:blank")
        self.requests.clear()
        self.complaints.clear()
        self.page.goto(address)

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; a promise is waited for."""
        return self.page.evaluate(script)

    def press(self, key: str) -> None:
        """Press and release one key."""
        self.page.keyboard.press(key)

    def picture(self, path: Path) -> None:
        """Write what is seen as a PNG."""
        self.page.screenshot(path=path)
