"""What pull requests share with issues: comments, labels, reactions."""

from __future__ import annotations

from aiohttp import web

from loopback.api_request import Exchange, Handler, Json, Problem, answer
from loopback.routes.pulls import find
from loopback.shapes import label, node_id, stamp, user
from loopback.state import ROLES, Account, Reaction, StoredComment, StoredPull, now

__all__ = ["ROUTES"]

BODY_LIMIT = 65_536
REACTIONS = frozenset({"+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"})


def _shape(ex: Exchange, comment: StoredComment) -> Json:
    here = f"{ex.url}/repos/{ex.state.repo}/issues"
    author = ex.state.account(comment.author) or Account("ghost", 10_137)
    html = f"{ex.url}/{ex.state.repo}/pull/{comment.number}#issuecomment-{comment.id}"
    return {
        "id": comment.id,
        "node_id": node_id("IC", comment.id),
        "url": f"{here}/comments/{comment.id}",
        "html_url": html,
        "issue_url": f"{here}/{comment.number}",
        "user": user(author, ex.url),
        "body": comment.body,
        "author_association": "NONE",
        "created_at": stamp(comment.created),
        "updated_at": stamp(comment.updated),
        "performed_via_github_app": None,
    }


async def comments(ex: Exchange) -> web.Response:
    """List the comments of a pull request, oldest first."""
    ex.needs("issues", "pull_requests", level="read", role="read")
    pull = find(ex, ex.number("number"))
    found = sorted((c for c in ex.state.comments.values() if c.number == pull.number), key=lambda c: c.id)
    return ex.page([_shape(ex, comment) for comment in found])


async def create_comment(ex: Exchange) -> web.Response:
    """Add a comment, unless the conversation is locked."""
    ex.needs("issues", "pull_requests", role="read")
    pull = find(ex, ex.number("number"))
    body = await _body(ex)
    _refuse_if_locked(ex, pull)
    at = pull.touch()
    comment = StoredComment(ex.state.new_id(), pull.number, ex.login, body, at, at)
    ex.state.comments[comment.id] = comment
    return answer(_shape(ex, comment), 201)


async def comment(ex: Exchange) -> web.Response:
    """Show one comment."""
    ex.needs("issues", "pull_requests", level="read", role="read")
    return answer(_shape(ex, _comment(ex)))


async def update_comment(ex: Exchange) -> web.Response:
    """Change a comment; people change their own, those with write permission all."""
    ex.needs("issues", "pull_requests", role="read")
    found = _comment(ex)
    _own_or_write(ex, found)
    found.body, found.updated = await _body(ex), now()
    return answer(_shape(ex, found))


async def delete_comment(ex: Exchange) -> web.Response:
    """Delete a comment."""
    ex.needs("issues", "pull_requests", role="read")
    found = _comment(ex)
    _own_or_write(ex, found)
    del ex.state.comments[found.id]
    return web.Response(status=204)


async def labels(ex: Exchange) -> web.Response:
    """List a pull request's labels."""
    ex.needs("issues", "pull_requests", level="read", role="read")
    return ex.page(_labels(ex, find(ex, ex.number("number"))))


async def add_labels(ex: Exchange) -> web.Response:
    """Add labels; unknown ones are created."""
    ex.needs("issues", "pull_requests", role="triage")
    pull = find(ex, ex.number("number"))
    names = (await ex.body()).get("labels")
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise Problem.invalid("Label", "labels")
    for name in names:
        ex.state.labels.setdefault(name, ex.state.new_id())
        if name not in pull.labels:
            pull.labels.append(name)
    pull.touch()
    return answer(_labels(ex, pull))


async def remove_label(ex: Exchange) -> web.Response:
    """Take one label off; the rest is the answer."""
    ex.needs("issues", "pull_requests", role="triage")
    pull = find(ex, ex.number("number"))
    name = ex.part("label")
    if name not in pull.labels:
        raise Problem(404, "Label does not exist")
    pull.labels.remove(name)
    pull.touch()
    return answer(_labels(ex, pull))


async def react(ex: Exchange) -> web.Response:
    """React to a pull request; 200 and the standing reaction if there is one already."""
    ex.needs("issues", "pull_requests", role="read")
    pull = find(ex, ex.number("number"))
    content = (await ex.body()).get("content")
    if content not in REACTIONS:
        raise Problem.invalid("Reaction", "content")
    _refuse_if_locked(ex, pull)
    for standing in ex.state.reactions:
        if (standing.number, standing.author, standing.content) == (pull.number, ex.login, content):
            return answer(_reaction(ex, standing))
    reaction = Reaction(ex.state.new_id(), pull.number, ex.login, content)
    ex.state.reactions.append(reaction)
    return answer(_reaction(ex, reaction), 201)


async def _body(ex: Exchange) -> str:
    body = (await ex.body()).get("body")
    if body is None or body == "":
        raise Problem.invalid("IssueComment", "body", "missing_field")
    if not isinstance(body, str):
        raise Problem.invalid("IssueComment", "body")
    if len(body) > BODY_LIMIT:
        raise Problem.invalid("IssueComment", "body", "unprocessable", "Body is too long (maximum is 65536 characters)")
    return body


def _comment(ex: Exchange) -> StoredComment:
    found = ex.state.comments.get(ex.number("comment"))
    if found is None:
        raise Problem(404, "Not Found")
    return found


def _refuse_if_locked(ex: Exchange, pull: StoredPull) -> None:
    person = ex.token is not None and ex.token.permissions is None
    writer = person and ROLES.index(ex.state.role(ex.login)) >= ROLES.index("write")
    if pull.locked and not writer:
        raise Problem(403, "Unable to create comment because issue is locked.")


def _own_or_write(ex: Exchange, comment: StoredComment) -> None:
    app = ex.token is not None and ex.token.permissions is not None
    if not app and comment.author != ex.login and ROLES.index(ex.state.role(ex.login)) < ROLES.index("write"):
        raise Problem(403, "Must have admin rights to Repository.")


def _labels(ex: Exchange, pull: StoredPull) -> list[Json]:
    return [label(ex.state, ex.url, name) for name in pull.labels]


def _reaction(ex: Exchange, reaction: Reaction) -> Json:
    author = ex.state.account(reaction.author) or Account("ghost", 10_137)
    return {
        "id": reaction.id,
        "node_id": node_id("REA", reaction.id),
        "user": user(author, ex.url),
        "content": reaction.content,
        "created_at": stamp(reaction.created),
    }


ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "/issues/comments/{comment}", comment),
    ("PATCH", "/issues/comments/{comment}", update_comment),
    ("DELETE", "/issues/comments/{comment}", delete_comment),
    ("GET", "/issues/{number}/comments", comments),
    ("POST", "/issues/{number}/comments", create_comment),
    ("GET", "/issues/{number}/labels", labels),
    ("POST", "/issues/{number}/labels", add_labels),
    ("DELETE", "/issues/{number}/labels/{label}", remove_label),
    ("POST", "/issues/{number}/reactions", react),
]
