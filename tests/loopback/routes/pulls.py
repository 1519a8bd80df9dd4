"""Pull requests: shown, listed, opened, edited; and the files they change."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from aiohttp import web

from loopback.api_request import Exchange, Handler, Json, Problem, answer
from loopback.commits import FileDiff
from loopback.shapes import label, node_id, repository, stamp, user
from loopback.state import ACTIONS_BOT, Account, StoredPull, now

__all__ = ["ROUTES", "changed", "file_shape", "find", "shape"]

MOST_FILES = 3_000
BODY_LIMIT = 65_536
TITLE_LIMIT = 256


def find(ex: Exchange, number: int) -> StoredPull:
    """Return a pull request or 404."""
    pull = ex.state.pulls.get(number)
    if pull is None:
        raise Problem(404, "Not Found")
    return pull


def changed(ex: Exchange, pull: StoredPull) -> list[FileDiff]:
    """Return all files that a pull request changes."""
    history = ex.state.history
    if pull.head_sha not in history.commits:
        return []
    base = history.merge_base(pull.head_sha, pull.base_sha)
    return history.diff(base or pull.base_sha, pull.head_sha)


def shape(ex: Exchange, pull: StoredPull) -> Json:
    """Show a pull request."""
    state, url = ex.state, ex.url
    here = f"{url}/repos/{state.repo}"
    mine, issue = f"{here}/pulls/{pull.number}", f"{here}/issues/{pull.number}"
    html = f"{url}/{state.repo}/pull/{pull.number}"
    author = user(state.account(pull.author) or Account("ghost", 10_137), url)
    files = changed(ex, pull)
    tip = state.refs.get(f"heads/{pull.base_ref}", pull.base_sha)
    tried = None if pull.merged else state.history.tried_merge(pull.base_ref, tip, pull.head_sha)
    links = {
        "self": mine,
        "html": html,
        "issue": issue,
        "comments": f"{issue}/comments",
        "review_comments": f"{mine}/comments",
        "review_comment": f"{here}/pulls/comments{{/number}}",
        "commits": f"{mine}/commits",
        "statuses": f"{here}/statuses/{pull.head_sha}",
    }
    return {
        "url": mine,
        "id": pull.id,
        "node_id": node_id("PR", pull.id),
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue,
        **{f"{name}_url": links[name] for name in links if name not in ("self", "html", "issue")},
        "number": pull.number,
        "state": pull.state,
        "locked": pull.locked,
        "active_lock_reason": None,
        "title": pull.title,
        "user": author,
        "body": pull.body,
        "labels": [label(state, url, name) for name in pull.labels],
        "milestone": None,
        "created_at": stamp(pull.created),
        "updated_at": stamp(pull.updated),
        "closed_at": stamp(pull.closed),
        "merged_at": stamp(pull.closed) if pull.merged else None,
        "merge_commit_sha": pull.merge_commit_sha if pull.merged else tried,
        "assignee": None,
        "assignees": [],
        "requested_reviewers": [],
        "requested_teams": [],
        "head": _end(ex, pull.head_owner, pull.head_ref, pull.head_sha, pull.head_repo),
        "base": _end(ex, state.repo.split("/")[0], pull.base_ref, pull.base_sha, state.repo),
        "_links": {name: {"href": href} for name, href in links.items()},
        "author_association": "CONTRIBUTOR",
        "auto_merge": None,
        "draft": pull.draft,
        "merged": pull.merged,
        "mergeable": None if pull.merged else tried is not None,
        "rebaseable": None,
        "mergeable_state": "unknown" if pull.merged else "dirty" if tried is None else "clean",
        "merged_by": None,
        "comments": sum(comment.number == pull.number for comment in state.comments.values()),
        "review_comments": 0,
        "maintainer_can_modify": False,
        "commits": 1,
        "additions": sum(file.additions for file in files),
        "deletions": sum(file.deletions for file in files),
        "changed_files": len(files),
    }


def _end(ex: Exchange, owner: str, ref: str, sha: str, repo: str | None) -> Json:
    return {
        "label": f"{owner}:{ref}",
        "ref": ref,
        "sha": sha,
        "user": user(ex.state.account(owner) or Account(owner, 1), ex.url),
        "repo": repository(ex.state, ex.url, repo) if repo else None,
    }


def file_shape(ex: Exchange, file: FileDiff, sha: str) -> Json:
    """Show a file that differs between two commits, of which `sha` is the later one."""
    here, raw, path = f"{ex.url}/repos/{ex.state.repo}", f"{ex.url}/{ex.state.repo}", quote(file.path)
    value: Json = {
        "sha": file.sha,
        "filename": file.path,
        "status": file.status,
        "additions": file.additions,
        "deletions": file.deletions,
        "changes": file.additions + file.deletions,
        "blob_url": f"{raw}/blob/{sha}/{path}",
        "raw_url": f"{raw}/raw/{sha}/{path}",
        "contents_url": f"{here}/contents/{path}?ref={sha}",
    }
    if file.previous:
        value["previous_filename"] = file.previous
    if file.patch is not None:
        value["patch"] = file.patch
    return value


async def show(ex: Exchange) -> web.Response:
    """Show one pull request."""
    ex.needs("pull_requests", level="read", role="read")
    return answer(shape(ex, find(ex, ex.number("number"))))


async def listing(ex: Exchange) -> web.Response:
    """List pull requests by state, head and base, newest first."""
    ex.needs("pull_requests", level="read", role="read")
    query = ex.request.query
    state, head, base = query.get("state", "open"), query.get("head"), query.get("base")
    found = [
        pull
        for pull in sorted(ex.state.pulls.values(), key=lambda pull: -pull.number)
        if state in ("all", pull.state)
        and (not head or head == f"{pull.head_owner}:{pull.head_ref}")
        and (not base or base == pull.base_ref)
    ]
    return ex.page([shape(ex, pull) for pull in found])


async def files(ex: Exchange) -> web.Response:
    """List the changed files; never more than 3,000."""
    ex.needs("pull_requests", level="read", role="read")
    pull = find(ex, ex.number("number"))
    return ex.page([file_shape(ex, file, pull.head_sha) for file in changed(ex, pull)[:MOST_FILES]])


async def reviews(ex: Exchange) -> web.Response:
    """List what was submitted, oldest first."""
    ex.needs("pull_requests", level="read", role="read")
    pull = find(ex, ex.number("number"))
    html = f"{ex.url}/{ex.state.repo}/pull/{pull.number}"
    return ex.page(
        [
            {
                "id": at,
                "node_id": node_id("PRR", at),
                "user": user(ex.state.account(login) or Account("ghost", 10_137), ex.url),
                "body": "",
                "state": state,
                "html_url": f"{html}#pullrequestreview-{at}",
                "pull_request_url": f"{ex.url}/repos/{ex.state.repo}/pulls/{pull.number}",
                "author_association": "COLLABORATOR",
                "_links": {"html": {"href": html}, "pull_request": {"href": html}},
                "submitted_at": stamp(pull.updated),
                "commit_id": sha,
            }
            for at, (login, state, sha) in enumerate(pull.reviews, 1)
        ]
    )


async def create(ex: Exchange) -> web.Response:
    """Open a pull request from a branch of this repository."""
    ex.needs("pull_requests")
    if ex.login == ACTIONS_BOT and not ex.state.actions_open_pulls:
        raise Problem(403, "GitHub Actions is not permitted to create or approve pull requests.")
    body = await ex.body()
    owner = ex.state.repo.split("/")[0]
    title, head, base = (_text(body, key, "PullRequest") for key in ("title", "head", "base"))
    _sizes(body)
    head = head.removeprefix(f"{owner}:")
    for field, ref in (("head", head), ("base", base)):
        if f"heads/{ref}" not in ex.state.refs:
            raise Problem.invalid("PullRequest", field)
    if any(p.state == "open" and p.head_ref == head and p.base_ref == base for p in ex.state.pulls.values()):
        message = f"A pull request already exists for {owner}:{head}."
        raise Problem.invalid("PullRequest", "head", "custom", message)
    if body.get("draft") is True and not ex.state.drafts:
        raise Problem(422, "Draft pull requests are not supported in this repository.")
    head_sha, base_sha = ex.state.refs[f"heads/{head}"], ex.state.refs[f"heads/{base}"]
    if head_sha in ex.state.history.ancestors(base_sha):
        raise Problem.invalid("PullRequest", "head", "custom", f"No commits between {base} and {head}")
    pull = StoredPull(
        number=max(ex.state.pulls, default=0) + 1,
        id=ex.state.new_id(),
        author=ex.login,
        title=title,
        body=str(body.get("body") or ""),
        head_ref=head,
        head_sha=head_sha,
        head_repo=ex.state.repo,
        head_owner=owner,
        base_ref=base,
        base_sha=base_sha,
        draft=body.get("draft") is True,
    )
    ex.state.pulls[pull.number] = pull
    return answer(shape(ex, pull), 201)


async def update(ex: Exchange) -> web.Response:
    """Change a pull request's title, text or state."""
    ex.needs("pull_requests")
    pull = find(ex, ex.number("number"))
    body = await ex.body()
    _sizes(body)
    if "title" in body:
        pull.title = _text(body, "title", "PullRequest")
    if "body" in body:
        pull.body = str(body["body"] or "")
    if "state" in body:
        if body["state"] not in ("open", "closed"):
            raise Problem.invalid("PullRequest", "state")
        pull.state, pull.closed = body["state"], now() if body["state"] == "closed" else None
    pull.touch()
    return answer(shape(ex, pull))


def _text(body: Json, key: str, resource: str) -> str:
    value: Any = body.get(key)
    if value is None or value == "":
        raise Problem.invalid(resource, key, "missing_field")
    if not isinstance(value, str):
        raise Problem.invalid(resource, key)
    return value


def _sizes(body: Json) -> None:
    if len(str(body.get("title") or "")) > TITLE_LIMIT:
        raise Problem.invalid("PullRequest", "title", "custom", "title is too long (maximum is 256 characters)")
    if len(str(body.get("body") or "")) > BODY_LIMIT:
        raise Problem.invalid("PullRequest", "body", "custom", "body is too long (maximum is 65536 characters)")


ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "/pulls", listing),
    ("POST", "/pulls", create),
    ("GET", "/pulls/{number}", show),
    ("PATCH", "/pulls/{number}", update),
    ("GET", "/pulls/{number}/files", files),
    ("GET", "/pulls/{number}/reviews", reviews),
]
