"""The verbs that the bot needs of GitHub, for one repository."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from bot.api_error import Conflict, Forbidden, NotFound
from bot.contents import Contents
from bot.patience import Patience
from bot.resources import ChangedFile, CheckRun, Comment, Commit, Comparison, Pull, User
from bot.transport import DEFAULT_API, Transport
from bot.workflow_runs import WorkflowRuns
from eval_core.errors import UserError

__all__ = ["GitHub", "Reaction"]

Reaction = Literal["+1", "-1", "eyes", "rocket", "confused"]

TARBALL_LIMIT = 200 << 20
_ACTIONS_BOT = "github-actions[bot]"


class GitHub:
    """One repository on GitHub, seen with one token."""

    def __init__(self, repo: str, token: str, *, api_url: str = DEFAULT_API, patience: Patience | None = None) -> None:
        if repo.count("/") != 1 or not all(repo.split("/")):
            raise UserError(f"GITHUB_REPOSITORY: {repo!r} is not owner/name")
        self.repo = repo
        self._base = f"/repos/{quote(repo)}"
        self._transport = Transport(token, api_url, patience)
        self.contents = Contents(self._transport, repo)
        self.workflow_runs = WorkflowRuns(self._transport, repo)

    def __repr__(self) -> str:
        return f"GitHub(repo={self.repo!r}, api_url={self._transport.api_url!r})"

    @classmethod
    def from_environment(
        cls, env: Mapping[str, str] | None = None, *, repo: str | None = None, patience: Patience | None = None
    ) -> GitHub:
        """Read GITHUB_REPOSITORY, GITHUB_TOKEN and GITHUB_API_URL as a workflow's step has them."""
        values = os.environ if env is None else env
        return cls(
            repo or values.get("GITHUB_REPOSITORY", ""),
            values.get("GITHUB_TOKEN", ""),
            api_url=values.get("GITHUB_API_URL") or DEFAULT_API,
            patience=patience,
        )

    @cached_property
    def me(self) -> User:
        """The account that this token acts as."""
        try:
            data = self._transport.get("/user", "who am I")
        except Forbidden as exc:
            if exc.status != 403:
                raise
            # A job's own token has no user to show; what it writes is signed by this account.
            data = self._transport.get(f"/users/{quote(_ACTIONS_BOT)}", f"account {_ACTIONS_BOT}")
        return _user(data)

    def pull(self, number: int) -> Pull:
        """Return a pull request as it is now."""
        what = f"pull request #{number} of {self.repo}"
        try:
            return _pull(self._transport.get(f"{self._base}/pulls/{number}", what))
        except NotFound as exc:
            raise NotFound(f"{what}: not found; check the number and the repository", 404, exc.reason) from None

    def permission(self, login: str) -> str | None:
        """Return what an account may do here: none, read, triage, write, maintain, admin; None if it is unknown."""
        path = f"{self._base}/collaborators/{quote(login, safe='')}/permission"
        try:
            data = self._transport.get(path, f"permission of {login} on {self.repo}")
        except NotFound:
            return None
        # `permission` folds triage into read and maintain into write, and custom roles into what they build on.
        base, role = str(data["permission"]), str(data.get("role_name") or "")
        return role if (base, role) in {("read", "triage"), ("write", "maintain")} else base

    def changed_files(self, number: int) -> tuple[ChangedFile, ...]:
        """Return the files of a pull request's diff; GitHub lists at most 3,000."""
        items = self._transport.pages(f"{self._base}/pulls/{number}/files", f"files of #{number}")
        return tuple(
            ChangedFile(path=item["filename"], status=item["status"], previous=item.get("previous_filename"))
            for item in items
        )

    def remove_label(self, number: int, label: str) -> bool:
        """Take a label off; False if it was gone already."""
        path = f"{self._base}/issues/{number}/labels/{quote(label, safe='')}"
        try:
            self._transport.send("DELETE", path, f"label {label} of #{number}")
        except NotFound:
            return False
        return True

    def react(self, number: int, reaction: Reaction) -> None:
        """React to the pull request itself; a second time changes nothing."""
        path = f"{self._base}/issues/{number}/reactions"
        # GitHub answers a repeated reaction with the one that stands.
        self._transport.send("POST", path, f"reaction to #{number}", {"content": reaction}, repeatable=True)

    def comments(self, number: int) -> list[Comment]:
        """Return all comments of a pull request, oldest first."""
        items = self._transport.pages(f"{self._base}/issues/{number}/comments", f"comments of #{number}")
        return sorted((_comment(item) for item in items), key=lambda comment: comment.id)

    def comment(self, comment_id: int) -> Comment:
        """Return one comment."""
        return _comment(self._transport.get(f"{self._base}/issues/comments/{comment_id}", f"comment {comment_id}"))

    def create_comment(self, number: int, body: str) -> Comment:
        """Write a new comment; an answer that got lost raises `Unavailable` with `maybe_done`."""
        path = f"{self._base}/issues/{number}/comments"
        return _comment(self._transport.send("POST", path, f"comment on #{number}", {"body": body})[1])

    def update_comment(self, comment_id: int, body: str) -> Comment:
        """Replace the text of a comment."""
        path = f"{self._base}/issues/comments/{comment_id}"
        return _comment(self._transport.send("PATCH", path, f"comment {comment_id}", {"body": body})[1])

    def check_runs(self, sha: str, name: str) -> list[CheckRun]:
        """Return every check run of that name on a commit, oldest first."""
        path = f"{self._base}/commits/{sha}/check-runs"
        query = {"check_name": name, "filter": "all"}
        items = self._transport.pages(path, f"checks of {sha[:7]}", query, key="check_runs")
        return sorted((_check(item) for item in items), key=lambda check: check.id)

    def create_check(self, fields: Mapping[str, Any]) -> CheckRun:
        """Start a check run; an answer that got lost raises `Unavailable` with `maybe_done`."""
        what = f"check {fields.get('name')} on {str(fields.get('head_sha'))[:7]}"
        return _check(self._transport.send("POST", f"{self._base}/check-runs", what, dict(fields))[1])

    def update_check(self, check_id: int, fields: Mapping[str, Any]) -> CheckRun:
        """Change a check run."""
        path = f"{self._base}/check-runs/{check_id}"
        return _check(self._transport.send("PATCH", path, f"check {check_id}", dict(fields))[1])

    def tarball(self, sha: str, into: Path, limit: int = TARBALL_LIMIT) -> int:
        """Save a commit's files as a tar.gz and return its size; commits of forks are found here too."""
        what = f"files of commit {sha[:7]} in {self.repo}"
        try:
            return self._transport.download(f"{self._base}/tarball/{sha}", what, into, limit)
        except NotFound as exc:
            raise NotFound(
                f"{what}: not found; the commit was replaced by a force-push or its fork was deleted: "
                "push again and ask for a new evaluation",
                404,
                exc.reason,
            ) from None

    def commit(self, ref: str) -> Commit:
        """Return the commit that a SHA, branch or tag names."""
        path = f"{self._base}/commits/{quote(ref, safe='')}"
        try:
            data = self._transport.get(path, f"commit {ref} of {self.repo}")
        except Conflict as exc:
            # GitHub answers 422 "No commit found" where one would expect 404.
            raise NotFound(f"commit {ref} of {self.repo}: not found", 404, exc.reason) from None
        return Commit(
            sha=data["sha"],
            tree=data["commit"]["tree"]["sha"],
            parents=tuple(parent["sha"] for parent in data["parents"]),
            date=datetime.fromisoformat(data["commit"]["committer"]["date"]),
        )

    def compare(self, base: str, head: str) -> Comparison:
        """Count the commits that `head` is ahead of and behind `base`."""
        path = f"{self._base}/compare/{quote(base, safe='')}...{quote(head, safe='')}"
        data = self._transport.get(path, f"comparison of {base[:12]} with {head[:12]}", {"per_page": 1})
        return Comparison(ahead=int(data["ahead_by"]), behind=int(data["behind_by"]))

    def default_branch(self) -> str:
        """Return the name of the repository's default branch."""
        return str(self._transport.get(self._base, f"repository {self.repo}")["default_branch"])


