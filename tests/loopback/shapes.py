"""The JSON that appears inside many answers: accounts, the repository, labels, commits."""

from __future__ import annotations

import base64
from datetime import datetime
from urllib.parse import quote

from loopback.api_request import Json
from loopback.commits import StoredCommit
from loopback.state import ACTIONS_BOT_ID, Account, State

__all__ = ["app", "commit", "label", "node_id", "repository", "stamp", "user"]

_USER_LINKS = (
    "followers",
    "following{/other_user}",
    "gists{/gist_id}",
    "starred{/owner}{/repo}",
    "subscriptions",
    "orgs",
    "repos",
    "events{/privacy}",
    "received_events",
)
_REPOSITORY_LINKS = {
    "archive": "{archive_format}{/ref}",
    "assignees": "assignees{/user}",
    "blobs": "git/blobs{/sha}",
    "branches": "branches{/branch}",
    "collaborators": "collaborators{/collaborator}",
    "comments": "comments{/number}",
    "commits": "commits{/sha}",
    "compare": "compare/{base}...{head}",
    "contents": "contents/{+path}",
    "contributors": "contributors",
    "deployments": "deployments",
    "downloads": "downloads",
    "events": "events",
    "forks": "forks",
    "git_commits": "git/commits{/sha}",
    "git_refs": "git/refs{/sha}",
    "git_tags": "git/tags{/sha}",
    "hooks": "hooks",
    "issue_comment": "issues/comments{/number}",
    "issue_events": "issues/events{/number}",
    "issues": "issues{/number}",
    "keys": "keys{/key_id}",
    "labels": "labels{/name}",
    "languages": "languages",
    "merges": "merges",
    "milestones": "milestones{/number}",
    "notifications": "notifications{?since,all,participating}",
    "pulls": "pulls{/number}",
    "releases": "releases{/id}",
    "stargazers": "stargazers",
    "statuses": "statuses/{sha}",
    "subscribers": "subscribers",
    "subscription": "subscription",
    "tags": "tags",
    "teams": "teams",
    "trees": "git/trees{/sha}",
}


def stamp(moment: datetime | None) -> str | None:
    """Write a time as GitHub does."""
    return None if moment is None else f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def node_id(kind: str, number: int) -> str:
    """Make the opaque id that GraphQL would use."""
    return base64.b64encode(f"{kind}{number}".encode()).decode()


def user(account: Account, url: str) -> Json:
    """Show an account."""
    here = f"{url}/users/{quote(account.login)}"
    links = {}
    for link in _USER_LINKS:
        name = link.split("{")[0]
        links[f"{'organizations' if name == 'orgs' else name}_url"] = f"{here}/{link}"
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node_id("U", account.id),
        "avatar_url": f"{url}/avatars/{account.id}",
        "gravatar_id": "",
        "url": here,
        "html_url": f"{url}/{quote(account.login)}",
        **links,
        "type": account.kind,
        "user_view_type": "public",
        "site_admin": False,
    }


def repository(state: State, url: str, full_name: str | None = None) -> Json:
    """Show the repository, or a fork of it under another name."""
    full = full_name or state.repo
    owner_login, name = full.split("/")
    fork = full != state.repo
    owner = state.account(owner_login) or Account(owner_login, 1)
    here, web = f"{url}/repos/{full}", f"{url}/{full}"
    made = "2024-01-01T00:00:00Z"
    return {
        "id": 2 if fork else 1,
        "node_id": node_id("R", 2 if fork else 1),
        "name": name,
        "full_name": full,
        "private": state.private,
        "owner": user(owner, url),
        "html_url": web,
        "description": None,
        "fork": fork,
        "url": here,
        **{f"{key}_url": f"{here}/{path}" for key, path in _REPOSITORY_LINKS.items()},
        "git_url": f"git://{full}.git",
        "ssh_url": f"ssh://{full}.git",
        "clone_url": f"{web}.git",
        "svn_url": web,
        "mirror_url": None,
        "homepage": None,
        "language": None,
        "license": None,
        "forks": 0,
        "forks_count": 0,
        "stargazers_count": 0,
        "watchers_count": 0,
        "watchers": 0,
        "network_count": 0,
        "subscribers_count": 0,
        "size": 1,
        "default_branch": state.default_branch,
        "open_issues_count": 0,
        "open_issues": 0,
        "has_issues": True,
        "has_projects": False,
        "has_wiki": False,
        "has_pages": False,
        "has_downloads": True,
        "has_discussions": False,
        "archived": False,
        "disabled": False,
        "visibility": "private" if state.private else "public",
        "pushed_at": made,
        "created_at": made,
        "updated_at": made,
    }


def label(state: State, url: str, name: str) -> Json:
    """Show a label."""
    number = state.labels[name]
    return {
        "id": number,
        "node_id": node_id("LA", number),
        "url": f"{url}/repos/{state.repo}/labels/{quote(name)}",
        "name": name,
        "color": "ededed",
        "default": False,
        "description": None,
        "archived_at": None,
        "archived_by": None,
    }


def commit(state: State, url: str, value: StoredCommit) -> Json:
    """Show a commit."""
    here = f"{url}/repos/{state.repo}"
    account = state.account(value.author)
    person = {"name": value.author, "email": f"{value.author}@users.invalid", "date": stamp(value.date)}
    shown = user(account, url) if account else None
    return {
        "sha": value.sha,
        "node_id": node_id("C", int(value.sha[:8], 16)),
        "url": f"{here}/commits/{value.sha}",
        "html_url": f"{url}/{state.repo}/commit/{value.sha}",
        "comments_url": f"{here}/commits/{value.sha}/comments",
        "commit": {
            "url": f"{here}/git/commits/{value.sha}",
            "author": person,
            "committer": person,
            "message": value.message,
            "comment_count": 0,
            "tree": {"sha": value.tree_sha, "url": f"{here}/git/trees/{value.tree_sha}"},
        },
        "author": shown,
        "committer": shown,
        "parents": [
            {"sha": sha, "url": f"{here}/commits/{sha}", "html_url": f"{url}/{state.repo}/commit/{sha}"}
            for sha in value.parents
        ],
    }


def app(url: str) -> Json:
    """Show the app that jobs' tokens belong to."""
    made = "2024-01-01T00:00:00Z"
    return {
        "id": 15_368,
        "slug": "github-actions",
        "node_id": node_id("A", 15_368),
        "owner": user(Account("github", ACTIONS_BOT_ID + 1, "Organization"), url),
        "name": "GitHub Actions",
        "description": "",
        "external_url": f"{url}/actions",
        "html_url": f"{url}/apps/github-actions",
        "created_at": made,
        "updated_at": made,
        "permissions": {"checks": "write"},
        "events": [],
    }
