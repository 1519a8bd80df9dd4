"""Filling the loopback GitHub: what people do there that the API under test does not."""

from __future__ import annotations

import io
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from threading import RLock

from loopback.state import (
    ACTIONS_BOT,
    ACTIONS_BOT_ID,
    ROLES,
    START_OF_IDS,
    Account,
    State,
    StoredArtifact,
    StoredComment,
    StoredJob,
    StoredPull,
    StoredRun,
    Token,
    now,
)

__all__ = ["ACTIONS_BOT", "Seed"]

JOB_PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "actions": "read",
}


class Seed:
    """People, pushes, labels and runs."""

    def __init__(self, state: State, lock: RLock) -> None:
        self.state = state
        self._lock = lock
        self.state.accounts[ACTIONS_BOT] = Account(ACTIONS_BOT, ACTIONS_BOT_ID, "Bot")
        self.user(state.repo.split("/")[0], "admin")

    def user(self, login: str, role: str | None = None) -> Account:
        """Add an account, with a role in the repository if one is given."""
        if role is not None and role not in ROLES:
            raise ValueError(f"{role!r} is not one of {', '.join(ROLES)}")
        with self._lock:
            known = self.state.account(login)
            account = known or Account(login, self.state.new_id())
            self.state.accounts[login.lower()] = account
            if role is not None:
                self.state.roles[login.lower()] = role
            return account

    def user_token(self, login: str) -> str:
        """Return a personal token of an account."""
        return self._token(Token(self.user(login).login))

    def job_token(self, permissions: Mapping[str, str] | None = None) -> str:
        """Return a token as a workflow's job has it; by default with all that the bot needs."""
        return self._token(Token(ACTIONS_BOT, dict(JOB_PERMISSIONS if permissions is None else permissions)))

    def app_token(self, slug: str, permissions: Mapping[str, str] | None = None) -> str:
        """Return a token of an app that is installed here; it acts as an account of its own."""
        login = f"{slug}[bot]"
        with self._lock:
            self.state.accounts.setdefault(login, Account(login, self.state.new_id(), "Bot"))
        return self._token(Token(login, dict(JOB_PERMISSIONS if permissions is None else permissions)))

    def commit(
        self, tree: Mapping[str, bytes], parents: Sequence[str] = (), message: str = "Change", author: str = ""
    ) -> str:
        """Store a commit and return its SHA."""
        with self._lock:
            owner = self.state.repo.split("/")[0]
            return self.state.history.add(tree, tuple(parents), message, author or owner).sha

    def push(self, branch: str, tree: Mapping[str, bytes], message: str = "Change") -> str:
        """Add a commit to a branch of the repository, or start one."""
        with self._lock:
            before = self.state.refs.get(f"heads/{branch}")
            sha = self.commit(tree, (before,) if before else (), message)
            self.state.refs[f"heads/{branch}"] = sha
            return sha

    def open_pull(
        self,
        tree: Mapping[str, bytes],
        *,
        author: str = "contributor",
        base: str | None = None,
        fork: bool = True,
        title: str = "Change the compressor",
        branch: str = "change",
        draft: bool = False,
    ) -> StoredPull:
        """Open a pull request whose head holds these files."""
        with self._lock:
            self.user(author)
            base = base or self.state.default_branch
            base_sha = self.state.refs[f"heads/{base}"]
            owner, name = self.state.repo.split("/")
            sha = self.commit(tree, (base_sha,), title, author)
            if not fork:
                self.state.refs[f"heads/{branch}"] = sha
            pull = StoredPull(
                number=max(self.state.pulls, default=0) + 1,
                id=self.state.new_id(),
                author=author,
                title=title,
                body="",
                head_ref=branch,
                head_sha=sha,
                head_repo=f"{author}/{name}" if fork else self.state.repo,
                head_owner=author if fork else owner,
                base_ref=base,
                base_sha=base_sha,
                draft=draft,
            )
            self.state.pulls[pull.number] = pull
            return pull

    def push_to_pull(
        self, number: int, tree: Mapping[str, bytes], *, force: bool = False, onto: Sequence[str] | None = None
    ) -> str:
        """Move a pull request's head; force, and another parent, leave the old head without a branch."""
        with self._lock:
            pull = self.state.pulls[number]
            parents = (pull.base_sha if force else pull.head_sha,) if onto is None else onto
            pull.head_sha = self.commit(tree, parents, "More", pull.author)
            if pull.head_repo == self.state.repo:
                self.state.refs[f"heads/{pull.head_ref}"] = pull.head_sha
            pull.touch()
            return pull.head_sha

    def retarget(self, number: int, base: str) -> None:
        """Let a pull request be meant for another branch."""
        with self._lock:
            pull = self.state.pulls[number]
            pull.base_ref, pull.base_sha = base, self.state.refs[f"heads/{base}"]
            pull.touch()

    def forget_commit(self, sha: str) -> None:
        """Collect a commit as garbage."""
        with self._lock:
            del self.state.history.commits[sha]

    def delete_fork(self, number: int) -> None:
        """Delete the repository that a pull request comes from."""
        with self._lock:
            self.state.pulls[number].head_repo = None

    def close(self, number: int) -> None:
        """Close a pull request without merging."""
        with self._lock:
            pull = self.state.pulls[number]
            pull.state, pull.closed = "closed", now()

    def merge(self, number: int) -> str:
        """Merge a pull request and return the merge commit."""
        with self._lock:
            pull = self.state.pulls[number]
            tree = self.state.history.commits[pull.head_sha].tree
            tip = self.state.refs[f"heads/{pull.base_ref}"]
            sha = self.commit(tree, (tip, pull.head_sha), f"Merge #{number}")
            self.state.refs[f"heads/{pull.base_ref}"] = sha
            pull.state, pull.merged, pull.closed, pull.merge_commit_sha = "closed", True, now(), sha
            return sha

    def reopen(self, number: int) -> None:
        """Open a closed pull request again."""
        with self._lock:
            pull = self.state.pulls[number]
            pull.state, pull.closed = "open", None

    def lock_conversation(self, number: int) -> None:
        """Lock a pull request's conversation."""
        with self._lock:
            self.state.pulls[number].locked = True

    def label(self, number: int, name: str) -> None:
        """Put a label on a pull request."""
        with self._lock:
            self.state.labels.setdefault(name, self.state.new_id())
            if name not in self.state.pulls[number].labels:
                self.state.pulls[number].labels.append(name)

    def unlabel(self, number: int, name: str) -> None:
        """Take a label off a pull request."""
        with self._lock:
            self.state.pulls[number].labels.remove(name)

    def comment(self, number: int, login: str, body: str) -> StoredComment:
        """Add a comment."""
        with self._lock:
            self.user(login)
            at = self.state.pulls[number].touch()
            comment = StoredComment(self.state.new_id(), number, login, body, at, at)
            self.state.comments[comment.id] = comment
            return comment

    def review(self, number: int, login: str, state: str = "APPROVED") -> None:
        """Review the last commit of a pull request."""
        with self._lock:
            self.user(login)
            pull = self.state.pulls[number]
            pull.reviews.append((login, state, pull.head_sha))
            pull.touch()

    def delete_comment(self, comment_id: int) -> None:
        """Delete a comment."""
        with self._lock:
            del self.state.comments[comment_id]

    def comments(self, number: int) -> list[StoredComment]:
        """Return a pull request's comments, oldest first."""
        with self._lock:
            return sorted((c for c in self.state.comments.values() if c.number == number), key=lambda c: c.id)

    def workflow(self, file: str) -> None:
        """Register a workflow file."""
        with self._lock:
            self.state.workflows.setdefault(file, self.state.new_id())

    def run(
        self,
        workflow: str,
        head_sha: str,
        *,
        event: str = "pull_request_target",
        title: str = "evaluation",
        status: str = "completed",
        conclusion: str | None = "success",
        attempt: int = 1,
        created: datetime | None = None,
        jobs: Mapping[str, str | None] | None = None,
        run_id: int | None = None,
    ) -> StoredRun:
        """Record a workflow run; `jobs` maps each job's name to its conclusion."""
        with self._lock:
            self.workflow(workflow)
            run = StoredRun(
                run_id or START_OF_IDS * START_OF_IDS + self.state.new_id(),
                workflow,
                event,
                head_sha,
                title,
                status,
                conclusion,
                attempt,
                created or now(),
            )
            for name, end in (jobs or {}).items():
                ended = "completed" if end is not None else "in_progress"
                run.jobs.append(StoredJob(self.state.new_id(), name, ended, end, attempt))
            self.state.runs[run.id] = run
            return run

    def artifact(self, run_id: int, name: str, files: Mapping[str, bytes], *, expired: bool = False) -> StoredArtifact:
        """Attach a zip to a run."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for path, content in files.items():
                archive.writestr(path, content)
        with self._lock:
            artifact = StoredArtifact(self.state.new_id(), run_id, name, packed.getvalue(), expired)
            self.state.artifacts[artifact.id] = artifact
            return artifact

    def _token(self, token: Token) -> str:
        # Made at run time and good for nothing anywhere else.
        value = f"loopback-{secrets.token_hex(12)}"
        with self._lock:
            self.state.tokens[value] = token
        return value
