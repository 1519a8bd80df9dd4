"""Commits, references, comparisons and the archive of a commit's files."""

from __future__ import annotations

import base64
import secrets
from urllib.parse import quote

from aiohttp import web

from loopback.api_request import Exchange, Handler, Json, Problem, answer
from loopback.commits import blob_sha
from loopback.routes.pulls import file_shape
from loopback.shapes import commit, node_id
from loopback.state import now

__all__ = ["ROUTES"]

MOST_COMPARED = 300


def _ref(ex: Exchange, name: str) -> Json:
    sha = ex.state.refs[name]
    here = f"{ex.url}/repos/{ex.state.repo}/git"
    return {
        "ref": f"refs/{name}",
        "node_id": node_id("REF", int(sha[:8], 16)),
        "url": f"{here}/refs/{quote(name)}",
        "object": {"type": "commit", "sha": sha, "url": f"{here}/commits/{sha}"},
    }


async def ref(ex: Exchange) -> web.Response:
    """Show a reference."""
    ex.needs("contents", level="read", role="read")
    if ex.part("ref") not in ex.state.refs:
        raise Problem(404, "Not Found")
    return answer(_ref(ex, ex.part("ref")))


async def create_ref(ex: Exchange) -> web.Response:
    """Create a reference to an existing commit."""
    ex.needs("contents")
    body = await ex.body()
    full, sha = body.get("ref"), body.get("sha")
    if not isinstance(full, str) or not full.startswith("refs/") or full.count("/") < 2:
        raise Problem(422, "Reference name must start with 'refs/' and contain at least two slashes")
    if sha not in ex.state.history.commits:
        raise Problem(422, "Object does not exist")
    name = full.removeprefix("refs/")
    if name in ex.state.refs:
        raise Problem(422, "Reference already exists")
    ex.state.refs[name] = sha
    return answer(_ref(ex, name), 201)


async def update_ref(ex: Exchange) -> web.Response:
    """Move a reference; only force moves it sideways."""
    ex.needs("contents")
    name, body = ex.part("ref"), await ex.body()
    if name not in ex.state.refs:
        raise Problem(422, "Reference does not exist")
    sha = body.get("sha")
    if sha not in ex.state.history.commits:
        raise Problem(422, "Object does not exist")
    if not body.get("force") and ex.state.refs[name] not in ex.state.history.ancestors(sha):
        raise Problem(422, "Update is not a fast forward")
    ex.state.refs[name] = sha
    for pull in ex.state.pulls.values():
        if pull.state == "open" and pull.head_repo == ex.state.repo and f"heads/{pull.head_ref}" == name:
            pull.head_sha = sha
            if sha in ex.state.history.ancestors(ex.state.refs[f"heads/{pull.base_ref}"]):
                # A pull request that has lost all its commits is closed.
                pull.state, pull.closed = "closed", now()
    return answer(_ref(ex, name))


async def delete_ref(ex: Exchange) -> web.Response:
    """Delete a reference."""
    ex.needs("contents")
    if ex.state.refs.pop(ex.part("ref"), None) is None:
        raise Problem(422, "Reference does not exist")
    return web.Response(status=204)


async def blob(ex: Exchange) -> web.Response:
    """Show a file's content by its SHA."""
    ex.needs("contents", level="read", role="read")
    sha = ex.part("sha")
    for known in ex.state.history.commits.values():
        for content in known.tree.values():
            if blob_sha(content) == sha:
                value = {
                    "sha": sha,
                    "node_id": node_id("B", int(sha[:8], 16)),
                    "size": len(content),
                    "url": f"{ex.url}/repos/{ex.state.repo}/git/blobs/{sha}",
                    "encoding": "base64",
                    "content": base64.encodebytes(content).decode(),
                }
                return answer(value)
    raise Problem(404, "Not Found")


async def show_commit(ex: Exchange) -> web.Response:
    """Show the commit that a SHA or a branch names."""
    ex.needs("contents", level="read", role="read")
    sha = ex.state.resolve(ex.part("ref"))
    if sha is None:
        raise Problem(422, f"No commit found for SHA: {ex.part('ref')}")
    return answer(commit(ex.state, ex.url, ex.state.history.commits[sha]))


async def compare(ex: Exchange) -> web.Response:
    """Count how far two commits are apart, and list what the later one changed since they parted.

    Commits come in pages; files only with the first, and never more than 300.
    """
    ex.needs("contents", level="read", role="read")
    history = ex.state.history
    base_ref, _, head_ref = ex.part("basehead").partition("...")
    base, head = ex.state.resolve(base_ref), ex.state.resolve(head_ref)
    if base is None or head is None:
        raise Problem(404, "Not Found")
    merge_base = history.merge_base(head, base)
    if merge_base is None:
        raise Problem(404, f"No common ancestor between {base_ref} and {head_ref}.")
    ahead = history.ancestors(head) - history.ancestors(base)
    behind = history.ancestors(base) - history.ancestors(head)
    status = {(False, False): "identical", (True, False): "ahead", (False, True): "behind", (True, True): "diverged"}
    here = f"{ex.url}/repos/{ex.state.repo}/compare/{base}...{head}"
    files = history.diff(merge_base, head)[:MOST_COMPARED] if ex.request.query.get("page", "1") == "1" else []
    size = int(ex.request.query.get("per_page", 250))
    value = {
        "url": here,
        "html_url": here,
        "permalink_url": here,
        "diff_url": f"{here}.diff",
        "patch_url": f"{here}.patch",
        "base_commit": commit(ex.state, ex.url, history.commits[base]),
        "merge_base_commit": commit(ex.state, ex.url, history.commits[merge_base]),
        "status": status[bool(ahead), bool(behind)],
        "ahead_by": len(ahead),
        "behind_by": len(behind),
        "total_commits": len(ahead),
        "commits": [commit(ex.state, ex.url, history.commits[sha]) for sha in sorted(ahead)][:size],
        "files": [file_shape(ex, file, head) for file in files],
    }
    return answer(value)


async def tarball(ex: Exchange) -> web.Response:
    """Redirect to the archive of a commit on another host, as GitHub does."""
    ex.needs("contents", level="read", role="read")
    sha = ex.state.resolve(ex.part("ref"))
    if sha is None:
        raise Problem(404, "Not Found")
    key = secrets.token_hex(8)
    owner, name = ex.state.repo.split("/")
    ex.state.signed[key] = ("application/x-gzip", ex.state.history.archive(sha, f"{owner}-{name}-{sha[:7]}"))
    # The other name of this machine stands for the other host.
    storage = ex.url.replace("//localhost:", "//127.0.0.1:")
    return web.Response(status=302, headers={"Location": f"{storage}/_storage/{key}"})


ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "/git/ref/{ref:.+}", ref),
    ("POST", "/git/refs", create_ref),
    ("PATCH", "/git/refs/{ref:.+}", update_ref),
    ("DELETE", "/git/refs/{ref:.+}", delete_ref),
    ("GET", "/git/blobs/{sha:[0-9a-f]{40}}", blob),
    ("GET", "/compare/{basehead:.+}", compare),
    ("GET", "/tarball/{ref:.+}", tarball),
    ("GET", "/commits/{ref}", show_commit),
]