def _user(data: Mapping[str, Any]) -> User:
    return User(str(data["login"]), int(data["id"]))


def _pull(data: Mapping[str, Any]) -> Pull:
    head, base = data["head"], data["base"]
    return Pull(
        number=int(data["number"]),
        state=str(data["state"]),
        draft=bool(data.get("draft")),
        merged=bool(data["merged"]),
        locked=bool(data["locked"]),
        title=str(data["title"]),
        author=str((data.get("user") or {}).get("login") or "ghost"),
        head_sha=str(head["sha"]),
        head_repo=str(head["repo"]["full_name"]) if head.get("repo") else None,
        base_sha=str(base["sha"]),
        base_ref=str(base["ref"]),
        labels=tuple(str(label["name"]) for label in data["labels"]),
        changed_files=int(data["changed_files"]),
        merge_commit_sha=data.get("merge_commit_sha"),
        html_url=str(data["html_url"]),
    )


def _comment(data: Mapping[str, Any]) -> Comment:
    return Comment(
        id=int(data["id"]),
        author=_user(data["user"]) if data.get("user") else None,
        body=str(data.get("body") or ""),
        html_url=str(data["html_url"]),
    )


def _check(data: Mapping[str, Any]) -> CheckRun:
    return CheckRun(
        id=int(data["id"]),
        name=str(data["name"]),
        head_sha=str(data["head_sha"]),
        status=str(data["status"]),
        conclusion=data.get("conclusion"),
        external_id=str(data.get("external_id") or ""),
        title=str((data.get("output") or {}).get("title") or ""),
        app=(data.get("app") or {}).get("slug"),
        html_url=str(data.get("html_url") or ""),
    )
