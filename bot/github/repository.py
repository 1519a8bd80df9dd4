"""GitHub calls for one repository: pull requests, comments, labels, contents, workflow runs and artifacts."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar
from urllib.parse import quote

from bot.github.api_error import ApiError, Conflict, Forbidden, NotFound, Unavailable
from bot.github.resources import (
    Artifact,
    ChangedFile,
    CheckRun,
    Comment,
    Commit,
    Comparison,
    OpenedPull,
    Pull,
    StoredFile,
    User,
    WorkflowRunDetails,
)
from bot.github.rest import DEFAULT_API, ApiRetries, Transport
from eval_core.base.errors import UserError

P = ParamSpec("P")
R = TypeVar("R")


def _parses(read: Callable[P, R]) -> Callable[P, R]:
    """Report a response that lacks a field as an error of GitHub's, not as a bug of ours."""

    @wraps(read)
    def parsed(*args: P.args, **named: P.kwargs) -> R:
        try:
            return read(*args, **named)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            what = read.__name__.strip("_").replace("_", " ")
            message = f"{what}: GitHub's response could not be parsed ({type(exc).__name__}); run this again later"
            raise Unavailable(message, maybe_done=True) from exc

    return parsed


# Branches, files and pull requests of our own: how a new baseline is proposed.

_TRIES = 3


class Contents:
    """What is written on branches of one repository."""

    def __init__(self, transport: Transport, repo: str) -> None:
        self._transport = transport
        self._owner = repo.split("/")[0]
        self._base = f"/repos/{quote(repo)}"

    @_parses
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

    @_parses
    def file(self, path: str, ref: str) -> StoredFile | None:
        """Return a file as it is on a branch or commit, None if it is not there."""
        where = f"{self._base}/contents/{quote(path)}"
        try:
            data = self._transport.get(where, f"{path} on {ref}", {"ref": ref}, expect=object)
        except NotFound:
            return None
        if not isinstance(data, dict) or data.get("type") != "file":
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

    def open_pull_of(self, head: str, base: str) -> OpenedPull | None:
        """Return the open pull request from a branch of ours."""
        data = self._standing(head, base)
        return None if data is None else _opened(data, created=False)

    def open_pull(self, *, head: str, base: str, title: str, body: str, draft: bool = False) -> OpenedPull:
        """Open a pull request from a branch of ours, or bring the open one up to date; a draft is never made ready.

        Where the repository's plan has no drafts it is opened as usual.
        """
        standing = self._standing(head, base)
        if standing is None:
            fields = {"title": title, "body": body, "head": head, "base": base, "maintainer_can_modify": True}
            try:
                return self._create_pull({**fields, "draft": draft})
            except (Conflict, Unavailable) as exc:
                # Opened meanwhile, or opened by this very request although its answer got lost.
                standing = self._standing(head, base)
                if standing is None and draft and isinstance(exc, Conflict):
                    return self._create_pull(fields)
                if standing is None:
                    raise exc
        number = int(standing["number"])
        path = f"{self._base}/pulls/{number}"
        self._transport.send("PATCH", path, f"pull request #{number}", {"title": title, "body": body})
        if draft and not standing.get("draft"):
            with suppress(ApiError, Unavailable):  # a plan without drafts; title and text say the same
                self._transport.graphql(_TO_DRAFT, f"draft of pull request #{number}", id=str(standing["node_id"]))
        return _opened(standing, created=False)

    def _create_pull(self, fields: dict[str, Any]) -> OpenedPull:
        what = f"pull request {fields['head']} -> {fields['base']}"
        return _opened(self._transport.send("POST", f"{self._base}/pulls", what, fields)[1], created=True)

    def _move(self, name: str, sha: str) -> None:
        path = f"{self._base}/git/refs/heads/{quote(name)}"
        self._transport.send("PATCH", path, f"branch {name}", {"sha": sha, "force": True})

    def _standing(self, head: str, base: str) -> Any:
        query = {"state": "open", "head": f"{self._owner}:{head}", "base": base}
        return next(iter(self._transport.pages(f"{self._base}/pulls", f"pull requests from {head}", query)), None)


