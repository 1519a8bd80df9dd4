"""Requests to GitHub's REST API: JSON, lists over all their pages, and files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from bot.api_error import ApiError, Unavailable
from bot.patience import Patience, patiently
from eval_core.errors import UserError

if TYPE_CHECKING:
    from github.Requester import Requester
    from requests import Response

__all__ = ["DEFAULT_API", "Transport"]

DEFAULT_API = "https://api.github.com"
API_VERSION = "2022-11-28"
USER_AGENT = "compression-eval"

_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="next"')
_CHUNK = 1 << 16
_REDIRECTS = 5


class Transport:
    """PyGithub's requester with our own patience and our own words."""

    def __init__(self, token: str, api_url: str = DEFAULT_API, patience: Patience | None = None) -> None:
        if not token:
            raise UserError("GITHUB_TOKEN: empty; give a token that may read the repository and write to its PRs")
        parts = urlsplit(api_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"GITHUB_API_URL: {api_url!r} is not the address of a GitHub API")
        self._token = token
        self.api_url = api_url.rstrip("/")
        self.patience = patience or Patience()
        self._requester: Requester | None = None

    def __repr__(self) -> str:
        return f"Transport(api_url={self.api_url!r})"

    def get(self, path: str, what: str, query: Mapping[str, Any] | None = None) -> Any:
        """Return one resource."""
        return self.send("GET", path, what, query=query)[1]

    def send(
        self,
        verb: str,
        path: str,
        what: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        repeatable: bool | None = None,
    ) -> tuple[Mapping[str, Any], Any]:
        """Send one request; `what` names it in errors. A POST is not repeated once it may have been heard."""

        def once() -> tuple[Mapping[str, Any], Any]:
            return self._pygithub().requestJsonAndCheck(
                verb, path, parameters=dict(query) if query else None, input=body
            )

        again = verb != "POST" if repeatable is None else repeatable
        return patiently(once, what, repeatable=again, patience=self.patience)

    def pages(
        self, path: str, what: str, query: Mapping[str, Any] | None = None, key: str | None = None
    ) -> Iterator[Any]:
        """Yield the items of all pages; `key` names the list where a page is an object."""
        url = path
        parameters: dict[str, Any] = {"per_page": 100, **(query or {})}
        seen: set[str] = set()
        while True:
            headers, page = self.send("GET", url, what, query=parameters)
            items = page.get(key) if key is not None and isinstance(page, dict) else page
            if not isinstance(items, list):
                raise Unavailable(f"{what}: GitHub's answer is not a list; try again later", maybe_done=False)
            yield from items
            following = _NEXT.search(str(headers.get("link", "")))
            if following is None:
                return
            url, parameters = following.group(1), {}
            if url in seen or not url.startswith(f"{self.api_url}/"):
                raise Unavailable(f"{what}: GitHub's list does not end or leads elsewhere", maybe_done=False)
            seen.add(url)

    def download(self, path: str, what: str, into: Path, limit: int) -> int:
        """Stream a file to disk, following redirects, and return its size; more than `limit` bytes is an error."""
        try:
            return patiently(
                lambda: self._stream(path, what, into, limit), what, repeatable=True, patience=self.patience
            )
        except BaseException:
            into.unlink(missing_ok=True)
            raise

    def _pygithub(self) -> Requester:
        if self._requester is None:
            from github import Auth, Github

            # PyGithub's own retry repeats POSTs after a 502, which is how duplicate comments are made.
            self._requester = Github(
                auth=Auth.Token(self._token),
                base_url=self.api_url,
                timeout=self.patience.timeout,
                user_agent=USER_AGENT,
                retry=None,
                seconds_between_requests=None,
                seconds_between_writes=None,
                api_version=API_VERSION,
            ).requester
        return self._requester

    def _stream(self, path: str, what: str, into: Path, limit: int) -> int:
        import requests
        from github.Requester import Requester

        url, home = f"{self.api_url}{path}", urlsplit(self.api_url)
        for _ in range(_REDIRECTS + 1):
            parts = urlsplit(url)
            headers = {"User-Agent": USER_AGENT, "X-GitHub-Api-Version": API_VERSION}
            if (parts.scheme, parts.netloc) == (home.scheme, home.netloc):
                # Storage hosts get a signed address and must not see our token.
                headers["Authorization"] = f"Bearer {self._token}"
            elif parts.scheme != "https" and home.scheme == "https":
                raise ApiError(f"{what}: GitHub redirects to {parts.scheme}, not https; refused", 302, "redirect")
            with requests.get(
                url, headers=headers, stream=True, allow_redirects=False, timeout=self.patience.timeout
            ) as response:
                if response.is_redirect:
                    url = urljoin(url, response.headers["location"])
                    continue
                if response.status_code >= 400:
                    lower = {key.lower(): value for key, value in response.headers.items()}
                    raise Requester.createException(response.status_code, lower, _explanation(response))
                return _save(response, what, into, limit)
        raise ApiError(f"{what}: more than {_REDIRECTS} redirects", 302, "redirect")


def _explanation(response: Response) -> dict[str, Any]:
    """Read what an error says, if it says it in JSON and briefly."""
    start = next(response.iter_content(_CHUNK), b"")
    try:
        value = json.loads(start)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _save(response: Response, what: str, into: Path, limit: int) -> int:
    size = 0
    with into.open("wb") as stream:
        for chunk in response.iter_content(_CHUNK):
            size += len(chunk)
            if size > limit:
                raise UserError(f"{what}: larger than {limit:,} bytes; refused")
            stream.write(chunk)
    return size
