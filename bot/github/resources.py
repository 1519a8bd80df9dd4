"""GitHub's answers as typed values: only the fields that are used, checked when they are read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class User:
    """An account."""

    login: str
    id: int


@dataclass(frozen=True, kw_only=True)
class Pull:
    """A pull request."""

    number: int
    state: str
    draft: bool
    merged: bool
    locked: bool
    title: str
    author: str
    head_sha: str
    head_repo: str | None
    """None when the fork was deleted; its commits stay reachable through the base repository."""
    base_sha: str
    base_ref: str
    labels: tuple[str, ...]
    changed_files: int
    html_url: str
    updated: datetime
    """When anything last happened to it: a push, a comment, a label."""


@dataclass(frozen=True, kw_only=True)
class ChangedFile:
    """One file of a pull request's diff."""

    path: str
    status: str
    previous: str | None = None
    patch: str | None = None
    """What changed, as a diff; GitHub leaves out what is large or binary."""


@dataclass(frozen=True, kw_only=True)
class Comment:
    """A comment on a pull request."""

    id: int
    author: User | None
    """None when the account was deleted."""
    body: str
    html_url: str
    node_id: str
    """What GraphQL calls it."""


@dataclass(frozen=True, kw_only=True)
class CheckRun:
    """A check run of a commit."""

    id: int
    name: str
    head_sha: str
    status: str
    conclusion: str | None
    external_id: str
    title: str
    app: str | None
    html_url: str
    annotations: int
    """How many it has; an update adds to them."""


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit and the tree that it holds."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    date: datetime


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How far a commit is from another, and what it changed since they parted."""

    ahead: int
    behind: int
    merge_base: str
    files: tuple[str, ...]
    """Old and new names; GitHub lists no more than 300 files."""


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file on a branch, with the SHA that an update has to name."""

    path: str
    sha: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class OpenedPull:
    """A pull request of our own: opened now, or found open and brought up to date."""

    number: int
    html_url: str
    body: str
    created: bool


@dataclass(frozen=True, kw_only=True)
class WorkflowRunDetails:
    """A run of a workflow as the API lists it."""

    id: int
    attempt: int
    title: str
    event: str
    path: str
    head_sha: str
    status: str
    conclusion: str | None
    created: datetime
    html_url: str


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A zip that a run left behind."""

    id: int
    name: str
    size: int
    expired: bool
    run_id: int | None
    head_sha: str | None