_TO_DRAFT = "mutation($id: ID!) { convertPullRequestToDraft(input: {pullRequestId: $id}) { pullRequest { isDraft } } }"


@_parses
def _opened(data: Any, *, created: bool) -> OpenedPull:
    return OpenedPull(
        number=int(data["number"]),
        html_url=str(data["html_url"]),
        body=str(data.get("body") or ""),
        created=created,
    )


# Runs of the evaluation's workflow and the artifacts that they left.

WORKFLOW = "compression-eval.yml"
"""The file name of the workflow that evaluates."""

TRUSTED_EVENTS = frozenset({"pull_request_target", "workflow_dispatch", "issue_comment", "workflow_run"})
"""Events whose workflow file comes from this repository; a fork can run its own file of the same name on others."""

ARTIFACT_LIMIT = 200 << 20


class WorkflowRuns:
    """What the workflows of one repository did."""

    def __init__(self, transport: Transport, repo: str) -> None:
        self._transport = transport
        self._base = f"/repos/{quote(repo)}/actions"

    def of(
        self, workflow: str, *, since: datetime | None = None, head_sha: str | None = None
    ) -> Iterator[WorkflowRunDetails]:
        """Yield the trusted runs of a workflow file (its name, without the folder), newest first."""
        query: dict[str, Any] = {}
        if since is not None:
            query["created"] = f">={since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        if head_sha is not None:
            query["head_sha"] = head_sha
        path = f"{self._base}/workflows/{quote(workflow, safe='')}/runs"
        try:
            for item in self._transport.pages(path, f"runs of {workflow}", query, key="workflow_runs"):
                if item["event"] in TRUSTED_EVENTS:
                    yield _run(item)
        except NotFound as exc:
            raise NotFound(
                f"runs of {workflow}: GitHub knows no such workflow; it must be on the default branch", 404, exc.reason
            ) from None

    @_parses
    def times_run(self, run_id: int, job: str, *, finished: bool = False) -> int:
        """Count in how many attempts of a run a job was really executed; jobs of one name share one evaluation."""
        path = f"{self._base}/runs/{run_id}/jobs"
        jobs = self._transport.pages(path, f"jobs of run {run_id}", {"filter": "all"}, key="jobs")
        attempts = {
            item.get("run_attempt", 1)
            for item in jobs
            if _is_job(item, job)
            and item.get("conclusion") != "skipped"
            and (item["status"] == "completed" or not finished)
        }
        return len(attempts)

    def is_over(self, run_id: int, attempt: int) -> bool:
        """Tell whether an attempt of a run has ended; a run that is gone has."""
        try:
            run = _run(self._transport.get(f"{self._base}/runs/{run_id}", f"run {run_id}"))
        except NotFound:
            return True
        return run.attempt > attempt or run.status == "completed"

    @_parses
    def ended_at(self, run_id: int, job: str) -> datetime | None:
        """Return when a job of a run was last completed, whichever attempt it was."""
        path = f"{self._base}/runs/{run_id}/jobs"
        jobs = self._transport.pages(path, f"jobs of run {run_id}", {"filter": "all"}, key="jobs")
        ends = [
            datetime.fromisoformat(item["completed_at"])
            for item in jobs
            if _is_job(item, job) and item.get("completed_at") and item.get("conclusion") != "skipped"
        ]
        return max(ends, default=None)

    @_parses
    def rejection(self, run_id: int) -> str | None:
        """Return who rejected a run's deployment and what they said; None if nobody did, or somebody approved it too.

        The list has neither times nor attempts: after a re-run it holds both, and the older word must not be taken
        for the last.
        """
        path = f"{self._base}/runs/{run_id}/approvals"
        reviews = self._transport.get(path, f"approvals of run {run_id}", expect=list)
        if any(review.get("state") == "approved" for review in reviews):
            return None
        for review in reviews:
            if review.get("state") == "rejected":
                login, comment = (
                    str((review.get("user") or {}).get("login") or "ghost"),
                    str(review.get("comment") or ""),
                )
                return f"{login} rejected it" + (f": {comment}" if comment else "")
        return None

    def find_artifact(self, workflow: str, name: str, *, head_sha: str | None = None) -> Artifact | None:
        """Return the newest artifact of that name that a trusted run of the workflow left and that can be had."""
        items = self._transport.pages(f"{self._base}/artifacts", f"artifacts {name}", {"name": name}, key="artifacts")
        usable = (artifact for artifact in map(_artifact, items) if not artifact.expired and artifact.run_id)
        # By its name and not run by run: a repository may have thousands of runs.
        for artifact in sorted(usable, key=lambda artifact: -artifact.id):
            try:
                run = _run(self._transport.get(f"{self._base}/runs/{artifact.run_id}", f"run {artifact.run_id}"))
            except NotFound:
                continue
            ours = run.path.partition("@")[0] == f".github/workflows/{workflow}" and run.event in TRUSTED_EVENTS
            if ours and head_sha in (None, run.head_sha):
                return artifact
        return None

    def download(self, artifact: Artifact, into: Path, limit: int = ARTIFACT_LIMIT) -> int:
        """Save an artifact's zip and return its size."""
        what = f"artifact {artifact.name} ({artifact.id})"
        if artifact.size > limit:
            raise UserError(f"{what}: {artifact.size:,} bytes, more than the {limit:,} allowed; refused")
        try:
            return self._transport.download(f"{self._base}/artifacts/{artifact.id}/zip", what, into, limit)
        except ApiError as exc:
            if exc.status not in (404, 410):
                raise
            raise NotFound(f"{what}: expired or deleted; run the evaluation again", exc.status, exc.reason) from None


