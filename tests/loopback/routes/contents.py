"""Files on branches: read, and written with the SHA of what they replace."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import quote

from aiohttp import web

from loopback.api_request import Exchange, Handler, Json, Problem, answer
from loopback.commits import blob_sha
from loopback.shapes import commit

__all__ = ["ROUTES"]

INLINE_LIMIT = 1 << 20


def _shape(ex: Exchange, path: str, content: bytes, ref: str) -> Json:
    here = f"{ex.url}/repos/{ex.state.repo}"
    mine, blob = f"{here}/contents/{quote(path)}?ref={quote(ref)}", f"{here}/git/blobs/{blob_sha(content)}"
    html = f"{ex.url}/{ex.state.repo}/blob/{quote(ref)}/{quote(path)}"
    inline = len(content) <= INLINE_LIMIT
    return {
        "type": "file",
        "encoding": "base64" if inline else "none",
        "size": len(content),
        "name": path.rsplit("/", 1)[-1],
        "path": path,
        "content": base64.encodebytes(content).decode() if inline else "",
        "sha": blob_sha(content),
        "url": mine,
        "git_url": blob,
        "html_url": html,
        "download_url": None,
        "_links": {"self": mine, "git": blob, "html": html},
    }


async def show(ex: Exchange) -> web.Response:
    """Show a file, or list a folder."""
    ex.needs("contents", level="read", role="read")
    ref = ex.request.query.get("ref", ex.state.default_branch)
    sha = ex.state.resolve(ref)
    if sha is None:
        raise Problem(404, f"No commit found for the ref {ref}")
    tree, path = ex.state.history.commits[sha].tree, ex.part("path").strip("/")
    if path in tree:
        return answer(_shape(ex, path, tree[path], ref))
    inside = sorted(p for p in tree if p.startswith(f"{path}/") and "/" not in p.removeprefix(f"{path}/"))
    if not inside:
        raise Problem(404, "Not Found")
    hidden = {"content", "encoding"}
    return answer([{k: v for k, v in _shape(ex, p, tree[p], ref).items() if k not in hidden} for p in inside])


async def put(ex: Exchange) -> web.Response:
    """Write a file as a new commit on a branch; replacing needs the SHA of what is replaced."""
    ex.needs("contents")
    body, path = await ex.body(), ex.part("path").strip("/")
    for key in ("message", "content"):
        if not isinstance(body.get(key), str):
            raise Problem(422, f'Invalid request.\n\n"{key}" wasn\'t supplied.')
    try:
        content = base64.b64decode(body["content"], validate=True)
    except (binascii.Error, ValueError):
        raise Problem(422, "content is not valid Base64") from None
    branch = body.get("branch") or ex.state.default_branch
    parent = ex.state.refs.get(f"heads/{branch}")
    if parent is None:
        raise Problem(404, f"Branch {branch} not found")
    tree = ex.state.history.commits[parent].tree
    standing = blob_sha(tree[path]) if path in tree else None
    if standing is not None and not body.get("sha"):
        raise Problem(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
    if body.get("sha") and body["sha"] != standing:
        raise Problem(409, f"{path} does not match {body['sha']}")
    made = ex.state.history.add({**tree, path: content}, (parent,), body["message"], ex.login)
    ex.state.refs[f"heads/{branch}"] = made.sha
    for pull in ex.state.pulls.values():
        if pull.state == "open" and pull.head_repo == ex.state.repo and pull.head_ref == branch:
            pull.head_sha = made.sha
    shown = commit(ex.state, ex.url, made)
    value = {
        "content": _shape(ex, path, content, branch),
        "commit": {**shown["commit"], "sha": made.sha, "parents": shown["parents"], "html_url": shown["html_url"]},
    }
    return answer(value, 201 if standing is None else 200)


ROUTES: list[tuple[str, str, Handler]] = [
    ("GET", "/contents/{path:.+}", show),
    ("PUT", "/contents/{path:.+}", put),
]
