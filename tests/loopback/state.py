"""What the loopback GitHub remembers: one repository, its people, pull requests, comments, checks and runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from loopback.commits import History

__all__ = [
    "Account",
    "Rate",
    "Reaction",
    "State",
    "StoredArtifact",
    "StoredCheck",
    "StoredComment",
    "StoredJob",
    "StoredPull",
    "StoredRun",
    "Token",
    "now",
]

ROLES = ("none", "read", "triage", "write", "maintain", "admin")
ACTIONS_BOT = "github-actions[bot]"
ACTIONS_BOT_ID = 41_898_282
START_OF_IDS = 1_000


def now() -> datetime:
    """Return the time as GitHub shows it, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Account:
    """A person or an app's account."""

    login: str
    id: int
    kind: str = "User"


@dataclass(frozen=True)
class Token:
    """What a token may do: a person's role, or an app's list of permissions."""

    login: str
    permissions: Mapping[str, str] | None = None
    """An app's (a job's) permissions; None for a person's token, which may do what the person may."""


@dataclass
class StoredPull:
    """A pull request."""

    number: int
    id: int
    author: str
    title: str
    body: str
    head_ref: str
    head_sha: str
    head_repo: str | None
    head_owner: str
    base_ref: str
    base_sha: str
    draft: bool = False
    state: str = "open"
    merged: bool = False
    merge_commit_sha: str | None = None
    locked: bool = False
    labels: list[str] = field(default_factory=list)
    created: datetime = field(default_factory=now)
    updated: datetime = field(default_factory=now)
    closed: datetime | None = None
    reviews: list[tuple[str, str, str]] = field(default_factory=list)
    """Who, in which state, of which commit."""

    def touch(self) -> datetime:
        """Note that something happened to it, later than anything before, and return when."""
        self.updated = max(now(), self.updated + timedelta(seconds=1))
        return self.updated


@dataclass
class StoredComment:
    """A comment on a pull request."""

    id: int
    number: int
    author: str
    body: str
    created: datetime = field(default_factory=now)
    updated: datetime = field(default_factory=now)
    minimized: bool = False


@dataclass
class Reaction:
    """A reaction to a pull request."""

    id: int
    number: int
    author: str
    content: str
    created: datetime = field(default_factory=now)


@dataclass
class StoredCheck:
    """A check run."""

    id: int
    name: str
    head_sha: str
    external_id: str
    status: str
    conclusion: str | None
    details_url: str | None
    title: str | None
    summary: str | None
    started: datetime
    completed: datetime | None
    annotations: list[dict[str, object]] = field(default_factory=list)


@dataclass
class StoredJob:
    """A job of a workflow run."""

    id: int
    name: str
    status: str
    conclusion: str | None
    attempt: int = 1


@dataclass
class StoredRun:
    """A workflow run."""

    id: int
    workflow: str
    event: str
    head_sha: str
    title: str
    status: str
    conclusion: str | None
    attempt: int
    created: datetime
    jobs: list[StoredJob] = field(default_factory=list)
    reviews: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Environment, state, reviewer, comment."""


@dataclass
class StoredArtifact:
    """An artifact of a run: a zip."""

    id: int
    run_id: int
    name: str
    archive: bytes
    expired: bool = False
    created: datetime = field(default_factory=now)


@dataclass
class Rate:
    """The primary rate limit."""

    limit: int
    used: int = 0
    reset: int = 0


@dataclass
class State:
    """Everything there is."""

    repo: str
    default_branch: str
    private: bool
    rate: Rate
    history: History = field(default_factory=History)
    accounts: dict[str, Account] = field(default_factory=dict)
    roles: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    pulls: dict[int, StoredPull] = field(default_factory=dict)
    comments: dict[int, StoredComment] = field(default_factory=dict)
    reactions: list[Reaction] = field(default_factory=list)
    checks: dict[int, StoredCheck] = field(default_factory=dict)
    runs: dict[int, StoredRun] = field(default_factory=dict)
    workflows: dict[str, int] = field(default_factory=dict)
    artifacts: dict[int, StoredArtifact] = field(default_factory=dict)
    reviewers: dict[str, list[str]] = field(default_factory=dict)
    branch_policies: dict[str, list[str]] = field(default_factory=dict)
    """The branches that an environment is bound to; any branch where it is not in here."""
    """Environments and the accounts that approve their jobs."""
    actions_open_pulls: bool = False
    """The setting that lets a job's token open pull requests; off, as in a new repository."""
    drafts: bool = True
    """Whether the repository's plan has draft pull requests."""
    signed: dict[str, Any] = field(default_factory=dict)
    """Short-lived download addresses that were handed out."""
    _ids: Any = field(default_factory=lambda: itertools.count(START_OF_IDS))

    def new_id(self) -> int:
        """Return an id that is greater than all before it."""
        return int(next(self._ids))

    def account(self, login: str) -> Account | None:
        """Return an account by its name, whatever its case."""
        return self.accounts.get(login.lower())

    def role(self, login: str) -> str:
        """Return what an account may do; everybody may read a public repository."""
        return self.roles.get(login.lower(), "none" if self.private else "read")

    def resolve(self, ref: str) -> str | None:
        """Return the commit that a SHA or a branch names."""
        sha = self.refs.get(f"heads/{ref.removeprefix('refs/').removeprefix('heads/')}", ref)
        return sha if sha in self.history.commits else None