def _is_job(item: Mapping[str, Any], job: str) -> bool:
    """Tell whether a listed job is the named one: GitHub adds the values of a matrix, as in "evaluate (1/1)"."""
    name = str(item["name"])
    return name == job or name.startswith(f"{job} (")


@_parses
def _run(data: Mapping[str, Any]) -> WorkflowRunDetails:
    return WorkflowRunDetails(
        id=int(data["id"]),
        attempt=int(data.get("run_attempt") or 1),
        title=str(data["display_title"]),
        event=str(data["event"]),
        path=str(data["path"]),
        head_sha=str(data["head_sha"]),
        status=str(data.get("status") or ""),
        conclusion=data.get("conclusion"),
        created=datetime.fromisoformat(data["created_at"]),
        html_url=str(data["html_url"]),
    )


@_parses
def _artifact(data: Mapping[str, Any]) -> Artifact:
    run = data.get("workflow_run") or {}
    return Artifact(
        id=int(data["id"]),
        name=str(data["name"]),
        size=int(data["size_in_bytes"]),
        expired=bool(data["expired"]),
        run_id=run.get("id"),
        head_sha=run.get("head_sha"),
    )


# The verbs that the bot needs of GitHub, for one repository.

Reaction = Literal["+1", "-1", "eyes", "rocket", "confused"]

_MINIMIZE = (
    "mutation($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) "
    "{ minimizedComment { isMinimized } } }"
)

TARBALL_LIMIT = 200 << 20
_ACTIONS_BOT = "github-actions[bot]"


