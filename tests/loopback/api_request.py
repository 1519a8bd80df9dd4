"""One request and its answer: who asks, may they, what do they send, which page do they want."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from loopback.state import ROLES, State, Token

__all__ = ["Exchange", "Handler", "Json", "Problem", "answer"]

Json = dict[str, Any]
DOCUMENTATION = "https://docs.github.com/rest"
PER_PAGE = 30
MOST_PER_PAGE = 100


class Problem(Exception):
    """An answer other than success, in GitHub's form."""

    def __init__(
        self, status: int, message: str, errors: Sequence[Any] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: Json = {"message": message, "documentation_url": DOCUMENTATION, "status": str(status)}
        if errors:
            self.body["errors"] = list(errors)
        self.headers = dict(headers or {})

    @classmethod
    def invalid(cls, resource: str, field: str, code: str = "invalid", message: str = "") -> Problem:
        """Make the 422 that names a field."""
        error = {"resource": resource, "field": field, "code": code}
        if message:
            error["message"] = message
        return cls(422, "Validation Failed", [error])


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Answer with JSON."""
    text = json.dumps(value, ensure_ascii=False)
    return web.Response(
        text=text, status=status, content_type="application/json", charset="utf-8", headers=dict(headers or {})
    )


class Exchange:
    """A request in the light of the state."""

    def __init__(self, request: web.Request, state: State, url: str) -> None:
        self.request = request
        self.state = state
        self.url = url
        self.token = self._token()

    def part(self, name: str) -> str:
        """Return a part of the path."""
        return self.request.match_info[name]

    def number(self, name: str) -> int:
        """Return a numeric part of the path; anything else is not found."""
        text = self.part(name)
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise Problem(404, "Not Found")
        return int(text)

    @property
    def login(self) -> str:
        """The account that asks."""
        if self.token is None:
            raise Problem(401, "Requires authentication")
        return self.token.login

    def may_read(self) -> None:
        """Refuse those who may not even know of the repository."""
        if f"{self.part('owner')}/{self.part('name')}".lower() != self.state.repo.lower():
            raise Problem(404, "Not Found")
        if not self.state.private:
            return
        if self.token is None or (self.token.permissions is None and self.state.role(self.token.login) == "none"):
            raise Problem(404, "Not Found")

    def needs(self, *permissions: str, level: str = "write", role: str = "write") -> None:
        """Refuse an app without one of the permissions, or a person below the role."""
        if self.token is None and level == "read" and not self.state.private:
            return
        login = self.login
        if self.token is not None and self.token.permissions is not None:
            granted = [self.token.permissions.get(permission, "none") for permission in permissions]
            if not any(grant == "write" or grant == level for grant in granted):
                raise Problem(403, "Resource not accessible by integration")
            return
        if ROLES.index(self.state.role(login)) < ROLES.index(role):
            raise Problem(403, "Must have push access to repository")

    async def body(self) -> Json:
        """Return the JSON object that was sent."""
        try:
            value = json.loads(await self.request.read())
        except ValueError:
            raise Problem(400, "Problems parsing JSON") from None
        if not isinstance(value, dict):
            raise Problem(400, "Body should be a JSON object")
        return value

    def page(self, items: Sequence[Any], key: str | None = None) -> web.Response:
        """Answer with one page of a list, and say in the Link header where the others are."""
        size = min(max(self._count("per_page", PER_PAGE), 1), MOST_PER_PAGE)
        page = max(self._count("page", 1), 1)
        last = max((len(items) + size - 1) // size, 1)
        shown = list(items[(page - 1) * size : page * size])
        targets: dict[str, int] = {}
        if page > 1:
            targets |= {"prev": page - 1, "first": 1}
        if page < last:
            targets |= {"next": page + 1, "last": last}
        link = ", ".join(f'<{self._page_url(number, size)}>; rel="{name}"' for name, number in targets.items())
        value = shown if key is None else {"total_count": len(items), key: shown}
        return answer(value, headers={"Link": link} if link else None)

    def _page_url(self, page: int, size: int) -> str:
        query = {**self.request.query, "per_page": size, "page": page}
        return f"{self.url}{self.request.path}?{urlencode(query)}"

    def _count(self, name: str, default: int) -> int:
        text = self.request.query.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else default

    def _token(self) -> Token | None:
        header = self.request.headers.get("Authorization", "")
        if not header:
            return None
        scheme, _, value = header.partition(" ")
        token = self.state.tokens.get(value.strip())
        if scheme.lower() not in ("token", "bearer") or token is None:
            raise Problem(401, "Bad credentials")
        return token


Handler = Callable[[Exchange], Awaitable[web.StreamResponse]]
