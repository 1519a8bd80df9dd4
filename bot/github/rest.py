"""Requests to GitHub's REST API: JSON, pagination, files, and retry of what is worth retrying."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit

from bot.github.api_error import ApiError, Unavailable, rate_limit_wait, refusal
from eval_core.base.errors import UserError
from eval_core.base.strict_json import BadJson, parse_json

if TYPE_CHECKING:
    from github import GithubException
    from github.Requester import Requester
    from requests import Response


# Retries: outages and rate limits are waited for, within bounds; every other error is raised at once.

T = TypeVar("T")

_log = logging.getLogger(__name__)
_OUTAGE = frozenset({500, 502, 503, 504})


@dataclass(frozen=True)
class ApiRetries:
    """How long to keep trying."""

    attempts: int = 5
    timeout: int = 30
    """Seconds for one answer."""
    longest_wait: float = 300.0
    """Seconds of waiting in all for one request, whatever GitHub asks for."""
    first_wait: float = 1.0
    secondary_wait: float = 60.0
    """Seconds after a secondary rate limit that names no time."""
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)
    clock: Callable[[], float] = field(default=time.time, repr=False)


def with_retries(once: Callable[[], T], what: str, *, repeatable: bool, retry: ApiRetries) -> T:
    """Call until there is an answer; a call that is not repeatable is retried only if it certainly had no effect."""
    import requests
    from github import GithubException

    waited = 0.0
    for attempt in range(1, retry.attempts + 1):
        try:
            return once()
        except GithubException as exc:
            trouble, unread, asked = _answered_with(exc, what, retry)
        except (
            requests.exceptions.Timeout,
            requests.exceptions.ConnectionError,
            requests.exceptions.ChunkedEncodingError,
            ValueError,
            RuntimeError,
        ) as exc:
            (trouble, unread), asked = _not_answered(exc, retry), 0.0
        pause = max(asked, retry.first_wait * 2 ** (attempt - 1))
        if not (repeatable or unread):
            raise Unavailable(f"{what}: GitHub failed ({trouble}); run this again later", maybe_done=True)
        if attempt == retry.attempts or waited + pause > retry.longest_wait:
            until = datetime.fromtimestamp(retry.clock() + pause, UTC)
            raise Unavailable(
                f"{what}: GitHub failed ({trouble}) after {attempt} attempts; run this again after {until:%H:%M} UTC",
                maybe_done=False,
            )
        _log.info("%s: %s; trying again in %.0f s", what, trouble, pause)
        retry.sleep(pause)
        waited += pause
    raise AssertionError("unreachable: the last attempt returns or raises")


def _answered_with(exc: GithubException, what: str, retry: ApiRetries) -> tuple[str, bool, float]:
    """Return what an error says, whether the request was turned away unread, and how long GitHub asks to wait."""
    limit = rate_limit_wait(exc.status, exc.headers or {}, exc.data, now=retry.clock(), secondary=retry.secondary_wait)
    if limit is not None:
        return f"its rate limit is used up for {limit:.0f} s", True, limit
    if exc.status in _OUTAGE:
        return f"it answers {exc.status}", False, 0.0
    raise refusal(what, exc.status, exc.data) from None


def _not_answered(exc: Exception, retry: ApiRetries) -> tuple[str, bool]:
    """Return why there is no answer, and whether the request certainly did not arrive."""
    import requests

    if isinstance(exc, requests.exceptions.ConnectTimeout):
        return "it cannot be reached", True
    if isinstance(exc, requests.exceptions.Timeout):
        return f"no answer within {retry.timeout} s", False
    if isinstance(exc, requests.exceptions.ConnectionError | requests.exceptions.ChunkedEncodingError):
        return "the connection broke", False
    # Half an answer, or a redirect that PyGithub does not follow.
    return f"its response could not be parsed ({type(exc).__name__})", False


# Requests to GitHub's REST API: JSON, lists over all their pages, and files.

DEFAULT_API = "https://api.github.com"
API_VERSION = "2022-11-28"
USER_AGENT = "compression-eval"

_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="next"')
_CHUNK = 1 << 16
_REDIRECTS = 5


class Transport:
    """PyGithub's requester with our own retries and error messages; without a token it asks as nobody."""

    def __init__(self, token: str | None, api_url: str = DEFAULT_API, retry: ApiRetries | None = None) -> None:
        if token == "":
            raise UserError("GITHUB_TOKEN: empty; give a token that may read the repository and write to its PRs")
        parts = urlsplit(api_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UserError(f"GITHUB_API_URL: {api_url!r} is not the address of a GitHub API")
        self._token = token
        self.api_url = api_url.rstrip("/")
        self.retry = retry or ApiRetries()
        self._requester: Requester | None = None

    def __repr__(self) -> str:
        return f"Transport(api_url={self.api_url!r})"

    def get(self, path: str, what: str, query: Mapping[str, Any] | None = None, *, expect: type = dict) -> Any:
        return self.send("GET", path, what, query=query, expect=expect)[1]

    def send(
        self,
        verb: str,
        path: str,
        what: str,
        body: Any = None,
        *,
        query: Mapping[str, Any] | None = None,
        repeatable: bool | None = None,
        expect: type = dict,
    ) -> tuple[Mapping[str, Any], Any]:
        """Send one request; `what` names it in errors. A POST is not repeated once it may have been heard.

        An answer of another type than expected, or an empty object, is trouble on the way, such as a proxy's.
        """

        def once() -> tuple[Mapping[str, Any], Any]:
            headers, data = self._pygithub().requestJsonAndCheck(
                verb, path, parameters=dict(query) if query else None, input=body
            )
            if verb != "DELETE" and (not isinstance(data, expect) or data == {}):
                raise ValueError(f"not {expect.__name__}")
            return headers, data

        again = verb != "POST" if repeatable is None else repeatable
        return with_retries(once, what, repeatable=again, retry=self.retry)

    def graphql(self, query: str, what: str, **variables: str) -> Mapping[str, Any]:
        """Ask GraphQL what may be asked twice; on a server of one's own it has another address."""

        def once() -> Mapping[str, Any]:
            try:
                return self._pygithub().graphql_query(query, variables)[1]
            except TypeError:
                raise ValueError("not an object") from None  # PyGithub looks for errors in whatever came

        return with_retries(once, what, repeatable=True, retry=self.retry)

    def pages(
        self, path: str, what: str, query: Mapping[str, Any] | None = None, key: str | None = None
    ) -> Iterator[Any]:
        """Yield the items of all pages; `key` names the list where a page is an object."""
        url = path
        parameters: dict[str, Any] = {"per_page": 100, **(query or {})}
        seen: set[str] = set()
        while True:
            headers, page = self.send("GET", url, what, query=parameters, expect=list if key is None else dict)
            items = page if key is None else page.get(key)
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
            return with_retries(lambda: self._stream(path, what, into, limit), what, repeatable=True, retry=self.retry)
        except BaseException:
            into.unlink(missing_ok=True)
            raise

    def _pygithub(self) -> Requester:
        if self._requester is None:
            from github import Auth, Github

            # PyGithub's own retry repeats POSTs after a 502, which is how duplicate comments are made.
            self._requester = Github(
                auth=Auth.Token(self._token) if self._token else None,
                base_url=self.api_url,
                timeout=self.retry.timeout,
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
                headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
            elif parts.scheme != "https" and home.scheme == "https":
                raise ApiError(f"{what}: GitHub redirects to {parts.scheme}, not https; refused", 302, "redirect")
            with requests.get(
                url, headers=headers, stream=True, allow_redirects=False, timeout=self.retry.timeout
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
        value = parse_json(start)
    except BadJson:
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