class GitHub:
    """One repository on GitHub, seen with one token."""

    def __init__(
        self, repo: str, token: str | None, *, api_url: str = DEFAULT_API, retry: ApiRetries | None = None
    ) -> None:
        if repo.count("/") != 1 or not all(repo.split("/")):
            raise UserError(f"GITHUB_REPOSITORY: {repo!r} is not owner/name")
        self.repo = repo
        self._base = f"/repos/{quote(repo)}"
        self._transport = Transport(token, api_url, retry)
        self.contents = Contents(self._transport, repo)
        self.workflow_runs = WorkflowRuns(self._transport, repo)

    def __repr__(self) -> str:
        return f"GitHub(repo={self.repo!r}, api_url={self._transport.api_url!r})"

    @classmethod
    def from_environment(
        cls, env: Mapping[str, str] | None = None, *, repo: str | None = None, retry: ApiRetries | None = None
    ) -> GitHub:
        """Read GITHUB_REPOSITORY, GITHUB_TOKEN and GITHUB_API_URL as a workflow's step has them."""
        values = os.environ if env is None else env
        return cls(
            repo or values.get("GITHUB_REPOSITORY", ""),
            values.get("GITHUB_TOKEN", ""),
            api_url=values.get("GITHUB_API_URL") or DEFAULT_API,
            retry=retry,
        )

    @cached_property
    def me(self) -> User:
        """The account that this token acts as: a person's, an app's own, or the job's."""
        try:
            return _user(self._transport.get("/user", "who am I"))
        except Forbidden as exc:
            if exc.status != 403:
                raise
        # An app's token has no user to show there; GraphQL names the account that signs what it writes.
        login = self._viewer() or _ACTIONS_BOT
        return _user(self._transport.get(f"/users/{quote(login)}", f"account {login}"))

    def _viewer(self) -> str | None:
        try:
            data = self._transport.graphql("query { viewer { login } }", "who am I")
        except ApiError:
            return None
        viewer = ((data.get("data") or {}).get("viewer") or {}) if isinstance(data, dict) else {}
        return str(viewer["login"]) if viewer.get("login") else None

    def wait(self, seconds: float) -> None:
        """Let some time pass."""
        self._transport.retry.sleep(seconds)

    def pull(self, number: int) -> Pull:
        """Return a pull request as it is now."""
        what = f"pull request #{number} of {self.repo}"
        try:
            return _pull(self._transport.get(f"{self._base}/pulls/{number}", what))
        except NotFound as exc:
            raise NotFound(f"{what}: not found; check the number and the repository", 404, exc.reason) from None

    @_parses
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

    @_parses
    def changed_files(self, number: int) -> tuple[ChangedFile, ...]:
        """Return the files of a pull request's diff; GitHub lists at most 3,000."""
        items = self._transport.pages(f"{self._base}/pulls/{number}/files", f"files of #{number}")
        return tuple(
            ChangedFile(
                path=item["filename"],
                status=item["status"],
                previous=item.get("previous_filename"),
                patch=item.get("patch"),
            )
            for item in items
        )

    @_parses
    def approved_pull(self, head: str, sha: str, reviewer: str) -> int | None:
        """Return the open pull request from `head`, as owner:branch, of which an account approved this very commit."""
        query = {"state": "open", "head": head}
        for data in self._transport.pages(f"{self._base}/pulls", f"pull requests from {head}", query):
            number = int(data["number"])
            reviews = self._transport.pages(f"{self._base}/pulls/{number}/reviews", f"reviews of #{number}")
            mine = [item for item in reviews if (item.get("user") or {}).get("login") == reviewer]
            if any((item["state"], item.get("commit_id")) == ("APPROVED", sha) for item in mine):
                return number
        return None

    def remove_label(self, number: int, label: str) -> bool:
        """Take a label off; False if somebody else has done so already."""
        path = f"{self._base}/issues/{number}/labels/{quote(label, safe='')}"
        what = f"label {label} of #{number}"
        try:
            self._transport.send("DELETE", path, what, repeatable=False)
        except NotFound:
            return False
        except Unavailable as exc:
            if not exc.maybe_done:
                raise
            # The answer got lost: a label that is gone now was taken off by us.
            try:
                self._transport.send("DELETE", path, what)
            except NotFound:
                return True
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
        return _comment(self._transport.get(f"{self._base}/issues/comments/{comment_id}", f"comment {comment_id}"))

    def create_comment(self, number: int, body: str) -> Comment:
        """Write a new comment; an answer that got lost raises `Unavailable` with `maybe_done`."""
        path = f"{self._base}/issues/{number}/comments"
        return _comment(self._transport.send("POST", path, f"comment on #{number}", {"body": body})[1])

    def update_comment(self, comment_id: int, body: str) -> Comment:
        """Replace the text of a comment."""
        path = f"{self._base}/issues/comments/{comment_id}"
        return _comment(self._transport.send("PATCH", path, f"comment {comment_id}", {"body": body})[1])

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment; one that is gone already is as good."""
        try:
            self._transport.send("DELETE", f"{self._base}/issues/comments/{comment_id}", f"comment {comment_id}")
        except NotFound:
            return

    def minimize_comment(self, comment: Comment) -> None:
        """Fold a comment as outdated; a second time changes nothing."""
        self._transport.graphql(_MINIMIZE, f"folding comment {comment.id}", id=comment.node_id)

    def reviewers_of(self, environment: str) -> bool | None:
        """Tell whether jobs of an environment wait for a reviewer; None if GitHub does not say."""
        path = f"{self._base}/environments/{quote(environment, safe='')}"
        try:
            data = self._transport.get(path, f"environment {environment}")
        except NotFound:
            return False  # made by its first use, without any rule
        except (ApiError, Unavailable):
            return None
        rules = data.get("protection_rules") or []
        return any(rule.get("type") in ("required_reviewers", "wait_timer") for rule in rules)

    def branches_of(self, environment: str) -> tuple[str, ...] | None:
        """Return the branches whose workflows may use an environment; empty for any, None where there is none."""
        path = f"{self._base}/environments/{quote(environment, safe='')}"
        try:
            policy = self._transport.get(path, f"environment {environment}").get("deployment_branch_policy")
        except NotFound:
            return None
        if not policy:
            return ()
        if not policy.get("custom_branch_policies"):
            return ("any protected branch",)
        rules = self._transport.pages(
            f"{path}/deployment-branch-policies", f"branches of environment {environment}", key="branch_policies"
        )
        return tuple(str(rule["name"]) if rule.get("type") != "tag" else f"tags {rule['name']}" for rule in rules)

    def may_open_pulls(self, branch: str) -> bool | None:
        """Tell whether this token may open pull requests, by asking for one that cannot be; None if unclear."""
        fields = {"title": "May pull requests be opened here?", "head": branch, "base": branch}
        try:
            self._transport.send("POST", f"{self._base}/pulls", "opening pull requests", fields, repeatable=True)
        except Forbidden:
            return False
        except Conflict:
            return True  # "no commits between": the question was understood and nothing was opened
        except (ApiError, Unavailable):
            return None
        return None

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

    @_parses
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

    @_parses
    def compare(self, base: str, head: str) -> Comparison:
        """Count the commits that `head` is ahead of and behind `base`, and list the files that it changed since."""
        path = f"{self._base}/compare/{quote(base, safe='')}...{quote(head, safe='')}"
        data = self._transport.get(path, f"comparison of {base[:12]} with {head[:12]}", {"per_page": 1})
        changed = (
            item for item in data.get("files") or () for item in (item["filename"], item.get("previous_filename"))
        )
        return Comparison(
            ahead=int(data["ahead_by"]),
            behind=int(data["behind_by"]),
            merge_base=str(data["merge_base_commit"]["sha"]),
            files=tuple(str(name) for name in changed if name),
        )

    @_parses
    def _id(self) -> int:
        return int(self._transport.get(self._base, f"repository {self.repo}")["id"])

    @cached_property
    def repo_id(self) -> int:
        """The number of the repository, which a new name or owner does not change."""
        return self._id()

    @_parses
    def default_branch(self) -> str:
        """Return the name of the repository's default branch."""
        return str(self._transport.get(self._base, f"repository {self.repo}")["default_branch"])


@_parses
def _user(data: Mapping[str, Any]) -> User:
    return User(str(data["login"]), int(data["id"]))


@_parses
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
        html_url=str(data["html_url"]),
        updated=datetime.fromisoformat(data["updated_at"]),
    )


@_parses
def _comment(data: Mapping[str, Any]) -> Comment:
    return Comment(
        id=int(data["id"]),
        author=_user(data["user"]) if data.get("user") else None,
        body=str(data.get("body") or ""),
        html_url=str(data["html_url"]),
        node_id=str(data["node_id"]),
    )


@_parses
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
        annotations=int((data.get("output") or {}).get("annotations_count") or 0),
    )
