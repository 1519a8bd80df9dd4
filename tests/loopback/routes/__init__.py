"""The addresses that the loopback GitHub answers, by resource."""

from __future__ import annotations

from loopback.api_request import Handler
from loopback.routes import actions, checks, contents, git, issues, pulls, repos

__all__ = ["REPOSITORY_ROUTES", "SITE_ROUTES"]

SITE_ROUTES: list[tuple[str, str, Handler]] = [*repos.SITE]
"""Addresses outside any repository."""

REPOSITORY_ROUTES: list[tuple[str, str, Handler]] = [
    *repos.ROUTES,
    *pulls.ROUTES,
    *issues.ROUTES,
    *checks.ROUTES,
    *git.ROUTES,
    *contents.ROUTES,
    *actions.ROUTES,
]
"""Addresses below /repos/OWNER/NAME."""
