"""Branches, files and pull requests of our own: how a new baseline is proposed."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

from bot.api_error import Conflict, NotFound, Unavailable
from bot.resources import OpenedPull, StoredFile
from bot.transport import Transport

__all__ = ["Contents"]

_TRIES = 3


class Contents:
    """What is written on branches of one repository."""

    def __init__(self, transport: Transport, repo: str) -> None:
        self._transport = transport
        self._owner = repo.split("/")[0]
        self._base = f"/repos/{quote(repo)}"

    def branch(self, name: str) -> str | None:
        """Return the commit that a branch points to, None if there is no such branch."""
        try:
            data = self._transport.get(f"{self._base}/git/ref/heads/{quote(name)}", f"branch {name}")
        except NotFound:
            return None
        return str(data["object"]["sha"])

    def point_branch(self, name: str, sha: str) -> None:
        """Make a branch of ours point to a commit, whether it exists or not."""
        if self.branch(name) is not None:
            self._move(name, sha)
            return
        try:
            body = {"ref": f"refs/heads/{name}", "sha": sha}
            self._transport.send("POST", f"{self._base}/git/refs", f"branch {name}", body, repeatable=True)
        except Conflict as exc:
            # Made meanwhile, perhaps by our own request whose answer got lost.
            if "already exists" not in exc.reason:
                raise
            self._move(name, sha)

    def delete_branch(self, name: str) -> None:
        """Delete a branch of ours; one that is gone already is as good."""
        try:
            self._transport.send("DELETE", f"{self._base}/git/refs/heads/{quote(name)}", f"branch {name}")
        except (NotFound, Conflict):
            # GitHub answers 422 "Reference does not exist".
            return

    def file(self, path: str, ref: str) -> StoredFile | None:
        """Return a file as it is on a branch or commit, None if it is not there."""
        where = f"{self._base}/contents/{quote(path)}"
        try:
            data = self._transport.get(where, f"{path} on {ref}", {"ref": ref})
        except NotFound:
            return None
        if isinstance(data, list) or data.get("type") != "file":
            raise Conflict(f"{path} on {ref}: is not a file", 422, "not a file")
        content = data.get("content") or ""
        if data.get("encoding") != "base64":
            # Files over 1 MB come without their content; the blob has it.
            blob = self._transport.get(f"{self._base}/git/blobs/{data['sha']}", f"{path} on {ref}")
            content = blob["content"]
        return StoredFile(path=path, sha=str(data["sha"]), content=base64.b64decode(content))

    def put_file(self, path: str, content: bytes, *, branch: str, message: str) -> bool:
        """Write a file on a branch; False if it says the same already. A concurrent change is read and replaced."""
        where = f"{self._base}/contents/{quote(path)}"
        for attempt in range(1, _TRIES + 1):
            standing = self.file(path, branch)
            if standing is not None and standing.content == content:
                return attempt > 1
            body: dict[str, Any] = {
                "message": message,
                "content": base64.b64encode(content).decode("ascii"),
                "branch": branch,
            }
            if standing is not None:
                body["sha"] = standing.sha
            try:
                self._transport.send("PUT", where, f"{path} on {branch}", body)
                return True
            except Conflict:
                # The SHA we named is no longer the file's: somebody, or our own lost request, was faster.
                if attempt == _TRIES:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    def open_pull(self, *, head: str, base: str, title: str, body: str) -> OpenedPull:
        """Open a pull request from a branch of ours, or bring the open one up to date."""
        standing = self._standing(head, base)
        if standing is None:
            try:
                fields = {"title": title, "body": body, "head": head, "base": base, "maintainer_can_modify": True}
                data = self._transport.send("POST", f"{self._base}/pulls", f"pull request {head} -> {base}", fields)[1]
                return OpenedPull(number=int(data["number"]), html_url=str(data["html_url"]), created=True)
            except (Conflict, Unavailable) as exc:
                # Opened meanwhile, or opened by this very request although its answer got lost.
                standing = self._standing(head, base)
                if standing is None:
                    raise exc
        number = int(standing["number"])
        path = f"{self._base}/pulls/{number}"
        self._transport.send("PATCH", path, f"pull request #{number}", {"title": title, "body": body})
        return OpenedPull(number=number, html_url=str(standing["html_url"]), created=False)

    def _move(self, name: str, sha: str) -> None:
        path = f"{self._base}/git/refs/heads/{quote(name)}"
        self._transport.send("PATCH", path, f"branch {name}", {"sha": sha, "force": True})

    def _standing(self, head: str, base: str) -> Any:
        query = {"state": "open", "head": f"{self._owner}:{head}", "base": base}
        return next(iter(self._transport.pages(f"{self._base}/pulls", f"pull requests from {head}", query)), None)
