"""The repository, its people, and the site around it."""

from __future__ import annotations

from aiohttp import web

from loopback.api_request import Exchange, Handler, Json, Problem, answer
from loopback.shapes import node_id, repository, user
from loopback.state import ROLES, Rate

__all__ = ["ROUTES", "SITE"]


async def show(ex: Exchange) -> web.Response:
    """Show the repository."""
    return answer(repository(ex.state, ex.url))


async def permission(ex: Exchange) -> web.Response:
    """Show what an account may do here."""
    ex.needs("metadata", level="read", role="read")
    account = ex.state.account(ex.part("login"))
    if account is None:
        raise Problem(404, f"{ex.part('login')} is not a user")
    role = ex.state.role(account.login)
    folded = {"triage": "read", "maintain": "write"}.get(role, role)
    rank = ROLES.index(role)
    steps = {"pull": "read", "triage": "triage", "push": "write", "maintain": "maintain", "admin": "admin"}
    shown = {
        **user(account, ex.url),
        "permissions": {name: rank >= ROLES.index(least) for name, least in steps.items()},
        "role_name": role,
    }
    return answer({"permission": folded, "role_name": role, "user": shown})


async def whoami(ex: Exchange) -> web.Response:
    """Show the account that asks; a job's token has none."""
    login = ex.login
    if ex.token is not None and ex.token.permissions is not None:
        raise Problem(403, "Resource not accessible by integration")
    return answer(_full(ex, login))


async def graphql(ex: Exchange) -> web.Response:
    """Answer what the REST API has no answer to: whom an app's token acts as, and a draft, a folded comment."""
    body = await ex.body()
    query = "".join(str(body.get("query")).split())
    if query == "query{viewer{login}}":
        return answer({"data": {"viewer": {"login": ex.login}}})
    if query == _TO_DRAFT:
        return _to_draft(ex, str((body.get("variables") or {}).get("id")))
    if query == _MINIMIZE:
        return _minimize(ex, str((body.get("variables") or {}).get("id")))
    return answer({"errors": [{"message": "this is not known here"}]})


_TO_DRAFT = "mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{isDraft}}}"


def _to_draft(ex: Exchange, node: str) -> web.Response:
    ex.needs("pull_requests")
    pull = next((pull for pull in ex.state.pulls.values() if node_id("PR", pull.id) == node), None)
    if pull is None:
        return _no_node(node)
    if not ex.state.drafts:
        return answer({"errors": [{"message": "Draft pull requests are not supported in this repository."}]})
    pull.draft = True
    return answer({"data": {"convertPullRequestToDraft": {"pullRequest": {"isDraft": True}}}})


_MINIMIZE = (
    "mutation($id:ID!){minimizeComment(input:{subjectId:$id,classifier:OUTDATED}){minimizedComment{isMinimized}}}"
)


def _minimize(ex: Exchange, node: str) -> web.Response:
    ex.needs("issues", "pull_requests")
    found = next((item for item in ex.state.comments.values() if node_id("IC", item.id) == node), None)
    if found is None:
        return _no_node(node)
    found.minimized = True
    return answer({"data": {"minimizeComment": {"minimizedComment": {"isMinimized": True}}}})


def _no_node(node: str) -> web.Response:
    return answer({"errors": [{"type": "NOT_FOUND", "message": f"Could not resolve to a node with the id {node}"}]})


async def account(ex: Exchange) -> web.Response:
    """Show an account."""
    return answer(_full(ex, ex.part("login")))


async def rate_limit(ex: Exchange) -> web.Response:
    """Show the rate limit; asking costs nothing."""
    core = _rate(ex.state.rate)
    return answer({"resources": {"core": core, "search": core}, "rate": core})


def _full(ex: Exchange, login: str) -> Json:
    found = ex.state.account(login)
    if found is None:
        raise Problem(404, "Not Found")
    made = "2024-01-01T00:00:00Z"
    nothing = dict.fromkeys(("name", "company", "location", "email", "hireable", "bio"))
    counts = dict.fromkeys(("public_repos", "public_gists", "followers", "following"), 0)
    return {**user(found, ex.url), **nothing, "blog": "", **counts, "created_at": made, "updated_at": made}


def _rate(rate: Rate) -> Json:
    return {"limit": rate.limit, "used": rate.used, "remaining": max(rate.limit - rate.used, 0), "reset": rate.reset}


ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "", show),
    ("GET", "/collaborators/{login}/permission", permission),
]
SITE: list[tuple[str, str, Handler]] = [
    ("GET", "/user", whoami),
    ("GET", "/users/{login}", account),
    ("POST", "/graphql", graphql),
    ("GET", "/rate_limit", rate_limit),
]
